"""What the study found, as tables for the screen and Markdown, JSON, and a bar chart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.ramses.study import Row, Study

COLUMNS = (
    "",
    "first s",
    "warm ms",
    "MB/s",
    "faster",
    "peak MB",
    "loaded MB",
    "disk MB",
    "smaller",
)
# What all rows of a component have much the same is left to the files: a screen is 80 wide.
_NOT_ON_SCREEN = COLUMNS.index("loaded MB")


def cells_of(row: Row, study: Study) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    peer = study.fastest_peer(row.component)
    whole = study.component_bytes[row.component]
    return [
        row.name + (" *" if row.note else ""),
        f"{row.first_seconds:.3f}",
        f"{row.seconds * 1e3:.1f}",
        f"{whole / row.seconds / 1e6:,.0f}",
        f"{peer.seconds / row.seconds:.1f}" if peer else "-",
        f"{row.peak_bytes / 1e6:.0f}",
        f"{row.column_bytes / 1e6:.1f}",
        f"{row.disk_bytes / 1e6:.1f}",
        f"{whole / row.disk_bytes:.2f}",
    ]


def headline(study: Study) -> str:
    """Return a line on the output and the machine."""
    return (
        f"{study.path}: {size(study.output_bytes)}, {study.domains} domains, {study.files} files; "
        f"{study.machine['processor']}, {study.machine['cores']} cores; "
        f"medians of {study.rounds} warm loads"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per component."""
    for component in study.component_bytes:
        rows = rows_of(study, component)
        cells = ((_on_screen(cells_of(row, study)), row.reader == "ambar") for row in rows)
        yield output.screen_table(component, _on_screen(COLUMNS), cells)


def _on_screen(cells: Sequence[str]) -> list[str]:
    return [text for number, text in enumerate(cells) if number != _NOT_ON_SCREEN]


def rows_of(study: Study, component: str) -> list[Row]:
    """Return the rows of a component."""
    return [row for row in study.rows if row.component == component]


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    first = f"after {study.cold}" if study.cold else "with the files in the page cache"
    lines = [
        f"first s: import and first load in a fresh process, {first}; "
        "warm ms: median of the loads after it, all rows in turn.",
        "MB/s: RAMSES' bytes of the component by the time; faster: times faster than the fastest "
        "of yt, osyris and pynbody that loads the same.",
        "peak MB: resident memory of the process and its children after the first load; "
        "loaded MB: all columns; smaller: times smaller than RAMSES' files.",
    ]
    lines += [f"* {row.component}, {row.name}: {row.note}" for row in study.rows if row.note]
    return lines


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = [f"# Loading {Path(study.path).name}", "", headline(study) + ".", ""]
    for component in study.component_bytes:
        rows = [cells_of(row, study) for row in rows_of(study, component)]
        lines += [f"## {component}", "", *output.markdown_table(COLUMNS, rows)]
        lines.append("")
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", "Whole stores: " + stores(study) + ".", ""]
    lines += output.machine_lines(study.machine)
    return "\n".join(lines) + "\n"


def stores(study: Study) -> str:
    """Return the sizes of the stores, as text."""
    cells = [
        f"{profile} {stored / 1e6:.2f} MB ({study.output_bytes / stored:.2f} times smaller)"
        for profile, stored in study.store_bytes.items()
    ]
    return ", ".join(cells) or "none"


def write(study: Study, folder: Path) -> list[Path]:
    """Write results.json, results.md and, where matplotlib is installed, results.png."""
    charts = {"": lambda target: chart(study, target)}
    return output.write(folder, study.to_dict(), markdown(study), charts)


def chart(study: Study, target: Path) -> None:
    """Draw the warm times as bars, a panel per component, on a logarithmic axis."""
    from matplotlib.figure import Figure

    components = list(study.component_bytes)
    longest = max(len(rows_of(study, component)) for component in components)
    size_of = (8, (0.24 * longest + 0.6) * len(components))
    figure = Figure(figsize=size_of, layout="constrained")
    panels = figure.subplots(len(components), 1, sharex=True, squeeze=False)[:, 0]
    for axes, component in zip(panels, components, strict=True):
        rows = rows_of(study, component)[::-1]
        colours = [output.OURS if row.reader == "ambar" else output.OTHERS for row in rows]
        milliseconds = [row.seconds * 1e3 for row in rows]
        bars = axes.barh([row.name for row in rows], milliseconds, color=colours)
        axes.bar_label(bars, [f" {_digits(value)}" for value in milliseconds], fontsize=8)
        axes.set_title(component, loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    slowest = max(row.seconds for row in study.rows) * 1e3
    quickest = min(row.seconds for row in study.rows) * 1e3
    panels[-1].set_xscale("log")
    panels[-1].set_xlim(min(1.0, quickest / 2), slowest * 2)
    panels[-1].set_xlabel("median of warm loads, ms")
    output.save(figure, target)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

"""What the study of collections found: tables for the screen and Markdown, JSON, bar charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.collection.study import Row, Study

COLUMNS = ("", "write s", "read s", "faster", "MiB", "files")
COMPARED = (
    ("atlas-bulk", "atlas-bulk"),
    ("zarr-dask", "zarr+dask"),
    ("netcdf-dask", "netcdf+dask"),
)


def cells_of(row: Row, study: Study) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    peer = study.fastest_peer(row.datasets)
    return [
        row.name,
        _seconds(row.write_seconds) + _few(row.write),
        _seconds(row.read_seconds) + _few(row.read),
        f"{peer.read_seconds / row.read_seconds:.3g}" if peer else "-",
        f"{row.bytes / 2**20:,.1f}",
        f"{row.files:,}",
    ]


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _few(times: list[float]) -> str:
    """Return a mark where the median is of one turn, or of the first reading alone."""
    return " *" if len(times) < 2 else ""


def headline(study: Study) -> str:
    """Return a line on the datasets and the machine."""
    shape = " x ".join(f"{name} {length}" for name, length in study.shape.items())
    window = ", ".join(f"{name} {a}:{b}" for name, (a, b) in study.window.items())
    return (
        f"{study.case}: datasets of {len(study.variables)} variables, {shape}, "
        f"{size(study.dataset_bytes)} each; of all of them is read {window}; "
        f"{study.machine['processor']}, {study.threads} threads; "
        f"medians of up to {study.rounds} rounds"
    )


def title(study: Study, datasets: int) -> str:
    """Return what a table is of."""
    return f"{datasets:,} datasets, {size(datasets * study.dataset_bytes)}"


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per number of datasets."""
    for datasets in study.datasets:
        rows = ((cells_of(row, study), row.ours) for row in study.at(datasets))
        yield output.screen_table(title(study, datasets), COLUMNS, rows)


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    lines = [
        "write s: the writer's calls, closing included, without generating the datasets and "
        "without fsync; read s: opening, and the slice of all variables of all datasets as NumPy "
        "arrays, with the files in the page cache.",
        "faster: times faster than the fastest peer reads; MiB, files: all that is stored.",
        "*: one round alone, because more would have taken longer than the study's patience of "
        f"{study.patience:g} s a row.",
    ]
    lines += [line for datasets in study.datasets for line in comparisons(study, datasets)]
    lines += [
        f"{row.name}, {row.datasets:,} datasets: crashed and began anew {row.crashes} times."
        for row in study.rows
        if row.crashes
    ]
    return lines + [f"left out: {name}: {why}." for name, why in study.left_out.items()]


def comparisons(study: Study, datasets: int) -> list[str]:
    """Return how ambar's bulk read, size and writing compare with Atlas' and others'."""
    rows = {row.key: row for row in study.at(datasets)}
    ours = rows.get("ambar-bulk")
    if ours is None:
        return []
    reads = [
        f"{rows[key].read_seconds / ours.read_seconds:,.1f} times as fast as {name}"
        for key, name in COMPARED
        if key in rows
    ]
    lines = [f"{datasets:,} datasets: ambar, bulk, reads {', '.join(reads)}."] if reads else []
    if atlas := rows.get("atlas-bulk"):
        lines.append(
            f"{datasets:,} datasets: ambar has {100 * ours.bytes / atlas.bytes:.1f} % of Atlas' "
            f"bytes, and writes {atlas.write_seconds / ours.write_seconds:.2f} times as fast."
        )
    loops = [rows.get(key) for key in ("atlas-loop", "ambar-loop")]
    if loops[0] and loops[1]:
        lines.append(
            f"{datasets:,} datasets: ambar's loop of xarray is "
            f"{loops[0].read_seconds / loops[1].read_seconds:.1f} times as fast as Atlas'."
        )
    return lines


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = [f"# Collections: {study.case}", "", headline(study) + ".", ""]
    for datasets in study.datasets:
        rows = [cells_of(row, study) for row in study.at(datasets)]
        lines += [f"## {title(study, datasets)}", "", *output.markdown_table(COLUMNS, rows), ""]
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def name_of(study: Study) -> str:
    """Return the stem of the file names: the case, and its settings that are not the defaults."""
    start = max((window[0] for window in study.window.values()), default=0)
    return study.case + (f"_offset{start}" if start else "")


def write(study: Study, folder: Path) -> list[Path]:
    """Write CASE.json, CASE.md and, where matplotlib is installed, charts of reads and writes."""
    charts: dict[str, Callable[[Path], None]] = {
        "_read": lambda target: chart(study, "read_seconds", "open and read the slice", target),
        "_write": lambda target: chart(study, "write_seconds", "write", target),
    }
    return output.write(folder, study.to_dict(), markdown(study), charts, name_of(study))


def chart(study: Study, figure_of: str, label: str, target: Path) -> None:
    """Draw the seconds as bars, a panel per number of datasets, on a logarithmic axis."""
    from matplotlib.figure import Figure

    rows = {count: list(study.at(count)) for count in study.datasets}
    if figure_of == "write_seconds":  # a layout is written once for all its readers
        rows = {count: list({r.layout: r for r in of}.values()) for count, of in rows.items()}
    longest = max((len(of) for of in rows.values()), default=1)
    size_of = (4 * len(rows) + 2, 0.28 * max(longest, 1) + 1.2)
    figure = Figure(figsize=size_of, layout="constrained")
    panels = figure.subplots(1, len(rows), sharey=True, sharex=True, squeeze=False)[0]
    for axes, (count, of) in zip(panels, rows.items(), strict=True):
        seconds = [getattr(row, figure_of) for row in of][::-1]
        names = [row.layout if figure_of == "write_seconds" else row.name for row in of][::-1]
        colours = [output.OURS if row.ours else output.OTHERS for row in of][::-1]
        bars = axes.barh(names, seconds, color=colours)
        axes.bar_label(bars, [f" {value:.3g}" for value in seconds], fontsize=8)
        axes.set_title(f"{count:,} datasets", loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xscale("log")
        axes.set_xlabel(f"{label}, s", fontsize=9)
    every = [getattr(row, figure_of) for row in study.rows] or [1.0]
    panels[0].set_xlim(min(every) / 2, max(every) * 4)
    output.save(figure, target)

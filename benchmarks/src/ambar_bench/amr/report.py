"""What the study of plotfiles found, as tables for the screen and Markdown, JSON, and charts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.amr.study import Row, Study

COLUMNS = ("", "ratio", "PSNR dB", "max error / bound", "compress MB/s", "decompress MB/s")
OWN_LINES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
"""How the lines of ambar's rows differ."""


def cells_of(row: Row) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    speed = f"{row.compress_speed / 1e6:,.0f}"
    if row.compress_speed_alone > 1.02 * row.compress_speed:
        speed += f" ({row.compress_speed_alone / 1e6:,.0f})"
    return [
        row.method,
        _digits(row.ratio),
        f"{row.psnr:.1f}",
        _worst(row.worst),
        speed,
        f"{row.decompress_speed / 1e6:,.0f}",
    ]


def fields_of(row: Row) -> list[str]:
    """Return the ratio of each field at its PSNR."""
    return [row.method, *(f"{_digits(f.ratio)} @ {f.psnr:.1f}" for f in row.fields)]


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 999.5 else f"{value:.3g}"


def _worst(value: float) -> str:
    """Return the largest error in bounds; a bound that is broken by little must not look held."""
    text = f"{value:.3f}"
    return f"{value:.3g} !" if value > 1 + 1e-9 else text


def headline(study: Study) -> str:
    """Return a line on the plotfile and the machine."""
    cells = sum(level["cells"] for level in study.levels)
    uncovered = sum(level["uncovered"] for level in study.levels)
    boxes = ", ".join(str(level["boxes"]) for level in study.levels)
    return (
        f"{Path(study.path).name}: {size(study.raw_bytes)} in {len(study.fields)} fields, boxes by "
        f"level: {boxes}; {100 * uncovered / max(cells, 1):.1f} % of the cells uncovered; "
        f"{study.machine['processor']}, one core; medians of {study.rounds} rounds"
    )


def title(study: Study, bound: float) -> str:
    """Return what a relative bound is relative to."""
    of = "each rank's own range" if study.local_range else "the field's global range"
    return f"{bound:g} of {of}"


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per bound."""
    for bound in study.bounds:
        rows = ((cells_of(row), row.ours) for row in study.at(bound))
        yield output.screen_table(title(study, bound), COLUMNS, rows)


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    if study.local_range:
        bound = (
            "bound: relative to the field's range in what one rank wrote of a level, as in AMRIC's "
            "tables 2 and 3: the absolute bound differs from rank to rank, for all rows alike."
        )
    else:
        bound = (
            "bound: one absolute bound a field, for all rows and levels: relative to the field's "
            "range over uncovered cells."
        )
    lines = [
        bound,
        "ratio: all raw bytes of the fields, those of covered cells too, by the compressed ones.",
        "PSNR: 20 log10(range) - 10 log10(mean squared error) over uncovered cells, the mean of "
        "the fields; max error: of uncovered cells.",
        "MB/s: the same raw bytes by CPU time; in brackets without the choice of settings, which "
        "is made once a field and level and so weighs little on large fields.",
        "(own): ambar's own implementation of the published scheme; see benchmarks/amr/README.md.",
    ]
    return lines + [f"left out: {name}: {why}." for name, why in study.left_out.items()]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = [f"# Compressing {Path(study.path).name}", "", headline(study) + ".", ""]
    for bound in study.bounds:
        rows = study.at(bound)
        lines += [f"## {title(study, bound)}", ""]
        lines += output.markdown_table(COLUMNS, [cells_of(row) for row in rows])
        lines += ["", "Ratio @ PSNR of each field:", ""]
        lines += output.markdown_table(("", *study.fields), [fields_of(row) for row in rows])
        lines.append("")
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON, Markdown and charts, named after the plotfile."""
    charts = {
        "_rate": lambda target: rate_chart(study, target),
        "_speed": lambda target: speed_chart(study, target),
    }
    name = Path(study.path).name + ("_local" if study.local_range else "")
    return output.write(folder, study.to_dict(), markdown(study), charts, name)


def _methods(study: Study) -> list[str]:
    return list(dict.fromkeys(row.method for row in study.rows))


def _styles(study: Study) -> dict[str, dict[str, object]]:
    """Return how each line is drawn: ambar's thick, own implementations of others dashed."""
    from matplotlib import colormaps

    styles: dict[str, dict[str, object]] = {}
    ours = list(dict.fromkeys(row.method for row in study.rows if row.ours))
    for number, method in enumerate(_methods(study)):
        own_line = OWN_LINES[ours.index(method) % len(OWN_LINES)] if method in ours else "-"
        styles[method] = {
            "color": output.OURS if method in ours else colormaps["tab20"](number % 20),
            "linewidth": 2.2 if method in ours else 1.1,
            "linestyle": "--" if "(own)" in method else own_line,
            "zorder": 3 if method in ours else 2,
        }
    return styles


def rate_chart(study: Study, target: Path) -> None:
    """Draw PSNR over the bits a value, of all fields and of each."""
    from matplotlib.figure import Figure

    panels = ["all fields", *study.fields]
    columns = min(3, len(panels))
    lines = -(-len(panels) // columns)
    figure = Figure(figsize=(4.4 * columns, 3.4 * lines + 1.2), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    styles = _styles(study)
    values = sum(level["cells"] for level in study.levels)
    for axes, panel in zip(grid, panels, strict=False):
        for method in _methods(study):
            points = [_point(row, panel, values) for row in study.rows if row.method == method]
            points = sorted(point for point in points if all(map(math.isfinite, point)))
            if points:
                axes.plot(*zip(*points, strict=True), marker=".", label=method, **styles[method])
        axes.set_xscale("log")
        axes.set_title(panel, loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
        axes.set_xlabel("bits a value of the plotfile", fontsize=8)
        axes.set_ylabel("PSNR, dB", fontsize=8)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)
    output.save(figure, target)


def _point(row: Row, panel: str, values: int) -> tuple[float, float]:
    """Return the bits a value and the PSNR of a field, or of all fields."""
    chosen = [result for result in row.fields if panel in ("all fields", result.name)]
    packed = sum(result.packed_bytes for result in chosen)
    finite = [result.psnr for result in chosen if math.isfinite(result.psnr)]
    psnr = sum(finite) / len(finite) if finite else math.nan
    return 8 * packed / max(values * len(chosen), 1), psnr


def speed_chart(study: Study, target: Path) -> None:
    """Draw the speeds of each method at each bound as bars."""
    from matplotlib.figure import Figure

    bounds = study.bounds
    methods = _methods(study)[::-1]
    figure = Figure(figsize=(10, 0.34 * len(methods) * len(bounds) + 1), layout="constrained")
    grid = figure.subplots(len(bounds), 2, sharey=True, sharex="col", squeeze=False)
    ours = {row.method for row in study.rows if row.ours}
    for line, bound in zip(grid, bounds, strict=True):
        rows = {row.method: row for row in study.at(bound)}
        for axes, name in zip(line, ("compress", "decompress"), strict=True):
            speeds = [getattr(rows[method], f"{name}_speed") / 1e6 for method in methods]
            colours = [output.OURS if method in ours else output.OTHERS for method in methods]
            bars = axes.barh(methods, speeds, color=colours)
            axes.bar_label(bars, [f" {speed:,.0f}" for speed in speeds], fontsize=8)
            axes.set_title(f"{name}, {bound:g} of range", loc="left", fontsize=10)
            axes.margins(x=0.15)
            axes.tick_params(labelsize=8)
            axes.spines[["top", "right"]].set_visible(False)
    for axes in grid[-1]:
        axes.set_xlabel("MB/s of one core")
    output.save(figure, target)

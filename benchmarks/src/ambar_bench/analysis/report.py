"""What the study of analysis found, as tables for the screen and Markdown, JSON, and a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.analysis.study import Row, Study
from ambar_bench.analysis.tools import PEERS, TASKS

COLUMNS = ("", "first ms", "warm ms", *(f"x {peer}" for peer in PEERS), "peak MB", "imports MB")


def cells_of(row: Row, study: Study) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    return [
        row.name + (" *" if row.note else ""),
        _text(row.first_seconds * 1e3),
        _text(row.seconds * 1e3),
        *(_text(study.faster(row, peer)) for peer in PEERS),
        f"{row.peak_bytes / 1e6:.0f}",
        f"{row.idle_bytes / 1e6:.0f}",
    ]


def tasks_of(study: Study) -> list[str]:
    """Return the measured tasks."""
    return list(dict.fromkeys(row.task for row in study.rows))


def rows_of(study: Study, task: str) -> list[Row]:
    """Return the rows of a task."""
    return [row for row in study.rows if row.task == task]


def headline(study: Study) -> str:
    """Return a line on the output and the machine."""
    stores = ", ".join(f"{name} {size(count)}" for name, count in study.store_bytes.items())
    return (
        f"{study.path}: {size(study.output_bytes)}, {study.cells:,} cells; stores: {stores}; "
        f"{study.machine['processor']}, {study.machine['cores']} cores; "
        f"medians of {study.rounds} runs"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per task."""
    for task in tasks_of(study):
        cells = ((cells_of(row, study), row.tool == "ambar") for row in rows_of(study, task))
        yield output.screen_table(f"{task}: {TASKS[task]}", COLUMNS, cells)


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    lines = [
        "first ms: the first run in a fresh process, after imports; warm ms: median of the runs "
        "after it, all tools in turn. Every run opens the output.",
        "x yt, x pynbody: how many times faster than yt and pynbody. yt has one thread, pynbody as "
        "many reading processes as ambar has threads.",
        "peak MB: resident memory of the process and its children after the first run; imports MB: "
        "that after importing the program.",
    ]
    return lines + [f"* {row.task}, {row.name}: {row.note}" for row in study.rows if row.note]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = [f"# Analysis of {Path(study.path).name}", "", headline(study) + ".", ""]
    for task in tasks_of(study):
        rows = [cells_of(row, study) for row in rows_of(study, task)]
        lines += [f"## {task}", "", f"{TASKS[task].capitalize()}.", ""]
        lines += [*output.markdown_table(COLUMNS, rows), ""]
    lines += [*(f"- {note}" for note in notes(study)), ""]
    return "\n".join([*lines, *output.machine_lines(study.machine)]) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write results.json, results.md and, where matplotlib is installed, results.png."""
    charts = {"": lambda target: chart(study, target)}
    return output.write(folder, study.to_dict(), markdown(study), charts)


def chart(study: Study, target: Path) -> None:
    """Draw the warm times as bars, a panel per task, on a logarithmic axis."""
    from matplotlib.figure import Figure

    tasks = tasks_of(study)
    figure = Figure(figsize=(8, 1.5 * len(tasks)), layout="constrained")
    panels = figure.subplots(len(tasks), 1, sharex=True, squeeze=False)[:, 0]
    for axes, task in zip(panels, tasks, strict=True):
        rows = [row for row in rows_of(study, task) if row.warm][::-1]
        colours = [output.OURS if row.tool == "ambar" else output.OTHERS for row in rows]
        milliseconds = [row.seconds * 1e3 for row in rows]
        bars = axes.barh([row.name for row in rows], milliseconds, color=colours)
        axes.bar_label(bars, [f" {_text(value)}" for value in milliseconds], fontsize=8)
        axes.set_title(task, loc="left", fontsize=10)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xscale("log")
    panels[-1].margins(x=0.2)
    panels[-1].set_xlabel("median of warm runs, ms")
    output.save(figure, target)


def _text(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

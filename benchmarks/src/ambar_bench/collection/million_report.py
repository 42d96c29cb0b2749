"""What the study of very many datasets found: a table for the screen and Markdown, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar_bench import output
from ambar_bench.collection.million import APPENDED, POINTS, Million

COLUMNS = ("", "time", "longest", "MB of memory", "bytes written", "mean")


def rows(found: Million) -> Iterator[list[str]]:
    """Yield the cells of each row, one per column of `COLUMNS`."""
    for step, figures in found.steps.items():
        memory = f"{figures['MB']:,.0f}"
        if "cpu" in figures:
            yield [f"{step}, processor time", _time(figures["cpu"]), "", "", "", ""]
        if "first" in figures:
            yield [f"{step}, the first", _time(figures["first"]), "", "", "", ""]
        longest = _time(figures["longest"]) if "longest" in figures else ""
        written = [
            f"{figures[key]:,.0f}" if key in figures else "" for key in ("bytes", "mean bytes")
        ]
        yield [step, _time(figures["seconds"]), longest, memory, *written]


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def headline(found: Million) -> str:
    """Return a line on the datasets and the machine."""
    return (
        f"{found.datasets:,} datasets of two variables of {POINTS} values of float32 and a "
        f"coordinate; {found.machine['processor']}, {found.machine['cores']} cores"
    )


def tables(found: Million) -> Iterator[Table]:
    """Yield the table for the screen."""
    yield output.screen_table("very many datasets", COLUMNS, ((row, True) for row in rows(found)))


def notes(_: Million) -> list[str]:
    """Return what to know when reading the table."""
    return [
        "create: without the time that generates the datasets. read: one dataset by its name, the "
        "first one after opening, and others; medians.",
        f"append: a dataset and its commit, the first one with opening, and the median of "
        f"{APPENDED} others; nothing is fsynced. Bytes written are those passed to the system, "
        "also where a later commit overwrites them.",
        "Memory is the largest resident memory of a process that does one step, except for "
        "create without that of the imported modules.",
    ]


def markdown(found: Million) -> str:
    """Return everything as Markdown."""
    lines = ["# Collections of very many datasets", "", headline(found) + ".", ""]
    lines += output.markdown_table(COLUMNS, list(rows(found)))
    lines += ["", *(f"- {note}" for note in notes(found)), ""]
    return "\n".join(lines + output.machine_lines(found.machine)) + "\n"


def write(found: Million, folder: Path) -> list[Path]:
    """Write million_N.json and million_N.md."""
    name = f"million_{found.datasets}"
    return output.write(folder, found.to_dict(), markdown(found), {}, name)

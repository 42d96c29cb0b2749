"""What the study of the viewer found, as tables for the screen and Markdown, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.view.study import Row, Study

COLUMNS = (
    "",
    "cells",
    "bytes",
    "first picture",
    "next visit",
    "zoom moved",
    "painted",
    "server",
    "pan moved",
    "painted",
    "server",
    "memory",
)


def cells_of(row: Row) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    steps = [f"{time:.0f}" for one in row.steps for time in (one.moved, one.painted, one.server)]
    pictures = [f"{time:,.0f}" for time in (row.first_picture, row.next_picture)]
    sizes = [f"{row.cells:,}", size(row.stored_bytes)]
    return [row.name, *sizes, *pictures, *steps, size(row.resident_bytes)]


def headline(study: Study) -> str:
    """Return a line on the machine."""
    machine = study.machine
    return (
        f"the viewer in headless Chromium, a map of 1000 x 1000 pixels; {machine['processor']}, "
        f"{machine['cores']} cores, load {machine['load']}"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield the table for the screen."""
    yield output.screen_table(
        "milliseconds", COLUMNS, ((cells_of(row), True) for row in study.rows)
    )


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    images = sum(step.images for row in study.rows for step in row.steps)
    count = sum(step.count for row in study.rows for step in row.steps)
    return [
        f"first picture: from the visit of a new server to its painted image, median of "
        f"{study.visits} servers; next visit: of the same server.",
        "moved: from the event of the mouse until the last image is painted at its new place; "
        "painted: until the image of the server is, in steps that need one; server: from the "
        "report of the window to the last image. Medians.",
        f"{images} of {count} steps needed an image: others are inside of what was read.",
    ]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = ["# The viewer", "", headline(study) + ". Milliseconds.", ""]
    lines += [*output.markdown_table(COLUMNS, map(cells_of, study.rows)), ""]
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON and Markdown."""
    return output.write(folder, study.to_dict(), markdown(study), {})

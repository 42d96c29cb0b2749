"""What the study of the HDF5 filter found, as tables for the screen and Markdown, and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.hdf5.study import Direction, Row, Study

COLUMNS = ("", "ratio", "codec MB/s", "filter MB/s", "overhead", "with HDF5's own")


def cells_of(row: Row, way: Direction) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    kind = f"{row.bound:g} of range" if row.bound else "lossless"
    return [
        f"{row.dtype}, {row.side}³, {kind}",
        f"{row.raw_bytes / row.stored_bytes:.3g}",
        f"{row.raw_bytes / way.codec / 1e6:,.0f}",
        f"{row.raw_bytes / way.filtered / 1e6:,.0f}",
        f"{100 * way.overhead:+.1f} %",
        f"{100 * way.overhead_with_hdf5:+.1f} %",
    ]


def _rows(study: Study) -> Iterator[tuple[str, list[list[str]]]]:
    for name, title in (("write", "writing"), ("read", "reading")):
        yield title, [cells_of(row, getattr(row, name)) for row in study.rows]


def headline(study: Study) -> str:
    """Return a line on the field and the machine."""
    return (
        f"a turbulent field of {study.side}³ values ({size(8 * study.side**3)} in float64); "
        f"{study.machine['processor']}, one core; each chunk's fastest of {study.rounds}"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per direction."""
    for title, rows in _rows(study):
        yield output.screen_table(title, COLUMNS, ((row, True) for row in rows))


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    overheads = [way.overhead for row in study.rows for way in (row.write, row.read)]
    return [
        "MB/s: raw bytes by CPU time; codec: its streams chunk by chunk, from memory to memory.",
        "overhead: CPU time through h5py with the filter, less the same without it, over the "
        "codec's; with HDF5's own: nothing taken away.",
        f"overhead of all rows: {100 * min(overheads):+.1f} % to {100 * max(overheads):+.1f} %, "
        f"median {100 * sorted(overheads)[len(overheads) // 2]:+.1f} %.",
    ]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = ["# The filter of HDF5", "", headline(study) + ".", ""]
    for title, rows in _rows(study):
        lines += [f"## {title.capitalize()}", "", *output.markdown_table(COLUMNS, rows), ""]
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON and Markdown."""
    return output.write(folder, study.to_dict(), markdown(study), {})

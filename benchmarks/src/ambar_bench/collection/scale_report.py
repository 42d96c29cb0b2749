"""What the study of scale found: a table for the screen and Markdown, JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.collection.scale import Scale, Scaled

COLUMNS = (
    "",
    "write s",
    "MiB",
    "open ms",
    "first ms",
    "by name ms",
    "loop s",
    "add ms",
)


def cells_of(row: Scaled) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    return [
        row.name,
        f"{row.median('write'):.2f}",
        f"{row.bytes / 2**20:,.1f}",
        f"{row.median('open') * 1e3:.2f}",
        f"{row.median('first_by_name') * 1e3:.2f}",
        f"{row.median('by_name') * 1e3:.3f}",
        f"{row.median('loop'):.2f}",
        f"{row.median('add') * 1e3:.2f}",
    ]


def headline(scale: Scale) -> str:
    """Return a line on the datasets and the machine."""
    shape = " x ".join(f"{name} {length}" for name, length in scale.shape.items())
    return (
        f"{scale.datasets:,} datasets of {scale.case}: {len(scale.variables)} variables, {shape}, "
        f"{size(scale.dataset_bytes)} each; {scale.machine['processor']}, "
        f"{scale.machine['cores']} cores; medians of up to {scale.rounds} rounds"
    )


def tables(scale: Scale) -> Iterator[Table]:
    """Yield the table for the screen."""
    rows = ((cells_of(row), row.ours) for row in scale.rows)
    yield output.screen_table("single datasets", COLUMNS, rows)


def notes(scale: Scale) -> list[str]:
    """Return what to know when reading the table."""
    lines = [
        "first ms: the first dataset by its name after opening, as an xarray Dataset in memory; "
        "by name ms: others after it; loop s: opening, and all of them one after the other.",
        "add ms: adding a dataset to the opened store and committing it; nothing is fsynced.",
        f"A step that has taken {scale.patience:g} s of a system gets no more rounds.",
    ]
    rows = {row.key: row for row in scale.rows}
    if "atlas" in rows and "ambar" in rows:
        ratios = [
            f"{what} {rows['atlas'].median(key) / rows['ambar'].median(key):.1f}"
            for what, key in (
                ("writes", "write"),
                ("opens", "open"),
                ("loads by name", "by_name"),
                ("loops", "loop"),
                ("adds", "add"),
            )
        ]
        lines.append(f"times as fast as Atlas: {', '.join(ratios)}.")
    lines += [
        f"{row.name}: {row.other_attributes} of the datasets that were looked at, those that were "
        "added among them, had other attributes than they were given."
        for row in scale.rows
        if row.other_attributes
    ]
    return lines + [f"left out: {name}: {why}." for name, why in scale.left_out.items()]


def markdown(scale: Scale) -> str:
    """Return everything as Markdown."""
    lines = [f"# Collections of many datasets: {scale.case}", "", headline(scale) + ".", ""]
    lines += output.markdown_table(COLUMNS, [cells_of(row) for row in scale.rows])
    lines += ["", *(f"- {note}" for note in notes(scale)), ""]
    return "\n".join(lines + output.machine_lines(scale.machine)) + "\n"


def write(scale: Scale, folder: Path) -> list[Path]:
    """Write scale_N.json and scale_N.md."""
    name = f"scale_{scale.datasets}"
    return output.write(folder, scale.to_dict(), markdown(scale), {}, name)

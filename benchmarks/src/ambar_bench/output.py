"""What all studies write: tables for the screen and in Markdown, JSON, and charts as PNG."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ambar.cli.output import plain_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS = "#c77f12"
OTHERS = "#8a8f98"


def screen_table(
    title: str, columns: Sequence[str], rows: Iterable[tuple[Sequence[str], bool]]
) -> Table:
    """Return a table for the screen; each row says whether it is ambar's, others are dim."""
    table = plain_table(*columns, title=title)
    table.padding = (0, 0, 0, 1)
    for column in table.columns:
        column.no_wrap = True
    for cells, ours in rows:
        table.add_row(*cells, style="" if ours else "dim")
    return table


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown, its first column aligned to the left."""
    lines = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    return lines + ["| " + " | ".join(cells) + " |" for cells in rows]


def machine_lines(machine: Mapping[str, str]) -> list[str]:
    """Return what `ambar_bench.machine.machine` found as lines of Markdown."""
    return [f"{name}: {value}  " for name, value in machine.items()]


def write(
    folder: Path,
    values: Mapping[str, Any],
    text: str,
    charts: Mapping[str, Callable[[Path], None]],
    name: str = "results",
) -> list[Path]:
    """Write NAME.json, NAME.md and, where matplotlib is installed, the charts, NAME and the key."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json", folder / f"{name}.md"]
    written[0].write_text(json.dumps(values, indent=2) + "\n")
    written[1].write_text(text)
    for suffix, draw in charts.items():
        try:
            draw(folder / f"{name}{suffix}.png")
        except ImportError:
            return written
        written.append(folder / f"{name}{suffix}.png")
    return written


def save(figure: Figure, target: Path) -> None:
    """Write a figure as a PNG, whatever backend is set."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).print_figure(target, dpi=130)

"""The four charts of zvtk's benchmark: times, ratio and speed by level, and by threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ambar_bench import output
from ambar_bench.mesh.results import Row, Study
from ambar_bench.mesh.rows import WAYS

COLOURS = ("#4c78a8", "#8a8f98", "#6b4c9a")
"""Of peers, in the order of the tables."""


class Panel(NamedTuple):
    """What a panel shows of a row."""

    label: str
    value: Callable[[Row], float]
    logarithmic: bool = False


WRITE = Panel("write, s", lambda row: row.write_seconds, logarithmic=True)
READ = Panel("read, s", lambda row: row.read_seconds, logarithmic=True)
RATIO = Panel("ratio", lambda row: row.ratio)
WRITE_SPEED = Panel("write, MB/s", lambda row: row.raw_bytes / row.write_seconds / 1e6)
READ_SPEED = Panel("read, MB/s", lambda row: row.raw_bytes / row.read_seconds / 1e6)


def levels(study: Study, target: Path) -> None:
    """Draw the time of writing and the ratio by level."""
    _draw(study, (WRITE, RATIO), "level", study.at_levels, target)


def levels_speed(study: Study, target: Path) -> None:
    """Draw the speeds of writing and reading by level."""
    _draw(study, (WRITE_SPEED, READ_SPEED), "level", study.at_levels, target)


def threads(study: Study, target: Path) -> None:
    """Draw the times of writing and reading by threads."""
    _draw(study, (WRITE, READ), "threads", study.at_threads, target)


def threads_speed(study: Study, target: Path) -> None:
    """Draw the speeds of writing and reading by threads."""
    _draw(study, (WRITE_SPEED, READ_SPEED), "threads", study.at_threads, target)


def _draw(
    study: Study,
    shown: tuple[Panel, ...],
    by: str,
    rows_of: Callable[[str, str], list[Row]],
    target: Path,
) -> None:
    """Draw a row of panels for each grid, a line for each way that takes part."""
    from matplotlib.figure import Figure

    keys = [key for key, way in WAYS.items() if (way.leveled if by == "level" else way.threaded)]
    figure = Figure(figsize=(9, 3.4 * len(study.grids)), layout="constrained")
    panels = figure.subplots(len(study.grids), len(shown), squeeze=False)
    for line, mesh in zip(panels, study.grids, strict=True):
        for axes, panel in zip(line, shown, strict=True):
            for key in keys:
                if rows := rows_of(mesh, key):
                    places = [getattr(row, by) for row in rows]
                    axes.plot(places, [panel.value(row) for row in rows], **_style(key, keys))
            if panel.logarithmic:
                axes.set_yscale("log")
            else:
                axes.set_ylim(bottom=0)
            axes.set_xlabel(by)
            axes.set_ylabel(panel.label)
            axes.set_title(f"{mesh}, {study.n}^3 points", loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
    if panels[0][0].lines:
        panels[0][0].legend(frameon=False, fontsize=8)
    output.save(figure, target)


def _style(key: str, keys: list[str]) -> dict[str, Any]:
    """Return how a way's line is drawn: ambar's in the studies' own colour, thicker."""
    if (way := WAYS[key]).ours:
        return {"label": way.name, "color": output.OURS, "lw": 2.2, "marker": "o"}
    peers = [other for other in keys if not WAYS[other].ours]
    colour = COLOURS[peers.index(key) % len(COLOURS)]
    return {"label": way.name, "color": colour, "lw": 1.2, "marker": "."}

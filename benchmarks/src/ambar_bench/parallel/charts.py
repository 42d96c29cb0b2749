"""The charts: six plots of strong scaling for each kind of data, and one of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar_bench import output
from ambar_bench.parallel import model
from ambar_bench.parallel.results import Study
from ambar_bench.parallel.versions import VERSIONS, Version

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "text": "#8a8f98",
    "binary": "#222222",
    "mpiio": "#4c78a8",
    "netcdf": "#54a24b",
    "pnetcdf": "#9d755d",
    "adios2": "#b279a2",
    "hdf5": "#6b4c9a",
    "ambar": output.OURS,
    "rank": output.OURS,
}
"""By program; versions of one differ in their dashes."""
DASHES = (
    "-",
    "--",
    ":",
    "-.",
    (0, (8, 2)),
    (0, (6, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
    (0, (3, 1, 1, 1)),
)
SHOWN = (("write", "write"), ("cold", "cold read"), ("warm", "warm read"))


def scaling(study: Study, data: str, target: Path) -> None:
    """Draw seconds and speed-up of writing, cold and warm reading by the number of ranks.

    Seconds are those of as many doubles as the binary versions write, those of text scaled up.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.5), layout="constrained")
    panels = figure.subplots(2, len(SHOWN), squeeze=False)
    for (what, label), above, below in zip(SHOWN, panels[0], panels[1], strict=True):
        for key, version in VERSIONS.items():
            rows = study.along(key, data)
            if not rows:
                continue
            ranks = [row.ranks for row in rows]
            times = [row.median(what) * study.doubles / row.doubles for row in rows]
            above.plot(ranks, times, **_style(version))
            below.plot(ranks, [times[0] / time for time in times], **_style(version))
        above.set_yscale("log")
        _finish(above, f"{label}, s", study.ranks, "ranks")
        _finish(below, f"{label}, speed-up", study.ranks, "ranks")
        above.set_title(f"{data}, {study.doubles:,} doubles", loc="left", fontsize=10)
    _legend(figure, panels[0][0])
    output.save(figure, target)


def modelled(study: Study, target: Path) -> None:
    """Draw the modelled seconds of a write by nodes, a panel a kind of data and bandwidth."""
    from matplotlib.figure import Figure

    columns = len(study.bandwidths)
    figure = Figure(figsize=(4.5 * columns + 3, 4 * len(study.data)), layout="constrained")
    panels = figure.subplots(len(study.data), columns, squeeze=False)
    for data, line in zip(study.data, panels, strict=True):
        for bandwidth, axes in zip(study.bandwidths, line, strict=True):
            for row, times in model.lines(study, data, bandwidth):
                axes.plot(model.NODES, times, **_style(row.made_by))
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            _finish(axes, "write, s (model)", model.NODES, "nodes")
            title = f"{data}, {bandwidth:g} GB/s, {model.DOUBLES:,} doubles"
            axes.set_title(title, loc="left", fontsize=10)
    _legend(figure, panels[0][0])
    output.save(figure, target)


def _finish(axes: Axes, label: str, places: Any, across: str) -> None:
    axes.set_ylabel(label)
    axes.set_xlabel(across)
    axes.set_xticks(list(places), [str(place) for place in places])
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Any, axes: Axes) -> None:
    if axes.lines:
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)


def _style(version: Version) -> dict[str, Any]:
    """Return how a version's line is drawn: ambar's in the studies' own colour, thicker."""
    same = [other for other in VERSIONS.values() if other.program == version.program]
    return {
        "label": version.name,
        "color": COLOURS[version.program],
        "lw": 2.2 if version.ours else 1.2,
        "ls": DASHES[same.index(version) % len(DASHES)],
        "marker": "^" if version.program == "rank" else ("o" if version.ours else "."),
    }

"""The Python code that makes the same picture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ambar.snapshot.regions import AXES
from ambar.snapshot.units import SYSTEMS, unit_system
from ambar.viewer.pages.cells.plane import Plane
from ambar.viewer.pages.cells.tiles import Image
from ambar.viewer.pages.cells.view import View

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot

_NORMS = {
    "linear": "Normalize({low:.6g}, {high:.6g})",
    "log": "LogNorm({low:.6g}, {high:.6g})",
    "symlog": "AsinhNorm({linear:.6g}, {low:.6g}, {high:.6g})",
}
"""Scales of colours in matplotlib."""
_MAPS = {"red-blue": "RdBu_r", "purple-green": "PRGn", "greys": "Greys"}


def python_call(
    snapshot: Snapshot,
    image: Image,
    view: View,
    scale: str,
    limits: tuple[float, float],
    colors: str,
) -> str:
    """Return the code that reads the window of a view and draws it with matplotlib.

    Parameters
    ----------
    snapshot
        The snapshot.
    image, view
        The plane with its resolution, and the window.
    scale, limits, colors
        The scale, the limits and the map of the colours.
    """
    low, high = limits
    linear = 1e-3 * max(abs(low), abs(high))
    norm = _NORMS[scale].format(low=low, high=high, linear=linear)
    kind = norm.partition("(")[0]
    options = [*_options(image.plane), f"level={image.resolution.level}"]
    options += [f"region={_region(image.plane, view)}", f"unit={image.plane.unit!r}"]
    return (
        "import ambar\n"
        f"from matplotlib.colors import {kind}\n\n"
        f"amr = {_opening(snapshot)}.amr\n"
        f"image = amr.{image.plane.method}(\n"
        f"    {image.plane.field!r},\n"
        + "".join(f"    {option},\n" for option in options)
        + f")\nimage.plot(norm={norm}, cmap={_MAPS.get(colors, colors)!r})\n"
    )


def _opening(snapshot: Snapshot) -> str:
    """Return the expression that opens a snapshot; options of URLs, such as keys, are not shown."""
    if snapshot._stored_at is None:
        return f"ambar.open({snapshot.location!r}){_with_units(snapshot)}"
    store, path = snapshot._stored_at
    commit = store._commit
    arguments = [repr(store.location)]
    if commit._is_pinned and commit.core.commit_id:
        arguments.append(f"commit={commit.core.commit_id[0]}")
    if commit._options:
        arguments.append("storage_options=storage_options")
    number = re.search(r"\d+$", path)
    step = f".output({int(number[0])})" if number else ""
    return f"ambar.open({', '.join(arguments)}){step}{_with_units(snapshot)}"


def _with_units(snapshot: Snapshot) -> str:
    """Return the call that gives the code units that the caller gave; "" if none were given."""
    given = getattr(snapshot.info, "given_units", None)
    if given is None:
        return ""
    named = (name for name in SYSTEMS if unit_system(name, snapshot.info.aexp) == given)
    name = next(named, None)
    return f".with_units({f'ambar.{given!r}' if name is None else repr(name)})"


def _options(plane: Plane) -> list[str]:
    if plane.method == "slice":
        return [f"axis={AXES[plane.axis]!r}", f"at={plane.at:.9g}", 'at_unit="code"']
    if plane.method == "project":
        return [f"axis={AXES[plane.axis]!r}", f"weight={plane.weight!r}"]
    return []


def _region(plane: Plane, view: View) -> str:
    low, high = (["None"] * plane.amr.ndim for _ in range(2))
    first, second = plane.axes
    low[first], high[first] = f"{view.left:.9g}", f"{view.right:.9g}"
    low[second], high[second] = f"{view.bottom:.9g}", f"{view.top:.9g}"
    return f'ambar.Box(({", ".join(low)}), ({", ".join(high)}), "code")'

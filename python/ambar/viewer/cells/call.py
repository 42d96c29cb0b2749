"""The Python code that makes the same picture."""

from __future__ import annotations

from ambar.snapshot.regions import AXES
from ambar.viewer.cells.plane import Plane
from ambar.viewer.cells.tiles import Image
from ambar.viewer.cells.view import View

_NORMS = {
    "linear": "Normalize({low:.6g}, {high:.6g})",
    "log": "LogNorm({low:.6g}, {high:.6g})",
    "symlog": "AsinhNorm({linear:.6g}, {low:.6g}, {high:.6g})",
}
"""Scales of colours in matplotlib."""
_MAPS = {"red-blue": "RdBu_r", "purple-green": "PRGn", "greys": "Greys"}


def python_call(
    opened: str, image: Image, view: View, scale: str, limits: tuple[float, float], colors: str
) -> str:
    """Return the code that reads the window of a view and draws it with matplotlib.

    Parameters
    ----------
    opened
        The expression of the snapshot, such as ``ambar.open("run.ambar")``.
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
        f"amr = {opened}.amr\n"
        f"image = amr.{image.plane.method}(\n"
        f"    {image.plane.field!r},\n"
        + "".join(f"    {option},\n" for option in options)
        + f")\nimage.plot(norm={norm}, cmap={_MAPS.get(colors, colors)!r})\n"
    )


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

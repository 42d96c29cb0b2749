"""What is drawn over a map on demand: borders of levels, cells or boxes, particles and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource

from ambar import _core
from ambar.snapshot.regions import Box
from ambar.viewer.background import Background
from ambar.viewer.message import Message
from ambar.viewer.pages.cells.plane import Plane
from ambar.viewer.pages.cells.tiles import Image, TileReader
from ambar.viewer.pages.cells.view import View

if TYPE_CHECKING:
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.snapshot import Snapshot

_MAX_LINES = 20_000
"""Segments of lines that a browser draws quickly."""
_MAX_POINTS = 20_000
_MAX_ROWS = 4_000_000
"""Particles that are read for a window; of more, none are drawn until the window is smaller."""
_SLAB = 0.02
"""The part of the box, around a slice, whose particles are drawn."""
_BORDERS, _CELLS, _BOXES = "Borders of levels", "Cells", "Boxes"
_PARTICLES, _SINKS = "Particles", "Sinks"
_LINES = {_BORDERS: ("#35c9ff", 1.5), _CELLS: ("#d7dde4", 0.6), _BOXES: ("#ffffff", 1.2)}
"""The colour and the width of lines."""
_NO_SIDES = np.iinfo(np.int64).max
"""The side of a cell, in pixels, whose sides are not drawn."""
_POINTS = {_PARTICLES: ("#9be28b", 2), _SINKS: ("#ffb74d", 10)}
"""The colour and the size of points."""


@dataclass(frozen=True)
class Lines:
    """Segments of lines, code length."""

    x0: np.ndarray
    y0: np.ndarray
    x1: np.ndarray
    y1: np.ndarray


class Overlays:
    """Check boxes, and what they draw over a figure.

    Parameters
    ----------
    plot
        The figure of Bokeh.
    snapshot
        The snapshot whose components are offered.
    changed
        Called after a box was checked.
    """

    def __init__(self, plot: Any, snapshot: Snapshot, changed: Any) -> None:
        components = snapshot.components
        names = [_BORDERS, _CELLS]
        names += [_BOXES] if snapshot.amr.layout == "patches" else []
        names += [_PARTICLES] if "particles" in components or snapshot.species else []
        names += [_SINKS] if "sinks" in components else []
        self.boxes = pn.widgets.CheckBoxGroup(label="Draw over it", options=names)
        self.boxes.param.watch(lambda _: changed(), "value")
        self._reader = TileReader()
        self.message = Message()
        self._background = Background(self._show, self.message.fail, self.message.wait)
        self._sources = {name: _draw_with(plot, name) for name in names}
        self._length = 1.0

    def refresh(self, snapshot: Snapshot, image: Image, view: View, length: float) -> None:
        """Draw what is checked for a window, which the image shows; `length` scales code length."""
        self._length = length
        chosen = set(self.boxes.value)
        self.clear(set(self._sources) - chosen)
        if chosen:
            self._background.submit(lambda: self._draw(chosen, snapshot, image, view))

    def clear(self, names: Iterable[str] | None = None) -> None:
        """Remove what is drawn, or a part of it; end what is being read."""
        self._background.stop()
        self.message.clear()
        for name in self._sources if names is None else names:
            source = self._sources[name]
            if any(map(len, source.data.values())):
                source.data = {column: [] for column in source.data}

    def _draw(
        self, chosen: set[str], snapshot: Snapshot, image: Image, view: View
    ) -> Iterator[dict[str, dict[str, np.ndarray]]]:
        """Yield the columns of the sources, ever more of them."""
        found: dict[str, dict[str, np.ndarray]] = {}
        plane = image.plane
        if chosen & {_BORDERS, _CELLS} and plane.method != "project":
            levels = self._levels(image)
            if _BORDERS in chosen:
                found[_BORDERS] = vars(borders(image, levels))
            if _CELLS in chosen:
                found[_CELLS] = vars(cell_sides(image, levels))
        if _BOXES in chosen:
            found[_BOXES] = vars(box_sides(plane, view))
        yield found
        if _PARTICLES in chosen:
            sets = list(snapshot.species.values()) or [snapshot.particles]
            points = [positions(rows, plane, view) for rows in sets]
            x, y = (np.concatenate(parts) for parts in zip(*points, strict=True))
            found[_PARTICLES] = {"x": x, "y": y}
            yield found
        if _SINKS in chosen:
            x, y = positions(snapshot.sinks, plane, view, slab=1.0)
            found[_SINKS] = {"x": x, "y": y}
        yield found

    def _levels(self, image: Image) -> np.ndarray:
        """Return the level of the cell in each pixel."""
        plane = Plane(
            image.plane.amr, "level", image.plane.method, image.plane.axis, image.plane.at
        )
        [*_, levels] = self._reader.images(plane, image.resolution, image.pixels)
        return np.asarray(np.rint(levels.values))

    def _show(self, found: dict[str, dict[str, np.ndarray]]) -> None:
        for name, columns in found.items():
            self._sources[name].data = {
                column: values * self._length for column, values in columns.items()
            }


def _draw_with(plot: Any, name: str) -> ColumnDataSource:
    """Add what draws the lines or points of a name to a figure; return their empty source."""
    if name in _LINES:
        color, width = _LINES[name]
        source = ColumnDataSource({"x0": [], "y0": [], "x1": [], "y1": []})
        plot.segment("x0", "y0", "x1", "y1", source=source, line_color=color, line_width=width)
        return source
    color, size = _POINTS[name]
    source = ColumnDataSource({"x": [], "y": []})
    fill = None if name == _SINKS else color
    plot.scatter("x", "y", source=source, size=size, fill_color=fill, line_color=color)
    return source


def borders(image: Image, levels: np.ndarray) -> Lines:
    """Return the lines between pixels of different levels; pixels without a level have none."""
    is_known = np.isfinite(levels)
    is_right = (levels[:, 1:] != levels[:, :-1]) & is_known[:, 1:] & is_known[:, :-1]
    is_top = (levels[1:] != levels[:-1]) & is_known[1:] & is_known[:-1]
    return _lines(image, is_right, is_top)


def cell_sides(image: Image, levels: np.ndarray) -> Lines:
    """Return the lines between cells; none if there are too many, or if pixels are larger."""
    known = np.unique(levels[np.isfinite(levels)]).astype(int)
    pixels = np.full(levels.shape, _NO_SIDES)
    for level in known:
        side = image.plane.amr.cell_size(int(level))[image.plane.axes[0]]
        ratio = side / image.resolution.pixel[0]
        if ratio > 1 - 1e-6:
            pixels[levels == level] = round(ratio)
    columns = np.arange(image.pixels.left + 1, image.pixels.right)
    rows = np.arange(image.pixels.bottom + 1, image.pixels.top)[:, np.newaxis]
    is_right = (columns % pixels[:, 1:] == 0) | (columns % pixels[:, :-1] == 0)
    is_top = (rows % pixels[1:] == 0) | (rows % pixels[:-1] == 0)
    return _lines(image, is_right, is_top)


def box_sides(plane: Plane, view: View) -> Lines:
    """Return the sides of the boxes of patches in a window that a slice cuts, or of all."""
    amr = plane.amr
    found = []
    for level in range(amr.levels[0], amr.levels[1] + 1):
        corners = np.array(amr.lower) + amr.boxes(level) * np.array(amr.cell_size(level))
        first, second = plane.axes
        low, high = corners[:, 0], corners[:, 1]
        is_shown = (low[:, first] < view.right) & (high[:, first] > view.left)
        is_shown &= (low[:, second] < view.top) & (high[:, second] > view.bottom)
        if plane.method == "slice":
            is_shown &= (low[:, plane.axis] <= plane.at) & (high[:, plane.axis] > plane.at)
        found.append(corners[is_shown][:, :, [first, second]])
    boxes = np.concatenate(found)[: _MAX_LINES // 4]
    (left, bottom), (right, top) = boxes[:, 0].T, boxes[:, 1].T
    return Lines(
        np.concatenate([left, left, left, right]),
        np.concatenate([bottom, top, bottom, bottom]),
        np.concatenate([right, right, left, right]),
        np.concatenate([bottom, top, top, top]),
    )


def _lines(image: Image, is_right: np.ndarray, is_top: np.ndarray) -> Lines:
    """Return lines at the right and at the top of pixels, those in a row as one."""
    column, start, end = _runs(is_right.T)
    row, first, last = _runs(is_top)
    if len(column) + len(row) > _MAX_LINES:
        column = start = end = row = first = last = np.empty(0)
    (left, bottom), (width, height) = image.corner, image.resolution.pixel
    x, y = left + (column + 1) * width, bottom + (row + 1) * height
    return Lines(
        np.concatenate([x, left + first * width]),
        np.concatenate([bottom + start * height, y]),
        np.concatenate([x, left + last * width]),
        np.concatenate([bottom + end * height, y]),
    )


def _runs(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row of each run of True in the rows of a mask, its start and its end."""
    steps = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    rows, starts = np.nonzero(steps == 1)
    return rows, starts, np.nonzero(steps == -1)[1]


def positions(
    rows: Particles, plane: Plane, view: View, slab: float = _SLAB
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions of particles in a window, and near a slice: at most `_MAX_POINTS`.

    Raises ValueError if the window has too many.
    """
    amr = plane.amr
    low: list[float | None] = [None] * amr.ndim
    high: list[float | None] = [None] * amr.ndim
    first, second = plane.axes
    low[first], high[first] = view.left, view.right
    low[second], high[second] = view.bottom, view.top
    part = (view.right - view.left) * (view.top - view.bottom)
    part /= np.prod(np.subtract(plane.upper, plane.lower))
    if plane.method == "slice" and slab < 1:
        depth = slab * (amr._core.upper[plane.axis] - amr.lower[plane.axis]) / 2
        low[plane.axis], high[plane.axis] = plane.at - depth, plane.at + depth
        part *= slab
    if len(rows) * min(part, 1.0) > _MAX_ROWS:
        raise _core.InvalidError(
            f"expected at most {_MAX_ROWS:,} particles in the window, found about "
            f"{len(rows) * part:,.0f}; zoom in to draw them"
        )
    region = _inside(Box(low, high, "code"), plane)
    names = ["xyz"[axis] for axis in plane.axes]
    table = rows.read(names, region=region)
    step = max(-(-len(table) // _MAX_POINTS), 1)
    return table[names[0]][::step], table[names[1]][::step]


def _inside(region: Box, plane: Plane) -> Box:
    """Return a box without the parts outside of the domain, which periodic boxes continue."""
    amr = plane.amr
    upper = amr._core.upper
    low = [None if a is None else max(a, b) for a, b in zip(region.lo, amr.lower, strict=False)]
    high = [None if a is None else min(a, b) for a, b in zip(region.hi, upper, strict=False)]
    ends = zip(low, high, strict=True)
    if any(a is not None and b is not None and a >= b for a, b in ends):
        return Box([0.0] * amr.ndim, [0.0] * amr.ndim, "code")
    return Box(low, high, "code")

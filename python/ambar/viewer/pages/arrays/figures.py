"""Figures of plain arrays: an image of two dimensions, and a line along one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bokeh.core.property.descriptors import UnsetValueError
from bokeh.events import RangesUpdate, Tap
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    CustomJSHover,
    CustomJSTickFormatter,
    DataRange1d,
    HoverTool,
    Range1d,
)
from bokeh.plotting import figure

from ambar.store.array import Array
from ambar.viewer.background import Background
from ambar.viewer.colors import Colors
from ambar.viewer.layout import style
from ambar.viewer.message import Message
from ambar.viewer.pages.arrays.axes import Axis
from ambar.viewer.pages.arrays.windows import Difference, LineWindow, read_image, read_line
from ambar.viewer.sampling import as_float32

_MARGIN = 0.15
"""What is read around the view, as a fraction of it: small pans show values immediately."""
_MAX_TICKS = 20_000
"""Labels of positions that the browser gets."""
_PIXELS = (1000, 600)
"""The size of a figure before the browser reports it."""


@dataclass(frozen=True)
class ImageWindow:
    """The values of a window of an array, and the indices from which they come."""

    values: np.ndarray
    columns: slice
    rows: slice
    errors: tuple[Exception, ...] = ()


def visible_values(values: np.ndarray) -> np.ndarray:
    """Return the values whose limits are those of the colours: all."""
    return values


def drawn_index(window: slice, index: int) -> int:
    """Return the index whose value is drawn at an index: the first one of its step.

    Examples
    --------
    >>> drawn_index(slice(8, 40, 4), 14)
    12
    """
    is_within = window.start <= index < window.stop
    return index - (index - window.start) % window.step if is_within else index


class ImageFigure:
    """The image of two dimensions of an array; it reads what is visible.

    Parameters
    ----------
    array : Array
        The array.
    axes : sequence of Axis
        Its axes.
    rows, columns : int
        The dimensions along the y and the x axis.
    indices : sequence of int
        The indices of the other dimensions; ignored for `rows` and `columns`.
    colors : Colors
        The colours; `recolor` is called when they change.
    message : Message
        Where errors are shown.
    tapped : callable
        Called with the indices of the value that was clicked.
    beside : ImageFigure, optional
        A figure of an array of equal shape, with which this one moves.
    fitted : callable
        Returns the values to which limits of the colours are fitted; None for limits that another
        figure sets.
    bar : {"right", "below"}
        The side of the colour bar.
    """

    def __init__(
        self,
        array: Array | Difference,
        axes: Sequence[Axis],
        rows: int,
        columns: int,
        indices: Sequence[int],
        colors: Colors,
        message: Message,
        tapped: Callable[[list[int]], None],
        beside: ImageFigure | None = None,
        fitted: Callable[[np.ndarray], np.ndarray | None] = visible_values,
        bar: Literal["right", "below"] = "right",
    ) -> None:
        self._array = array
        self._rows, self._columns = rows, columns
        self._y, self._x = axes[rows].even(), axes[columns].even()
        self._indices = list(indices)
        self._colors, self._message, self._tapped = colors, message, tapped
        self._fitted, self._beside = fitted, beside
        self.followers: list[ImageFigure] = []
        """Figures that have the colours of this one."""
        self._background = Background(self._show, self._fail, message.wait)
        self._key: list[Any] = []
        self._is_equal = False
        self.is_reading = False
        """Whether the values of the view are not shown yet."""
        self._window: ImageWindow | None = None
        self._source = ColumnDataSource({"image": [], "value": []})
        # The browser gets the first index and the step of the columns and rows of the image.
        self._steps = ColumnDataSource({"x": [0, 1], "y": [0, 1]})
        tools = "pan,wheel_zoom,box_zoom,reset,save"
        self.figure: Any = _figure(self._x, self._y, tools=tools, beside=beside and beside.figure)
        self._image = self.figure.image(
            "image", source=self._source, x=0, y=0, dw=1, dh=1, color_mapper=colors.mapper
        )
        self.figure.add_layout(colors.new_bar(is_horizontal=bar == "below"), bar)
        self._hover = HoverTool(
            tooltips=[
                (self._x.name, "$x{custom}"),
                (self._y.name, "$y{custom}"),
                ("value", "@value{custom}"),
            ],
            formatters={
                "$x": _hover(self._x, "x", self._steps),
                "$y": _hover(self._y, "y", self._steps),
                "@image": _number(),
                "@value": _number(),
            },
            point_policy="follow_mouse",
        )
        self.figure.add_tools(self._hover)
        _on_view(self.figure, self.refresh, self._resize)
        self.figure.on_event(Tap, self._tap)

    def select(self, indices: Sequence[int]) -> None:
        """Show other indices of the dimensions that are not axes."""
        self._indices = list(indices)
        self.refresh()

    def scale(self, *, is_equal: bool) -> None:
        """Show everything, with equal or different scales of the axes."""
        if self._beside is not None:  # which has the same ranges
            self.refresh()
            return
        self._is_equal = is_equal
        spans = [axis.ends for axis in (self._x, self._y)]
        unit = max(
            (high - low) / size for (low, high), size in zip(spans, _size(self.figure), strict=True)
        )
        for (low, high), view, size in zip(
            spans, (self.figure.x_range, self.figure.y_range), _size(self.figure), strict=True
        ):
            margin = (unit * size - (high - low)) / 2 if is_equal else 0
            view.update(start=low - margin, end=high + margin)
        self.refresh()

    def _resize(self) -> None:
        """Keep equal scales; labels of another width change the size, too."""
        if self._is_equal:
            (width, height), x, y = _size(self.figure), self.figure.x_range, self.figure.y_range
            half, middle = (x.end - x.start) / width * height / 2, (y.start + y.end) / 2
            y.update(start=middle - half, end=middle + half)
        self.refresh()

    def refresh(self) -> None:
        """Read what is visible, unless it is shown already."""
        width, height = _size(self.figure)
        key: list[Any] = list(self._indices)
        key[self._rows] = _window(self._y, self.figure.y_range, height)
        key[self._columns] = _window(self._x, self.figure.x_range, width)
        if key != self._key:
            self._key, self.is_reading = key, True
            self._background.submit(lambda: self._read(key))

    def recolor(self) -> None:
        """Show the values with other limits or another scale."""
        if self._window is not None:
            self._color(self._window)

    def stop(self) -> None:
        """Stop reading, before another figure takes the place of this one."""
        self._background.stop()

    def _read(self, key: list[Any]) -> Iterator[ImageWindow]:
        columns, rows = key[self._columns], key[self._rows]
        for window in read_image(self._array, key, self._rows):
            yield ImageWindow(window.values, columns, rows, window.errors)

    def _show(self, window: ImageWindow) -> None:
        self._window, self.is_reading = window, False
        self._color(window)

    def _fail(self, error: Exception) -> None:
        self.is_reading = False
        self._message.fail(error)

    def _color(self, window: ImageWindow) -> None:
        values = window.values
        fitted = self._fitted(values)
        try:
            if fitted is not None:
                self._colors.fit(fitted)
        except ValueError as error:
            self._message.fail(error)
            return
        shown = self._colors.scaled(values)
        self._message.clear()
        if window.errors:
            self._message.fail(window.errors[0])
        flip = np.s_[:: -1 if self._y.step < 0 else 1, :: -1 if self._x.step < 0 else 1]
        is_linear = shown is values
        # A linear image is its own column of values.
        columns = {"image": [as_float32(shown[flip])]}
        if not is_linear:
            columns["value"] = [as_float32(values[flip])]
        self._hover.tooltips[2] = ("value", "@image{custom}" if is_linear else "@value{custom}")
        (x, width), (y, height) = self._x.span(window.columns), self._y.span(window.rows)
        self._image.glyph.update(x=x, y=y, dw=width, dh=height)
        self._steps.data = {
            "x": [window.columns.start, window.columns.step],
            "y": [window.rows.start, window.rows.step],
        }
        self._source.data = columns
        for follower in self.followers:
            follower.recolor()

    def _tap(self, event: Any) -> None:
        if self._window is None:
            return
        indices = list(self._indices)
        indices[self._rows] = drawn_index(self._window.rows, self._y.index(event.y))
        indices[self._columns] = drawn_index(self._window.columns, self._x.index(event.x))
        self._tapped(indices)


class LineFigure:
    """The values along a dimension of an array; of each pixel the smallest and the largest.

    Parameters
    ----------
    array : Array
        The array.
    title : str
        The label of the values.
    axis : Axis
        The axis of the dimension.
    dimension : int
        The dimension.
    indices : sequence of int
        The indices of the other dimensions; ignored for `dimension`.
    message : Message
        Where errors are shown.
    height : int, optional
        The height in pixels; by default that of the page.
    beside : LineFigure, optional
        A figure with which this one moves.
    """

    def __init__(
        self,
        array: Array | Difference,
        title: str,
        axis: Axis,
        dimension: int,
        indices: Sequence[int],
        message: Message,
        height: int | None = None,
        beside: LineFigure | None = None,
    ) -> None:
        self._array, self._axis, self._message = array, axis, message
        self._dimension, self._indices = dimension, list(indices)
        self._background = Background(self._show, message.fail, message.wait)
        self._key: list[Any] = []
        self._source = ColumnDataSource({"position": [], "value": [], "label": []})
        tools = "xpan,xwheel_zoom,box_zoom,reset,save"
        self.figure: Any = _figure(axis, None, tools=tools, beside=beside and beside.figure)
        self.figure.yaxis.axis_label = title
        if height is not None:
            self.figure.update(sizing_mode="stretch_width", height=height)
        line = self.figure.line("position", "value", source=self._source, line_width=1.5)
        self.figure.add_tools(
            HoverTool(
                tooltips=[(axis.name, "@label"), ("value", "@value{custom}")],
                formatters={"@value": _number()},
                renderers=[line],
                mode="vline",
            )
        )
        _on_view(self.figure, self.refresh, self.refresh)

    def refresh(self) -> None:
        """Read what is visible, unless it is shown already."""
        key: list[Any] = list(self._indices)
        window = _window(self._axis, self.figure.x_range, 1)
        key[self._dimension] = slice(window.start, window.stop)
        if key != self._key:
            self._key = key
            bins = _size(self.figure)[0]
            self._background.submit(lambda: read_line(self._array, key, bins))

    def stop(self) -> None:
        """Stop reading, before another figure takes the place of this one."""
        self._background.stop()

    def _show(self, line: LineWindow) -> None:
        self._message.clear()
        if line.errors:
            self._message.fail(line.errors[0])
        self._source.data = {
            "position": self._axis.at(line.indices),
            "value": line.values,
            "label": [self._axis.label(index) for index in line.indices.tolist()],
        }


def _figure(x: Axis, y: Axis | None, *, tools: str, beside: Any = None) -> Any:
    """Return an empty figure with the axes of an array; without `y` it follows the values.

    It moves with the figure `beside`.
    """
    if y is None:
        y_range: Any = DataRange1d()
    else:
        y_range = Range1d(*y.ends) if beside is None else beside.y_range
    made = figure(
        x_range=Range1d(*x.ends) if beside is None else beside.x_range,
        y_range=y_range,
        x_axis_type="datetime" if x.is_time else "auto",
        y_axis_type="datetime" if y is not None and y.is_time else "auto",
        tools=tools,
        active_scroll="xwheel_zoom" if y is None else "wheel_zoom",
        toolbar_location="above" if beside is None else None,
        sizing_mode="stretch_both",
    )
    for axis, drawn in ((x, made.xaxis), (y, made.yaxis)):
        if axis is not None:
            drawn.axis_label = axis.title
            _label(drawn, axis)
    return style(made)


def _label(drawn: Any, axis: Axis) -> None:
    """Set the tick labels of an axis whose positions are indices."""
    if _has_labels(axis):
        labels = [axis.label(index) for index in range(axis.size)]
        drawn.ticker = BasicTicker(min_interval=1)
        drawn.formatter = CustomJSTickFormatter(
            args={"labels": labels}, code="return labels[Math.round(tick)] ?? ''"
        )


def _has_labels(axis: Axis) -> bool:
    """Whether positions are indices, and coordinates are their labels."""
    is_index = (axis.start, axis.step, axis.uneven) == (0.0, 1.0, None)
    return is_index and axis.labels is not None and axis.size <= _MAX_TICKS


def _hover(axis: Axis, name: str, steps: ColumnDataSource) -> CustomJSHover:
    """Return the formatter of the position under the pointer: the coordinate of the value there.

    The column `name` of `steps` has the first index of the image along the axis, and the step.
    """
    code = (
        f"const [first, every] = steps.data.{name}; "
        "const j = Math.min(Math.max(Math.round((value - start) / step), 0), size - 1); "
        "const i = j < first ? j : j - (j - first) % every; "
    )
    args: dict[str, Any] = {"start": axis.start, "step": axis.step, "size": axis.size}
    args["steps"] = steps
    if axis.is_time:
        code += "return new Date(start + i * step).toISOString().replace('T', ' ').slice(0, 19)"
    elif _has_labels(axis):
        args["labels"] = [axis.label(index) for index in range(axis.size)]
        code += "return labels[i]"
    else:
        code += "return String(Number((start + i * step).toPrecision(7)))"
    return CustomJSHover(args=args, code=code)


def _number() -> CustomJSHover:
    """Return the formatter of a value under the pointer."""
    code = "return Number.isNaN(value) ? 'none' : String(Number(value.toPrecision(7)))"
    return CustomJSHover(code=code)


def _on_view(made: Any, refresh: Callable[[], None], resize: Callable[[], None]) -> None:
    """Call functions after pans and zooms, and after changes of the size."""
    made.on_event(RangesUpdate, lambda _: refresh())
    for size in ("inner_width", "inner_height"):
        made.on_change(size, lambda attr, old, new: resize())  # noqa: ARG005 - Bokeh's names


def _size(made: Any) -> tuple[int, int]:
    """Return the width and the height of the frame of a figure in pixels."""
    try:
        return made.inner_width, made.inner_height
    except UnsetValueError:
        return _PIXELS


def _window(axis: Axis, view: Any, pixels: int) -> slice:
    """Return the indices to read for the range of a figure, with a margin."""
    low, high = sorted((view.start, view.end))
    margin = (high - low) * _MARGIN
    return axis.window(low - margin, high + margin, round(pixels * (1 + 2 * _MARGIN)))

"""The page of plain arrays: any variable of any store as an image or a line."""

from __future__ import annotations

import contextlib
import html
import math
from collections.abc import Sequence
from typing import Any

import panel as pn

from ambar import _core
from ambar._util import text
from ambar.kinds.request import ViewRequest
from ambar.store.array import Array
from ambar.store.store import Group
from ambar.viewer.colors import Colors
from ambar.viewer.layout import frame, set_title
from ambar.viewer.message import Message
from ambar.viewer.pages.arrays.axes import Axis, axes_of, decode, text_of, title_of
from ambar.viewer.pages.arrays.figures import ImageFigure, LineFigure

_FRAME = 250
"""Milliseconds between two images while the first slider moves."""
_MOST_LISTED = 500
"""Variables in the list, and values of an array that cannot be drawn."""


class ArraysPage:
    """The list of variables of a store or group, and the picture of the selected one."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._message = Message()
        self._find = pn.widgets.TextInput(
            placeholder="Find a variable", sizing_mode="stretch_width", visible=len(group) > 10
        )
        self._variable = pn.widgets.Select(
            label=f"Variable ({len(group):,})", size=8, sizing_mode="stretch_width"
        )
        self._controls = pn.Column(margin=0, sizing_mode="stretch_width")
        self._about = pn.pane.HTML(sizing_mode="stretch_width")
        self._picture = pn.Column(sizing_mode="stretch_both", margin=0)
        about = pn.Card(self._about, title="About the variable", collapsed=True, margin=10)
        self.controls = [self._find, self._variable, self._controls, about]
        self.main = pn.Column(self._message.pane, self._picture, sizing_mode="stretch_both")
        self._find.param.watch(self._list, "value_input")
        self._variable.param.watch(self._show, "value")
        self._shown: Any = None
        self._list()

    def _list(self, _: object = None) -> None:
        """List the variables whose path contains the text."""
        wanted = (self._find.value_input or "").lower()
        paths = [path for path in self._group if wanted in path.lower()][:_MOST_LISTED]
        shown = self._variable.value
        self._variable.param.update(
            options=paths, value=shown if shown in paths else _first(self._group, paths)
        )

    def _show(self, _: object) -> None:
        """Show the selected variable."""
        self._message.clear()
        self._controls[:] = []
        self._picture[:] = []
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
        if self._variable.value is None:
            return
        try:
            array = self._group[self._variable.value]
            self._about.object = array._repr_html_()
            self._shown = picture_of(self._group, array, self._message)
        except (_core.AmbarError, OSError) as error:
            self._message.fail(error)
            return
        self._controls[:] = [self._shown.controls]
        self._picture[:] = [self._shown.main]


def _first(group: Group, paths: list[str]) -> str | None:
    """Return the first variable with most dimensions, at most three: usually a field."""
    dimensions = {}
    for path in paths:
        with contextlib.suppress(_core.AmbarError):
            dimensions[path] = min(group[path].ndim, 3)
    return max(dimensions, key=dimensions.__getitem__, default=None)


def picture_of(group: Group, array: Array, message: Message) -> Any:
    """Return the picture of an array: an object with `controls`, `main` and `stop`."""
    axes = axes_of(group, array)
    if array.dtype.kind not in "biufcmM" or not axes or 0 in array.shape:
        return Listing(array)
    name = array.path.rpartition("/")[2]
    if len(axes) == 1:
        return LinePicture(array, title_of(name, array), axes[0], message)
    return ImagePicture(array, title_of(name, array), axes, message)


class Listing:
    """The first values of an array that cannot be drawn, as text."""

    def __init__(self, array: Array) -> None:
        self.controls = pn.Spacer(height=0)
        values = array.read(first_values(array.shape, _MOST_LISTED))
        listed = decode(array, values).reshape(-1)[:_MOST_LISTED]
        lines = [html.escape(text_of(value)) for value in listed]
        more = math.prod(array.shape) - len(lines)
        self.main = pn.pane.HTML(
            "<br>".join(lines) + (f"<br>... and {more:,} more" if more else ""),
            sizing_mode="stretch_both",
            styles={"overflow": "auto", "font-family": "monospace"},
        )

    def stop(self) -> None:
        """Do nothing: the values have been read."""


def first_values(shape: Sequence[int], most: int) -> tuple[slice, ...]:
    """Return slices that contain the first values of an array, and few others.

    Examples
    --------
    >>> first_values((500, 2000), 500), first_values((4, 3), 5)
    ((slice(0, 1, None), slice(0, 500, None)), (slice(0, 2, None), slice(0, 3, None)))
    """
    slices: list[slice] = []
    for size in reversed(shape):
        length = min(size, max(-(-most // max(math.prod(s.stop for s in slices), 1)), 1))
        slices.insert(0, slice(0, length))
    return tuple(slices)


class LinePicture:
    """A one-dimensional array as a line."""

    def __init__(self, array: Array, title: str, axis: Axis, message: Message) -> None:
        self.controls = pn.Spacer(height=0)
        self.line = LineFigure(array, title, axis, 0, [0], message)
        self.main = pn.pane.Bokeh(self.line.figure)
        self.line.refresh()

    def stop(self) -> None:
        """Stop reading."""
        self.line.stop()


class ImagePicture:
    """Two dimensions of an array as an image, with a slider for each other one.

    A click on the image draws the values through this place along another dimension.
    """

    def __init__(self, array: Array, title: str, axes: list[Axis], message: Message) -> None:
        self._array, self._title, self._axes, self._message = array, title, axes, message
        self.colors = Colors(lambda: self.image.recolor())  # noqa: PLW0108 - the image changes
        names = {axis.name: number for number, axis in enumerate(axes)}
        if len(names) < len(axes):
            names = {f"{number}: {axis.name}": number for number, axis in enumerate(axes)}
        last = len(axes) - 1
        half = {"options": names, "sizing_mode": "stretch_width"}
        self.columns = pn.widgets.Select(label="Horizontal", value=last, **half)
        self.rows = pn.widgets.Select(label="Vertical", value=last - 1, **half)
        self.swap = pn.widgets.Button(label="Transpose", sizing_mode="stretch_width")
        self.equal = pn.widgets.Checkbox(label="Equal scales of both axes")
        self.play = pn.widgets.Toggle(label="Play", sizing_mode="stretch_width")
        self._timer: Any = None
        self.along = pn.widgets.Select(
            label="Line through a click along", options=names, value=0, sizing_mode="stretch_width"
        )
        self.sliders = [self._slider(number) for number in range(len(axes))]
        self._sliding = pn.Column(margin=0, sizing_mode="stretch_width")
        self._line = pn.Column(sizing_mode="stretch_width", margin=0)
        self._image = pn.Column(sizing_mode="stretch_both", margin=0)
        self.controls = pn.Column(
            self._sliding,
            self.play,
            pn.Row(self.columns, self.rows, margin=0),
            self.swap,
            self.equal,
            self.colors.controls,
            self.along,
            margin=0,
            sizing_mode="stretch_width",
        )
        self.main = pn.Column(self._image, self._line, sizing_mode="stretch_both", margin=0)
        self.image: ImageFigure
        self.line: LineFigure | None = None
        self.columns.param.watch(lambda event: self._choose(self.rows, event), "value")
        self.rows.param.watch(lambda event: self._choose(self.columns, event), "value")
        self.swap.on_click(lambda _: setattr(self.columns, "value", self.rows.value))
        self.equal.param.watch(lambda event: self.image.scale(is_equal=event.new), "value")
        self.play.param.watch(self._play, "value")
        self._draw()

    def stop(self) -> None:
        """Stop reading."""
        self.play.value = False
        self.image.stop()
        if self.line is not None:
            self.line.stop()

    def _play(self, event: Any) -> None:
        """Move the first slider until the button is released."""
        if event.new:
            self._timer = pn.state.add_periodic_callback(self._advance, _FRAME)
        else:
            self._timer.stop()

    @property
    def _moving(self) -> list[Any]:
        """The sliders of dimensions that are not axes."""
        return [slider for slider in self._sliding if isinstance(slider, pn.widgets.IntSlider)]

    def _advance(self) -> None:
        """Move the first slider to the next index; after the last one, to the first."""
        slider = self._moving[0]
        if not self.image.is_reading:
            slider.value = (slider.value + 1) % (slider.end + 1)

    def _slider(self, number: int) -> Any:
        axis = self._axes[number]
        if axis.size == 1:
            title, label = html.escape(axis.title), html.escape(axis.label(0))
            return pn.widgets.StaticText(label=title, value=label)  # both are HTML
        slider = pn.widgets.IntSlider(start=0, end=axis.size - 1, sizing_mode="stretch_width")

        def moved(_: object = None) -> None:
            slider.label = f"{axis.title} = {axis.label(slider.value)}, index"

        slider.param.watch(moved, "value")
        slider.param.watch(lambda _: self.image.select(self._indices), "value")
        moved()
        return slider

    @property
    def _indices(self) -> list[int]:
        return [
            getattr(slider, "value", 0) if axis.size > 1 else 0
            for slider, axis in zip(self.sliders, self._axes, strict=True)
        ]

    def _choose(self, other: Any, event: Any) -> None:
        """Draw along another dimension; if it is that of the other axis, they change places."""
        if event.new == other.value:
            other.value = event.old
        else:
            self._draw()

    def _draw(self) -> None:
        """Draw the image along the chosen dimensions."""
        if self._image.objects:
            self.stop()
        rows, columns = self.rows.value, self.columns.value
        self._sliding[:] = [s for n, s in enumerate(self.sliders) if n not in (rows, columns)]
        self.play.visible = bool(self._moving)
        self.image = ImageFigure(
            self._array,
            self._axes,
            rows,
            columns,
            self._indices,
            self.colors,
            self._message,
            self._draw_line,
        )
        set_title(self.image.figure, self._title)
        self._image[:] = [pn.pane.Bokeh(self.image.figure)]
        self._line[:] = []
        self.image.scale(is_equal=self.equal.value)

    def _draw_line(self, indices: list[int]) -> None:
        """Draw the line through the place of a click."""
        number, axis = self.along.value, self._axes[self.along.value]
        if self.line is not None:
            self.line.stop()
        self.line = LineFigure(
            self._array, self._title, axis, number, indices, self._message, height=250
        )
        places = [
            f"{other.name} {other.label(index)}"
            for other, index in zip(self._axes, indices, strict=True)
            if other is not axis
        ]
        set_title(self.line.figure, "at " + ", ".join(places))
        self._line[:] = [pn.pane.Bokeh(self.line.figure)]
        self.line.refresh()


def page(opened: Group, request: ViewRequest) -> Any:
    """Return the page of a store of plain arrays, or of a group of it."""
    request.refuse_comparison()
    shown = ArraysPage(opened)
    facts = f"{text.plural(len(opened), 'array')} in {request.location}"
    return frame(request.title, facts, shown.controls, shown.main)

"""The page of plain arrays: any variable of any store as an image or a line."""

from __future__ import annotations

import contextlib
import html
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import panel as pn

from ambar import _core
from ambar._util import text
from ambar.figures.labels import version_names
from ambar.kinds.request import ViewRequest
from ambar.store.array import Array
from ambar.store.store import Group
from ambar.viewer.background import Background
from ambar.viewer.colors import Colors
from ambar.viewer.layout import frame, set_title
from ambar.viewer.message import Message
from ambar.viewer.pages.arrays.axes import Axis, axes_of, decode, text_of, title_of
from ambar.viewer.pages.arrays.figures import ImageFigure, LineFigure, visible_values
from ambar.viewer.pages.arrays.windows import Difference

_FRAME = 250
"""Milliseconds between two images while the first slider moves."""
_MAX_LISTED = 500
"""Variables in the list, and values of an array that cannot be drawn."""


@dataclass(frozen=True)
class Comparison:
    """Another version of an array, and the names of both."""

    other: Array
    names: Sequence[str]


class ArraysPage:
    """The list of variables of a store or group, and the picture of the selected one.

    Parameters
    ----------
    group : Group
        The store or group.
    names : sequence of str
        Its name, for titles, and that of the other one.
    other : Group, optional
        Another store or group, with which it is compared.
    """

    def __init__(self, group: Group, names: Sequence[str], other: Group | None = None) -> None:
        self._group, self._names, self._other = group, names, other
        self._paths = [path for path in group if other is None or path in other]
        if not self._paths and other is not None:
            raise _core.InvalidError(
                f"{names[1]}: expected arrays with the names of those in {names[0]}, found none; "
                "compare versions of the same data"
            )
        self._message = Message()
        self._background = Background(self._draw, self._message.fail, self._message.wait)
        self._find = pn.widgets.TextInput(
            placeholder="Find a variable",
            sizing_mode="stretch_width",
            visible=len(self._paths) > 10,
        )
        self._variable = pn.widgets.Select(
            label=f"Variable ({len(self._paths):,})", size=8, sizing_mode="stretch_width"
        )
        self._controls = pn.Column(margin=0, sizing_mode="stretch_width")
        self._about = pn.pane.HTML(sizing_mode="stretch_width")
        self._picture = pn.Column(sizing_mode="stretch_both", margin=0)
        about = pn.Card(self._about, title="About the variable", collapsed=True, margin=10)
        self.controls = [self._find, self._variable, self._controls, about]
        self.main = pn.Column(self._message.pane, self._picture, sizing_mode="stretch_both")
        self._find.param.watch(self._list, "value_input")
        self._variable.param.watch(self._choose, "value")
        self._shown: Any = None
        self._list()

    def _list(self, _: object = None) -> None:
        """List the variables whose path contains the text."""
        wanted = (self._find.value_input or "").lower()
        paths = [path for path in self._paths if wanted in path.lower()][:_MAX_LISTED]
        shown = self._variable.value
        self._variable.param.update(
            options=paths, value=shown if shown in paths else _first(self._group, paths)
        )

    def _choose(self, event: Any) -> None:
        """Show the selected variable."""
        self._message.clear()
        self._background.stop()
        self._controls[:] = []
        self._picture[:] = []
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
        if event.new is not None:
            self._background.submit(lambda: self._prepare(event.new))

    def _prepare(self, path: str) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the description of a variable, and what makes its picture."""
        array = self._group[path]
        comparison = None
        if self._other is not None:
            comparison = Comparison(self._other[path], self._names)
            if comparison.other.shape != array.shape:
                raise _core.InvalidError(
                    f"{path}: expected two arrays of equal shape, found {array.shape} in "
                    f"{self._names[0]} and {comparison.other.shape} in {self._names[1]}; compare "
                    "versions of the same data"
                )
        title = title_of(f"{self._names[0]}: {path}", array)
        make = picture_of(self._group, array, title, self._message, comparison)
        yield array._repr_html_(), make

    def _draw(self, prepared: tuple[str, Callable[[], Any]]) -> None:
        self._about.object, make = prepared
        self._shown = make()
        self._controls[:] = [self._shown.controls]
        self._picture[:] = [self._shown.main]


def _first(group: Group, paths: list[str]) -> str | None:
    """Return the first variable with most dimensions, at most three: usually a field."""
    dimensions = {}
    for path in paths:
        with contextlib.suppress(_core.AmbarError):
            dimensions[path] = min(group[path].ndim, 3)
    return max(dimensions, key=dimensions.__getitem__, default=None)


def picture_of(
    group: Group, array: Array, title: str, message: Message, comparison: Comparison | None = None
) -> Callable[[], Any]:
    """Return what makes the picture of an array: an object with `controls`, `main` and `stop`.

    What the picture needs before it is drawn is read now, in any thread; the picture is made in the
    thread of the page.
    """
    axes = axes_of(group, array)
    if array.dtype.kind not in "biufcmM" or not axes or 0 in array.shape:
        versions = [array] if comparison is None else [array, comparison.other]
        texts = [first_values_text(one) for one in versions]
        return lambda: Listing(texts)
    if len(axes) == 1:
        return lambda: LinePicture(array, title, axes[0], message, comparison)
    return lambda: ImagePicture(array, title, axes, message, comparison)


class Listing:
    """The first values of arrays that cannot be drawn, as HTML."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.controls = pn.Spacer(height=0)
        styles = {"overflow": "auto", "font-family": "monospace"}
        self.main = pn.Row(
            *(pn.pane.HTML(one, sizing_mode="stretch_both", styles=styles) for one in texts),
            sizing_mode="stretch_both",
        )

    def stop(self) -> None:
        """Do nothing: the values have been read."""


def first_values_text(array: Array) -> str:
    """Return the first values of an array as HTML, one in each line."""
    values = array.read(first_values(array.shape, _MAX_LISTED))
    listed = decode(array, values).reshape(-1)[:_MAX_LISTED]
    lines = [html.escape(text_of(value)) for value in listed]
    more = math.prod(array.shape) - len(lines)
    return "<br>".join(lines) + (f"<br>... and {more:,} more" if more else "")


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
    """A one-dimensional array as a line; compared with another one, and their difference."""

    def __init__(
        self,
        array: Array,
        title: str,
        axis: Axis,
        message: Message,
        comparison: Comparison | None = None,
    ) -> None:
        self.controls = pn.Spacer(height=0)
        label = title_of(array.path.rpartition("/")[2], array)
        self.line = LineFigure(array, label, axis, 0, [0], message)
        self._lines = [self.line]
        titles = [title]
        if comparison is not None:
            for one, text in (
                (comparison.other, label),
                (Difference(array, comparison.other), "difference"),
            ):
                line = LineFigure(one, text, axis, 0, [0], message, beside=self.line)
                self._lines.append(line)
            titles += [comparison.names[1], difference_title(array, comparison)]
        for line, text in zip(self._lines, titles, strict=True):
            set_title(line.figure, text)
            line.refresh()
        self.main = pn.Column(
            *(pn.pane.Bokeh(line.figure) for line in self._lines),
            sizing_mode="stretch_both",
            margin=0,
        )

    def stop(self) -> None:
        """Stop reading."""
        for line in self._lines:
            line.stop()


def error_bound(array: Array, comparison: Comparison) -> float | None:
    """Return the absolute error bound of one of two versions; None if neither has one."""
    bounds = (one.error_bound for one in (comparison.other, array))
    return next((bound for bound in bounds if isinstance(bound, float | int) and bound), None)


def difference_title(array: Array, comparison: Comparison, largest: float | None = None) -> str:
    """Return the title of a difference, with its largest value and the error bound."""
    bound = error_bound(array, comparison)
    parts = ["difference" if largest is None else f"max error {largest:.2g}"]
    parts += [] if bound is None else [f"bound {bound:.2g}"]
    return ", ".join(parts)


class ImagePicture:
    """Two dimensions of an array as an image, with a slider for each other one.

    A click on the image draws the values through this place along another dimension. In a
    comparison, images of the other version and of the difference are beside it.
    """

    def __init__(
        self,
        array: Array,
        title: str,
        axes: list[Axis],
        message: Message,
        comparison: Comparison | None = None,
    ) -> None:
        self._array, self._title, self._axes, self._message = array, title, axes, message
        self._comparison = comparison
        self.colors = Colors(lambda: self.image.recolor())  # noqa: PLW0108 - the image changes
        self._error_colors = Colors(lambda: None, "red-blue")
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
        self._image = pn.Row(sizing_mode="stretch_both", margin=0)
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
        self.images: list[ImageFigure] = []
        """The image, and those of the other version and of the difference."""
        self.line: LineFigure | None = None
        self.columns.param.watch(lambda event: self._choose(self.rows, event), "value")
        self.rows.param.watch(lambda event: self._choose(self.columns, event), "value")
        self.swap.on_click(lambda _: setattr(self.columns, "value", self.rows.value))
        self.equal.param.watch(lambda _: self._scale(), "value")
        self.play.param.watch(self._play, "value")
        self._draw()

    def stop(self) -> None:
        """Stop reading."""
        self.play.value = False
        for image in self.images:
            image.stop()
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
        if not any(image.is_reading for image in self.images):
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
        slider.param.watch(lambda _: self._select(), "value")
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
        versions: list[Array | Difference] = [self._array]
        if self._comparison is not None:
            other = self._comparison.other
            versions += [other, Difference(self._array, other)]
        self.images = []
        for number, version in enumerate(versions):
            image = ImageFigure(
                version,
                self._axes,
                rows,
                columns,
                self._indices,
                self.colors if number < 2 else self._error_colors,
                self._message,
                self._draw_line,
                self.images[0] if number else None,
                (visible_values, lambda _: None, self._error_ends)[number],
                "right" if len(versions) == 1 else "below",
            )
            self.images.append(image)
        self.image = self.images[0]
        self.image.followers = self.images[1:2]
        set_title(self.image.figure, self._title)
        if self._comparison is not None:
            set_title(self.images[1].figure, self._comparison.names[1])
        self._image[:] = [pn.pane.Bokeh(image.figure) for image in self.images]
        self._line[:] = []
        self._scale()

    def _scale(self) -> None:
        """Show everything, with equal or different scales."""
        for image in self.images:
            image.scale(is_equal=self.equal.value)

    def _select(self) -> None:
        for image in self.images:
            image.select(self._indices)

    def _error_ends(self, errors: np.ndarray) -> np.ndarray | None:
        """Return the ends of the colours of a difference: the error bound, or the largest one."""
        if self._comparison is None:
            return None
        largest = float(np.nanmax(abs(errors), initial=0))
        title = difference_title(self._array, self._comparison, largest)
        set_title(self.images[2].figure, title)
        end = error_bound(self._array, self._comparison) or largest or 1.0
        return np.array([-end, end])

    def _draw_line(self, indices: list[int]) -> None:
        """Draw the line through the place of a click."""
        number, axis = self.along.value, self._axes[self.along.value]
        label = title_of(self._array.path.rpartition("/")[2], self._array)
        if self.line is not None:
            self.line.stop()
        self.line = LineFigure(self._array, label, axis, number, indices, self._message, height=250)
        places = [
            f"{other.name} {other.label(index)}"
            for other, index in zip(self._axes, indices, strict=True)
            if other is not axis
        ]
        set_title(self.line.figure, "at " + ", ".join(places))
        self._line[:] = [pn.pane.Bokeh(self.line.figure)]
        self.line.refresh()


def page(opened: Group, request: ViewRequest) -> Any:
    """Return the page of a store of plain arrays, or of a group of it, alone or compared."""
    names = [PurePath(request.location.rstrip("/")).name or request.location]
    if request.against is not None:
        names = version_names(request.location, request.against_location)
    shown = ArraysPage(opened, names, request.against)
    facts = f"{text.plural(len(opened), 'array')} in {request.location}"
    return frame(request.title, facts, shown.controls, shown.main)

"""Panels of a figure: images, lines, points and rendered views, with colour and scale bars."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.figures.colors import ColorScale
from ambar.figures.labels import in_two_lines, round_down, unit_text

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Extent: TypeAlias = tuple[float, float, float, float]
"""The coordinates of the left, right, lower and upper edge of an image."""

_STYLE: dict[Any, Any] = {
    "axes.formatter.limits": (-3, 4),
    "axes.formatter.use_mathtext": True,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "figure.dpi": 100,
    "figure.titlesize": 11,
    "font.size": 10,
    "image.interpolation": "nearest",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "mathtext.default": "regular",
    "pdf.fonttype": 42,
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}
_HEIGHTS = {1: 4.4, 2: 3.6}
"""The height of the axes of a panel by the number of columns, inches; of others 3.2."""
_WIDEST_PANEL = 7.0
"""The largest width of the axes of a panel, inches."""
_BAR = 0.95
"""The width of a colour bar with its labels, inches."""
_MORE_LINES = 0.2
"""The width of each line of the label of a colour bar after the first, inches."""
_CHARACTER = 0.075
"""The width of a character of the label of a tick, inches."""
_WIDE = 100.0
"""The ratio of the largest to the smallest value from which an axis is logarithmic."""
_MARGIN = 0.75
"""The space for the labels of an axis, inches."""
_WIDEST = 16.0
"""The largest width of a figure, inches."""
_ASPECTS = (0.25, 4.0)
"""The least and the largest ratio of the height of axes to their width."""
_SHORT = (1e-3, 1e4)
"""Numbers between these are short without an exponent."""
_LOG_STEPS: tuple[tuple[int, ...], ...] = ((1,), (1, 2, 5), tuple(range(1, 10)))
"""Multiples of powers of ten at which logarithmic colour bars may have labels."""
_MIN_LABELS = 3
"""The least number of labels of a logarithmic colour bar."""
_NEARLY_CONSTANT = 1e-4
"""Relative range below which the colour bar has a note."""
_MARKUP = re.compile(r"\\mathdefault|[${}]")
"""Markup of mathtext in tick labels."""
_MAX_LABELS = 12
"""The largest number of lines that a legend lists."""
_CONTOUR_PIXELS = 512
"""Least number of pixels along the longer side of an image whose contours are computed."""


@dataclass(kw_only=True)
class Panel(ABC):
    """A part of a figure with axes of its own."""

    title: str = ""
    x_label: str = ""
    y_label: str = ""
    scale: ColorScale | None = None
    """The colours of values, for the colour bar; None without one."""
    bar_label: str = ""
    values: np.ndarray | None = None
    """The values that are drawn in colours; None without them."""
    are_dates: tuple[bool, bool] = (False, False)
    """Whether the positions on the horizontal and the vertical axis are days since 1970."""
    has_bar: bool = True
    """Whether the panel has a colour bar: not if that of a neighbour applies to it."""

    @cached_property
    def finite_values(self) -> np.ndarray:
        """The values that are finite; empty without values."""
        return np.empty(0) if self.values is None else self.values[np.isfinite(self.values)]

    @cached_property
    def bar_text(self) -> str:
        """The label of the colour bar, with a note if the values are nearly constant."""
        text, scale, values = in_two_lines(self.bar_label), self.scale, self.finite_values
        if not values.size or scale is None or scale.kind != "linear":
            return text
        size = max(abs(scale.low), abs(scale.high))
        spread = float(np.ptp(values)) / size if size else 0.0
        # Values that differ by rounding only have wide limits and need no note.
        if not 0 < spread < _NEARLY_CONSTANT or scale.high - scale.low > _NEARLY_CONSTANT * size:
            return text
        return f"{text}\nrelative range {spread:.1g}"

    @property
    def aspect(self) -> float:
        """The ratio of the height of the axes to their width."""
        return 1.0

    @abstractmethod
    def draw(self, axes: Axes) -> Any:
        """Draw the panel without its labels and bars; return what a colour bar describes."""


@dataclass(kw_only=True)
class ImagePanel(Panel):
    """An image on pixels of equal size, or, with `corners`, of any form."""

    scale: ColorScale

    values: np.ndarray
    """Rows of pixels, from the lowest upwards; NaN in pixels without a value."""
    extent: Extent
    corners: tuple[np.ndarray, np.ndarray] | None = None
    """The horizontal and vertical coordinates of the corners of pixels, of one more row and column.

    `extent` contains them."""
    is_equal: bool = True
    """Whether both axes have the same scale."""
    bar_unit: str | None = None
    """The unit of a scale bar; None without one."""
    is_log: tuple[bool, bool] = (False, False)
    """Whether the horizontal and the vertical axis are logarithmic; needs `corners`."""
    is_blank: bool = False
    """Whether pixels without a value are white, as empty bins."""
    is_sparse: bool = False
    """Whether pixels without a value have the lowest one, as those without particles."""
    levels: np.ndarray | None = None
    """The level of each pixel, whose borders are drawn; None without them."""

    @property
    def aspect(self) -> float:
        """The ratio of the height of the axes to their width."""
        left, right, bottom, top = self.extent
        ratio = (top - bottom) / (right - left) if self.is_equal else 0.8
        return float(np.clip(ratio, *_ASPECTS))

    def draw(self, axes: Axes) -> Any:
        """Draw the image, its scale bar and the borders of levels."""
        values = np.ma.masked_invalid(self.values)
        options: dict[str, Any] = {"norm": self.scale.norm, "cmap": self.scale.colors}
        if self.corners is None:
            picture: Any = axes.imshow(
                values,
                origin="lower",
                extent=self.extent,
                aspect="equal" if self.is_equal else "auto",
                interpolation="auto" if max(values.shape) > 300 else "nearest",
                **options,
            )
            missing = picture.cmap(0.0) if self.is_sparse else "0.15"
            axes.set_facecolor("white" if self.is_blank else missing)
        else:
            picture = axes.pcolormesh(*self.corners, values, rasterized=True, **options)
            axes.set_aspect("equal" if self.is_equal else "auto")
        axes.set(xscale="log" if self.is_log[0] else "linear")
        axes.set(yscale="log" if self.is_log[1] else "linear")
        axes.set(xlim=self.extent[:2], ylim=self.extent[2:])
        if self.levels is not None:
            self._draw_levels(axes, self.levels)
        if self.bar_unit is not None:
            self._draw_bar(axes, self.bar_unit)
        return picture

    def _draw_levels(self, axes: Axes, levels: np.ndarray) -> None:
        """Draw borders of levels: light lines on dark ones, which any colour map shows."""
        from matplotlib.patheffects import withStroke

        found = np.unique(levels[np.isfinite(levels)])
        if len(found) < 2:
            return
        left, right, bottom, top = self.extent
        # Contours cut the corners of pixels, which are divided into smaller ones therefore.
        times = -(-_CONTOUR_PIXELS // max(levels.shape))
        levels = levels.repeat(times, axis=0).repeat(times, axis=1)
        height, width = levels.shape
        x, y = (
            start + (np.arange(count) + 0.5) * (end - start) / count
            for start, end, count in ((left, right, width), (bottom, top, height))
        )
        between = (found[1:] + found[:-1]) / 2
        borders = axes.contour(x, y, levels, levels=between, colors="white", linewidths=0.5)
        borders.set_path_effects([withStroke(linewidth=1.3, foreground="0.1")])

    def _draw_bar(self, axes: Axes, unit: str) -> None:
        """Draw a bar of a round length, about a fifth of the picture wide, on a dark box."""
        from mpl_toolkits.axes_grid1.anchored_artists import AnchoredSizeBar

        left, right, bottom, top = self.extent
        length = round_down((right - left) / 5)
        bar = AnchoredSizeBar(
            axes.transData,
            length,
            f"{length:g} {unit_text(unit)}",
            "lower left",
            sep=4,
            borderpad=0.8,
            pad=0.4,
            color="white",
            size_vertical=0.006 * (top - bottom),
            label_top=True,
        )
        bar.patch.set(facecolor="black", alpha=0.55, linewidth=0)
        axes.add_artist(bar)


@dataclass(kw_only=True)
class Line:
    """A line of a panel: its points, and its name in the legend."""

    x: np.ndarray
    y: np.ndarray
    label: str = ""
    style: dict[str, Any] = field(default_factory=dict)


def is_wide(values: npt.ArrayLike) -> bool:
    """Return whether an axis of values is logarithmic by default.

    It is for positive values that extend over more than a factor of 100.
    """
    values = np.asarray(values)
    finite = values[np.isfinite(values)]
    return bool(finite.size and finite.min() > 0 and finite.max() / _WIDE > finite.min())


@dataclass(kw_only=True)
class LinePanel(Panel):
    """Lines over one axis."""

    lines: Sequence[Line]
    is_log: tuple[bool, bool | None] = (False, False)
    """Whether the horizontal and the vertical axis are logarithmic.

    None: the vertical one is if `is_wide` for the values of all curves on the axes. Lines across
    the axes, as of ``axes.axvline``, do not count."""
    limits: tuple[float, float] | None = None
    """The ends of the axis of values, which is horizontal if the other one is downwards."""
    is_downward: bool = False
    """Whether the vertical axis increases downwards, as depth does."""
    height: float = 0.6
    """The height of the axes, in their width, unless `is_downward`."""

    @property
    def aspect(self) -> float:
        """The ratio of the height of the axes to their width."""
        return 1.2 if self.is_downward else self.height

    def draw(self, axes: Axes) -> Any:
        """Draw the lines and their legend."""
        for line in self.lines:
            axes.plot(line.x, line.y, label=line.label or None, **line.style)
        x_log, y_log = self.is_log
        if y_log is None:
            # Lines across the axes have fractions of the axes as coordinates. Transforms are equal
            # to transData while the limits are 0 and 1, hence `is`.
            curves = [line for line in axes.get_lines() if line.get_transform() is axes.transData]
            values = [np.asarray(curve.get_ydata(), np.float64) for curve in curves]
            y_log = is_wide(np.concatenate(values) if self.limits is None else self.limits)
        axes.set(xscale="log" if x_log else "linear", yscale="log" if y_log else "linear")
        if self.limits is not None:
            axes.set(**{"xlim" if self.is_downward else "ylim": self.limits})
        if self.is_downward:
            axes.invert_yaxis()
        axes.margins(x=0.02)
        _, named = axes.get_legend_handles_labels()  # also of lines that were there before
        if 1 < len(named) <= _MAX_LABELS:
            axes.legend()
        axes.grid(alpha=0.25, linewidth=0.5)


@dataclass(kw_only=True)
class PointPanel(Panel):
    """Points in a plane, coloured by a value."""

    x: np.ndarray
    y: np.ndarray
    size: float = 12.0
    """The area of a marker, points squared."""
    is_equal: bool = False
    """Whether both axes have the same scale."""
    stretch: float = 1.0
    """The length of a unit of the vertical axis over that of the horizontal one."""
    is_log: tuple[bool, bool] = (False, False)
    y_range: tuple[float, float] = (-np.inf, np.inf)
    """The coordinates that exist on the vertical axis, if `is_equal`."""

    @property
    def aspect(self) -> float:
        """The ratio of the height of the axes to their width."""
        if not self.is_equal:
            return 0.8
        left, right, bottom, top = self._extent
        return float((top - bottom) * self.stretch / (right - left))

    @property
    def _extent(self) -> Extent:
        """The edges of axes of equal scales: around the points, neither narrow nor flat."""
        is_known = np.isfinite(self.x) & np.isfinite(self.y)
        x, y = self.x[is_known], self.y[is_known]
        width, height = 1.1 * float(np.ptp(x)), 1.1 * float(np.ptp(y))
        width, height = (width, height) if width or height else (1.0, 1.0 / self.stretch)
        width = max(width, height * self.stretch / 1.6)
        height = max(height, 0.4 * width / self.stretch)
        middle = [float(places.min() + places.max()) / 2 for places in (x, y)]
        low, high = self.y_range
        bottom = max(min(middle[1] - height / 2, high - height), low)
        top = min(bottom + height, high)
        return middle[0] - width / 2, middle[0] + width / 2, bottom, top

    def draw(self, axes: Axes) -> Any:
        """Draw the points."""
        options: dict[str, Any] = {
            "s": self.size,
            "linewidths": 0,
            "rasterized": len(self.x) > 5000,
        }
        if self.scale is not None and self.values is not None:
            options |= {"c": self.values, "norm": self.scale.norm, "cmap": self.scale.colors}
        points = axes.scatter(self.x, self.y, **options)
        axes.set(xscale="log" if self.is_log[0] else "linear")
        axes.set(yscale="log" if self.is_log[1] else "linear")
        if self.is_equal:
            left, right, bottom, top = self._extent
            axes.set(xlim=(left, right), ylim=(bottom, top))
            axes.set_aspect(self.stretch)
        axes.grid(alpha=0.25, linewidth=0.5)
        return points


@dataclass(kw_only=True)
class ViewPanel(Panel):
    """A rendered view: pixels with colours."""

    pixels: np.ndarray
    """Colours of shape (height, width, 3), from the highest row downwards."""
    extent: Extent | None = None
    """The coordinates of the edges; None for a view without axes."""

    @property
    def aspect(self) -> float:
        """The ratio of the height of the axes to their width."""
        height, width = self.pixels.shape[:2]
        return float(height / width)

    def draw(self, axes: Axes) -> Any:
        """Draw the pixels; there are no axes."""
        from matplotlib.cm import ScalarMappable

        axes.imshow(self.pixels, interpolation="antialiased", extent=self.extent)
        if self.extent is None:
            axes.set_axis_off()
        return self.scale and ScalarMappable(self.scale.norm, self.scale.colors)


Grid: TypeAlias = Sequence[Sequence[Panel]]
"""Rows of panels."""


def style() -> AbstractContextManager[None]:
    """Return a context in which figures of matplotlib are drawn for papers."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def draw_grid(grid: Grid, title: str = "", on: Figure | Axes | None = None) -> Figure:
    """Draw rows of panels on a figure, by default a new one, or one panel on axes.

    Returns the figure. Raises ValueError for several panels on axes.
    """
    from matplotlib.axes import Axes as AnyAxes
    from matplotlib.figure import Figure as NewFigure

    if isinstance(on, AnyAxes):
        if sum(map(len, grid)) != 1:
            raise _core.InvalidError(
                f"expected one panel to draw on ax, found {sum(map(len, grid))}; choose one field "
                "and output, or leave ax out"
            )
        panel = grid[0][0]
        draw_panel(replace(panel, title=panel.title or title), on)
        return cast("Figure", on.figure)
    figure = on
    with style():
        size = _size_of(grid)
        if figure is None:
            figure = NewFigure()
        figure.set_size_inches(size.width, size.height + (0.3 if title else 0.0))
        figure.set_layout_engine("constrained")
        columns = max(map(len, grid))
        axes = figure.subplots(
            len(grid),
            columns,
            squeeze=False,
            width_ratios=size.columns,
            height_ratios=size.rows,
        )
        for panels, row in zip(grid, axes, strict=True):
            for panel, one, width in zip(panels, row, size.columns, strict=False):
                draw_panel(panel, one)
                _limit_ticks(one, width)
            for one in row[len(panels) :]:
                one.remove()
        if title:
            figure.suptitle(title)
    return figure


def draw_panel(panel: Panel, axes: Axes) -> None:
    """Draw a panel with its labels and its colour bar on axes."""
    picture = panel.draw(axes)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title=panel.title)
    for is_date, axis in zip(panel.are_dates, (axes.xaxis, axes.yaxis), strict=True):
        if is_date:
            _show_dates(axis)
    # Panels without a label share the axis of a neighbour.
    axes.tick_params(labelbottom=bool(panel.x_label), labelleft=bool(panel.y_label))
    if picture is None or panel.scale is None or not panel.has_bar:
        return
    extend = panel.scale.extend(panel.finite_values)
    width = 0.045 * max(panel.aspect, 1.0) if panel.aspect > 1 else 0.045
    beside = axes.inset_axes((1.0 + 0.6 * width, 0.0, width, 1.0))
    bar: Any = axes.figure.colorbar(picture, cax=beside, label=panel.bar_text, extend=extend)
    if panel.scale.kind == "log":
        _label_log_bar(bar.ax.yaxis, panel.scale)
    elif (
        panel.scale.kind == "linear"
        and panel.values is not None
        and _are_integers(panel.finite_values)
    ):
        from matplotlib.ticker import MaxNLocator

        bar.ax.yaxis.set_major_locator(MaxNLocator(integer=True))


def _label_log_bar(axis: Any, scale: ColorScale) -> None:
    """Choose the labels of a logarithmic colour bar: powers of ten, or of a short one more."""
    from matplotlib import ticker

    steps = next((each for each in _LOG_STEPS if _count_ticks(scale, each) >= _MIN_LABELS), None)
    is_short = _SHORT[0] <= scale.low < scale.high < _SHORT[1]
    if steps is None:
        axis.set_major_locator(ticker.MaxNLocator(_MIN_LABELS + 2, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(ticker.ScalarFormatter())
        axis.set_minor_locator(ticker.NullLocator())
        return
    if len(steps) > 1:
        axis.set_major_locator(ticker.LogLocator(subs=steps, numticks=20))
        formatter: Any = ticker.LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf))
        axis.set_major_formatter(formatter)
    axis.set_minor_formatter(ticker.NullFormatter())
    if is_short:
        _show_plain_numbers(axis)


def _count_ticks(scale: ColorScale, steps: Sequence[int]) -> int:
    """Return the number of multiples of powers of ten on a colour bar."""
    first, last = (int(np.floor(np.log10(end))) for end in (scale.low, scale.high))
    ticks = (step * 10.0**power for power in range(first, last + 1) for step in steps)
    return sum(scale.low <= tick <= scale.high for tick in ticks)


def _limit_ticks(axes: Axes, width: float) -> None:
    """Reduce the ticks of the x axis so that their labels do not overlap.

    `width`: width of the axes, inches.
    """
    from matplotlib.ticker import AutoLocator

    axis = axes.xaxis
    locator: Any = axis.get_major_locator()
    if not isinstance(locator, AutoLocator) or not axis.get_tick_params().get("labelbottom", True):
        return
    low, high = sorted(axes.get_xlim())
    ticks = [tick for tick in locator.tick_values(low, high) if low <= tick <= high]
    labels = axis.get_major_formatter().format_ticks(ticks)
    longest = max((len(_MARKUP.sub("", text)) for text in labels), default=0)
    most = int(width / (_CHARACTER * (longest + 1)))
    if len(ticks) > most:
        locator.set_params(nbins=max(most - 1, 1))


def _are_integers(values: np.ndarray) -> bool:
    """Return whether finite values are a few integers, such as levels."""
    return bool(np.all(values == np.round(values))) and len(np.unique(values)) <= _MAX_LABELS


def _show_plain_numbers(axis: Any) -> None:
    """Label a logarithmic axis with 20 rather than 2 x 10^1."""
    from matplotlib.ticker import FuncFormatter

    usual = axis.get_major_formatter()

    def text(value: float, place: int) -> str:
        found = str(usual(value, place))
        return f"{value:g}" if found else found

    formatter: Any = FuncFormatter(text)
    formatter.set_locs = usual.set_locs
    axis.set_major_formatter(formatter)


def _show_dates(axis: Any) -> None:
    from matplotlib import dates

    module: Any = dates
    # With the usual 5 ticks at least, 4 days would be hours, which need more than 7.
    locator = module.AutoDateLocator(minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(module.ConciseDateFormatter(locator))


def envelope(values: np.ndarray, bins: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of a line: of many values the extremes of each bin, in order.

    Examples
    --------
    >>> places, found = envelope(np.array([9.0, 0.0, 1.0, 5.0, 4.0, 7.0, 8.0]), bins=2)
    >>> places.tolist(), found.tolist()
    ([0, 1, 4, 6], [9.0, 0.0, 4.0, 8.0])
    """
    width = -(-len(values) // bins)
    if width < 3:
        return np.arange(len(values)), values
    return bin_extremes(values, width)


def bin_extremes(values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of the smallest and the largest value of each bin, in order.

    Bins have `width` values; the last one has those that remain.

    Examples
    --------
    >>> places, found = bin_extremes(np.array([9.0, 0.0, 1.0, 5.0, 4.0]), 3)
    >>> places.tolist(), found.tolist()
    ([0, 1, 3, 4], [9.0, 0.0, 5.0, 4.0])
    """
    count = -(-len(values) // width)
    bins = np.full(count * width, values[-1], values.dtype)
    bins[: len(values)] = values
    bins = bins.reshape(count, width)
    lowest = np.argmin(np.where(np.isnan(bins), np.inf, bins), axis=1)
    highest = np.argmax(np.where(np.isnan(bins), -np.inf, bins), axis=1)
    places = np.sort(np.stack([lowest, highest], axis=1), axis=1)
    places = (places + width * np.arange(count)[:, np.newaxis]).reshape(-1)
    places = np.minimum(places, len(values) - 1)
    return places, values[places]


@dataclass(frozen=True)
class _GridSize:
    """The size of a figure, and those of the axes in its columns and rows, in inches."""

    width: float
    height: float
    columns: list[float]
    rows: list[float]


def _size_of(grid: Grid) -> _GridSize:
    """Return the size of a figure whose axes have equal heights in a row."""
    count = max(map(len, grid))
    height = _HEIGHTS.get(count, 3.2)
    columns, margins = [0.0] * count, [0.0] * count
    for panels in grid:
        for number, panel in enumerate(panels):
            columns[number] = max(columns[number], min(height / panel.aspect, _WIDEST_PANEL))
            left = _MARGIN if panel.y_label else 0.2
            right = 0.1
            if panel.scale is not None and panel.has_bar:
                right = _BAR + _MORE_LINES * panel.bar_text.count("\n")
            margins[number] = max(margins[number], left + right)
    factor = min((_WIDEST - sum(margins)) / sum(columns), 1.0)
    columns = [factor * side for side in columns]
    rows, labels = [], 0.0
    for panels in grid:
        rows.append(
            max(
                min(side * panel.aspect, height)
                for side, panel in zip(columns, panels, strict=False)
            )
        )
        labels += 0.1 + 0.25 * any(panel.title for panel in panels)
        labels += 0.45 * any(panel.x_label for panel in panels)
    return _GridSize(sum(columns) + sum(margins), sum(rows) + labels, columns, rows)

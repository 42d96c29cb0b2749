"""Pictures of the columns of a table: points, lines and histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.figures.colors import color_scale
from ambar.figures.labels import label
from ambar.figures.panels import Line, LinePanel, Panel, PointPanel, draw_grid, is_wide
from ambar.kinds.figures import new_figure
from ambar.snapshot.field_names import quantity_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ambar.snapshot.table import Table


class TablePlots:
    """Pictures of the columns of a `Table`; `Table.plot` returns it.

    Examples
    --------
    >>> cells = ambar.open_snapshot("run.ambar").amr.read(["x", "rho", "p"], where="rho > 5")
    >>> axes = cells.plot.scatter("rho", "p", color="x")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('rho [code units]', 'p [code units]')
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __call__(self, x: str, y: str | None = None, **options: Any) -> Axes:
        """Draw two columns as `scatter` does, or one as `hist` does.

        Parameters
        ----------
        x, y : str
            Columns; without `y`, the rows in bins of `x` are counted.
        **options
            Options of `scatter` or `hist`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        KeyError, ValueError, ModuleNotFoundError
            As for `scatter`.

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.read(["rho", "p"])
        >>> axes = cells.plot("rho", "p")
        """
        return self.hist(x, **options) if y is None else self.scatter(x, y, **options)

    def scatter(
        self,
        x: str,
        y: str,
        color: str | None = None,
        *,
        units: Mapping[str, str] | None = None,
        log: bool | tuple[bool, bool] | None = None,
        limits: tuple[float, float] | None = None,
        colors: str | None = None,
        size: float | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw a point for each row.

        Parameters
        ----------
        x, y : str
            Columns.
        color : str, optional
            The column that colours the points.
        units : mapping of str to str, optional
            Units of columns, as for `Table.column`; by default code units.
        log : bool or tuple of bool, optional
            Whether the axes are logarithmic; by default those of positive values that extend over
            more than a factor of 100, except positions.
        limits : tuple of float, optional
            The values at the ends of the colours.
        colors : str, optional
            A colour map of matplotlib.
        size : float, optional
            The area of a point, points squared; by default smaller for more rows.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        KeyError
            If a column does not exist.
        ValueError
            If there are no rows, or an option is invalid.
        ModuleNotFoundError
            If matplotlib is not installed.

        Examples
        --------
        >>> particles = ambar.open_snapshot("run.ambar").particles.read(["x", "y", "mass"])
        >>> axes = particles.plot.scatter("x", "y", "mass")
        """
        (xs, x_label), (ys, y_label) = self._column(x, units), self._column(y, units)
        panel = PointPanel(
            x=xs,
            y=ys,
            x_label=x_label,
            y_label=y_label,
            size=size if size is not None else float(np.clip(3e4 / max(len(xs), 1), 0.5, 20)),
            is_log=_logs(log, (x, xs), (y, ys)),
        )
        if color is not None:
            panel.values, panel.bar_label = self._column(color, units)
            is_linear = False if quantity_of(color) == "length" else None
            panel.scale = color_scale(panel.values, log=is_linear, limits=limits, colors=colors)
        return _draw(panel, ax)

    def line(
        self,
        x: str,
        y: str,
        *,
        units: Mapping[str, str] | None = None,
        log: bool | tuple[bool, bool] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw a line through the rows, ordered by a column.

        Parameters
        ----------
        x, y : str
            Columns.
        units, log, ax : optional
            As for `scatter`.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        KeyError, ValueError, ModuleNotFoundError
            As for `scatter`.

        Examples
        --------
        >>> table = ambar.Table({"time": np.arange(4.0), "mass": np.array([1.0, 2, 4, 8])})
        >>> axes = table.plot.line("time", "mass")
        """
        (xs, x_label), (ys, y_label) = self._column(x, units), self._column(y, units)
        order = np.argsort(xs, kind="stable")
        line = Line(x=xs[order], y=ys[order])
        is_log = _logs(log, (x, xs), (y, ys))
        return _draw(LinePanel(lines=[line], x_label=x_label, y_label=y_label, is_log=is_log), ax)

    def hist(
        self,
        column: str,
        *,
        weight: str | None = None,
        bins: int = 64,
        units: Mapping[str, str] | None = None,
        log: bool | tuple[bool, bool] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the number of rows, or the sum of a column, in bins of a column.

        Parameters
        ----------
        column : str
            The column of the bins.
        weight : str, optional
            The column that is summed.
        bins : int, default 64
            The number of bins.
        units, log, ax : optional
            As for `scatter`; `log` applies to the bins and the sums.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        KeyError, ValueError, ModuleNotFoundError
            As for `scatter`.

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.read("rho")
        >>> axes = cells.plot.hist("rho", bins=20, log=(True, False))
        """
        values, x_label = self._column(column, units)
        weights, y_label = None, "rows"
        if weight is not None:
            weights, y_label = self._column(weight, units)
        is_chosen = np.isfinite(values)
        is_log = _logs(log, (column, values[is_chosen]), None)
        if is_log[0]:
            is_chosen &= values > 0
        values = values[is_chosen]
        if not len(values):
            raise _core.InvalidError(f"expected values of {column!r} to draw, found none")
        weights = None if weights is None else weights[is_chosen]
        places = np.log10(values) if is_log[0] else values
        counts, edges = np.histogram(places, bins, weights=weights)
        edges = 10**edges if is_log[0] else edges
        line = Line(x=np.repeat(edges, 2)[1:-1], y=np.repeat(counts, 2))
        return _draw(LinePanel(lines=[line], x_label=x_label, y_label=y_label, is_log=is_log), ax)

    def _column(self, name: str, units: Mapping[str, str] | None) -> tuple[np.ndarray, str]:
        """Return the values of a column and its label."""
        unit = (units or {}).get(name, "code")
        values = np.asarray(self._table.column(name, unit), np.float64)
        if not len(values):
            raise _core.InvalidError(f"expected rows to draw, found none in the column {name!r}")
        known = self._table._column_units
        found = self._table._find(name) or name
        return values, label(
            name.replace("_", " "), "" if known is None else known.label(found, unit)
        )


def _logs(
    log: bool | tuple[bool, bool] | None,
    x: tuple[str, np.ndarray],
    y: tuple[str, np.ndarray] | None,
) -> tuple[bool, bool]:
    """Return whether the axes of columns, given by name and values, are logarithmic."""
    if isinstance(log, tuple):
        return log
    if log is not None:
        return log, log
    return _is_log(*x), y is not None and _is_log(*y)


def _is_log(name: str, values: np.ndarray) -> bool:
    return quantity_of(name) != "length" and is_wide(values)


def _draw(panel: Panel, ax: Axes | None) -> Axes:
    figure = draw_grid([[panel]], on=new_figure() if ax is None else ax)
    return figure.axes[0] if ax is None else ax

"""Tables in memory: NumPy columns of equal length, and conversions to pandas, polars, Arrow."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.optional import require
from ambar.snapshot.field_names import ALIASES, resolve
from ambar.snapshot.units import ColumnUnits

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import xarray as xr

    from ambar.snapshot.pictures.table_plots import TablePlots
    from ambar.snapshot.run_info import RunInfo

_HEAD, _TAIL = 5, 5


class Table:
    """Columns of equal length in memory, by name.

    As in pandas, ``len(table)`` is the number of rows, and iteration yields the names of the
    columns. Aliases work as well: ``table["rho"]`` is the column ``density``, and the reverse.
    polars, DuckDB and pyarrow accept a table directly, without a copy of its columns
    (``__arrow_c_stream__``).

    Parameters
    ----------
    columns : mapping of str to numpy.ndarray
        1-D arrays of equal length, by name. Values of a simulation are in code units.
    info : RamsesInfo, AmrexInfo or CodeInfo, optional
        Run information, whose units `column` uses.
    dim : str, default "row"
        Name of the dimension in `to_xarray`.

    Raises
    ------
    ValueError
        If the columns are not 1-D or differ in length.

    Examples
    --------
    >>> table = ambar.Table({"mass": np.array([1.0, 2.5, 4.0]), "family": np.array([1, 2, 2])})
    >>> len(table), list(table)
    (3, ['mass', 'family'])
    >>> table["mass"].sum()
    np.float64(7.5)
    """

    def __init__(
        self, columns: Mapping[str, np.ndarray], *, info: RunInfo | None = None, dim: str = "row"
    ) -> None:
        self._columns = dict(columns)
        self._info = info
        self._dim = dim
        self._column_units: ColumnUnits | None = None
        if info is not None:
            self._column_units = ColumnUnits.of_names(info.units, self._columns)
        lengths = {column.shape for column in self._columns.values()}
        if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
            raise _core.InvalidError(
                "expected 1-D columns of equal length, found the shapes "
                f"{', '.join(map(str, sorted(lengths)))}"
            )
        self._rows = next(iter(lengths))[0] if lengths else 0

    def _with_units(self, column_units: ColumnUnits) -> Self:
        """Set the units of the columns, which are otherwise those of their names."""
        self._column_units = column_units
        return self

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def nbytes(self) -> int:
        """Size of all columns in bytes."""
        return sum(column.nbytes for column in self._columns.values())

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the column `name`; raises KeyError if it does not exist."""
        found = self._find(name)
        if found is None:
            raise _core.NotFoundError(f"no column {name!r}; available: {', '.join(self._columns)}")
        return self._columns[found]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._rows)

    def keys(self) -> KeysView[str]:
        """Return the names of the columns, as of a dictionary.

        Returns
        -------
        KeysView

        Examples
        --------
        >>> list(ambar.Table({"mass": np.ones(2), "id": np.arange(2)}).keys())
        ['mass', 'id']
        """
        return self._columns.keys()

    def values(self) -> ValuesView[np.ndarray]:
        """Return the columns, as of a dictionary.

        Returns
        -------
        ValuesView

        Examples
        --------
        >>> list(ambar.Table({"id": np.arange(3)}).values())
        [array([0, 1, 2])]
        """
        return self._columns.values()

    def items(self) -> ItemsView[str, np.ndarray]:
        """Return pairs of a name and a column, as of a dictionary.

        Returns
        -------
        ItemsView

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.read(["level", "rho"])
        >>> {name: values.dtype.name for name, values in cells.items()}
        {'level': 'int32', 'rho': 'float64'}
        """
        return self._columns.items()

    def column(self, name: str, unit: str = "code") -> np.ndarray:
        """Return a column in a unit.

        Parameters
        ----------
        name : str
            Name of the column, or an alias.
        unit : str, default "code"
            "code", a unit of the quantity of the column in `Units.factors` ("kpc", "nH"), or an
            expression of its dimension: "Msun/yr", "erg/cm**3". Birth times of a cosmological run
            become times since the Big Bang.

        Returns
        -------
        numpy.ndarray
            The column; float64 in other units than "code".

        Raises
        ------
        KeyError
            If the column does not exist.
        ValueError
            If the unit is not one of the quantity of the column, or the table has no units.

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.read(["density"])
        >>> bool((cells.column("density", "kg/m3") == 1000 * cells["density"]).all())
        True
        """
        values = self[name]
        if unit == "code":
            return values
        if self._column_units is None:
            raise _core.InvalidError(
                f"a table without run information has no units, found unit={unit!r}; use "
                "unit='code'"
            )
        converted: np.ndarray = self._column_units.convert(values, self._find(name) or name, unit)
        return converted

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream of one record batch (Arrow PyCapsule interface)."""
        return _core.arrow_stream(list(self._columns), [*map(_native, self._columns.values())])

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NoReturn:
        """Raise TypeError: NumPy would convert the table, which iterates over names, to these."""
        example = next(iter(self._columns), "mass")
        raise TypeError(
            f"expected an array, found an ambar.Table; use a column: table[{example!r}] or "
            f"table.column({example!r}, unit), or table.to_pandas() for all columns"
        )

    @property
    def plot(self) -> TablePlots:
        """Pictures of columns: ``plot.scatter``, ``plot.line`` and ``plot.hist``."""
        from ambar.snapshot.pictures.table_plots import TablePlots

        return TablePlots(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return the columns as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            The values are not copied.

        Examples
        --------
        >>> table = ambar.Table({"mass": np.array([1.0, 2.5])})
        >>> table.to_pandas().shape
        (2, 1)
        """
        pd = require("pandas", purpose="to_pandas", install="pandas")
        return pd.DataFrame(self._columns, copy=False)

    def to_polars(self) -> pl.DataFrame:
        """Return the columns as a polars DataFrame.

        Returns
        -------
        polars.DataFrame

        Examples
        --------
        >>> table = ambar.Table({"mass": np.array([1.0, 2.5])})
        >>> table.to_polars().columns
        ['mass']
        """
        pl = require("polars", purpose="to_polars", install="polars")
        return pl.DataFrame(self)

    def to_xarray(self) -> xr.Dataset:
        """Return the columns as an xarray Dataset of one dimension.

        Returns
        -------
        xarray.Dataset
            The values are not copied. Their attribute "units" is "code", or, for values that are
            not in code units, their unit in pint's notation.

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.read(["density"])
        >>> cells.to_xarray()["density"].dims
        ('cell',)
        """
        require("xarray", purpose="to_xarray", install="ambar[xarray]")
        import xarray as xr

        units = self._column_units
        return xr.Dataset(
            {
                name: (
                    self._dim,
                    column,
                    {} if units is None else {"units": units.label(name, "code")},
                )
                for name, column in self._columns.items()
            }
        )

    def __repr__(self) -> str:
        """Return sizes, and the first and last rows."""
        names = [str(name) for name in self._columns]
        rows = self._first_and_last()
        return text.representation(
            f"<ambar.Table> {len(self):,} rows x {len(names)} columns, {text.size(self.nbytes)}",
            {},
            _aligned([names, *rows]) if names else [],
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        title = f"ambar.Table: {len(self):,} rows x {len(self._columns)} columns"
        rows = html.table(self._first_and_last(), list(self._columns))
        return html.representation(title, {"Size": text.size(self.nbytes)}, rows)

    def _first_and_last(self) -> list[list[str]]:
        """Return the values of the first and the last rows as text."""
        count = len(self)
        rows: list[int | None] = [*range(min(count, _HEAD + _TAIL + 1))]
        if count > _HEAD + _TAIL + 1:
            rows = [*range(_HEAD), None, *range(count - _TAIL, count)]
        columns = self._columns.values()
        return [
            ["..." if row is None else _text(column[row]) for column in columns] for row in rows
        ]

    def _find(self, name: str) -> str | None:
        """Return the column that `name` means: the name itself, or an alias in either direction."""
        found = resolve(name, self._columns)
        if found in self._columns:
            return found
        return next((key for key in self._columns if name in ALIASES.get(key, ())), None)


def _native(column: np.ndarray) -> np.ndarray:
    """Return a column contiguous and in native byte order, as Arrow requires."""
    return np.ascontiguousarray(column, column.dtype.newbyteorder("="))


def _aligned(rows: list[list[str]]) -> list[str]:
    """Return rows as lines whose columns are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)

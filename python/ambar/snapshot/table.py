"""A table in memory: NumPy columns of equal length, and the way to pandas, polars and Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.snapshot.field_names import resolve

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import xarray as xr

    from ambar.snapshot.run_info import RunInfo

_HEAD, _TAIL = 5, 5


class Table(Mapping[str, np.ndarray]):
    """Columns of equal length by name, each a 1-D NumPy array, in code units.

    ``table["density"]`` gives a column, an alias of its name too (``table["rho"]``). pandas,
    polars, DuckDB and pyarrow take a table as it is (``__arrow_c_stream__``), without copying
    its columns.
    """

    def __init__(
        self, columns: Mapping[str, np.ndarray], *, info: RunInfo | None = None, dim: str = "row"
    ) -> None:
        self._columns = dict(columns)
        self._info = info
        self._dim = dim
        lengths = {column.shape for column in self._columns.values()}
        if len(lengths) > 1 or any(len(shape) != 1 for shape in lengths):
            raise _core.InvalidError(f"columns of a table have one length; these are {lengths}")
        self._rows = next(iter(lengths))[0] if lengths else 0

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return list(self._columns)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns."""
        return sum(column.nbytes for column in self._columns.values())

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the column `name`; raises KeyError if it does not exist."""
        try:
            return self._columns[resolve(name, self._columns)]
        except KeyError:
            raise _core.NotFoundError(
                f"no column {name!r}; available: {', '.join(self._columns)}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of columns, as of any mapping; `rows` has the number of rows."""
        return len(self._columns)

    def column(self, name: str, unit: str = "code") -> np.ndarray:
        """Return the column `name` in `unit` ("g/cm3", "km/s", "kpc", ...)."""
        values = self[name]
        if unit == "code":
            return values
        if self._info is None:
            raise _core.InvalidError("this table comes without units; ask for unit='code'")
        converted: np.ndarray = self._info.units.convert(values, name, unit)
        return converted

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream of one record batch (Arrow PyCapsule interface)."""
        return _core.arrow_stream(list(self._columns), list(self._columns.values()))

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame of the same columns."""
        import pandas as pd

        return pd.DataFrame(self._columns, copy=False)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame of the same columns."""
        import polars as pl

        return pl.DataFrame(self)

    def to_xarray(self) -> xr.Dataset:
        """Return an xarray Dataset with one dimension and a variable per column."""
        import xarray as xr

        return xr.Dataset({name: (self._dim, column) for name, column in self._columns.items()})

    def __repr__(self) -> str:
        """Return the first and last rows as text."""
        head = f"<ambar.Table: {self.rows:,} rows x {len(self)} columns>"
        if not self._columns:
            return head
        if self.rows > _HEAD + _TAIL + 1:
            shown: list[Any] = [*range(_HEAD), None, *range(self.rows - _TAIL, self.rows)]
        else:
            shown = list(range(self.rows))
        texts = [
            [name, *("..." if row is None else _text(column[row]) for row in shown)]
            for name, column in self._columns.items()
        ]
        widths = [max(map(len, column)) for column in texts]
        lines = [
            "  ".join(
                column[line].rjust(width) for column, width in zip(texts, widths, strict=True)
            )
            for line in range(len(shown) + 1)
        ]
        return "\n".join([head, *lines])


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)

"""What cells and particles have in common: fields, their names, and representations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ambar._core import NotFoundError
from ambar._util import html, text
from ambar._util.properties import cached_property
from ambar._util.text import suggestion
from ambar.snapshot.field_names import CELL_COMPONENTS, quantity_of, resolve
from ambar.snapshot.regions import Region, region_in_code
from ambar.snapshot.units import parse_where

if TYPE_CHECKING:
    import xarray as xr

    from ambar._core import Amr as CoreAmr
    from ambar._core import Condition
    from ambar._core import Region as CoreRegion
    from ambar._core import Table as CoreTable
    from ambar.snapshot.amrex_info import AmrexInfo
    from ambar.snapshot.loading import Source
    from ambar.snapshot.run_info import RamsesInfo, RunInfo
    from ambar.snapshot.table import Table
    from ambar.store.array import Array
    from ambar.store.store import Store

_UNITS = {
    "length": "cm",
    "time": "s",
    "mass": "g",
    "density": "g/cm3",
    "velocity": "cm/s",
    "acceleration": "cm/s2",
    "pressure": "erg/cm3",
    "specific_energy": "erg/g",
    "energy": "erg",
    "magnetic_field": "Gauss",
}
"""The unit of each quantity in representations."""
_HEADER = ("field", "dtype", "unit", "size", "codecs")
_OPEN_ROWS = 12


class StoredFields:
    """The arrays of fields in a group of a store."""

    def __init__(self, store: Store, group: str) -> None:
        self._store = store
        self._start = f"{group.strip('/')}/".lstrip("/")
        self._paths = [path for path in store if path.startswith(self._start)]

    @property
    def sizes(self) -> str:
        """Bytes of all arrays of the group, in memory and in the store."""
        return _sizes(self._store[path] for path in self._paths)

    def arrays(self, field: str) -> list[Array]:
        """Return the array of a field, or one for each level."""
        paths = [path.removeprefix(self._start).split("/") for path in self._paths]
        return [
            self._store[self._start + "/".join(path)]
            for path in paths
            if path[-1] == field and "index" not in path[:-1]
        ]


class FieldRows(ABC):
    """Base of cells and particles: rows with fields."""

    _core: CoreAmr | CoreTable
    _info: RunInfo
    _source: Source
    _component: str
    """The group of the fields in the store of the snapshot."""

    @property
    def info(self) -> RamsesInfo | AmrexInfo:
        """Run information of the snapshot."""
        return self._info

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in the order of the file."""
        return list(self._core.fields)

    def dtype(self, field: str) -> np.dtype[np.generic]:
        """Return the dtype of a field.

        Parameters
        ----------
        field : str
            A field or an alias; of cells also a derived column.

        Returns
        -------
        numpy.dtype

        Raises
        ------
        KeyError
            If the field does not exist.

        Examples
        --------
        >>> snapshot = ambar.open_snapshot("run.ambar")
        >>> snapshot.amr.dtype("rho"), snapshot.particles.dtype("id")
        (dtype('float64'), dtype('int32'))
        """
        return np.dtype(self._core.dtype(self._name(field)))

    @property
    def _columns(self) -> set[str]:
        """Names of the columns that can be read."""
        return set(self.fields)

    @abstractmethod
    def read(self, fields: Sequence[str] | str | None = None) -> Table:
        """Read rows into memory."""

    @property
    @abstractmethod
    def _default_columns(self) -> list[str]:
        """The columns that `read` reads by default."""

    @abstractmethod
    def _read_chunks(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a column of the rows in the chunks `start` to `stop` - 1."""

    def _name(self, field: str) -> str:
        """Return the column that a name means: an alias, or a field with its component in front."""
        if not isinstance(field, str):
            raise TypeError(f"expected the name of a field, found {field!r:.80}")
        owner, _, name = field.rpartition("/")
        found = resolve(name if owner and self._component_of(owner) else field, self._columns)
        if found not in self._columns:
            raise self._unknown(field)
        return found

    def _unknown(self, field: str) -> Exception:
        """Return the error of a column that does not exist."""
        owner = field.partition("/")[0]
        hint = suggestion(field, sorted(self._columns))
        if owner in self._source.components and not self._component_of(owner):
            place = "amr" if owner in CELL_COMPONENTS else owner
            hint = f"it is not a column of {self._component}; use snapshot.{place}"
        elif field in self._source.components:
            hint = f"write names with a slash between backquotes in conditions: `{field}/...`"
        missing = self._source.missing.items() if "did you mean" not in hint else ()
        reasons = "".join(
            f"; {name} is missing: {why}" for name, why in missing if self._component_of(name)
        )
        return NotFoundError(
            f'{self._source.location}: column "{field}" does not exist; {hint}{reasons}'
        )

    def _component_of(self, owner: str) -> bool:
        """Return whether a name of a component means this one."""
        return owner == self._component

    def _resolved(self, fields: Iterable[str] | str | None) -> dict[str, str]:
        """Return columns by the names by which they are requested; the default ones for None."""
        if fields is None:
            fields = self._default_columns
        names = [fields] if isinstance(fields, str) else fields
        if not isinstance(names, Iterable):
            raise TypeError(f"expected the names of fields, found {fields!r:.80}")
        return {name: self._name(name) for name in names}

    def _dataset(self, names: Sequence[str], dim: str) -> xr.Dataset:
        """Return columns as a Dataset: dask arrays of data in a store, otherwise in memory."""
        if self._stored is None:
            return self.read(names).to_xarray()
        import xarray as xr

        from ambar.snapshot.interop.lazy_columns import lazy_columns

        arrays = lazy_columns(self, self._resolved(names))
        return xr.Dataset({name: (dim, array) for name, array in arrays.items()})

    def _region(self, region: Region | None) -> CoreRegion | None:
        return region_in_code(region, self._info)

    def _condition(self, where: str | None) -> Condition | None:
        return parse_where(where, self._name, self._info.units)

    @property
    @abstractmethod
    def _title(self) -> str:
        """What the fields belong to."""

    @abstractmethod
    def _properties(self) -> dict[str, object]:
        """Return the lines above the fields, without the size."""

    @cached_property
    def _stored(self) -> StoredFields | None:
        return self._source.stored_fields(self._component)

    def __repr__(self) -> str:
        """Return sizes, and a line per field: dtype, unit, size, codecs."""
        return text.representation(
            f"<ambar.{type(self).__name__}> {self._title}",
            self._all_properties(),
            text.columns(self._field_rows(), 4),
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        return html.representation(
            f"ambar.{type(self).__name__} {self._title}",
            self._all_properties(),
            field_details(f"{len(self.fields)} fields", self._field_rows()),
        )

    def _all_properties(self) -> dict[str, object]:
        size = None if self._stored is None else self._stored.sizes
        return self._properties() | {"Size": size}

    def _field_rows(self) -> list[tuple[str, ...]]:
        return describe_fields(self.fields, self._info, self.dtype, self._stored)


def _sizes(arrays: Iterable[Array]) -> str:
    pairs = [(array.nbytes, array.stored_bytes) for array in arrays]
    return text.sizes(*map(sum, zip(*pairs, strict=True))) if pairs else text.sizes(0, 0)


def describe_fields(
    fields: Iterable[str],
    info: RunInfo,
    dtype: Callable[[str], np.dtype[np.generic]],
    stored: StoredFields | None,
) -> list[tuple[str, ...]]:
    """Return name, dtype, unit and, for fields in a store, size and codecs."""
    rows: list[tuple[str, ...]] = []
    for name in fields:
        row: tuple[str, ...] = (name, str(dtype(name)), code_unit(name, info))
        if stored is not None:
            arrays = stored.arrays(name)
            codecs = dict.fromkeys(array.codecs for array in arrays)
            row += (_sizes(arrays), ", ".join(codecs))
        rows.append(row)
    return rows


def code_unit(field: str, info: RunInfo) -> str:
    """Return one code unit of a field in CGS units; "code" if it is not known."""
    unit = _UNITS.get(quantity_of(field) or "")
    if unit is None or not info.physical or info.units.is_conformal(field):
        return "code"
    return f"{info.units.factor(field, unit):.4g} {unit}"


def field_details(title: str, rows: list[tuple[str, ...]]) -> str:
    """Return rows of fields as a section of HTML."""
    header = _HEADER[: max(map(len, rows), default=0)]
    return html.details(title, html.table(rows, header), is_open=len(rows) <= _OPEN_ROWS)

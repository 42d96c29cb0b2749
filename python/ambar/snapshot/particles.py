"""Particles, sinks and clumps: rows of a table that stays where it is until it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.properties import cached_property
from ambar.snapshot.field_names import resolve, resolve_where
from ambar.snapshot.representation import StoredFields, field_details, field_rows
from ambar.snapshot.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.loading import Source
    from ambar.snapshot.regions import Region
    from ambar.snapshot.run_info import RunInfo


# Where a particle lay in its code's files: its domain, its grid, its row.
_BOOKKEEPING = ("domain", "grid", "file_row")


class Particles:
    """Rows with a number of fields: particles of all families, sinks, or clumps.

    Values are in code units. Fields may be named as in RAMSES' descriptors or as in Mera.jl
    (x, vx, id, ...).
    """

    def __init__(self, core: _core.Table, info: RunInfo, component: str, source: Source) -> None:
        self._core = core
        self._info = info
        self._component = component
        self._source = source

    def __reduce__(self) -> tuple[object, tuple[Source, str]]:
        return _particles_of, (self._source, self._component)

    @property
    def info(self) -> RunInfo:
        """The snapshot's run information."""
        return self._info

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in the order of the file."""
        return list(self._core.fields)

    @property
    def _default_columns(self) -> list[str]:
        return [name for name in self.fields if name not in _BOOKKEEPING]

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._core.rows)

    def __repr__(self) -> str:
        """Return sizes, and a line per field: dtype, unit, size, codecs."""
        return text.representation(
            f"<ambar.Particles> {self._title}",
            self._properties(),
            text.columns(self._field_rows(), 4),
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        return html.representation(
            f"ambar.Particles {self._title}",
            self._properties(),
            field_details(f"{len(self.fields)} fields", self._field_rows()),
        )

    @property
    def _title(self) -> str:
        return f"{self._component} of {self._source.location}"

    def _properties(self) -> dict[str, object]:
        return {
            "Rows": f"{len(self):,}",
            "Size": None if self._stored is None else self._stored.sizes,
        }

    def _field_rows(self) -> list[tuple[str, ...]]:
        return field_rows(self.fields, self._info, self.dtype, self._stored)

    @cached_property
    def _stored(self) -> StoredFields | None:
        return self._source.stored_fields(self._component)

    def _read_chunks(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a column of the rows in chunks `start` to `stop` - 1."""
        return self._core.read([name], chunks=(start, stop))[name]

    def dtype(self, field: str) -> np.dtype[np.generic]:
        """Return the dtype of a field."""
        return np.dtype(self._core.dtype(resolve(field, self.fields)))

    def read(
        self,
        fields: Sequence[str] | str | None = None,
        *,
        region: Region | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Table:
        """Read rows; only the chunks that the selection touches are read and decoded.

        Parameters
        ----------
        fields
            Fields to read, also as "particles/mass"; the columns are named as asked for. By default
            all but ``domain`` and those that only tell a particle's place in a plotfile.
        region
            A `Box`, `Sphere` or `Shell`: rows whose position is inside.
        where
            A condition on fields, for example ``"family == 2 and mass > 1e-4"``.
        threads
            Threads to use; all cores by default.

        Raises
        ------
        KeyError
            If a field does not exist.
        CorruptError
            If a checksum differs.
        """
        known = self.fields
        if fields is None:
            fields = self._default_columns
        columns = {
            name: resolve(name.removeprefix(f"{self._component}/"), known)
            for name in ([fields] if isinstance(fields, str) else fields)
        }
        arrays = self._core.read(
            list(dict.fromkeys(columns.values())),
            None if region is None else region.to_code(self._info),
            resolve_where(where, known),
            threads,
        )
        return Table({name: arrays[stored] for name, stored in columns.items()}, info=self._info)

    def to_xarray(self) -> xr.Dataset:
        """Return all rows as a Dataset with the dimension "row".

        Data in a store are dask arrays, of about 16 MiB a chunk, and are read when they are
        computed; other data are read into memory.

        Returns
        -------
        xarray.Dataset
            The fields that `read` reads by default, in code units.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed, or, for data in a store, dask.

        Examples
        --------
        >>> stars = ambar.open_snapshot("run.ambar").particles.to_xarray()
        >>> stars["mass"].dims, float(stars["mass"].sum().compute()) > 0
        (('row',), True)
        """
        if self._stored is None:
            return self.read().to_xarray()
        import xarray as xr

        from ambar.snapshot.interop.lazy_columns import lazy_columns

        arrays = lazy_columns(self, {name: name for name in self._default_columns})
        return xr.Dataset({name: ("row", array) for name, array in arrays.items()})

    def to_yt(self) -> Any:
        """Return a yt particle dataset in memory; fields are ("io", "particle_mass") and so on.

        Needs yt, and particles in three dimensions (UnsupportedError otherwise).
        """
        from ambar.snapshot.interop.yt_dataset import particles_to_yt

        return particles_to_yt(self)


def _particles_of(source: Source, component: str) -> Particles:
    core = source.table(component)
    if core is None:
        raise _core.NotFoundError(f"{source.location}: no {component} any more")
    return Particles(core, source.info, component, source)

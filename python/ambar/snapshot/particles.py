"""Particles, sinks and clumps: rows of a table that are read on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.snapshot.field_names import resolve
from ambar.snapshot.regions import Region, region_in_code
from ambar.snapshot.representation import FieldRepresentation
from ambar.snapshot.table import Table
from ambar.snapshot.units import parse_where

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.loading import Source
    from ambar.snapshot.run_info import RunInfo


# The position of a particle in the files of the simulation code: domain, grid and row.
_BOOKKEEPING = ("domain", "grid", "file_row")


class Particles(FieldRepresentation):
    """Rows with fields: particles of all families, sinks, or clumps.

    Values are in code units. Fields have the names of RAMSES' descriptors, or aliases as in Mera.jl
    (x, vx, id, ...).

    Examples
    --------
    >>> particles = ambar.open_snapshot("run.ambar").particles
    >>> len(particles), particles.fields[:3]
    (4000, ['position_x', 'position_y', 'position_z'])
    >>> particles.read(["id", "mass"], region=ambar.Sphere("bc", 0.2)).columns
    ['id', 'mass']
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
        """Run information of the snapshot."""
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

    @property
    def _title(self) -> str:
        return f"{self._component} of {self._source.location}"

    def _properties(self) -> dict[str, object]:
        return {"Rows": f"{len(self):,}"}

    def _read_chunks(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a column of the rows in chunks `start` to `stop` - 1."""
        return self._core.read([name], chunks=(start, stop))[name]

    def dtype(self, field: str) -> np.dtype[np.generic]:
        """Return the dtype of a field.

        Parameters
        ----------
        field : str
            A field or an alias.

        Returns
        -------
        numpy.dtype

        Raises
        ------
        KeyError
            If the field does not exist.

        Examples
        --------
        >>> ambar.open_snapshot("run.ambar").particles.dtype("id")
        dtype('int32')
        """
        return np.dtype(self._core.dtype(resolve(field, self.fields)))

    def read(
        self,
        fields: Sequence[str] | str | None = None,
        *,
        region: Region | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Table:
        """Read rows; only the chunks that overlap the selection are read and decoded.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Fields to read, also as "particles/mass". By default all fields except ``domain`` and
            the position of particles in the files of a plotfile.
        region : Box, Sphere or Shell, optional
            Rows whose position is inside. It extends across periodic faces of the box. Sinks and
            clumps have no positions for it.
        where : str, optional
            A condition on fields, for example ``"family == 2 and mass > 1e-4"`` or
            ``"mass > 100 Msol"``: comparisons, arithmetic, and numbers with units.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        Table
            Columns with the requested names in the requested order, in code units.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If the region or the condition is invalid.
        CorruptError
            If a checksum differs, or a file is damaged.

        Examples
        --------
        >>> particles = ambar.open_snapshot("run.ambar").particles
        >>> rows = particles.read(["x", "particles/mass"], where="vx > 0")
        >>> rows.columns, len(rows) < len(particles)
        (['x', 'particles/mass'], True)
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
            region_in_code(region, self._info),
            parse_where(where, known, self._info.units),
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

        Returns
        -------
        yt.data_objects.static_output.Dataset
            The dataset. Birth times of cosmological runs are left out, with a warning.

        Raises
        ------
        UnsupportedError
            If the particles do not have three dimensions.
        ModuleNotFoundError
            If yt is not installed.

        Examples
        --------
        >>> dataset = ambar.open_snapshot("run.ambar").particles.to_yt()
        >>> len(dataset.all_data()["io", "particle_mass"])
        4000
        """
        from ambar.snapshot.interop.yt_dataset import particles_to_yt

        return particles_to_yt(self)


def _particles_of(source: Source, component: str) -> Particles:
    core = source.table(component)
    if core is None:
        raise _core.NotFoundError(f"{source.location}: no {component} any more")
    return Particles(core, source.info, component, source)

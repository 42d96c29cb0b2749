"""Particles, sinks and clumps: rows of a table that are read on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar.snapshot.amr import Amr
from ambar.snapshot.derived.catalog import Formula, row_formulas
from ambar.snapshot.field_rows import FieldRows
from ambar.snapshot.loading import has_cells
from ambar.snapshot.maps.methods import ParticleMaps
from ambar.snapshot.regions import Region
from ambar.snapshot.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from ambar._core import ComputedColumns, Condition
    from ambar._core import Region as CoreRegion
    from ambar.snapshot.loading import Source
    from ambar.snapshot.physics.cosmology import Cosmology


# The position of a particle in the files of the simulation code: domain, grid and row.
_BOOKKEEPING = ("domain", "grid", "file_row")


class Particles(FieldRows, ParticleMaps):
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

    _core: _core.Table

    def __init__(self, source: Source, component: str) -> None:
        core = source.table(component)
        if core is None:
            raise _core.NotFoundError(f"{source.location}: no {component} any more")
        self._core = core
        self._info = source.info
        self._component = component
        self._source = source

    @property
    def _arguments(self) -> tuple[object, ...]:
        return (self._source, self._component)

    @property
    def _cells(self) -> FieldRows | None:
        if not has_cells(self._source.components):
            return None
        return Amr(self._source)._with(self._parameters)

    def _component_of(self, owner: str) -> bool:
        return owner in (self._component, self._component.partition("/")[0])

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
        region : Region, optional
            Rows whose position is inside. It extends across periodic faces of the box. Positions
            are the fields position_x, ... of particles, x, ... of sinks, and peak_x, ... of clumps.
        where : str, optional
            A condition on fields, for example ``"family == 2 and mass > 1e-4"`` or
            ``"mass > 100 Msol"``: comparisons, arithmetic, and numbers with units. A name with a
            slash is between backquotes: ``"`particles/mass` > 1e-4"``.
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
        names = self._names(fields)
        arrays = self._read_arrays(names, region=region, where=where, threads=threads)
        return Table(arrays, info=self._info)._with_units(self._column_units(names))

    def _read_core(
        self,
        columns: Sequence[str],
        region: CoreRegion | None,
        levels: tuple[int, int] | None,
        condition: Condition | None,
        threads: int | None,
        chunks: tuple[int, int] | None,
        computed: ComputedColumns | None,
    ) -> dict[str, np.ndarray]:
        if levels is not None:
            raise _core.InvalidError(f"{self._component} have no levels, found levels={levels}")
        return self._core.read(columns, region, condition, threads, chunks, computed)

    def _formulas(self, cosmology: Cosmology | None) -> dict[str, list[Formula]]:
        return row_formulas(self._info.time, self._info.ndim, cosmology, self._units.unit_t)

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
        return self._dataset(self._default_columns, "row")

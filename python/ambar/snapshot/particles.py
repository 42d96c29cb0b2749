"""Particles, sinks and clumps: rows of a table that stays where it is until it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.snapshot.field_names import resolve, resolve_where
from ambar.snapshot.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.regions import Region
    from ambar.snapshot.run_info import RunInfo


# Where a particle lay in its code's files: its domain, its grid, its row.
_BOOKKEEPING = ("domain", "grid", "file_row")


class Particles:
    """Rows with a number of fields: particles of all families, sinks, or clumps.

    Values are in code units. Fields may be named as in RAMSES' descriptors or as in Mera.jl
    (x, vx, id, ...).
    """

    def __init__(self, core: _core.Table, info: RunInfo, component: str = "particles") -> None:
        self._core = core
        self._info = info
        self._component = component

    @property
    def info(self) -> RunInfo:
        """The snapshot's run information."""
        return self._info

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in the order of the file."""
        return list(self._core.fields)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._core.rows)

    def __repr__(self) -> str:
        """Return one line: rows and fields."""
        fields, name = ", ".join(self.fields), self._component.replace("/", " ")
        return f"<ambar.Particles: {len(self):,} {name}, fields {fields}>"

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
            fields = [name for name in known if name not in _BOOKKEEPING]
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
        """Return all rows as a Dataset with the dimension "row"."""
        return self.read().to_xarray()

    def to_yt(self) -> Any:
        """Return a yt particle dataset in memory; fields are ("io", "particle_mass") and so on.

        Needs yt, and particles in three dimensions (UnsupportedError otherwise).
        """
        from ambar.snapshot.yt_dataset import particles_to_yt

        return particles_to_yt(self)

"""One output of a simulation, from a store or straight from its code's files: the same object."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ambar import _core
from ambar._util.properties import cached_property
from ambar.snapshot.amr import Amr
from ambar.snapshot.particles import Particles
from ambar.snapshot.run_info import RunInfo, info_of
from ambar.store.group_description import Description

if TYPE_CHECKING:
    import xarray as xr

    from ambar.store.store import Store

# RAMSES' components of cells, and AMReX' only one.
AMR_COMPONENTS = ("hydro", "gravity", "rt", "cells")
TABLE_COMPONENTS = ("particles", "sinks", "clumps")
# AMReX' species are components of their own: "particles/DM".
_SPECIES = "particles/"


class Source(Protocol):
    """Where a snapshot's data come from."""

    @property
    def location(self) -> str:
        """The file or folder, with the step of a series."""

    @property
    def info(self) -> RunInfo:
        """The run information."""

    @property
    def components(self) -> Mapping[str, list[str]]:
        """The components there are, and their fields."""

    @property
    def missing(self) -> Mapping[str, str]:
        """The components there are not, and why."""

    def amr(self) -> _core.Amr:
        """Return the cells."""

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""


class StoredSource:
    """A snapshot in a store, at `path`: the root, or a step of a series."""

    def __init__(self, store: Store, path: str, attributes: Mapping[str, Any]) -> None:
        self.store = store
        self.path = path.rstrip("/")
        self.location = store.location + (f" {path}" if self.path else "")
        try:
            self.info = info_of(attributes.get("source"), attributes["info"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _core.CorruptError(
                f"{self.location}: the attributes are not those of a snapshot: {error!r}"
            ) from error
        about = Description({"components": {}, "missing": {}, **attributes}, self.location)
        components, missing = about.object("components"), about.object("missing")
        self.components = {name: list(components.texts(name)) for name in components}
        self.missing: Mapping[str, str] = {name: missing.text(name) for name in missing}

    def amr(self) -> _core.Amr:
        """Return the cells."""
        return self.store._core.amr(f"{self.path}/amr")

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""
        return self.store._core.table(f"{self.path}/{name}")


class Snapshot:
    """One output of a simulation.

    `info` and `components` are known when it is opened; `amr`, `particles`, `sinks` and `clumps`
    open a component, and raise KeyError with the reason if the output lacks it. Values are
    read when a method of these asks for them.
    """

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def location(self) -> str:
        """The file or folder it comes from, with the step of a series."""
        return self._source.location

    @property
    def info(self) -> RunInfo:
        """Box, time, cosmology, levels, units: no data are read."""
        return self._source.info

    @property
    def stored_at(self) -> tuple[Store, str] | None:
        """The store it lies in, and the path of its group there; None for a code's own files."""
        if isinstance(self._source, StoredSource):
            return self._source.store, self._source.path or "/"
        return None

    @property
    def components(self) -> dict[str, list[str]]:
        """The components there are and their fields.

        Of RAMSES hydro, gravity, rt, particles, sinks, clumps; of AMReX cells, and a component for
        each species of particles, such as particles/DM.
        """
        return {name: list(fields) for name, fields in self._source.components.items()}

    @property
    def missing(self) -> dict[str, str]:
        """The components there are not, and why."""
        return dict(self._source.missing)

    @property
    def namelist(self) -> str:
        """The run's namelist as text; empty where the output has none."""
        return self.info.namelist

    @cached_property
    def amr(self) -> Amr:
        """The leaf cells of all levels, with all fields on cells."""
        if not any(name in self._source.components for name in AMR_COMPONENTS):
            raise self._absent("cells", *AMR_COMPONENTS)
        return Amr(self._source.amr(), self.info)

    @property
    def particles(self) -> Particles:
        """Particles of all families; of AMReX the only species, else see `species`."""
        if "particles" in self._source.components or not self.species:
            return self._rows("particles")
        if len(self.species) > 1:
            raise _core.InvalidError(
                f"{self.location}: there are several species: {', '.join(self.species)}; take one "
                "of snapshot.species"
            )
        return next(iter(self.species.values()))

    @property
    def species(self) -> dict[str, Particles]:
        """The species of an AMReX run's particles, by name; empty for other codes."""
        names = [name for name in self._source.components if name.startswith(_SPECIES)]
        return {name.removeprefix(_SPECIES): self._rows(name) for name in names}

    @property
    def sinks(self) -> Particles:
        """Sink particles."""
        return self._rows("sinks")

    @property
    def clumps(self) -> Particles:
        """Clumps, as RAMSES' clump finder wrote them."""
        return self._rows("clumps")

    def to_xarray(self) -> xr.DataTree:
        """Return everything as a DataTree, loaded: cells in /amr, rows in /particles and so on.

        ``xarray.open_datatree(path, engine="ambar")`` opens a store without loading it.
        """
        import xarray as xr

        tree = {}
        if any(name in self._source.components for name in AMR_COMPONENTS):
            tree["/amr"] = self.amr.to_xarray()
        for name in self._source.components:
            if name in TABLE_COMPONENTS or name.startswith(_SPECIES):
                rows = self._rows(name).to_xarray()
                dimension = name.removeprefix(_SPECIES)
                tree[f"/{name}"] = rows.rename_dims(dict.fromkeys(rows.sizes, dimension))
        return xr.DataTree.from_dict(tree)

    def to_yt(self) -> Any:
        """Return a yt dataset in memory: of the cells, or where there are none, of the particles.

        ``snapshot.amr.to_yt()`` and ``snapshot.particles.to_yt()`` give either. Units, gamma and
        cosmology are those of yt's own reader of RAMSES; ("gas", "temperature") is T/mu. Fields
        whose unit is not known, such as photon densities, are dimensionless, in code units. A
        warning lists the components that are left out.
        """
        has_cells = any(name in self._source.components for name in AMR_COMPONENTS)
        if not has_cells:
            return self.particles.to_yt()
        dataset = self.amr.to_yt()
        tables = [name for name in self._source.components if name in TABLE_COMPONENTS]
        if tables:
            warnings.warn(
                f"to_yt leaves out {', '.join(tables)}: a dataset of yt has the cells alone; "
                "snapshot.particles.to_yt() returns one of the particles, and "
                "snapshot.sinks.read() and snapshot.clumps.read() tables",
                stacklevel=2,
            )
        return dataset

    def __repr__(self) -> str:
        """Return a few lines: where it is, what it has, box and time."""
        lines = [f"<ambar.Snapshot: {self.location}>"]
        lines += [f"  {name:<11} {text}" for name, text in self.info.summary()[:3]]
        for name, fields in self._source.components.items():
            lines.append(f"  {name:<11} {', '.join(fields)}")
        if self.missing:
            lines.append(f"  {'missing':<11} {', '.join(self.missing)}")
        return "\n".join(lines)

    def _rows(self, name: str) -> Particles:
        if name not in self._tables:
            core = self._source.table(name) if name in self._source.components else None
            if core is None:
                raise self._absent(name, name)
            self._tables[name] = Particles(core, self.info, name)
        return self._tables[name]

    @cached_property
    def _tables(self) -> dict[str, Particles]:
        return {}

    def _absent(self, what: str, *components: str) -> Exception:
        reasons = [self.missing[name] for name in components if name in self.missing]
        there = ", ".join(self._source.components) or "nothing"
        why = "; ".join(dict.fromkeys(reasons)) or f"there is: {there}"
        return _core.NotFoundError(f"{self.location}: no {what}: {why}")

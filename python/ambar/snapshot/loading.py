"""Snapshots in memory: the fields, the region and the levels that are loaded of another one."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ambar import _core
from ambar._util.arguments import names_of
from ambar._util.text import suggestion
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.field_names import CELL_COMPONENTS, DERIVED, resolve
from ambar.snapshot.regions import Region, check_max_level, checked_levels, region_in_code

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import StoredFields
    from ambar.snapshot.run_info import RunInfo
    from ambar.snapshot.units import Units

TABLE_COMPONENTS = ("particles", "sinks", "clumps")
SPECIES = "particles/"
"""Start of the component of a species of particles: "particles/DM"."""
HALOS = "halos/"
"""Start of the component of a catalogue of halos: "halos/groups"."""


def has_cells(components: Iterable[str]) -> bool:
    """Whether one of the components has cells."""
    return any(name in CELL_COMPONENTS for name in components)


def is_table(component: str) -> bool:
    """Whether a component is a table of rows: particles, sinks, clumps or halos."""
    return component in TABLE_COMPONENTS or component.startswith((SPECIES, HALOS))


class Source(ABC):
    """The data of a snapshot: files of a simulation code, a store, or memory. Pickles."""

    location: str
    """The file or folder, with the step of a series."""
    info: RunInfo
    components: Mapping[str, list[str]]
    """The available components, and their fields."""
    missing: Mapping[str, str]
    """Unavailable components, and the reasons."""

    @abstractmethod
    def amr(self) -> _core.Amr:
        """Return the cells."""

    @abstractmethod
    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""

    def stored_fields(self, group: str) -> StoredFields | None:  # noqa: ARG002
        """Return the arrays of "amr" or of a component; None for data that are not in a store."""
        return None

    def load_amr(self, request: LoadRequest) -> _core.Amr:
        """Return cells in memory.

        Raises UnsupportedError for `levels` of patches, and for a `max_level` of a tree.
        """
        core = self.amr()
        if core.layout == "patches":
            if request.levels is not None:
                raise _core.UnsupportedError(
                    f"{self.location}: levels={request.levels} selects leaf cells, but a level of "
                    "patches is loaded with its covered cells, which would become leaves; use "
                    "max_level, or read one table with snapshot.amr.read(levels=...)"
                )
        elif request.max_level is not None and request.max_level < core.levels[1]:
            raise _core.UnsupportedError(
                f"{self.location}: max_level={request.max_level} needs the values of refined "
                f"cells, but only leaf cells are available (to level {core.levels[1]}); load the "
                f"RAMSES output, or convert it with max_level={request.max_level}"
            )
        last = request.max_level if core.layout == "patches" else None
        region = request.code_region(self.info)
        return core.load(request.cell_fields, region, request.levels, last, request.threads)

    def load_table(self, name: str, request: LoadRequest) -> _core.Table | None:
        """Return particles, sinks or clumps in memory."""
        core = self.table(name)
        if core is None:
            return None
        region = request.code_region(self.info)
        return core.load(request.components[name], region, request.threads)


class SourceWithUnits(Source):
    """A snapshot with the code units that the caller gave."""

    def __init__(self, source: Source, units: Units) -> None:
        self.source = source
        self._units = units
        self.location = source.location
        self.components = source.components
        self.missing = source.missing
        self.info = source.info.with_units(units)

    def __reduce__(self) -> tuple[object, tuple[Source, Units]]:
        return SourceWithUnits, (self.source, self._units)

    def amr(self) -> _core.Amr:
        """Return the cells."""
        return self.source.amr()

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""
        return self.source.table(name)

    def stored_fields(self, group: str) -> StoredFields | None:
        """Return the arrays of "amr" or of a component."""
        return self.source.stored_fields(group)

    def load_amr(self, request: LoadRequest) -> _core.Amr:
        """Return cells in memory."""
        return self.source.load_amr(request)

    def load_table(self, name: str, request: LoadRequest) -> _core.Table | None:
        """Return particles, sinks or clumps in memory."""
        return self.source.load_table(name, request)


@dataclass(frozen=True)
class LoadRequest:
    """What `Snapshot.load` loads."""

    components: dict[str, list[str]]
    """Components, and the fields of each."""
    region: Region | None = None
    levels: tuple[int, int] | None = None
    max_level: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError or TypeError for invalid levels."""
        checked_levels(self.levels)
        check_max_level(self.max_level)

    def code_region(self, info: RunInfo) -> _core.Region | None:
        """Return the region in code length."""
        return region_in_code(self.region, info)

    @property
    def cell_fields(self) -> list[str]:
        """The fields of cells."""
        named = (self.components.get(name, ()) for name in CELL_COMPONENTS)
        return [field for fields in named for field in fields]


class LoadedSource(Source):
    """A snapshot in memory. Pickles as its source and the request, not as the values."""

    def __init__(self, source: Source, request: LoadRequest) -> None:
        self._source = source
        self._request = request
        self.location = source.location
        self.components = request.components
        self.missing = source.missing
        self.info = source.info
        self._amr: _core.Amr | None = None
        if has_cells(request.components):
            self._amr = source.load_amr(request)
            self.info = _info_of_loaded(source.info, self._amr)
        self._tables = {
            name: source.load_table(name, request)
            for name in request.components
            if name not in CELL_COMPONENTS
        }

    def __reduce__(self) -> tuple[object, tuple[Source, LoadRequest]]:
        return LoadedSource, (self._source, self._request)

    def amr(self) -> _core.Amr:
        """Return the cells."""
        if self._amr is None:
            raise _core.NotFoundError(f"{self.location}: no cells were loaded")
        return self._amr

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""
        return self._tables[name]


def _info_of_loaded(info: RunInfo, core: _core.Amr) -> RunInfo:
    """Return the run information, for patches with the levels and boxes that were loaded."""
    if not isinstance(info, AmrexInfo | CodeInfo) or core.layout != "patches":
        return info
    levels = []
    for number, level in enumerate(info.levels):
        try:
            boxes = core.boxes(number)
        except ValueError:  # this level and finer ones were not loaded
            break
        cells = int((boxes[:, 1] - boxes[:, 0]).prod(axis=1).sum())
        levels.append(dataclasses.replace(level, boxes=len(boxes), cells=cells))
    levels[-1] = dataclasses.replace(levels[-1], ratio=(1,) * info.ndim)
    if isinstance(info, CodeInfo):
        return dataclasses.replace(info, levels=tuple(levels))
    return dataclasses.replace(info, levels=tuple(levels), steps=info.steps[: len(levels)])


def choose_fields(source: Source, fields: Sequence[str] | str | None) -> dict[str, list[str]]:
    """Return the components and fields that `fields` names; all if it is None.

    Raises
    ------
    KeyError
        If a component or field does not exist.
    ValueError
        If cells are chosen together with a name such as "x", which is a derived column of cells and
        a field of particles.
    """
    available = source.components
    if fields is None:
        return {name: list(known) for name, known in available.items()}
    chosen: dict[str, set[str]] = {}
    derived: dict[str, str] = {}
    for entry in names_of("fields", fields):
        found = _named(entry, available)
        if not found:
            raise _unknown(source, entry)
        for name, names in found.items():
            chosen.setdefault(name, set()).update(names)
        if entry in DERIVED and not has_cells(found):
            derived[entry] = next(iter(found))
    if derived and has_cells(chosen):
        entry, owner = next(iter(derived.items()))
        owner = owner.partition("/")[0]  # of all species
        raise _core.InvalidError(
            f"{source.location}: {entry!r} is a derived column of cells, which snapshot.amr.read "
            f"returns without loading it; leave it out, or write {f'{owner}/{entry}'!r}"
        )
    return {
        name: [field for field in known if field in chosen[name]]
        for name, known in available.items()
        if name in chosen
    }


def choose_components(source: Source, names: Sequence[str] | str | None) -> list[str]:
    """Return the components that `names` lists; all if it is None. Raises KeyError."""
    available = source.components
    if names is None:
        return list(available)
    chosen: set[str] = set()
    for name in names_of("components", names):
        found = _components(name, available)
        if not found:
            raise _unknown(source, name)
        chosen.update(found)
    return [name for name in available if name in chosen]


def _components(name: str, available: Iterable[str]) -> list[str]:
    """Return the components that `name` means: one, all of cells, or all species."""
    if name in available:
        return [name]
    if name == "cells":
        return [one for one in available if one in CELL_COMPONENTS]
    if name == "particles":
        return [one for one in available if one.startswith(SPECIES)]
    return [one for one in available if one == SPECIES + name]


def _named(entry: str, available: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the fields by component of "particles", "particles/mass", "mass" or "rho".

    Names of fields of plotfiles may contain a slash.
    """
    if components := _components(entry, available):
        return {name: available[name] for name in components}
    owner, slash, field = entry.rpartition("/")
    if slash and (whole := {name: [entry] for name in available if entry in available[name]}):
        return whole
    components = _components(owner, available) if slash else list(available)
    found = {name: resolve(field, available[name]) for name in components}
    return {name: [full] for name, full in found.items() if full in available[name]}


def _unknown(source: Source, entry: str) -> Exception:
    owner = entry.rpartition("/")[0]
    for name in (entry, SPECIES + entry, owner, SPECIES + owner):
        if name in source.missing:
            return _core.NotFoundError(f"{source.location}: no {name}: {source.missing[name]}")
    available = source.components
    known = [*available, *dict.fromkeys(field for names in available.values() for field in names)]
    is_of_cells = owner in ("", "cells", *CELL_COMPONENTS) and has_cells(available)
    plain = entry.rpartition("/")[2]
    if is_of_cells and resolve(plain, DERIVED) in DERIVED:
        # Fields of files that are named as derived columns have another name in ambar.
        renamed = f"{plain}_field"
        hint = f", or give {renamed!r}, the field of the files" if renamed in known else ""
        return _core.NotFoundError(
            f"{source.location}: {entry!r} is a derived column of cells, which snapshot.amr.read "
            f"returns without loading it; leave it out{hint}"
        )
    return _core.NotFoundError(
        f"{source.location}: no component or field {entry!r}; {suggestion(entry, known)}"
    )

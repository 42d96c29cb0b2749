"""Copies of snapshots: some components, fields, levels, or a region of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.progress import Progress
from ambar._util.user_warnings import warn
from ambar.snapshot.copies.particle_grids import (
    columns_of_files,
    has_grids,
    write_with_grids,
)
from ambar.snapshot.copies.patch_part import PatchPart
from ambar.snapshot.copies.patch_values import PatchValues
from ambar.snapshot.copies.stored_group import (
    BOUNDS,
    ORDER,
    StoredGroup,
    entries_of,
    only_fields,
)
from ambar.snapshot.field_names import CELL_COMPONENTS
from ambar.snapshot.loading import (
    SPECIES,
    TABLE_COMPONENTS,
    choose_components,
    choose_fields,
    has_cells,
    is_table,
)
from ambar.snapshot.regions import Levels, Region, checked_levels, region_in_code
from ambar.snapshot.snapshot import StoredSource
from ambar.store.copies.arrays import bounded_already
from ambar.store.copies.copier import Copier
from ambar.store.error_bounds import (
    ErrorBound,
    added_bounds,
    as_text,
    listed_bounds,
    select_bounds,
)
from ambar.store.store import Store
from ambar.store.writer import Profile, Writer, create

_WRITTEN = frozenset(
    {
        *("version", "kind", "layout", "ndim", "root", "lattice_level", "boxlen", "cells"),
        *("arrays", "cells_per_level", "fields", "columns", "positions", "levels", *BOUNDS),
    }
)
"""Attributes of a group that its writer makes."""
_PARTS = ("amr", *TABLE_COMPONENTS, "halos", "source")
"""The groups of a snapshot; others are copied verbatim."""
LAYOUT, RUN = _LAYOUTS = ("layout", "run")
"""The arrays in the group `source` that describe the files of cells in patches."""


@dataclass(frozen=True, kw_only=True)
class SnapshotSelection:
    """The part of a snapshot that is copied, and how it is encoded."""

    components: Sequence[str] | None = None
    fields: Sequence[str] | None = None
    levels: Levels | None = None
    region: Region | None = None
    profile: Profile | None = None
    error_bound: ErrorBound | None = None


def copy_snapshot(
    source: Store,
    path: str,
    writer: Writer,
    to: str,
    selection: SnapshotSelection,
    scratch: Path,
    report: Progress | None,
) -> None:
    """Copy the snapshot in the group `path` of a store, or a part of it, to the group `to`.

    Groups with a new bound, and those that a region or levels cut, are encoded again. All others
    are copied verbatim, or encoded with the profile.

    Raises
    ------
    KeyError
        If a component or a field does not exist; if a bound is given for a field that is not
        copied.
    ValueError
        If no cell is selected; if the bounds of the source and of the copy cannot be added.
    UnsupportedError
        If a part of cells in patches has fields that are not floats, or levels that are not boxes.
    """
    if selection == SnapshotSelection():
        copier = Copier(source, writer, None, report)
        copier.add(path, to)
        copier.finish()
        return
    _SnapshotCopy(source, path, writer, to, selection, scratch, report).write()


class _SnapshotCopy:
    """The copy of one snapshot."""

    def __init__(
        self,
        source: Store,
        path: str,
        writer: Writer,
        to: str,
        selection: SnapshotSelection,
        scratch: Path,
        report: Progress | None,
    ) -> None:
        self._scratch = scratch
        self._store = source
        self._path = path.strip("/")
        self._writer = writer
        self._to = to.strip("/")
        self._selection = selection
        self._report = report
        self._source = StoredSource(source, f"/{self._path}")
        self._levels = checked_levels(selection.levels)
        self._region = region_in_code(selection.region, self._source.info)
        self._rules = listed_bounds(selection.error_bound)
        self._used = {"*"}
        self._copier = Copier(source, writer, selection.profile, report)
        self._chosen = self._choose()
        self._part = self._patch_part()

    def _patch_part(self) -> PatchPart | None:
        """Return the part of cells in patches that is copied; None for all, and for trees."""
        is_all = self._levels is None and self._region is None
        if is_all or not has_cells(self._chosen):
            return None
        group = StoredGroup(self._store, self._at(self._path, "amr"))
        if not group.is_patches:
            return None
        values = PatchValues(self._source.amr(), group)
        location = self._source.location
        part = PatchPart(values, group.own, self._levels, self._region, location)
        return None if part.is_whole else part

    def _choose(self) -> dict[str, list[str]]:
        """Return the fields to copy by component, with those that a copy cannot do without."""
        components = choose_components(self._source, self._selection.components)
        fields = choose_fields(self._source, self._selection.fields)
        chosen = {
            name: self._with_required(name, fields[name]) for name in components if name in fields
        }
        if not chosen:
            raise _core.InvalidError(
                f"{self._source.location}: expected fields of the components "
                f"{', '.join(components) or 'of the snapshot'}, found {self._selection.fields!r}; "
                "give fields and components that belong together"
            )
        return chosen

    def _with_required(self, component: str, fields: list[str]) -> list[str]:
        if component in CELL_COMPONENTS:
            return fields
        group = StoredGroup(self._store, self._at(self._path, component))
        of_files = columns_of_files(self._source.info, group.fields)
        kept = group.required | of_files | set(fields)
        return [field for field in self._source.components[component] if field in kept]

    def write(self) -> None:
        """Write the copy; the attributes of the snapshot come last."""
        self._copier.set_attributes(self._to, self._attributes())
        cells = [field for name in CELL_COMPONENTS for field in self._chosen.get(name, ())]
        if cells:
            self._write_group("amr", cells, "")
        for name, fields in self._chosen.items():
            if name not in CELL_COMPONENTS:
                self._write_group(name, fields, name)
        for path, _ in self._store._core.children(f"/{self._path}"):
            name = path.rpartition("/")[2]
            if name not in _PARTS:
                self._copier.add(path, self._at(self._to, name))
        self._write_source(bool(cells))
        self._check_bounds()
        self._copier.finish()

    def _attributes(self) -> dict[str, Any]:
        attributes = self._store._attributes(self._path)
        own = attributes["ambar"]
        if self._part is not None:
            own["info"] = self._part.info(own["info"])
        if self._is_part(own["components"]):
            # The size of the source is to be compared with the size of a store of all of it.
            own.get("source", {}).pop("bytes", None)
        return {**attributes, "ambar": {**own, "components": self._chosen}}

    def _is_part(self, components: Mapping[str, Sequence[str]]) -> bool:
        """Whether anything of the source is not in the copy."""
        is_cut = self._levels is not None or self._region is not None
        return is_cut or {k: list(v) for k, v in components.items()} != self._chosen

    def _at(self, base: str, *names: str) -> str:
        return "/".join(filter(None, [base, *names]))

    def _write_group(self, name: str, fields: list[str], component: str) -> None:
        """Write the group of the cells or of a table with some of its fields."""
        group = StoredGroup(self._store, self._at(self._path, name))
        kept = set(fields) | group.required
        if self._selection.fields is None:
            # Columns of no component, such as the domain of each cell.
            known = {field for names in self._source.components.values() for field in names}
            kept.update(set(group.fields) - known)
        fields = [field for field in group.fields if field in kept]
        to = self._at(self._to, name)
        bounds = {field: self._bounds_of(group, field, component) for field in fields}
        bounds = {field: found for field, found in bounds.items() if found}
        is_cut = self._region is not None or (self._levels is not None and not component)
        if is_cut:
            self._warn_of_exact_fields(group, fields, bounds, component)
        if self._part is not None and component and has_grids(self._source.info, fields):
            self._write_particles(self._part, group, to, fields, bounds)
        elif self._part is not None and group.is_patches:
            self._write_patches(self._part, group, to, fields, bounds)
        elif is_cut and not group.is_patches:
            self._encode(group, to, self._writer, fields, bounds)
        elif not bounds:
            self._copy_group(group, to, fields)
        elif group.is_patches or len(bounds) == len(fields):
            self._encode(group, to, self._writer, fields, bounds)
        else:
            self._encode_some(group, to, fields, bounds)

    def _copy_group(self, group: StoredGroup, to: str, fields: list[str]) -> None:
        if fields == group.fields:
            self._copier.add(group.path, to)
            return
        places = [group.fields.index(field) for field in fields]
        for path in group.arrays(fields):
            self._copier.add(path, to + path.removeprefix(group.path))
        for path in group.ranges:
            _write_ranges(
                self._writer, to + path.removeprefix(group.path), self._store, path, places
            )
        for path in group.groups:
            attributes = self._store._attributes(path)
            if path == group.path:
                attributes["ambar"] = group.attributes_of(fields)
            self._copier.set_attributes(to + path.removeprefix(group.path), attributes)

    def _write_patches(
        self,
        part: PatchPart,
        group: StoredGroup,
        to: str,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
    ) -> None:
        """Write a part of cells in patches; whole levels without a new bound are copied."""
        if bounds or not part.has_whole_levels:
            self._encode_patches(part.patches(fields), group, to, self._writer, fields, bounds)
            return
        last = len(part.levels) - 1
        has_dropped = not set(fields).isdisjoint(group.own["levels"][last]["dropped"])
        copied = range(last if has_dropped else last + 1)
        self._copy_levels(group, to, fields, copied)
        own = group.attributes_of(fields)
        if has_dropped:
            # The covered cells of the finest level have become leaves.
            own["levels"][last] = self._encode_level(part, group, to, fields, last)
        own["levels"] = own["levels"][: last + 1]
        own["levels"][last] |= {"ratio": [1] * part.ndim, "dropped": []}
        counts = {level: n for level, n in own["cells_per_level"].items() if int(level) < last}
        counts[str(last)] = part.levels[last].cells
        own |= {"cells_per_level": counts, "cells": sum(counts.values())}
        attributes = self._store._attributes(group.path)
        self._copier.set_attributes(to, {**attributes, "ambar": own})

    def _encode_patches(
        self,
        patches: _core.Patches,
        group: StoredGroup,
        to: str,
        writer: Writer,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
    ) -> None:
        """Encode cells in patches that are read on demand."""
        writer._core.patches(
            f"/{to}",
            patches,
            fields=None,
            covered="auto",
            error_bounds=[bound for found in bounds.values() for bound in found],
            progress=self._report,
        )
        attributes = writer._core.attributes(f"/{to}")
        attributes["ambar"] |= self._more(group, fields)
        writer._core.set_attributes(f"/{to}", attributes)
        self._state_bounds(group, to, writer, fields)

    def _encode_level(
        self, part: PatchPart, group: StoredGroup, to: str, fields: list[str], level: int
    ) -> dict[str, Any]:
        """Encode all cells of a level; return its attributes."""
        with TemporaryDirectory(prefix=".ambar-", dir=self._scratch) as scratch:
            place = Path(scratch, "level.ambar")
            profile = self._selection.profile or "balanced"
            with create(place, profile=profile, fsync=False) as writer:
                patches = part.patches(fields, [level])
                self._encode_patches(patches, group, group.path, writer, fields, {})
            made = StoredGroup(Store._open(place), group.path)
            copier = Copier(made.store, self._writer)
            source, target = f"{made.path}/level_0", f"{to}/level_{level}"
            names = {made.array_name(field): group.array_name(field) for field in fields}
            for path in made.arrays(fields):
                name = path.removeprefix(f"{source}/")
                copier.add(path, f"{target}/{names.get(name, name)}")
            copier.finish()
            return dict(made.own["levels"][0])

    def _copy_levels(
        self, group: StoredGroup, to: str, fields: list[str], levels: Sequence[int]
    ) -> None:
        """Copy some of the fields of the first levels verbatim, or with the profile."""
        places = [group.fields.index(field) for field in fields]
        bases = tuple(f"{group.path}/level_{level}/" for level in levels)
        for path in group.arrays(fields):
            if path.startswith(bases):
                self._copier.add(path, to + path.removeprefix(group.path))
        for path in group.ranges:
            if path.startswith(bases):
                at = to + path.removeprefix(group.path)
                _write_ranges(self._writer, at, self._store, path, places)

    def _write_particles(
        self,
        part: PatchPart,
        group: StoredGroup,
        to: str,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
    ) -> None:
        """Write particles of a part of the boxes, with the boxes that they belong to."""
        if self._region is None and not bounds:
            write_with_grids(group, fields, part, self._copier, to)
            return
        with TemporaryDirectory(prefix=".ambar-", dir=self._scratch) as scratch:
            place = Path(scratch, "particles.ambar")
            with create(place, fsync=False) as writer:
                self._encode(group, group.path, writer, fields, bounds)
            made = StoredGroup(Store._open(place), group.path)
            copier = Copier(made.store, self._writer)
            write_with_grids(made, made.fields, part, copier, to)
            copier.finish()

    def _more(self, group: StoredGroup, fields: list[str]) -> dict[str, Any]:
        """Return the attributes of a group that its writer does not make."""
        more = {key: value for key, value in group.own.items() if key not in _WRITTEN}
        if "components" in more:
            more["components"] = only_fields(more["components"], set(fields))
        return more

    def _encode(
        self,
        group: StoredGroup,
        to: str,
        writer: Writer,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
    ) -> None:
        """Encode the selected cells or rows of a group again."""
        more = self._more(group, fields)
        listed = [bound for found in bounds.values() for bound in found]
        profile = self._selection.profile or "balanced"
        options: dict[str, Any] = {
            "profile": profile,
            "bounds": listed,
            "region": self._region,
            "progress": self._report,
        }
        if group.is_patches:
            # All boxes are copied: parts of them have another writer.
            amr = self._store._core.amr(f"/{group.path}")
            writer._core.cells(f"/{to}", amr, fields, more, **{**options, "region": None})
        elif group.kind == "amr":
            amr = self._store._core.amr(f"/{group.path}")
            writer._core.cells(f"/{to}", amr, fields, more, levels=self._levels, **options)
        else:
            table = self._store._core.table(f"/{group.path}")
            if self._region is not None:
                fields, more = _without_order(fields, more)
            writer._core.rows(f"/{to}", table, fields, more, **options)
        self._state_bounds(group, to, writer, fields)

    def _state_bounds(self, group: StoredGroup, to: str, writer: Writer, fields: list[str]) -> None:
        """State the errors of fields that had an error bound before."""
        attributes = writer._core.attributes(f"/{to}")
        own = attributes["ambar"]
        for field in fields:
            old = group.own.get("error_bounds", {}).get(field)
            new = own.get("error_bounds", {}).get(field)
            if old is None:
                continue
            for key in BOUNDS:
                stored = own.setdefault(key, {})
                if new is None:
                    stored.update(entries_of(group.own.get(key, {}), field))
                elif key == "error_bounds":
                    stored[field] = added_bounds(old, new)
                    if stored[field] == math.inf:
                        raise _core.InvalidError(
                            f"{self._store.location}: {field} has the error bound {old!r}, and "
                            f"the sum with a second one, {new!r}, exceeds the largest number; give "
                            "a smaller bound"
                        )
                else:
                    for name in entries_of(stored, field):
                        del stored[name]
        attributes["ambar"] = {k: v for k, v in own.items() if k not in BOUNDS or v}
        writer._core.set_attributes(f"/{to}", attributes)

    def _encode_some(
        self,
        group: StoredGroup,
        to: str,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
    ) -> None:
        """Encode the fields with a new bound, and copy the others verbatim."""
        with TemporaryDirectory(prefix=".ambar-", dir=self._scratch) as scratch:
            place = Path(scratch, "bounded.ambar")
            required = group.required & set(fields)
            bounded = [field for field in fields if field in bounds or field in required]
            with create(place, fsync=False) as writer:
                self._encode(group, group.path, writer, bounded, bounds)
            store = Store._open(place)
            made = StoredGroup(store, group.path)
            others = [field for field in fields if field not in bounds]
            if made.chunks != group.chunks:
                # Another writer has cut the rows otherwise, and columns need equal chunks.
                self._encode(group, to, self._writer, fields, bounds)
                return
            copier = Copier(store, self._writer, None, self._report)
            for path in made.arrays([field for field in bounded if field in bounds]):
                copier.add(path, to + path.removeprefix(group.path))
            copier.finish()
            for field in others:
                self._copier.add(f"{group.path}/{field}", f"{to}/{field}")
            parts = [(made if field in bounds else group, field) for field in fields]
            if group.ranges:
                rows = [
                    part.store._array(f"{group.path}/index/range")[part.fields.index(field)]
                    for part, field in parts
                ]
                _write_range(self._writer, f"{to}/index/range", group, np.array(rows))
            own = {**made.own, group.names_key: fields}
            for key in BOUNDS:
                joined: dict[str, Any] = {}
                for part, field in parts:
                    joined.update(entries_of(part.own.get(key, {}), field))
                own = {**own, key: joined} if joined else own
            if "components" in group.own:
                own["components"] = only_fields(group.own["components"], set(fields))
            for path in made.groups:
                attributes = store._attributes(path)
                if path == group.path:
                    attributes["ambar"] = own
                self._copier.set_attributes(to + path.removeprefix(group.path), attributes)

    def _bounds_of(self, group: StoredGroup, field: str, component: str) -> list[tuple[str, str]]:
        """Return the new bounds of a field, by the field and the part of it."""
        rules = [rule for rule in self._rules if _applies(rule[0], component)]
        plain = component.removeprefix(SPECIES)
        names = [field] if not component else [f"{component}/{field}", f"{plain}/{field}", field]
        if not component:
            names += [f"{name}/{field}" for name in CELL_COMPONENTS if name in self._chosen]
        parts = select_bounds(rules, names) if rules else None
        for target, bound in rules:
            if select_bounds([(target, bound)], names) is not None:
                self._used.add(target)
        if parts is None:
            return []
        is_named = any(
            "*" not in target and select_bounds([(target, bound)], names) is not None
            for target, bound in rules
        )
        if group.dtype(field) not in ("float32", "float64") and not is_named:
            return []
        found = []
        for part in parts:
            whole = part.levels is None and part.region is None
            target = field if whole else f"{field}@{part.target.partition('@')[2]}"
            found.append((target, str(part.bound)))
        if all(_core.bound_parts(bound)[0] == "lossless" for _, bound in found):
            return []
        self._check_sum(group, field, [bound for _, bound in found])
        return found

    def _check_sum(self, group: StoredGroup, field: str, bounds: list[str]) -> None:
        """Raise ValueError if the bound of the source and the new one cannot be added."""
        old = group.own.get("error_bounds", {}).get(field)
        kinds = {_core.bound_parts(bound)[0] for bound in bounds} - {"lossless"}
        if old is None:
            return
        is_relative = _core.bound_parts(as_text(old))[0] == "relative"
        if kinds <= ({"relative"} if is_relative else {"absolute", "of range"}) and (
            is_relative or isinstance(old, (int, float))
        ):
            return
        raise bounded_already(self._store, field, old)

    def _warn_of_exact_fields(
        self,
        group: StoredGroup,
        fields: list[str],
        bounds: Mapping[str, list[tuple[str, str]]],
        component: str,
    ) -> None:
        """Warn of fields with an error bound, of which a part is stored without further loss."""
        has_whole_levels = self._part is not None and self._part.has_whole_levels
        is_verbatim = group.is_patches and (self._part is None or has_whole_levels)
        known, owner = group.own.get("error_bounds", {}), component and f"{component}/"
        exact = [f"{owner}{one}" for one in fields if known.get(one) and one not in bounds]
        if is_verbatim or not exact:
            return
        warn(
            f"{self._source.location}: the copied part of {', '.join(exact)} is stored without "
            "further loss, because the errors of two bounds add up. It needs more bytes than with "
            "an error bound. With an error bound for this copy, it is encoded within that bound, "
            "and the store states the sum of both"
        )

    def _check_bounds(self) -> None:
        """Raise KeyError for a bound of a field or column that is not copied."""
        tables = {name for name in self._chosen if is_table(name)}
        for target, _ in self._rules:
            if target not in self._used:
                _core.refuse_bound_of(
                    "such a field",
                    target.partition("@")[0],
                    [
                        f"{component.removeprefix(SPECIES)}/{field}"
                        if component in tables
                        else field
                        for component, fields in self._chosen.items()
                        for field in fields
                    ],
                )

    def _write_source(self, has_cells: bool) -> None:
        """Write what exports of files need: only of a whole snapshot, or of cells in patches."""
        selection, group = self._selection, self._at(self._path, "source")
        limits = (selection.fields, selection.components, selection.levels, self._region)
        is_whole = all(limit is None for limit in limits)
        for child, _ in self._store._core.children(f"/{group}"):
            name = child.rpartition("/")[2]
            path, to = self._at(group, name), self._at(self._to, "source", name)
            has_all = self._chosen.get("cells") == self._source.components.get("cells")
            is_exact = not any(_applies(target, "") for target, _ in self._rules)
            if name not in _LAYOUTS:
                if is_whole:
                    self._copier.add(path, to)
            elif has_cells and has_all and is_exact and self._part is None:
                self._copier.add(path, to)
            elif has_cells:
                text = self._store._array(path)[:].item()
                if not (has_all and is_exact):
                    # An export computes minima and maxima of values that differ.
                    text = _without_extrema(text)
                if self._part is not None:
                    name, text = _layout_of_part(self._part, name, text)
                    to = self._at(self._to, "source", name)
                values = np.array([text], object)
                self._writer.create_array(to, values, profile=selection.profile)


def _applies(target: str, component: str) -> bool:
    """Whether a target of a bound is one of cells (component ""), or of a table."""
    owner, slash, _ = target.partition("@")[0].rpartition("/")
    if not component:
        return not slash or owner in CELL_COMPONENTS
    if not slash:
        return "*" not in target and "@" not in target
    return owner in (component, component.removeprefix(SPECIES))


def _without_order(fields: list[str], more: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """Return fields and attributes without the order in the files, which a part does not have."""
    order = more.get(ORDER)
    kept = {key: value for key, value in more.items() if key != ORDER}
    return [field for field in fields if field != order], kept


def _write_ranges(writer: Writer, to: str, store: Store, path: str, places: list[int]) -> None:
    array = store._array(path)
    writer.create_array(to, array[:][places], dims=array.dims)


def _write_range(writer: Writer, to: str, group: StoredGroup, values: np.ndarray) -> None:
    writer.create_array(to, values, dims=group.store._array(f"{group.path}/index/range").dims)


def _layout_of_part(part: PatchPart, name: str, text: str) -> tuple[str, str]:
    """Return the name and the text of the array that describes the files of a part."""
    layout = json.loads(text)
    if name != LAYOUT:
        return name, text
    if not part.has_whole_levels:
        return RUN, json.dumps(layout["run"])
    layout["levels"] = layout["levels"][: len(part.levels)]
    for species in layout["species"]:
        species["boxes"] = []  # lists of boxes in files of particles, which are written anew
    return name, json.dumps(layout)


def _without_extrema(text: str) -> str:
    """Return the layout of a plotfile without minima and maxima, which an export computes."""
    layout = json.loads(text)
    for level in layout.get("levels", ()):
        level.pop("extrema", None)
        level.pop("text", None)
    return json.dumps(layout)

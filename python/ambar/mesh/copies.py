"""Copies and merges of meshes: arrays are copied, descriptions refer to their new places."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ambar import _core
from ambar._util.progress import Progress
from ambar.mesh.series import MeshSeries
from ambar.mesh.storage.description import (
    ASSOCIATIONS,
    field_entries,
    select_arrays,
    stored_description,
)
from ambar.mesh.storage.packs import join_streams
from ambar.mesh.storage.references import Description, references_in
from ambar.mesh.storage.temporal_deltas import DeltaWriter, read_row
from ambar.mesh.write import store_description, to_json
from ambar.store.copies.copier import Copier
from ambar.store.copies.merging import joined_times
from ambar.store.copies.selection import Positions, select_names, select_steps, step_name
from ambar.store.store import Store
from ambar.store.writer import Profile, Writer

_DESCRIPTION = ("data", "description", "like", "rows", "digests")
"""Keys of a group of which the copy has others."""
_PARTS = "parts"
"""The group of arrays of a series that come from several steps, or from another store."""


def copy_mesh(
    source: Store,
    writer: Writer,
    *,
    fields: Sequence[str] | None,
    profile: Profile | None,
    report: Progress | None,
) -> None:
    """Copy a mesh, or the mesh with some of the arrays on points and cells and in field data.

    Small arrays, which are stored together, are copied together.

    Raises
    ------
    KeyError
        If no array has a name, or matches a pattern.
    """
    copier = Copier(source, writer, profile, report)
    if fields is None:
        copier.add("/")
    else:
        described = _selected(stored_description(source, ""), fields, source)
        for path in dict.fromkeys(_paths_of(described)):
            copier.add(path)
        attributes = source._attributes("")
        copier.set_attributes("", _with_description(writer, attributes, "", described))
    copier.finish()


def copy_series(
    source: Store,
    writer: Writer,
    *,
    steps: Positions,
    fields: Sequence[str] | None,
    profile: Profile | None,
    report: Progress | None,
) -> None:
    """Copy a series of meshes: some steps, with some of the arrays.

    Raises the errors of `copy_mesh`, and IndexError for a step that does not exist.
    """
    copier = Copier(source, writer, profile, report)
    series = MeshSeries(source)
    chosen = select_steps(range(len(series)), steps, source.location)
    if fields is None and chosen == list(range(len(series))):
        copier.add("/")
    else:
        known = _names([stored_description(source, step_name(number)) for number in chosen])
        wanted = None if fields is None else select_names(known, fields, source.location, "array")
        _copy_steps(copier, chosen, 0, 0, wanted)
        times = [series.times[number] for number in chosen]
        copier.set_attributes("", _series_attributes(source, times))
    copier.finish()


def merge_series(
    stores: Sequence[Store], writer: Writer, existing: Store | None, report: Progress | None
) -> None:
    """Copy the steps of several series of meshes into one, in the order of the stores.

    Raises ValueError if times do not increase, or if only some of the stores have times.
    """
    every = [*([existing] if existing is not None else []), *stores]
    series = [(store.location, MeshSeries(store).times) for store in every]
    times = joined_times(series)
    _check_times(series)
    first = 0 if existing is None else len(MeshSeries(existing))
    part = 0
    if existing is not None and existing._core.kind(f"/{_PARTS}") is not None:
        part = len(existing._core.children(f"/{_PARTS}"))
    for store in stores:
        copier = Copier(store, writer, None, report)
        count = len(MeshSeries(store))
        _copy_steps(copier, range(count), first, part, None)
        copier.finish()
        first, part = first + count, part + 1
    writer._create_group("", _series_attributes(every[0], times))


def _check_times(series: Sequence[tuple[str, Sequence[float | None]]]) -> None:
    """Raise ValueError if only some of several series have times."""
    is_timed = {where: times[-1] is not None for where, times in series if times}
    first = next(iter(is_timed), "")
    for where, has_times in is_timed.items():
        if has_times != is_timed[first]:
            raise _core.InvalidError(
                f"{where}: expected steps {'with' if is_timed[first] else 'without'} times, as in "
                f"{first}, found steps {'with' if has_times else 'without'} them; merge series of "
                "one sort"
            )


def _series_attributes(store: Store, times: list[Any]) -> dict[str, Any]:
    attributes = store._attributes("")
    return {**attributes, "ambar": {**attributes["ambar"], "times": times}}


def _copy_steps(
    copier: Copier, numbers: Sequence[int], first: int, part: int, fields: Sequence[str] | None
) -> None:
    """Copy steps of a series to those from `first` on, and their arrays to a group of their own.

    An array that several steps share is copied once.
    """
    source = copier.source
    described = {}
    for number in numbers:
        description = stored_description(source, step_name(number))
        if fields is not None:
            description = select_arrays(description, dict.fromkeys(ASSOCIATIONS, fields))
        described[number] = copy.deepcopy(description)
    places = _Places(copier, f"{_PARTS}/{part}")
    for number, description in described.items():
        places.count_rows(description, step_name(number))
    for to, (number, description) in enumerate(described.items(), first):
        step = step_name(number)
        places.move(description, step)
        attributes = _with_description(
            copier.writer, source._attributes(step), step_name(to), description
        )
        copier.set_attributes(step_name(to), attributes)


class _Places:
    """New places of the arrays that descriptions refer to."""

    def __init__(self, copier: Copier, base: str) -> None:
        self._copier = copier
        self._base = base
        self._copied: dict[str, str] = {}
        self._rows: dict[str, set[int]] = {}
        self._deltas: dict[str, DeltaWriter] = {}
        self._moved_rows: dict[tuple[str, int], dict[str, Any]] = {}

    def count_rows(self, described: Description, step: str) -> None:
        """Note the rows of arrays that a step refers to."""
        for reference in references_in(described):
            if "row" in reference:
                path = _path_of(reference["at"], step)
                self._rows.setdefault(path, set()).add(reference["row"])

    def move(self, described: Description, step: str) -> None:
        """Let a description refer to the copies of its arrays."""
        for reference in references_in(described):
            if not isinstance(at := reference["at"], str):
                continue
            path = _path_of(at, step)
            if "row" in reference and not self._has_all_rows(path):
                reference.update(self._copy_row(path, reference["row"]))
            else:
                reference["at"] = self._copy(path)
        packed = described.get("packed")
        for number, pack in enumerate(packed if isinstance(packed, list) else ()):
            if isinstance(pack, str):
                described["packed"][number] = self._copy(_path_of(pack, step))

    def _copy(self, path: str) -> str:
        if path not in self._copied:
            self._copied[path] = f"{self._base}/{path}"
            self._copier.add(path, self._copied[path])
        return f"/{self._copied[path]}"

    def _has_all_rows(self, path: str) -> bool:
        return len(self._rows[path]) >= self._copier.source._array(path).shape[0]

    def _copy_row(self, path: str, row: int) -> dict[str, Any]:
        """Write a row of an array of which other rows are left out; return the reference to it."""
        if (path, row) not in self._moved_rows:
            source, writer = self._copier.source, self._copier.writer
            values = read_row(source, path, row, None)
            if path not in self._deltas:
                other = max(self._rows[path] - {row}, default=row)
                before = read_row(source, path, other, None)
                self._deltas[path] = DeltaWriter(writer, f"{self._base}/{path}", before)
            deltas = self._deltas[path]
            self._moved_rows[path, row] = {
                "at": f"/{deltas.path}",
                "row": deltas.append(values),
            }
        return self._moved_rows[path, row]


def _packs(described: Description) -> list[dict[str, Any]]:
    packed = described.get("packed")
    return [pack for pack in packed if isinstance(pack, dict)] if isinstance(packed, list) else []


def _path_of(at: str, base: str) -> str:
    return at.strip("/") if at.startswith("/") else f"{base}/{at}".strip("/")


def _paths_of(described: Description) -> Iterable[str]:
    """Yield the paths of the arrays that a description of the mesh in the root refers to."""
    for reference in references_in(described):
        if isinstance(at := reference["at"], str):
            yield at
    for pack in described.get("packed") or ():
        if isinstance(pack, str):
            yield pack


def _selected(described: Description, fields: Sequence[str], source: Store) -> Description:
    wanted = select_names(_names([described]), fields, source.location, "array")
    selected: Description = select_arrays(described, dict.fromkeys(ASSOCIATIONS, wanted))
    return selected


def _names(described: Iterable[Description]) -> list[str]:
    """Return the names of the arrays on points, cells and rows and in field data."""
    return list(
        dict.fromkeys(
            str(entry.get("name")) for each in described for _, entry, _ in field_entries(each)
        )
    )


def _with_description(
    writer: Writer, attributes: Mapping[str, Any], to: str, described: Description
) -> dict[str, Any]:
    """Return the attributes of the group of a mesh with this description."""
    own = attributes["ambar"]
    kept = {key: own[key] for key in ("kind", "version") if key in own}
    about = {key: value for key, value in described.items() if key not in (*kept, *_DESCRIPTION)}
    packs = _packs(about)
    streams = [pack["stream"] for pack in packs if "stream" in pack]
    if "packed" in about:
        about["packed"] = [_without_stream(pack) for pack in about["packed"]]
    plain = about
    if streams or "data" in own or "description" in own or "like" in own:
        data = join_streams(to_json(plain), streams)
        plain = {"type": about["type"], **store_description(writer, to, data)}
    return {**attributes, "ambar": {**kept, **plain}}


def _without_stream(pack: Any) -> Any:
    if not isinstance(pack, dict):
        return pack
    return {key: value for key, value in pack.items() if key != "stream"}

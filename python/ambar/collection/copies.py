"""Copies and merges of collections: complete families are copied verbatim."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.progress import Progress
from ambar.collection.storage.attributes import attributes_as_json
from ambar.collection.storage.family import Family
from ambar.collection.storage.records import Record, record_of
from ambar.collection.storage.tails import GROUP as TAIL
from ambar.store.copies.arrays import bounded_already
from ambar.store.copies.copier import Copier
from ambar.store.copies.selection import select_names
from ambar.store.writer import Profile

if TYPE_CHECKING:
    from ambar.collection.collection import Collection


def copy_datasets(
    source: Collection,
    target: Collection,
    names: Sequence[str],
    *,
    fields: Sequence[str] | None = None,
    bounds: Mapping[str, float | str] | None = None,
    profile: Profile | None = None,
    report: Progress | None = None,
    join_limit: int = 0,
) -> None:
    """Add datasets of a collection to another one that is open for writing.

    A family of which all datasets are wanted, with all variables and without new bounds, is copied
    verbatim, or encoded with the profile. Datasets of other families are read and added.

    Parameters
    ----------
    source, target
        The collections.
    names
        The datasets, in their order in the source. The target does not have them.
    fields
        Data variables, or patterns of these; all for None. Coordinates are always copied.
    bounds
        New error bounds by variable; none for None.
    profile
        The profile of lossless arrays; None to keep their encoding.
    report
        A function called with the work done and all work, if any.
    join_limit
        Lossless families of at most this number of raw bytes are read and added, too, so that
        datasets of equal variables are one family of the target.

    Raises
    ------
    KeyError
        If no dataset has a variable of `fields` or `bounds`.
    ValueError
        If a variable has an error bound, and gets another one.
    """
    known = source._families.variables
    wanted = set(_wanted(source, fields, known))
    bounds = bounds or {}
    losses = losses_of(source)
    for name in source._families.checked_names(bounds):
        if loss := next((of[name] for of in losses.values() if name in of), None):
            raise bounded_already(source.store, name, loss["lossy_compression_error_bound"])
    positions = np.array([source._catalogue.position(name) for name in names], np.int64)
    places = source._catalogue.places_at(positions)
    whole = [
        family
        for family in source._families
        if np.count_nonzero(places[:, 0] == family.number) == family.rows
        and wanted.issuperset(family.columns)
        and not set(bounds).intersection(family.columns)
        and (losses[family.number] or _raw_bytes(source, family) > join_limit)
    ]
    copier = Copier(source.store, target._changing._writer, profile, report)
    numbers = {family.number: _copy_family(copier, family, target) for family in whole}
    copier.finish()
    for done, (name, (family, row)) in enumerate(zip(names, places.tolist(), strict=True), 1):
        if family in numbers:
            target._catalogue.add(name, numbers[family], row)
        else:
            target._add(_decoded(source._record(name), wanted, losses[family]))
        if report is not None and len(numbers) < len(source._families):
            report(done, len(names))
    target._changing.pending = True


def _raw_bytes(source: Collection, family: Family) -> int:
    return sum(source.store._array(family.path(name)).nbytes for name in family.columns)


def _wanted(
    source: Collection, fields: Sequence[str] | None, known: Sequence[str]
) -> Iterator[str]:
    """Yield the variables to copy: the chosen data variables, and all coordinates."""
    data = {
        name
        for family in source._families
        for name, column in family.columns.items()
        if not column.coordinate
    }
    chosen = set(
        select_names([name for name in known if name in data], fields, source.location, "variable")
    )
    for name in known:
        if name in chosen or name not in data:
            yield name


def losses_of(source: Collection) -> dict[int, dict[str, dict[str, Any]]]:
    """Return the attributes that state the loss of variables, by the number of the family.

    A variable may have an error bound in one family, and none in another one.
    """
    return {
        family.number: {
            name: loss
            for name in family.columns
            if (loss := dict(source.store._array(family.path(name)).lossy_attrs))
        }
        for family in source._families
    }


def _copy_family(copier: Copier, family: Family, target: Collection) -> int:
    """Copy a family and its tails, and return its new number."""
    number = len(target._families)
    copied = dataclasses.replace(family, number=number, columns=copy.deepcopy(family.columns))
    # Not entered among the families to which datasets of this session are added.
    target._families.append(copied)
    copier.add(family.group, copied.group)
    if copier.source._core.kind(f"/{TAIL}/{family.group}") is not None:
        copier.add(f"{TAIL}/{family.group}", f"{TAIL}/{copied.group}")
    return number


def _decoded(record: Record, wanted: set[str], losses: Mapping[str, Mapping[str, Any]]) -> Record:
    """Return a dataset with some variables; the attributes state the loss of their values."""
    variables = {}
    for name, variable in record.variables.items():
        if name in wanted:
            stated = attributes_as_json((record.name, name), losses.get(name, {}))
            variables[name] = variable._replace(attributes={**variable.attributes, **stated})
    return record_of(record.name, variables, record.attributes)


def copied_settings(source: Collection, bounds: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings of a new copy of a collection.

    Variables that have an error bound in the source are copied verbatim, without that bound.

    Parameters
    ----------
    source
        The collection.
    bounds
        Encodings with the new error bounds, by variable.
    """
    bounded = {name for losses in losses_of(source).values() for name in losses}
    settings = source.settings
    encodings = {
        name: {k: v for k, v in encoding.items() if k != "error_bound" or name not in bounded}
        for name, encoding in settings["encoding"].items()
    }
    for name, encoding in bounds.items():
        encodings.setdefault(name, {}).update(encoding)
    return {**settings, "encoding": encodings}


def merged_settings(collections: Sequence[Collection]) -> dict[str, Any]:
    """Return the settings of a collection of all datasets.

    Raises ValueError if the settings of variables differ.
    """
    settings = collections[0].settings
    for other in collections[1:]:
        for name, encoding in other.settings["encoding"].items():
            if settings["encoding"].setdefault(name, encoding) != encoding:
                raise _core.InvalidError(
                    f"{other.location}: expected the encoding {settings['encoding'][name]!r} of "
                    f"{name!r}, as {collections[0].location} has it, found {encoding!r}; convert "
                    "one of the collections"
                )
        settings["ragged"] = list(dict.fromkeys([*settings["ragged"], *other.settings["ragged"]]))
    return settings

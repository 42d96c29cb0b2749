"""What differs between two commits or stores."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar.collection.collection import Collection
from ambar.collection.openers import collection_at
from ambar.collection.storage.records import Record
from ambar.collection.storage.tails import GROUP as TAIL
from ambar.kinds.registry import kind_of_store
from ambar.store.cache import place_of
from ambar.store.store import Store


@dataclass(frozen=True)
class Difference:
    """What differs between two commits or stores: sorted paths, or datasets of collections.

    Examples
    --------
    >>> ambar.diff("fields.ambar", "fields.ambar")
    Difference(added=(), removed=(), values=(), metadata=())
    """

    added: tuple[str, ...]
    """Groups and arrays, or datasets, that only the second has."""
    removed: tuple[str, ...]
    """Groups and arrays, or datasets, that only the first has."""
    values: tuple[str, ...]
    """Arrays whose encoded values differ, or datasets whose variables differ."""
    metadata: tuple[str, ...]
    """Groups and arrays, or datasets, of which only attributes differ."""


def diff(
    first: Store | str | os.PathLike[str], second: Store | str | os.PathLike[str]
) -> Difference:
    """Compare two stores, or two commits of one, by the checksums of their chunks.

    Nothing is decoded: equal values that are encoded differently differ. `ambar.compare` compares
    values. Of two collections, datasets are listed, in the order of the first: those of families
    whose chunks differ are read and compared.

    Parameters
    ----------
    first, second : Store or path
        The stores, such as ``ambar.open_store(path, commit=3)``.

    Returns
    -------
    Difference
        Paths of the nodes, or names of the datasets, that differ.

    Raises
    ------
    FileNotFoundError
        If a path does not exist.
    CorruptError
        If a store is damaged.

    Examples
    --------
    >>> with ambar.create("fields.ambar", "a") as writer:
    ...     writer.create_array("pressure", np.ones(5))
    >>> ambar.diff(ambar.open_store("fields.ambar", commit=1), "fields.ambar").added
    ('pressure',)
    """
    stores = [one if isinstance(one, Store) else Store._open(one) for one in (first, second)]
    found = stores[0]._core.differences(stores[1]._core)
    if all(kind_of_store(store).name == "collection" for store in stores):
        a, b = (collection_at(place_of(store.location), store) for store in stores)
        changed = {path.strip("/").removeprefix(f"{TAIL}/").split("/")[0] for path, _ in found}
        return _of_datasets(a, b, changed)
    paths = {
        change: tuple(path.strip("/") for path, found_change in found if found_change == change)
        for change in ("added", "removed", "values", "metadata")
    }
    return Difference(**paths)


def _of_datasets(a: Collection, b: Collection, changed: set[str]) -> Difference:
    """Compare the datasets of two collections; `changed` has the groups that differ."""
    values, metadata = [], []
    for name in a:
        if name not in b:
            continue
        (family, row), (other, other_row) = a._place(name), b._place(name)
        if (family.number, row) == (other.number, other_row) and family.group not in changed:
            continue
        one, two = a._record(name), b._record(name)
        if _values_of(one) != _values_of(two):
            values.append(name)
        elif _attributes_of(one) != _attributes_of(two):
            metadata.append(name)
    return Difference(
        tuple(name for name in b if name not in a),
        tuple(name for name in a if name not in b),
        tuple(values),
        tuple(metadata),
    )


def _values_of(record: Record) -> dict[str, Any]:
    return {
        name: (
            variable.dims,
            variable.values.shape,
            variable.type_name,
            variable.times,
            variable.coordinate,
            variable.values.tolist()
            if variable.values.dtype == object
            else variable.values.tobytes(),
        )
        for name, variable in record.variables.items()
    }


def _comparable(values: np.ndarray) -> list[Any] | bytes:
    """Return values of which equal ones are equal, also NaN."""
    return values.tolist() if values.dtype == object else values.tobytes()


def _attributes_of(record: Record) -> tuple[Any, ...]:
    variables = {name: variable.attributes for name, variable in record.variables.items()}
    return record.attributes, variables

"""What differs between two commits or stores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ambar.collection.collection import Collection
from ambar.collection.openers import collection_at
from ambar.collection.storage.records import Record
from ambar.collection.storage.tails import GROUP as TAIL
from ambar.kinds.registry import kind_of_store
from ambar.mesh.arrays import MeshArray
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.mesh.storage.description import ASSOCIATIONS
from ambar.store.cache import place_of
from ambar.store.store import Store

_OF_ARRAYS = frozenset(
    {
        *ASSOCIATIONS,
        *("at", "components_at", "row", "bounds"),
        *("data", "description", "packed", "digests", "like", "rows"),
    }
)
"""Keys of the description of a mesh that represent arrays, or that arrays determine."""


@dataclass(frozen=True)
class Difference:
    """What differs between two commits or stores: paths, names of arrays of meshes, or datasets.

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
    whose chunks differ are read and compared. Of two meshes, and of the steps that two series of
    meshes have, arrays are listed by their association and name, such as ``point/pressure``: those
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
    changes: dict[str, str] = {path.strip("/"): change for path, change in found}
    kinds = {kind_of_store(store).name for store in stores} if changes else set()
    if kinds == {"mesh"}:
        changes = _of_meshes(stores, [""], changes)
    elif kinds == {"mesh series"}:
        steps = [_steps_of(store) for store in stores]
        changes = _of_meshes(stores, [step for step in steps[0] if step in steps[1]], changes)
    names: dict[str, list[str]] = {"added": [], "removed": [], "values": [], "metadata": []}
    for path, change in changes.items():
        names[change].append(path)
    return Difference(**{change: tuple(paths) for change, paths in names.items()})


def _steps_of(store: Store) -> list[str]:
    return [step.path for step in MeshSeries(store)]


def _of_meshes(
    stores: Sequence[Store], groups: Sequence[str], changes: Mapping[str, str]
) -> dict[str, str]:
    """Return changes of which those of the arrays of meshes have the names of these arrays.

    `groups` are those of meshes that both stores have, `changes` the changes of all nodes by path.
    """
    others, named = dict(changes), {}
    for group in groups:
        a, b = (Mesh(store, group) for store in stores)
        own = _nodes_of(a) | _nodes_of(b)
        if own.isdisjoint(changes):
            continue
        for path in own:
            others.pop(path, None)
        for name, change in _changes_of_mesh(a, b, changes).items():
            named[f"{group}/{name}".strip("/")] = change
    return dict(sorted((others | named).items()))


def _nodes_of(mesh: Mesh) -> set[str]:
    """Return the paths of the group of a mesh, and of the nodes in the store that it consists of.

    Packs of small arrays, and the description if it is an array, are among them.
    """
    paths = {path for array in (*mesh.arrays, *mesh.geometry) for path in array.paths}
    if name := mesh.store._ambar_attributes(mesh.path).get("description"):
        paths.add(f"{mesh.path}/{name}".strip("/"))
    groups = {path[:end] for path in paths for end, char in enumerate(path) if char == "/"}
    return paths | {group for group in groups if group.startswith(mesh.path)} | {mesh.path}


def _changes_of_mesh(a: Mesh, b: Mesh, changes: Mapping[str, str]) -> dict[str, str]:
    """Return the changes of arrays by name; "" is the mesh without its arrays."""
    found = {}
    first, second = (_arrays_of(mesh) for mesh in (a, b))
    for name in {**first, **second}:
        one, two = first.get(name, []), second.get(name, [])
        if not one or not two:
            found[name] = "added" if two else "removed"
        elif len(one) != len(two) or not all(map(partial(_are_equal, changes), one, two)):
            found[name] = "values"
        elif [array._attributes for array in one] != [array._attributes for array in two]:
            found[name] = "metadata"
    if _frame_of(a) != _frame_of(b):
        found[""] = "metadata"
    return found


def _arrays_of(mesh: Mesh) -> dict[str, list[MeshArray]]:
    """Return the arrays of a mesh by name; names may be those of several."""
    found: dict[str, list[MeshArray]] = {}
    for array in (*mesh.arrays, *mesh.geometry):
        found.setdefault(array._label, []).append(array)
    return found


def _are_equal(changes: Mapping[str, str], one: MeshArray, two: MeshArray) -> bool:
    """Whether two arrays have equal values. Those whose chunks are equal are not read."""
    if (one.dtype, one.shape) != (two.dtype, two.shape):
        return False
    is_same = bool(one.paths) and one._places == two._places
    if is_same and changes.keys().isdisjoint(one.paths):
        return True
    return _comparable(one._values()) == _comparable(two._values())


def _frame_of(mesh: Mesh) -> tuple[Any, Any]:
    """Return what a mesh has beside its arrays: types, grids, names of blocks, the `user_dict`."""
    described = {key: value for key, value in mesh._about.items() if key != "user_dict"}
    return mesh._about.get("user_dict"), _without_arrays(described)


def _without_arrays(described: Any) -> Any:
    """Return a description without its arrays, and without what they determine."""
    if isinstance(described, list):
        return [_without_arrays(item) for item in described]
    if not isinstance(described, dict):
        return described
    kept = {
        key: _without_arrays(value) for key, value in described.items() if key not in _OF_ARRAYS
    }
    return {key: value for key, value in kept.items() if value != {}}


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
            _comparable(variable.values),
        )
        for name, variable in record.variables.items()
    }


def _comparable(values: np.ndarray) -> list[Any] | bytes:
    """Return values of which equal ones are equal, also NaN."""
    return values.tolist() if values.dtype == object else values.tobytes()


def _attributes_of(record: Record) -> tuple[Any, ...]:
    variables = {name: variable.attributes for name, variable in record.variables.items()}
    return record.attributes, variables

"""What every array of a store takes there: dtype, shape, codec, chunks, bytes, ratio."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ambar.mesh.mesh import entries_of
from ambar.mesh.storage.description import description_of
from ambar.mesh.storage.references import components_of, references_in
from ambar.mesh.storage.source import Source
from ambar.store.locations import Place, open_store
from ambar.store.store import Store


class Frame(NamedTuple):
    """An array of a store, and what it takes there."""

    node: str
    """Its path in the store; of a small array, which lies beside its mesh's description, "packed"
    and the number of its pack behind the path of the mesh."""
    name: str | None
    """The name of the mesh's array that it holds, ``name:2`` for its third component alone; None
    for geometry."""
    association: str | None
    """What that is on: "point_data", "cell_data", "row_data" or "field_data"."""
    dtype: str
    """The dtype of its values."""
    shape: tuple[int, ...]
    """Its shape."""
    codec: str
    """Its codecs, in short."""
    chunks: int
    """How many chunks it has; of a small array 1."""
    raw_bytes: int
    """Bytes of its values in memory; of texts, of the pointers to them."""
    stored_bytes: int
    """Bytes it takes in the store; of a small array its share of the pack, by its values."""

    @property
    def ratio(self) -> float:
        """How many times smaller it is stored; NaN for an empty array."""
        return self.raw_bytes / self.stored_bytes if self.stored_bytes else math.nan


def frames(path: Place, *, storage_options: Mapping[str, object] | None = None) -> list[Frame]:
    """Return what each array of the store at `path` takes there, from metadata alone.

    Arguments are as for `ambar.open`.

    Raises
    ------
    CorruptError
        If it is not a store, or is damaged.
    FileNotFoundError
        If the path does not exist.
    """
    return frames_of(open_store(path, storage_options))


def frames_of(store: Store) -> list[Frame]:
    """Return what each array of a store takes there, from metadata alone."""
    meshes = {
        group: description_of(store, group)
        for group in store.groups
        if store.ambar_attributes(group).get("kind") == "mesh"
    }
    named: dict[str, tuple[str, str | None]] = {}
    for group, described in meshes.items():
        named.update(_named(group, described))
    found = []
    for node in store:
        array = store[node]
        association, name = named.get(node, (None, None))
        found.append(
            Frame(
                node=node,
                name=name,
                association=association,
                dtype=array.type_name,
                shape=array.shape,
                codec=array.codecs,
                chunks=store.core.array(f"/{node}").chunk_count,
                raw_bytes=array.nbytes,
                stored_bytes=array.stored_bytes,
            )
        )
    for group, described in meshes.items():
        found += _packed(store, group, described)
    return found


def _named(group: str, described: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield the nodes that hold a mesh's arrays, with association and name."""
    for association, entry, _ in entries_of(described):
        for number, part in enumerate(components_of(entry) or [entry]):
            at = part.get("at") if isinstance(part, dict) else None
            name = entry.get("name") if part is entry else f"{entry.get('name')}:{number}"
            if isinstance(at, str):
                path = at if at.startswith("/") else f"{group}/{at}"
                yield path.strip("/"), (association, name)


def _packed(store: Store, group: str, described: Mapping[str, Any]) -> Iterator[Frame]:
    """Yield the small arrays of numbers that lie in packs beside a mesh's description, each once.

    Texts lie in the description itself, deflated with all else, and have no bytes of their own.
    """
    mesh = {key: value for key, value in described.items() if key != "user_dict"}
    source = Source(store, group, mesh.get("packed"))
    whose = {id(entry): (key, entry.get("name")) for key, entry, _ in entries_of(mesh)}
    seen = set()
    for reference in references_in(mesh):
        at = source.stored_at(reference)
        if isinstance(at, str) or tuple(at) in seen:
            continue
        seen.add(tuple(at))
        number, start, *shape = at
        dtype = source.dtype_of(reference)
        pack = mesh["packed"][number]
        if not isinstance(pack, dict) or "bytes" not in pack:
            continue  # a node of its own, or texts of the description
        count = math.prod(shape)
        association, name = whose.get(id(reference), (None, None))
        try:
            whole = math.prod(pack["shape"])
            if start + count > whole:
                raise source.damaged(f"a small array ends at {start + count}, of {whole} values")
            yield Frame(
                node=f"{group}/packed/{number}".strip("/"),
                name=name,
                association=association,
                dtype=dtype,
                shape=tuple(shape),
                codec=str(pack["codecs"]),
                chunks=1,
                raw_bytes=count * np.dtype(dtype).itemsize,
                stored_bytes=round(pack["bytes"] * count / max(whole, 1)),
            )
        except (KeyError, TypeError) as error:
            raise source.damaged(f"pack {number} of small arrays is damaged ({error!r})") from error

"""What every array of a store takes there: dtype, shape, codec, chunks, bytes, ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ambar.mesh.mesh import entries_of
from ambar.mesh.reading import description_of
from ambar.places import Place, open_store
from ambar.store import Store


class Frame(NamedTuple):
    """An array of a store, and what it takes there."""

    node: str
    """Its path in the store."""
    name: str | None
    """The name of the mesh's array that it holds, None for geometry and packs of small arrays."""
    association: str | None
    """What that is on: "point_data", "cell_data", "row_data" or "field_data"."""
    dtype: str
    """The dtype of its values."""
    shape: tuple[int, ...]
    """Its shape."""
    codec: str
    """Its codecs, in short."""
    chunks: int
    """How many chunks it has."""
    raw_bytes: int
    """Bytes of its values in memory; of texts, of the pointers to them."""
    stored_bytes: int
    """Bytes it takes in the store."""

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
        If it is no store, or a damaged one.
    FileNotFoundError
        If there is nothing at the path.
    """
    return frames_of(open_store(path, storage_options))


def frames_of(store: Store) -> list[Frame]:
    """Return what each array of a store takes there, from metadata alone."""
    named = _named(store)
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
    return found


def _named(store: Store) -> dict[str, tuple[str, str | None]]:
    """Return association and name of the nodes that hold a mesh's arrays."""
    named: dict[str, tuple[str, str | None]] = {}
    for group in store.groups:
        if store.ambar_attributes(group).get("kind") != "mesh":
            continue
        for association, entry, _ in entries_of(description_of(store, group)):
            at = entry.get("at")
            if isinstance(at, str):
                path = at if at.startswith("/") else f"{group}/{at}"
                named[path.strip("/")] = (association, entry.get("name"))
    return named

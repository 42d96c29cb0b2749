"""References to the chunks of a store, for Zarr readers without ambar.

Each chunk of a shard has a reference, and the metadata describe an array without shards, so that
Zarr readers read a chunk with one request. Format: kerchunk's JSON, version 1, with the keys of
Zarr v3.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar.store.store import Store
from ambar.store.urls import core_options, is_url


@dataclass(frozen=True)
class ChunkReference:
    """Location of an encoded chunk."""

    chunk: tuple[int, ...]
    url: str
    offset: int
    length: int


class Referenced:
    """A store, the metadata of its arrays without shards, and the locations of their chunks.

    Parameters
    ----------
    path
        A store: a file, a folder, or the URL of one.
    url
        URL of the file or folder for readers, such as ``s3://bucket/run.ambar``; by default the
        URL or the absolute path of the store.
    group
        The group that becomes the root; by default the root of the store.
    storage_options
        Options for URLs, as for `ambar.open`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        url: str | None = None,
        group: str = "",
        storage_options: Mapping[str, object] | None = None,
    ) -> None:
        self.store = Store._open(path, core_options(storage_options))
        own = os.fspath(path) if is_url(path) else str(Path(path).expanduser().absolute())
        self.url = url or own
        self.group = group.strip("/")
        self.store._attributes(self.group)  # raises KeyError if it does not exist

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the attributes of all groups, by their paths; "" is the root."""
        paths = [path for path in self.store.groups if self._inside(path)]
        return {self._below(path): self.store._attributes(path) for path in paths}

    def arrays(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield path and metadata of all arrays, the metadata as of arrays without shards."""
        for path in self.store:
            if self._inside(path):
                self.store._core.array("/" + path)  # raises for invalid metadata
                document = self.store._core.document("/" + path)
                yield self._below(path), without_shards(document)

    def chunks(self, path: str) -> Iterator[ChunkReference]:
        """Yield the locations of the chunks of an array, except chunks that were never written."""
        array = self.store._core.array("/" + "/".join(part for part in (self.group, path) if part))
        for found in array.chunk_ranges():
            url = self.url if found.file is None else f"{self.url.rstrip('/')}/{found.file}"
            yield ChunkReference(tuple(found.chunk), url, found.offset, found.length)

    def _inside(self, path: str) -> bool:
        return not self.group or path == self.group or path.startswith(f"{self.group}/")

    def _below(self, path: str) -> str:
        return path.removeprefix(self.group).strip("/")


def references(
    path: str | os.PathLike[str],
    url: str | None = None,
    group: str = "",
    *,
    storage_options: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return references to all chunks of a store, as kerchunk writes them.

    With these, fsspec's ``reference`` file system, and so zarr-python and xarray, read the store
    in place, also over HTTP or from an object store. Only ambar's own codecs need ambar. The
    references are valid for this commit: write them again after the next one.

    Parameters
    ----------
    path : str or path-like
        A store: a file, a folder, or the URL of one.
    url : str, optional
        URL of the file or folder for readers, such as ``s3://bucket/run.ambar``; by default the
        URL, or the absolute path, of the store.
    group : str, default ""
        The group that becomes the root; by default the root of the store.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    dict
        ``{"version": 1, "refs": {key: text or [url, offset, length]}}``, to be written as JSON.

    Raises
    ------
    FileNotFoundError
        If the store does not exist.
    KeyError
        If the group does not exist.
    CorruptError
        If the index of a shard is damaged.

    Examples
    --------
    >>> found = ambar.references("fields.ambar", "s3://bucket/fields.ambar")
    >>> url, offset, length = found["refs"]["run/time/c/0"]
    >>> url
    's3://bucket/fields.ambar'
    """
    source = Referenced(path, url, group, storage_options)
    refs: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    for name, attributes in source.groups().items():
        nodes[name] = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    for name, document in source.arrays():
        nodes[name] = document
        for found in source.chunks(name):
            key = f"{name}/{chunk_key(document, found.chunk)}".lstrip("/")
            refs[key] = [found.url, found.offset, found.length]
    metadata = {name: node for name, node in nodes.items() if name}
    root = {
        **nodes[""],
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": metadata},
    }
    documents = {f"{name}/zarr.json": node for name, node in metadata.items()}
    texts = {key: json.dumps(node) for key, node in {"zarr.json": root, **documents}.items()}
    return {"version": 1, "refs": {**texts, **refs}}


def without_shards(document: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an array as if each chunk of its shards were stored on its own."""
    codecs = document["codecs"]
    if not isinstance(codecs[0], dict) or codecs[0]["name"] != "sharding_indexed":
        return document  # a codec without a configuration may be its name alone
    inner = codecs[0]["configuration"]
    grid = {"name": "regular", "configuration": {"chunk_shape": inner["chunk_shape"]}}
    return {**document, "chunk_grid": grid, "codecs": inner["codecs"]}


def chunk_key(document: dict[str, Any], chunk: tuple[int, ...]) -> str:
    """Return the key of a chunk below its array, as the array's metadata say."""
    encoding = document["chunk_key_encoding"]
    plain = encoding["name"] == "v2"
    separator: str = encoding.get("configuration", {}).get("separator", "." if plain else "/")
    places = [str(place) for place in chunk]
    if plain:
        return separator.join(places) or "0"
    return separator.join(["c", *places])

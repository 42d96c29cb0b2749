"""A parser for VirtualiZarr: stores as virtual datasets, whose chunks are not copied.

Follows the interface of ``virtualizarr.parsers`` as of VirtualiZarr 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar.store.chunk_references import Referenced

require("virtualizarr", purpose="ambar.virtualizarr", install="ambar[virtualizarr]")

from virtualizarr.manifests import (  # noqa: E402 - after the error for a missing package
    ChunkManifest,
    ManifestArray,
    ManifestGroup,
    ManifestStore,
)
from zarr.core.metadata import ArrayV3Metadata  # noqa: E402


class AmbarParser:
    """The parser of ``virtualizarr.open_virtual_dataset(url, registry=..., parser=AmbarParser())``.

    Parameters
    ----------
    group : str, optional
        The group to open; the root by default.
    skip_variables : iterable of str, optional
        The names of arrays to leave out, in all groups.
    url : str, optional
        The URL at which readers will find the store; by default that of the local file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from ambar.virtualizarr import AmbarParser
    >>> from obspec_utils.registry import ObjectStoreRegistry
    >>> from obstore.store import LocalStore
    >>> from virtualizarr import open_virtual_dataset
    >>> url = Path("fields.ambar").absolute().as_uri()
    >>> registry = ObjectStoreRegistry({"file://": LocalStore()})
    >>> open_virtual_dataset(url, registry=registry, parser=AmbarParser()).density.shape
    (16, 24, 32)
    """

    def __init__(
        self,
        group: str | None = None,
        skip_variables: Iterable[str] | None = None,
        *,
        url: str | None = None,
    ) -> None:
        self._group = group or ""
        self._skipped = frozenset(skip_variables or ())
        self._url = url

    def __call__(self, url: str, registry: Any) -> ManifestStore:
        """Return the manifests of a store.

        Parameters
        ----------
        url : str
            A path or a ``file://`` URL.
        registry : ObjectStoreRegistry
            The object stores from which the chunks are read.

        Returns
        -------
        virtualizarr.manifests.ManifestStore
            The arrays, with the place of each chunk.

        Raises
        ------
        FileNotFoundError
            If the store does not exist.
        ValueError
            If `url` has another scheme.
        CorruptError
            If the index of a shard is damaged.
        """
        path = _local(url)
        source = Referenced(path, self._url or path.as_uri(), self._group)
        arrays: dict[str, dict[str, ManifestArray]] = {}
        for name, document in source.arrays():
            parent, _, own = name.rpartition("/")
            if own not in self._skipped:
                arrays.setdefault(parent, {})[own] = _manifest(source, name, document)
        return ManifestStore(group=_tree("", source.groups(), arrays), registry=registry)


def _local(url: str) -> Path:
    parts = urlsplit(url)
    if parts.scheme not in ("", "file"):
        raise _core.InvalidError(
            f"expected a local path or file:// URL, found {url}; AmbarParser(url=...) sets the URL "
            "for readers"
        )
    return Path(url2pathname(parts.path) if parts.scheme else url).expanduser().absolute()


def _manifest(source: Referenced, name: str, document: dict[str, Any]) -> ManifestArray:
    """Return an array and the places of its chunks; unwritten chunks have an empty path."""
    metadata = ArrayV3Metadata.from_dict(document)
    chunk_shape = document["chunk_grid"]["configuration"]["chunk_shape"]
    lengths = zip(metadata.shape, chunk_shape, strict=True)
    grid = tuple(-(-length // chunk) for length, chunk in lengths)
    paths = np.full(grid, "", dtype=np.dtypes.StringDType())
    offsets = np.zeros(grid, dtype=np.uint64)
    sizes = np.zeros(grid, dtype=np.uint64)
    for found in source.chunks(name):
        paths[found.chunk] = found.url
        offsets[found.chunk] = found.offset
        sizes[found.chunk] = found.length
    manifest = ChunkManifest.from_arrays(
        paths=paths, offsets=offsets, lengths=sizes, validate_paths=False
    )
    return ManifestArray(metadata=metadata, chunkmanifest=manifest)


def _tree(
    path: str, groups: dict[str, dict[str, Any]], arrays: dict[str, dict[str, ManifestArray]]
) -> ManifestGroup:
    """Return the group at `path` with its arrays and groups."""
    children = [name for name in groups if name and name.rpartition("/")[0] == path]
    return ManifestGroup(
        arrays=arrays.get(path, {}),
        groups={name.rpartition("/")[2]: _tree(name, groups, arrays) for name in children},
        attributes=groups[path],
    )

"""The xarray engine "ambar": opens stores lazily, as datasets or as a tree of them.

Registered through the entry point group ``xarray.backends``. Follows the interface of
``xarray.backends.BackendEntrypoint`` as of xarray 2025.1.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.backends.common import AbstractDataStore
from xarray.core import indexing

from ambar import _core
from ambar.array import Array
from ambar.store import Store
from ambar.urls import core_options, is_url

_OPEN_STORES = 16

_Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Place:
    """Where a store is: an absolute path or a URL, and the options of its service."""

    location: str
    options: _Options = ()
    opened: int = 0
    """When a URL was opened: opening it again asks for what is there then."""

    @classmethod
    def of(
        cls,
        location: str | os.PathLike[str],
        storage_options: Mapping[str, object] | None = None,
    ) -> Place:
        """Take up what the caller of xarray says."""
        options = core_options(storage_options) or {}
        if isinstance(location, str) and is_url(location):
            return cls(location, tuple(sorted(options.items())), time.time_ns())
        if options:
            raise _core.InvalidError(
                f"{location}: storage_options are for URLs (s3://..., https://...), not for paths"
            )
        return cls(str(Path(location).expanduser().absolute()))

    def stamp(self) -> tuple[int, int]:
        """Return what tells one state of a file or folder from a later one.

        That an object has been replaced is noticed when it is read from.
        """
        if is_url(self.location):
            return (0, 0)
        status = Path(self.location).stat()
        return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=_OPEN_STORES)
def _opened(place: Place, stamp: tuple[int, int], process: int) -> Store:  # noqa: ARG001 - the key
    return Store(_core.Store(place.location, dict(place.options) or None))


def _store(place: Place) -> Store:
    """Return the store at `place`, opened once per state of the file and process."""
    return _opened(place, place.stamp(), os.getpid())


class LazyArray(BackendArray):
    """An array of a store that is read when indexed; pickles as the store's place."""

    def __init__(self, place: Place, node: str, array: Array) -> None:
        self.place = place
        self.node = node
        self.shape = array.shape
        self.dtype = array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array, as xarray asks for it."""
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.BASIC, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        array = _store(self.place)[self.node]
        if array.shape != self.shape or array.dtype != self.dtype:
            raise _core.InvalidError(
                f"{self.place.location}: {self.node} was {self.dtype}{self.shape} when it was opened and is "
                f"{array.dtype}{array.shape} now; open the store again"
            )
        return array.read(key)


class GroupStore(AbstractDataStore):
    """The arrays of one group, as xarray's variables."""

    def __init__(self, place: Place, group: str) -> None:
        self.place = place
        self.group = group.strip("/")

    def get_attrs(self) -> dict[str, Any]:
        """Return the group's attributes."""
        return _store(self.place).attributes(self.group)

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the dimensions."""
        return {
            str(dim): size
            for variable in self.get_variables().values()
            for dim, size in variable.sizes.items()
        }

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return the arrays, none of them read."""
        store = _store(self.place)
        if self.group not in store.groups:
            raise _core.NotFoundError(
                f"{self.place.location}: no group {self.group!r}; there are: {', '.join(store.groups)}"
            )
        prefix = f"{self.group}/" if self.group else ""
        names = [node.removeprefix(prefix) for node in store if node.startswith(prefix)]
        return {name: self._variable(store, prefix + name) for name in names if "/" not in name}

    def get_encoding(self) -> dict[str, Any]:
        """Return where the dataset comes from."""
        return {"source": self.place.location}

    def _variable(self, store: Store, node: str) -> xr.Variable:
        array = store[node]
        name = node.rsplit("/", 1)[-1]
        dims = [
            dim or f"{name}_dim_{axis}"
            for axis, dim in enumerate(array.dims or (None,) * array.ndim)
        ]
        encoding = {
            "chunks": array.chunks,
            "shards": array.shards,
            "preferred_chunks": dict(zip(dims, array.chunks, strict=True)),
        }
        data = indexing.LazilyIndexedArray(LazyArray(self.place, node, array))
        return xr.Variable(dims, data, array.attributes, encoding)


class AmbarBackendEntrypoint(BackendEntrypoint):
    """``xarray.open_dataset(path, engine="ambar", group="amr")`` and ``open_datatree``."""

    description = "Open ambar stores"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "group",
        "storage_options",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "use_cftime",
        "decode_timedelta",
    )
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether this looks like a store of ambar: by its name."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fspath(filename_or_obj)
        if is_url(name):
            name = name.split("?", 1)[0].rstrip("/")
        return Path(name).suffix == ".ambar"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        storage_options: Mapping[str, object] | None = None,
        **decoding: Any,
    ) -> xr.Dataset:
        """Open the arrays of one group, by default the root, as a Dataset."""
        place = Place.of(filename_or_obj, storage_options)
        return _dataset(place, group or "", drop_variables, decoding)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        storage_options: Mapping[str, object] | None = None,
        **decoding: Any,
    ) -> dict[str, xr.Dataset]:
        """Open every group at or below `group`, by its path from there."""
        place = Place.of(filename_or_obj, storage_options)
        base = (group or "").strip("/")
        return {
            relative: _dataset(place, full, drop_variables, decoding)
            for relative, full in _groups(_store(place), base)
        }

    def open_datatree(
        self,
        filename_or_obj: Any,
        **options: Any,
    ) -> xr.DataTree:
        """Open the groups as a DataTree."""
        return xr.DataTree.from_dict(self.open_groups_as_dict(filename_or_obj, **options))


def _dataset(
    place: Place,
    group: str,
    drop_variables: str | Iterable[str] | None,
    decoding: Mapping[str, Any],
) -> xr.Dataset:
    dataset: xr.Dataset = StoreBackendEntrypoint().open_dataset(
        GroupStore(place, group), drop_variables=drop_variables, **decoding
    )
    return dataset


def _groups(store: Store, base: str) -> Iterator[tuple[str, str]]:
    """Give the groups at or below `base`: their path from there, and their path in the store."""
    for full in store.groups:
        if not base or full == base or full.startswith(f"{base}/"):
            yield "/" + full.removeprefix(base).strip("/"), full

"""The xarray engine "ambar": opens stores lazily, as datasets or as a tree of them.

Registered through the entry point group ``xarray.backends``. Follows the interface of
``xarray.backends.BackendEntrypoint`` as of xarray 2025.1.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint, StoreBackendEntrypoint
from xarray.backends.common import AbstractDataStore
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

import ambar.xarray  # noqa: F401 - registers the accessor
from ambar import _core
from ambar.array import Array
from ambar.cached import OpenedStore, open_last, place_of
from ambar.store import Store
from ambar.urls import is_url

# What `Array.read` takes; xarray picks from that what else it was asked for.
_INDEXING = indexing.IndexingSupport.OUTER

_VARIABLE_LENGTH = {"string": create_vlen_dtype(str), "bytes": create_vlen_dtype(bytes)}


class LazyArray(BackendArray):
    """An array of a store that is read when indexed; pickles as the store's place and commit."""

    def __init__(self, opened: OpenedStore, node: str, array: Array) -> None:
        self.opened = opened
        self.node = node
        self.shape = array.shape
        self.dtype = _VARIABLE_LENGTH.get(array.type_name, array.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array, as xarray asks for it."""
        return indexing.explicit_indexing_adapter(key, self.shape, _INDEXING, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array, read by another thread meanwhile."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        array = self.opened.store[self.node]
        # The commit is the same; stores that another program wrote have none.
        if array.shape != self.shape or array.dtype != self.dtype:
            raise _core.InvalidError(
                f"{self.opened}: {self.node} was {self.dtype}{self.shape} when it was opened and "
                f"is {array.dtype}{array.shape} now; open the store again"
            )
        return array.read(key)


class GroupStore(AbstractDataStore):
    """The arrays of one group of a commit, as xarray's variables."""

    def __init__(self, opened: OpenedStore, group: str) -> None:
        self.opened = opened
        self.group = group.strip("/")

    @property
    def store(self) -> Store:
        """The store."""
        return self.opened.store

    def array(self, name: str) -> Array:
        """Return the array of a variable."""
        return self.store[f"{self.group}/{name}" if self.group else name]

    def get_attrs(self) -> dict[str, Any]:
        """Return the group's attributes, without what ambar itself says of it."""
        attributes = self.store.attributes(self.group)
        return {name: value for name, value in attributes.items() if name != "ambar"}

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the dimensions."""
        return {
            str(dim): size
            for variable in self.get_variables().values()
            for dim, size in variable.sizes.items()
        }

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return the arrays, none of them read."""
        store = self.store
        if store.core.kind(f"/{self.group}") != "group":
            raise _core.NotFoundError(
                f"{self.opened}: no group {self.group!r}; there are: {', '.join(store.groups)}"
            )
        children = store.core.children(f"/{self.group}")
        paths = [path.strip("/") for path, kind in children if kind == "array"]
        return {path.rsplit("/", 1)[-1]: self._variable(store, path) for path in paths}

    def get_encoding(self) -> dict[str, Any]:
        """Return where the dataset comes from."""
        return {"source": str(self.opened)}

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
            "preferred_chunks": dict(zip(dims, array.shards or array.chunks, strict=True)),
            "fill_value": array.fill_value,
        }
        attributes = dict(array.attributes)
        if "_FillValue" in attributes:
            attributes["_FillValue"] = _decoded_fill(attributes["_FillValue"], array.dtype)
        data = indexing.LazilyIndexedArray(LazyArray(self.opened, node, array))
        return xr.Variable(dims, data, attributes, encoding)


def _decoded_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a `_FillValue` that xarray has encoded for JSON; one that is a number as it is."""
    if dtype.kind == "f" and isinstance(value, str):
        return _decoded_float(value)
    if dtype.kind == "c" and isinstance(value, list):
        return complex(*(_decoded_float(part) if isinstance(part, str) else part for part in value))
    if dtype.kind == "S" and isinstance(value, str):
        return base64.standard_b64decode(value)
    return value


def _decoded_float(text: str) -> float:
    if len(text) != 12:  # a number that JSON has no other word for
        return float(text)
    return float(struct.unpack("<d", base64.standard_b64decode(text))[0])


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
        opened = _opened(filename_or_obj, storage_options)
        return _dataset(opened, group or "", drop_variables, decoding)

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
        opened = _opened(filename_or_obj, storage_options)
        base = (group or "").strip("/")
        GroupStore(opened, base).get_attrs()  # raises NotFoundError where there is no such group
        return {
            relative: _dataset(opened, full, drop_variables, decoding)
            for relative, full in _groups(opened.store, base)
        }

    def open_datatree(
        self,
        filename_or_obj: Any,
        **options: Any,
    ) -> xr.DataTree:
        """Open the groups as a DataTree."""
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            return xr.DataTree.from_dict(groups)
        except ValueError as error:
            raise _core.InvalidError(
                f"{filename_or_obj}: expected groups with the dimensions of their parents: "
                f"{error}; use xarray.open_groups"
            ) from error


def _opened(place: Any, storage_options: Mapping[str, object] | None) -> OpenedStore:
    """Open the last commit of a store."""
    kept = place_of(place, storage_options)
    return OpenedStore.of(kept, open_last(kept))


def _dataset(
    opened: OpenedStore,
    group: str,
    drop_variables: str | Iterable[str] | None,
    decoding: Mapping[str, Any],
) -> xr.Dataset:
    open_dataset = StoreBackendEntrypoint().open_dataset
    # An option that xarray does not know is a TypeError, and not the group's fault.
    inspect.signature(open_dataset).bind(None, **decoding)
    try:
        dataset: xr.Dataset = open_dataset(
            GroupStore(opened, group), drop_variables=drop_variables, **decoding
        )
    except (_core.AmbarError, OSError):
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise _core.InvalidError(
            f"{opened.store.location}: xarray cannot make a Dataset of the group "
            f"/{group.strip('/')}: {error}; read its arrays with ambar.open, or leave out "
            "variables with drop_variables="
        ) from error
    return dataset


def _groups(store: Store, base: str) -> Iterator[tuple[str, str]]:
    """Give the groups at or below `base`: their path from there, and their path in the store."""
    for full in store.groups:
        if not base or full == base or full.startswith(f"{base}/"):
            yield "/" + full.removeprefix(base).strip("/"), full

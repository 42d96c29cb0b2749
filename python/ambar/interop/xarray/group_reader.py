"""One group of a store as a data store of xarray; arrays are read when they are indexed."""

from __future__ import annotations

import asyncio
import base64
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.backends.common import AbstractDataStore
from xarray.backends.store import StoreBackendEntrypoint
from xarray.coding.strings import create_vlen_dtype
from xarray.core import indexing

from ambar import _core
from ambar._util.text import suggestion
from ambar.store.array import Array
from ambar.store.cache import OpenedStore
from ambar.store.nodes import array_names, decoded_attributes, field_of
from ambar.store.store import Store

# The indexing that `Array.read` supports; xarray does the rest in memory.
_INDEXING = indexing.IndexingSupport.OUTER

_VARIABLE_LENGTH = {"string": create_vlen_dtype(str), "bytes": create_vlen_dtype(bytes)}


class LazyArray(BackendArray):
    """A lazy array of a store; pickles as the location and the commit of the store."""

    def __init__(self, opened: OpenedStore, node: str, array: Array) -> None:
        self.opened = opened
        self.node = node
        self.shape = array.shape
        self.dtype = _VARIABLE_LENGTH.get(array.type_name, array.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array, for an indexer of xarray."""
        return indexing.explicit_indexing_adapter(key, self.shape, _INDEXING, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array, read in another thread."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        array = self.opened.store._array(self.node)
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
        return self.store._array(f"{self.group}/{name}")

    def get_attrs(self) -> dict[str, Any]:
        """Return the group's attributes, without the attribute ``ambar``."""
        attributes = self.store._attributes(self.group)
        attributes.pop("ambar", None)
        return decoded_attributes(attributes)

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the dimensions."""
        return {
            str(dim): size
            for variable in self.get_variables().values()
            for dim, size in variable.sizes.items()
        }

    def get_variables(self) -> dict[str, xr.Variable]:
        """Return the arrays as lazy variables."""
        store = self.store
        if store._core.kind(f"/{self.group}") != "group":
            raise _core.NotFoundError(
                f"{self.opened}: no group {self.group!r}; "
                f"{suggestion(self.group, [group for group in store.groups if group])}"
            )
        children = store._core.children(f"/{self.group}")
        paths = [path.strip("/") for path, kind in children if kind == "array"]
        return {path.rsplit("/", 1)[-1]: self._variable(store, path) for path in paths}

    def get_encoding(self) -> dict[str, Any]:
        """Return the encoding, with the source of the dataset."""
        return {"source": str(self.opened)}

    def _variable(self, store: Store, node: str) -> xr.Variable:
        array = store._array(node)
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
        data = indexing.LazilyIndexedArray(LazyArray(self.opened, node, array))
        attributes = attributes_of(array, loss_of_field(store, node))
        return xr.Variable(dims, data, attributes, encoding)


def attributes_of(array: Array, loss: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the attributes of an array as xarray decodes them, with those of the loss.

    `loss` replaces the attributes of the loss that follow from the codecs of the array.
    """
    attributes = {**array.attrs, **(array.lossy_attrs if loss is None else loss)}
    if "_FillValue" in attributes:
        attributes["_FillValue"] = _decoded_fill(attributes["_FillValue"], array.dtype)
    if array.dtype.kind == "f" and "missing_value" in attributes:
        missing = attributes["missing_value"]
        is_list = isinstance(missing, list)
        parts = [
            float(part) if part in ("nan", "inf", "-inf") else part
            for part in (missing if is_list else [missing])
        ]
        attributes["missing_value"] = parts if is_list else parts[0]
    return attributes


def loss_of_field(store: Store, node: str) -> dict[str, Any] | None:
    """Return the attributes of the loss of a field that was changed before it was encoded.

    None if they follow from the codecs. Copies of snapshots state the sum of error bounds in the
    attributes of the group, whereas the codecs have the last one, or none.
    """
    group, array = field_of(node)
    own = store._ambar_attributes(group)
    names = array_names(own, f"{store.location}: /{group}")
    field = next((field for field, name in names.items() if name == array), array)
    bound = own.get("error_bounds", {}).get(field)
    if bound is None:
        return None
    given = {target.partition("@")[0] for target in own.get("requested_bounds", {})}
    levels = [f"level_{n}/" for n in range(len(own["levels"]))] if "levels" in own else [""]
    # Some levels of a field with bounds of levels are lossless. Exact copies have no lossy array.
    if field in given and any(store._array(f"{group}/{at}{array}").error_bound for at in levels):
        return None
    return _core.lossy_attributes(bound)


def _decoded_fill(value: Any, dtype: np.dtype[Any]) -> Any:
    """Decode a `_FillValue` that xarray has encoded for JSON; a number is returned unchanged."""
    if dtype.kind == "f" and isinstance(value, str):
        return _decoded_float(value)
    if dtype.kind == "c" and isinstance(value, list):
        return complex(*(_decoded_float(part) if isinstance(part, str) else part for part in value))
    if dtype.kind == "S" and isinstance(value, str):
        return base64.standard_b64decode(value)
    return value


def _decoded_float(text: str) -> float:
    if len(text) != 12:  # "NaN", "Infinity" or "-Infinity"
        return float(text)
    return float(struct.unpack("<d", base64.standard_b64decode(text))[0])


def open_group(store: Store, group: str, name: str) -> xr.DataArray:
    """Return an array of a group of an open store with its coordinates; values are read lazily.

    If xarray cannot make a dataset of the group, or decode the array, the array has no coordinates.
    """
    opened = OpenedStore.holding(store)
    try:
        dataset = StoreBackendEntrypoint().open_dataset(GroupStore(opened, group))
        if name in dataset.variables:
            return dataset[name]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        pass
    array = store[f"{group}/{name}".strip("/")]
    dims = array.dims or (None,) * array.ndim
    named = [dim or f"dimension {number}" for number, dim in enumerate(dims)]
    if len(set(named)) < len(named):
        named = [f"dimension {number}" for number in range(array.ndim)]
    lazy = indexing.LazilyIndexedArray(LazyArray(opened, array.path, array))
    attributes = attributes_of(array, loss_of_field(store, array.path))
    return xr.DataArray(xr.Variable(named, lazy, attributes), name=name)

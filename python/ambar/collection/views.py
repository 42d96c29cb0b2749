"""Datasets of a collection as lazy datasets of xarray: single ones, or many as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from ambar import _core
from ambar.collection.read.bulk_read import decoded, dtype_of
from ambar.collection.read.indexing import Piece, with_leading
from ambar.collection.read.row_cache import blocks_of
from ambar.collection.storage.family import Column, Family
from ambar.collection.storage.metadata_columns import common_attributes
from ambar.collection.storage.records import ROW
from ambar.store.cache import OpenedStore

if TYPE_CHECKING:
    import pandas as pd

    from ambar.collection.collection import Collection


class RowArray(BackendArray):
    """Rows of an array of a family, read when they are indexed.

    Pickles as the path and the commit of the store, so that tasks of dask run in threads, in
    processes and in distributed.
    """

    def __init__(
        self,
        opened: OpenedStore,
        node: str,
        rows: int | slice | np.ndarray,
        shape: tuple[int, ...],
        column: Column,
        leading: int = 0,
    ) -> None:
        self.opened = opened
        self.node = node
        self.rows = rows
        self.shape = shape
        self.dtype = dtype_of(column)
        self.column = column
        self.leading = leading
        """The number of dimensions of length 1 before the ragged one, which the array lacks."""

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a part of the array."""
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read
        )

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        values = np.asarray(self._read_array(key[self.leading :]))
        return with_leading(decoded(self.column, values), key[: self.leading])

    def _read_array(self, key: tuple[Any, ...]) -> np.ndarray:
        store = self.opened.store
        array = store._array(self.node)
        rows, inner = self.rows, key
        if isinstance(rows, int) and not any(isinstance(part, np.ndarray) for part in key):
            # The chunk is decoded anyway, and neighbouring datasets are likely to follow.
            return blocks_of(store).row(self.node, rows, key)
        if isinstance(rows, slice) and len(array.shape) == len(key):
            # Indices count from the start of the slice.
            numbers = np.arange(*rows.indices(array.shape[0]))[key[0]]
            rows, inner = numbers if isinstance(numbers, np.ndarray) else int(numbers), key[1:]
        elif isinstance(rows, np.ndarray):
            chosen = rows[key[0]]
            rows, inner = chosen if isinstance(chosen, np.ndarray) else int(chosen), key[1:]
        values: np.ndarray = array.read((rows, *inner))
        return values


def one(collection: Collection, name: str) -> xr.Dataset:
    """Return one dataset, lazily."""
    return _made(collection, name, partial(_lazy, collection))


def loaded(collection: Collection, name: str) -> xr.Dataset:
    """Return one dataset in memory."""
    return _made(collection, name, collection._value)


def _lazy(collection: Collection, family: Family, key: str, row: int) -> Any:
    """Return a variable of one dataset as a lazy array."""
    if family.columns[key].shared:
        return collection._shared(family, key)
    collection._reader.array(family, key)
    shape = family.shape(key)
    rows: int | slice = row
    dim, leading = family.ragged_dim(key), family.leading(key)
    if dim is not None:
        offsets = collection._reader.offsets(family, dim)
        rows = slice(int(offsets[row]), int(offsets[row + 1]))
        shape = (*(1,) * leading, rows.stop - rows.start, *shape)
    column = family.columns[key]
    array = RowArray(collection._opened, family.path(key), rows, shape, column, leading)
    return indexing.LazilyIndexedArray(array)


def _made(collection: Collection, name: str, data: Callable[[Family, str, int], Any]) -> xr.Dataset:
    """Return one dataset, with the values that `data` returns for each variable.

    It is a copy of another dataset of the family if possible, which is faster.
    """
    family, row = collection._place(name)
    attributes = collection._attributes(family, None, row)
    model = collection._models.get(family.number)
    if model is not None:
        columns = family.columns.items()
        values = {key: data(family, key, row) for key, column in columns if not column.coordinate}
        return copied(model, values, attributes)
    variables = {
        key: xr.Variable(
            column.dims,
            data(family, key, row),
            collection._attributes(family, key, row),
            fastpath=True,
        )
        for key, column in family.columns.items()
    }
    dataset = _dataset(variables, family, attributes)
    if can_be_copied(family):
        collection._models[family.number] = dataset.copy(deep=False)
    return dataset


def can_be_copied(family: Family) -> bool:
    """Whether datasets of a family differ only in data variables and attributes of datasets."""
    coordinates = {name: c for name, c in family.columns.items() if c.coordinate}
    # xarray makes a variable with the name of a dimension a coordinate.
    if any(name in family.sizes for name in family.columns if name not in coordinates):
        return False
    # Indices are immutable, so copies may share them.
    return all(c.shared and c.dims == (name,) for name, c in coordinates.items()) and all(
        scope is None for scope, _ in family.varying
    )


def copied(model: xr.Dataset, values: Mapping[Any, Any], attributes: dict[Any, Any]) -> xr.Dataset:
    """Return a copy of a dataset with other values.

    ``Dataset.copy(data=...)`` does the same, but copies the indices too, which takes most of the
    time.
    """
    variables = {
        name: xr.Variable(variable.dims, values[name], dict(variable.attrs), fastpath=True)
        if name in values
        else variable.copy(deep=False)
        for name, variable in model.variables.items()
    }
    # The lengths of ragged dimensions differ from those of the model.
    sizes = {
        dim: size
        for variable in variables.values()
        for dim, size in zip(variable.dims, variable.shape, strict=True)
    }
    dataset: xr.Dataset = model._replace(variables, dims=sizes, attrs=attributes)
    return dataset


def frame_of(name: str, dataset: xr.Dataset, variables: Sequence[str] | None) -> pd.DataFrame:
    """Return a dataset as a table whose first column is the name of the dataset."""
    if variables is not None:
        dataset = dataset[[key for key in variables if key in dataset.variables]]
    try:
        if dataset.sizes:
            frame = dataset.to_dataframe().reset_index()
        else:
            # `to_dataframe` does not support scalars.
            import pandas as pd

            frame = pd.DataFrame({k: [v.values[()]] for k, v in dataset.variables.items()}, [0])
        frame.insert(0, ROW, name)
    except (ValueError, MemoryError) as error:
        raise _core.InvalidError(
            f"dataset {name!r}: its variables, of dimensions {dict(dataset.sizes)}, cannot be the "
            f"columns of one table ({error}); choose some with variables=[...]"
        ) from error
    return frame


def stacked(collection: Collection, names: list[str]) -> xr.Dataset:
    """Return datasets of one family as one dataset, with the dimension "dataset".

    Ragged families become contiguous ragged arrays (CF conventions, section 9.3.3).
    """
    families = {collection._place(name)[0].number for name in names}
    if len(families) != 1:
        raise _core.InvalidError(
            f"expected datasets of one family, found {len(families)} families of different shapes "
            "or types; select datasets of one family, or use read()"
        )
    family = collection._place(names[0])[0]
    rows = np.array([collection._place(name)[1] for name in names], np.int64)
    if family.ragged:
        return _contiguous(collection, family, names, rows)
    variables = {}
    wanted = Piece(family, rows, rows, {}).row_key
    for key, column in family.columns.items():
        if column.shared:
            variables[key] = xr.Variable(
                column.dims, collection._shared(family, key), common_attributes(family, key)
            )
            continue
        shape = (len(rows), *family.shape(key))
        array = RowArray(collection._opened, family.path(key), wanted, shape, column)
        chunks = dict(
            zip(family.dims(key), collection._reader.array(family, key).chunks, strict=True)
        )
        variables[key] = xr.Variable(
            family.dims(key),
            indexing.LazilyIndexedArray(array),
            common_attributes(family, key),
            {"preferred_chunks": chunks},
        )
    variables[ROW] = xr.Variable((ROW,), np.array(names, object))
    return _dataset(variables, family, common_attributes(family, None))


def _contiguous(
    collection: Collection, family: Family, names: list[str], rows: np.ndarray
) -> xr.Dataset:
    piece = Piece(family, rows, np.arange(len(rows)), {})
    variables: dict[str, xr.Variable] = {}
    for key, column in family.columns.items():
        if column.shared:
            values: Any = collection._shared(family, key)
        elif family.ragged_dim(key) is not None:
            values, _ = collection._reader.end_to_end(key, piece)
        else:
            values, _ = collection._reader.read(key, [piece], len(rows), None, stack=True)
        variables[key] = xr.Variable(family.dims(key), values, common_attributes(family, key))
    for dim in family.ragged:
        counts = np.diff(collection._reader.offsets(family, dim))[rows]
        name = family.counts(dim).rpartition("/")[2]
        variables[name] = xr.Variable((ROW,), counts, {"sample_dimension": dim})
    variables[ROW] = xr.Variable((ROW,), np.array(names, object))
    return _dataset(variables, family, common_attributes(family, None))


def _dataset(
    variables: dict[str, xr.Variable], family: Family, attributes: Mapping[str, Any]
) -> xr.Dataset:
    coords = {
        key: variables.pop(key)
        for key in list(variables)
        if key == ROW or (key in family.columns and family.columns[key].coordinate)
    }
    return xr.Dataset(variables, xr.Coordinates(coords), attributes)

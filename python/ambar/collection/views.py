"""Datasets of a collection as datasets of xarray, lazy or in memory, and as tables of pandas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray.core import indexing

from ambar import _core
from ambar.collection.read.bulk_read import decoded, dtype_of
from ambar.collection.read.indexing import Piece, as_slice, with_leading
from ambar.collection.read.metadata import common_attributes
from ambar.collection.schema import not_one_family
from ambar.collection.storage.family import Column, Family
from ambar.collection.storage.records import ROW
from ambar.collection.storage.row_cache import blocks_of
from ambar.collection.storage.tails import array_of
from ambar.interop.xarray.group_reader import LazyArray
from ambar.store.array import Array
from ambar.store.cache import OpenedStore

if TYPE_CHECKING:
    from ambar.collection.collection import Collection


class FamilyArray(LazyArray):
    """An array of a family with decoded values, read when it is indexed.

    It has the dimensions of length 1 before a ragged one, which the stored array lacks.
    """

    def __init__(self, opened: OpenedStore, array: Array, column: Column, leading: int) -> None:
        super().__init__(opened, array.path, array)
        self.shape = (*(1,) * leading, *array.shape)
        self.dtype = dtype_of(column)
        self.column = column
        self.leading = leading

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        store = self.opened.store
        inner = key[self.leading :]
        if (
            inner
            and not any(isinstance(part, np.ndarray) for part in inner)
            and isinstance(inner[0], int)
        ):
            # The chunk is decoded anyway, and neighbouring datasets are likely to follow.
            values = blocks_of(store).row(self.node, inner[0], inner[1:])
        else:
            values = np.asarray(array_of(store, self.node).read(inner))
        return with_leading(decoded(self.column, values), key[: self.leading])


def _lazy_array(
    collection: Collection, family: Family, key: str, rows: int | slice | np.ndarray
) -> indexing.LazilyIndexedArray:
    """Return rows of the array of a variable; `rows` index its first dimension that is stored."""
    array = collection._views.get((family.number, key))
    if array is None:
        stored, leading = collection._reader.array(family, key), family.leading(key)
        array = FamilyArray(collection._opened, stored, family.columns[key], leading)
        collection._views[family.number, key] = array
    index: list[Any] = [slice(None)] * array.ndim
    index[array.leading] = rows
    indexer = indexing.OuterIndexer if isinstance(rows, np.ndarray) else indexing.BasicIndexer
    return indexing.LazilyIndexedArray(array, indexer(tuple(index)))


def lazy_dataset(collection: Collection, name: str) -> xr.Dataset:
    """Return one dataset, whose values are read when they are used."""

    def value(family: Family, key: str, row: int) -> Any:
        if family.columns[key].shared:
            return collection._reader.shared(family, key)
        dim = family.ragged_dim(key)
        if dim is None:
            return _lazy_array(collection, family, key, row)
        first, last = collection._reader.offsets(family, dim)[row : row + 2].tolist()
        return _lazy_array(collection, family, key, slice(first, last))

    return _dataset_of(collection, name, value)


def load_dataset(collection: Collection, name: str) -> xr.Dataset:
    """Return one dataset in memory."""
    return _dataset_of(collection, name, collection._reader.value)


def _dataset_of(
    collection: Collection, name: str, data: Callable[[Family, str, int], Any]
) -> xr.Dataset:
    """Return one dataset, with the values that `data` returns for each variable.

    It is a copy of another dataset of the family if possible, which is faster.
    """
    family, row = collection._place(name)
    attributes = collection._metadata.attributes(family, None, row)
    model = collection._views.get(family.number)
    if model is not None:
        columns = family.columns.items()
        values = {key: data(family, key, row) for key, column in columns if not column.coordinate}
        return _copy_of(model, values, attributes)
    variables = {
        key: xr.Variable(
            column.dims,
            data(family, key, row),
            collection._metadata.attributes(family, key, row),
            fastpath=True,
        )
        for key, column in family.columns.items()
    }
    dataset = _dataset(variables, family, attributes)
    if _can_be_copied(family):
        collection._views[family.number] = dataset.copy(deep=False)
    return dataset


def _can_be_copied(family: Family) -> bool:
    """Whether datasets of a family differ only in data variables and attributes of datasets."""
    coordinates = {name: c for name, c in family.columns.items() if c.coordinate}
    # xarray makes a variable with the name of a dimension a coordinate.
    if any(name in family.sizes for name in family.columns if name not in coordinates):
        return False
    # Indices are immutable, so copies may share them.
    return all(c.shared and c.dims == (name,) for name, c in coordinates.items()) and all(
        scope is None for scope, _ in family.varying
    )


def _copy_of(
    model: xr.Dataset, values: Mapping[Any, Any], attributes: dict[Any, Any]
) -> xr.Dataset:
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


def tabulate_datasets(
    collection: Collection, names: list[str], variables: Sequence[str] | None
) -> pd.DataFrame:
    """Return variables of datasets as one table; without datasets a table without rows."""
    frames = [_frame_of(name, load_dataset(collection, name), variables) for name in names]
    if not names:  # the columns of the families that have a variable
        families = [collection._families[number] for number in collection._counts()]
        frames = [
            _frame_of("", _empty_dataset(family), variables)[:0]
            for family in families
            if variables is None or not family.columns.keys().isdisjoint(variables)
        ]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _empty_dataset(family: Family) -> xr.Dataset:
    """Return a dataset with the variables of a family, whose dimensions have length 0."""
    variables = {
        key: xr.Variable(column.dims, np.empty((0,) * len(column.dims), dtype_of(column)))
        for key, column in family.columns.items()
    }
    return _dataset(variables, family, {})


def _frame_of(name: str, dataset: xr.Dataset, variables: Sequence[str] | None) -> pd.DataFrame:
    """Return a dataset as a table whose first column is the name of the dataset."""
    if variables is not None:
        dataset = dataset[[key for key in variables if key in dataset.variables]]
    try:
        # A dimension more, as `to_dataframe` does not support scalars.
        rows = dataset.expand_dims({ROW: [name]})
        return rows.to_dataframe([ROW, *dataset.sizes]).reset_index()
    except (ValueError, MemoryError) as error:
        raise _core.InvalidError(
            f"dataset {name!r}: its variables, of dimensions {dict(dataset.sizes)}, cannot be the "
            f"columns of one table ({error}); choose some with variables=[...]"
        ) from error


def stack_datasets(collection: Collection, names: list[str]) -> xr.Dataset:
    """Return datasets of one family as one dataset, with the dimension "dataset".

    Ragged families become contiguous ragged arrays (CF conventions, section 9.3.3).
    """
    places = [collection._place(name) for name in names]
    families = {family.number: family for family, _ in places}
    if len(families) != 1:
        raise not_one_family(names, [family for family, _ in places])
    [family] = families.values()
    rows = np.array([row for _, row in places], np.int64)
    if family.ragged:
        return _contiguous(collection, family, names, rows)
    variables = {}
    wanted = as_slice(rows)
    for key, column in family.columns.items():
        if column.shared:
            variables[key] = xr.Variable(
                column.dims, collection._reader.shared(family, key), common_attributes(family, key)
            )
            continue
        dims = family.dims(key)
        chunks = dict(zip(dims, collection._reader.array(family, key).chunks, strict=True))
        variables[key] = xr.Variable(
            dims,
            _lazy_array(collection, family, key, wanted),
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
            values: Any = collection._reader.shared(family, key)
        elif family.ragged_dim(key) is not None:
            values, _ = collection._reader.end_to_end(key, piece)
        else:
            values, _ = collection._reader.read(key, [piece], len(rows))
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

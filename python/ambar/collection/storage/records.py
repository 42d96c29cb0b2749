"""Datasets to add to a collection: variables of types that can be stored, and statistics."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np

from ambar import _core
from ambar._util.arguments import check_unicode, is_unicode
from ambar.collection.storage.attributes import attributes_as_json
from ambar.collection.storage.encodings import (
    MISSING,
    NOT_A_TIME,
    count_missing,
    dtype_name,
    encode_strings,
    encode_times,
)
from ambar.store.dtypes import as_unmasked_array, is_number

if TYPE_CHECKING:
    import xarray as xr

    from ambar.collection.storage.layout import Box

Input: TypeAlias = "xr.Dataset | Mapping[str, Any] | Record"

ROW = "dataset"
"""The name of the dimension that counts datasets."""

_OBJECT_BYTES = 512
"""Estimated bytes of the objects of a variable, or of a dataset."""

_RESERVED = {ROW, "attributes", "statistics", "zarr.json", "", ".", ".."}
"""Names that variables cannot have: the dimension, groups of a family, and invalid Zarr nodes."""


class DeferredValues(NamedTuple):
    """Represents the values of a large variable, which are read in parts while they are written."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize

    def astype(self, dtype: Any) -> DeferredValues:
        """Return values that are converted when they are written."""
        return self._replace(dtype=np.dtype(dtype))


class BoxReader(Protocol):
    """Reads boxes of `DeferredValues`."""

    def __call__(
        self, name: str, boxes: Iterable[Box], dtype: np.dtype[Any]
    ) -> Iterator[np.ndarray]:
        """Yield the values of boxes of a variable in a dtype; zeros if they cannot be read."""
        ...

    def check(self) -> None:
        """Raise an error if values could not be read."""


class Variable(NamedTuple):
    """A variable of one dataset."""

    dims: tuple[str, ...]
    values: np.ndarray
    """The values, or `DeferredValues`."""
    attributes: dict[str, str]
    """JSON, by name."""
    coordinate: bool
    times: str | None
    """CF units of times; see `ambar.collection.storage.encodings`."""
    type_name: str
    """NumPy's name of the dtype; "string" or "bytes" for objects."""
    escaped: bool = False
    """Whether some strings are encoded; see `ambar.collection.storage.encodings`."""


class Record(NamedTuple):
    """One dataset."""

    name: str
    variables: dict[str, Variable]
    attributes: dict[str, str]
    """JSON, by name."""
    sizes: dict[str, int]
    """The lengths of the dimensions."""
    read: BoxReader | None = None
    """Reads the values of variables that are `DeferredValues`."""
    groups: tuple[str, ...] = ()
    """The groups of the file that have variables, which the record lacks."""

    @property
    def has_deferred(self) -> bool:
        """Whether some values are `DeferredValues`."""
        return any(isinstance(v.values, DeferredValues) for v in self.variables.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the values, and an estimate of those of objects."""
        values = sum([variable.values.nbytes for variable in self.variables.values()])
        return values + _OBJECT_BYTES * (len(self.variables) + 1)


def as_record(
    name: str, dataset: Input, *, copy: bool = True, deferred: Collection[str] = ()
) -> Record:
    """Return a dataset of xarray, or a mapping from names to arrays, as a checked record.

    The record has copies: the caller may change the dataset while it is written. Without `copy`,
    values of a dataset of xarray are copied only if necessary, and values of the numerical
    variables `deferred` are not read: they become `DeferredValues`. All checks of a dataset are
    here, because an error of the writing thread would affect other datasets as well.

    A mapping's values are arrays, `(dims, array)` or `(dims, array, attributes)`, as
    ``xarray.Dataset`` takes them; without `dims` the dimensions are named ``dim_0``, ``dim_1``, ...

    Raises
    ------
    ValueError
        If a name is invalid, a dimension has two lengths, is repeated or is named "dataset", or an
        attribute cannot be stored.
    UnsupportedError
        If values are of a type that cannot be stored.
    """
    if isinstance(dataset, Record):
        return dataset if dataset.name == name else dataset._replace(name=name)
    check_name(name)
    attributes: Mapping[Any, Any] = {}
    if not isinstance(dataset, Mapping):
        raise _core.InvalidError(
            f"dataset {name!r}: expected an xarray.Dataset, or a mapping from names to arrays, "
            f"found an object of {type(dataset).__name__}"
        )
    if isinstance(dataset, dict) or not hasattr(dataset, "coords"):
        variables = {str(key): _of_mapping(name, str(key), v) for key, v in dataset.items()}
    else:
        # `variables` of a Dataset makes no DataArrays, which would take most of the time.
        dataset = cast("xr.Dataset", dataset)
        coords = dataset.coords
        variables = {
            str(key): variable_of(
                (name, str(key)),
                tuple(map(str, v.dims)),
                np.empty((0,) * v.ndim, v.dtype) if key in deferred else v.values,
                v.attrs,
                key in coords,
                _string_type(v.encoding.get("dtype")),
                copy=copy,
            )
            for key, v in dataset.variables.items()
        }
        attributes = dataset.attrs
        for key in deferred:
            variable = variables[key]
            values = DeferredValues(dataset.variables[key].shape, variable.values.dtype)
            variables[key] = variable._replace(values=cast("np.ndarray", values))
    return record_of(name, variables, attributes_as_json((name,), attributes))


def check_name(name: Any) -> None:
    """Raise ValueError for an invalid name of a dataset."""
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise _core.InvalidError(
            f"a dataset's name must be a string that is not empty, found {name!r}"
        )


def are_names(names: Sequence[str]) -> bool:
    """Whether strings are valid names of datasets."""
    return all(names) and is_unicode("".join(names))


def record_of(name: str, variables: dict[str, Variable], attributes: dict[str, str]) -> Record:
    """Return a checked record; raises the errors of `as_record`."""
    for key, variable in variables.items():
        _check(name, key, variable)
    return Record(name, variables, attributes, _sizes(name, variables))


def _of_mapping(name: str, key: str, value: Any) -> Variable:
    attributes: Mapping[Any, Any] = {}
    if hasattr(value, "dims"):
        raise _core.InvalidError(
            f"dataset {name!r}: {key}: expected an array, found an object of "
            f"{type(value).__name__}, whose names of dimensions would be lost; pass "
            "xarray.Dataset(...) of the mapping"
        )
    if isinstance(value, tuple):
        dims, values = value[:2]
        dims = (dims,) if isinstance(dims, str) else tuple(map(str, dims))
        attributes = value[2] if len(value) > 2 else {}
        values = as_unmasked_array(f"dataset {name!r}: {key}", values)
    else:
        values = as_unmasked_array(f"dataset {name!r}: {key}", value)
        dims = tuple(f"dim_{axis}" for axis in range(values.ndim))
    return variable_of((name, key), dims, values, attributes, dims == (key,))


def variable_of(
    owner: tuple[str, str],
    dims: tuple[str, ...],
    values: np.ndarray,
    attributes: Mapping[Any, Any],
    coordinate: bool,
    string_type: str = "string",
    *,
    copy: bool = True,
) -> Variable:
    """Return a variable with a copy of values in C order: times as integers, strings as objects.

    Without `copy`, numbers in C order are not copied.
    `owner` is the dataset and the variable, for errors. `string_type` is the type of objects
    that are all missing, or of an empty array. Raises ValueError for attributes that cannot be
    stored, UnsupportedError for objects that are not strings.
    """
    times = None
    escaped = False
    stored = attributes_as_json(owner, attributes) if attributes else {}
    dtype = values.dtype
    kind = dtype.kind
    if kind in "biufc" and dtype.isnative and type(values) is np.ndarray:  # most values
        values = values.copy("C") if copy else np.asarray(values, order="C")
        return Variable(dims, values, stored, coordinate, None, _type_name(dtype))
    if kind in "mM":
        values, times = encode_times(values)
    elif kind in "UST":
        string_type = "bytes" if kind == "S" else "string"
        values = values.astype(object)
    values = np.array(values, values.dtype.newbyteorder("="), order="C")
    if values.dtype.kind == "O":
        what = f"dataset {owner[0]!r}: {owner[1]}"
        values, type_name, escaped = encode_strings(what, values, string_type)
    else:
        type_name = _type_name(values.dtype)
    return Variable(dims, values, stored, coordinate, times, type_name, escaped)


def retyped(variable: Variable, type_name: str) -> Variable:
    """Return strings or bytes that are all missing in the other type; all else unchanged.

    Only other datasets determine whether such values are strings or bytes.
    """
    if variable.type_name == type_name or not {variable.type_name, type_name} <= MISSING.keys():
        return variable
    if count_missing(variable.values, variable.type_name) < variable.values.size:
        return variable
    values = np.empty(variable.values.shape, object)
    values.fill(MISSING[type_name])  # np.full drops trailing NULs
    return variable._replace(values=values, type_name=type_name)


def _type_name(dtype: np.dtype[Any]) -> str:
    name = _TYPE_NAMES.get(dtype)
    if name is None:
        name = _TYPE_NAMES[dtype] = dtype.str
    return name


def _string_type(encoded: Any) -> str:
    """Return the type of objects that a file encodes with this dtype."""
    return "bytes" if isinstance(encoded, np.dtype) and encoded.kind == "S" else "string"


_TIME_ATTRIBUTES = frozenset({"units", "calendar", "dtype", "_FillValue"})

# `dtype.str` is slow, because NumPy builds the string in each call.
_TYPE_NAMES: dict[np.dtype[Any], str] = {}


def _sizes(name: str, variables: dict[str, Variable]) -> dict[str, int]:
    """Return the lengths of the dimensions; raises ValueError if one has two lengths."""
    sizes: dict[str, int] = {}
    for key, variable in variables.items():
        dims, shape = variable.dims, variable.values.shape
        if len(dims) != len(shape):
            raise _core.InvalidError(
                f"dataset {name!r}: {key} has {len(shape)} dimensions, but the names {dims}"
            )
        for axis, dim in enumerate(dims):
            size = shape[axis]
            if sizes.setdefault(dim, size) != size:
                raise _core.InvalidError(
                    f"dataset {name!r}: dimension {dim!r} has length {sizes[dim]}, but {size} in "
                    f"{key}"
                )
    if ROW in sizes:
        raise _core.InvalidError(
            f"dataset {name!r}: the dimension name {ROW!r} is reserved; rename it"
        )
    return sizes


def _check(dataset: str, name: str, variable: Variable) -> None:
    """Check the name, the dimensions and the type of a variable."""
    if not _is_name(name):
        raise _core.InvalidError(
            f"dataset {dataset!r}: {name!r} is not a valid name of a variable; rename it"
        )
    check_unicode(f"dimension of dataset {dataset!r}", variable.dims)
    if len(set(variable.dims)) < len(variable.dims):
        raise _core.InvalidError(
            f"dataset {dataset!r}: {name} has a repeated dimension, {variable.dims}; give its "
            "dimensions different names, or leave the variable out"
        )
    dtype = variable.values.dtype
    if not is_number(dtype) and dtype.kind != "O":
        raise _core.UnsupportedError(
            f"dataset {dataset!r}: {name} has dtype {dtype}; expected numbers of up to 64 bits "
            "(complex: 128), bools, datetimes, strings or bytes: convert it"
        )
    if variable.times and (found := _TIME_ATTRIBUTES.intersection(variable.attributes)):
        raise _core.InvalidError(
            f"dataset {dataset!r}: the times {name} have the attributes {sorted(found)}, which the "
            "store sets; remove them"
        )


@functools.lru_cache(1024)
def _is_name(name: str) -> bool:
    """Whether a variable can have a name."""
    return name not in _RESERVED and "/" not in name and is_unicode(name)


def extended(old: Record, new: Record, dim: str) -> Record:
    """Return a dataset with the values of another one appended along `dim`.

    Raises ValueError if the variables differ, `dim` is not a dimension, or a variable without it
    has other values.
    """
    if old.variables.keys() != new.variables.keys() or dim not in old.sizes:
        raise _core.InvalidError(
            f"dataset {old.name!r} has variables {list(old.variables)} and dimensions "
            f"{list(old.sizes)}; it cannot be extended along {dim!r} by {list(new.variables)}"
        )
    variables = {}
    for key, was in old.variables.items():
        more = retyped(new.variables[key], was.type_name)
        if (more.type_name, more.times) != (was.type_name, was.times):
            raise _core.InvalidError(
                f"dataset {old.name!r}: {key} has dtype {dtype_name(was.type_name, was.times)}, "
                f"found {dtype_name(more.type_name, more.times)} to append; convert it"
            )
        if dim in was.dims:
            values = np.concatenate([was.values, more.values], was.dims.index(dim))
            escaped = was.escaped or more.escaped
            variables[key] = was._replace(values=values, escaped=escaped)
        elif np.array_equal(was.values, more.values):
            variables[key] = was
        else:
            raise _core.InvalidError(
                f"dataset {old.name!r}: {key} has no dimension {dim!r}, and its values differ"
            )
    return record_of(old.name, variables, old.attributes)


def has_range(type_name: str) -> bool:
    """Whether values of the type have an order: numbers and bools, but not complex ones."""
    return type_name not in ("string", "bytes") and np.dtype(type_name).kind in "biuf"


PART = 1 << 16
"""Number of values in each comparison, without large temporary arrays."""


def _are_null(values: np.ndarray, times: bool) -> np.ndarray:
    return np.asarray(values == NOT_A_TIME if times else np.isnan(values))


def _count_nulls(values: np.ndarray, times: bool) -> int:
    if values.dtype.kind not in "fc" and not times:
        return 0
    parts = (values[at : at + PART] for at in range(0, len(values), PART))
    return sum(int(np.count_nonzero(_are_null(part, times))) for part in parts)


def measure(
    values: np.ndarray, sizes: np.ndarray, times: bool
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the ranges of consecutive rows (rows, 2), and their counts of values and nulls.

    `values` is flat, and `sizes` has the number of values of each row. Nulls are NaN and NaT, which
    do not count in the range. Without other values the range is that of nulls (0 for integers).
    There are no ranges of strings and complex numbers.
    """
    kind = values.dtype.kind
    is_full = sizes > 0
    starts = (np.cumsum(sizes) - sizes)[is_full]

    def reduced(function: np.ufunc, of: np.ndarray, empty: Any) -> np.ndarray:
        found = np.full(len(sizes), empty, of.dtype)
        if len(starts):
            found[is_full] = function.reduceat(of, starts)
        return found

    nulls = np.zeros(len(sizes), np.int64)
    if values.size > PART * len(sizes):
        ends = np.cumsum(sizes)
        rows = zip(ends - sizes, ends, strict=True)
        nulls[:] = [_count_nulls(values[first:end], times) for first, end in rows]
    elif kind in "fc" or times:
        nulls = reduced(np.add, _are_null(values, times).astype(np.int64), 0)
    counts = np.stack([sizes, nulls], 1)
    if kind in "cO":
        return None, counts
    if times:
        is_null = _are_null(values, times)
        low = reduced(np.minimum, np.where(is_null, np.iinfo(np.int64).max, values), NOT_A_TIME)
        low[nulls == sizes] = NOT_A_TIME
        high = reduced(np.maximum, values, NOT_A_TIME)  # NaT is the smallest value
    elif kind == "f":
        low, high = reduced(np.fmin, values, np.nan), reduced(np.fmax, values, np.nan)
    else:
        low, high = reduced(np.minimum, values, 0), reduced(np.maximum, values, 0)
    return np.stack([low, high], 1), counts


def merged_statistics(
    parts: Sequence[tuple[np.ndarray | None, np.ndarray]],
) -> tuple[np.ndarray | None, np.ndarray]:
    """Return the range (1, 2) and the counts of a row, from those of its parts by `measure`."""
    counts = np.sum([counts for _, counts in parts], 0)
    ranges = [found for found, _ in parts if found is not None]
    if not ranges:
        return None, counts
    found = np.concatenate(ranges)
    is_float = found.dtype.kind == "f"
    low, high = (np.fmin, np.fmax) if is_float else (np.minimum, np.maximum)
    return np.array([[low.reduce(found[:, 0]), high.reduce(found[:, 1])]], found.dtype), counts

"""A dataset as a collection takes it: its variables as NumPy arrays of types that are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ambar import _core
from ambar.collection.attributes import check_attributes
from ambar.collection.times import encode_times

if TYPE_CHECKING:
    import xarray as xr

Input: TypeAlias = "xr.Dataset | Mapping[str, Any] | Record"

ROW = "dataset"
"""The name of the dimension that counts datasets."""

_TAKEN = {"attributes", "statistics", "zarr.json", "", ".", ".."}
"""What no variable can be named: a family's own groups, and what is no name of a Zarr node."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of one dataset."""

    dims: tuple[str, ...]
    values: np.ndarray
    attributes: dict[str, Any]
    coordinate: bool
    times: str | None
    """CF units where the values count time; see `times`."""

    @property
    def type_name(self) -> str:
        """The name of the dtype; "object" for strings and bytes of any length."""
        if self.values.dtype.kind == "O":
            first = self.values.flat[0] if self.values.size else ""
            return "bytes" if isinstance(first, bytes) else "string"
        return self.values.dtype.str


@dataclass(frozen=True, slots=True)
class Record:
    """One dataset."""

    name: str
    variables: dict[str, Variable]
    attributes: dict[str, Any]

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths of the dimensions."""
        return {
            dim: size
            for variable in self.variables.values()
            for dim, size in zip(variable.dims, variable.values.shape, strict=True)
        }

    @property
    def nbytes(self) -> int:
        """Bytes of the values in memory."""
        return sum(variable.values.nbytes for variable in self.variables.values())


def as_record(name: str, dataset: Input) -> Record:
    """Return a dataset of xarray, or a mapping from names to arrays, as a record that is checked.

    What can be found wrong with a dataset is found here: an error while records are written would
    be one of all that were added with it.

    A mapping's values are arrays, `(dims, array)` or `(dims, array, attributes)`, as
    ``xarray.Dataset`` takes them; without `dims` the dimensions are named ``dim_0``, ``dim_1``, ...

    Raises
    ------
    InvalidError
        If the name is no text or empty, a dimension has two lengths, or is named "dataset"; if a
        variable is named as no array can be, or an attribute cannot be stored.
    UnsupportedError
        If values are of a type that cannot be stored.
    """
    if isinstance(dataset, Record):
        return dataset if dataset.name == name else replace(dataset, name=name)
    if not isinstance(name, str) or not name or not _is_unicode(name):
        raise _core.InvalidError(f"a dataset's name is a text of at least one letter, not {name!r}")
    attributes: dict[str, Any] = {}
    if not hasattr(dataset, "coords"):
        variables = {str(key): _of_mapping(str(key), value) for key, value in dataset.items()}
    else:
        # `variables` of a Dataset makes no DataArrays, which would take most of the time.
        dataset = cast("xr.Dataset", dataset)
        coords = dataset.coords
        variables = {
            str(key): _variable(tuple(map(str, v.dims)), v.values, dict(v.attrs), key in coords)
            for key, v in dataset.variables.items()
        }
        attributes = {str(key): value for key, value in dataset.attrs.items()}
    record = Record(name, variables, attributes)
    _check(record)
    return record


def _of_mapping(key: str, value: Any) -> Variable:
    attributes: dict[str, Any] = {}
    if isinstance(value, tuple):
        dims, values, *rest = value
        dims = (dims,) if isinstance(dims, str) else tuple(map(str, dims))
        attributes = dict(rest[0]) if rest else {}
        values = np.asarray(values)
    else:
        values = np.asarray(value)
        dims = tuple(f"dim_{axis}" for axis in range(values.ndim))
    return _variable(dims, values, attributes, dims == (key,))


def _variable(
    dims: tuple[str, ...], values: np.ndarray, attributes: dict[str, Any], coordinate: bool
) -> Variable:
    times = None
    if values.dtype.kind in "mM":
        values, times = encode_times(values)
    elif values.dtype.kind in "UST":
        values = values.astype(object)
    if values.ndim and not values.flags.c_contiguous:
        values = np.ascontiguousarray(values)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return Variable(dims, values, attributes, coordinate, times)


def _check(record: Record) -> None:
    sizes: dict[str, int] = {}
    check_attributes(f"dataset {record.name!r}", record.attributes)
    for name, variable in record.variables.items():
        if name in _TAKEN or "/" in name or not _is_unicode(name):
            raise _core.InvalidError(
                f"dataset {record.name!r}: no variable may be named {name!r}, as arrays of a "
                "collection are not; rename it"
            )
        check_attributes(f"dataset {record.name!r}: {name}", variable.attributes)
        if len(variable.dims) != variable.values.ndim:
            raise _core.InvalidError(
                f"dataset {record.name!r}: {name} has {variable.values.ndim} dimensions, named "
                f"{variable.dims}; name each of them"
            )
        if variable.values.dtype.kind not in "biufcO":
            raise _core.UnsupportedError(
                f"dataset {record.name!r}: {name} is of dtype {variable.values.dtype}; numbers, "
                "bools, datetimes, strings and bytes can be stored"
            )
        if variable.values.dtype.kind == "O":
            _check_texts(f"dataset {record.name!r}: {name}", variable)
        for dim, size in zip(variable.dims, variable.values.shape, strict=True):
            if dim == ROW:
                raise _core.InvalidError(
                    f"dataset {record.name!r}: no dimension may be named {ROW!r}, as {name}'s is: "
                    "collections count their datasets along it; rename it"
                )
            if sizes.setdefault(dim, size) != size:
                raise _core.InvalidError(
                    f"dataset {record.name!r}: dimension {dim!r} has length {sizes[dim]}, but "
                    f"{size} in {name}"
                )


def _check_texts(what: str, variable: Variable) -> None:
    """Check that all objects are strings that are Unicode, or all are bytes."""
    try:
        if variable.type_name == "bytes":
            b"".join(variable.values.flat)
        else:
            "".join(variable.values.flat).encode()
    except TypeError:
        kinds = sorted({type(value).__name__ for value in variable.values.flat})
        raise _core.UnsupportedError(
            f"{what} has objects of {', '.join(kinds)}; arrays of objects can be stored if all are "
            "strings, or all are bytes: convert them, times to datetime64"
        ) from None
    except UnicodeEncodeError as error:
        raise _core.UnsupportedError(f"{what} has a string that is no Unicode: {error}") from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

"""NumPy dtypes and the Zarr v3 data types they are stored as."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    import numpy.typing as npt

_TIMES = {"M": "numpy.datetime64", "m": "numpy.timedelta64"}


def common_dtype(variable: str, dtypes: set[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the dtype to which NumPy promotes the dtypes that a variable has in several datasets.

    Raises
    ------
    ValueError
        If there is none, as for integers and times.
    """
    try:
        return np.result_type(*dtypes)
    except TypeError as error:
        names = ", ".join(sorted(map(str, dtypes)))
        raise _core.InvalidError(
            f"variable {variable!r}: expected dtypes with a common dtype, found {names}; select "
            "datasets in which it has one of them"
        ) from error


def to_zarr(values: np.ndarray) -> tuple[str, np.ndarray | list[bytes]]:
    """Return the JSON text of the Zarr data type of `values`, and what the extension module takes.

    That is a flat array in C order, native byte order and a dtype that has the buffer protocol, or,
    for strings and bytes of any length, a list of bytes.

    Raises
    ------
    UnsupportedError
        If there is no such Zarr data type.
    """
    dtype = values.dtype
    if dtype.kind in "OT":
        return _strings(values)
    if dtype.kind in "US" and dtype.itemsize == 0:
        values = values.astype(f"{dtype.kind}1")
    data = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    if dtype.kind in "biufc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8):
        return json.dumps(dtype.newbyteorder("=").name), data
    if dtype.kind == "U":
        return _extension("fixed_length_utf32", length_bytes=data.itemsize), data
    if dtype.kind == "S":
        return _extension("null_terminated_bytes", length_bytes=data.itemsize), data
    if dtype.kind in _TIMES:
        unit, scale = np.datetime_data(dtype)
        return _extension(_TIMES[dtype.kind], unit=unit, scale_factor=scale), data.view("i8")
    raise _core.UnsupportedError(
        f"values of dtype {dtype} cannot be stored; numbers up to 64 bits (complex: 128), bools, "
        "datetimes, strings and bytes can"
    )


def describe(dtype: npt.DTypeLike) -> tuple[str, np.dtype[Any]]:
    """Return the JSON text of the Zarr data type of `dtype`, and the NumPy dtype of its values.

    ``str`` and ``bytes`` stand for strings of any length. Raises UnsupportedError if there is no
    such Zarr data type.
    """
    if dtype in (str, bytes):
        return json.dumps("string" if dtype is str else "variable_length_bytes"), np.dtype(object)
    values = np.empty(0, dtype)
    return to_zarr(values)[0], values.dtype


def to_bytes(value: Any, dtype: np.dtype[Any]) -> bytes:
    """Return a fill value as the bytes of `dtype`, native order; for strings, as UTF-8."""
    if dtype.kind in "OT":
        return value if isinstance(value, bytes) else str(value).encode()
    try:
        return np.array(value).astype(dtype.newbyteorder("="), casting="same_kind").tobytes()
    except TypeError as error:
        raise _core.InvalidError(f"fill_value {value!r} is no value of dtype {dtype}") from error


def _extension(name: str, **configuration: Any) -> str:
    return json.dumps({"name": name, "configuration": configuration})


def _strings(values: np.ndarray) -> tuple[str, list[bytes]]:
    flat = values.ravel().tolist()
    if all(isinstance(value, str) for value in flat):
        return json.dumps("string"), [value.encode() for value in flat]
    if all(isinstance(value, bytes) for value in flat):
        return json.dumps("variable_length_bytes"), flat
    found = next(value for value in flat if not isinstance(value, str))
    raise _core.UnsupportedError(
        "an array of objects can be stored if all are str, or all are bytes; there is a "
        f"{type(found).__name__}"
    )

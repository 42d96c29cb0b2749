"""NumPy dtypes, and the names and buffers in which the extension module receives values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    import numpy.typing as npt


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


def as_unmasked_array(what: str, data: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return data as an array; `what` names them in messages.

    Raises
    ------
    ValueError
        If values are masked: a store has no masks, and the values below a mask are arbitrary.
    """
    if np.ma.is_masked(data):
        count = np.count_nonzero(np.ma.getmaskarray(cast(Any, data)))
        raise _core.InvalidError(
            f"{what}: expected values without a mask, found {count:,} masked "
            "values; fill them first: values.filled(...)"
        )
    return np.asarray(data)


def to_core(path: str, values: npt.NDArray[Any]) -> tuple[str, npt.NDArray[Any] | list[bytes]]:
    """Return the dtype and the values of the array at `path` for the extension module.

    The dtype is its name in NumPy; "string" or "bytes" for strings and bytes of any length. The
    values are a flat array in C order, native byte order and a dtype that has the buffer protocol,
    or, for strings and bytes of any length, a list of bytes.

    Raises
    ------
    UnsupportedError
        If values of the dtype cannot be stored.
    """
    dtype = values.dtype
    if dtype.kind in "OT":
        return _strings(path, values)
    if dtype.kind in "US" and dtype.itemsize == 0:
        values = values.astype(f"{dtype.kind}1")
    data = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("=")).reshape(-1)
    if is_number(dtype) or dtype.kind in "US":
        return str(data.dtype), data
    if dtype.kind in "mM":
        return str(data.dtype), data.view("i8")
    raise _core.UnsupportedError(
        f"{path}: values of dtype {dtype} cannot be stored; numbers up to 64 bits (complex: 128), "
        "bools, datetimes, strings and bytes can"
    )


def is_number(dtype: np.dtype[Any]) -> bool:
    """Return whether values are bools, or numbers of at most 64 bits (complex: 128)."""
    return dtype.kind in "biufc" and dtype.itemsize <= (16 if dtype.kind == "c" else 8)


def describe(path: str, dtype: npt.DTypeLike) -> tuple[str, np.dtype[Any]]:
    """Return the name of `dtype` for the extension module, and the NumPy dtype of its values.

    ``str`` and ``bytes`` are strings and bytes of any length. Raises UnsupportedError if values of
    the dtype cannot be stored.
    """
    if dtype in (str, bytes):
        return "string" if dtype is str else "bytes", np.dtype(object)
    values = np.empty(0, dtype)
    return to_core(path, values)[0], values.dtype


def can_convert(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Return whether `convert_exactly` converts values of a dtype if they have suitable values."""
    is_real = source.kind in "biuf" and target.kind in "biufc"
    return is_real or (source.kind == target.kind and source.kind in "cmMUS")


def convert_exactly(values: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any] | None:
    """Return values in another dtype; None if that changes more than the precision of floats."""
    dtype = np.dtype(dtype)
    if values.dtype == dtype:
        return values
    if not can_convert(values.dtype, dtype):
        return None
    with np.errstate(all="ignore"):
        try:
            result = values.astype(dtype)
        except OverflowError:  # of times
            return None
        is_kept = _are_kept(values, result)
    return result if np.all(is_kept) else None


def _are_kept(values: npt.NDArray[Any], result: npt.NDArray[Any]) -> Any:
    """Return whether converted values are the given ones, apart from the precision of floats."""
    given, found = values.dtype, result.dtype
    if found.kind == "c":
        return _are_kept(values.real, result.real) & _are_kept(values.imag, result.imag)
    if given.kind == found.kind == "f":
        is_nan = np.isnan(values) & np.isnan(result)
        return np.isfinite(result) | (values == result) | is_nan
    if given.kind in "mM":
        has_unit = np.datetime_data(given)[0] != "generic"
        back = result.astype(given) if has_unit else result
        return (back == values) | (np.isnat(values) & np.isnat(result))
    if given.kind == "f" and found.kind in "iu":
        return _are_inside(values, found) & (values == result)
    if given.kind in "iu" and found.kind == "f":
        return _are_inside(result, given) & (result.astype(given) == values)
    is_same = result.astype(given) == values
    return is_same if given.kind in "US" else is_same & ((result < 0) == (values < 0))


def _are_inside(floats: npt.NDArray[Any], integers: np.dtype[Any]) -> Any:
    """Return whether floats are within the limits of a dtype of integers."""
    limits = np.iinfo(integers)
    # The largest integer of 64 bits is rounded up to a float that is not one of them.
    return (floats >= float(limits.min)) & (floats < float(limits.max) + 1)


def to_bytes(path: str, value: Any, dtype: np.dtype[Any]) -> bytes:
    """Return the fill value of the array at `path` as bytes, in native order; strings as UTF-8.

    Raises
    ------
    ValueError
        If the value is not one of `dtype`; floats are rounded.
    """
    if dtype.kind in "OT" and isinstance(value, str | bytes):
        return _strings(path, np.array([value], dtype=object))[1][0]
    given = np.asarray(value)
    fill = convert_exactly(given, dtype.newbyteorder("=")) if dtype.kind not in "OT" else None
    if given.ndim == 0 and fill is not None:
        return fill.tobytes()
    expected = "str or bytes" if dtype.kind in "OT" else dtype
    raise _core.InvalidError(
        f"{path}: expected a fill_value of {expected}, found {value!r:.80}; give a value of this "
        "type"
    )


def refuse_arrays(what: str, values: npt.NDArray[Any]) -> None:
    """Raise UnsupportedError if objects are arrays or lists; `what` names the variable."""
    found = {
        f"{type(value).__name__}{f' of {value.dtype}' if hasattr(value, 'dtype') else ''}"
        for value in values.flat
        if hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))
    }
    if found == {"tuple"}:
        raise _core.UnsupportedError(
            f"{what} has objects that are tuples, as a MultiIndex has; expected numbers, strings "
            "or bytes: make variables of its levels with reset_index()"
        )
    if found:
        raise _core.UnsupportedError(
            f"{what} has objects that are arrays ({', '.join(sorted(found))}); expected numbers, "
            "strings or bytes: pad the arrays to one length, or write their values as one variable "
            "and the number of values of each array as another"
        )


def _strings(path: str, values: npt.NDArray[Any]) -> tuple[str, list[bytes]]:
    flat = values.ravel().tolist()
    types = {type(value) for value in flat}
    if all(issubclass(one, str) for one in types):
        try:
            return "string", [value.encode() for value in flat]
        except UnicodeEncodeError as error:
            raise _core.InvalidError(
                f"{path}: expected strings that UTF-8 can encode, found {error.object!r:.80}; "
                "replace its surrogates"
            ) from None
    if all(issubclass(one, bytes) for one in types):
        return "bytes", flat
    found = ", ".join(sorted(one.__name__ for one in types))
    raise _core.UnsupportedError(
        f"{path}: expected an array of objects that are all str, or all bytes, found objects of "
        f"{found}; convert the values"
    )

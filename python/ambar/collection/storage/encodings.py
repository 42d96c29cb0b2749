"""Encodings of values that arrays cannot hold: times, and strings with missing values.

Times are integers with CF units (CF conventions 1.11, section 4.4), which xarray decodes from any
Zarr reader. A missing string is a single NUL. A value that begins with NUL gets another NUL in
front, so that every value can be stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ambar import _core
from ambar.store.dtypes import refuse_arrays

NOT_A_TIME = np.iinfo(np.int64).min
"""The stored value of NaT, as in NumPy; the attribute ``_FillValue`` has it."""

_UNITS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_EPOCH = " since 1970-01-01"


def encode_times(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return datetimes or durations as int64 and their CF units.

    Raises
    ------
    UnsupportedError
        If CF has no such unit: weeks, months, years, or multiples of a unit.
    """
    unit, count = np.datetime_data(values.dtype)
    if unit not in _UNITS or count != 1:
        raise _core.UnsupportedError(
            f"values of dtype {values.dtype} cannot be stored; convert them to datetime64[ns] or "
            "timedelta64[ns]"
        )
    units = _UNITS[unit]
    if values.dtype.kind == "M":
        units += _EPOCH
    return values.view(np.int64), units


def decoded_dtype(units: str) -> np.dtype[np.generic]:
    """Return the NumPy dtype that values of these CF units had before `encode_times`."""
    name, since, _ = units.partition(_EPOCH)
    unit = next((unit for unit, cf in _UNITS.items() if cf == name), None)
    if unit is None:
        raise _core.CorruptError(f"invalid units of time {units!r}; restore the store from a copy")
    return np.dtype(f"{'datetime64' if since else 'timedelta64'}[{unit}]")


def dtype_name(type_name: str, units: str | None) -> str:
    """Return the dtype of decoded values as text.

    Parameters
    ----------
    type_name : str
        NumPy's name of the stored dtype; "string" or "bytes".
    units : str, optional
        The CF units of times.
    """
    if units:
        return str(decoded_dtype(units))
    return type_name if type_name in ("string", "bytes") else str(np.dtype(type_name))


def attributes_of(units: str) -> dict[str, object]:
    """Return the attributes with which CF readers decode the integers as times."""
    attributes: dict[str, object] = {"units": units, "_FillValue": NOT_A_TIME}
    if units.endswith(_EPOCH):
        attributes["calendar"] = "proleptic_gregorian"
    else:
        attributes["dtype"] = str(decoded_dtype(units))
    return attributes


MISSING: dict[str, Any] = {"string": "\0", "bytes": b"\0"}
"""The stored value of a missing one, by type."""


_NA = "NAType"
"""The type of `pandas.NA`, without importing pandas."""


def encode_strings(what: str, values: np.ndarray, type_name: str) -> tuple[np.ndarray, str, bool]:
    """Return the stored form of objects, their type, and whether some are encoded.

    Parameters
    ----------
    what
        The dataset and the variable, for errors.
    values
        Strings or bytes in C order; missing ones are None, NaN or `pandas.NA`.
    type_name
        "string" or "bytes": the type if all values are missing.

    Raises
    ------
    UnsupportedError
        If other objects are among them, or strings and bytes, or invalid Unicode.
    """
    flat = values.ravel()
    first = flat[0] if flat.size else MISSING[type_name]
    if isinstance(first, (str, bytes)):
        type_name = "bytes" if isinstance(first, bytes) else "string"
        try:
            # Joining is the fastest check of all objects.
            joined = b"".join(flat) if isinstance(first, bytes) else "".join(flat)
        except TypeError:
            return _encode_some_missing(what, values, type_name)
        if isinstance(joined, str):
            _check_unicode(what, joined)
        if MISSING[type_name] not in joined:
            return values, type_name, False
        return _encoded(values, type_name), type_name, True
    return _encode_some_missing(what, values, type_name)


def _encode_some_missing(
    what: str, values: np.ndarray, type_name: str
) -> tuple[np.ndarray, str, bool]:
    present = [value for value in values.flat if not _is_missing(value)]
    if present:
        type_name = "bytes" if isinstance(present[0], bytes) else "string"
    kind = bytes if type_name == "bytes" else str
    if not all(isinstance(value, kind) for value in present):
        refuse_arrays(what, values)
        found = sorted({type(value).__name__ for value in present})
        raise _core.UnsupportedError(
            f"{what} has objects of {', '.join(found)}; expected only strings or only bytes, with "
            "None, NaN or pandas.NA for missing values: convert them, times to datetime64"
        )
    if type_name == "string":
        _check_unicode(what, "".join(present))
    return _encoded(values, type_name), type_name, True


def _encoded(values: np.ndarray, type_name: str) -> np.ndarray:
    missing = MISSING[type_name]
    encoded = np.empty(values.shape, object)
    encoded.reshape(-1)[:] = [
        missing if _is_missing(value) else missing + value if value[:1] == missing else value
        for value in values.flat
    ]
    return encoded


def decode_strings(values: np.ndarray, type_name: str) -> np.ndarray:
    """Return the values that `encode_strings` encoded, with NaN for missing ones as in xarray."""
    missing = MISSING[type_name]
    decoded = np.empty(values.shape, object)
    decoded.reshape(-1)[:] = [
        math.nan if value == missing else value[1:] if value[:1] == missing else value
        for value in values.flat
    ]
    return decoded


def count_missing(values: np.ndarray, type_name: str) -> int:
    """Return the number of missing values among encoded ones."""
    # NumPy ignores trailing NULs in comparisons.
    return int(values.ravel().tolist().count(MISSING[type_name]))


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return value is None or is_nan or type(value).__name__ == _NA


def _check_unicode(what: str, joined: str) -> None:
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise _core.UnsupportedError(
            f"{what} has a string that is not valid Unicode: {error}"
        ) from None

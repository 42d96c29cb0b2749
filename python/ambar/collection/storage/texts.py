"""Strings and bytes of any length, some of which may be missing: encoded as strings alone.

A missing value is a single NUL. A value that begins with NUL has one more, so that every value can
be stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ambar import _core

MISSING: dict[str, Any] = {"string": "\0", "bytes": b"\0"}
"""What a missing value is stored as, by the type."""


def encode_texts(what: str, values: np.ndarray, type_name: str) -> tuple[np.ndarray, str, bool]:
    """Return objects as they are stored, their type, and whether some are encoded.

    Parameters
    ----------
    what
        The dataset and variable, for errors.
    values
        Strings, or bytes, with None or NaN where they are missing; in C order.
    type_name
        "string" or "bytes": what they are if no value says so.

    Raises
    ------
    UnsupportedError
        If there are other objects, or both, or strings that are not Unicode.
    """
    flat = values.ravel()
    first = flat[0] if flat.size else MISSING[type_name]
    if isinstance(first, (str, bytes)):
        type_name = "bytes" if isinstance(first, bytes) else "string"
        try:
            # Joining is the quickest look at all objects.
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
        found = sorted({type(value).__name__ for value in present})
        raise _core.UnsupportedError(
            f"{what} has objects of {', '.join(found)}; arrays of objects can be stored if all are "
            "strings, or all are bytes, with None or NaN where they are missing: convert them, "
            "times to datetime64"
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


def decode_texts(values: np.ndarray, type_name: str) -> np.ndarray:
    """Return what `encode_texts` was given; NaN for missing values, as xarray has it."""
    missing = MISSING[type_name]
    decoded = np.empty(values.shape, object)
    decoded.reshape(-1)[:] = [
        math.nan if value == missing else value[1:] if value[:1] == missing else value
        for value in values.flat
    ]
    return decoded


def all_missing(values: np.ndarray, type_name: str) -> np.ndarray:
    """Return encoded values of another type, none of which is present, as values of this one."""
    missing = np.empty(values.shape, object)
    missing.fill(MISSING[type_name])
    return missing


def count_missing(values: np.ndarray, type_name: str) -> int:
    """Return how many of encoded values are missing."""
    # NumPy drops a NUL at the end of what it compares with.
    return int(values.ravel().tolist().count(MISSING[type_name]))


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _check_unicode(what: str, joined: str) -> None:
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise _core.UnsupportedError(f"{what} has a string that is no Unicode: {error}") from None

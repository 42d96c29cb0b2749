"""Dates in conditions: times and strings as text of one form, which has the order of time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Set as AbstractSet

import numpy as np

from ambar import _core

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`(?P<quoted>[^`]*)`"""
    r"""|(?P<link>\b(?:and|or|not(?!\s+in\b))\b)|(?P<name>[^\W\d][\w.]*)"""
)
"""Strings, names, and the words between comparisons."""


def is_time(values: np.ndarray) -> bool:
    """Return whether a column has datetimes, and perhaps missing values."""
    if values.dtype != object:
        return values.dtype.kind == "M"
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, np.datetime64) for value in known)


def iso_dates(times: np.ndarray) -> np.ndarray:
    """Return datetimes as text with nanoseconds; None for NaT and missing ones."""
    missing = np.array([value is None or np.isnat(value) for value in times], bool)
    found = np.full(len(times), None, object)
    found[~missing] = [_iso(value) for value in times[~missing]]
    return found


def with_iso_dates(condition: str, times: AbstractSet[str]) -> tuple[str, set[str]]:
    """Return a condition with the strings that are compared with times in the form of `iso_dates`.

    Also return the names of these times. Raises ValueError for a string that is not a date.

    Examples
    --------
    >>> with_iso_dates("launch > '2020' and ship == '2020'", {"launch"})
    ("launch > '2020-01-01T00:00:00.000000000' and ship == '2020'", {'launch'})
    """
    parts, compared, start = [], set(), 0
    ends = [match.start() for match in _TOKEN.finditer(condition) if match["link"]]
    for end in [*ends, len(condition)]:
        part = condition[start:end]
        tokens = [*_TOKEN.finditer(part)]
        found = {token["quoted"] or token["name"] for token in tokens} & times
        if found and any(token["text"] for token in tokens):
            part = _TOKEN.sub(lambda token: _dated(token[0]) if token["text"] else token[0], part)
            compared |= found
        parts.append(part)
        start = end
    return "".join(parts), compared


def _dated(literal: str) -> str:
    """Return the literal of a date in the form of `iso_dates`."""
    text = literal[1:-1].removesuffix("Z")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy warns of other time zones
            time = np.datetime64(text)
    except (ValueError, UserWarning, DeprecationWarning):
        time = np.datetime64("NaT")
    if np.isnat(time):
        raise _core.InvalidError(
            f"expected a date in UTC to compare with a time, such as '2020-02-01' or "
            f"'2020-02-01T12:30', found {literal}"
        )
    return f"'{_iso(time)}'"


def _iso(time: np.datetime64) -> str:
    text = str(np.datetime_as_string(time, unit="ns"))
    if not re.match(r"\d{4}-", text):
        raise _core.InvalidError(
            f"expected a date of the years 0 to 9999 in a condition, found {text}; select with a "
            "mask of collection.attrs or collection.stats"
        )
    return text

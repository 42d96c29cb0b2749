"""Attributes of datasets and variables: those in common once, those that differ as columns of JSON.

JSON lacks times and floats that are no numbers: they are objects of one key,
``{"datetime64": ...}``, ``{"timedelta64": ...}`` and ``{"float": "nan"}``.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from ambar.collection.family import Family
    from ambar.collection.records import Record

Key: TypeAlias = tuple[str | None, str]
"""The variable (None: the dataset itself) and the attribute's name."""

ABSENT = ""
"""What stands in a column for a dataset that lacks the attribute."""

_SIMPLE = (str, bool)
"""Types that can be stored as they are."""

_INTEGERS = range(-(2**63), 2**64)

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: Any) -> Any:  # noqa: PLR0911 - a case each
    """Return an attribute's value as JSON can hold it.

    Raises
    ------
    InvalidError
        If it cannot.
    """
    if (
        isinstance(value, (str, bool))
        or value is None
        or (isinstance(value, int) and value in _INTEGERS)
    ):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind in "mM":
            kind = "datetime64" if value.dtype.kind == "M" else "timedelta64"
            return _times(kind, np.asarray(value))
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, (datetime.datetime, datetime.date)):
        return _times("datetime64", np.asarray(np.datetime64(value)))
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    raise _core.InvalidError(
        f"an attribute is a {type(value).__name__}{_shown(value)}; texts, numbers of up to 64 "
        "bits, bools, times, lists and dictionaries of them can be stored"
    )


def check_attributes(owner: tuple[str, ...], attributes: Mapping[str, Any]) -> None:
    """Raise InvalidError for attributes that cannot be stored.

    `owner` is named there: a dataset, and its variable if they are one's.
    """
    for key, value in attributes.items():
        if key == "ambar":
            raise _core.InvalidError(
                f'{_named(owner)}: no attribute may be named "ambar", which the store needs '
                "itself; rename it"
            )
        try:
            if type(value) not in _SIMPLE:
                value = json.dumps(plain(value), ensure_ascii=False)  # noqa: PLW2901 - to be checked
            f"{key}{value}".encode()
        except (_core.InvalidError, UnicodeEncodeError) as error:
            raise _core.InvalidError(f"{_named(owner)}: attribute {key!r}: {error}") from None


def _named(owner: tuple[str, ...]) -> str:
    dataset, *variable = owner
    return ": ".join([f"dataset {dataset!r}", *variable])


def _shown(value: Any) -> str:
    return f", {value}" if isinstance(value, (int, complex)) else ""


def _times(kind: str, values: np.ndarray) -> Any:
    if values.ndim:
        return [_times(kind, np.asarray(value)) for value in values]
    if kind == "datetime64":
        return {kind: str(values)}
    unit, _ = np.datetime_data(values.dtype)
    return {kind: [int(values.astype(np.int64)), unit]}


def restored(value: Any) -> Any:
    """Return what `plain` was given, arrays as lists."""
    if isinstance(value, list):
        return [restored(part) for part in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(kind, part)] = value.items()
        if kind == "datetime64":
            return np.datetime64(part)
        if kind == "timedelta64":
            return np.timedelta64(*part)
        if kind == "float":
            return _FLOATS[part]
    return {key: restored(part) for key, part in value.items()}


def parse(texts: Iterable[str]) -> list[Any]:
    """Return the values of a column; None where a dataset lacks the attribute."""
    values = json.loads(f"[{','.join(text or 'null' for text in texts)}]")
    return [restored(value) if isinstance(value, (dict, list)) else value for value in values]


class Texts:
    """Attributes as JSON texts; the last are remembered, as most datasets have the same."""

    def __init__(self) -> None:
        self._last: dict[str | None, tuple[dict[str, Any], dict[str, str]]] = {}

    def of(self, scope: str | None, attributes: dict[str, Any]) -> dict[str, str]:
        """Return the texts of the attributes of one variable, or of the dataset."""
        if scope in self._last:
            last, texts = self._last[scope]
            try:
                if last == attributes:
                    return texts
            except ValueError:
                pass  # arrays are not compared
        texts = {}
        for key, value in attributes.items():
            texts[key] = json.dumps(plain(value))
        self._last[scope] = attributes, texts
        return texts


def merge(family: Family, records: list[Record]) -> tuple[dict[Key, list[str]], list[Key]]:
    """Take the attributes of more datasets into a family.

    Returns the texts of the new rows of each column, and the columns that are new: their earlier
    rows all have what was in common so far, which is ``family``'s no longer.
    """
    texts = Texts()
    columns: dict[Key, list[str]] = {}
    new: list[Key] = []
    for scope in (None, *family.columns):
        rows = [
            texts.of(scope, r.attributes if scope is None else r.variables[scope].attributes)
            for r in records
        ]
        common = family.attributes if scope is None else family.columns[scope].attributes
        varying = {key for variable, key in family.varying if variable == scope}
        if family.rows == 0:
            common.update({key: json.loads(text) for key, text in rows[0].items()})
        known = {key: json.dumps(value) for key, value in common.items()}
        if all(row is rows[0] or row == rows[0] for row in rows) and rows[0] == known:
            continue
        keys = dict.fromkeys(key for row in (known, *rows) for key in row)
        for key in [*keys, *(key for key in varying if key not in keys)]:
            column = [row.get(key, ABSENT) for row in rows]
            if key not in varying:
                if all(text == known.get(key, ABSENT) for text in column):
                    continue
                new.append((scope, key))
            columns[scope, key] = column
    for scope in {variable for variable, _ in family.varying} - {None, *family.columns}:
        raise _core.CorruptError(f"/{family.group} has attributes of {scope}, which it lacks")
    for place in family.varying:
        columns.setdefault(place, [ABSENT] * len(records))
    return columns, new


def forget(family: Family, key: Key) -> str:
    """Make an attribute vary that was in common; return the text that all earlier rows have."""
    scope, name = key
    common = family.attributes if scope is None else family.columns[scope].attributes
    family.varying.append(key)
    return json.dumps(common.pop(name)) if name in common else ABSENT

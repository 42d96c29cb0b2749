"""Attributes of datasets and variables: equal ones once, different ones as columns of JSON.

JSON lacks times and non-finite floats: these are objects of one key, ``{"datetime64": ...}``,
``{"timedelta64": ...}`` and ``{"float": "nan"}``. A mapping with just one of these keys is stored
as ``{"dict": ...}``.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from ambar.collection.storage.family import Family
    from ambar.collection.storage.records import Record

Key: TypeAlias = tuple[str | None, str]
"""The variable (None: the dataset itself) and the attribute's name."""

ABSENT = ""
"""The value in a column for a dataset without the attribute."""

_RESERVED = "ambar"

_INTEGERS = range(-(2**63), 2**64)

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: Any) -> Any:  # noqa: PLR0911 - a case each
    """Return the value of an attribute as JSON can represent it.

    Raises
    ------
    ValueError
        If JSON cannot represent it.
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
        parts = {str(key): plain(part) for key, part in value.items()}
        # A mapping that looks like a time or a float is marked.
        return {"dict": parts} if len(parts) == 1 and _MARKS.issuperset(parts) else parts
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    raise _core.InvalidError(
        f"expected strings, numbers of at most 64 bits, bools, times, lists or mappings of these, "
        f"found {type(value).__name__}{_shown(value)}"
    )


def attributes_as_json(owner: tuple[str, ...], attributes: Mapping[Any, Any]) -> dict[str, str]:
    """Return attributes as JSON.

    `owner` is the dataset, and the variable, for errors. Raises ValueError for attributes that
    cannot be stored.
    """
    encoded: dict[str, str] = {}
    for key, value in attributes.items():
        try:
            _check_name(key, encoded)
            encoded[str(key)] = _text(value)
        except (_core.InvalidError, UnicodeEncodeError) as error:
            raise _core.InvalidError(f"{_named(owner)}: attribute {key!r}: {error}") from None
    return encoded


def _check_name(key: Any, others: Mapping[str, str]) -> None:
    name = str(key)
    if name == _RESERVED:
        raise _core.InvalidError(f'the name "{_RESERVED}" is reserved; rename it')
    if name in others:
        raise _core.InvalidError(f'another attribute is named "{name}" too; rename it')
    name.encode()  # raises UnicodeEncodeError


def _text(value: Any) -> str:
    if type(value) is str:
        value.encode()
        return encode_basestring_ascii(value)
    found = plain(value)
    json.dumps(found, ensure_ascii=False).encode()
    return json.dumps(found)


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
    """Return the value that `plain` converted, with lists in place of arrays.

    Raises CorruptError for a value that `plain` does not return.
    """
    if isinstance(value, list):
        return [restored(part) for part in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and not _MARKS.isdisjoint(value):
        [(kind, part)] = value.items()
        try:
            return _RESTORED[kind](part)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise _core.CorruptError(
                f"invalid attribute {value} ({error!r}); restore the store from a copy"
            ) from error
    return _parts(value)


def _parts(value: dict[str, Any]) -> dict[str, Any]:
    return {key: restored(part) for key, part in value.items()}


_RESTORED: dict[str, Callable[[Any], Any]] = {
    "datetime64": np.datetime64,
    "timedelta64": lambda part: np.timedelta64(*part),
    "float": lambda part: _FLOATS[part],
    "dict": _parts,
}
_MARKS = frozenset(_RESTORED)
"""Keys of objects for values that JSON lacks."""


def parse(strings: Iterable[str], node: str) -> list[Any]:
    """Return the values of the column `node`; None for datasets without the attribute.

    Raises CorruptError for invalid JSON.
    """
    try:
        values = json.loads(f"[{','.join(text or 'null' for text in strings)}]")
        return [restored(value) if type(value) in (dict, list) else value for value in values]
    except (ValueError, RecursionError, _core.CorruptError) as error:
        raise _core.CorruptError(
            f"/{node}: invalid attribute ({error}); restore the store from a copy"
        ) from error


def merge(family: Family, records: list[Record]) -> tuple[dict[Key, list[str]], list[Key]]:
    """Add the attributes of more datasets to a family.

    Returns the JSON of the new rows of each column, and the new columns. All earlier rows of a new
    column have the value that was common so far.
    """
    columns: dict[Key, list[str]] = {}
    new: list[Key] = []
    for scope in (None, *family.columns):
        rows = [r.attributes if scope is None else r.variables[scope].attributes for r in records]
        common = family.attributes if scope is None else family.columns[scope].attributes
        varying = [key for variable, key in family.varying if variable == scope]
        if family.rows == 0:
            common.update({key: json.loads(text) for key, text in rows[0].items()})
        known = {key: json.dumps(value) for key, value in common.items()}
        if not varying and rows.count(known) == len(rows):
            continue
        added = [
            key
            for key in dict.fromkeys(key for row in (known, *rows) for key in row)
            if key not in varying
            and any(row.get(key, ABSENT) != known.get(key, ABSENT) for row in rows)
        ]
        new += [(scope, key) for key in added]
        columns |= {(scope, k): [row.get(k, ABSENT) for row in rows] for k in (*varying, *added)}
    return columns, new


def make_varying(family: Family, key: Key) -> str:
    """Make a common attribute vary; return the JSON that all earlier rows have."""
    scope, name = key
    common = family.attributes if scope is None else family.columns[scope].attributes
    family.varying.append(key)
    return json.dumps(common.pop(name)) if name in common else ABSENT

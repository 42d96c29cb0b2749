"""Attributes of datasets and variables: those in common once, those that differ as columns of JSON.

JSON lacks times and floats that are no numbers: they are objects of one key,
``{"datetime64": ...}``, ``{"timedelta64": ...}`` and ``{"float": "nan"}``; an object that looks
like one of these is the value of another, ``{"dict": ...}``.
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
"""What stands in a column for a dataset that lacks the attribute."""

_TAKEN = "ambar"

_INTEGERS = range(-(2**63), 2**64)

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def plain(value: Any) -> Any:  # noqa: PLR0911 - a case each
    """Return an attribute's value as JSON can hold it.

    Raises
    ------
    ValueError
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
        parts = {str(key): plain(part) for key, part in value.items()}
        # What would be taken for something else is marked.
        return {"dict": parts} if len(parts) == 1 and _MARKS.issuperset(parts) else parts
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    raise _core.InvalidError(
        f"an attribute is a {type(value).__name__}{_shown(value)}; texts, numbers of up to 64 "
        "bits, bools, times, lists and dictionaries of them can be stored"
    )


def texts_of(owner: tuple[str, ...], attributes: Mapping[Any, Any]) -> dict[str, str]:
    """Return attributes as JSON texts, as they are stored.

    `owner` is named in errors: a dataset, and its variable if they are one's. Raises ValueError
    for attributes that cannot be stored.
    """
    texts: dict[str, str] = {}
    for key, value in attributes.items():
        try:
            _check_name(key, texts)
            texts[str(key)] = _text(value)
        except (_core.InvalidError, UnicodeEncodeError) as error:
            raise _core.InvalidError(f"{_named(owner)}: attribute {key!r}: {error}") from None
    return texts


def _check_name(key: Any, others: Mapping[str, str]) -> None:
    name = str(key)
    if name == _TAKEN:
        raise _core.InvalidError(f'none may be named "{_TAKEN}", which the store needs; rename it')
    if name in others:
        raise _core.InvalidError(f'another is named "{name}" too; rename it')
    name.encode()  # what is no Unicode is refused


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
    """Return what `plain` was given, arrays as lists.

    Raises CorruptError for what `plain` never returns.
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
                f"{value} stands for no attribute ({error!r}); restore the store from a copy"
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
"""Keys of objects that stand for what JSON lacks."""


def parse(texts: Iterable[str], node: str) -> list[Any]:
    """Return the values of a column, `node`; None where a dataset lacks the attribute.

    Raises CorruptError for texts that are no attributes.
    """
    try:
        values = json.loads(f"[{','.join(text or 'null' for text in texts)}]")
        return [restored(value) if type(value) in (dict, list) else value for value in values]
    except (ValueError, RecursionError, _core.CorruptError) as error:
        raise _core.CorruptError(
            f"/{node}: a text is no attribute ({error}); restore the store from a copy"
        ) from error


def merge(family: Family, records: list[Record]) -> tuple[dict[Key, list[str]], list[Key]]:
    """Take the attributes of more datasets into a family.

    Returns the texts of the new rows of each column, and the columns that are new: their earlier
    rows all have what was in common so far, which is ``family``'s no longer.
    """
    columns: dict[Key, list[str]] = {}
    new: list[Key] = []
    for scope in (None, *family.columns):
        rows = [r.attributes if scope is None else r.variables[scope].attributes for r in records]
        common = family.attributes if scope is None else family.columns[scope].attributes
        varying = {key for variable, key in family.varying if variable == scope}
        if family.rows == 0:
            common.update({key: json.loads(text) for key, text in rows[0].items()})
        known = {key: json.dumps(value) for key, value in common.items()}
        if rows[0] == known and all(row == known for row in rows):
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

"""Paths and attributes of groups and arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ambar import _core

_LONG = re.compile(r"\d{19}")
"""A match in the text of every integer of more than 64 bits."""


def absolute(path: str) -> str:
    """Return a path from the root."""
    return "/" + path.strip("/")


class Attributes(Mapping[str, Any]):
    """The attributes of a group or an array: a mapping of names to JSON values, for reading.

    It equals a dictionary of the same items. `Writer` changes attributes.

    Examples
    --------
    >>> ambar.open_store("fields.ambar")["density"].attrs["unit"]
    'g/cm3'
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """Return the items, as of a dictionary."""
        return repr(self._values)


def to_json(attributes: Mapping[str, Any] | None) -> str:
    """Return attributes as JSON text; raises ValueError if JSON cannot represent them."""
    try:
        text = json.dumps(dict(attributes or {}), default=_plain, allow_nan=False)
        if _LONG.search(text):
            json.loads(text, parse_int=_checked_integer)
    except (TypeError, ValueError) as error:
        raise _core.InvalidError(
            f"expected attributes that JSON can represent, found {error}"
        ) from error
    return text


def _checked_integer(text: str) -> int:
    """Raise ValueError for an integer that readers would round to float64."""
    if not -(2**63) <= (number := int(text)) < 2**64:
        raise ValueError(
            f"expected integers of 64 bits, found {text}; store it as a string or a float"
        )
    return number


def _plain(value: object) -> Any:
    """Return NumPy scalars and arrays as values that JSON can represent."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"JSON cannot represent {type(value).__name__}")

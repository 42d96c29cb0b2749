"""Typed access to a group's attribute ``ambar``, whose content is untrusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ambar import _core

_INTEGERS_BELOW = 2**63


class Description:
    """A JSON object of a store; its content is untrusted.

    Each method returns the value of a key, and raises CorruptError if it is missing or of another
    type.

    Parameters
    ----------
    values
        The object.
    where
        The store and the node, for messages.
    """

    def __init__(self, values: Any, where: str) -> None:
        self.where = where
        if not isinstance(values, Mapping):
            raise self.damaged(f"expected an object, found {values!r:.80}")
        self._values = values

    def damaged(self, what: str) -> _core.CorruptError:
        """Return the error for a damaged object; `what` says what is wrong with it."""
        return _core.CorruptError(f"{self.where}: {what}; restore the store from a copy")

    def integer(self, key: str, least: int = 0) -> int:
        """Return a whole number from `least` to 2^63 - 1."""
        value = self._values.get(key)
        if type(value) is not int or not least <= value < _INTEGERS_BELOW:
            raise self._expected(key, f"a whole number from {least}")
        return value

    def integers(self, key: str) -> list[int]:
        """Return a list of whole numbers from 0 to 2^63 - 1."""
        value = self.items(key)
        if not all(type(part) is int and 0 <= part < _INTEGERS_BELOW for part in value):
            raise self._expected(key, "a list of whole numbers from 0")
        return value

    def string(self, key: str) -> str:
        """Return a string."""
        value = self._values.get(key)
        if not isinstance(value, str):
            raise self._expected(key, "a string")
        return value

    def optional_string(self, key: str) -> str | None:
        """Return a string, or None for null."""
        return None if self._values.get(key) is None else self.string(key)

    def truth(self, key: str) -> bool:
        """Return a boolean."""
        value = self._values.get(key)
        if not isinstance(value, bool):
            raise self._expected(key, "true or false")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self.items(key)
        if not all(isinstance(part, str) for part in value):
            raise self._expected(key, "a list of strings")
        return tuple(value)

    def named_strings(self, key: str) -> dict[str, str]:
        """Return an object of strings."""
        value = self._values.get(key)
        if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
            raise self._expected(key, "an object of strings")
        return dict(value)

    def items(self, key: str) -> list[Any]:
        """Return a list with items of any type."""
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self._expected(key, "a list")
        return value

    def object(self, key: str) -> Description:
        """Return an object."""
        return Description(self._values.get(key), f"{self.where}: {key!r}")

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object as a dictionary, without checking its keys and values."""
        return dict(self.object(key)._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def check_version(self, newest: int, what: str) -> None:
        """Raise UnsupportedError if the object's version is newer than `newest`."""
        version = self.integer("version", 1)
        if version > newest:
            raise _core.UnsupportedError(
                f"{self.where}: expected at most version {newest} of {what}, found {version}; use "
                "a newer version of ambar"
            )

    def _expected(self, key: str, what: str) -> _core.CorruptError:
        if key not in self._values:
            return self.damaged(f"{key!r} is missing")
        return self.damaged(f"{key!r} must be {what}, found {self._values[key]!r:.80}")


def kind_name(about: Mapping[str, Any]) -> str:
    """Return the kind of a store by the root's attribute ``ambar``; "arrays" if it has none.

    Examples
    --------
    >>> kind_name({"kind": "series", "of": "mesh"}), kind_name({"kind": "series", "of": "arrays"})
    ('mesh series', 'step series')
    """
    name = about.get("kind")
    if not isinstance(name, str):
        return "arrays"
    if name != "series" or "of" not in about:
        return name
    return "step series" if about["of"] == "arrays" else f"{about['of']} series"

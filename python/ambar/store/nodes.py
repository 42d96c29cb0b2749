"""Paths and attributes of groups and arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from ambar import _core
from ambar._util.arguments import check_unicode
from ambar._util.text import suggestion
from ambar.store.group_description import Description


def absolute(path: str) -> str:
    """Return a path from the root.

    Raises TypeError if it is not a string, ValueError if the string has a lone surrogate.
    """
    if not isinstance(path, str):
        raise TypeError(f"expected the path of a group or array, a str, found {path!r:.80}")
    check_unicode("path of a group or array", path)
    return "/" + path.strip("/")


def relative(path: str) -> str:
    """Return the path of an array without the slash of the root, as messages of writers name it.

    Raises the errors of `absolute`.
    """
    return absolute(path)[1:]


_LEVEL = re.compile(r"(?:/|^)level_\d+$")
"""The group of a level of cells in patches."""


def field_of(path: str) -> tuple[str, str]:
    """Return the group that describes an array, and the name of the array.

    Examples
    --------
    >>> field_of("/amr/level_2/density"), field_of("amr/density"), field_of("density")
    (('amr', 'density'), ('amr', 'density'), ('', 'density'))
    """
    group, _, field = path.strip("/").rpartition("/")
    return _LEVEL.sub("", group), field


def array_names(about: Mapping[str, Any], where: str) -> dict[str, str]:
    """Return the names of arrays by field, for the fields whose arrays have other names.

    Only groups of the kind ``amr`` have them. The key means something else in kinds of other
    packages.

    Parameters
    ----------
    about
        The attribute ``ambar`` of the group with the fields, whose content is untrusted.
    where
        The store and the group, for messages.

    Raises
    ------
    CorruptError
        If the names are not an object of strings.

    Examples
    --------
    >>> array_names({"kind": "amr", "arrays": {"box": "field_1"}}, "run.ambar: /amr")
    {'box': 'field_1'}
    """
    if about.get("kind") != "amr" or "arrays" not in about:
        return {}
    return Description(about, where).named_strings("arrays")


_RESERVED_KINDS = frozenset(
    [
        "snapshot",
        "series",
        "amr",
        "checkpoint",
        "particles",
        "table",
        "collection",
        "family",
        "mesh",
    ]
)
"""The kinds of groups that docs/format.md defines (chapter 4)."""


def check_reserved(attrs: Mapping[str, Any] | None) -> None:
    """Raise ValueError for an attribute ``ambar`` that is not a kind of another package."""
    if not isinstance(attrs, Mapping) or "ambar" not in attrs:
        return
    about = attrs["ambar"]
    kind = about.get("kind") if isinstance(about, Mapping) else None
    if not isinstance(kind, str) or kind in _RESERVED_KINDS:
        raise _reserved()


def _reserved() -> _core.InvalidError:
    return _core.InvalidError(
        'the attribute "ambar" is reserved: it describes the kind of a group; choose another name, '
        'or give create_group {"ambar": {"kind": ..., "version": 1}} with a kind of another package'
    )


def _value(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise _core.NotFoundError(
            f"the attribute {name!r} does not exist; {suggestion(str(name), values)}"
        )
    return values[name]


def decoded_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with floats in place of ``{"float": "nan"}``, ``"inf"`` and ``"-inf"``.

    JSON lacks these numbers. The attribute ``ambar`` is returned unchanged.
    """
    return {name: part if name == "ambar" else _decoded(part) for name, part in values.items()}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and value.get("float") in ("nan", "inf", "-inf"):
        return float(value["float"])
    return {key: _decoded(part) for key, part in value.items()}


class Attributes(Mapping[str, Any]):
    """The attributes of a group or an array: a mapping of names to JSON values, for reading.

    It equals a dictionary of the same items. `Writer.attrs` changes attributes. NaN and infinities
    are floats.

    Examples
    --------
    >>> ambar.open_store("fields.ambar")["density"].attrs["unit"]
    'g/cm3'
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = decoded_attributes(values)

    def __getitem__(self, name: str) -> Any:
        return _value(self._values, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        """Return the items, as of a dictionary."""
        return repr(self._values)


class WriterAttributes(MutableMapping[str, Any]):
    """The attributes of a group or an array of a store that is open for writing.

    A mapping of names to JSON values. The next commit makes changes visible to readers. NumPy
    scalars and arrays are stored as numbers, strings and lists. NaN and infinities are stored as
    ``{"float": "nan"}``, ``"inf"`` and ``"-inf"``, and read as floats. Values that the mapping
    returns are copies: assign a changed list or dictionary again. The name ``ambar`` is reserved.

    Examples
    --------
    >>> with ambar.create("titled.ambar") as writer:
    ...     writer.attrs["title"] = "a run"
    ...     writer.create_array("x", np.arange(3))
    ...     writer["x"].attrs.update(unit="cm", scale=np.float64(0.5))
    >>> ambar.open_store("titled.ambar")["x"].attrs
    {'unit': 'cm', 'scale': 0.5}
    """

    def __init__(self, core: _core.Writer, path: str) -> None:
        self._core = core
        self._path = path

    def _read(self) -> dict[str, Any]:
        return decoded_attributes(self._core.attributes(self._path))

    def __getitem__(self, name: str) -> Any:
        return _value(self._read(), name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.update({name: value})

    def __delitem__(self, name: str) -> None:
        self._core.update_attributes(self._path, {}, [name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        """Return the items, as of a dictionary."""
        return repr(self._read())

    def update(self, *others: Any, **names: Any) -> None:
        """Add or replace attributes: all of them, or none if one is invalid.

        Parameters
        ----------
        *others : mapping or iterable of pairs
            Names and values, as for `dict.update`.
        **names
            More names and values.
        """
        attrs = dict(*others, **names)
        if "ambar" in attrs:
            raise _reserved()
        self._core.update_attributes(self._path, attrs, [])

    def clear(self) -> None:
        """Remove all attributes."""
        self._core.set_attributes(self._path, {})


class WriterNode:
    """A group or an array of a store that is open for writing; ``writer[path]`` returns one."""

    def __init__(self, core: _core.Writer, path: str) -> None:
        core.attributes(path)  # raises KeyError if it does not exist
        self._core = core
        self._path = path

    def __repr__(self) -> str:
        """Return the path and the attributes."""
        return f"<ambar.WriterNode> /{self.path}: {self.attrs!r}"

    @property
    def path(self) -> str:
        """The path in the store; the root is ""."""
        return self._path.strip("/")

    @property
    def attrs(self) -> WriterAttributes:
        """The attributes: a mutable mapping. Assignment replaces all attributes."""
        return WriterAttributes(self._core, self._path)

    @attrs.setter
    def attrs(self, attrs: Mapping[str, Any]) -> None:
        check_reserved(attrs)
        self._core.set_attributes(self._path, attrs)

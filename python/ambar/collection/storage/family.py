"""Families: datasets of equal schema, each variable of which is one array.

The datasets of a regular family have equal shapes, and each variable is an array (datasets, ...). A
ragged family has dimensions of different lengths, and a variable has at most one of them: its
values are stored consecutively, with a count for each dataset (contiguous ragged arrays of the CF
conventions 1.11, section 9.3.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.arguments import names_of
from ambar._util.text import suggestion
from ambar.collection.storage.encodings import attributes_of, decoded_dtype
from ambar.collection.storage.records import ROW, Record, Variable
from ambar.collection.storage.tails import array_of
from ambar.store.array import Array
from ambar.store.group_description import Description
from ambar.store.store import Store

Schema: TypeAlias = tuple[tuple[str, tuple[str, ...], str, str | None, bool], ...]
Sizes: TypeAlias = tuple[tuple[str, int], ...]

VERSION = 1
"""The version of the description of families that is written, and the newest that is read."""
_MAX_RECENT = 1024
_VARIABLE_LENGTH = ("string", "bytes")
_DTYPE = re.compile(r"[<>|=]?[biufcSU][0-9]{1,9}")


@dataclass
class Column:
    """A variable of a family."""

    dims: tuple[str, ...]
    type_name: str
    """NumPy's name of the stored dtype; "string" or "bytes"."""
    times: str | None
    """CF units of times; None for other values."""
    coordinate: bool
    shared: bool = False
    """Whether all datasets have the same values, which are stored once."""
    escaped: bool = False
    """Whether some strings are stored as `ambar.collection.storage.encodings` encodes them."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes that are equal in all datasets."""

    @classmethod
    def of(cls, variable: Variable) -> Column:
        """Return the column of a variable."""
        return cls(variable.dims, variable.type_name, variable.times, variable.coordinate)


@dataclass
class Family:
    """A family: its schema, its dimensions and the number of its rows."""

    number: int
    sizes: dict[str, int]
    """Lengths of the dimensions that are not ragged."""
    ragged: tuple[str, ...]
    """The dimensions whose lengths differ between datasets."""
    columns: dict[str, Column]
    rows: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes that are equal in all datasets."""
    varying: list[tuple[str | None, str]] = field(default_factory=list)
    """Attributes that differ, by variable (None for the dataset) and key: columns of JSON."""

    @property
    def group(self) -> str:
        """The path of the group."""
        return f"f{self.number}"

    def counts(self, dim: str) -> str:
        """Return the path of the counts of a ragged dimension, different from all variables."""
        name = f"{dim}_count"
        while name in self.columns:
            name += "_"
        return f"{self.group}/{name}"

    def path(self, variable: str) -> str:
        """Return the path of a variable's array."""
        return f"{self.group}/{variable}"

    def statistics(self, variable: str) -> str:
        """Return the start of the paths of a variable's statistics."""
        return f"{self.group}/statistics/{variable}"

    def attribute(self, key: tuple[str | None, str]) -> str:
        """Return the path of an attribute that varies."""
        return f"{self.group}/attributes/{self.varying.index(key)}"

    def ragged_dim(self, variable: str) -> str | None:
        """Return the ragged dimension of a variable, or None."""
        return next((dim for dim in self.columns[variable].dims if dim in self.ragged), None)

    def leading(self, variable: str) -> int:
        """Return the number of dimensions before the ragged one: all have length 1."""
        dim = self.ragged_dim(variable)
        return 0 if dim is None else self.columns[variable].dims.index(dim)

    def shape(self, variable: str) -> tuple[int, ...]:
        """Return the shape of a row of the array of a variable.

        This is the shape in one dataset, or that of the dimensions after the ragged one.
        """
        dims = self.columns[variable].dims
        start = 0 if self.ragged_dim(variable) is None else self.leading(variable) + 1
        return tuple(self.sizes[dim] for dim in dims[start:])

    def dims(self, variable: str) -> tuple[str, ...]:
        """Return the names of the array's dimensions."""
        column = self.columns[variable]
        if column.shared:
            return column.dims
        if self.ragged_dim(variable) is not None:
            return column.dims[self.leading(variable) :]
        return (ROW, *column.dims)

    def array_attributes(self, variable: str) -> dict[str, Any]:
        """Return the attributes of a variable's array."""
        column = self.columns[variable]
        attributes = dict(column.attributes)
        if column.times:
            attributes.update(attributes_of(column.times))
        return attributes

    def group_attributes(self) -> dict[str, Any]:
        """Return the attributes of the group, which `load` reads."""
        variables = {
            name: {
                "dims": column.dims,
                "dtype": column.type_name,
                "times": column.times,
                "coordinate": column.coordinate,
                "shared": column.shared,
                "escaped": column.escaped,
            }
            for name, column in self.columns.items()
        }
        about = {
            "kind": "family",
            "version": VERSION,
            "rows": self.rows,
            "sizes": self.sizes,
            "ragged": self.ragged,
            "variables": variables,
            "attributes": self.varying,
        }
        return {**self.attributes, "ambar": about}


def schema_of(variables: Mapping[str, Variable | Column]) -> Schema:
    """Return what datasets of one family have in common, except lengths and order."""
    return tuple(
        (name, v.dims, v.type_name, v.times, v.coordinate) for name, v in sorted(variables.items())
    )


def why_not_ragged(schema: Schema, sizes: Mapping[str, int], ragged: Container[str]) -> str | None:
    """Return the reason why these dimensions cannot all be ragged; None if they can.

    The values of all datasets can be stored consecutively if a variable has at most one of the
    dimensions, and only dimensions of length 1 before it.
    """
    for name, dims, *_ in schema:
        at = [axis for axis, dim in enumerate(dims) if dim in ragged]
        if not at:
            continue
        dim = dims[at[0]]
        if len(at) > 1:
            return f"{dim!r} and {dims[at[1]]!r} are both dimensions of {name}, {dims}"
        for before in dims[: at[0]]:
            if sizes[before] != 1:
                return (
                    f"{name} has the dimension {before!r} of length {sizes[before]} before "
                    f"{dim!r}, and only length 1 may come before"
                )
    return None


def load(store: Store, number: int) -> Family:
    """Read a family from a store.

    Raises
    ------
    CorruptError
        If the attributes of the group are invalid.
    UnsupportedError
        If a newer version of ambar wrote it.
    """
    path = f"f{number}"
    attributes = store._attributes(path)
    about = Description(attributes.pop("ambar", {}), f"{store.location}: /{path}")
    about.check_version(VERSION, "families")
    sizes = about.object("sizes")
    variables = about.object("variables")
    family = Family(
        number,
        {dim: sizes.integer(dim) for dim in sizes},
        about.strings("ragged"),
        {name: _column(variables.object(name)) for name in variables},
        about.integer("rows"),
        attributes,
        [_pair(pair, about) for pair in about.items("attributes")],
    )
    _check(family, about)
    for name, column in family.columns.items():
        own = store._attributes(family.path(name))
        made = attributes_of(column.times) if column.times else {}
        column.attributes = {key: value for key, value in own.items() if key not in made}
    return family


def _column(about: Description) -> Column:
    dims, times = about.strings("dims"), about.optional_string("times")
    type_name = about.string("dtype")
    if len(set(dims)) != len(dims):
        raise about.damaged(f"duplicate dimension in {dims!r:.80}")
    if not _is_type(type_name):
        raise about.damaged(f"'dtype' is {type_name!r:.80}, which is not a type of a collection")
    if times is not None:
        try:
            decoded_dtype(times)
        except _core.CorruptError as error:
            raise about.damaged(str(error)) from None
        if type_name in _VARIABLE_LENGTH or np.dtype(type_name) != np.int64:
            raise about.damaged(f"times must be int64, found {type_name!r}")
    escaped = about.truth("escaped")
    if escaped and type_name not in _VARIABLE_LENGTH:
        raise about.damaged(f"'escaped' is true of values of {type_name!r}, expected strings")
    return Column(dims, type_name, times, about.truth("coordinate"), about.truth("shared"), escaped)


def _is_type(name: str) -> bool:
    if name in _VARIABLE_LENGTH:
        return True
    try:
        return bool(_DTYPE.fullmatch(name)) and np.dtype(name) is not None
    except (TypeError, ValueError):
        return False


def _pair(pair: Any, about: Description) -> tuple[str | None, str]:
    match pair:
        case [None | str() as variable, str(key)]:
            return variable, key
    raise about.damaged(f"'attributes' has {pair!r:.80}, expected a pair of variable and key")


def _check(family: Family, about: Description) -> None:
    """Check that dimensions and attributes refer to variables."""
    for name, column in family.columns.items():
        for dim in column.dims:
            if dim not in family.sizes and dim not in family.ragged:
                raise about.damaged(
                    f"'sizes' has no dimension {dim!r:.80} of the variable {name!r}"
                )
        if column.shared and family.ragged_dim(name) is not None:
            raise about.damaged(f"the variable {name!r:.80} is shared and ragged")
    if repeated := {*family.sizes}.intersection(family.ragged):
        raise about.damaged(f"'sizes' has the ragged dimensions {sorted(repeated)!r:.80}")
    if why := why_not_ragged(schema_of(family.columns), family.sizes, family.ragged):
        raise about.damaged(f"'ragged' is {list(family.ragged)!r:.80}, but {why:.200}")
    for variable, key in family.varying:
        if variable is not None and variable not in family.columns:
            raise about.damaged(f"'attributes' has {key!r:.80} of {variable!r:.80}, no variable")


def open_array(store: Store, path: str, shape: tuple[int, ...], type_name: str) -> Array:
    """Return an array of a collection; raises CorruptError if its type or shape differs.

    It may have more rows than `shape`.
    """
    array = array_of(store, path)
    found = array.shape
    fits = len(found) == len(shape) and found[1:] == shape[1:] and found[:1] >= shape[:1]
    if not fits or not _has_type(array, type_name):
        raise _core.CorruptError(
            f"{store.location}: /{path} is {array.type_name}{found}, expected {type_name}{shape}; "
            "restore the store from a copy"
        )
    return array


def _has_type(array: Array, name: str) -> bool:
    if name in _VARIABLE_LENGTH or array.type_name in _VARIABLE_LENGTH:
        return array.type_name == name
    return array.dtype == np.dtype(name)


class Families(list[Family]):
    """The families of a collection, by schema and lengths of dimensions."""

    def __init__(self, location: str, families: Iterable[Family], ragged: Sequence[str]) -> None:
        super().__init__(families)
        self._location = location
        self._ragged = ragged
        self._exact: dict[tuple[Schema, Sizes], Family] = {}
        self._like: dict[Schema, list[Family]] = {}
        # Families by variables and lengths in order: the search for a family takes longer.
        self._recent: dict[tuple[Any, ...], Family] = {}
        for family in self:
            self._enter(family, schema_of(family.columns))

    @property
    def variables(self) -> list[str]:
        """The names of the variables of all families."""
        return list(dict.fromkeys(name for family in self for name in family.columns))

    def checked_names(self, variables: Iterable[str]) -> list[str]:
        """Return one name of a variable, or several, as a list.

        Raises KeyError if no family has a variable, TypeError for values that are not names.
        """
        names = names_of("variables", variables)
        known = set(self.variables)
        for name in names:
            if name not in known:
                raise self.unknown(name)
        return names

    def unknown(self, variable: str) -> _core.NotFoundError:
        """Return the error for a variable that does not exist."""
        hint = suggestion(variable, self.variables)
        return _core.NotFoundError(f"{self._location}: no variable {variable!r}; {hint}")

    def place(self, record: Record, can_change: Callable[[Family], bool]) -> Family:
        """Return the family of a dataset; a new family if no existing one matches.

        A dataset may differ from a family only in the lengths of dimensions that can be ragged.
        Then these dimensions become ragged: in that family, if `can_change` returns True for it,
        otherwise in a new one.

        Raises
        ------
        ValueError
            If a dimension of the setting `ragged` cannot be ragged in this dataset.
        """
        layout = (
            *[
                (name, v.dims, v.type_name, v.times, v.coordinate)
                for name, v in record.variables.items()
            ],
            *record.sizes.items(),
        )
        family = self._recent.get(layout)
        if family is None:
            family = self._place(record, can_change)
            if len(self._recent) >= _MAX_RECENT:
                self._recent.clear()
            self._recent[layout] = family
        return family

    def _place(self, record: Record, can_change: Callable[[Family], bool]) -> Family:
        schema, sizes = schema_of(record.variables), record.sizes
        if found := self._exact.get((schema, _key(sizes))):
            return found
        like = self._like.setdefault(schema, [])
        for family in like:
            if family.ragged and family.sizes == _without(sizes, family.ragged):
                return family
        wanted = {dim for dim in self._ragged if dim in sizes}
        if why := why_not_ragged(schema, sizes, wanted):
            raise _core.InvalidError(
                f"dataset {record.name!r}: ragged={list(self._ragged)}, but {why}; leave the "
                "dimension out of ragged, or drop the variable"
            )
        # The family with most ragged dimensions keeps the number of families small.
        nearest = max(
            (family for family in like if _ragged_with(family, schema, sizes)),
            key=lambda family: len(family.ragged),
            default=None,
        )
        if nearest is not None:
            wanted = _ragged_with(nearest, schema, sizes)
        ragged = tuple(dim for dim in sizes if dim in wanted)
        if nearest is not None and can_change(nearest):
            self._exact.pop((schema, _key(nearest.sizes)), None)
            self._recent.clear()
            nearest.sizes, nearest.ragged = _without(sizes, ragged), ragged
            return nearest
        columns = {name: Column.of(variable) for name, variable in record.variables.items()}
        family = Family(len(self), _without(sizes, ragged), ragged, columns)
        self.append(family)
        self._enter(family, schema)
        return family

    def _enter(self, family: Family, schema: Schema) -> None:
        if not family.ragged:
            self._exact[schema, _key(family.sizes)] = family
        self._like.setdefault(schema, []).append(family)


def _ragged_with(family: Family, schema: Schema, sizes: dict[str, int]) -> set[str]:
    """Return the dimensions along which a family would be ragged with a dataset's lengths.

    An empty set if the values could not be stored consecutively then.
    """
    different = {dim for dim, size in sizes.items() if family.sizes.get(dim) != size}
    return set() if why_not_ragged(schema, sizes, different) else different


def _key(sizes: dict[str, int]) -> Sizes:
    return tuple(sorted(sizes.items()))


def _without(sizes: dict[str, int], dims: Sequence[str]) -> dict[str, int]:
    return {dim: size for dim, size in sizes.items() if dim not in dims}

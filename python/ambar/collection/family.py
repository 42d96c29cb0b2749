"""Families: datasets of one schema, whose variables lie side by side in one array each.

A family is regular, all its datasets of one shape and each variable an array (datasets, ...); or
ragged along one dimension: what has it lies end to end, and a count says how much of it is whose
(CF conventions 1.11, section 9.3.3: contiguous ragged arrays).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ambar import _core
from ambar.collection.records import ROW, Record, Variable
from ambar.collection.times import attributes_of
from ambar.store import Store

Schema: TypeAlias = tuple[tuple[str, tuple[str, ...], str, str | None, bool], ...]
Sizes: TypeAlias = tuple[tuple[str, int], ...]

VERSION = 1


@dataclass
class Column:
    """What a family knows of one variable."""

    dims: tuple[str, ...]
    type_name: str
    """NumPy's name of the dtype stored; "string" or "bytes"."""
    times: str | None
    coordinate: bool
    shared: bool = False
    """Whether all datasets have the same values, which are stored once."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes that all datasets have in common."""

    @classmethod
    def of(cls, variable: Variable) -> Column:
        """Return what a variable says of its column."""
        return cls(variable.dims, variable.type_name, variable.times, variable.coordinate)


@dataclass
class Family:
    """A family: its schema and how much there is of it."""

    number: int
    sizes: dict[str, int]
    """Lengths of the dimensions, but for the ragged one."""
    ragged: str | None
    columns: dict[str, Column]
    rows: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    """Attributes that all datasets have in common."""
    varying: list[tuple[str | None, str]] = field(default_factory=list)
    """Attributes that differ, by variable (None: the dataset's own) and key: columns of texts."""

    @property
    def group(self) -> str:
        """The path of the group."""
        return f"f{self.number}"

    @property
    def counts(self) -> str:
        """The path of the counts of a ragged family; no variable's, whatever they are named."""
        name = f"{self.ragged}_count"
        while name in self.columns:
            name += "_"
        return f"{self.group}/{name}"

    def path(self, variable: str) -> str:
        """Return the path of a variable's array."""
        return f"{self.group}/{variable}"

    def is_ragged(self, variable: str) -> bool:
        """Whether a variable's values lie end to end."""
        return self.ragged is not None and self.ragged in self.columns[variable].dims

    def shape(self, variable: str) -> tuple[int, ...]:
        """Return the shape of one dataset's values, without the ragged dimension."""
        dims = self.columns[variable].dims
        return tuple(self.sizes[dim] for dim in dims if dim != self.ragged)

    def dims(self, variable: str) -> tuple[str, ...]:
        """Return the names of the array's dimensions."""
        column = self.columns[variable]
        return column.dims if column.shared or self.is_ragged(variable) else (ROW, *column.dims)

    def array_attributes(self, variable: str) -> dict[str, Any]:
        """Return the attributes of a variable's array."""
        column = self.columns[variable]
        attributes = dict(column.attributes)
        if column.times:
            attributes.update(attributes_of(column.times))
        return attributes

    def group_attributes(self) -> dict[str, Any]:
        """Return the attributes of the group, from which `load` makes the family again."""
        columns = {
            name: {
                "dims": list(column.dims),
                "dtype": column.type_name,
                "times": column.times,
                "coordinate": column.coordinate,
                "shared": column.shared,
            }
            for name, column in self.columns.items()
        }
        about = {
            "kind": "family",
            "version": VERSION,
            "rows": self.rows,
            "sizes": self.sizes,
            "ragged": self.ragged,
            "variables": columns,
            "attributes": [list(pair) for pair in self.varying],
        }
        return {**self.attributes, "ambar": about}


def schema_of(record: Record) -> Schema:
    """Return what datasets of one family have in common, lengths and order apart."""
    return tuple(
        (name, v.dims, v.type_name, v.times, v.coordinate)
        for name, v in sorted(record.variables.items())
    )


def schema_of_family(family: Family) -> Schema:
    """Return what `schema_of` says of the family's datasets."""
    return tuple(
        (name, c.dims, c.type_name, c.times, c.coordinate)
        for name, c in sorted(family.columns.items())
    )


def can_be_ragged(schema: Schema, dim: str) -> bool:
    """Whether every variable that has the dimension has it first, so that it can be ragged."""
    having = [dims for _, dims, *_ in schema if dim in dims]
    return bool(having) and all(dims.index(dim) == 0 for dims in having)


def load(store: Store, number: int) -> Family:
    """Return a family as a store has it.

    Raises
    ------
    CorruptError
        If the group does not say what a family is.
    UnsupportedError
        If a newer version wrote it.
    """
    path = f"f{number}"
    attributes = store.attributes(path)
    about = attributes.pop("ambar", {})
    try:
        if about["version"] > VERSION:
            raise _core.UnsupportedError(
                f"{store.location}: /{path} is of version {about['version']} of families; this "
                f"ambar reads up to {VERSION}: use a newer one"
            )
        family = Family(
            number,
            {str(dim): int(size) for dim, size in about["sizes"].items()},
            about["ragged"],
            {
                str(name): Column(
                    tuple(v["dims"]), v["dtype"], v["times"], v["coordinate"], v["shared"]
                )
                for name, v in about["variables"].items()
            },
            int(about["rows"]),
            attributes,
            [(variable, key) for variable, key in about["attributes"]],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _core.CorruptError(
            f"{store.location}: /{path} is no family of a collection ({error!r}); restore the "
            "store from a copy"
        ) from error
    for name, column in family.columns.items():
        own = store.attributes(family.path(name))
        made = attributes_of(column.times) if column.times else {}
        column.attributes = {key: value for key, value in own.items() if key not in made}
    return family

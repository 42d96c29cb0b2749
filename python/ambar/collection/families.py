"""Which family a dataset belongs to."""

from __future__ import annotations

from collections.abc import Collection as Container
from collections.abc import Iterator

from ambar.collection.family import (
    Column,
    Family,
    Schema,
    Sizes,
    can_be_ragged,
    schema_of,
    schema_of_family,
)
from ambar.collection.records import Record


class Families:
    """The families of a collection, found by the schema and the lengths of a dataset."""

    def __init__(self, families: list[Family], ragged: Container[str] = ()) -> None:
        self._all = families
        self._ragged = ragged
        self._exact: dict[tuple[Schema, Sizes, str | None], Family] = {}
        self._like: dict[Schema, list[Family]] = {}
        for family in families:
            self._enter(family, schema_of_family(family))

    def __iter__(self) -> Iterator[Family]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Family:
        return self._all[number]

    def place(self, record: Record) -> Family:
        """Return the family of a dataset, a new one where there is none.

        A dataset that differs from a family in the length of one dimension, which all variables
        that have it have first, starts a ragged family for all that differ so.
        """
        schema, sizes = schema_of(record), record.sizes
        if found := self._exact.get((schema, _key(sizes), None)):
            return found
        like = self._like.get(schema, [])
        for family in like:
            if family.ragged and family.sizes == _without(sizes, family.ragged):
                return family
        ragged = next((dim for dim in self._ragged if can_be_ragged(schema, dim)), None)
        if ragged is None:
            ragged = next(
                (dim for family in like if (dim := _differs(schema, family, sizes))), None
            )
        if ragged is not None:
            sizes = _without(sizes, ragged)
        columns = {name: Column.of(variable) for name, variable in record.variables.items()}
        family = Family(len(self._all), sizes, ragged, columns)
        self._all.append(family)
        self._enter(family, schema)
        return family

    def _enter(self, family: Family, schema: Schema) -> None:
        self._exact[schema, _key(family.sizes), family.ragged] = family
        self._like.setdefault(schema, []).append(family)


def _differs(schema: Schema, family: Family, sizes: dict[str, int]) -> str | None:
    """Return the only dimension in which a dataset's lengths differ, where that can be ragged."""
    if family.ragged:
        return None
    different = [dim for dim, size in sizes.items() if family.sizes[dim] != size]
    return different[0] if len(different) == 1 and can_be_ragged(schema, different[0]) else None


def _key(sizes: dict[str, int]) -> Sizes:
    return tuple(sorted(sizes.items()))


def _without(sizes: dict[str, int], dim: str) -> dict[str, int]:
    return {other: size for other, size in sizes.items() if other != dim}

"""Which family a dataset belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ambar import _core
from ambar.collection.storage.family import (
    Column,
    Family,
    Schema,
    Sizes,
    schema_of,
    schema_of_family,
    why_not_ragged,
)
from ambar.collection.storage.records import Record


class Families:
    """The families of a collection, found by the schema and the lengths of a dataset."""

    def __init__(self, families: list[Family], ragged: Sequence[str] = ()) -> None:
        self._all = families
        self._ragged = ragged
        self._exact: dict[tuple[Schema, Sizes], Family] = {}
        self._like: dict[Schema, list[Family]] = {}
        for family in families:
            self._enter(family, schema_of_family(family))

    def __iter__(self) -> Iterator[Family]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, number: int) -> Family:
        return self._all[number]

    def place(self, record: Record, can_change: Callable[[Family], bool]) -> Family:
        """Return the family of a dataset, a new one where there is none.

        A dataset that differs from a family in lengths of dimensions that can be ragged makes them
        ragged for all that differ so: in that family, if `can_change` says that nothing of it is
        written, else in a new one.

        Raises
        ------
        ValueError
            If the dataset has a dimension that the collection's settings call ragged, but it cannot
            be.
        """
        schema, sizes = schema_of(record), record.sizes
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
                "dimension out of ragged, or take out the variable"
            )
        # Of several families the one that is ragged along most: few families, not many.
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
            nearest.sizes, nearest.ragged = _without(sizes, ragged), ragged
            return nearest
        columns = {name: Column.of(variable) for name, variable in record.variables.items()}
        family = Family(len(self._all), _without(sizes, ragged), ragged, columns)
        self._all.append(family)
        self._enter(family, schema)
        return family

    def _enter(self, family: Family, schema: Schema) -> None:
        if not family.ragged:
            self._exact[schema, _key(family.sizes)] = family
        self._like.setdefault(schema, []).append(family)


def _ragged_with(family: Family, schema: Schema, sizes: dict[str, int]) -> set[str]:
    """Return the dimensions along which a family with a dataset's lengths too would be ragged.

    They are none if the values cannot lie end to end then.
    """
    different = {dim for dim, size in sizes.items() if family.sizes.get(dim) != size}
    return set() if why_not_ragged(schema, sizes, different) else different


def _key(sizes: dict[str, int]) -> Sizes:
    return tuple(sorted(sizes.items()))


def _without(sizes: dict[str, int], dims: Sequence[str]) -> dict[str, int]:
    return {dim: size for dim, size in sizes.items() if dim not in dims}

"""The families of a collection, and the choice of a family for a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ambar import _core
from ambar._util.text import suggestion
from ambar.collection.storage.family import (
    Column,
    Family,
    Schema,
    Sizes,
    schema_of,
    why_not_ragged,
)
from ambar.collection.storage.records import Record


class Families(list[Family]):
    """The families of a collection, by schema and lengths of dimensions."""

    def __init__(self, families: Iterable[Family], ragged: Sequence[str] = ()) -> None:
        super().__init__(families)
        self._ragged = ragged
        self._exact: dict[tuple[Schema, Sizes], Family] = {}
        self._like: dict[Schema, list[Family]] = {}
        for family in self:
            self._enter(family, schema_of(family.columns))

    @property
    def variables(self) -> list[str]:
        """The names of the variables of all families."""
        return list(dict.fromkeys(name for family in self for name in family.columns))

    def unknown(self, variable: str) -> _core.NotFoundError:
        """Return the error for a variable that does not exist."""
        hint = suggestion(variable, self.variables)
        return _core.NotFoundError(f"no variable {variable!r}; {hint}")

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

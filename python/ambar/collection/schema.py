"""The variables of the datasets of a collection, and the differences between datasets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ambar import _core
from ambar._util import text
from ambar.collection.storage.encodings import dtype_name
from ambar.collection.storage.family import Column, Families, Family


@dataclass(frozen=True)
class DatasetFamily:
    """A family of a collection: datasets of equal schema, whose variables share arrays.

    Examples
    --------
    >>> [family] = ambar.open_collection("profiles.ambar").families
    >>> family.datasets, family.sizes, family.variables
    (4, {'depth': 30}, ('temperature', 'depth'))
    """

    number: int
    """The number of the family: its arrays are in the group ``f{number}`` of the store."""
    datasets: int
    """The number of datasets."""
    sizes: dict[str, int]
    """The lengths of the dimensions, without the ragged ones."""
    ragged: tuple[str, ...]
    """The dimensions whose lengths differ between datasets."""
    variables: tuple[str, ...]
    """The names of the variables."""


@dataclass(frozen=True)
class VariableLayout:
    """Dimensions, dtype and shape that a variable has in some datasets."""

    datasets: int
    """The number of these datasets."""
    dims: tuple[str, ...]
    """The names of the dimensions."""
    dtype: str
    """The NumPy dtype of the values, such as "float32"; "string" or "bytes"."""
    shape: tuple[int | None, ...]
    """The lengths of the dimensions; None where datasets have different lengths."""


class Schema(Mapping[str, tuple[VariableLayout, ...]]):
    """The variables of all datasets: a mapping from names to the layouts that datasets have.

    `Collection.schema` returns it.

    Parameters
    ----------
    families : Families
        The families of the collection.
    counts : mapping of int to int
        The number of datasets of each family.

    Examples
    --------
    >>> schema = ambar.open_collection("profiles.ambar").schema
    >>> [layout] = schema["temperature"]
    >>> layout.datasets, layout.dims, layout.dtype, layout.shape
    (4, ('depth',), 'float32', (30,))
    """

    def __init__(self, families: Families, counts: Mapping[int, int]) -> None:
        self._families = families
        self._total = sum(counts.values())
        self._layouts: dict[str, tuple[VariableLayout, ...]] = {}
        for family in families:
            count = counts.get(family.number, 0)
            for name in family.columns if count else ():
                layout = _layout(family, name, count)
                self._layouts[name] = (*self._layouts.get(name, ()), layout)

    def __getitem__(self, variable: str) -> tuple[VariableLayout, ...]:
        try:
            return self._layouts[variable]
        except KeyError:
            raise self._families.unknown(variable) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self._layouts)

    @property
    def differences(self) -> list[str]:
        """The differences between datasets, one line each; an empty list if there are none.

        Examples
        --------
        >>> with ambar.open_collection("casts.ambar", "w-") as casts:
        ...     casts.add("cast1", {"oxygen": np.zeros(2), "salinity": np.zeros(2)})
        ...     casts.add("cast2", {"oxygen": np.zeros(2, "f4")})
        >>> for line in ambar.open_collection("casts.ambar").schema.differences:
        ...     print(line)
        oxygen: dtype float64 in 1, float32 in 1
        salinity: missing in 1 of 2 datasets
        """
        lines = []
        for name, layouts in self._layouts.items():
            having = sum(layout.datasets for layout in layouts)
            if having < self._total:
                lines.append(
                    f"{name}: missing in {self._total - having:,} of {self._total:,} datasets"
                )
            for attribute, describe in _DESCRIPTIONS.items():
                counts: dict[str, int] = {}
                for layout in layouts:
                    value = describe(layout)
                    counts[value] = counts.get(value, 0) + layout.datasets
                if len(counts) > 1:
                    parts = ", ".join(f"{value} in {count:,}" for value, count in counts.items())
                    lines.append(f"{name}: {attribute} {parts}")
        return lines

    def summary(self, variable: str) -> tuple[str, str]:
        """Return the dimensions and the dtype of a variable in most datasets, as text.

        Parameters
        ----------
        variable : str
            Name of the variable.

        Returns
        -------
        tuple of str
            The dimensions with their lengths, "*" if they differ between datasets of one family,
            and the dtype.

        Raises
        ------
        KeyError
            If no dataset has the variable.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").schema.summary("temperature")
        ('(depth: 30)', 'float32')
        """
        usual = max(self[variable], key=lambda layout: layout.datasets)
        pairs = zip(usual.dims, _lengths_of_layout(usual), strict=True)
        return f"({', '.join(f'{dim}: {length}' for dim, length in pairs)})", usual.dtype

    def __repr__(self) -> str:
        return text.representation(
            f"<ambar.Schema> {text.plural(len(self), 'variable')} of "
            f"{text.plural(self._total, 'dataset')}",
            {},
            text.columns((name, *self.summary(name)) for name in self),
            (f"  ! {line}" for line in self.differences),
        )


def _lengths_of_layout(layout: VariableLayout) -> list[str]:
    """Return the lengths of the dimensions as text, "*" where datasets have different lengths."""
    return ["*" if length is None else str(length) for length in layout.shape]


def _shape_of_layout(layout: VariableLayout) -> str:
    lengths = _lengths_of_layout(layout)
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"


_DESCRIPTIONS: dict[str, Callable[[VariableLayout], str]] = {
    "dtype": lambda layout: layout.dtype,
    "dims": lambda layout: str(layout.dims),
    "shape": _shape_of_layout,
}
"""What layouts of a variable may differ in, as text."""


def _layout(family: Family, name: str, count: int) -> VariableLayout:
    column = family.columns[name]
    shape = tuple(family.sizes.get(dim) for dim in column.dims)
    return VariableLayout(count, column.dims, _dtype(column), shape)


def _dtype(column: Column) -> str:
    return dtype_name(column.type_name, column.times)


def _dims(column: Column) -> str:
    return f"({', '.join(column.dims)})"


def not_one_family(names: Sequence[str], families: Sequence[Family]) -> _core.InvalidError:
    """Return the error for datasets of several families, or for no datasets."""
    if not names:
        return _core.InvalidError(
            "expected datasets of one family, found no dataset; select others"
        )
    members: dict[int, list[str]] = {}
    by_number = {family.number: family for family in families}
    for name, family in zip(names, families, strict=True):
        members.setdefault(family.number, []).append(name)
    ordered = sorted(members, key=lambda number: -len(members[number]))
    reference = by_number[ordered[0]]
    listed = "; ".join(
        f"{_shortened(members[number])} "
        f"({_difference(by_number[number], reference) or ', '.join(by_number[number].columns)})"
        for number in ordered[:4]
    )
    largest = reference.columns
    alone = [
        key
        for key in largest
        if key.isidentifier() and not any(key in by_number[n].columns for n in ordered[1:])
    ]
    call = f"'{alone[0]}.count > 0'" if alone else repr(members[ordered[0]][:2])
    return _core.InvalidError(
        f"expected datasets of one family (equal variables, types and shapes), found "
        f"{len(members)} families: {listed}{'; ...' if len(ordered) > 4 else ''}. Select one of "
        f"them by names or a condition, to_xarray({call}), or use read()"
    )


def _difference(family: Family, reference: Family) -> str:
    """Return how types and shapes of a family differ from another one with equal variables."""
    if family.columns.keys() != reference.columns.keys():
        return ""
    parts = []
    for key, column in family.columns.items():
        other = reference.columns[key]
        if (column.type_name, column.times) != (other.type_name, other.times):
            parts.append(f"{key}: {_dtype(column)} instead of {_dtype(other)}")
        elif column.dims != other.dims:
            parts.append(f"{key}: {_dims(column)} instead of {_dims(other)}")
    lengths, others = _lengths(family), _lengths(reference)
    for dim, length in lengths.items():
        if others.get(dim, length) != length:
            parts.append(f"{dim}: {length} instead of {others[dim]}")
    return ", ".join(parts)


def _lengths(family: Family) -> dict[str, str]:
    ragged = dict.fromkeys(family.ragged, "ragged")
    return {dim: f"length {size}" for dim, size in family.sizes.items()} | ragged


def _shortened(names: list[str]) -> str:
    rest = f" and {len(names) - 2} more" if len(names) > 3 else ""
    return ", ".join(names[: 2 if rest else 3]) + rest

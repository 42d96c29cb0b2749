"""What the datasets of a collection have in common, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ambar.collection.storage.families import Families
from ambar.collection.storage.family import Family


@dataclass(frozen=True)
class Layout:
    """How some datasets have a variable."""

    datasets: int
    """How many."""
    dims: tuple[str, ...]
    dtype: str
    shape: tuple[int | None, ...]
    """None for a length that differs between them."""


class Schema(Mapping[str, tuple[Layout, ...]]):
    """The variables of all datasets: for each the ways in which datasets have it."""

    def __init__(self, families: Families, counts: Mapping[int, int]) -> None:
        self._total = sum(counts.values())
        self._layouts: dict[str, tuple[Layout, ...]] = {}
        for family in families:
            count = counts.get(family.number, 0)
            for name in family.columns if count else ():
                layout = _layout(family, name, count)
                self._layouts[name] = (*self._layouts.get(name, ()), layout)

    def __getitem__(self, variable: str) -> tuple[Layout, ...]:
        return self._layouts[variable]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layouts)

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self._layouts)

    @property
    def differences(self) -> list[str]:
        """What is not the same in all datasets, a line each."""
        lines = []
        for name, layouts in self._layouts.items():
            having = sum(layout.datasets for layout in layouts)
            if having < self._total:
                lines.append(f"{name}: lacking in {self._total - having:,} datasets")
            for what in ("dtype", "dims", "shape"):
                found: dict[str, int] = {}
                for layout in layouts:
                    text = str(getattr(layout, what))
                    found[text] = found.get(text, 0) + layout.datasets
                if len(found) > 1:
                    parts = ", ".join(f"{text} in {count:,}" for text, count in found.items())
                    lines.append(f"{name}: {what} {parts}")
        return lines

    def __repr__(self) -> str:
        """Return a line a variable, and what differs."""
        lines = [f"<ambar.Schema: {len(self)} variables of {self._total:,} datasets>"]
        for name, layouts in self._layouts.items():
            first = layouts[0]
            sizes = ", ".join(
                f"{dim}: {'*' if size is None else size}"
                for dim, size in zip(first.dims, first.shape, strict=True)
            )
            lines.append(f"  {name:<20} ({sizes}) {first.dtype}")
        lines += [f"  ! {line}" for line in self.differences]
        return "\n".join(lines)


def _layout(family: Family, name: str, count: int) -> Layout:
    column = family.columns[name]
    shape = tuple(family.sizes.get(dim) for dim in column.dims)
    dtype = column.type_name if column.times is None else f"time ({column.times})"
    return Layout(count, column.dims, dtype, shape)

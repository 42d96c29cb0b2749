"""Row-by-row comparison of particles, sinks and clumps in two versions of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ambar.comparison.bounds import CheckedBound, check_bounds, recorded_bounds, stored_bound
from ambar.comparison.error_metrics import as_numbers, errors, scale_of
from ambar.snapshot.field_names import resolve
from ambar.snapshot.loading import TABLE_COMPONENTS, is_table
from ambar.snapshot.particles import Particles
from ambar.snapshot.snapshot import Snapshot
from ambar.store.error_bounds import select_bounds

BOOKKEEPING = ("domain",)
"""Fields that stores add to those of outputs: the number of the file of a cell or particle."""

_IDENTITIES = (("identity",), ("id", "cpu"), ("id",))
"""Columns that identify particles, if no two rows have equal values in all of them."""


@dataclass
class ColumnComparison(CheckedBound):
    """A column of matched rows."""

    column: str
    max_error: float
    """The largest absolute error; infinite if NaN, an infinity, a string or a bool differs."""


@dataclass
class RowComparison:
    """The rows of a component: particles of a species, sinks or clumps."""

    component: str
    rows: int
    """The number of rows of the original."""
    matched_by: str
    """The columns that identify rows, "order", or "position"."""
    missing: int
    """The number of rows that only the original has."""
    extra: int
    """The number of rows that only the other version has."""
    columns: list[ColumnComparison]
    only_in_original: list[str] = field(default_factory=list)
    """The columns that the other version lacks."""
    only_in_other: list[str] = field(default_factory=list)
    """The columns that the original lacks."""

    @property
    def held(self) -> bool:
        """Whether both have the same rows, and all known error bounds held."""
        same_rows = not self.missing and not self.extra
        return same_rows and all(one.held is not False for one in self.columns)

    @property
    def summary(self) -> str:
        """How rows were matched, and the rows and columns that only one version has."""
        text = f"{self.component}: matched by {self.matched_by}"
        if self.missing or self.extra:
            text += f"; {self.missing:,} only in the original, {self.extra:,} only in the other"
        for where, names in (("original", self.only_in_original), ("other", self.only_in_other)):
            text += f"; columns only in the {where}: {', '.join(names)}" if names else ""
        return text


def table_components(snapshot: Snapshot) -> list[str]:
    """Return the components of a snapshot that are tables of rows."""
    return [name for name in snapshot.components if is_table(name)]


def compare_rows(
    a: Snapshot,
    b: Snapshot,
    component: str,
    bounds: Sequence[tuple[str, str]],
    threads: int | None,
) -> RowComparison:
    """Compare a component that both snapshots have.

    `bounds` are pairs of target and bound, with targets such as ``component/column``. For a column
    without one, the sum of the bounds that the stores of both versions record must hold.
    """
    tables = [_rows(side, component).read(threads=threads) for side in (a, b)]
    common = [name for name in tables[0] if name in tables[1]]
    first, second = ({name: table[name] for name in common} for table in tables)
    matched = _match(first, second)
    groups = [stored_attributes(side, component) for side in (a, b)]
    positions = [first[name][matched.rows] for name in _positions(first)]
    columns = []
    for name in common:
        values = as_numbers(first[name][matched.rows], second[name][matched.other_rows])
        difference = errors(*values)
        short = component.removeprefix("particles/")
        checked = check_bounds(
            values,
            difference,
            scale_of(values[0]),
            given=select_bounds(bounds, [f"{component}/{name}", f"{short}/{name}"]) or (),
            recorded=[part for group in groups for part in recorded_bounds(group, name)],
            stored=[stored_bound(group, name) for group in groups],
            positions=lambda: positions,
        )
        largest = float(np.abs(difference).max(initial=0.0))
        columns.append(ColumnComparison(**vars(checked), column=name, max_error=largest))
    return RowComparison(
        component,
        len(tables[0]),
        matched.by,
        len(tables[0]) - len(matched.rows),
        len(tables[1]) - len(matched.other_rows),
        columns,
        *(
            [name for name in table if name not in common and name not in BOOKKEEPING]
            for table in tables
        ),
    )


def _rows(snapshot: Snapshot, component: str) -> Particles:
    if component in TABLE_COMPONENTS:
        rows: Particles = getattr(snapshot, component)
        return rows
    owner, _, name = component.partition("/")
    return (snapshot.halos if owner == "halos" else snapshot.species)[name]


def stored_attributes(snapshot: Snapshot, component: str) -> dict[str, Any] | None:
    """Return the attributes of a component in a store; None if the snapshot has no store."""
    if snapshot._stored_at is None:
        return None
    store, path = snapshot._stored_at
    return store._ambar_attributes(f"{path.rstrip('/')}/{component}")


Columns: TypeAlias = Mapping[str, np.ndarray]


class Matched(NamedTuple):
    """Pairs of matching rows of two tables."""

    by: str
    """How they were matched."""
    rows: np.ndarray
    other_rows: np.ndarray


def _match(a: Columns, b: Columns) -> Matched:
    for names in _IDENTITIES:
        known = [resolve(name, a) for name in names]
        if all(name in a for name in known):
            keys, others = (_keys([table[name] for name in known]) for table in (a, b))
            if all(len(np.unique(key)) == len(key) for key in (keys, others)):
                return _of_keys(", ".join(known), keys, others)
    count, other_count = (len(next(iter(table.values()), ())) for table in (a, b))
    positions = [name for name in _positions(a) if name in b]
    shared = min(count, other_count)
    in_order = Matched("order", np.arange(shared), np.arange(shared))
    if not positions:
        return in_order
    if count == other_count:
        sorted_rows = (np.lexsort([table[name] for name in positions[::-1]]) for table in (a, b))
        candidates = (in_order, Matched("position", *sorted_rows))
        return min(candidates, key=lambda one: _distance(a, b, positions, one))
    keys, others = (_keys([table[name] for name in positions]) for table in (a, b))
    return _of_keys("position", keys, others)


def _of_keys(by: str, keys: np.ndarray, others: np.ndarray) -> Matched:
    """Match rows of equal keys."""
    _, rows, other_rows = np.intersect1d(keys, others, return_indices=True)
    return Matched(by, rows, other_rows)


def _positions(table: Columns) -> list[str]:
    names = [(f"position_{axis}", axis) for axis in "xyz"]
    return [next(name for name in pair if name in table) for pair in names if {*pair} & {*table}]


def _keys(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return one sortable array: the values of a single column, or records of several."""
    if len(columns) == 1:
        return columns[0]
    return np.rec.fromarrays(columns)


def _distance(a: Columns, b: Columns, names: list[str], matched: Matched) -> float:
    """Return the largest distance between matched rows along any dimension."""
    pairs = ((a[name][matched.rows], b[name][matched.other_rows]) for name in names)
    return max(float(np.abs(errors(*as_numbers(*pair))).max(initial=0.0)) for pair in pairs)

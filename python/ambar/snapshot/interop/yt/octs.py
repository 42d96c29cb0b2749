"""The octs of a tree of cells in domains: ranges of its rows, small enough to be read one by one.

An oct is a refined cell with its eight children. Rows are leaf cells in the order of the Morton
curve, so the leaves of an oct are consecutive. An oct belongs to the domain of its first leaf;
leaves and octs in it that begin in later domains are few; `Domain` lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr

DOMAIN_ROWS = 1 << 16
"""Rows of a domain, rounded up to whole chunks."""


class CellIndex(NamedTuple):
    """A cell, by its level and its index on the level."""

    level: int
    x: int
    y: int
    z: int


@dataclass(frozen=True)
class Leaves:
    """Consecutive leaf cells."""

    level: np.ndarray
    """int64 of shape (n,)."""
    index: np.ndarray
    """int64 of shape (n, 3): the index on the level of the cell."""
    coarsest_started: np.ndarray
    """int64 of shape (n,): the level of the coarsest cell of which the leaf is the first."""

    @classmethod
    def read(cls, amr: Amr, chunks: tuple[int, int]) -> Leaves:
        """Return the leaves in a range of chunks."""
        table = amr._read_arrays(["level", "ix", "iy", "iz"], chunks=chunks)
        level = table["level"].astype(np.int64)
        index = np.stack([table["ix"], table["iy"], table["iz"]], axis=1)
        # The first leaf of a refined cell is at its lower corner.
        bits = np.bitwise_or.reduce(index, axis=1)
        lowest = np.where(bits == 0, np.int64(1) << 62, bits & -bits)
        zeros = np.log2(lowest.astype(np.float64)).astype(np.int64)
        return cls(level, index, np.maximum(level - zeros, 0))

    def cell(self, row: int) -> CellIndex:
        """Return a leaf."""
        return CellIndex(int(self.level[row]), *self.index[row].tolist())

    def ancestors_of(self, row: int, coarsest: int, below: int) -> list[CellIndex]:
        """Return the cells of the levels `coarsest` to `below` - 1 that contain a leaf."""
        level, x, y, z = self.cell(row)
        shifts = [(depth, level - depth) for depth in range(coarsest, min(below, level))]
        return [CellIndex(depth, x >> shift, y >> shift, z >> shift) for depth, shift in shifts]

    def end_of(self, cell: CellIndex, start: int) -> int:
        """Return the row after the last leaf in a refined cell, which contains row `start` - 1."""
        depth, *index = cell
        low, high = start, len(self.level)
        while low < high:
            middle = (low + high) // 2
            shift = int(self.level[middle]) - depth
            is_inside = shift > 0 and (self.index[middle] >> shift).tolist() == index
            low, high = (middle + 1, high) if is_inside else (low, middle)
        return low


class LateLeaf(NamedTuple):
    """A leaf of an oct of an earlier domain."""

    cell: CellIndex
    row: int


class Start(NamedTuple):
    """A leaf from which on the leaves are in octs of a domain."""

    cell: CellIndex
    domain: int


@dataclass
class Domain:
    """A range of chunks: where its rows are, and what it shares with other domains."""

    chunks: tuple[int, int]
    """First chunk, and the chunk after the last."""
    rows: tuple[int, int]
    """First row, and the row after the last."""
    box: np.ndarray
    """Corners of the box around the leaves, in root cells: float64 of shape (2, 3)."""
    ancestors: list[CellIndex]
    """The octs around the first leaf that begin in earlier domains, the coarsest first."""
    starts: list[Start] = field(default_factory=list)
    """The domains of the octs of its leaves, in the order of the leaves."""
    leaves_in_later_domains: list[LateLeaf] = field(default_factory=list)
    """The leaves of its octs in later domains."""
    octs_in_later_domains: list[CellIndex] = field(default_factory=list)
    """The octs in its octs that begin in later domains."""


def domains_of(amr: Amr, coarsest: int) -> list[Domain]:
    """Return the domains of a tree; octs are refined cells of the level `coarsest` and finer.

    The levels of all cells are read once, domain by domain.

    Raises
    ------
    UnsupportedError
        If the leaf cells do not fill the box.
    """
    _check_filled(amr)
    domains: list[Domain] = []
    owners: dict[CellIndex, int] = {}  # the domains of the octs around the last leaf
    for domain in _empty_domains(amr._core.chunk_lengths):
        leaves = Leaves.read(amr, domain.chunks)
        sides = np.ldexp(1.0, (-leaves.level).astype(np.int32))[:, None]
        lower, upper = leaves.index * sides, (leaves.index + 1) * sides
        domain.box = np.stack([lower.min(axis=0), upper.max(axis=0)])
        domain.ancestors = leaves.ancestors_of(0, coarsest, int(leaves.coarsest_started[0]))
        domains.append(domain)
        _assign_to_earlier_domains(domains, owners, leaves)
        around_last = leaves.ancestors_of(-1, coarsest, int(leaves.level[-1]))
        owners = {oct_: owners.get(oct_, len(domains) - 1) for oct_ in around_last}
    return domains


def _empty_domains(lengths: list[int]) -> Iterator[Domain]:
    """Yield domains with their chunks and rows alone."""
    first, start, stop = 0, 0, 0
    for number, length in enumerate(lengths, start=1):
        stop += length
        if stop - start >= DOMAIN_ROWS or (number == len(lengths) and stop > start):
            yield Domain((first, number), (start, stop), np.empty((2, 3)), [])
            first, start = number, stop


def _assign_to_earlier_domains(
    domains: list[Domain], owners: dict[CellIndex, int], leaves: Leaves
) -> None:
    """Add the leaves and octs of the last domain that are in octs of earlier domains to those."""
    domain, mine = domains[-1], len(domains) - 1
    owner_of = np.full(len(leaves.level), mine)
    stop = 0
    for oct_ in reversed(domain.ancestors):
        start, stop = stop, leaves.end_of(oct_, stop)
        depth, owner = oct_.level + 1, owners[oct_]
        level, started = leaves.level[start:stop], leaves.coarsest_started[start:stop]
        children = start + np.flatnonzero(level == depth)
        owner_of[children] = owner
        domains[owner].leaves_in_later_domains += [
            LateLeaf(leaves.cell(row), domain.rows[0] + row) for row in children.tolist()
        ]
        for row in (start + np.flatnonzero((level > depth) & (started <= depth))).tolist():
            domains[owner].octs_in_later_domains += leaves.ancestors_of(row, depth, depth + 1)
    changes = [0, *(np.flatnonzero(np.diff(owner_of)) + 1).tolist()]
    domain.starts = [Start(leaves.cell(row), int(owner_of[row])) for row in changes]


def _check_filled(amr: Amr) -> None:
    """Raise UnsupportedError unless the leaf cells have the volume of the box."""
    counts = amr.cells_per_level
    finest = max(counts)
    volume = sum(count << 3 * (finest - level) for level, count in counts.items())
    whole = int(np.prod(root_cells(amr))) << 3 * finest
    if volume != whole:
        raise _core.UnsupportedError(
            "expected leaf cells that fill the box for yt, found cells that fill "
            f"{volume / whole:.3g} of it; use all levels and no region"
        )


def root_cells(amr: Amr) -> np.ndarray:
    """Return the number of cells of level 0 in each dimension."""
    return np.round(np.divide(amr.info.box_size, amr.cell_size(0))).astype(np.int64)


@dataclass(frozen=True)
class Octs:
    """The octs of a domain, the coarsest first."""

    level: np.ndarray
    """int64 of shape (n,): the level of the refined cell; its children have the next level."""
    index: np.ndarray
    """int64 of shape (n, 3): the index of the refined cell."""
    first: np.ndarray
    """int64 of shape (n,): the row of the first leaf; ascending within a level."""
    rows: np.ndarray
    """Shape (n, 8): the rows of the children, x fastest; -1 for refined ones."""

    @classmethod
    def of(cls, domain: Domain, leaves: Leaves, coarsest: int) -> Octs:
        """Return the octs of a domain; `leaves` are those in its chunks."""
        level, index = leaves.level, leaves.index
        levels, indices, firsts, oct_of = [], [], [], np.full(len(level), -1)
        last_of: dict[int, int] = {}
        count = 0
        for depth in range(coarsest, int(level.max())):
            first = np.flatnonzero((leaves.coarsest_started <= depth) & (depth < level))
            children = np.flatnonzero(level == depth + 1)
            # The first leaves of a domain may be in octs of earlier ones: -1.
            number = first.searchsorted(children, side="right") - 1
            oct_of[children] = np.where(number < 0, -1, number + count)
            levels.append(np.full(len(first), depth))
            indices.append(index[first] >> (level[first] - depth)[:, None])
            firsts.append(domain.rows[0] + first)
            count += len(first)
            last_of[depth] = count - 1
        late = domain.leaves_in_later_domains
        has_few_rows = max([domain.rows[1], *(leaf.row for leaf in late)]) < 2**31
        rows = np.full((count, 8), -1, dtype=np.int32 if has_few_rows else np.int64)
        mine = np.flatnonzero(oct_of >= 0)
        rows[oct_of[mine], child(index[mine])] = domain.rows[0] + mine
        for leaf in late:
            # Octs that go on in later domains are the last ones of their levels.
            rows[last_of[leaf.cell.level - 1], child(np.array(leaf.cell[1:]))] = leaf.row
        return cls(np.concatenate(levels), np.concatenate(indices), np.concatenate(firsts), rows)


def child(index: np.ndarray) -> np.ndarray:
    """Return the numbers of cells in their octs, x fastest."""
    return np.asarray((index & 1) @ np.array([1, 2, 4]))

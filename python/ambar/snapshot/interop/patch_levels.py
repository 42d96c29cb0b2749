"""The cells of a hierarchy by level, each level as boxes: patch-based AMR.

For trees, boxes are runs of cells along x, joined along y and z if they are equal: every cell of a
level is in exactly one box. Refined cells have the mean of the finer cells; for integers, the value
of the first finer cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ambar import _core
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.regions import AXES, Box, cell_range, checked_levels, domain_part

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr


@dataclass(frozen=True)
class Level:
    """A level as boxes."""

    number: int
    """Number of the level, as in `Amr.levels`."""
    boxes: np.ndarray
    """int64 of shape (boxes, 2, ndim): first cell, and after the last, from the lower corner."""
    cell_size: tuple[float, ...]
    """Sides of a cell, code length."""
    ratio: int
    """Refinement ratio to the next level; 1 for the finest level."""
    read: Callable[[str, int], np.ndarray]
    """Return a field on all cells of a box, x fastest."""
    refined: Callable[[int], np.ndarray]
    """Return which cells of a box the next level covers: bool, x fastest."""


def levels_of(
    amr: Amr,
    levels: tuple[int, int] | None = None,
    region: Box | None = None,
    threads: int | None = None,
) -> list[Level]:
    """Return the levels of a hierarchy, the coarsest first; fields are read on demand.

    Parameters
    ----------
    amr
        The cells.
    levels
        The lowest and the highest level. Refined cells of the highest level have their own values,
        or the mean of the finer cells. By default all levels; the lower levels of a tree have
        refined cells only.
    region
        A `Box`: the cells in it, rounded outward to cells of the lowest level.
    threads
        The number of threads that read the cells of a tree; all cores by default.

    Raises
    ------
    ValueError
        If the levels do not exist, or the region is not a box, or does not overlap the domain.
    UnsupportedError
        If refinement ratios differ between dimensions.
    """
    available = _numbers(amr)
    low, high = checked_levels(levels) or amr.levels
    if amr.layout == "patches" and levels is None:
        low, high = available[0], available[-1]
    chosen = [number for number in available if low <= number <= high]
    if not chosen:
        raise _core.InvalidError(
            f"levels {low} to {high} do not exist; available: {available[0]} to {available[-1]}"
        )
    ends = _cell_range_of(amr, chosen[0], region)
    if amr.layout == "patches":
        return _of_patches(amr, chosen, ends)
    return _of_tree(amr, chosen, ends, threads)


def _numbers(amr: Amr) -> list[int]:
    """Return the numbers of the levels that have cells, including refined cells."""
    if amr.layout == "patches":
        return list(range(len(cast(AmrexInfo | CodeInfo, amr.info).levels)))
    return list(range(amr.levels[1] + 1))


def _cell_range_of(
    amr: Amr, level: int, region: Box | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the first cell of `level` in a region, and the one after the last; None for all."""
    if region is None:
        return None
    lo, hi = domain_part(region, amr.info, amr._core.lower, amr._core.upper)
    return cell_range(lo, hi, np.array(amr.lower), np.array(amr.cell_size(level)))


def _of_patches(
    amr: Amr, numbers: Sequence[int], ends: tuple[np.ndarray, np.ndarray] | None
) -> list[Level]:
    infos = [cast(AmrexInfo | CodeInfo, amr.info).levels[number] for number in numbers]
    all_boxes = [
        amr._core.boxes(number) - info.lo for number, info in zip(numbers, infos, strict=True)
    ]
    levels: list[Level] = []
    for position, (number, info, boxes) in enumerate(zip(numbers, infos, all_boxes, strict=True)):
        selected, clipped = np.arange(len(boxes)), boxes
        if ends is not None:
            clipped = np.stack(
                [np.maximum(boxes[:, 0], ends[0]), np.minimum(boxes[:, 1], ends[1])], 1
            )
            selected = np.flatnonzero((clipped[:, 0] < clipped[:, 1]).all(axis=1))
            clipped = clipped[selected]
        last = number == numbers[-1]
        ratio = 1 if last else _ratio(number, info.ratio)
        if ends is not None:
            ends = ends[0] * ratio, ends[1] * ratio
        finer = np.empty((0, 2, amr.ndim), np.int64) if last else all_boxes[position + 1]
        levels.append(
            Level(
                number,
                clipped,
                tuple(amr.cell_size(number)),
                ratio,
                _box_reader(amr._core, number, selected, boxes, clipped),
                _coverage_reader(clipped, finer // ratio),
            )
        )
    return levels


def _ratio(number: int, ratios: Sequence[int]) -> int:
    if len(set(ratios)) != 1:
        raise _core.UnsupportedError(
            f"level {number}: expected one refinement ratio for all dimensions, found "
            f"{' x '.join(map(str, ratios))}"
        )
    return ratios[0]


def _box_reader(
    core: _core.Amr, level: int, selected: np.ndarray, boxes: np.ndarray, clipped: np.ndarray
) -> Callable[[str, int], np.ndarray]:
    """Return a function that reads the cells of a part of a box."""

    def read(field: str, index: int) -> np.ndarray:
        number = int(selected[index])
        values = core.read_box(level, number, field)
        whole, part = boxes[number], clipped[index]
        if (whole == part).all():
            return values
        grid = values.reshape((whole[1] - whole[0])[::-1])
        return np.ascontiguousarray(grid[_slices(part, whole[0])]).reshape(-1)

    return read


def _coverage_reader(boxes: np.ndarray, finer: np.ndarray) -> Callable[[int], np.ndarray]:
    """Return a function that returns which cells of a box the coarsened boxes `finer` cover."""

    def refined(index: int) -> np.ndarray:
        lo, hi = boxes[index]
        covered = np.zeros((hi - lo)[::-1], bool)
        first, after = np.maximum(finer[:, 0], lo), np.minimum(finer[:, 1], hi)
        for number in np.flatnonzero((first < after).all(axis=1)):
            covered[_slices(np.array([first[number], after[number]]), lo)] = True
        return covered.reshape(-1)

    return refined


def _slices(part: np.ndarray, start: np.ndarray) -> tuple[slice, ...]:
    """Return the slices of an array (z, y, x) that begins at `start` for a part of its cells."""
    return tuple(slice(a, b) for a, b in zip(*(part - start).tolist(), strict=True))[::-1]


@dataclass(frozen=True)
class _Cells:
    """The cells of a level of a tree, including refined cells, in Morton order."""

    rows: np.ndarray
    """The row of a leaf; for a refined cell that of its first leaf."""
    refined: np.ndarray
    """True for refined cells."""
    parent: np.ndarray
    """For each cell of the next level, the index of the cell of this level that contains it."""
    boxes: np.ndarray
    """As in `Level`."""
    order: np.ndarray
    """The indices of the cells, box by box, x fastest in each box."""

    @property
    def starts(self) -> np.ndarray:
        """The offset of each box in `order`, and the end: (boxes + 1,)."""
        counts = (self.boxes[:, 1] - self.boxes[:, 0]).prod(axis=1)
        return np.concatenate([[0], np.cumsum(counts)])


def _of_tree(
    amr: Amr,
    numbers: Sequence[int],
    ends: tuple[np.ndarray, np.ndarray] | None,
    threads: int | None,
) -> list[Level]:
    within = None
    if ends is not None:
        size, lower = np.array(amr.cell_size(numbers[0])), np.array(amr.lower)
        lo, hi = ((lower + end * size).tolist() for end in ends)
        within = Box(lo, hi, unit="code")
    # Finer levels are read too: they are averaged.
    all_levels = (numbers[0], amr.levels[1])
    names = [f"i{axis}" for axis in AXES[: amr.ndim]]
    leaves = amr.read(["level", *names], region=within, levels=all_levels, threads=threads)
    cells = _cells(leaves["level"], np.stack([leaves[name] for name in names], axis=1), all_levels)
    values = _TreeValues(amr, within, all_levels, cells, threads)
    return [values.level(number, last=number == numbers[-1]) for number in numbers]


def _cells(level: np.ndarray, index: np.ndarray, levels: tuple[int, int]) -> dict[int, _Cells]:
    """Return the cells of each level, from leaves in Morton order."""
    found: dict[int, _Cells] = {}
    finer, finer_rows = np.empty((0, index.shape[1]), np.int64), np.empty(0, np.int64)
    for number in range(levels[1], levels[0] - 1, -1):
        # The children of a cell are consecutive along the curve.
        inside = finer >> 1
        first = np.ones(len(inside), bool)
        first[1:] = (inside[1:] != inside[:-1]).any(axis=1)
        own = np.flatnonzero(level == number)
        rows = np.concatenate([own, finer_rows[first]])
        curve_order = np.argsort(rows, kind="stable")
        rank = np.empty_like(curve_order)
        rank[curve_order] = np.arange(len(curve_order))
        finer = np.concatenate([index[own], inside[first]])[curve_order]
        finer_rows = rows[curve_order]
        boxes, order = joined_to_boxes(finer)
        parent = rank[len(own) + np.cumsum(first) - 1]
        found[number] = _Cells(finer_rows, curve_order >= len(own), parent, boxes, order)
    return found


def joined_to_boxes(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes that contain each of `cells` once and nothing else, and the order of the cells.

    Adjacent cells in x are joined to runs, adjacent equal runs in y to sheets, and so on.
    """
    lo, hi = cells, cells + 1
    box = np.arange(len(cells))
    ndim = cells.shape[1]
    for axis in range(ndim):
        # Boxes are still one cell wide along later axes, so only earlier axes need their ends.
        others = [other for other in range(ndim) if other != axis]
        keys = [lo[:, axis], *(lo[:, other] for other in others), *(hi[:, o] for o in range(axis))]
        sorting = np.lexsort(keys)
        lo, hi = lo[sorting], hi[sorting]
        joined = lo[1:, axis] == hi[:-1, axis]
        for other in others:
            joined &= (lo[1:, other] == lo[:-1, other]) & (hi[1:, other] == hi[:-1, other])
        begins = np.flatnonzero(np.concatenate([[True], ~joined])) if len(lo) else sorting
        box_of = np.empty_like(sorting)
        box_of[sorting] = np.cumsum(np.concatenate([[0], ~joined])) if len(lo) else sorting
        box = box_of[box]
        ends = hi[np.append(begins[1:], len(lo)) - 1] if len(lo) else hi
        lo, hi = lo[begins], ends
    order = np.lexsort([*(cells[:, axis] for axis in range(ndim)), box])
    return np.stack([lo, hi], axis=1), order


class _TreeValues:
    """The values of the cells of a tree on all levels; each field is computed once."""

    def __init__(
        self,
        amr: Amr,
        within: Box | None,
        levels: tuple[int, int],
        cells: dict[int, _Cells],
        threads: int | None,
    ) -> None:
        self._amr = amr
        self._region = within
        self._levels = levels
        self._cells = cells
        self._threads = threads
        self._known: dict[str, dict[int, np.ndarray]] = {}

    def level(self, number: int, *, last: bool) -> Level:
        """Return a level; the last level has no refined cells."""
        cells = self._cells[number]
        starts = cells.starts
        refined = np.zeros(len(cells.order), bool) if last else cells.refined[cells.order]

        def read(field: str, index: int) -> np.ndarray:
            return self._values(field)[number][starts[index] : starts[index + 1]]

        def covered(index: int) -> np.ndarray:
            return refined[starts[index] : starts[index + 1]]

        sides = tuple(self._amr.cell_size(number))
        return Level(number, cells.boxes, sides, 1 if last else 2, read, covered)

    def _values(self, field: str) -> dict[int, np.ndarray]:
        """Return the values of a field on each level, box by box."""
        if field not in self._known:
            leaves = self._amr.read(
                [field], region=self._region, levels=self._levels, threads=self._threads
            )[field]
            finer = np.empty(0, leaves.dtype)
            known = {}
            for number, cells in self._cells.items():
                values = leaves[cells.rows]
                if leaves.dtype.kind == "f":
                    count = len(values)
                    total = np.bincount(cells.parent, finer, count)[cells.refined]
                    shares = np.bincount(cells.parent, minlength=count)[cells.refined]
                    values[cells.refined] = total / shares
                known[number], finer = values[cells.order], values
            self._known[field] = known
        return self._known[field]

"""Gradients of the velocity of cells, from the face neighbours of each cell.

The neighbours of a cell are the cells of its level across its faces. Where the leaf cells are finer
there, their value is the mean of the leaf cells in them; where they are coarser, that of the
coarser cell at its centre. A least-squares fit to the differences between cell centres is exact for
linear fields, and is the central difference where all neighbours are of one level. At faces of a
box that is not periodic, the difference is one-sided.

The fields are functions of the level and the centre of each cell, and look the neighbours up among
all leaf cells, which are read once and kept in memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.morton import morton_keys
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr

_BITS = 63
_CELL_BYTES = 200
"""Peak memory of reading the leaf cells, for each of them."""
_KEPT = 2 * (os.cpu_count() or 2)
"""Number of batches whose gradients are kept for other fields of the same cells: two a thread."""

GRADIENTS: dict[str, tuple[tuple[str, str, int], ...]] = {
    "velocity_divergence": (("x", "x", 1), ("y", "y", 1), ("z", "z", 1)),
    "vorticity_x": (("z", "y", 1), ("y", "z", -1)),
    "vorticity_y": (("x", "z", 1), ("z", "x", -1)),
    "vorticity_z": (("y", "x", 1), ("x", "y", -1)),
    "vorticity_magnitude": (),
}
"""Fields of gradients of the velocity: sums of (component, derivative, sign)."""


class Neighbours:
    """Leaf cells in which the neighbours of cells are found by their Morton keys.

    Parameters
    ----------
    fields
        Fields of all leaf cells.
    corner
        The lower corner of each cell, of shape (ndim, cells), in cells of the finest level.
    shift
        The binary logarithm of the side of each cell, in cells of the finest level.
    sides
        The sides of the box, in cells of the finest level.
    periodic
        Whether the box is periodic, in each dimension.
    """

    def __init__(
        self,
        fields: Sequence[np.ndarray],
        corner: np.ndarray,
        shift: np.ndarray,
        sides: Sequence[int],
        periodic: Sequence[bool],
    ) -> None:
        self._ndim = len(corner)
        self._sides = np.array(sides, dtype=np.int64)
        self._periodic = periodic
        bits = int(self._sides.max() - 1).bit_length()
        if self._ndim * bits > _BITS:
            raise _core.UnsupportedError(
                f"expected at most {_BITS // self._ndim} bits of a cell index for gradients, found "
                f"{bits}"
            )
        keys = morton_keys(corner)
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._shift = shift.astype(np.int8)[order]
        self._fields = [field.astype(np.float64)[order] for field in fields]

    def gradients(self, corner: np.ndarray, shift: np.ndarray) -> list[np.ndarray]:
        """Return the derivatives of the fields at cells, which may be covered by finer ones.

        Each has the shape (ndim, cells), in the unit of the field per cell of the finest level.
        """
        shift = shift.astype(np.int64)
        side = np.int64(1) << shift
        first = morton_keys(corner)
        own = [self._mean(values, first, self._find(first), shift) for values in self._fields]
        matrix = np.zeros((len(side), self._ndim, self._ndim))
        right = np.zeros((len(side), self._ndim, len(self._fields)))
        for axis in range(self._ndim):
            for step in (-1, 1):
                place = corner.copy()
                place[axis] += step * side
                exists = np.ones(len(side), dtype=bool)
                if self._periodic[axis]:
                    place[axis] %= self._sides[axis]
                else:
                    exists = (place[axis] >= 0) & (place[axis] < self._sides[axis])
                    place[axis] = np.clip(place[axis], 0, self._sides[axis] - 1)
                first = morton_keys(place)
                found = self._find(first)
                exists &= found >= 0
                # The cell that contains the place if it is coarser, otherwise the place itself.
                around = np.maximum(self._shift[np.maximum(found, 0)].astype(np.int64), shift)
                centre = (place >> around << around) + (np.int64(1) << around) / 2
                offset = (centre - corner - side / 2) / side
                for other in range(self._ndim):
                    if self._periodic[other]:
                        whole = self._sides[other] / side
                        offset[other] -= whole * np.round(offset[other] / whole)
                weight = exists / (offset**2).sum(axis=0).clip(0.25)
                matrix += np.einsum("n,in,jn->nij", weight, offset, offset)
                for number, values in enumerate(self._fields):
                    beyond = self._mean(values, first, found, shift)
                    # Where nothing is beyond, `beyond` is of another cell, and may be NaN.
                    difference = np.where(exists, beyond - own[number], 0.0)
                    right[..., number] += (weight * difference * offset).T
        # A singular matrix has no neighbours along an axis, whose derivative is then unknown.
        singular = np.abs(np.linalg.det(matrix)) < 1e-12
        matrix[singular] = np.eye(self._ndim)
        solved: np.ndarray = np.linalg.solve(matrix, right)
        solved[singular] = np.nan
        return [values / side for values in solved.T]

    def _find(self, keys: np.ndarray) -> np.ndarray:
        """Return the sorted leaf cell that contains each key; -1 if there is none."""
        found = np.searchsorted(self._keys, keys, side="right") - 1
        volume = np.int64(1) << (self._ndim * self._shift[found].astype(np.int64))
        return np.where((found >= 0) & (keys - self._keys[found] < volume), found, -1)

    def _mean(
        self, values: np.ndarray, first: np.ndarray, found: np.ndarray, shift: np.ndarray
    ) -> np.ndarray:
        """Return the values of the leaf cells that contain cells, or the mean of those in them.

        `found` are the leaf cells at their first keys; the values where it is -1 have no meaning.
        """
        means: np.ndarray = values[found]
        is_finer = (found >= 0) & (self._shift[found] < shift)
        if is_finer.any():
            start = found[is_finer]
            end = first[is_finer] + (np.int64(1) << (self._ndim * shift[is_finer]))
            lengths = np.searchsorted(self._keys, end, side="left") - start
            starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
            rows = np.repeat(start - starts, lengths) + np.arange(lengths.sum())
            volumes = np.exp2(self._ndim * self._shift[rows].astype(np.float64))
            sums = np.add.reduceat(values[rows] * volumes, starts)
            means[is_finer] = sums / np.add.reduceat(volumes, starts)
        return means


class VelocityGradients:
    """The gradients of the velocity of the leaf cells of a run, which are read on first use."""

    def __init__(self, amr: Amr) -> None:
        self._amr = amr
        self._neighbours: dict[int, Neighbours] = {}
        self._results: dict[bytes, dict[str, np.ndarray]] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[object, ...]:
        return VelocityGradients, (self._amr,)

    def prepare(self, components: int) -> None:
        """Read the leaf cells, unless that is done.

        Raises
        ------
        UnsupportedError
            If refinement ratios are not powers of 2 and equal in all dimensions.
        LimitError
            If the cells need more memory than `ambar.limits` permits.
        """
        with self._lock:
            if components not in self._neighbours:
                self._neighbours[components] = self._read(components)

    def _read(self, components: int) -> Neighbours:
        amr, info = self._amr, self._amr.info
        needed, limit = _CELL_BYTES * len(amr), _core.memory_limit()
        if needed > limit:
            raise _core.LimitError(
                f"gradients of {len(amr)} cells need {needed} bytes, more than the limit of "
                f"{limit}; load a region with snapshot.load, or raise ambar.limits"
            )
        axes = AXES[: amr.ndim]
        velocity = [f"velocity_{axis}" for axis in AXES[:components]]
        cells = amr._read_arrays(["level", *axes, *velocity])
        corner, shift = self._lattice(cells["level"], [cells[axis] for axis in axes])
        sides = np.rint(np.divide(info.box_size, self._finest)).astype(int).tolist()
        periodic = info.periodic or (False,) * amr.ndim
        return Neighbours([cells[name] for name in velocity], corner, shift, sides, periodic)

    @property
    def _finest(self) -> np.ndarray:
        return np.array(self._amr.cell_size(self._amr.levels[1]))

    def _lattice(
        self, level: np.ndarray, place: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower corners of cells and the logarithms of their sides."""
        low, high = self._amr.levels
        shifts = np.zeros(high + 1, np.int64)
        for number in range(min(low, int(level.min(initial=low))), high + 1):
            ratio = np.rint(np.divide(self._amr.cell_size(number), self._finest)).astype(np.int64)
            shifts[number] = int(ratio[0]).bit_length() - 1
            if (ratio != 1 << shifts[number]).any():
                raise _core.UnsupportedError(
                    f"{self._amr._title}: expected refinement ratios that are powers of 2 and "
                    f"equal in all dimensions for gradients, found cells of level {number} that "
                    f"are {' x '.join(map(str, ratio))} times as long as those of level {high}"
                )
        shift = shifts[level.astype(np.int64)]
        lower = np.array(self._amr.lower)
        parts = zip(place, lower, self._finest, strict=True)
        middle = np.stack([(x - start) / size for x, start, size in parts])
        return np.rint(middle - (np.int64(1) << shift) / 2).astype(np.int64), shift

    def at(
        self, components: int, level: np.ndarray, place: Sequence[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Return the gradients of the components of the velocity at cells."""
        corner, shift = self._lattice(level, place)
        key = b"".join([bytes([components]), corner.tobytes(), shift.tobytes()])
        # Fields of the same rows are computed one after the other.
        if (found := self._results.get(key)) is None:
            parts = self._neighbours[components].gradients(corner, shift)
            sizes = self._finest[:, None]
            found = {axis: part / sizes for axis, part in zip(AXES, parts, strict=False)}
            with self._lock:
                while len(self._results) >= _KEPT:
                    del self._results[next(iter(self._results))]
                self._results[key] = found
        return found


@dataclass(frozen=True)
class GradientField:
    """A field of `GRADIENTS`, as a function of the level, the centre and the velocity of cells."""

    name: str
    gradients: VelocityGradients
    ndim: int
    components: int

    def prepare(self) -> None:
        """Read what the function needs; in threads of the core it must not read."""
        self.gradients.prepare(self.components)

    def __call__(self, level: np.ndarray, *others: np.ndarray) -> np.ndarray:
        """Return the values of the field."""
        found = self.gradients.at(self.components, level, others[: self.ndim])
        return fields_of_gradients([self.name], found)[self.name]


def gradient_formulas(gradients: VelocityGradients, ndim: int) -> dict[str, list[Any]]:
    """Return the formulas of the fields, with three components of the velocity or `ndim`."""
    place = ("level", *AXES[:ndim])
    return {
        name: [
            (
                (*place, *(f"velocity_{axis}" for axis in AXES[:count])),
                GradientField(name, gradients, ndim, count),
            )
            for count in dict.fromkeys((3, ndim))
        ]
        for name in GRADIENTS
    }


def fields_of_gradients(
    names: Sequence[str], gradients: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the fields of `GRADIENTS`; `gradients` are those of the velocity components."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        if name == "vorticity_magnitude":
            parts = [_sum(f"vorticity_{axis}", gradients) for axis in AXES]
            found[name] = np.sqrt(np.sum([part**2 for part in parts], axis=0))
        else:
            found[name] = _sum(name, gradients)
    return found


def _sum(name: str, gradients: Mapping[str, np.ndarray]) -> np.ndarray:
    terms = [
        sign * gradients[component][AXES.index(axis)]
        for component, axis, sign in GRADIENTS[name]
        if component in gradients and AXES.index(axis) < len(gradients[component])
    ]
    shape = next(iter(gradients.values())).shape[1:]
    return np.sum(terms, axis=0) if terms else np.zeros(shape)

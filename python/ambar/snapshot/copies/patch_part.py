"""Parts of cells in patches: some levels, and the boxes around a region."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ambar import _core
from ambar.snapshot.copies.patch_values import PatchValues
from ambar.snapshot.regions import Levels


@dataclass(frozen=True)
class PartLevel:
    """The boxes of a level that are copied."""

    boxes: np.ndarray
    """int64 of shape (boxes, 2, ndim): first cell, and after the last."""
    origins: np.ndarray
    """The index of the box of the source that each box is a part of."""
    domain: np.ndarray
    """int64 of shape (2, ndim): first cell of the domain, and after the last."""
    cell_size: np.ndarray
    """Sides of a cell, code length."""
    ratio: np.ndarray
    """Refinement ratio to the next level; 1 for the finest level."""

    @property
    def cells(self) -> int:
        """The number of cells in the boxes, including covered cells."""
        return int((self.boxes[:, 1] - self.boxes[:, 0]).prod(axis=1).sum())


class PatchPart:
    """A part of the boxes of a hierarchy, which is a hierarchy too.

    The finest level is the highest selected one: its cells are leaves, also those that a finer
    level covers in the source. Coarser levels than the lowest selected one have only the cells
    under finer boxes. Of a region, those boxes of level 0 are kept that it touches, cropped to the
    cells that it touches; finer boxes are cropped to them.

    Parameters
    ----------
    values
        The cells.
    own
        The attributes of their group.
    levels
        The lowest and the highest level; all by default.
    region
        A region in code length; the whole domain by default.
    location
        The store, for messages.

    Raises
    ------
    ValueError
        If no cell is selected.
    UnsupportedError
        If boxes of the lowest level do not consist of whole cells of all coarser levels.
    """

    def __init__(
        self,
        values: PatchValues,
        own: Mapping[str, Any],
        levels: Levels | None,
        region: _core.Region | None,
        location: str,
    ) -> None:
        self._values = values
        self._location = location
        self.ndim: int = own["ndim"]
        self._lower = np.array(own["lower"], float)
        self._upper = np.array(own["upper"], float)
        lowest, highest = levels or (0, len(own["levels"]) - 1)
        source = [
            _level(boxes, level) for boxes, level in zip(values.boxes, own["levels"], strict=True)
        ]
        found = source[: highest + 1]
        if region is not None:
            found = self._around(found, region)
        while found and not len(found[-1].boxes):
            found.pop()
        if len(found) <= lowest:
            raise _core.InvalidError(
                f"{location}: no cell is selected; choose a larger region, or levels of 0 to "
                f"{len(source) - 1}"
            )
        found[-1] = replace(found[-1], ratio=np.ones(self.ndim, np.int64))
        self.levels = found
        self._keep_under(lowest)
        same = [
            np.array_equal(part.boxes, whole.boxes)
            for part, whole in zip(self.levels, source, strict=False)
        ]
        self.has_whole_levels = all(same)
        """Whether each level has all boxes of the source."""
        self.is_whole = self.has_whole_levels and len(same) == len(source)
        """Whether all boxes of the source are copied."""

    def _around(self, levels: Sequence[PartLevel], region: _core.Region) -> list[PartLevel]:
        """Return the levels, cropped to the boxes of level 0 around the region."""
        parts = self._touched(levels[0], region)
        found = []
        for level in levels:
            found.append(_cropped(level, parts))
            parts = parts * level.ratio
        return found

    def _touched(self, level: PartLevel, region: _core.Region) -> np.ndarray:
        """Return the parts of the boxes of a level that the region touches, joined where they fit.

        Each part is cropped to the planes of cells that the region touches. The result has the
        shape (parts, 2, ndim).
        """
        outside = region.complement()
        pending = [box for box in level.boxes if self._overlaps(level, box, region)]
        found = []
        while pending:
            box = pending.pop()
            if not self._overlaps(level, box, outside):
                found.append(box)
                continue
            runs = [self._runs(level, box, axis, region) for axis in range(self.ndim)]
            parts = [np.array(ends).T for ends in itertools.product(*runs)]
            if len(parts) == 1 and (parts[0] == box).all():
                found.append(box)
            else:
                pending.extend(part for part in parts if self._overlaps(level, part, region))
        return _joined(np.array(found, np.int64).reshape(-1, 2, self.ndim))

    def _runs(
        self, level: PartLevel, box: np.ndarray, axis: int, region: _core.Region
    ) -> list[tuple[int, int]]:
        """Return the ranges of planes of a box that the region touches."""
        planes = []
        for plane in range(int(box[0, axis]), int(box[1, axis])):
            slab = box.copy()
            slab[:, axis] = plane, plane + 1
            if self._overlaps(level, slab, region):
                planes.append(plane)
        breaks = [n for n in range(1, len(planes)) if planes[n] != planes[n - 1] + 1]
        starts, ends = [0, *breaks], [*breaks, len(planes)]
        return [(planes[a], planes[b - 1] + 1) for a, b in zip(starts, ends, strict=True) if a < b]

    def _overlaps(self, level: PartLevel, box: np.ndarray, region: _core.Region) -> bool:
        lo, hi = self._lower + (box - level.domain[0]) * level.cell_size
        # The upper faces belong to the next cells.
        return region.may_overlap(lo.tolist(), np.nextafter(hi, -np.inf).tolist())

    def _keep_under(self, lowest: int) -> None:
        """Keep only the cells of levels below `lowest` that are under its boxes."""
        for number in range(lowest - 1, -1, -1):
            level, finer = self.levels[number], self.levels[number + 1].boxes
            kept = _cropped(level, finer // level.ratio)
            ratio = self.levels[number - 1].ratio if number else np.ones(self.ndim, np.int64)
            cut = (kept.boxes % ratio).any(axis=(1, 2))
            if cut.any():
                raise _core.UnsupportedError(
                    f"{self._location}: expected boxes of level {lowest} made of whole cells of "
                    f"level {number - 1}, found one that covers the cells "
                    f"{kept.boxes[cut.argmax()].tolist()} of level {number}; give 0 as the lowest "
                    "level"
                )
            self.levels[number] = kept

    def patches(self, fields: Sequence[str], levels: Iterable[int] | None = None) -> _core.Patches:
        """Return the boxes and their values, of some levels; they are read on demand.

        Raises UnsupportedError for fields that are not floats.
        """
        numbers = list(range(len(self.levels)) if levels is None else levels)
        dtypes = [self._values.dtype(field) for field in fields]
        for field, dtype in zip(fields, dtypes, strict=True):
            if dtype not in ("float32", "float64"):
                raise _core.UnsupportedError(
                    f"{self._location}: expected fields of float32 or float64 for region= or "
                    f"levels= of cells in patches, found {field!r} of {dtype}; leave it out"
                )

        def read(level: int, box: int, field: str, start: int, stop: int) -> np.ndarray:
            return self._read(numbers[level], box, field, start, stop)

        described = [_description(self.levels[number]) for number in numbers]
        description = {
            "ndim": self.ndim,
            "lower": self._lower.tolist(),
            "upper": self._upper.tolist(),
            "fields": list(fields),
            "dtypes": dtypes,
            "levels": described,
        }
        return _core.Patches(description, read)

    def _read(self, level: int, box: int, field: str, start: int, stop: int) -> np.ndarray:
        """Return consecutive cells of a box, x fastest."""
        lo, hi = self.levels[level].boxes[box]
        plane = int(np.prod((hi - lo)[:-1]))
        slab = np.array([lo, hi])
        slab[:, -1] = lo[-1] + start // plane, lo[-1] - (-stop // plane)
        origin = int(self.levels[level].origins[box])
        values = self._values.read(level, origin, slab, field).reshape(-1)
        begin = start % plane
        return np.ascontiguousarray(values[begin : begin + stop - start])

    def locate(self, positions: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Return the level and the box of points: the finest box that contains each of them.

        Points outside of all boxes are in the first box of level 0.

        Parameters
        ----------
        positions
            Coordinates by dimension, code length.

        Returns
        -------
        numpy.ndarray, numpy.ndarray
            uint8, the levels; uint32, the indices of boxes.
        """
        points = np.stack([np.asarray(x, float) for x in positions], axis=1)
        found = np.zeros(len(points), np.uint8)
        grids = np.zeros(len(points), np.uint32)
        unknown = np.flatnonzero(np.isfinite(points).all(axis=1))
        for number in range(len(self.levels) - 1, -1, -1):
            level = self.levels[number]
            cells = np.floor((points[unknown] - self._lower) / level.cell_size) + level.domain[0]
            if not len(cells):
                break
            near = (level.boxes[:, 0] <= cells.max(axis=0)).all(axis=1)
            near &= (level.boxes[:, 1] > cells.min(axis=0)).all(axis=1)
            is_found = np.zeros(len(cells), bool)
            for index in np.flatnonzero(near):
                lo, hi = level.boxes[index]
                inside = ((cells >= lo) & (cells < hi)).all(axis=1)
                found[unknown[inside]], grids[unknown[inside]] = number, index
                is_found |= inside
            unknown = unknown[~is_found]
        return found, grids

    def info(self, info: Mapping[str, Any]) -> dict[str, Any]:
        """Return run information with the levels and the boxes of the part."""
        changed = dict(info)
        if "levels" in info:
            changed["levels"] = [
                {
                    **old,
                    "ratio": level.ratio.tolist(),
                    "boxes": len(level.boxes),
                    "cells": level.cells,
                }
                for old, level in zip(info["levels"], self.levels, strict=False)
            ]
        if "steps" in info:
            changed["steps"] = list(info["steps"])[: len(self.levels)]
        return changed


def _level(boxes: np.ndarray, level: Mapping[str, Any]) -> PartLevel:
    return PartLevel(
        boxes,
        np.arange(len(boxes)),
        np.array(level["domain"], np.int64),
        np.array(level["cell_size"], float),
        np.array(level["ratio"], np.int64),
    )


def _cropped(level: PartLevel, parts: np.ndarray) -> PartLevel:
    """Return a level with the intersections of its boxes and disjoint boxes `parts`."""
    found, origins = [np.empty((0, 2, level.boxes.shape[2]), np.int64)], [np.empty(0, np.int64)]
    by_x = np.argsort(level.boxes[:, 0, 0], kind="stable")
    boxes, starts = level.boxes[by_x], level.boxes[by_x, 0, 0]
    width = (boxes[:, 1, 0] - boxes[:, 0, 0]).max(initial=0)
    for lo, hi in parts:
        # Boxes that begin between these places can overlap the part along x.
        ends = np.searchsorted(starts, [lo[0] - width, hi[0]])
        near = boxes[ends[0] : ends[1]]
        cut = np.stack([np.maximum(near[:, 0], lo), np.minimum(near[:, 1], hi)], axis=1)
        kept = np.flatnonzero((cut[:, 0] < cut[:, 1]).all(axis=1))
        found.append(cut[kept])
        origins.append(by_x[ends[0] + kept])
    every, owners = np.concatenate(found), np.concatenate(origins)
    order = np.argsort(owners, kind="stable")
    return replace(level, boxes=every[order], origins=level.origins[owners[order]])


def _joined(boxes: np.ndarray) -> np.ndarray:
    """Return boxes in which those with a common face, of equal sides, are one."""
    if not len(boxes):
        return boxes
    ndim = boxes.shape[2]
    for axis in range(ndim):
        others = [other for other in range(ndim) if other != axis]
        ends = [boxes[:, end, other] for other in others for end in (0, 1)]
        boxes = boxes[np.lexsort([boxes[:, 0, axis], *ends])]
        is_next = boxes[1:, 0, axis] == boxes[:-1, 1, axis]
        is_next &= (boxes[1:, :, others] == boxes[:-1, :, others]).all(axis=(1, 2))
        first = np.flatnonzero(np.append(True, ~is_next)[: len(boxes)])
        last = np.append(first[1:], len(boxes)) - 1
        boxes, after = boxes[first], boxes[last, 1, axis]
        boxes[:, 1, axis] = after
    return boxes


def _description(level: PartLevel) -> dict[str, Any]:
    return {
        "domain": level.domain.tolist(),
        "boxes": level.boxes.tolist(),
        "cell_size": level.cell_size.tolist(),
        "ratio": level.ratio.tolist(),
    }

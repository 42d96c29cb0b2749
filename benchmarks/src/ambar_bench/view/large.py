"""A plotfile of 10^9 cells, made by repetition of a few boxes, as a store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ambar
from ambar_bench.amr.large import noise
from ambar_bench.amr.plotfile_writer import Box, write_plotfile

SIDE = 64
"""Cells along the side of a box."""
COARSE = 8
"""Boxes along the side of the coarsest level: 512^3 cells."""
PATTERNS = 16
"""Different boxes; others repeat them."""


def large_store(folder: Path, coarse: int = COARSE) -> Path:
    """Write the store of three levels into a folder, unless it is there; return its path.

    Half of the box is refined once, and a sixteenth twice: 1.2 * 10^9 cells for 8 boxes along a
    side of the coarsest level.
    """
    path = folder / f"large_{coarse}.ambar"
    if path.exists():
        return path
    boxes = [
        [_box(place) for place in np.ndindex(*(coarse * 2**level,) * 3) if _is_there(place, level)]
        for level in range(3)
    ]
    field = np.exp(noise(SIDE * 2, 5.0, 7)).astype(np.float32).astype(np.float64)
    rolled = [np.roll(field, 13 * number, axis=number % 3) for number in range(PATTERNS)]
    patterns = [one[:SIDE, :SIDE, :SIDE][None] for one in rolled]

    def values(level: int, box: Box) -> np.ndarray:
        place = [corner // SIDE for corner in box[0]]
        pattern: np.ndarray = patterns[(place[0] + 5 * place[1] + 3 * place[2] + level) % PATTERNS]
        return pattern

    plotfile = write_plotfile(folder / "plt00000", ["density"], (SIDE * coarse,) * 3, boxes, values)
    ambar.convert(plotfile, path, profile="fast", fsync=False)
    for file in sorted(plotfile.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    plotfile.rmdir()
    return path


def _is_there(place: tuple[int, ...], level: int) -> bool:
    """Return whether a level has the box at a place; finer boxes are in coarser ones."""
    if level == 0:
        return True
    if level == 1:
        return sum(place) // 4 % 2 == 0
    parent = tuple(part // 2 for part in place)
    return _is_there(parent, 1) and all(part % 4 < 2 for part in parent)


def _box(place: tuple[int, ...]) -> Box:
    first = tuple(part * SIDE for part in place)
    return first, tuple(part + SIDE - 1 for part in first)

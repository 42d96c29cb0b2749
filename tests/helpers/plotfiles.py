"""A small plotfile of random values: two levels, a domain that begins below 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers.plotfile_writer import RATIO, Box, Plotfile

FIELDS = ["density", "Temp"]
LOWER, UPPER = (-1.0, 0.0, 2.0), (1.0, 1.0, 3.0)
SHAPE = (16, 8, 8)
# First and last cells.
BOXES: list[list[Box]] = [
    [((0, 0, 0), (9, 7, 7)), ((10, 0, 0), (15, 7, 7))],
    [((4, 2, 0), (13, 9, 7)), ((14, 2, 0), (23, 9, 3)), ((4, 10, 4), (7, 15, 15))],
]


def write(folder: Path) -> list[np.ndarray]:
    """Write a plotfile; return each level's values, (field, x, y, z), NaN outside of its boxes.

    The coarse density is the average of the fine one, the coarse temperature is not.
    """
    random = np.random.default_rng(7)
    levels = [random.random((2, *(RATIO**level * n for n in SHAPE))) for level in (0, 1)]
    for level, values in enumerate(levels):
        inside = np.zeros(values.shape[1:], bool)
        for box in BOXES[level]:
            inside[_slices(box)] = True
        values[:, ~inside] = np.nan
    fine = levels[1][0]
    # The sums in AMReX's order: x fastest, from 0 on.
    means = np.zeros(SHAPE)
    for z, y, x in np.ndindex(2, 2, 2):
        means += fine[x::2, y::2, z::2]
    means *= 1 / 8
    levels[0][0] = np.where(np.isnan(means), levels[0][0], means)
    plotfile = Plotfile(
        FIELDS, SHAPE, LOWER, UPPER, BOXES, lambda level, box: levels[level][:, *_slices(box)]
    )
    plotfile.write(folder)
    (folder / "job_info").write_text("a run of the tests\n")
    return levels


def covered() -> np.ndarray:
    """Return which coarse cells the fine level covers."""
    inside = np.zeros(SHAPE, bool)
    for lo, hi in BOXES[1]:
        inside[tuple(slice(a // 2, (b + 1) // 2) for a, b in zip(lo, hi, strict=True))] = True
    return inside


def _slices(box: Box) -> tuple[slice, ...]:
    return tuple(slice(a, b + 1) for a, b in zip(*box, strict=True))

"""Small plotfiles of smooth and steep fields in the unit box, by formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tests.helpers.plotfile_writer import Box, Corner, Plotfile

Field = Callable[..., np.ndarray]


def smooth(*places: np.ndarray) -> np.ndarray:
    """Return a smooth field of cell centres x, y, ... in the unit box."""
    total = sum(np.sin(5 * place + number) for number, place in enumerate(places))
    return np.asarray(total) * 10 + 3


def steep(*places: np.ndarray) -> np.ndarray:
    """Return a field over many decades."""
    return np.exp(6 * smooth(*places) / 10)


Boxes = Sequence[Sequence[Box]]

FIELDS: dict[str, Field] = {"density": steep, "Temp": smooth}
# First and last cell, x first.
BOXES_3D: Boxes = [
    [((0, 0, 0), (15, 15, 15)), ((16, 0, 0), (31, 15, 15))],
    [((8, 8, 8), (23, 23, 23)), ((24, 8, 8), (39, 15, 23))],
]


def write_plotfile(
    folder: Path,
    boxes: Boxes | None = None,
    fields: dict[str, Field] | None = None,
    dtype: str = "<f8",
    domain: Corner = (32, 16, 16),
    time: float | None = None,
    step: int = 5,
    size: float = 1.0,
) -> Path:
    """Write a plotfile of ratio 2 and return its folder; each box has a file of its own.

    Values are those of the unit box, whatever the size of the domain.
    """
    chosen = fields or FIELDS

    def values(level: int, box: Box) -> np.ndarray:
        cells = [n << level for n in domain]
        corners = zip(*box, cells, strict=True)
        places = [(np.arange(a, b + 1) + 0.5) / n for a, b, n in corners]
        centres = np.meshgrid(*places, indexing="ij")
        return np.array([field(*centres) for field in chosen.values()])

    unit = ((0.0,) * len(domain), (size,) * len(domain))
    plotfile = Plotfile(
        [*chosen], domain, *unit, boxes or BOXES_3D, values, dtype, files=True, time=time, step=step
    )
    return plotfile.write(folder)

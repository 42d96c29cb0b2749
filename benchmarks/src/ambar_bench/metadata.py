"""The fixed cost of small stores: the bytes of a store without the chunks of its fields.

python -m ambar_bench.metadata
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ambar
from ambar_bench.amr.plotfile_writer import Box, write_plotfile

FIELDS = ("density", "Temp", "x_velocity")
SIDE = 32
"""Cells of the coarsest level in each dimension."""


def field(path: Path) -> None:
    """Write a store of one field of 16^3 values."""
    values = np.random.default_rng(1).normal(size=(16, 16, 16))
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("density", values)


def plotfile(path: Path) -> None:
    """Convert a plotfile of 8 boxes of 16^3 cells and 17 of 8^3, with three fields."""
    random = np.random.default_rng(2)
    corners = [(i, j, k) for i in (0, 16) for j in (0, 16) for k in (0, 16)]
    refined = [(8 * i, 8 * j, 16) for i in range(4) for j in range(4)] + [(32, 32, 32)]
    boxes = [[_box(corner, 16) for corner in corners], [_box(corner, 8) for corner in refined]]

    def values(_level: int, box: Box) -> np.ndarray:
        lo, hi = box
        shape = [last - first + 1 for first, last in zip(lo, hi, strict=True)]
        return random.normal(size=(len(FIELDS), *shape))

    source = write_plotfile(path.with_suffix(".plt"), FIELDS, (SIDE,) * 3, boxes, values)
    ambar.convert(source, path, fsync=False)


def _box(corner: tuple[int, ...], side: int) -> Box:
    return corner, tuple(first + side - 1 for first in corner)


def overhead(path: Path) -> int:
    """Return the bytes of a store that are not in chunks of its fields."""
    with zipfile.ZipFile(path) as archive:
        chunks = [info for info in archive.infolist() if "/c/" in info.filename]
    data = [info.file_size for info in chunks if info.filename.split("/c/")[0].endswith(FIELDS)]
    return path.stat().st_size - sum(data)


def main() -> None:
    """Print the overhead of each store."""
    stores: dict[str, Callable[[Path], None]] = {
        "one field of 16^3 values": field,
        "a plotfile of 25 boxes and 3 fields": plotfile,
    }
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, write) in enumerate(stores.items()):
            path = Path(folder) / f"{number}.ambar"
            write(path)
            print(f"{name}: {overhead(path):,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()

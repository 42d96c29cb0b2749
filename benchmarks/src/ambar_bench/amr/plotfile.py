"""Whole plotfiles with covered cells: native ones, and those in HDF5.

`ambar.open` gives leaf cells alone, which is not what AMReX writes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ambar
from ambar import _core
from ambar_bench.amr.hierarchy import Box, Hierarchy, Level, Values


def read_plotfile(path: Path) -> Hierarchy:
    """Read a native plotfile; cells are all marked as uncovered.

    Raises
    ------
    ValueError
        If it is not a native plotfile.
    CorruptError
        If it was cut short.
    """
    if not _core.is_plotfile(str(path)):
        raise ambar.InvalidError(f"{path} is not a native AMReX plotfile: it has no Header")
    core = _core.Amrex(str(path))
    info = core.info
    fields, ndim = list(info["fields"]), int(info["ndim"])
    levels = []
    ratio = np.ones(3, np.int64)
    for number, level in enumerate(core.levels):
        boxes = []
        for place, ((lo, hi), file) in enumerate(zip(level["boxes"], level["files"], strict=True)):
            first, behind = _point(lo, 0), _point(hi, 1)
            z, y, x = (int(n) for n in behind - first)
            values = {name: core.read_box(number, place, name) for name in fields}
            values = {name: column.reshape(z, y, x) for name, column in values.items()}
            boxes.append(Box(first, (z, y, x), str(file), values, np.ones((z, y, x), bool)))
        levels.append(Level(boxes, ratio))
        ratio = _point(level["ratio"], 1)
    return Hierarchy(str(path), ndim, fields, levels)


def read_hdf5_plotfile(path: Path) -> Hierarchy:
    """Read a plotfile in HDF5; which rank wrote a box is not known.

    Raises
    ------
    ValueError
        If it is no such plotfile.
    """
    from ambar.formats.amrex.hdf5 import is_hdf5_plotfile, read_hdf5

    if not is_hdf5_plotfile(path):
        raise ambar.InvalidError(f"{path} is not an AMReX plotfile")
    levels = []
    with read_hdf5(path) as file:
        missing = 3 - file.ndim
        for number, level in enumerate(file.levels):
            boxes = []
            for place, (low, _) in enumerate(level.boxes):
                lo = np.array([0] * missing + low.tolist()[::-1], np.int64)
                values = {name: _dense(file.read(number, place, name)) for name in file.names}
                shape = next(iter(values.values())).shape
                boxes.append(Box(lo, shape, "", values, np.ones(shape, bool)))
            ratio = np.ones(3, np.int64)
            ratio[missing:] = file.levels[number - 1].ratio if number else 1
            levels.append(Level(boxes, ratio))
        return Hierarchy(str(path), file.ndim, list(file.names), levels)


def _dense(values: Values) -> Values:
    """Return values (x, y, ...) as (z, y, x)."""
    return np.ascontiguousarray(values.T.reshape((1,) * (3 - values.ndim) + values.T.shape))


def _point(numbers: list[int], missing: int) -> np.ndarray:
    """Return x, y, z as z, y, x, with the number `missing` in missing dimensions."""
    return np.array([*numbers, *[missing] * (3 - len(numbers))][::-1], np.int64)

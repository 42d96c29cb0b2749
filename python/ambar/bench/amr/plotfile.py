"""All of a plotfile at once, covered cells too: native ones, read here, and those in HDF5.

`ambar.open` gives leaf cells alone, which is not what AMReX writes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ambar import _core
from ambar.bench.amr.hierarchy import Box, Hierarchy, Level, Values

_BOX = re.compile(r"^\(\(([-\d,]+)\) \(([-\d,]+)\) \([\d,]+\)\)$", re.MULTILINE)
_PLACE = re.compile(r"^FabOnDisk: (\S+) (\d+)$", re.MULTILINE)
# Bits of a value; the first of its bytes, counted from the highest.
_REAL = re.compile(rb"^FAB \(\(\d+, \((\d+) [^)]*\)\),\(\d+, \((\d+) ")


def read_plotfile(path: Path) -> Hierarchy:
    """Read a native plotfile; cells are all marked as uncovered.

    Raises
    ------
    InvalidError
        If it is no native plotfile.
    """
    header = path / "Header"
    if not header.is_file():
        raise _core.InvalidError(f"{path} is no native AMReX plotfile: it has no Header")
    lines = header.read_text().splitlines()
    fields = lines[2 : 2 + int(lines[1])]
    rest = lines[2 + len(fields) :]
    ndim, finest = int(rest[0]), int(rest[2])
    ratios = [int(text) for text in rest[5].split()][:finest]
    levels = []
    for number in range(finest + 1):
        boxes = _read_level(path / f"Level_{number}", fields, ndim)
        ratio = np.ones(3, np.int64)
        ratio[3 - ndim :] = ratios[number - 1] if number else 1
        levels.append(Level(boxes, ratio))
    return Hierarchy(str(path), ndim, fields, levels)


def read_hdf5_plotfile(path: Path) -> Hierarchy:
    """Read a plotfile in HDF5; which rank wrote a box is not known.

    Raises
    ------
    InvalidError
        If it is no such plotfile.
    """
    from ambar.amrex_hdf5 import is_hdf5_plotfile, read_hdf5

    if not is_hdf5_plotfile(path):
        raise _core.InvalidError(f"{path} is no AMReX plotfile")
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


def _read_level(folder: Path, fields: list[str], ndim: int) -> list[Box]:
    text = (folder / "Cell_H").read_text()
    corners = [[_point(part, ndim) for part in match.groups()] for match in _BOX.finditer(text)]
    places = [(match[1], int(match[2])) for match in _PLACE.finditer(text)]
    boxes = []
    for (lo, hi), (name, offset) in zip(corners, places, strict=True):
        shape = tuple(int(n) for n in hi - lo + 1)
        values = _read_fab(folder / name, offset, (len(fields), *shape))
        boxes.append(
            Box(
                lo,
                (shape[0], shape[1], shape[2]),
                name,
                dict(zip(fields, values, strict=True)),
                np.ones(shape, bool),
            )
        )
    return boxes


def _point(text: str, ndim: int) -> np.ndarray:
    """Return "x,y,z" as z, y, x, with 0 in missing dimensions."""
    numbers = [int(part) for part in text.split(",")] + [0] * (3 - ndim)
    return np.array(numbers[::-1], np.int64)


def _read_fab(path: Path, offset: int, shape: tuple[int, ...]) -> Values:
    with path.open("rb") as file:
        file.seek(offset)
        line = file.readline()
        match = _REAL.match(line)
        if match is None or int(match[1]) not in (32, 64):
            raise _core.InvalidError(f"{path}: no FAB at byte {offset}, but {line[:60]!r}")
        dtype = np.dtype(f"{'>' if match[2] == b'1' else '<'}f{int(match[1]) // 8}")
        values = np.fromfile(file, dtype, int(np.prod(shape)))
    if values.size != np.prod(shape):
        raise _core.InvalidError(f"{path} ends within the box at byte {offset}")
    return values.astype(dtype.newbyteorder("=")).reshape(shape)

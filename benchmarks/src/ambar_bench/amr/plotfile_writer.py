"""Writes native AMReX plotfiles of float64 fields, in the form that AMReX writes, without ambar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Corner = tuple[int, ...]
Box = tuple[Corner, Corner]
"""The first and the last cell, x first."""
REFINEMENT_RATIO = 2
_FLOAT64 = "((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))"


def write_plotfile(
    folder: Path,
    fields: Sequence[str],
    shape: Corner,
    boxes: Sequence[Sequence[Box]],
    values: Callable[[int, Box], np.ndarray],
) -> Path:
    """Write a plotfile of the unit cube and return its folder.

    Parameters
    ----------
    folder
        The folder to make.
    fields
        The names of the fields.
    shape
        Number of cells of the coarsest level in each dimension, x first.
    boxes
        The boxes of each level, the coarsest first.
    values
        Returns the values of a box of a level: an array (fields, x, y, z).
    """
    folder.mkdir(parents=True)
    (folder / "Header").write_text(_header(fields, shape, boxes))
    for level, level_boxes in enumerate(boxes):
        parts = [values(level, box) for box in level_boxes]
        _write_level(folder / f"Level_{level}", level_boxes, parts)
    return folder


def _header(fields: Sequence[str], shape: Corner, boxes: Sequence[Sequence[Box]]) -> str:
    ndim = len(shape)
    ratios = [REFINEMENT_RATIO**level for level in range(len(boxes))]
    sizes = [[1 / (cells * ratio) for cells in shape] for ratio in ratios]
    domains = [((0,) * ndim, tuple(cells * ratio - 1 for cells in shape)) for ratio in ratios]
    lines = ["HyperCLaw-V1.1", str(len(fields)), *fields, str(ndim), "0", str(len(boxes) - 1)]
    # AMReX ends the rows before the boxes with a space.
    lines += [f"{_row([end] * ndim)} " for end in (0.0, 1.0)]
    lines += [f"{REFINEMENT_RATIO} " * (len(boxes) - 1)]
    lines += ["".join(f"{_box(domain)} " for domain in domains), "0 " * len(boxes)]
    lines += [*(f"{_row(sides)} " for sides in sizes), "0", "0"]
    for level, level_boxes in enumerate(boxes):
        lines += [f"{level} {len(level_boxes)} 0", "0"]
        for lo, hi in level_boxes:
            ends = zip(lo, hi, sizes[level], strict=True)
            lines += [_row([first * size, (last + 1) * size]) for first, last, size in ends]
        lines.append(f"Level_{level}/Cell")
    return "\n".join(lines) + "\n"


def _write_level(folder: Path, boxes: Sequence[Box], parts: Sequence[np.ndarray]) -> None:
    """Write the values of a level into one file, and the header that lists their offsets."""
    folder.mkdir()
    offsets = []
    with (folder / "Cell_D_00000").open("wb") as file:
        for box, part in zip(boxes, parts, strict=True):
            offsets.append(f"FabOnDisk: Cell_D_00000 {file.tell()}")
            file.write(f"FAB {_FLOAT64}{_box(box)} {len(part)}\n".encode())
            for field in part:
                file.write(field.astype("<f8").tobytes(order="F"))
    count = len(parts[0])
    lines = ["1", "1", str(count), "0", f"({len(boxes)} 0", *map(_box, boxes), ")"]
    lines += [str(len(boxes)), *offsets, ""]
    axes = tuple(range(1, parts[0].ndim))
    for extrema in ([part.min(axes) for part in parts], [part.max(axes) for part in parts]):
        rows = ("".join(f"{value:.17e}," for value in row) for row in extrema)
        lines += [f"{len(boxes)},{count}", *rows, ""]
    (folder / "Cell_H").write_text("\n".join(lines) + "\n")


def _box(box: Box) -> str:
    parts = (*box, (0,) * len(box[0]))
    return "(" + " ".join(f"({','.join(map(str, part))})" for part in parts) + ")"


def _row(values: Sequence[float]) -> str:
    return " ".join(f"{value:.17g}" for value in values)

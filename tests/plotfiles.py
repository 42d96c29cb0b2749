"""A small AMReX plotfile, written without ambar: two levels, a domain that begins below 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FIELDS = ["density", "Temp"]
LOWER, UPPER = (-1.0, 0.0, 2.0), (1.0, 1.0, 3.0)
SHAPE = (16, 8, 8)
RATIO = 2
# First and last cells.
BOXES = [
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
    folder.mkdir()
    for level, values in enumerate(levels):
        _write_level(folder, level, values)
    (folder / "Header").write_text(_header())
    (folder / "job_info").write_text("a run of the tests\n")
    return levels


def covered() -> np.ndarray:
    """Return which coarse cells the fine level covers."""
    inside = np.zeros(SHAPE, bool)
    for lo, hi in BOXES[1]:
        inside[tuple(slice(a // 2, (b + 1) // 2) for a, b in zip(lo, hi, strict=True))] = True
    return inside


def _slices(box: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[slice, ...]:
    return tuple(slice(a, b + 1) for a, b in zip(*box, strict=True))


def _text(box: tuple[tuple[int, ...], tuple[int, ...]]) -> str:
    lo, hi = (",".join(map(str, corner)) for corner in box)
    return f"(({lo}) ({hi}) (0,0,0))"


def _number(value: float) -> str:
    return f"{value:.17g}"


def _sizes(level: int) -> list[float]:
    sides = zip(LOWER, UPPER, SHAPE, strict=True)
    return [(b - a) / (n * RATIO**level) for a, b, n in sides]


def _header() -> str:
    lines = ["HyperCLaw-V1.1", str(len(FIELDS)), *FIELDS, "3", _number(0.25), "1"]
    lines += [" ".join(map(_number, corner)) + " " for corner in (LOWER, UPPER)]
    domains = [((0, 0, 0), tuple(n * RATIO**level - 1 for n in SHAPE)) for level in (0, 1)]
    lines += [f"{RATIO} ", " ".join(map(_text, domains)) + " ", "5 10 "]
    lines += [" ".join(map(_number, _sizes(level))) + " " for level in (0, 1)]
    lines += ["0", "0"]
    for level, boxes in enumerate(BOXES):
        lines += [f"{level} {len(boxes)} {_number(0.25)}", str(5 * RATIO**level)]
        for lo, hi in boxes:
            for start, a, b, size in zip(LOWER, lo, hi, _sizes(level), strict=True):
                lines.append(f"{_number(start + size * a)} {_number(start + size * (b + 1))}")
        lines.append(f"Level_{level}/Cell")
    return "\n".join(lines) + "\n"


def _write_level(folder: Path, level: int, values: np.ndarray) -> None:
    place = folder / f"Level_{level}"
    place.mkdir()
    offsets, extrema, content = [], ([], []), b""
    for box in BOXES[level]:
        part = values[(slice(None), *_slices(box))]
        offsets.append(len(content))
        numbers = "((8, (64 11 52 0 1 12 0 1023)),(8, (8 7 6 5 4 3 2 1)))"
        content += f"FAB {numbers}{_text(box)} {len(FIELDS)}\n".encode()
        content += b"".join(field.tobytes(order="F") for field in part)
        for rows, values_of in zip(extrema, (part.min, part.max), strict=True):
            rows.append(",".join(f"{x:.17e}" for x in values_of(axis=(1, 2, 3))) + ",")
    (place / "Cell_D_00000").write_bytes(content)
    count = len(BOXES[level])
    lines = ["1", "1", str(len(FIELDS)), "0", f"({count} 0", *map(_text, BOXES[level]), ")"]
    lines += [str(count), *(f"FabOnDisk: Cell_D_00000 {offset}" for offset in offsets), ""]
    for rows in extrema:
        lines += [f"{count},{len(FIELDS)}", *rows, ""]
    (place / "Cell_H").write_text("\n".join(lines))

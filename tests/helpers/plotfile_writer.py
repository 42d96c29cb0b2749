"""Native AMReX plotfiles, written as AMReX does, without ambar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Corner = tuple[int, ...]
# First and last cell, x first.
Box = tuple[Corner, Corner]
RATIO = 2
TIME = 0.25


@dataclass
class Plotfile:
    """What is to be written: boxes by level, and how their values are found."""

    names: list[str]
    shape: Corner
    """Cells of the coarsest level, whose first one is 0."""
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    boxes: Sequence[Sequence[Box]]
    values: Callable[[int, Box], np.ndarray]
    """Values of a level's box: (field, x, y, ...)."""
    dtype: str = "<f8"
    files: bool = False
    """Whether each box has a file of its own."""
    time: float | None = None
    """TIME by default."""
    step: int = 5
    """The step of the coarsest level."""

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def sizes(self, level: int) -> list[float]:
        """Return the sides of a level's cells."""
        sides = zip(self.lower, self.upper, self.shape, strict=True)
        return [(b - a) / (n * RATIO**level) for a, b, n in sides]

    def write(self, folder: Path) -> Path:
        """Write everything and return the folder."""
        folder.mkdir(parents=True)
        (folder / "Header").write_text(self._header())
        for level in range(len(self.boxes)):
            self._write_level(folder / f"Level_{level}", level)
        return folder

    def _header(self) -> str:
        levels = range(len(self.boxes))
        lines = ["HyperCLaw-V1.1", str(len(self.names)), *self.names, str(self.ndim)]
        time = _number(TIME if self.time is None else self.time)
        lines += [time, str(len(self.boxes) - 1)]
        lines += [" ".join(map(_number, corner)) + " " for corner in (self.lower, self.upper)]
        domains = [
            ((0,) * self.ndim, tuple(n * RATIO**level - 1 for n in self.shape)) for level in levels
        ]
        lines.append("".join(f"{RATIO} " for _ in levels[1:]))
        lines.append("".join(f"{_text(domain)} " for domain in domains))
        lines.append("".join(f"{self.step * RATIO**level} " for level in levels))
        lines += [" ".join(map(_number, self.sizes(level))) + " " for level in levels]
        lines += ["0", "0"]
        for level, boxes in enumerate(self.boxes):
            lines += [f"{level} {len(boxes)} {time}", str(self.step * RATIO**level)]
            for lo, hi in boxes:
                places = zip(self.lower, lo, hi, self.sizes(level), strict=True)
                for start, a, b, size in places:
                    lines.append(f"{_number(start + size * a)} {_number(start + size * (b + 1))}")
            lines.append(f"Level_{level}/Cell")
        return "\n".join(lines) + "\n"

    def _write_level(self, folder: Path, level: int) -> None:
        folder.mkdir()
        boxes, fields = self.boxes[level], len(self.names)
        on_disk: list[str] = []
        extrema: tuple[list[str], list[str]] = ([], [])
        contents: dict[str, bytes] = {}
        for number, box in enumerate(boxes):
            part = self.values(level, box).astype(self.dtype)
            name = f"Cell_D_{number if self.files else 0:05d}"
            before = contents.setdefault(name, b"")
            on_disk.append(f"FabOnDisk: {name} {len(before)}")
            head = f"FAB {_precision(part.dtype)}{_text(box)} {fields}\n"
            contents[name] += head.encode() + b"".join(f.tobytes(order="F") for f in part)
            axes = tuple(range(1, part.ndim))
            for rows, values_of in zip(extrema, (part.min, part.max), strict=True):
                rows.append(",".join(f"{x:.17e}" for x in values_of(axis=axes)) + ",")
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        lines = ["1", "1", str(fields), "0", f"({len(boxes)} 0", *map(_text, boxes), ")"]
        lines += [str(len(boxes)), *on_disk, ""]
        for rows in extrema:
            lines += [f"{len(boxes)},{fields}", *rows, ""]
        (folder / "Cell_H").write_text("\n".join(lines))


def _precision(dtype: np.dtype) -> str:
    size = dtype.itemsize
    real = {4: "32 8 23 0 1 9 0 127", 8: "64 11 52 0 1 12 0 1023"}[size]
    order = range(1, size + 1) if dtype.str[0] == ">" else range(size, 0, -1)
    return f"((8, ({real})),({size}, ({' '.join(map(str, order))})))"


def _text(box: Box) -> str:
    parts = (*box, (0,) * len(box[0]))
    return "(" + " ".join(f"({','.join(map(str, part))})" for part in parts) + ")"


def _number(value: float) -> str:
    return f"{value:.17g}"

"""Small native AMReX plotfiles: fields on two levels, written as AMReX does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

Corner = tuple[int, ...]
Field = Callable[..., np.ndarray]


def smooth(*places: np.ndarray) -> np.ndarray:
    """Return a smooth field of cell centres x, y, ... in the unit box."""
    total = sum(np.sin(5 * place + number) for number, place in enumerate(places))
    return np.asarray(total) * 10 + 3


def steep(*places: np.ndarray) -> np.ndarray:
    """Return a field over many decades."""
    return np.exp(6 * smooth(*places) / 10)


FIELDS: dict[str, Field] = {"density": steep, "Temp": smooth}
# First and last cell, x first.
BOXES_3D = [
    [((0, 0, 0), (15, 15, 15)), ((16, 0, 0), (31, 15, 15))],
    [((8, 8, 8), (23, 23, 23)), ((24, 8, 8), (39, 15, 23))],
]


def write_plotfile(
    folder: Path,
    boxes: list[list[tuple[Corner, Corner]]] | None = None,
    fields: dict[str, Field] | None = None,
    dtype: str = "<f8",
    domain: Corner = (32, 16, 16),
) -> Path:
    """Write a plotfile of ratio 2 and return its folder; each box has a file of its own."""
    boxes, fields = boxes or BOXES_3D, fields or FIELDS
    ndim = len(domain)
    folder.mkdir(parents=True)
    domains = [[n << level for n in domain] for level in range(len(boxes))]
    lines = ["HyperCLaw-V1.1", str(len(fields)), *fields, str(ndim), "0.5", str(len(boxes) - 1)]
    lines += [" ".join(["0"] * ndim), " ".join(["1"] * ndim)]
    lines.append(" ".join(["2"] * (len(boxes) - 1)))
    lines.append(" ".join(_box((0,) * ndim, tuple(n - 1 for n in cells)) for cells in domains))
    lines.append(" ".join(["3"] * len(boxes)))
    lines += [" ".join(str(1 / n) for n in cells) for cells in domains]
    lines += ["0", "0"]
    for number, (level, cells) in enumerate(zip(boxes, domains, strict=True)):
        lines += [f"{number} {len(level)} 0.5", "3"]
        for lo, hi in level:
            lines += [f"{a / n} {(b + 1) / n}" for a, b, n in zip(lo, hi, cells, strict=True)]
        lines.append(f"Level_{number}/Cell")
        _write_level(folder / f"Level_{number}", level, cells, fields, np.dtype(dtype))
    (folder / "Header").write_text("\n".join(lines) + "\n")
    return folder


def _write_level(folder, boxes, cells, fields, dtype: np.dtype) -> None:
    folder.mkdir()
    text = ["1", "1", str(len(fields)), "0", f"({len(boxes)} 0"]
    text += [_box(lo, hi) for lo, hi in boxes] + [")", str(len(boxes))]
    lowest, highest = [], []
    for number, (lo, hi) in enumerate(boxes):
        axes = [(np.arange(a, b + 1) + 0.5) / n for a, b, n in zip(lo, hi, cells, strict=True)]
        # z slowest, and so the places in reverse.
        places = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
        values = np.array([field(*places) for field in fields.values()]).astype(dtype)
        bits, size = 8 * dtype.itemsize, dtype.itemsize
        real = {4: "8 23 0 1 9 0 127", 8: "11 52 0 1 12 0 1023"}[size]
        order = range(1, size + 1) if dtype.str[0] == ">" else range(size, 0, -1)
        bytes_of = f"({size}, ({' '.join(map(str, order))}))"
        head = f"FAB ((8, ({bits} {real})),{bytes_of}){_box(lo, hi)} {len(fields)}\n"
        (folder / f"Cell_D_{number:05d}").write_bytes(head.encode() + values.tobytes())
        text.append(f"FabOnDisk: Cell_D_{number:05d} 0")
        flat = values.reshape(len(fields), -1)
        lowest.append(",".join(map(str, flat.min(axis=1))) + ",")
        highest.append(",".join(map(str, flat.max(axis=1))) + ",")
    for table in (lowest, highest):
        text += ["", f"{len(boxes)},{len(fields)}", *table]
    (folder / "Cell_H").write_text("\n".join(text) + "\n")


def _box(lo: Corner, hi: Corner) -> str:
    parts = (lo, hi, (0,) * len(lo))
    return "(" + " ".join(f"({','.join(map(str, part))})" for part in parts) + ")"

"""Detection of truncated files for which VTK's readers crash, or return a part of the mesh."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from ambar import _core

_STL_HEADER, _STL_TRIANGLE = 84, 50
_STL_UNCOUNTED = (1 << 32) - 1
"""The number of triangles in files of writers that do not know it before the end."""
# The sizes of the types in PLY headers, by their older and newer names.
_PLY_SIZES = {
    **dict.fromkeys(("char", "uchar", "int8", "uint8"), 1),
    **dict.fromkeys(("short", "ushort", "int16", "uint16"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("double", "float64"), 8),
}
_Order: TypeAlias = Literal["little", "big"]
_PLY_ORDERS: dict[str, _Order | None] = {
    "ascii": None,
    "binary_little_endian": "little",
    "binary_big_endian": "big",
}
_LONGEST_HEADER = 1 << 20


def check_length(path: Path) -> None:
    """Raise CorruptError if a file is shorter than it declares.

    PLY, binary STL, text AVS UCD, and binary NRRD and PNM files are checked.

    Files of other formats are not read.
    """
    check = _CHECKS.get(path.suffix.lower())
    if check is not None:
        check(path)


def _check_stl(path: Path) -> None:
    """Check a binary file: 80 bytes, the number of triangles, and 50 bytes for each."""
    with path.open("rb") as file:
        header = file.read(_STL_HEADER)
        size = file.seek(0, 2)
    if len(header) < _STL_HEADER or header.startswith(b"solid"):
        return
    count = int.from_bytes(header[80:], "little")
    needed = _STL_HEADER + count * _STL_TRIANGLE
    if size < needed and count != _STL_UNCOUNTED:
        raise _truncated(path, f"{needed:,} bytes for {count:,} triangles", f"{size:,}")


def _check_avs(path: Path) -> None:
    """Check that the file has a line for each node and cell, and for the data of each.

    The first line has the numbers of nodes and cells, and of values of each. Data begin with a line
    with the number of arrays, and a line for each of them.
    """
    with path.open("rb") as file:
        lines = [line for line in file if line.strip() and not line.startswith(b"#")]
    try:
        nodes, cells, *values = (int(word) for word in lines[0].split()[:4])
        needed = 1 + nodes + cells
        for rows, columns in zip((nodes, cells), values, strict=False):
            if columns > 0 and needed < len(lines):
                needed += 1 + int(lines[needed].split()[0])
            needed += rows if columns > 0 else 0
    except (IndexError, ValueError):  # Abaqus, or binary
        return
    if len(lines) < needed:
        raise _truncated(path, f"{needed:,} lines", f"{len(lines):,}")


@dataclass
class _PlyElement:
    """A table of a PLY file."""

    name: str
    rows: int
    properties: list[tuple[int, int]] = field(default_factory=list)
    """The bytes of the count of a list, 0 for a number, and the bytes of a value."""


def _check_ply(path: Path) -> None:
    """Check that the rows of all elements follow the header; in text files, a line for each."""
    with path.open("rb") as file:
        try:
            order, elements, start = _ply_header(file.read(_LONGEST_HEADER))
        except (IndexError, KeyError, StopIteration, ValueError) as error:
            raise _core.CorruptError(f"{path}: invalid header of a PLY file ({error})") from error
        file.seek(start)
        lines = [] if order else [line.split() for line in file if not line.isspace()]
    data = np.memmap(path, np.uint8, "r")
    at = start if order else 0
    for element in elements:
        if order:
            at = _end_of_rows(data, element, at, order)
            is_truncated = at > len(data)
        else:
            at += element.rows
            last = lines[at - 1] if 0 < at <= len(lines) else []
            is_truncated = element.rows > 0 and not _is_row(last, element)
        if is_truncated:
            raise _truncated(path, f"{element.rows:,} rows of {element.name!r}", "fewer")


def _ply_header(data: bytes) -> tuple[_Order | None, list[_PlyElement], int]:
    """Return the byte order, None for text, the elements, and where the rows begin."""
    end = data.find(b"end_header")
    start = data.find(b"\n", end) + 1
    if data[:3] != b"ply" or end < 0 or start == 0:
        raise ValueError("expected 'ply' at the beginning, and 'end_header'")
    lines = [line.split() for line in data[:end].decode("latin-1").splitlines()]
    order = _PLY_ORDERS[next(words[1] for words in lines if words[:1] == ["format"])]
    elements: list[_PlyElement] = []
    for words in lines:
        if words[:1] == ["element"]:
            elements.append(_PlyElement(words[1], int(words[2])))
        elif words[:2] == ["property", "list"]:
            if words[2].startswith(("float", "double")):
                raise ValueError(f"a list of {words[2]} values")
            elements[-1].properties.append((_PLY_SIZES[words[2]], _PLY_SIZES[words[3]]))
        elif words[:1] == ["property"]:
            elements[-1].properties.append((0, _PLY_SIZES[words[1]]))
    for element in elements:
        if element.rows < 0 or not element.properties:
            raise ValueError(f"{element.rows} rows of {element.name!r} without properties")
    return order, elements, start


def _end_of_rows(data: np.ndarray, element: _PlyElement, at: int, order: _Order) -> int:
    """Return where the rows of a binary element that begin at `at` end.

    Returns a place after the end of the file if it is truncated.
    """
    stop, counts = _end_of_row(data.data, element, at, order)
    # Rows of equal length, such as triangles, are compared in one step.
    end = at + element.rows * (stop - at)
    if element.rows and end <= len(data):
        found = data[at:end].reshape(element.rows, -1)[:, counts]
        if (found == found[0]).all():
            return end
    for _ in range(element.rows):
        if at > len(data):
            break
        at, _ = _end_of_row(data.data, element, at, order)
    return at


def _end_of_row(
    data: memoryview, element: _PlyElement, start: int, order: _Order
) -> tuple[int, list[int]]:
    """Return where a row ends, and which of its bytes are the counts of lists."""
    at = start
    counts: list[int] = []
    for count_size, size in element.properties:
        length = 1
        if count_size:
            counts += range(at - start, at - start + count_size)
            length = int.from_bytes(data[at : at + count_size], order)
        at += count_size + length * size
    return at, counts


def _is_row(words: list[bytes], element: _PlyElement) -> bool:
    """Whether a line of a text file has the values of a row."""
    needed = 0
    for count, _ in element.properties:
        try:
            needed += 1 + int(words[needed]) if count else 1
        except (IndexError, ValueError):
            return False
    return needed <= len(words)


def _truncated(path: Path, expected: str, found: str) -> _core.CorruptError:
    return _core.CorruptError(
        f"{path}: expected {expected}, found {found}; restore the file from a copy"
    )


_NRRD_SIZES = {
    **dict.fromkeys(("char", "int8"), 1),
    **dict.fromkeys(("short", "short int", "int16"), 2),
    **dict.fromkeys(("int", "int32", "float"), 4),
    **dict.fromkeys(("longlong", "long long", "long long int", "int64", "double"), 8),
}
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def _check_nrrd(path: Path) -> None:
    """Check raw data after the header: the sizes multiply to the number of values."""
    with path.open("rb") as file:
        begin = file.read(_LONGEST_HEADER)
        size = file.seek(0, 2)
    end = _BLANK_LINE.search(begin)
    header = begin[: end.start()].decode("latin-1") if end else ""
    lines = (line.partition(":") for line in header.splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    if end is None or fields.get("encoding") != "raw" or {"data file", "datafile"} & fields.keys():
        return
    kind = fields.get("type", "").replace("unsigned ", "").replace("signed ", "")
    needed = _NRRD_SIZES.get(kind.removesuffix("_t").removeprefix("u"), 0)
    needed *= math.prod(int(word) for word in fields.get("sizes", "").split() if word.isdecimal())
    if size - end.end() < needed:
        raise _truncated(path, f"{needed:,} bytes of data", f"{size - end.end():,}")


# The header of binary PNM: P5 (grey) or P6 (colours), width, height, and the largest value.
_PNM = re.compile(rb"P([56])\s+(?:#.*\n\s*)*(\d+)\s+(\d+)\s+(\d+)\s")


def _check_pnm(path: Path) -> None:
    """Check a binary file: a byte, or two, for each value."""
    with path.open("rb") as file:
        found = _PNM.match(file.read(_LONGEST_HEADER))
        size = file.seek(0, 2)
    if found is None:
        return
    kind, width, height, largest = map(int, found.groups())
    needed = width * height * (3 if kind == 6 else 1) * (2 if largest > 255 else 1)
    if size - found.end() < needed:
        raise _truncated(path, f"{needed:,} bytes of pixels", f"{size - found.end():,}")


_CHECKS: dict[str, Callable[[Path], None]] = {
    ".inp": _check_avs,
    ".nhdr": _check_nrrd,
    ".nrrd": _check_nrrd,
    ".ply": _check_ply,
    ".pnm": _check_pnm,
    ".stl": _check_stl,
}

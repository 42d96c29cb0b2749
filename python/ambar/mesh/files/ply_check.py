"""Whether a PLY file is as long as its header says: where it is not, VTK's reader crashes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from ambar import _core

# The names of types in headers, the older ones first.
_TYPES = {
    "char": "i1",
    "uchar": "u1",
    "short": "i2",
    "ushort": "u2",
    "int": "i4",
    "uint": "u4",
    "float": "f4",
    "double": "f8",
    "int8": "i1",
    "uint8": "u1",
    "int16": "i2",
    "uint16": "u2",
    "int32": "i4",
    "uint32": "u4",
    "float32": "f4",
    "float64": "f8",
}
_LONGEST_HEADER = 1 << 20
_TOGETHER = 1 << 16
"""Rows that are looked at together, at most, as long as they are alike."""
_FEW, _ALONE = 64, 4096
"""Where fewer rows are alike, so many are passed one by one."""


@dataclass
class _Element:
    """A table of a PLY file."""

    name: str
    rows: int
    properties: list[tuple[np.dtype[Any] | None, np.dtype[Any]]] = field(default_factory=list)
    """Of each the dtype of a list's count, None if it is no list, and that of its values."""


def check_ply(path: Path) -> None:
    """Raise CorruptError if a PLY file is cut short, or has no header of one.

    The format is Greg Turk's: a header of lines, then the rows of all elements end to end, in text
    one a line.
    """
    with path.open("rb") as file:
        begin = file.read(_LONGEST_HEADER)
        try:
            order, elements, start = _header(begin)
        except (IndexError, KeyError, StopIteration, ValueError) as error:
            raise _damaged(path, f"its header is not that of a PLY file ({error})") from error
        if order:
            _check_binary(path, np.memmap(path, np.uint8, "r"), elements, start)
        else:
            file.seek(start)
            _check_text(path, file, elements)


def _header(data: bytes) -> tuple[str, list[_Element], int]:
    """Return the byte order, "" of text, the elements, and where the rows begin."""
    end = data.find(b"end_header")
    if data[:3] != b"ply" or end < 0:
        raise ValueError("it begins not with 'ply', or lacks end_header")
    start = data.find(b"\n", end)
    lines = [line.split() for line in data[:end].decode("latin-1").splitlines()]
    form = next(words[1] for words in lines if words[:1] == ["format"])
    order = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}[form]
    elements: list[_Element] = []
    for words in lines:
        if words[:1] == ["element"]:
            elements.append(_Element(words[1], int(words[2])))
        elif words[:1] == ["property"]:
            is_list = words[1] == "list"
            count = np.dtype(order + _TYPES[words[2]].replace("i", "u")) if is_list else None
            if count is not None and count.kind != "u":
                raise ValueError(f"a list of {words[2]} values")
            value = np.dtype(order + _TYPES[words[3 if is_list else 1]])
            elements[-1].properties.append((count, value))
    if start < 0 or any(element.rows < 0 for element in elements):
        raise ValueError("it has no rows, or fewer than none")
    return order, elements, start + 1


def _check_binary(path: Path, data: np.ndarray, elements: list[_Element], start: int) -> None:
    at = start
    for element in elements:
        if all(count is None for count, _ in element.properties):
            at += element.rows * sum(value.itemsize for _, value in element.properties)
        else:
            at = _end_of_lists(data, element, at)
        if at > len(data):
            raise _damaged(
                path,
                f"its {element.rows:,} rows of {element.name!r} end at byte {at:,} or behind it, "
                f"the file at {len(data):,}",
            )


def _end_of_lists(data: np.ndarray, element: _Element, at: int) -> int:
    """Return where the rows of an element with lists end, or a place behind the end of the file."""
    plain = data.data
    done = 0
    while done < element.rows and at <= len(data):
        # As far as rows are alike, such as those of triangles, they are passed together.
        size = _after(plain, element, at, 1) - at
        ahead = min(element.rows - done, (len(data) - at) // size, _TOGETHER)
        alike = _alike(data[at : at + ahead * size].reshape(ahead, size), element) if ahead else 0
        done += alike
        at += alike * size
        if alike < _FEW:
            some = min(element.rows - done, _ALONE)
            at = _after(plain, element, at, some)
            done += some
    return at


def _after(data: memoryview, element: _Element, at: int, rows: int) -> int:
    """Return where the rows from `at` on end, or a place behind the end of the file."""
    counts = [count for count, _ in element.properties if count is not None]
    big = any(count.str.startswith(">") for count in counts)
    order: Literal["big", "little"] = "big" if big else "little"
    sizes = [
        (count.itemsize if count else 0, value.itemsize) for count, value in element.properties
    ]
    whole = len(data)
    for _ in range(rows):
        for size, value in sizes:
            if not size:
                at += value
            elif at + size > whole:
                return whole + 1
            else:
                at += size + int.from_bytes(data[at : at + size], order) * value
    return at


def _alike(rows: np.ndarray, element: _Element) -> int:
    """Return how many rows, from the first on, have lists as long as those of the first."""
    alike = len(rows)
    at = 0
    for count, value in element.properties:
        length = 1
        if count is not None:
            counts = rows[:alike, at : at + count.itemsize]
            other = np.flatnonzero((counts != counts[0]).any(axis=1))
            alike = int(other[0]) if len(other) else alike
            length = int(np.frombuffer(counts[0].tobytes(), count)[0])
            at += count.itemsize
        at += length * value.itemsize
    return alike


def _check_text(path: Path, file: BinaryIO, elements: list[_Element]) -> None:
    """Raise CorruptError if there are fewer lines than rows, or too few words in the last one."""
    for element in elements:
        line = b""
        for row in range(element.rows):
            line = file.readline()
            while line.isspace():
                line = file.readline()
            if not line:
                raise _damaged(
                    path, f"it says {element.rows:,} rows of {element.name!r}, and has {row:,}"
                )
        if element.rows:
            _check_words(path, line.split(), element)


def _check_words(path: Path, words: list[bytes], element: _Element) -> None:
    needed = 0
    for count, _ in element.properties:
        try:
            needed += 1 if count is None else 1 + int(words[needed])
        except (IndexError, ValueError):
            needed = len(words) + 1
    if needed > len(words):
        raise _damaged(path, f"the last row of {element.name!r} has {len(words)} words")


def _damaged(path: Path, why: str) -> _core.CorruptError:
    return _core.CorruptError(f"{path}: {why}: is it complete? Restore it from a copy")

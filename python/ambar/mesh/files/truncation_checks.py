"""Whether files are as long as they say, where VTK's readers do not ask: they go on with less."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from ambar import _core
from ambar.mesh.files.ply_check import check_ply

_STL_HEADER, _STL_TRIANGLE = 84, 50
_STL_UNCOUNTED = (1 << 32) - 1
"""What writers say that do not know the number before the end."""
_AVS_CORNERS = {
    b"pt": 1,
    b"line": 2,
    b"tri": 3,
    b"quad": 4,
    b"tet": 4,
    b"pyr": 5,
    b"prism": 6,
    b"hex": 8,
}


def check_length(path: Path) -> None:
    """Raise CorruptError if a file is cut short, of the formats that are known here.

    These are PLY, binary STL, and AVS' UCD in text; of all others nothing is read.
    """
    check = {".ply": check_ply, ".stl": _check_stl, ".inp": _check_avs}.get(path.suffix.lower())
    if check is not None:
        check(path)


def _check_stl(path: Path) -> None:
    """Check a binary file: 80 bytes, the number of triangles, and 50 bytes for each."""
    with path.open("rb") as file:
        begin = file.read(_STL_HEADER)
        size = file.seek(0, 2)
    if len(begin) < _STL_HEADER or begin.startswith(b"solid"):
        return
    count = int.from_bytes(begin[80:], "little")
    needed = _STL_HEADER + count * _STL_TRIANGLE
    if size < needed and count != _STL_UNCOUNTED:
        raise _short(path, f"{count:,} triangles, which take {needed:,} bytes, and has {size:,}")


def _check_avs(path: Path) -> None:
    """Check that there is a line for each node and cell, and for the data of each.

    The first line tells the numbers of nodes, of cells, of values of each, and of the model. Data
    begin with a line of the number of components, and a line that names each.
    """
    with path.open("rb") as file:
        lines = (line for line in file if line.strip() and not line.startswith(b"#"))
        try:
            nodes, cells, *values = (int(word) for word in next(lines, b"").split()[:4])
        except ValueError:  # Abaqus', or binary
            return
        _last(path, lines, nodes, "nodes", 4)
        cell = _last(path, lines, cells, "cells", 3)
        if cell is not None and len(cell) < 3 + _AVS_CORNERS.get(cell[2], 0):
            raise _short(path, f"{cells:,} cells, of which the last lacks corners")
        for rows, columns, what in zip((nodes, cells), values, ("nodes", "cells"), strict=False):
            if columns > 0:
                sizes = _last(path, lines, 1, f"lines of sizes of data of {what}", 1) or [b"0"]
                names = int(sizes[0]) if sizes[0].isdigit() else 0
                _last(path, lines, names, f"names of data of {what}", 1)
                _last(path, lines, rows, f"lines of data of {what}", 1 + columns)


def _last(
    path: Path, lines: Iterator[bytes], rows: int, what: str, words: int
) -> list[bytes] | None:
    """Take lines, and return the words of the last one; raises CorruptError if there are fewer."""
    found = 0
    line = b""
    for line in itertools.islice(lines, max(rows, 0)):  # noqa: B007 - the last one is wanted
        found += 1
    split = line.split()
    if found < rows or (found and len(split) < words):
        raise _short(path, f"{rows:,} {what}, and has {found:,} whole or cut ones")
    return split if found else None


def _short(path: Path, what: str) -> _core.CorruptError:
    return _core.CorruptError(f"{path}: it says {what}: is it complete? Restore it from a copy")

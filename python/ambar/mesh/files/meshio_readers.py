"""Files of meshes that meshio reads: without its prints, and not for ever where they end early."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.optional import require

_SUFFIXES = ".avs .bdf .fem .med .mesh .msh .nas .off .su2 .ugrid"
SUFFIXES = frozenset(_SUFFIXES.split())
"""Of files that PyVista leaves to meshio, whose ends are checked."""
_BY_PATH = frozenset(["med", "ugrid"])
"""Formats of which the name tells more, or HDF5 opens them."""
_PATIENCE = 1000
"""How many times in a row a file may be read at its end."""

# (3010 (zone first last type dimensions)( and binary values, as meshio writes them.
_BINARY = re.compile(rb"\(\s*(20|30)(10|12|13)\s*\(([0-9a-fA-F\s]*)\)\s*\(([ \t\r]*\n)?")
_BINARY_END = re.compile(rb"\s*\)\s*End of Binary Section")
_ENDS = len("\n)End of Binary Section")
_ANSYS_CORNERS = {
    b"12": {1: 3, 2: 4, 3: 4, 4: 8, 5: 5, 6: 6},
    b"13": {2: 2, 3: 3, 4: 4},
}
_SU2_COUNTS = re.compile(rb"^[ \t]*(NPOIN|NELEM|MARKER_ELEMS)[ \t]*=[ \t]*(\d+)", re.MULTILINE)


@cache
def readable_suffixes() -> frozenset[str]:
    """Return the suffixes of the formats that the installed meshio reads; none without it."""
    if find_spec("meshio") is None:
        return frozenset()
    formats: dict[str, list[str]] = import_module("meshio").extension_to_filetypes
    readers = _readers()
    return frozenset(
        suffix for suffix, names in formats.items() if any(name in readers for name in names)
    )


def _readers() -> dict[str, Any]:
    """Return meshio's functions that read a path, by their formats."""
    readers: dict[str, Any] = import_module("meshio._helpers").reader_map
    return readers


def read_by_meshio(path: Path, pyvista: Any) -> Any:
    """Return the mesh in a file, a PyVista UnstructuredGrid.

    meshio tells by printing, and where it finds nothing it ends the process; its functions for
    single formats raise errors instead.

    Raises
    ------
    ModuleNotFoundError
        If meshio is not installed.
    UnsupportedError
        If meshio cannot read the file's content.
    CorruptError, OSError, ValueError and others
        If it is damaged, or of another format.
    """
    meshio = require("meshio", purpose=f"{path}: reading {path.suffix} files", install="meshio")
    name = _format_of(path, meshio)
    with warnings.catch_warnings(action="ignore"), redirect_stdout(io.StringIO()) as told:
        with redirect_stderr(told):
            try:
                mesh = _read(path, name, meshio)
            except meshio.ReadError as error:
                raise ValueError(str(error) or f"it is no file of {name}") from error
        read = pyvista.from_meshio(mesh)
    if name == "su2":
        _check_su2(path, read)
    return read


def _format_of(path: Path, meshio: Any) -> str:
    """Return what meshio calls the format of a file."""
    if path.suffix.lower() != ".msh":
        return str(meshio.extension_to_filetypes[path.suffix.lower()][0])
    with path.open("rb") as file:
        begin = file.read(512).lstrip()
    if begin[:1] not in (b"$", b"("):
        raise ValueError(
            "it begins neither with $MeshFormat, as files of Gmsh, nor with '(', as those of ANSYS"
        )
    return "gmsh" if begin.startswith(b"$") else "ansys"


def _read(path: Path, name: str, meshio: Any) -> Any:
    if name in _BY_PATH or path.suffix.lower() not in SUFFIXES | {".inp"}:
        return _readers()[name](path)
    reader = getattr(meshio, name)
    check = {"ansys": _check_ansys, "gmsh": _check_gmsh}.get(name)
    if check is not None:
        check(path)
    with _Ending(io.FileIO(path)) as file:
        if check is None:
            return reader.read(io.TextIOWrapper(file))
        return reader.main.read_buffer(file) if name == "gmsh" else reader.read(file)


class _Ending(io.BufferedReader):
    """A file that raises EOFError where it is read on and on behind its end, as meshio does.

    Its loops wait for a bracket, or a line, or for as many as a damaged number says. It is a real
    file, from which NumPy can read.
    """

    _empty = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as files do."""
        return self._told(super().read(size))

    def read1(self, size: int = -1, /) -> bytes:
        """Read as files do."""
        return self._told(super().read1(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read as files do."""
        return self._told(super().readline(size))

    def _told(self, data: bytes) -> bytes:
        self._empty = 0 if data else self._empty + 1
        if self._empty > _PATIENCE:
            raise EOFError("it ends too early: more is read than it has")
        return data


def _check_ansys(path: Path) -> None:
    """Raise an error if a binary section of an ANSYS file does not end where its counts say.

    meshio would take what follows for values: of points in float32, which it calls float64 where
    it writes them itself, and of programs that write no line end before the values.
    """
    data = path.read_bytes()
    at = 0
    while found := _BINARY.search(data, at):
        precision, kind, fields, line_end = found.groups()
        at = found.end() + _ansys_length(precision, kind, fields)
        if at + _ENDS > len(data):
            raise _core.CorruptError(
                f"{path}: section {(precision + kind).decode()} ends behind byte {at:,}, and the "
                f"file at {len(data):,}: it is cut short; restore it from a copy"
            )
        if line_end is None or not _BINARY_END.match(data, at):
            raise _core.UnsupportedError(
                f"{path}: binary section {(precision + kind).decode()} of ANSYS at byte "
                f"{found.start():,} does not end where its counts say: it has values of another "
                "dtype, as meshio writes points that are float32, or is of another program than "
                "meshio; save the mesh in another format, as .vtu, or as text"
            )


def _ansys_length(precision: bytes, kind: bytes, fields: bytes) -> int:
    """Return the bytes of a binary section's values; raises ValueError if it does not tell."""
    numbers = [int(field, 16) for field in fields.split()]
    if len(numbers) < 5 or numbers[2] < numbers[1]:
        raise ValueError(f"a section ({fields.decode()}) of ANSYS that does not tell its length")
    _, first, last, zone, last_field = numbers[:5]
    if kind == b"12" and zone == 0:  # a dead zone, without values
        return 0
    if kind == b"10":
        columns = last_field
    elif last_field in _ANSYS_CORNERS[kind]:
        columns = _ANSYS_CORNERS[kind][last_field] + (2 if kind == b"13" else 0)
    else:
        raise ValueError(f"elements of type {last_field} in a binary section of ANSYS")
    return (last - first + 1) * columns * (4 if precision == b"20" else 8)


def _check_gmsh(path: Path) -> None:
    """Raise ValueError if the last section of a Gmsh file is not closed: all there is is taken."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - 256, 0))
        words = file.read().split() or [b""]
    if not words[-1].startswith(b"$End"):
        raise ValueError("its last section has no $End")


def _check_su2(path: Path, mesh: Any) -> None:
    """Raise CorruptError if there are not as many points and cells as an SU2 file says."""
    points = cells = 0
    for name, count in _SU2_COUNTS.findall(path.read_bytes()):
        if name == b"NPOIN":
            points += int(count)
        else:
            cells += int(count)
    if (mesh.n_points, mesh.n_cells) != (points, cells):
        raise _core.CorruptError(
            f"{path}: it says {points:,} points and {cells:,} elements, but meshio finds "
            f"{mesh.n_points:,} and {mesh.n_cells:,}: is it complete, and of one zone?"
        )

"""Mesh files that meshio reads, without its prints and its endless loops on truncated files."""

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
"""The suffixes of files that PyVista leaves to meshio, and whose truncation is detected."""
_READ_BY_PATH = frozenset(["med", "ugrid"])
"""Formats of HDF5, or whose details are in the name of the file."""
_MOST_EMPTY_READS = 1000
"""The largest number of consecutive reads at the end of a file."""
# The header of a binary section of ANSYS, such as (3010 (zone first last type dimensions)(
_ANSYS_BINARY = re.compile(rb"\(\s*(20|30)(10|12|13)\s*\([0-9a-fA-F\s]*\)\s*\(")
_SU2_COUNTS = re.compile(rb"^[ \t]*(NPOIN|NELEM|MARKER_ELEMS)[ \t]*=[ \t]*(\d+)", re.MULTILINE)


@cache
def readable_suffixes() -> frozenset[str]:
    """Return the suffixes of the formats that the installed meshio reads; none without it."""
    if find_spec("meshio") is None:
        return frozenset()
    formats: dict[str, list[str]] = import_module("meshio").extension_to_filetypes
    return frozenset(suffix for suffix, names in formats.items() if _readers().keys() & {*names})


def _readers() -> dict[str, Any]:
    """Return meshio's functions that read a path, by their formats."""
    readers: dict[str, Any] = import_module("meshio._helpers").reader_map
    return readers


def read_by_meshio(path: Path, pyvista: Any) -> Any:
    """Return the mesh in a file, a PyVista UnstructuredGrid.

    `meshio.read` prints errors and ends the process; its functions for single formats raise them.

    Raises
    ------
    ModuleNotFoundError
        If meshio is not installed.
    UnsupportedError
        If meshio does not read files with such content correctly.
    CorruptError, OSError, ValueError and others
        If the file is damaged, or of another format.
    """
    meshio = require("meshio", purpose=f"{path}: reading {path.suffix} files", install="meshio")
    name = _format_of(path, meshio)
    with warnings.catch_warnings(action="ignore"), redirect_stdout(io.StringIO()) as output:
        with redirect_stderr(output):
            try:
                mesh = _read(path, name, meshio)
            except meshio.ReadError as error:
                raise ValueError(str(error) or f"it is not a file of {name}") from error
        read = pyvista.from_meshio(mesh)
    if name == "su2":
        _check_su2(path, read)
    return read


def _format_of(path: Path, meshio: Any) -> str:
    """Return meshio's name for the format of a file."""
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
    if name in _READ_BY_PATH or path.suffix.lower() not in SUFFIXES | {".inp"}:
        return _readers()[name](path)
    reader = getattr(meshio, name)
    with _EndCheckedFile(io.FileIO(path)) as file:
        if name == "gmsh":
            _check_gmsh(path)
            return reader.main.read_buffer(file)
        if name == "ansys":
            _check_ansys(path)
            return reader.read(file)
        return reader.read(io.TextIOWrapper(file))


class _EndCheckedFile(io.BufferedReader):
    """A file that raises EOFError after many reads at its end.

    Loops in meshio wait for a bracket, a line, or a number of values. The class is that of real
    files, from which NumPy can read.
    """

    _empty_reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as files do."""
        return self._checked(super().read(size))

    def read1(self, size: int = -1, /) -> bytes:
        """Read as files do."""
        return self._checked(super().read1(size))

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read as files do."""
        return self._checked(super().readline(size))

    def _checked(self, data: bytes) -> bytes:
        self._empty_reads = 0 if data else self._empty_reads + 1
        if self._empty_reads > _MOST_EMPTY_READS:
            raise EOFError("the end of the file was reached too early")
        return data


def _check_ansys(path: Path) -> None:
    """Raise UnsupportedError for binary sections.

    meshio reads some of them as values of another dtype, or from the wrong byte on.
    """
    if found := _ANSYS_BINARY.search(path.read_bytes()):
        raise _core.UnsupportedError(
            f"{path}: expected a text file of ANSYS, found a binary section at byte "
            f"{found.start():,}; save the mesh as text, or in another format, such as .vtu"
        )


def _check_gmsh(path: Path) -> None:
    """Raise ValueError if the last section of a Gmsh file is not closed; meshio ignores that."""
    with path.open("rb") as file:
        file.seek(max(file.seek(0, 2) - 256, 0))
        words = file.read().split() or [b""]
    if not words[-1].startswith(b"$End"):
        raise ValueError("its last section has no $End")


def _check_su2(path: Path, mesh: Any) -> None:
    """Raise CorruptError if an SU2 file has not the numbers of points and cells it declares."""
    points = cells = 0
    for name, count in _SU2_COUNTS.findall(path.read_bytes()):
        if name == b"NPOIN":
            points += int(count)
        else:
            cells += int(count)
    if (mesh.n_points, mesh.n_cells) != (points, cells):
        raise _core.CorruptError(
            f"{path}: expected {points:,} points and {cells:,} elements, as the file declares, but "
            f"meshio finds {mesh.n_points:,} and {mesh.n_cells:,}; restore the file from a copy, "
            "or write a file of one zone"
        )

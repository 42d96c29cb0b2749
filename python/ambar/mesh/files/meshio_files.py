"""Files of meshio, without its prints and its endless loops on truncated files; its meshes."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.files.formats import meshio_formats
from ambar.mesh.vtk.meshio_objects import from_meshio, pyvista

GLOBAL_STATE = RLock()
"""Held while standard output, logging, warnings, or `open` of meshio's modules are replaced."""
_MAX_EMPTY_READS = 1000
"""The largest number of consecutive reads at the end of a file."""
# The header of a binary section of ANSYS, such as (3010 (zone first last type dimensions)(
_ANSYS_BINARY = re.compile(rb"\(\s*(20|30)(10|12|13)\s*\([0-9a-fA-F\s]*\)\s*\(")
# meshio's expression for these files takes exponential time if it does not match.
_WKT_NUMBER = r"[+-]?(?>\d+\.?\d*|\.\d+)"
_WKT_POINT = rf"\s*{_WKT_NUMBER}(?:\s+{_WKT_NUMBER}){{2,3}}+\s*"
_WKT_TRIANGLE = rf"\s*\(\s*\({_WKT_POINT}(?:,{_WKT_POINT}){{3}}\)\s*\)\s*,?"
_WKT = re.compile(rf"\s*TIN\s*\((?:{_WKT_TRIANGLE})*+\s*\)")
_SU2_COUNTS = re.compile(rb"^[ \t]*(NPOIN|NELEM|MARKER_ELEMS)[ \t]*=[ \t]*(\d+)", re.MULTILINE)


def read_by_meshio(path: Path, left_out: dict[str, str]) -> Any:
    """Return the mesh in a file, a PyVista UnstructuredGrid; `left_out` is that of `from_meshio`.

    `meshio.read` prints errors and ends the process; its functions for single formats raise them.

    Raises
    ------
    UnsupportedError
        If meshio does not read files with such content correctly.
    CorruptError, OSError, ValueError and others
        If the file is damaged, or of another format.
    """
    name = _format_of(path)
    if name == "wkt" and not _WKT.match(path.read_text()):
        raise ValueError("it is not a TIN of triangles with numbers without exponents")
    meshio = import_module("meshio")
    read = import_module("meshio._helpers").reader_map[name]
    with _silence(), _checked_ends(import_module("meshio._files"), sys.modules[read.__module__]):
        try:
            mesh = from_meshio(read(os.fspath(path)), left_out)
        except meshio.ReadError as error:
            raise ValueError(str(error) or f"it is not a file of {name}") from error
    if name == "su2":
        _check_su2(path, mesh)
    return mesh


def write_by_meshio(mesh: Any, path: Path) -> None:
    """Write a data set of PyVista to a file, as an unstructured grid; raises errors of meshio."""
    names = meshio_formats(path, of_writers=True)
    # The first format of .msh is that of ANSYS, binary files of which meshio reads wrongly.
    name = "gmsh" if "gmsh" in names else names[0]
    with _silence():
        pyvista().save_meshio(path, mesh, file_format=name)
    if name == "exodus":
        _complete_exodus(path)


@contextmanager
def _silence() -> Iterator[None]:
    with (
        GLOBAL_STATE,
        warnings.catch_warnings(action="ignore"),
        redirect_stdout(io.StringIO()) as output,
        redirect_stderr(output),
    ):
        yield


def _format_of(path: Path) -> str:
    """Return meshio's name for the format of a file."""
    names = meshio_formats(path)
    if not names:
        raise ValueError("it contains no points")
    if names[1:] != ["gmsh"]:
        return names[0]
    # meshio tries its reader of ANSYS on every .msh, which accepts any content.
    with path.open("rb") as file:
        begin = file.read(512).lstrip()
    if begin.startswith(b"$"):
        _check_gmsh(path)
        return "gmsh"
    if not begin.startswith(b"("):
        raise ValueError(
            "it begins neither with $MeshFormat, as files of Gmsh, nor with '(', as those of ANSYS"
        )
    _check_ansys(path)
    return "ansys"


def _complete_exodus(path: Path) -> None:
    """Add what the current layout of Exodus files has and those of meshio lack.

    meshio writes an array for each variable, but one for all coordinates. VTK and ParaView read
    other values from such files, without an error.
    """
    import netCDF4

    with netCDF4.Dataset(path, "a") as file:
        file.file_size = np.int32(1)
        for axis, values in zip("xyz", file["coord"][:], strict=False):
            file.createVariable(f"coord{axis}", values.dtype, ("num_nodes",))[:] = values


@contextmanager
def _checked_ends(*modules: Any) -> Iterator[None]:
    """Let modules of meshio open files as `_EndCheckedFile`; the caller holds `GLOBAL_STATE`."""

    def open_checked(path: str | Path, mode: str = "r") -> Any:
        file = _EndCheckedFile(io.FileIO(path))
        return file if "b" in mode else io.TextIOWrapper(file)

    for module in modules:
        module.open = open_checked
    try:
        yield
    finally:
        for module in modules:
            vars(module).pop("open", None)


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
        if self._empty_reads > _MAX_EMPTY_READS:
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

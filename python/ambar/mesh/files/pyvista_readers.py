"""Mesh files of other programs, read by PyVista: one mesh, or one for each time step."""

from __future__ import annotations

import errno
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ambar import _core
from ambar._util.optional import require
from ambar.mesh.files import meshio_readers
from ambar.mesh.files.truncation_checks import check_length

# Formats of VTK: legacy, XML and HDF, parallel pieces, blocks.
_VTK = ".vtk .vtu .vtp .vti .vtr .vts .vtkhdf .vtm .vtmb .vtpd .pvtk .pvtu .pvti .pvtr .pvts"
# Formats of other programs, which VTK or meshio reads; formats of pyvista-zstd and zvtk.
_OTHERS = (
    ".stl .ply .obj .cas .case .cgns .e .ex2 .exii .exo .g .foam .inp .msh .mesh .med .neu .xdmf "
    ".bdf .fem .nas .off .su2 .ugrid .avs .grdecl .pv .zvtk"
)
_BLOCKS = (".vtm", ".vtmb", ".vtpd")
VTK_SUFFIXES = frozenset(_VTK.split())
"""The suffixes of VTK's own formats."""
SUFFIXES = frozenset([*_VTK.split(), *_OTHERS.split()])
"""The suffixes of mesh files, whether or not PyVista is installed."""
_OTHER_DATA = ".ambar .cdf .h5 .hdf .hdf5 .he5 .nc .nc4 .netcdf .txt .zarr"
_NOT_MESHES = frozenset(["", *_OTHER_DATA.split()])
"""Suffixes of files that are not meshes, even if PyVista or meshio supports the suffix."""
HDF_TIME = "Time"
"""The array that VTK's reader of VTKHDF adds to steps."""
_CONTENT = {
    ".vtk": "a file of VTK's legacy format",
    ".vti": "VTK XML of an ImageData",
    ".vtr": "VTK XML of a RectilinearGrid",
    ".vts": "VTK XML of a StructuredGrid",
    ".vtp": "VTK XML of a PolyData",
    ".vtu": "VTK XML of an UnstructuredGrid",
    ".vtm": "VTK XML of a MultiBlockDataSet",
}
"""What files must contain, by their suffixes."""
# Warnings of VTK's legacy readers, which then use zeros, or leave out the rest.
_TRUNCATED = re.compile(r"Error reading|No [xyz] coordinates read")
# Where in its source VTK reports an error or a warning.
_VTK_PLACE = re.compile(r"^(?:ERROR|Generic Warning|Warning): In \w+\.cxx, line \d+ ")
_MISSING_FILE = re.compile(r"Error opening file\s+(.+)")


def is_mesh_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a file with the suffix of a format that PyVista or meshio reads."""
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix in _NOT_MESHES or not place.is_file():
        return False
    return suffix in SUFFIXES or place.name.lower().endswith(tuple(readable_suffixes()))


@cache
def readable_suffixes() -> frozenset[str]:
    """Return the suffixes of mesh files that the installed libraries read."""
    found = {*SUFFIXES, *meshio_readers.readable_suffixes()}
    if find_spec("pyvista") is not None:
        found |= _pyvista_suffixes(pyvista())
    return frozenset(found - _NOT_MESHES)


def _pyvista_suffixes(library: Any) -> set[str]:
    """Return the suffixes of PyVista's own and registered readers."""
    from pyvista.core.utilities.reader import CLASS_READERS

    return {*CLASS_READERS, *(one.extension for one in library.registered_readers())}


class MeshFile:
    """A mesh file, with one mesh or one for each time step.

    Raises UnsupportedError if PyVista is not installed, CorruptError if it cannot read the file,
    FileNotFoundError if another file that it refers to does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._suffix = path.suffix.lower()
        self._pyvista = pyvista()
        self._reader: Any = None
        self.times: list[float] = []
        """The times of the steps; empty for a file with one mesh."""
        # The file of a case of OpenFOAM only marks its folder.
        if self._suffix != ".foam" and path.stat().st_size == 0:
            raise _core.CorruptError(
                f"{path}: expected {self._content}, found an empty file; restore it from a copy"
            )
        if self._suffix != ".zvtk":
            with self._explain_errors():
                self._open()

    @property
    def _content(self) -> str:
        return _CONTENT.get(self._suffix, f"a {self._suffix or 'mesh'} file")

    def _open(self) -> None:
        """Set the reader, and the times, if the reader is not chosen by `_read_whole`."""
        check_length(self.path)
        try:
            reader = self._pyvista.get_reader(self.path)
        except Exception:
            # PyVista has no reader for the formats of meshio. For damaged files, `read` raises.
            self._reader = _xdmf_reader(self.path) if self._suffix == ".xdmf" else None
            return
        source = getattr(reader, "reader", None)
        if source is None or not hasattr(source, "GetOutputInformation"):  # has one mesh
            return
        if self._suffix == ".vtk" and _ends_in_a_word(self.path):
            _append_line_end(source, self.path)
            self._reader = reader
            return
        source.UpdateInformation()
        from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

        key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        info = source.GetOutputInformation(0)
        times = [float(time) for time in info.Get(key)] if info.Has(key) else []
        self.times = times if len(times) > 1 else []
        if self.times or source.IsA("vtkHDFReader"):
            self._reader = reader

    def read(self, step: int = 0) -> Any:
        """Return the mesh of a step."""
        with self._explain_errors():
            if self._reader is None:
                mesh = self._read_whole()
            elif hasattr(self._reader, "set_active_time_value"):
                self._reader.set_active_time_value(self.times[step])
                mesh = self._reader.read()
            else:
                mesh = self._read_step(self._reader.reader, step)
            if self._suffix in VTK_SUFFIXES or _point_count(mesh):
                return mesh
            if self._suffix != ".inp":
                raise ValueError("it contains no points")
            mesh = meshio_readers.read_by_meshio(self.path, self._pyvista)
            if mesh.n_cells:
                return mesh
            raise ValueError("it contains neither points of AVS nor elements of Abaqus")

    def _read_whole(self) -> Any:
        if self._suffix == ".zvtk":
            zvtk = require("zvtk", purpose="reading .zvtk files", install="zvtk")
            return zvtk.read(self.path)
        if self._suffix not in _pyvista_suffixes(self._pyvista) and self._suffix in (
            meshio_readers.SUFFIXES | meshio_readers.readable_suffixes()
        ):
            return meshio_readers.read_by_meshio(self.path, self._pyvista)
        if self._suffix in _BLOCKS:  # PyVista 0.49 cannot check the lengths of tables in blocks
            return self._pyvista.read(self.path, validate=False)
        return self._pyvista.read(self.path)

    def _read_step(self, source: Any, step: int) -> Any:
        """Return the mesh of a VTK reader whose times, or AMR data, PyVista does not support."""
        if self.times:
            source.UpdateTimeStep(self.times[step])
        else:
            source.Update()
        mesh = source.GetOutputDataObject(0)
        if self.times and source.IsA("vtkHDFReader"):
            mesh.GetFieldData().RemoveArray(HDF_TIME)
        try:
            return self._pyvista.wrap(mesh, validate=False)
        except (NotImplementedError, TypeError):
            return mesh

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Raise errors of the libraries as errors that name the file."""
        catcher = self._pyvista.VtkErrorCatcher(raise_errors=True, send_to_logging=False)
        try:
            with raise_vtk_errors(self._pyvista, catcher):
                yield
            for event in catcher.warning_events:
                if _TRUNCATED.search(str(event)):
                    raise ValueError(event.alert)  # noqa: TRY301 - explained below
        except (_core.AmbarError, ImportError):
            raise
        except (Exception, SystemExit) as error:
            # HDF5 also raises OSError for damaged files, but without a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = self._reason(error, catcher)
            if (found := _MISSING_FILE.search(reason)) and not Path(found[1]).exists():
                raise FileNotFoundError(
                    errno.ENOENT, f"{self.path} refers to a file that does not exist", found[1]
                ) from error
            raise _core.CorruptError(
                f"{self.path}: expected {self._content}, but PyVista cannot read it: "
                f"{reason:.300}; is it complete, and of that format?"
            ) from error

    def _reason(self, error: BaseException, catcher: Any) -> str:
        """Return the message of an error; of several VTK errors that of the first one."""
        message = str(error)
        if isinstance(error, self._pyvista.VTKExecutionError) and catcher.error_events:
            message = catcher.error_events[0].alert
        message = _VTK_PLACE.sub("", " ".join(message.split())).rstrip(".")
        return message or type(error).__name__


@contextmanager
def raise_vtk_errors(pyvista: Any, catcher: Any = None) -> Iterator[None]:
    """Raise the errors of VTK in the block, and print nothing.

    By default, VTK prints errors, and continues with what it has read of a file. `catcher` is a
    `pyvista.VtkErrorCatcher`, which collects errors and warnings.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pyvista.vtk_verbosity("off"),
            catcher or pyvista.VtkErrorCatcher(raise_errors=True, send_to_logging=False),
        ):
            yield
    finally:
        logging.disable(before)


def _point_count(mesh: Any) -> int:
    """Return the number of points, or rows, of a mesh and its blocks."""
    if mesh is None:
        return 0
    if mesh.IsA("vtkCompositeDataSet"):
        return int(mesh.GetNumberOfPoints())
    counts = (mesh.GetNumberOfElements(kind) for kind in range(mesh.NUMBER_OF_ATTRIBUTE_TYPES))
    return max(counts, default=0)


def _xdmf_reader(path: Path) -> SimpleNamespace:
    """Return VTK's reader of XDMF; PyVista does not support files without times."""
    from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

    reader = vtkXdmfReader()
    reader.SetFileName(os.fspath(path))
    return SimpleNamespace(reader=reader)


def _ends_in_a_word(path: Path) -> bool:
    """Whether a legacy file is text that does not end with a space or line end."""
    with path.open("rb") as file:
        lines = [file.readline(256).strip().upper() for _ in range(3)]
        size = file.seek(0, os.SEEK_END)
        if lines[2] != b"ASCII" or size == 0:
            return False
        file.seek(size - 1)
        return not file.read(1).isspace()


def _append_line_end(reader: Any, path: Path) -> None:
    """Let a legacy reader read a file with a line end appended.

    If a file ends within a number, the reader replaces the numbers after it by zeros, silently. If
    it ends between numbers, the reader reports an error.
    """
    data = path.read_bytes() + b"\n"
    reader.SetReadFromInputString(True)
    reader.SetBinaryInputString(data, len(data))


def pyvista() -> Any:
    """Return PyVista; raises ModuleNotFoundError if it is not installed."""
    return require("pyvista", purpose="reading and writing mesh files", install="ambar[mesh]")


def size_of(path: Path) -> int:
    """Return the bytes of a file, and of the folder with its pieces."""
    folder = path.with_suffix("") if path.suffix in _BLOCKS else path
    inside = folder.rglob("*") if folder.is_dir() else ()
    return sum(file.stat().st_size for file in (path, *inside) if file.is_file())

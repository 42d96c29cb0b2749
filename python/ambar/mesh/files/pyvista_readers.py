"""Other programs' files of meshes, read by PyVista: all at once, or time step by time step."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.optional import require
from ambar.mesh.files import meshio_readers as by_meshio
from ambar.mesh.files.truncation_checks import check_length

# VTK's own, legacy, XML and HDF; in parallel pieces, and of many blocks.
_VTK = ".vtk .vtu .vtp .vti .vtr .vts .vtkhdf .vtm .vtmb .vtpd .pvtk .pvtu .pvti .pvtr .pvts"
# Other programs', which VTK reads, or meshio; pyvista-zstd's and zvtk's.
_OTHERS = (
    ".stl .ply .obj .cas .case .cgns .e .ex2 .exii .exo .g .foam .inp .msh .mesh .med .neu .xdmf "
    ".bdf .fem .nas .off .su2 .ugrid .avs .grdecl .pv .zvtk"
)
_BLOCKS = (".vtm", ".vtmb", ".vtpd")
VTK_SUFFIXES = frozenset(_VTK.split())
"""Of VTK's own files."""
SUFFIXES = frozenset([*_VTK.split(), *_OTHERS.split()])
"""Of files that are meshes, whether or not PyVista is installed."""
_NOT_MESHES = frozenset(
    [
        "",
        ".ambar",
        ".cdf",
        ".h5",
        ".hdf",
        ".hdf5",
        ".he5",
        ".nc",
        ".nc4",
        ".netcdf",
        ".txt",
        ".zarr",
    ]
)
"""Of files that are known to be something else, also where PyVista or meshio claims them."""
HDF_TIME = "Time"
"""What VTK's reader of VTKHDF calls the array of the time, which it adds to files of steps."""


# What VTK's readers of its old format warn of, and go on with zeros, or without the rest.
_CUT = re.compile(r"Error reading|No [xyz] coordinates read")


def is_mesh_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a file that PyVista or meshio reads, by its suffix."""
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix in _NOT_MESHES or not place.is_file():
        return False
    return suffix in SUFFIXES or place.name.lower().endswith(tuple(readable_suffixes()))


@cache
def readable_suffixes() -> frozenset[str]:
    """Return the suffixes of the files of meshes that the installed libraries read."""
    found = {*SUFFIXES, *by_meshio.readable_suffixes()}
    if find_spec("pyvista") is not None:
        found |= _pyvista_suffixes(pyvista())
    return frozenset(found - _NOT_MESHES)


def _pyvista_suffixes(library: Any) -> set[str]:
    """Return the suffixes that PyVista has a reader for, of its own or registered."""
    from pyvista.core.utilities.reader import CLASS_READERS

    return {*CLASS_READERS, *(one.extension for one in library.registered_readers())}


class MeshFile:
    """A file of a mesh, or of one for each of several times.

    Raises UnsupportedError if PyVista is not installed, CorruptError if it cannot read the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pyvista = pyvista()
        self._reader: Any = None
        self.times: list[float] = []
        """The times there are meshes of; none of a file of one mesh."""
        if path.suffix.lower() != ".zvtk":
            with self._explained():
                self._open()

    def _open(self) -> None:
        suffix = self.path.suffix.lower()
        check_length(self.path)
        try:
            reader = self._pyvista.get_reader(self.path)
        except Exception:
            # There is none for what meshio and others read; of a damaged file, reading tells.
            self._reader = _xdmf_reader(self.path) if suffix == ".xdmf" else None
            return
        source = getattr(reader, "reader", None)
        if source is None or not hasattr(source, "GetOutputInformation"):  # of one mesh
            return
        if suffix == ".vtk" and _ends_in_a_word(self.path):
            _read_to_a_space(source, self.path)
            self._reader = reader
            return
        source.UpdateInformation()
        from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

        key = vtkStreamingDemandDrivenPipeline.TIME_STEPS()
        info = source.GetOutputInformation(0)
        times = info.Get(key) if info.Has(key) else None
        if times is not None and len(times) > 1:
            self._reader, self.times = reader, [float(time) for time in times]
        elif source.IsA("vtkHDFReader"):
            self._reader = reader

    def read(self, step: int = 0) -> Any:
        """Return the mesh of a step."""
        with self._explained():
            mesh = self._read(step)
            suffix = self.path.suffix.lower()
            if suffix in VTK_SUFFIXES or _points_in(mesh):
                return mesh
            if suffix != ".inp":
                raise ValueError("there are no points in it")
            mesh = by_meshio.read_by_meshio(self.path, self._pyvista)
            if mesh.n_cells:
                return mesh
            raise ValueError("there are neither points, as AVS writes them, nor Abaqus' elements")

    def _read(self, step: int) -> Any:
        suffix = self.path.suffix.lower()
        if self._reader is None:
            if suffix == ".zvtk":
                return _zvtk().read(self.path)
            if self._is_left_to_meshio(suffix):
                return by_meshio.read_by_meshio(self.path, self._pyvista)
            if suffix in _BLOCKS:  # PyVista 0.49 cannot check the lengths of tables in blocks
                return self._pyvista.read(self.path, validate=False)
            return self._pyvista.read(self.path)
        if hasattr(self._reader, "set_active_time_value"):
            self._reader.set_active_time_value(self.times[step])
            return self._reader.read()
        return self._read_step(self._reader.reader, step)

    def _is_left_to_meshio(self, suffix: str) -> bool:
        """Whether PyVista has no reader for such files, but meshio has."""
        if suffix in _pyvista_suffixes(self._pyvista):
            return False
        return suffix in by_meshio.SUFFIXES or suffix in by_meshio.readable_suffixes()

    def _read_step(self, source: Any, step: int) -> Any:
        """Return what a reader of VTK gives: PyVista does not choose the time, nor take AMR."""
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
    def _explained(self) -> Iterator[None]:
        """Say which file an error is about."""
        try:
            with raise_vtk_errors(self._pyvista) as told:
                yield
            _check_warnings(told)
        except (_core.AmbarError, ImportError):
            raise
        except (Exception, SystemExit) as error:
            # HDF5's errors are such too, without a number.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            what = " ".join(str(error).split()) or type(error).__name__
            raise _core.CorruptError(
                f"{self.path}: PyVista cannot read it: {what:.300}; is it complete, and of that "
                "format?"
            ) from error


@contextmanager
def raise_vtk_errors(pyvista: Any) -> Iterator[Any]:
    """Have errors of VTK raised: it prints them, and goes on with what it has read of a file.

    Gives PyVista's catcher of them, which knows of warnings too.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pyvista.vtk_verbosity("off"),
            pyvista.VtkErrorCatcher(raise_errors=True, send_to_logging=False) as told,
        ):
            yield told
    finally:
        logging.disable(before)


def _check_warnings(told: Any) -> None:
    """Raise ValueError if VTK has only warned of a file that ends before its time."""
    for event in told.warning_events:
        if _CUT.search(str(event)):
            raise ValueError(str(event))


def _points_in(mesh: Any) -> int:
    """Return how many points, or rows, a mesh and its blocks have."""
    if mesh is None:
        return 0
    if mesh.IsA("vtkCompositeDataSet"):
        return int(mesh.GetNumberOfPoints())
    counts = (mesh.GetNumberOfElements(kind) for kind in range(mesh.NUMBER_OF_ATTRIBUTE_TYPES))
    return max(counts, default=0)


class _Plain:
    """A reader of VTK's, as those of PyVista hold it."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader


def _xdmf_reader(path: Path) -> _Plain:
    """Return VTK's reader of XDMF: PyVista's has none for files without times."""
    from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

    reader = vtkXdmfReader()
    reader.SetFileName(os.fspath(path))
    return _Plain(reader)


def _ends_in_a_word(path: Path) -> bool:
    """Whether a file of VTK's old format is text, and no space or line end ends it."""
    with path.open("rb") as file:
        lines = [file.readline(256).strip().upper() for _ in range(3)]
        size = file.seek(0, os.SEEK_END)
        if lines[2] != b"ASCII" or size == 0:
            return False
        file.seek(size - 1)
        return not file.read(1).isspace()


def _read_to_a_space(reader: Any, path: Path) -> None:
    """Have a reader of VTK's old format read a file and a line end behind it.

    Where a file is cut within a number, the reader takes all numbers behind it for zeros, silently;
    cut between two of them, it is an error.
    """
    data = path.read_bytes() + b"\n"
    reader.SetReadFromInputString(True)
    reader.SetBinaryInputString(data, len(data))


def pyvista() -> Any:
    """Return PyVista; raises ModuleNotFoundError if it is not installed."""
    return require("pyvista", purpose="reading and writing mesh files", install="ambar[mesh]")


def _zvtk() -> Any:
    return require("zvtk", purpose="reading .zvtk files", install="zvtk")


def size_of(path: Path) -> int:
    """Return the bytes of a file, and of the folder of its name that pieces lie in."""
    pieces = path.with_suffix("") if path.suffix in _BLOCKS else None
    inside = pieces.rglob("*") if pieces is not None and pieces.is_dir() else ()
    if path.is_dir():
        inside = path.rglob("*")
    files = [path, *inside]
    return sum(file.stat().st_size for file in files if file.is_file())

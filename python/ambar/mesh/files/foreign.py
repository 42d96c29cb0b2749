"""Other programs' files of meshes, read by PyVista: all at once, or time step by time step."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core

# VTK's own, legacy, XML and HDF; in parallel pieces, and of many blocks.
_VTK = ".vtk .vtu .vtp .vti .vtr .vts .vtkhdf .vtm .vtmb .vtpd .pvtk .pvtu .pvti .pvtr .pvts"
# Other programs', which VTK reads, or meshio; pyvista-zstd's and zvtk's.
_OTHERS = (
    ".stl .ply .obj .cas .case .cgns .e .ex2 .exii .exo .g .foam .inp .msh .mesh .med .neu .xdmf "
    ".bdf .fem .nas .off .su2 .ugrid .avs .grdecl .pv .zvtk"
)
VTK_SUFFIXES = frozenset(_VTK.split())
"""Of VTK's own files."""
SUFFIXES = frozenset([*_VTK.split(), *_OTHERS.split()])
"""Of the files that are taken for meshes."""
HDF_TIME = "Time"
"""What VTK's reader of VTKHDF calls the array of the time, which it adds to files of steps."""


def is_mesh_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a file that is called like a mesh."""
    place = Path(path)
    return place.suffix.lower() in SUFFIXES and place.is_file()


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
        try:
            reader = self._pyvista.get_reader(self.path)
        except Exception:
            # There is none for what meshio and others read; of a damaged file, reading tells.
            return
        source = getattr(reader, "reader", None)
        if source is None or not hasattr(source, "GetOutputInformation"):  # of one mesh
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
            if self._reader is None:
                if self.path.suffix.lower() == ".zvtk":
                    return _zvtk().read(self.path)
                return self._pyvista.read(self.path)
            if hasattr(self._reader, "set_active_time_value"):
                self._reader.set_active_time_value(self.times[step])
                return self._reader.read()
            return self._read_step(self._reader.reader, step)

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
            return self._pyvista.wrap(mesh)
        except (NotImplementedError, TypeError):
            return mesh

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say which file an error is about."""
        try:
            with strictly(self._pyvista):
                yield
        except (OSError, _core.AmbarError):
            raise
        except Exception as error:
            what = " ".join(str(error).split())
            raise _core.CorruptError(
                f"{self.path}: PyVista cannot read it: {what:.300}; is it complete, and of that "
                "format?"
            ) from error


@contextmanager
def strictly(pyvista: Any) -> Iterator[None]:
    """Have errors of VTK raised: it prints them, and goes on with what it has read of a file."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pyvista.vtk_verbosity("off"),
            pyvista.VtkErrorCatcher(raise_errors=True, send_to_logging=False),
        ):
            yield
    finally:
        logging.disable(before)


def pyvista() -> Any:
    """Return PyVista; raises UnsupportedError if it is not installed."""
    if find_spec("pyvista") is None:
        raise _core.UnsupportedError(
            "files of meshes are read and written by PyVista: pip install 'ambar[mesh]'"
        )
    return import_module("pyvista")


def _zvtk() -> Any:
    if find_spec("zvtk") is None:
        raise _core.UnsupportedError("files .zvtk are read by zvtk: pip install zvtk")
    return import_module("zvtk")


def size_of(path: Path) -> int:
    """Return the bytes of a file, and of the folder of its name that pieces lie in."""
    pieces = path.with_suffix("") if path.suffix in (".vtm", ".vtmb", ".vtpd") else None
    inside = pieces.rglob("*") if pieces is not None and pieces.is_dir() else ()
    if path.is_dir():
        inside = path.rglob("*")
    files = [path, *inside]
    return sum(file.stat().st_size for file in files if file.is_file())

"""Mesh files of other programs, read by PyVista: one mesh, or one for each time step."""

from __future__ import annotations

import errno
import glob
import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ambar import _core
from ambar.mesh.files.formats import (
    is_vtk_format,
    meshio_formats,
    pyvista_reads,
    suffix_of,
)
from ambar.mesh.files.meshio_files import GLOBAL_STATE, read_by_meshio
from ambar.mesh.files.trial import UNSAFE, check_in_process
from ambar.mesh.files.truncation_checks import check_length
from ambar.mesh.vtk.meshio_objects import pyvista

_BLOCKS = (".vtm", ".vtmb", ".vtpd")
"""Files that name others in a folder beside them."""
_ENSIGHT_GEOMETRIES = ("model", "measured", "match", "boundary", "rigid_body")
"""The keys of a case of EnSight with files of the geometry; those of variables have "per"."""
HDF_TIME = "Time"
"""The array that VTK's reader of VTKHDF adds to steps."""
# Warnings of VTK's legacy readers, which then use zeros, or leave out the rest.
_TRUNCATED = re.compile(r"Error reading|No [xyz] coordinates read")
# Where in its source VTK reports an error or a warning.
_VTK_PLACE = re.compile(r"^(?:ERROR|Generic Warning|Warning): In \w+\.cxx, line \d+ ")
_CACHED_RANGE = re.compile("Error reading InformationKey element for vtkDataArray")
"""VTK stores the range of an array as text that it cannot read if the range has infinite ends."""
_ROUNDED = "rounded to float32 by VTK's reader of this format"
_MISSING_FILE = re.compile(r"Error opening file\s+(.+)")


class UnreadableFileError(_core.CorruptError):
    """A library cannot read a mesh file.

    Parameters
    ----------
    message
        The message, which names the file.
    reason
        The message of the library.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class MeshFile:
    """A mesh file, with one mesh or one for each time step.

    Raises UnsupportedError if PyVista is not installed, CorruptError if it cannot read the file,
    FileNotFoundError if another file that it refers to does not exist.
    """

    def __init__(self, path: Path, *, is_trial: bool = False) -> None:
        self.path = path
        self._pyvista = pyvista()
        self._suffix = suffix_of(path)
        self._reader: Any = None
        self.times: list[float] = []
        """The times of the steps; empty for a file with one mesh."""
        self.left_out: dict[str, str] = {}
        """What the library that read the file cannot represent, and why."""
        # The file of a case of OpenFOAM only marks its folder.
        if self._suffix != ".foam" and path.stat().st_size == 0:
            raise _core.CorruptError(
                f"{path}: expected a {self._suffix} file, found an empty file; restore it from a "
                "copy"
            )
        check_length(path)
        if self._suffix in UNSAFE and not is_trial:
            check_in_process(path, size_of(path))
        self._is_of_pyvista = pyvista_reads(path)
        # Formats of several programs have the same suffix, such as .inp of AVS and Abaqus.
        self._has_other = not is_vtk_format(self._suffix) and bool(meshio_formats(path))
        if self._is_of_pyvista:
            try:
                with self._explain_errors():
                    self._open()
            except _core.CorruptError:
                if not self._has_other:
                    raise

    def _open(self) -> None:
        """Set the reader and the times; no reader if PyVista reads the file by a function."""
        try:
            reader = self._pyvista.get_reader(self.path)
        except ImportError:
            raise
        except Exception:
            # For damaged files, `read` raises.
            self._reader = _xdmf_reader(self.path) if self._suffix == ".xdmf" else None
            return
        source = reader.reader
        if self._suffix == ".vtk" and _ends_in_a_word(self.path):
            _append_line_end(source, self.path)
        elif hasattr(source, "GetOutputInformation"):
            source.UpdateInformation()
            times = _times_of(source)
            if isinstance(reader, self._pyvista.EnSightReader):
                times = _times_of_sets(source) or times
            self.times = times if len(times) > 1 else []
        elif hasattr(reader, "time_values"):  # not of VTK
            self.times = list(reader.time_values)
        self._reader = reader

    def read(self, step: int = 0) -> Any:
        """Return the mesh of a step."""
        failure = None
        if self._is_of_pyvista:
            try:
                with self._explain_errors():
                    mesh = self._read_by_pyvista(step)
            except _core.CorruptError as error:
                if self.times or not self._has_other:
                    raise
                failure = error
            else:
                self.left_out.update(self._rounded(mesh))
                return mesh
        try:
            with self._explain_errors():
                mesh = read_by_meshio(self.path, self.left_out)
                if not (mesh.n_cells or (failure is None and mesh.n_points)):
                    raise ValueError("it contains no points, or no cells")
                return mesh
        except _core.CorruptError as error:
            raise failure or error from None

    def _read_by_pyvista(self, step: int) -> Any:
        reader = self._reader
        if reader is None:
            mesh = self._pyvista.read(self.path)
        else:
            if self.times and isinstance(reader, self._pyvista.EnSightReader):
                # The geometry and variables may have different time sets. PyVista accepts the
                # times of one set; VTK takes from each set the step at or before the time.
                reader.reader.SetTimeValue(self.times[step])
            elif self.times and hasattr(reader, "set_active_time_value"):
                reader.set_active_time_value(self.times[step])
            elif self.times:
                reader.reader.UpdateTimeStep(self.times[step])
            try:
                # PyVista 0.49 cannot check the lengths of tables in blocks.
                mesh = reader.read(validate=False)
            except (NotImplementedError, TypeError):  # PyVista has no class for it: AMR data
                mesh = reader.reader.GetOutputDataObject(0)
        if self.times and self._suffix == ".vtkhdf":
            mesh.GetFieldData().RemoveArray(HDF_TIME)
        if not is_vtk_format(self._suffix) and not _point_count(mesh):
            raise ValueError("it contains no points")
        return mesh

    def _rounded(self, mesh: Any) -> dict[str, str]:
        """Return what VTK's reader has rounded to float32, and why."""
        name = getattr(getattr(self._reader, "reader", None), "GetClassName", str)()
        if name == "vtkTecplotReader":
            return dict.fromkeys(["points", *_float32_arrays(mesh)], _ROUNDED)
        if name.endswith("ExodusIIReader") and _has_float32_points(self.path) is False:
            return {"points": _ROUNDED}
        return {}

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Raise errors of the libraries as errors that name the file."""
        catcher = _error_catcher(self._pyvista)
        try:
            with raise_vtk_errors(self._pyvista, catcher):
                yield
            for event in catcher.warning_events:
                if _TRUNCATED.search(str(event)):
                    raise ValueError(event.alert)  # noqa: TRY301 - explained below
        except (_core.AmbarError, ImportError):
            raise
        except (Exception, SystemExit) as error:
            # HDF5 and NetCDF raise OSError for damaged files without a number, or a negative one.
            if isinstance(error, OSError) and (error.errno or 0) > 0:
                raise
            reason = self._reason(error, catcher)
            if (found := _MISSING_FILE.search(reason)) and not Path(found[1]).exists():
                raise FileNotFoundError(
                    errno.ENOENT, f"{self.path} refers to a file that does not exist", found[1]
                ) from error
            message = (
                f"{self.path}: expected a {self._suffix} file, but it cannot be read: "
                f"{reason:.300}; is it complete, and of that format?"
            )
            raise UnreadableFileError(message, reason) from error

    def _reason(self, error: BaseException, catcher: Any) -> str:
        """Return the message of an error; of several VTK errors that of the first one."""
        message = str(error)
        if isinstance(error, self._pyvista.VTKExecutionError) and catcher.error_events:
            message = catcher.error_events[0].alert
        message = _VTK_PLACE.sub("", " ".join(message.split())).rstrip(".")
        return message or type(error).__name__


def try_file(path: str) -> None:
    """Read all steps of a file and discard them, in the process of `check_in_process`."""
    try:
        file = MeshFile(Path(path), is_trial=True)
        for step in range(max(1, len(file.times))):
            file.read(step)
    except Exception:  # the process that reads the file after this one raises it
        return


@contextmanager
def raise_vtk_errors(pyvista: Any, catcher: Any = None) -> Iterator[None]:
    """Raise the errors of VTK in the block, and print nothing.

    By default, VTK prints errors, and continues with what it has read of a file. `catcher` is a
    `_error_catcher`, which collects errors and warnings.
    """
    with GLOBAL_STATE:
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with (
                warnings.catch_warnings(action="ignore"),
                pyvista.vtk_verbosity("off"),
                catcher or _error_catcher(pyvista),
            ):
                yield
        finally:
            logging.disable(before)


def _error_catcher(pyvista: Any) -> Any:
    """Return a context that collects errors and warnings of VTK, and raises the errors."""

    class Catcher(pyvista.VtkErrorCatcher):  # type: ignore[misc]
        @property
        def error_events(self) -> list[Any]:
            events = super().error_events
            return [event for event in events if not _CACHED_RANGE.search(event.alert)]

    return Catcher(raise_errors=True, send_to_logging=False)


def _point_count(mesh: Any) -> int:
    """Return the number of points, or rows, of a mesh and its blocks."""
    if mesh is None:
        return 0
    if mesh.IsA("vtkCompositeDataSet"):
        return int(mesh.GetNumberOfPoints())
    counts = (mesh.GetNumberOfElements(kind) for kind in range(mesh.NUMBER_OF_ATTRIBUTE_TYPES))
    return max(counts, default=0)


def _float32_arrays(mesh: Any) -> Iterator[str]:
    """Yield the names of float32 arrays of a mesh and its blocks."""
    if mesh is None:
        return
    if mesh.IsA("vtkCompositeDataSet"):
        for block in mesh:
            yield from _float32_arrays(block)
        return
    for data in (mesh.point_data, mesh.cell_data):
        yield from (name for name, values in data.items() if values.dtype.name == "float32")


def _has_float32_points(path: Path) -> bool | None:
    """Whether the coordinates in an Exodus file are float32; None if netCDF4 is missing."""
    if find_spec("netCDF4") is None:
        return None
    import netCDF4

    with netCDF4.Dataset(path) as file:
        found = [name for name in file.variables if re.fullmatch("coord[xyz]?", name)]
        return all(file[name].dtype == "f4" for name in found)


def _times_of(source: Any) -> list[float]:
    """Return the times of a reader of VTK."""
    from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline

    key, info = vtkStreamingDemandDrivenPipeline.TIME_STEPS(), source.GetOutputInformation(0)
    return [float(time) for time in info.Get(key)] if info.Has(key) else []


def _times_of_sets(source: Any) -> list[float]:
    """Return the times of all EnSight time sets with more than one time, sorted."""
    sets = source.GetTimeSets()
    arrays = [sets.GetItem(number) for number in range(sets.GetNumberOfItems() if sets else 0)]
    values = [[a.GetTuple1(n) for n in range(a.GetNumberOfTuples())] for a in arrays]
    return sorted({time for times in values if len(times) > 1 for time in times})


def _xdmf_reader(path: Path) -> SimpleNamespace:
    """Return VTK's reader of XDMF; PyVista does not support files without times."""
    import pyvista
    from vtkmodules.vtkIOXdmf2 import vtkXdmfReader

    reader = vtkXdmfReader()
    reader.SetFileName(os.fspath(path))

    def read(*, validate: bool) -> Any:
        reader.Update()
        return pyvista.wrap(reader.GetOutputDataObject(0), validate=validate)

    return SimpleNamespace(reader=reader, read=read)


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


def size_of(path: Path) -> int:
    """Return the bytes of a file and of the files of its values, or of a case of OpenFOAM."""
    if path.suffix == ".foam":
        files = (file for file in path.parent.rglob("*") if file.suffix != ".ambar")
        return sum(file.stat().st_size for file in files if file.is_file())
    if path.suffix.lower() == ".case":
        return sum(file.stat().st_size for file in {path, *_files_of_ensight(path)})
    folder = path.with_suffix("") if path.suffix.lower() in _BLOCKS else path
    inside = folder.rglob("*") if folder.is_dir() else ()
    return sum(file.stat().st_size for file in (path, *inside) if file.is_file())


def _files_of_ensight(path: Path) -> Iterator[Path]:
    """Yield the existing files that a case of EnSight names, such as ``model: 1 x.geo**``."""
    for line in path.read_text(errors="replace").splitlines():
        key, _, rest = line.partition(":")
        if key.strip() in _ENSIGHT_GEOMETRIES or " per " in key:
            *_, name = ["", *re.findall(r'"[^"]*"|\S+', rest)]
            pattern = glob.escape(name.strip('"')).replace("[*]", "[0-9]")
            # Path.glob raises errors for empty and for absolute names.
            for found in glob.iglob(pattern, root_dir=path.parent):  # noqa: PTH207
                if (path.parent / found).is_file():
                    yield path.parent / found

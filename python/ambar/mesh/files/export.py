"""Export of meshes, time steps and AMR cells to files of other programs, by their suffix."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ambar import _core
from ambar._util.optional import require
from ambar._util.output_files import check_free_space, hdf5_file
from ambar._util.progress import Progress
from ambar.kinds.request import ExportRequest
from ambar.mesh.files.pyvista_readers import VTK_SUFFIXES, pyvista, raise_vtk_errors
from ambar.mesh.mesh import read_mesh
from ambar.parallel.workers import Failure, Workers

if TYPE_CHECKING:
    from ambar.mesh.steps import Steps

_VTKHDF = ".vtkhdf"
_XML = (".vti", ".vtr", ".vts", ".vtp", ".vtu", ".vtm", ".vtpd")
_COMPOSITES = (
    ("GetNumberOfBlocks", "GetBlock"),
    ("GetNumberOfPartitions", "GetPartition"),
    ("GetNumberOfPartitionedDataSets", "GetPartitionedDataSet"),
)
"""The methods with the number of parts, and for a part, of composite data sets."""
_LISTS = {"points": "GetPointData", "cells": "GetCellData", "field data": "GetFieldData"}
_HDF_NAMES = ("/.", "/ and .", "VTKHDF")
_XML_NAMES = ('<>&"\n', '<, >, & and "', "VTK's XML")
"""The signs that names cannot have, listed, and the format."""
_BIT, _STRING = 1, 13  # VTK_BIT, VTK_STRING


def export_mesh(request: ExportRequest) -> None:
    """Write a mesh as a file of the format with the suffix of the target.

    PyVista writes ``.vtkhdf``, VTK's XML and legacy formats, ``.stl``, ``.ply`` and others; meshio
    writes other formats. Where PyVista writes no point sets in a format, they are written as
    surfaces of vertices. Tables are written as ``.csv`` or ``.parquet`` by pandas.

    Raises
    ------
    UnsupportedError
        If PyVista is not installed, or does not write such objects in that format; if the format
        does not support a part of the mesh.
    OSError
        If the file system reports an error.
    """
    path = request.target
    task = (os.fspath(request.store), path, request.threads, _core.memory_limit())
    if path.suffix.lower() in _XML:
        [lost] = _in_child(write_file, [task], path)
    else:
        lost = write_file(*task)
    if lost:
        warnings.warn(
            f"{path.name}: the format does not support the arrays {', '.join(lost)}, which are "
            "left out",
            stacklevel=2,
        )


def _in_child(
    function: Callable[..., Any], tasks: list[tuple[Any, ...]], path: Path
) -> Iterator[Any]:
    """Yield the results of calls in another process.

    VTK's XML writers can crash when a write fails, because they free uninitialized memory.
    """
    with Workers(1) as workers:
        for _, outcome in workers.map(function, tasks):
            if not isinstance(outcome, Failure):
                yield outcome
            elif outcome.has_died:
                why = f"VTK cannot write it, {outcome.why}; check the free disk space and memory"
                raise OSError(errno.EIO, why, str(path))
            elif isinstance(outcome.error, OSError):
                raise OSError(outcome.error.errno, outcome.error.strerror, str(path))
            else:
                raise outcome.error or _core.AmbarError(f"{path.name}: {outcome.why}")


def write_file(store: str, path: Path, threads: int | None, memory: int) -> list[str]:
    """Write a mesh to a file; return the names of the arrays that are left out.

    `memory` is the limit of `ambar.limits`, for another process.
    """
    _core.set_memory_limit(memory)
    mesh, suffix = read_mesh(store, threads=threads), path.suffix.lower()
    mesh = _to_writable(mesh, suffix)
    if mesh.IsA("vtkTable"):
        _write_table(mesh, path)
        return []
    if not hasattr(mesh, "save"):
        raise _core.UnsupportedError(
            f"{store} contains a {mesh.GetClassName()}, which PyVista does not write"
        )
    _save(mesh, path)
    if suffix in VTK_SUFFIXES or not hasattr(mesh, "array_names"):
        return []
    try:
        with raise_vtk_errors(pyvista()):
            written = pyvista().read(path).array_names
    except Exception:
        return []  # PyVista writes the format, but does not read it
    return [name for name in mesh.array_names if name not in written]


def _write_table(table: Any, path: Path) -> None:
    """Write a table as CSV or Parquet; a column for each component of an array."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise _core.UnsupportedError(
            f"{path.name}: expected the suffix .csv or .parquet for a table, found "
            f"{suffix or 'none'}"
        )
    columns: dict[str, Any] = {}
    for name, values in table.items():
        parts = enumerate(values.T) if values.ndim == 2 else ()
        columns |= {f"{name}:{number}": part for number, part in parts} or {name: values}
    frame = require("pandas", purpose="writing tables", install="pandas").DataFrame(columns)
    write = frame.to_csv if suffix == ".csv" else frame.to_parquet
    write(path, index=False)


def export_steps(request: ExportRequest, times: Sequence[float], report: Progress | None) -> None:
    """Write a series of meshes as a collection (.pvd) with a file for each step.

    Raises the errors of `export_mesh`.
    """
    path = request.target
    if path.suffix.lower() != ".pvd":
        raise _core.UnsupportedError(
            f"{path.name}: expected the suffix .pvd for time steps; "
            "ambar.open(...)[number].read() returns a step, which PyVista saves"
        )
    _check_times(times, path)
    folder, memory = path.with_suffix(""), _core.memory_limit()
    folder.mkdir()
    store, threads = os.fspath(request.store), request.threads
    tasks = [(store, n, folder, threads, memory) for n in range(len(times))]
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    collection = ElementTree.SubElement(root, "Collection")
    for time, name in zip(times, _in_child(write_step, tasks, path), strict=True):
        # repr gives every digit of a time.
        about = {"timestep": repr(time), "part": "0", "file": f"{folder.name}/{name}"}
        ElementTree.SubElement(collection, "DataSet", about)
        if report is not None:
            report(len(collection), len(times))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_step(store: str, number: int, folder: Path, threads: int | None, memory: int) -> str:
    """Write a step of a series into a folder; return the name of the file."""
    _core.set_memory_limit(memory)
    mesh = _to_writable(_steps(store).meshes[number].read(threads=threads))
    suffix = next((known for known in getattr(mesh, "_WRITERS", ()) if known in _XML), None)
    if suffix is None:
        raise _core.UnsupportedError(f"PyVista does not write a {type(mesh).__name__} as VTK's XML")
    name = f"step_{number:06d}{suffix}"
    _save(mesh, folder / name)
    return name


@lru_cache(1)
def _steps(store: str) -> Steps:
    """Return the meshes of a store; a process opens it once."""
    from ambar.mesh.steps import steps_of

    return steps_of(store)


def export_amr(request: ExportRequest, steps: Steps, report: Progress | None) -> None:
    """Write the cells of an output, or of a series of outputs, as one VTKHDF file.

    All steps have the same levels: from the lowest to the highest level of any step. Raises
    UnsupportedError if the format does not support the cells, OSError if the file system reports
    an error.
    """
    from ambar.mesh.files.vtkhdf import AmrHdfFile
    from ambar.mesh.mesh import AmrMesh

    h5py, path = require("h5py", purpose="writing VTKHDF", install="ambar[mesh]"), request.target
    meshes, times = [mesh for mesh in steps.meshes if isinstance(mesh, AmrMesh)], steps.times
    _check_times(times, path)
    levels = [mesh.amr.levels for mesh in meshes]
    ends = min(low for low, _ in levels), max(high for _, high in levels)
    with hdf5_file(h5py, path, libver=("earliest", "v110")) as file:
        writer = AmrHdfFile(file.create_group("VTKHDF"), times or None)
        for number, mesh in enumerate(meshes, 1):
            cells = mesh.read(levels=ends if times else None, threads=request.threads)
            _check_space(cells, path)
            writer.add(cells)
            if report is not None:
                report(number, len(meshes))
        writer.finish()


def _check_times(times: Sequence[float], path: Path) -> None:
    for number, (time, later) in enumerate(pairwise(times), 1):
        if later <= time:
            raise _core.UnsupportedError(
                f"{path.name}: expected times that increase, found {later} of step {number} after "
                f"{time}; export single steps, which ambar.open(...)[number] returns"
            )


def _to_writable(mesh: Any, suffix: str = ".vtp") -> Any:
    """Return a point set as a surface of vertices if PyVista does not write it with the suffix."""
    if mesh.GetClassName() in ("vtkPointSet", "PointSet") and suffix not in mesh._WRITERS:
        return mesh.cast_to_polydata()
    return mesh


def _save(mesh: Any, path: Path) -> None:
    """Write a mesh by PyVista or meshio."""
    suffix, library = path.suffix.lower(), pyvista()
    if suffix == _VTKHDF or suffix in _XML:
        _check_parts(mesh, is_hdf=suffix == _VTKHDF)
    known = sorted({str(suffix) for suffix in getattr(mesh, "_WRITERS", ())})
    _check_space(mesh, path)
    try:
        with raise_vtk_errors(library):
            if suffix in known:
                mesh.save(path)
            else:
                library.save_meshio(path, mesh)
        _rename_output(path)
    except OSError:
        raise
    except library.VTKExecutionError as error:
        why = f"VTK cannot write it: {' '.join(str(error).split()):.300}; check the free disk space"
        raise OSError(errno.EIO, why, str(path)) from error
    except Exception as error:  # PyVista and meshio raise errors of many types
        raise _core.UnsupportedError(
            f"{path.name}: a {type(mesh).__name__} cannot be written as {suffix or 'such a file'} "
            f"({error}); supported: {', '.join(known)}"
        ) from error


def _check_space(mesh: Any, path: Path) -> None:
    """Raise OSError if the mesh may not fit: VTK's writers can crash when a write fails."""
    check_free_space(mesh.GetActualMemorySize() * 1024, path)


def _check_parts(
    mesh: Any, where: str = "the mesh", name: str | None = None, *, is_hdf: bool
) -> None:
    """Raise UnsupportedError for names, bits and strings that VTKHDF or VTK's XML cannot store."""
    from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet

    names = [] if name is None else [(where, name)]
    lists = {of: getattr(mesh, get)() for of, get in _LISTS.items() if hasattr(mesh, get)}
    for of, data in lists.items():
        for index in range(data.GetNumberOfArrays() if data is not None else 0):
            array = data.GetAbstractArray(index)
            names.append((f"{where}: {of}: an array", array.GetName()))
            kind = array.GetDataType()
            if is_hdf and (kind == _BIT or (kind == _STRING and of != "field data")):
                raise _core.UnsupportedError(
                    f"{where}: {of}: the array {array.GetName()!r} has "
                    f"{'bits' if kind == _BIT else 'strings'}, which VTKHDF does not support: "
                    "leave it out, or export to another format"
                )
    signs, listed, of = _HDF_NAMES if is_hdf else _XML_NAMES
    for what, found in names:
        if not found or any(sign in found for sign in signs):
            raise _core.UnsupportedError(
                f"{what} has the name {found!r}: {of} supports names without {listed}: rename "
                "it, or export to another format"
            )
    for count, get in _COMPOSITES:
        for index in range(getattr(mesh, count)() if hasattr(mesh, get) else 0):
            info = mesh.GetMetaData(index) if mesh.HasMetaData(index) else None
            key = vtkCompositeDataSet.NAME()
            block = info.Get(key) if info is not None and info.Has(key) else None
            part = getattr(mesh, get)(index)
            _check_parts(part, f"{where}: block {index}", block, is_hdf=is_hdf)


def _rename_output(path: Path) -> None:
    """Rename a file whose writer changed its name to `path`, as VTK's EnSight writer: u.0.case.

    Raises ValueError if there is not exactly one file with the suffix.
    """
    if path.exists():
        return
    written = sorted(path.parent.iterdir())
    matches = [file for file in written if file.suffix == path.suffix]
    if len(matches) != 1:
        names = ", ".join(file.name for file in written) or "no file"
        raise ValueError(f"the writer wrote {names} in place of {path.name}")
    matches[0].rename(path)

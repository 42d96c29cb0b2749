"""Export of meshes to files of other programs, chosen by the suffix: one mesh, or time steps."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ambar import _core
from ambar._util.disk_space import check_free_space
from ambar._util.hdf5_file import hdf5_file
from ambar._util.optional import require
from ambar._util.progress import Progress
from ambar.mesh.files.pyvista_readers import VTK_SUFFIXES, pyvista, raise_vtk_errors
from ambar.mesh.files.tables import write_table
from ambar.mesh.mesh import read_mesh
from ambar.parallel.workers import Failure, Workers

if TYPE_CHECKING:
    from ambar.mesh.steps import Steps

VTKHDF = ".vtkhdf"
STEPS = (VTKHDF, ".pvd")
"""The suffixes of files with several time steps."""
_XML = (".vti", ".vtr", ".vts", ".vtp", ".vtu", ".vtm", ".vtpd")


def export_mesh(store: str | os.PathLike[str], path: Path, threads: int | None = None) -> None:
    """Write a mesh as a file of the format with the suffix of `path`.

    PyVista writes ``.vtkhdf``, VTK's XML and legacy formats, ``.stl``, ``.ply`` and others; meshio
    writes other formats. Where PyVista writes no point sets in a format, they are written as
    surfaces of vertices. Tables are written as ``.csv``, or as ``.parquet`` by PyArrow.

    Raises
    ------
    UnsupportedError
        If PyVista is not installed, or does not write such objects in that format; if the format
        does not support a part of the mesh.
    OSError
        If the file system reports an error.
    """
    task = (os.fspath(store), path, threads, _core.memory_limit())
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
    if mesh.IsA("vtkOverlappingAMR") and suffix == VTKHDF:
        _write_hdf(path, [mesh], None)
        return []
    if mesh.IsA("vtkTable"):
        write_table(mesh, path)
        return []
    mesh = _to_writable(mesh, suffix)
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


def export_steps(
    meshes: Iterable[Any],
    times: Sequence[float] | None,
    path: Path,
    report: Progress | None = None,
) -> None:
    """Write meshes over time as one VTKHDF file.

    Parameters
    ----------
    meshes
        A VTK object for each step; each is requested after the previous ones are written.
    times
        Their times; None for a single mesh.
    path
        The file, with the suffix ``.vtkhdf``.
    report
        A function that is called with the number of written steps and the number of all steps.

    Raises
    ------
    UnsupportedError
        If the suffix differs, or the format does not support a part of the meshes.
    OSError
        If the file system reports an error.
    """
    _check_steps(times, path)
    steps = _reported(map(_to_writable, meshes), 1 if times is None else len(times), report)
    _write_hdf(path, steps, times)


def export_collection_of_steps(
    store: str | os.PathLike[str],
    times: Sequence[float],
    path: Path,
    threads: int | None = None,
    report: Progress | None = None,
) -> None:
    """Write a series of meshes as a collection (.pvd) with a file for each step.

    Raises the errors of `export_steps`.
    """
    _check_steps(times, path)
    folder, memory = path.with_suffix(""), _core.memory_limit()
    folder.mkdir()
    tasks = [(os.fspath(store), n, folder, threads, memory) for n in range(len(times))]
    root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
    collection = ElementTree.SubElement(root, "Collection")
    names = _reported(_in_child(write_step, tasks, path), len(times), report)
    for time, name in zip(times, names, strict=True):
        # repr gives every digit of a time.
        about = {"timestep": repr(time), "part": "0", "file": f"{folder.name}/{name}"}
        ElementTree.SubElement(collection, "DataSet", about)
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


def _check_steps(times: Sequence[float] | None, path: Path) -> None:
    if path.suffix.lower() not in STEPS:
        raise _core.UnsupportedError(
            f"{path.name}: expected the suffix {' or '.join(STEPS)} for time steps; "
            "ambar.open(...)[number].read() returns a step, which PyVista saves"
        )
    if times is not None and any(b <= a for a, b in pairwise(times)):
        raise _core.UnsupportedError(f"{path.name}: the times {times} do not increase")


def _reported(items: Iterable[Any], total: int, report: Progress | None) -> Iterator[Any]:
    """Yield items, and report each one that the caller has finished."""
    for number, item in enumerate(items):
        yield item
        if report is not None:
            report(number + 1, total)


def _write_hdf(path: Path, meshes: Iterable[Any], times: Sequence[float] | None) -> None:
    from ambar.mesh.files.vtkhdf import VtkHdfFile

    h5py = require("h5py", purpose="writing VTKHDF", install="ambar[mesh]")
    with hdf5_file(h5py, path, libver=("earliest", "v110")) as file:
        writer = VtkHdfFile(file.create_group("VTKHDF"), times)
        for mesh in meshes:
            _check_space(mesh, path)
            writer.add(mesh)
        writer.finish()


def _to_writable(mesh: Any, suffix: str = ".vtp") -> Any:
    """Return a point set as a surface of vertices if PyVista does not write it with the suffix."""
    if mesh.GetClassName() in ("vtkPointSet", "PointSet") and suffix not in mesh._WRITERS:
        return mesh.cast_to_polydata()
    return mesh


def _save(mesh: Any, path: Path) -> None:
    """Write a mesh by PyVista or meshio."""
    from ambar.mesh.files.export_checks import check_hdf, check_xml

    suffix, library = path.suffix.lower(), pyvista()
    if suffix == VTKHDF:
        check_hdf(mesh)
    elif suffix in _XML:
        check_xml(mesh)
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

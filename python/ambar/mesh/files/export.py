"""Meshes in stores as files of other programs, by the suffix: one, or time steps."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ambar import _core
from ambar._util.disk_space import check_free_space
from ambar._util.hdf5_file import hdf5_file
from ambar._util.optional import require
from ambar._util.scratch import already_there, publish_all, scratch_folder
from ambar.kinds.request import Progress
from ambar.mesh.files.pyvista_readers import VTK_SUFFIXES, pyvista, raise_vtk_errors
from ambar.mesh.files.tables import TABLE_WRITERS, columns_of
from ambar.mesh.read import read_mesh
from ambar.parallel.workers import Failure, Workers

if TYPE_CHECKING:
    from ambar.mesh.steps import Steps

VTKHDF = ".vtkhdf"
STEPS = (VTKHDF, ".pvd")
"""Of the files that hold several time steps."""
_XML = (".vti", ".vtr", ".vts", ".vtp", ".vtu", ".vtm", ".vtpd")


def export_mesh(
    store: str | os.PathLike[str], target: str | os.PathLike[str], threads: int | None = None
) -> None:
    """Write a mesh as a file of the format that the suffix of `target` names.

    PyVista writes ``.vtkhdf``, VTK's XML and legacy formats, ``.stl``, ``.ply`` and others, meshio
    those that PyVista does not. A point set becomes a surface of vertices where PyVista writes no
    point sets in that format. A table becomes ``.csv``, or ``.parquet`` by PyArrow.

    Raises
    ------
    FileExistsError
        If there is something at `target`.
    UnsupportedError
        If PyVista is not installed, or writes no such objects in that format; if the format cannot
        keep what the mesh has.
    OSError
        If the file system refuses; nothing is left then.
    """
    with _complete(target) as path:
        if path.suffix.lower() in _XML:
            lost = _write_in_child(os.fspath(store), path, Path(target), threads)
        else:
            lost = write_file(os.fspath(store), path, Path(target), threads)
    if lost:
        warnings.warn(
            f"{path.name}: the format has not kept the arrays {', '.join(lost)}", stacklevel=2
        )


def _write_in_child(store: str, path: Path, place: Path, threads: int | None) -> list[str]:
    """Call `write_file` in another process, because VTK's XML writers can crash.

    When a write fails, they free uninitialized memory.
    """
    task = (store, path, place, threads, _core.memory_limit())
    with Workers(1) as workers:
        [(_, outcome)] = workers.map(write_file, [task])
    return list(_successful(outcome, place))


def _successful(outcome: Any, place: Path) -> Any:
    """Return the result of a child that wrote to `place`; raise the error that it had."""
    if not isinstance(outcome, Failure):
        return outcome
    if outcome.has_died:
        raise OSError(
            errno.EIO,
            f"VTK could not write it, {outcome.why}; check the free disk space and memory",
            str(place),
        )
    if isinstance(outcome.error, OSError):
        raise OSError(outcome.error.errno, outcome.error.strerror, str(place))
    raise outcome.error or _core.AmbarError(f"{place}: {outcome.why}")


def write_file(
    store: str, path: Path, place: Path, threads: int | None, memory: int | None = None
) -> list[str]:
    """Write a mesh to `path`, which is to be at `place`; return the arrays that are lost.

    `memory` is the limit of `ambar.limits`, for a process of its own.
    """
    if memory is not None:
        _core.set_memory_limit(memory)
    mesh = read_mesh(store, threads=threads)
    if mesh.IsA("vtkOverlappingAMR") and path.suffix.lower() == VTKHDF:
        _write_hdf(path, place, [mesh], None)
        return []
    if mesh.IsA("vtkTable"):
        _save_table(mesh, path, place)
        return []
    mesh = _with_writers(mesh, path.suffix.lower())
    if not hasattr(mesh, "save"):
        raise _core.UnsupportedError(
            f"{store} holds a {mesh.GetClassName()}, which PyVista does not write"
        )
    _save(pyvista(), mesh, path, place)
    return _lost(mesh, path)


def _lost(mesh: Any, path: Path) -> list[str]:
    """Return the arrays that a format has not kept: many that are not VTK's hold shapes only."""
    if path.suffix.lower() in VTK_SUFFIXES or not hasattr(mesh, "array_names"):
        return []
    try:
        with raise_vtk_errors(pyvista()):
            kept = pyvista().read(path).array_names
    except Exception:
        return []  # of a format that is only written
    return [name for name in mesh.array_names if name not in kept]


def export_steps(
    meshes: Iterable[Any],
    times: Sequence[float] | None,
    target: str | os.PathLike[str],
    report: Progress | None = None,
) -> None:
    """Write meshes over time as one VTKHDF file.

    Parameters
    ----------
    meshes
        VTK's objects, one a step; each is asked for when those before it are written.
    times
        Their times; None for a mesh alone.
    target
        The file, its suffix ``.vtkhdf``.
    report
        A function called with the number of steps written and that of all.

    Raises
    ------
    FileExistsError
        If there is something at `target`.
    UnsupportedError
        If the suffix is another; if the format cannot keep what the meshes have.
    OSError
        If the file system refuses; nothing is left then.
    """
    _check_steps(times, target)
    meshes = map(_with_writers, meshes)
    with _complete(target) as path:
        total = 1 if times is None else len(times)
        steps = meshes if times is None else _told(meshes, total, report)
        _write_hdf(path, Path(target), steps, times)


def export_collection_of_steps(
    store: str | os.PathLike[str],
    times: Sequence[float],
    target: str | os.PathLike[str],
    threads: int | None = None,
    report: Progress | None = None,
) -> None:
    """Write a series of meshes as a collection (.pvd) with a file for each step.

    Raises as `export_steps` does.
    """
    _check_steps(times, target)
    place = Path(target)
    with _complete(target) as path:
        folder = path.with_suffix("")
        folder.mkdir()
        steps = [
            (os.fspath(store), number, folder, place.with_suffix(""), threads, _core.memory_limit())
            for number in range(len(times))
        ]
        root = ElementTree.Element("VTKFile", type="Collection", version="0.1")
        collection = ElementTree.SubElement(root, "Collection")
        with Workers(1) as workers:
            written = (_successful(out, place) for _, out in workers.map(write_step, steps))
            for at, name in zip(times, _told(written, len(times), report), strict=True):
                # repr gives every digit of a time.
                about = {"timestep": repr(at), "part": "0", "file": f"{folder.name}/{name}"}
                ElementTree.SubElement(collection, "DataSet", about)
        ElementTree.indent(root)
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def write_step(
    store: str, number: int, folder: Path, place: Path, threads: int | None, memory: int
) -> str:
    """Write a step of a series into `folder`, which is to be at `place`; return the file's name."""
    _core.set_memory_limit(memory)
    mesh = _with_writers(_steps(store).meshes[number].read(threads=threads))
    name = f"step_{number:06d}{_suffix_of(mesh)}"
    _save(pyvista(), mesh, folder / name, place / name)
    return name


@lru_cache(1)
def _steps(store: str) -> Steps:
    """Return the meshes of a store; a process opens it once."""
    from ambar.mesh.steps import steps_of

    return steps_of(store)


def _check_steps(times: Sequence[float] | None, target: str | os.PathLike[str]) -> None:
    if Path(target).suffix.lower() not in STEPS:
        raise _core.UnsupportedError(
            f"{os.fspath(target)}: time steps become {' or '.join(STEPS)}; "
            "ambar.open(...)[number].read() returns a step, which PyVista saves"
        )
    if times is not None and any(b <= a for a, b in pairwise(times)):
        raise _core.UnsupportedError(f"{os.fspath(target)}: the times {times} do not grow")


def _told(steps: Iterable[Any], total: int, report: Progress | None) -> Iterator[Any]:
    for number, step in enumerate(steps):
        yield step
        if report is not None:
            report(number + 1, total)


@contextmanager
def _complete(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a place to write to; what is there at the end comes to `target`, after an error none."""
    place = Path(target)
    if place.exists():
        raise already_there(place)
    # What an error leaves of a file, or of the folder of pieces beside it, goes with this folder.
    with scratch_folder(place.parent) as folder:
        yield folder / place.name
        publish_all(folder, place.parent, place.name)


def _write_hdf(
    path: Path, place: Path, meshes: Iterable[Any], times: Sequence[float] | None
) -> None:
    """Write meshes to `path`, which is to be at `place`."""
    from ambar.mesh.files.vtkhdf import VtkHdfFile

    h5py = require("h5py", purpose="writing VTKHDF", install="ambar[mesh]")
    with hdf5_file(h5py, path, place, libver=("earliest", "v110")) as file:
        made = VtkHdfFile(file.create_group("VTKHDF"), times)
        for mesh in meshes:
            _check_room(mesh, place)
            made.add(mesh)
        made.finish()


def _with_writers(mesh: Any, suffix: str = ".vtp") -> Any:
    """Return a point set as a surface of vertices, for a suffix that PyVista has no writer for."""
    if mesh.IsA("vtkPointSet") and mesh.GetClassName() in ("vtkPointSet", "PointSet"):
        return mesh if suffix in mesh._WRITERS else mesh.cast_to_polydata()
    return mesh


def _save_table(table: Any, path: Path, place: Path) -> None:
    """Write a table to `path`, which is to be at `place`."""
    write = TABLE_WRITERS.get(path.suffix.lower())
    if write is None:
        raise _core.UnsupportedError(
            f"{place}: a table is written as {' or '.join(TABLE_WRITERS)}, not as "
            f"{path.suffix or 'a file without a suffix'}"
        )
    write(columns_of(table), path)


def _suffix_of(mesh: Any) -> str:
    """Return the suffix of VTK's XML format for a mesh; raises UnsupportedError without one."""
    for suffix in getattr(mesh, "_WRITERS", ()):
        if suffix in _XML:
            return str(suffix)
    raise _core.UnsupportedError(f"PyVista does not write a {type(mesh).__name__} for ParaView")


def _save(library: Any, mesh: Any, path: Path, place: Path) -> None:
    """Write a mesh to `path`, which is to be at `place`."""
    from ambar.mesh.files.export_checks import check_hdf, check_xml

    suffix = path.suffix.lower()
    if suffix == VTKHDF:
        check_hdf(mesh)
    elif suffix in _XML:
        check_xml(mesh)
    known = sorted({str(suffix) for suffix in getattr(mesh, "_WRITERS", ())})
    _check_room(mesh, place)
    try:
        with raise_vtk_errors(library):
            if suffix in known:
                mesh.save(path)
            else:
                library.save_meshio(path, mesh)
        _name_as_asked(path)
    except OSError:
        raise
    except library.VTKExecutionError as error:
        what = " ".join(str(error).split())
        raise OSError(
            errno.EIO, f"VTK could not write it: {what:.300}; is there room?", str(place)
        ) from error
    except Exception as error:
        # What goes wrong in either of them has no type of its own.
        raise _core.UnsupportedError(
            f"{place}: a {type(mesh).__name__} is not written as {path.suffix or 'a file'} "
            f"({error}); there are {', '.join(known)}"
        ) from error


def _check_room(mesh: Any, place: Path) -> None:
    """Raise OSError where the mesh may not fit: VTK's writers can crash when a write fails."""
    check_free_space(mesh.GetActualMemorySize() * 1024, place)


def _name_as_asked(path: Path) -> None:
    """Rename the file that a writer made under another name, as VTK's of EnSight does: u.0.case.

    Raises ValueError if there is not exactly one file of that suffix.
    """
    if path.exists():
        return
    made = sorted(file.name for file in path.parent.iterdir())
    same = [name for name in made if Path(name).suffix == path.suffix]
    if len(same) != 1:
        raise ValueError(f"in place of {path.name} the files {', '.join(made) or 'none'} were made")
    (path.parent / same[0]).rename(path)

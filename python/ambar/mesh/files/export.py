"""Export of meshes, time steps and AMR cells to files of other programs, by their suffix."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar._util.output_files import check_free_space, hdf5_file
from ambar._util.progress import Progress
from ambar._util.user_warnings import warn
from ambar.kinds.request import Export, ExportRequest
from ambar.mesh.files.formats import (
    STORES,
    is_mesh_file,
    is_vtk_format,
    is_vtk_xml,
    meshio_formats,
    pyvista_writes,
    suffix_of,
    suffixes_to_write,
)
from ambar.mesh.files.meshio_files import write_by_meshio
from ambar.mesh.files.pyvista_readers import MeshFile, UnreadableFileError, raise_vtk_errors
from ambar.mesh.mesh import read_mesh
from ambar.mesh.vtk.meshio_objects import pyvista
from ambar.parallel.workers import Failure, Workers

if TYPE_CHECKING:
    from ambar.mesh.steps import Steps

_VTKHDF = ".vtkhdf"
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
_VTK_PLACE = re.compile(r"ERROR: In \w+\.cxx, line \d+ \w+ \(\w+\): ")
_CRASHING = (".ply",)
"""Formats besides XML whose writers crash: that of PLY, if coordinates of textures are float64."""
_BIT, _STRING = 1, 13  # VTK_BIT, VTK_STRING


def export_mesh(request: ExportRequest) -> Export:
    """Write a mesh as a file of the format with the suffix of the target.

    PyVista writes the formats that it knows for the type of the mesh, meshio other formats. Where
    PyVista writes no point sets in a format, they are written as surfaces of vertices. Tables are
    written as ``.csv`` or ``.parquet`` by pandas. The report and a warning name what the format
    does not hold.

    Raises
    ------
    UnsupportedError
        If PyVista is not installed, or no library writes such objects in that format; if the format
        does not support a part of the mesh.
    OSError
        If the file system reports an error.
    """
    path = request.target
    task = (os.fspath(request.store), path, request.threads, _core.memory_limit())
    suffix = suffix_of(path)
    if is_vtk_xml(suffix) or suffix in _CRASHING:
        [left_out] = _in_child(write_file, [task], path)
    else:
        left_out = write_file(*task)
    if left_out:
        names = ", ".join(left_out)
        warn(f"{path.name}: the format does not hold unchanged: {names}")
    return Export("", [], 0.0, left_out=left_out)


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
                why = (
                    f"VTK cannot write it, {outcome.why}; check the free disk space and memory, or "
                    "choose another format"
                )
                raise OSError(errno.EIO, why, str(path))
            elif isinstance(outcome.error, OSError):
                raise OSError(outcome.error.errno, outcome.error.strerror, str(path))
            else:
                raise outcome.error or _core.AmbarError(f"{path.name}: {outcome.why}")


def write_file(store: str, path: Path, threads: int | None, memory: int) -> dict[str, str]:
    """Write a mesh to a file; return what the file does not hold unchanged, and why.

    `memory` is the limit of `ambar.limits`, for another process.
    """
    _core.set_memory_limit(memory)
    mesh, suffix = read_mesh(store, threads=threads), suffix_of(path)
    if mesh.IsA("vtkTable"):
        _write_table(mesh, path)
        return {}
    if not hasattr(mesh, "save"):
        raise _core.UnsupportedError(
            f"{store} contains a {mesh.GetClassName()}, which PyVista does not write"
        )
    arrays = _arrays(mesh)
    writable = _to_writable(mesh, suffix)
    _save(writable, path)
    # VTK's own formats hold everything in which `_problem` finds none.
    is_complete = is_vtk_format(suffix) and suffix in writable._WRITERS
    return {} if is_complete else _losses(mesh, arrays, path)


def _losses(mesh: Any, arrays: dict[str, Any], path: Path) -> dict[str, str]:
    """Return what a written file does not hold unchanged, and why: it is read again.

    Raises UnsupportedError if the file contains none of the points or cells.
    """
    suffix = suffix_of(path)
    if not is_mesh_file(path):
        why = f"not checked, as no library reads {suffix} files"
        return dict.fromkeys(arrays, why)
    try:
        file = MeshFile(path)
        written = file.read()
    except _core.CorruptError as error:
        reason = error.reason if isinstance(error, UnreadableFileError) else str(error)
        raise _unsupported(mesh, path, f"the written file cannot be read ({reason})") from error
    if _has_shapes(mesh) and not _has_shapes(written):
        raise _unsupported(mesh, path, "the format holds none of its types of cells")
    changed = _changed_shape(mesh, written) | _changed_arrays(arrays, _arrays(written))
    # The reader rounds values that the file may hold exactly.
    rounded = {name for name, why in changed.items() if "float32" in why} & file.left_out.keys()
    return changed | {name: file.left_out[name] for name in rounded}


def _changed_shape(mesh: Any, written: Any) -> dict[str, str]:
    left_out = {}
    for what in ("Points", "Cells"):
        kept, count = (getattr(each, f"GetNumberOf{what}")() for each in (written, mesh))
        if kept < count:
            left_out[what.lower()] = f"the file has {kept:,} of {count:,}"
    points = _points(mesh), _points(written)
    if points[0] is not None and points[1] is not None and (why := _change(*points)):
        left_out.setdefault("points", why)
    return left_out


def _changed_arrays(arrays: dict[str, Any], found: dict[str, Any]) -> dict[str, str]:
    left_out = {}
    for name, values in arrays.items():
        others = [name] if name in found else _same(values, found)
        if not others:
            left_out[name] = "not in the file"
            continue
        parts = [values] if len(others) == 1 else values.T
        changes = [_change(part, found[one]) for part, one in zip(parts, others, strict=True)]
        why = next(filter(None, changes), None)
        if others != [name]:
            renamed = "its name is" if len(others) == 1 else "the names of its components are"
            renamed = f"{renamed} {', '.join(map(repr, others))} in the file"
            why = renamed if why is None else f"{renamed}, {why}"
        if why is not None:
            left_out[name] = why
    return left_out


def _same(values: Any, found: dict[str, Any]) -> list[str]:
    """Return the name of an equal array, those of equal arrays of each component, or nothing."""
    for parts in ([values], values.T if values.ndim == 2 else []):
        names = [
            next((name for name, kept in found.items() if _change(part, kept) != _OTHER), None)
            for part in parts
        ]
        known = [name for name in names if name is not None]
        if known and len(known) == len(names):
            return known
    return []


_OTHER = "other values in the file"
_ROUNDED = 1e-5
"""Largest difference of values that were written as float32 or text, relative to the largest."""


def _change(values: Any, kept: Any) -> str | None:
    """Return how an array in a file differs from the original, except in order; None if equal.

    The file may repeat rows, such as the points that two blocks share.
    """
    if len(kept) > len(values) > 0 and kept.shape[1:] == values.shape[1:]:
        values, kept = _without_repeats(values, kept)
    if values.shape != kept.shape or "U" in (values.dtype.kind, kept.dtype.kind):
        return None if np.array_equal(values, kept) else _OTHER
    for one, two in ((values, kept), _sorted_rows(values, kept)):
        if _is_equal(one, two):
            is_shorter = kept.dtype.kind == "f" and kept.dtype.itemsize < values.dtype.itemsize
            is_changed = values.dtype.kind != kept.dtype.kind or is_shorter
            return f"{kept.dtype} in place of {values.dtype}" if is_changed else None
        if _is_close(one, two):
            return f"rounded to {kept.dtype}" if values.dtype != kept.dtype else "rounded"
    return _OTHER


def _without_repeats(values: Any, kept: Any) -> tuple[Any, Any]:
    """Return the different rows of both arrays, as the dtype of `kept` represents them."""
    if "U" in (values.dtype.kind, kept.dtype.kind):
        return values, kept
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = values.astype(kept.dtype)
    first = np.unique(rounded, axis=0, return_index=True)[1]
    return values[first], np.unique(kept, axis=0)


def _sorted_rows(values: Any, kept: Any) -> tuple[Any, Any]:
    """Return both arrays with their rows in ascending order; that of rounded values in `values`."""
    dtype = kept.dtype if kept.dtype.kind == "f" else values.dtype
    rows = [each.reshape(len(each), math.prod(each.shape[1:])) for each in (values, kept)]
    one, two = (each[np.lexsort(each.astype(dtype).T[::-1])] for each in rows)
    return one, two


def _is_equal(values: Any, kept: Any) -> bool:
    """Whether all values are equal: integers as integers, wider floats after a conversion."""
    if values.dtype.kind in "iu" and kept.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = kept.astype(values.dtype)
        return np.array_equal(values, kept) and np.array_equal(values, whole)
    if values.dtype.kind == kept.dtype.kind == "f":
        shorter = min(values.dtype, kept.dtype, key=lambda dtype: dtype.itemsize)
        return np.array_equal(values, kept.astype(shorter), equal_nan=True)
    return np.array_equal(values, kept)


def _is_close(values: Any, kept: Any) -> bool:
    """Whether values differ as after a conversion to float32 or text; False for integers."""
    if kept.dtype.kind != "f":
        return False
    one, two = values.astype(np.float64), kept.astype(np.float64)
    limit = _ROUNDED * np.abs(one).max(initial=0.0, where=np.isfinite(one))
    with np.errstate(invalid="ignore"):
        return bool(
            np.all((np.abs(one - two) <= limit) | (one == two) | (np.isnan(one) & np.isnan(two)))
        )


def _data_sets(mesh: Any) -> Iterator[Any]:
    """Yield a mesh, or the data sets in its blocks."""
    if mesh is not None and mesh.IsA("vtkCompositeDataSet"):
        for block in mesh:
            yield from _data_sets(block)
    elif mesh is not None:
        yield mesh


def _points(mesh: Any) -> Any:
    """Return the points of a mesh, also those of its blocks; None if they are not stored."""
    parts = list(_data_sets(mesh))
    has_points = bool(parts) and all(hasattr(part, "points") for part in parts)
    return np.concatenate([part.points for part in parts]) if has_points else None


def _arrays(mesh: Any) -> dict[str, Any]:
    """Return the arrays of a mesh by name; those of its blocks are joined where they fit."""
    parts: dict[str, list[Any]] = {}
    is_composite = mesh.IsA("vtkCompositeDataSet")  # which has field data of its own
    for owner in (*_data_sets(mesh), *[mesh] * is_composite):
        for data in ("point_data", "cell_data", "field_data", "row_data"):
            for name, values in getattr(owner, data, {}).items():
                # A single string comes as str.
                parts.setdefault(name, []).append(np.atleast_1d(np.asarray(values)))
    return {name: _joined(found) for name, found in parts.items()}


def _joined(parts: list[Any]) -> Any:
    """Return arrays as one, or the last one if their shapes or kinds differ."""
    shapes = {part.shape[1:] for part in parts}
    kinds = {part.dtype.kind for part in parts}
    is_one = len(parts) == 1 or len(shapes) > 1 or len(kinds) > 1
    return parts[-1] if is_one else np.concatenate(parts)


def _has_shapes(mesh: Any) -> bool:
    """Whether a mesh has cells that are not vertices."""
    if mesh.IsA("vtkCompositeDataSet"):
        return any(block is not None and _has_shapes(block) for block in mesh)
    return hasattr(mesh, "GetMaxSpatialDimension") and mesh.GetMaxSpatialDimension() > 0


def _unsupported(mesh: Any, path: Path, why: str) -> _core.UnsupportedError:
    suffix, writable = suffix_of(path), _to_writable(mesh)
    others = [each for each in suffixes_to_write(writable) if each != suffix]
    # VTK's formats of this type hold the mesh, unless names or types of arrays are not supported.
    known = [each for each in getattr(writable, "_WRITERS", ()) if is_vtk_format(each)] or others
    known = [each for each in others if each in known and _problem(writable, each) is None]
    listed = f"; formats that hold it: {', '.join(known)}" if known else ""
    is_of_surfaces = suffix in getattr(pyvista().PolyData, "_WRITERS", ())
    is_of_cells = suffix in getattr(pyvista().UnstructuredGrid, "_WRITERS", ()) or (
        not is_of_surfaces and bool(meshio_formats(path, of_writers=True))
    )
    if pyvista_writes(mesh, suffix):
        pass
    elif is_of_cells and mesh.IsA("vtkCompositeDataSet"):
        why = "the format has no blocks"
        listed += (
            ". Or join its blocks, and export NEW: "
            "ambar.write_mesh(ambar.read_mesh(STORE).combine(), NEW)"
        )
    elif is_of_surfaces:
        why = "the format holds surfaces only"
        listed += (
            ". Or write its surface: ambar.read_mesh(STORE).extract_surface().triangulate()"
            f".save({path.name!r})"
        )
    return _core.UnsupportedError(
        f"{path.name}: {type(mesh).__name__} cannot be written as {suffix or 'a file'}: {why}"
        f"{listed}"
    )


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
            f"{path.name}: expected the suffix .pvd for time steps, found {path.suffix!r}; choose "
            f"{path.stem}.pvd, which lists a file for each step"
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
    suffix = next((known for known in getattr(mesh, "_WRITERS", ()) if is_vtk_xml(known)), None)
    if suffix is None:
        raise _core.UnsupportedError(f"PyVista does not write a {type(mesh).__name__} as VTK's XML")
    if (why := _problem(mesh, suffix)) is not None:
        raise _core.UnsupportedError(
            f"{folder.name}.pvd: step {number} cannot be written as {suffix}: {why}, or save the "
            f"steps in another format: ambar.open(...)[{number}].read() returns one for PyVista"
        )
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
    require("vtkmodules", purpose="writing VTKHDF", install="ambar[mesh]")
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
                f"{time}; write single steps: "
                "ambar.open_mesh_series(STORE)[NUMBER].read().save(FILE)"
            )


def _to_writable(mesh: Any, suffix: str = ".vtp") -> Any:
    """Return a point set as a surface of vertices if PyVista does not write it with the suffix."""
    if mesh.GetClassName() in ("vtkPointSet", "PointSet") and suffix not in mesh._WRITERS:
        return mesh.cast_to_polydata()
    return mesh


def _save(mesh: Any, path: Path) -> None:
    """Write a mesh by PyVista or meshio."""
    suffix, library = suffix_of(path), pyvista()
    if (why := _problem(mesh, suffix)) is not None:
        raise _unsupported(mesh, path, why)
    is_known = pyvista_writes(mesh, suffix) or bool(meshio_formats(path, of_writers=True))
    is_by_pyvista = pyvista_writes(mesh, suffix) or not is_known
    _check_space(mesh, path)
    try:
        with raise_vtk_errors(library):
            if is_by_pyvista:  # also raises the error for a package that is not installed
                mesh.save(path)
            else:
                write_by_meshio(mesh, path)
        _rename_output(path)
    except ImportError:
        raise
    except OSError as error:
        if error.errno is None:  # PyVista, which found no file
            raise _unsupported(mesh, path, "VTK wrote no file") from error
        raise
    except library.VTKExecutionError as error:
        # Of several errors, the first one has the reason.
        messages = _VTK_PLACE.split(" ".join(str(error).split()))
        reason = next(filter(None, messages), "no reason").strip()
        if not is_vtk_format(suffix):
            raise _unsupported(mesh, path, reason) from error
        why = f"VTK cannot write it: {reason:.300}; check the free disk space"
        raise OSError(errno.EIO, why, str(path)) from error
    except Exception as error:  # PyVista and meshio raise errors of many types
        reason = str(error) or repr(error)
        if not is_known:  # PyVista lists all of its formats
            reason = "neither PyVista nor meshio writes such meshes in this format"
        raise _unsupported(mesh, path, reason) from error


def _check_space(mesh: Any, path: Path) -> None:
    """Raise OSError if the mesh may not fit: VTK's writers can crash when a write fails."""
    check_free_space(mesh.GetActualMemorySize() * 1024, path)


def _problem(mesh: Any, suffix: str) -> str | None:
    """Return why a mesh is not written in a format; None for formats other than those of VTK.

    Formats of VTK may not support names, bits or strings of a mesh.
    """
    if suffix in STORES:
        return "it would be a store; copy the file"
    if suffix != _VTKHDF and not is_vtk_xml(suffix):
        return None
    return next(_problems(mesh, is_hdf=suffix == _VTKHDF), None)


def _problems(
    mesh: Any, where: str = "the mesh", name: str | None = None, *, is_hdf: bool
) -> Iterator[str]:
    """Yield the names, bits, strings and partitions that VTKHDF or VTK's XML does not support."""
    from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet

    names = [] if name is None else [(where, name)]
    lists = {of: getattr(mesh, get)() for of, get in _LISTS.items() if hasattr(mesh, get)}
    for of, data in lists.items():
        for index in range(data.GetNumberOfArrays() if data is not None else 0):
            array = data.GetAbstractArray(index)
            names.append((f"{where}: {of}: an array", array.GetName()))
            kind = array.GetDataType()
            if is_hdf and (kind == _BIT or (kind == _STRING and of != "field data")):
                yield (
                    f"{where}: {of}: the array {array.GetName()!r} has "
                    f"{'bits' if kind == _BIT else 'strings'}, which VTKHDF does not support"
                )
        ids = data.GetPedigreeIds() if hasattr(data, "GetPedigreeIds") else None
        if ids is not None and ids.GetDataType() == _STRING and not is_hdf:
            yield (
                f"{where}: {of}: the pedigree ids {ids.GetName()!r} are strings, which VTK's XML "
                "does not support"
            )
    if is_hdf and mesh is not None and mesh.IsA("vtkPartitionedDataSet"):
        yield from _differences_of_partitions(mesh, where)
    signs, listed, of = _HDF_NAMES if is_hdf else _XML_NAMES
    for what, found in names:
        if not found or any(sign in found for sign in signs):
            yield (
                f"{what} has the name {found!r}, and {of} supports names without {listed}; "
                "rename it"
            )
    for count, get in _COMPOSITES:
        for index in range(getattr(mesh, count)() if hasattr(mesh, get) else 0):
            info = mesh.GetMetaData(index) if mesh.HasMetaData(index) else None
            key = vtkCompositeDataSet.NAME()
            block = info.Get(key) if info is not None and info.Has(key) else None
            part = getattr(mesh, get)(index)
            yield from _problems(part, f"{where}: block {index}", block, is_hdf=is_hdf)


def _differences_of_partitions(mesh: Any, where: str) -> Iterator[str]:
    """Yield why VTKHDF, where partitions are parts of one mesh, does not support these."""
    parts = [mesh.GetPartition(index) for index in range(mesh.GetNumberOfPartitions())]
    for index, part in enumerate(parts):
        if part is None or not part.GetNumberOfPoints():
            yield f"{where}: partition {index} is empty, which VTKHDF does not support"
        elif _description(part) != _description(parts[0]):
            yield (
                f"{where}: partition {index} has another type or other arrays than the first one, "
                "which VTKHDF does not support"
            )


def _description(mesh: Any) -> list[Any]:
    """Return the type of a mesh and of its arrays."""
    found = [mesh.GetClassName()]
    for get in _LISTS.values():
        data = getattr(mesh, get)()
        arrays = map(data.GetAbstractArray, range(data.GetNumberOfArrays()))
        found.append(
            {
                array.GetName(): (array.GetDataType(), array.GetNumberOfComponents())
                for array in arrays
            }
        )
    return found


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

"""Conversion of mesh files to stores: one mesh, or time steps to a series of meshes."""

from __future__ import annotations

import glob
import json
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

from ambar import _core
from ambar._util.progress import progress_function
from ambar._util.user_warnings import warn
from ambar.kinds.request import Conversion, ConvertRequest
from ambar.kinds.request import Path as AnyPath
from ambar.mesh.files.formats import is_mesh_file
from ambar.mesh.files.pyvista_readers import MeshFile, size_of
from ambar.mesh.series import open_series_for_writing
from ambar.mesh.vtk.meshio_objects import pyvista
from ambar.mesh.write import write_mesh


@dataclass(frozen=True, kw_only=True)
class MeshRequest(ConvertRequest):
    """The options of `ambar.convert` for meshes."""

    reorder: bool = False


def convert_mesh(request: MeshRequest) -> Conversion:
    """Convert a file that PyVista or meshio reads; one with several time steps to a series.

    Raises the errors of `ambar.convert`; UnsupportedError if PyVista is not installed, CorruptError
    if it cannot read the file.
    """
    start = time.perf_counter()
    path = Path(request.paths[0])
    if path.suffix.lower() in _PICTURES:
        warn(
            f"{path.name} is a picture: it becomes a mesh with a point for each pixel, and colours "
            "as values"
        )
    file = MeshFile(path)
    size = size_of(path)
    if file.times:
        steps = [FileStep([path], [None], at, number) for number, at in enumerate(file.times)]
        return _convert_steps(request, steps, [size // len(steps)] * len(steps), file)
    request.refuse_append()
    with progress_function(request.progress, f"converting {path.name}") as report:
        mode: Literal["w-", "w"] = "w" if request.mode == "w" else "w-"
        write_mesh(
            file.read(), request.target, mode=mode, reorder=request.reorder, **request.writing
        )
        if report is not None:
            report(size, size)
    seconds = time.perf_counter() - start
    stored = request.stored_bytes()
    done = Conversion(os.fspath(request.target), size, stored, seconds, [path.name])
    return replace(done, left_out=file.left_out)


def convert_steps(request: MeshRequest) -> Conversion:
    """Convert files of time steps: a .pvd, a .series, or numbered files, to a series of meshes.

    One mesh is in memory at a time. Raises the errors of `ambar.convert`. If a file cannot be read,
    the store has the steps before it, and mode "a" adds the others.
    """
    steps = steps_in(request.paths)
    sizes = [sum(size_of(path) for path in step.paths) for step in steps]
    return _convert_steps(request, steps, sizes, None)


def _convert_steps(
    request: MeshRequest, steps: list[FileStep], sizes: list[int], file: MeshFile | None
) -> Conversion:
    start, target = time.perf_counter(), request.target
    writing = {"reorder": request.reorder, **request.writing}
    with (
        progress_function(request.progress, f"converting {Path(request.paths[0]).name}") as report,
        open_series_for_writing(target, request.mode, **writing) as series,
    ):
        existing, pairs = len(series), zip(steps, series.times, strict=False)
        if existing > len(steps) or any(step.time not in (None, at) for step, at in pairs):
            raise _core.InvalidError(
                f"{os.fspath(target)} has {existing} steps that are not the first ones of "
                f"{request.name}: "
                'convert to another store, or replace it with mode="w"'
            )
        left_out: dict[str, str] = {}
        for number in range(existing, len(steps)):
            mesh, at = steps[number].read(left_out, file), steps[number].time
            at = time_of(mesh) if at is None else at
            if number and (at is None) != (series.times[-1] is None):
                raise _core.InvalidError(
                    f"{steps[number].name}: expected {'a' if at is None else 'no'} time, as for "
                    f"{steps[number - 1].name}, found {at}; list the times of all files in a .pvd "
                    "file, and convert that to another store"
                )
            series.add(mesh, at)
            if report is not None:
                report(sum(sizes[: number + 1]), sum(sizes))
    names = [step.name for step in steps]
    return Conversion(
        os.fspath(target),
        sum(sizes[existing:]),
        request.stored_bytes(),
        time.perf_counter() - start,
        names[existing:],
        names[:existing],
        left_out=left_out,
    )


_COLLECTIONS = (".pvd", ".series")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".bmp")
"""Suffixes of files that seldom hold results of a simulation."""
_TIMES = ("TimeValue", "TIME")
"""The field arrays in which VTK's writers, and VisIt, store the time."""


@dataclass(frozen=True)
class FileStep:
    """The file, or the files of parts, of a time step."""

    paths: list[Path]
    """The files."""
    parts: list[str | None]
    """The names of the parts; [None] for a single file."""
    time: float | None
    """Its time; None if only the file may contain it."""
    number: int | None = None
    """The number of the step in the file; None if the file has a single one."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        step = "" if self.number is None else f" step {self.number}"
        return f"{self.paths[0].name}{step}"

    def read(self, left_out: dict[str, str], file: MeshFile | None = None) -> Any:
        """Return the mesh, for several parts a MultiBlock. `file` is the file, if it is open.

        What a mesh cannot represent is added to `left_out`, with the reason.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        ValueError
            If a file of a step has several steps.
        CorruptError
            If it cannot be read.
        """
        if file is not None:
            return file.read(self.number or 0)
        meshes = [_read_alone(path, left_out) for path in self.paths]
        if self.parts == [None]:
            return meshes[0]
        blocks = pyvista().MultiBlock()
        for mesh, name in zip(meshes, self.parts, strict=True):
            blocks.append(mesh, name)
        return blocks


def _read_alone(path: Path, left_out: dict[str, str]) -> Any:
    file = MeshFile(path)
    if file.times:
        raise _core.InvalidError(
            f"{path}: expected one time step, found {len(file.times)}: convert the file alone"
        )
    mesh = file.read()
    left_out.update({f"{path.name}: {name}": why for name, why in file.left_out.items()})
    return mesh


def is_timed(paths: Sequence[AnyPath]) -> bool:
    """Whether paths are time steps of meshes: a collection, or several mesh files."""
    if len(paths) == 1 and Path(paths[0]).suffix.lower() in _COLLECTIONS:
        return Path(paths[0]).is_file()
    files = _files(paths)
    has_several = len(paths) > 1 or _is_glob(paths[0])
    return has_several and bool(files) and all(is_mesh_file(path) for path in files)


def steps_in(paths: Sequence[AnyPath]) -> list[FileStep]:
    """Return the time steps in files, sorted by time, or by the numbers in file names.

    Raises
    ------
    CorruptError
        If a collection is damaged.
    FileNotFoundError
        If a file that it lists does not exist.
    """
    path = Path(paths[0])
    suffix = path.suffix.lower() if len(paths) == 1 else ""
    if suffix not in _COLLECTIONS:
        return [FileStep([file], [None], None) for file in _files(paths)]
    steps = _steps_of_collection(path)
    # Checked before the first step is converted, which may take hours.
    missing = [file for step in steps for file in step.paths if not file.exists()]
    if missing:
        raise FileNotFoundError(
            f"{path} lists {missing[0]}, which does not exist ({len(missing)} missing in total): "
            "restore it, or remove it from the list"
        )
    return steps


def time_of(mesh: Any) -> float | None:
    """Return the time in the information or field data of a mesh; None without one."""
    from vtkmodules.vtkCommonDataModel import vtkDataObject

    key = vtkDataObject.DATA_TIME_STEP()
    if mesh.GetInformation().Has(key):
        return float(mesh.GetInformation().Get(key))
    for name in _TIMES:
        array = mesh.GetFieldData().GetArray(name)
        if array is not None and array.GetNumberOfValues() == 1:
            return float(array.GetTuple(0)[0])
    return None


def _is_glob(path: AnyPath) -> bool:
    return glob.has_magic(os.fspath(path)) and not Path(path).exists()


def _files(paths: Sequence[AnyPath]) -> list[Path]:
    """Return the files that match paths and globs, each once, sorted by the numbers in names."""
    found: dict[Path, None] = {}
    for path in paths:
        matches = glob.glob(os.fspath(path)) if _is_glob(path) else [path]  # noqa: PTH207 - of any root
        found.update(dict.fromkeys(map(Path, matches)))
    return sorted(found, key=_natural_order)


def _natural_order(path: Path) -> list[tuple[int, str]]:
    """Return a key that sorts step_9 before step_10."""
    parts = re.split(r"(\d+)", os.fspath(path))
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _steps_of_collection(path: Path) -> list[FileStep]:
    """Return the steps in a .pvd or a .series, with the files of their parts."""
    is_pvd = path.suffix.lower() == ".pvd"
    by_time: dict[float, list[tuple[int, str, str]]] = {}
    try:
        for at, *part in _listed_in_pvd(path) if is_pvd else _listed_in_series(path):
            by_time.setdefault(_time(at), []).append((int(part[0]), part[1], str(part[2])))
        if not by_time:
            raise ValueError("it lists no files")  # noqa: TRY301 - explained below
    except (ElementTree.ParseError, KeyError, TypeError, ValueError, RecursionError) as error:
        what = "a collection of ParaView" if is_pvd else "a series of ParaView"
        raise _core.CorruptError(
            f"{path}: expected {what}, found a damaged file: {error!s:.200}; restore it from a copy"
        ) from error
    several = any(len(parts) > 1 for parts in by_time.values())
    steps = []
    for at, parts in sorted(by_time.items()):
        ordered = sorted(parts, key=lambda part: part[0])
        names = [name or f"part {number}" for number, name, _ in ordered]
        files = [path.parent / file for _, _, file in ordered]
        steps.append(FileStep(files, [*names] if several else [None], at))
    return steps


def _listed_in_pvd(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield time, part, name and file of each entry of a .pvd, which is XML."""
    root = ElementTree.fromstring(path.read_bytes())  # noqa: S314 - expat bounds entities
    for entry in root.iterfind("Collection/DataSet"):
        name = entry.get("name") or entry.get("group") or ""
        yield entry.get("timestep") or 0, entry.get("part") or 0, name, entry.attrib["file"]


def _listed_in_series(path: Path) -> Iterator[tuple[Any, ...]]:
    """Yield time, part, name and file of each entry of a .series, which is JSON."""
    for entry in json.loads(path.read_bytes())["files"]:
        yield entry["time"], 0, "", entry["name"]


def _time(value: Any) -> float:
    """Return a time; raises ValueError if it is not a finite number."""
    at = float(value)
    if not math.isfinite(at):
        raise ValueError(f"time {value!r}")
    return at

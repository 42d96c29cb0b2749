"""Conversion of mesh files to stores: one mesh, or time steps to a series of meshes."""

from __future__ import annotations

import os
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ambar import _core
from ambar._util.progress import progress_function
from ambar.kinds.request import Conversion, ConvertRequest
from ambar.mesh.files.pyvista_readers import MeshFile, size_of
from ambar.mesh.files.time_steps import FileStep, steps_in, time_of
from ambar.mesh.series import open_series_for_writing
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
    path, target = Path(request.paths[0]), Path(request.target)
    file = MeshFile(path)
    size = size_of(path)
    if file.times:
        steps = [FileStep([path], [None], at, number) for number, at in enumerate(file.times)]
        return _convert_steps(request, steps, [size // len(steps)] * len(steps), file)
    request.refuse_append()
    with progress_function(request.progress, f"converting {path.name}") as report:
        mode: Literal["w-", "w"] = "w" if request.mode == "w" else "w-"
        write_mesh(file.read(), target, mode=mode, reorder=request.reorder, **request.writing)
        if report is not None:
            report(size, size)
    seconds = time.perf_counter() - start
    return Conversion(os.fspath(target), size, size_of(target), seconds, [path.name])


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
    start, target = time.perf_counter(), Path(request.target)
    writing = {"reorder": request.reorder, **request.writing}
    with (
        progress_function(request.progress, f"converting {Path(request.paths[0]).name}") as report,
        closing(open_series_for_writing(target, request.mode, **writing)) as series,
    ):
        existing, pairs = len(series), zip(steps, series.times, strict=False)
        if existing > len(steps) or any(step.time not in (None, at) for step, at in pairs):
            raise _core.InvalidError(
                f"{target} has {existing} steps that are not the first ones of {request.name}: "
                'convert to another store, or replace it with mode="w"'
            )
        for number in range(existing, len(steps)):
            mesh, at = steps[number].read(file), steps[number].time
            series.add(mesh, time_of(mesh) if at is None else at)
            if report is not None:
                report(sum(sizes[: number + 1]), sum(sizes))
    names = [step.name for step in steps]
    return Conversion(
        os.fspath(target),
        sum(sizes),
        size_of(target),
        time.perf_counter() - start,
        names[existing:],
        names[:existing],
    )

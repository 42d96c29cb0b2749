"""Conversion of mesh files to stores: one mesh, or time steps to a series of meshes."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path
from typing import Literal

from ambar import _core
from ambar._util.progress import progress_function
from ambar.kinds.request import Conversion, ConvertRequest
from ambar.mesh.files.pyvista_readers import MeshFile, size_of
from ambar.mesh.files.time_steps import FileStep, steps_in, time_of
from ambar.mesh.series import MeshSeries, open_series_for_writing
from ambar.mesh.write import write_mesh


def convert_mesh(request: ConvertRequest, *, reorder: bool) -> Conversion:
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
        return _convert_steps(request, steps, [size // len(steps)] * len(steps), file, reorder)
    request.refuse_append()
    with progress_function(request.progress, f"converting {path.name}") as report:
        mode: Literal["w-", "w"] = "w" if request.mode == "w" else "w-"
        write_mesh(file.read(), target, mode=mode, reorder=reorder, **request.writing)
        if report is not None:
            report(size, size)
    seconds = time.perf_counter() - start
    return Conversion(os.fspath(target), size, size_of(target), seconds, [path.name])


def convert_steps(request: ConvertRequest, *, reorder: bool) -> Conversion:
    """Convert files of time steps: a .pvd, a .series, or numbered files, to a series of meshes.

    One mesh is in memory at a time. Raises the errors of `ambar.convert`. If a file cannot be read,
    the store has the steps before it, and mode "a" adds the others.
    """
    steps = steps_in(request.paths)
    sizes = [sum(size_of(path) for path in step.paths) for step in steps]
    return _convert_steps(request, steps, sizes, None, reorder)


def _convert_steps(
    request: ConvertRequest,
    steps: list[FileStep],
    sizes: list[int],
    file: MeshFile | None,
    reorder: bool,
) -> Conversion:
    start = time.perf_counter()
    target, writing = request.target, request.writing
    with (
        progress_function(request.progress, f"converting {Path(request.paths[0]).name}") as report,
        closing(
            open_series_for_writing(target, request.mode, reorder=reorder, **writing)
        ) as series,
    ):
        existing = len(series)
        _check_existing(request, series, steps)
        for number in range(existing, len(steps)):
            mesh, at = steps[number].read(file), steps[number].time
            series.add(mesh, time_of(mesh) if at is None else at)
            if report is not None:
                report(sum(sizes[: number + 1]), sum(sizes))
    names = [step.name for step in steps]
    return Conversion(
        os.fspath(target),
        sum(sizes),
        size_of(Path(target)),
        time.perf_counter() - start,
        names[existing:],
        names[:existing],
    )


def _check_existing(request: ConvertRequest, series: MeshSeries, steps: list[FileStep]) -> None:
    """Raise ValueError if the steps of a series differ from the first ones of the files."""
    pairs = zip(steps, series.times, strict=False)
    if len(series) > len(steps) or any(step.time not in (None, time) for step, time in pairs):
        raise _core.InvalidError(
            f"{os.fspath(request.target)} has {len(series)} steps that are not the first ones of "
            f'{request.name}: convert to another store, or replace it with mode="w"'
        )

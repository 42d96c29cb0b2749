"""Conversion of other programs' files of meshes to stores: one mesh, or time steps to a series."""

from __future__ import annotations

import os
import time
from contextlib import closing
from pathlib import Path

from ambar import _core
from ambar.kinds.request import Conversion, ConvertRequest, Progress, shown
from ambar.mesh.files.pyvista_readers import MeshFile, size_of
from ambar.mesh.files.time_steps import FileStep, steps_in, time_of
from ambar.mesh.series import MeshSeries, open_series_for_writing
from ambar.mesh.write import write_mesh


def convert_mesh(request: ConvertRequest, *, reorder: bool) -> Conversion:
    """Convert a file that PyVista (or meshio, through it) reads; one of several times to a series.

    Errors are those of `ambar.convert`; UnsupportedError if PyVista is not installed, CorruptError
    if it cannot read the file.
    """
    start = time.perf_counter()
    path = Path(request.paths[0])
    file = MeshFile(path)
    if file.times:
        share = size_of(path) // len(file.times)
        steps = [FileStep([path], [None], at, number) for number, at in enumerate(file.times)]
        return _convert_steps(request, steps, [share] * len(steps), file, reorder=reorder)
    request.refuse_append()
    size = size_of(path)
    with shown(request.progress, f"converting {path.name}") as report:
        write_mesh(
            file.read(),
            request.target,
            mode="w" if request.mode == "w" else "w-",
            reorder=reorder,
            **request.writing,
        )
        if report is not None:
            report(size, size)
    target = Path(request.target)
    return Conversion(
        os.fspath(target), size, size_of(target), time.perf_counter() - start, [path.name]
    )


def convert_steps(request: ConvertRequest, *, reorder: bool) -> Conversion:
    """Convert files of time steps: a .pvd, a .series, or numbered files, to a series of meshes.

    The meshes are read one by one. Errors are those of `ambar.convert`; where one cannot be read,
    the steps before it are in the store, and mode "a" adds the others.
    """
    steps = steps_in(request.paths)
    sizes = [sum(size_of(path) for path in step.paths) for step in steps]
    return _convert_steps(request, steps, sizes, None, reorder=reorder)


def _convert_steps(
    request: ConvertRequest,
    steps: list[FileStep],
    sizes: list[int],
    file: MeshFile | None,
    *,
    reorder: bool,
) -> Conversion:
    start = time.perf_counter()
    with (
        shown(request.progress, f"converting {Path(request.paths[0]).name}") as report,
        closing(_series(request, reorder=reorder)) as series,
    ):
        existing = len(series)
        _check_known(request, series, steps)
        for number in range(existing, len(steps)):
            mesh = steps[number].read(file)
            at = steps[number].time
            series.add(mesh, time_of(mesh) if at is None else at)
            _tell(report, sum(sizes[: number + 1]), sum(sizes))
    target = Path(request.target)
    names = [step.name for step in steps]
    return Conversion(
        os.fspath(target),
        sum(sizes),
        size_of(target),
        time.perf_counter() - start,
        names[existing:],
        names[:existing],
    )


def _tell(report: Progress | None, done: int, total: int) -> None:
    if report is not None:
        report(done, total)


def _series(request: ConvertRequest, *, reorder: bool) -> MeshSeries:
    """Return the series to add steps to."""
    return open_series_for_writing(
        request.target,
        request.mode,
        reorder=reorder,
        **request.writing,
    )


def _check_known(request: ConvertRequest, series: MeshSeries, steps: list[FileStep]) -> None:
    """Raise ValueError if the steps that a series has are not the first ones of the files."""
    known = series.times
    told = [step.time for step in steps[: len(known)]]
    same = all(a is None or a == b for a, b in zip(told, known, strict=False))
    if len(known) > len(steps) or not same:
        raise _core.InvalidError(
            f"{os.fspath(request.target)} has {len(known)} steps that are not the first ones of "
            f'{request.name}: convert to another store, or replace it with mode="w"'
        )

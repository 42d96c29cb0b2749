"""The peak of resident memory of conversions, and of commands on the stores they write.

python -m ambar_bench.memory FOLDER [MEGABYTES] [THREADS] [SOURCE ...]

Sources of about MEGABYTES each are made in FOLDER: `ramses`, `plotfile`, `netcdf` (one file),
`files` (many files for a collection), `mesh`. Every command runs in a fresh process.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ambar_bench.amr.plotfile_writer import Box, write_plotfile
from ambar_bench.ramses.synthetic import SyntheticOutput, write_output

BOX = 64
"""Cells along the side of a box of a plotfile."""
FILES = 16
"""Files of the collection."""


class Source(NamedTuple):
    """A source of a conversion."""

    path: Path
    export: str | None
    """What its store is exported to, if it can be exported."""


PRIMES = (73856093, 19349663, 83492791)


def field(*axes: np.ndarray) -> np.ndarray:
    """Return a smooth field with noise, which depends on nothing but the places."""
    places = np.meshgrid(*axes, indexing="ij", sparse=True)
    wave = sum(np.sin(place / (11.0 + 5 * d)) for d, place in enumerate(places))
    mixed = sum(
        place.astype(np.int64) * prime for place, prime in zip(places, PRIMES, strict=False)
    )
    return np.asarray(wave + (mixed * 2654435761 % 65536) / 6.5e9)


def ramses(folder: Path, megabytes: int) -> Source:
    """Write an output of RAMSES with a domain for each 8 MB."""
    spec = SyntheticOutput(megabytes, max(1, megabytes // 8), 6, 10)
    return Source(write_output(folder, spec), None)


def plotfile(folder: Path, megabytes: int) -> Source:
    """Write a plotfile of two fields on two levels; averages of the finer are the coarser's."""
    side = round((megabytes * 1e6 / 16 / 2) ** (1 / 3) / BOX) * BOX
    cells = range(0, side, BOX)
    boxes = [_box(i, j, k) for i in cells for j in cells for k in cells]
    # An eighth of the domain is refined.
    first = side // 2 // BOX * BOX
    fine = [_box(i + first, j + first, k + first) for i in cells for j in cells for k in cells]

    def values(level: int, box: Box) -> np.ndarray:
        axes = [np.arange(a, b + 1) >> level for a, b in zip(*box, strict=True)]
        one = field(*axes)
        return np.stack([one, 2 * one])

    path = folder / "plt00000"
    return Source(write_plotfile(path, ["density", "Temp"], (side,) * 3, [boxes, fine], values), "")


def _box(*corner: int) -> Box:
    return corner, tuple(place + BOX - 1 for place in corner)


def netcdf(folder: Path, megabytes: int, name: str = "one.nc") -> Source:
    """Write a file with one variable of float32."""
    import netCDF4

    steps = max(1, round(megabytes * 1e6 / (4 * 512 * 1024)))
    with netCDF4.Dataset(folder / name, "w") as file:
        for dimension, length in (("time", steps), ("y", 512), ("x", 1024)):
            file.createDimension(dimension, length)
        variable = file.createVariable("temperature", "f4", ("time", "y", "x"))
        for step in range(steps):
            variable[step] = field(np.arange(step, step + 1), np.arange(512), np.arange(1024))
    return Source(folder / name, "")


def files(folder: Path, megabytes: int) -> Source:
    """Write a folder of files."""
    path = folder / "files"
    path.mkdir()
    for number in range(FILES):
        netcdf(path, megabytes // FILES, f"{number:02}.nc")
    return Source(path, "")


def mesh(folder: Path, megabytes: int) -> Source:
    """Write a VTU file of tetrahedra without compression, with a field of points."""
    import pyvista
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridWriter

    # 6 tetrahedra a point: 4 indices, an offset, a type; 3 coordinates and a value.
    n = round((megabytes * 1e6 / (6 * 41 + 32)) ** (1 / 3))
    axis = np.arange(n + 1.0)
    grid = pyvista.RectilinearGrid(axis, axis, axis).to_tetrahedra(6).cast_to_unstructured_grid()
    grid.clear_data()
    grid.point_data["value"] = np.sin(np.asarray(grid.points)).sum(1)
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetFileName(str(folder / "mesh.vtu"))
    writer.SetInputData(grid)
    writer.SetCompressorTypeToNone()
    writer.SetDataModeToAppended()
    writer.EncodeAppendedDataOff()
    writer.Write()
    return Source(folder / "mesh.vtu", ".vtu")


SOURCES: dict[str, Callable[[Path, int], Source]] = {
    "ramses": ramses,
    "plotfile": plotfile,
    "netcdf": netcdf,
    "files": files,
    "mesh": mesh,
}


def peak(*arguments: str) -> tuple[float, float, float]:
    """Return the seconds, the processor time and the MB at the peak of a command of ambar."""
    begin = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "ambar", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed")
    seconds = time.perf_counter() - begin
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def measure(name: str, scratch: Path, megabytes: int, threads: str) -> None:
    """Print the measurements of one source."""
    # In a process of its own: the peak of a process that starts another counts as the other's.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        source = pool.submit(SOURCES[name], scratch, megabytes).result()
    inside = [source.path] if source.path.is_file() else source.path.rglob("*")
    size = sum(file.stat().st_size for file in inside) / 1e6
    store, exported = scratch / "x.ambar", scratch / f"exported{source.export or ''}"
    commands = [["convert", "--no-fsync", "--threads", threads, str(source.path), str(store)]]
    commands += [["info", str(store)], ["verify", str(store)], ["compact", str(store)]]
    if source.export is not None:
        commands.append(["export", "--threads", threads, str(store), str(exported)])
    for command in commands:
        seconds, processor, memory = peak(*command)
        found = f"{seconds:6.1f} s, {processor:6.1f} s of processor, {memory:6.0f} MB"
        _say(f"{name:9} {size:6.0f} MB {command[0]:8} {found}")


def main() -> None:
    """Print the measurements."""
    folder = sys.argv[1]
    megabytes, threads = [*sys.argv[2:4], *("1500", "2")[len(sys.argv[2:4]) :]]
    names = sys.argv[4:]
    for name in names or SOURCES:
        scratch = Path(tempfile.mkdtemp(dir=folder))
        try:
            measure(name, scratch, int(megabytes), threads)
        finally:
            shutil.rmtree(scratch)


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

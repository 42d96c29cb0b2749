"""A process of the study: writes a mesh, reads it, compares; or counts the bytes of a part."""

from __future__ import annotations

import gc
import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar_bench.files import size_and_files
from ambar_bench.mesh.contents import Values, contents, differences, raw_bytes, retyped
from ambar_bench.mesh.meshes import Sizes, make, step
from ambar_bench.mesh.rows import WAYS
from ambar_bench.mesh.ways import NAMES, Way
from ambar_bench.process import serve

BOX = (0.4, 0.6)
"""Which part of the points is below the sides of the box, in each dimension."""
TURN_SECONDS = 0.3
TURN_TIMES = 20
"""How long and how often short writes and reads are repeated in one turn; their median counts."""


class Server:
    """Does what each request says, with the mesh of the last one where it is the same."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.folder = Path(task["folder"])
        self.sizes = Sizes(**task["sizes"])
        self.ways: dict[str, Way] = {}
        self.name = ""
        self.mesh: Any = None
        self.truth: dict[str, Values] = {}
        self.checked: dict[str, list[str]] = {}
        """What came back in other dtypes, by request."""

    def answer(self, line: str) -> dict[str, Any]:
        """Return what was measured, or the error that came instead."""
        request = json.loads(line)
        try:
            way = self.way(request["way"])
            self.load(request["mesh"])
            do = {
                "mesh": self.measure,
                "array": self.count,
                "box": self.box,
                "series": self.steps,
            }[request["do"]]
            return do(way, request)
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}".strip().splitlines()[0]}
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def way(self, key: str) -> Way:
        """Return a way that has done everything once: libraries import much when first used."""
        if key not in self.ways:
            import pyvista as pv

            way = WAYS[key]()
            way.prepare()
            tiny = pv.UnstructuredGrid(
                {pv.CellType.TETRA: np.arange(8).reshape(2, 4)}, np.eye(8, 3)
            )
            tiny.point_data[NAMES["point"]] = np.arange(8.0)
            self.write(way, tiny, way.level, 1)
            way.read(self.folder, 1)
            self.ways[key] = way
        return self.ways[key]

    def load(self, name: str) -> None:
        """Make a mesh the one that is measured."""
        if name == self.name:
            return
        self.mesh, self.truth, self.name = None, {}, ""
        gc.collect()
        self.mesh = make(name, self.sizes)
        self.truth = contents(self.mesh)
        self.name = name

    def empty(self) -> None:
        """Make the folder anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def write(self, way: Way, mesh: Any, level: int | None, threads: int) -> float:
        """Write a mesh anew and return the seconds."""
        self.empty()
        started = time.perf_counter()
        way.write(mesh, self.folder, level, threads)
        return time.perf_counter() - started

    def measure(self, way: Way, request: dict[str, Any]) -> dict[str, Any]:
        """Write and read; the first time of a request, compare what was read with what was written.

        Raises
        ------
        CorruptError
            If it differs.
        """
        level, threads = request["level"], request["threads"]
        write = _repeated(lambda: self.write(way, self.mesh, level, threads))
        read = _repeated(lambda: self.read(way, threads), uncounted=1)
        key = json.dumps(request)
        if key not in self.checked:
            self.checked[key] = self.compared(way.read(self.folder, threads))
        return {
            "seconds": sum(write) + sum(read),
            **self.result_of(statistics.median(write), statistics.median(read), self.checked[key]),
        }

    def compared(self, found: Any) -> list[str]:
        """Compare a mesh that was read with the one that is measured; tell what has other dtypes.

        Raises
        ------
        CorruptError
            If it differs.
        """
        arrays = contents(found)
        if wrong := differences(self.truth, arrays):
            raise ambar.CorruptError(f"expected equal values, found others in {', '.join(wrong)}")
        return retyped(self.truth, arrays)

    def result_of(
        self, write: float, read: float, other: list[str], steps: int = 1
    ) -> dict[str, Any]:
        """Return an answer on files that are still there."""
        stored, files = size_and_files(self.folder)
        return {
            "write": write,
            "read": read,
            "bytes": stored,
            "files": files,
            "raw": steps * raw_bytes(self.truth),
            "type": type(self.mesh).__name__,
            "retyped": other,
        }

    def steps(self, way: Way, request: dict[str, Any]) -> dict[str, Any]:
        """Write time steps of the mesh, read them all, compare the last.

        Raises
        ------
        CorruptError
            If it differs.
        """
        steps, threads = request["steps"], request["threads"]
        self.empty()
        write, self.name = 0.0, ""  # the mesh is no longer what its name says
        for number in range(steps):
            step(self.mesh, number)
            started = time.perf_counter()
            way.write_step(self.mesh, number, self.folder, threads)
            write += time.perf_counter() - started
        started = time.perf_counter()
        way.end_series()
        write += time.perf_counter() - started
        started, last = time.perf_counter(), None
        for found in way.read_steps(self.folder, threads):
            last = found
        read = time.perf_counter() - started
        self.truth = contents(self.mesh)
        answer = self.result_of(write, read, self.compared(last), steps)
        return {"seconds": write + read, **answer}

    def read(self, way: Way, threads: int) -> float:
        """Read the mesh and return the seconds."""
        started = time.perf_counter()
        found = way.read(self.folder, threads)
        seconds = time.perf_counter() - started
        del found
        return seconds

    def count(self, way: Way, request: dict[str, Any]) -> dict[str, Any]:
        """Read one array of the grid; return the seconds and the bytes that were read for it.

        Raises
        ------
        CorruptError
            If it differs from what was written.
        """
        truth = self.truth[f"point_data/{NAMES['point']}"]
        threads = request["threads"]
        (values, kept), answer = self.part(
            way, request, lambda: way.read_array(self.folder, threads)
        )
        if not np.array_equal(values, truth):
            raise ambar.CorruptError("expected equal values, found others")
        del kept
        return {**answer, "raw": truth.nbytes}

    def box(self, way: Way, request: dict[str, Any]) -> dict[str, Any]:
        """Read the cells in a box; return the seconds and the bytes that were read for it.

        Raises
        ------
        CorruptError
            If there are other cells in it.
        """
        sides = np.quantile(self.mesh.points, BOX, axis=0)
        bounds = sides.T.ravel().tolist()
        found, answer = self.part(
            way, request, lambda: way.read_box(self.folder, bounds, request["threads"])
        )
        truth = self.mesh.extract_cells(self.mesh.find_cells_within_bounds(bounds))
        for ids in ("vtkOriginalPointIds", "vtkOriginalCellIds"):
            truth.point_data.pop(ids, None)
            truth.cell_data.pop(ids, None)
        name = truth.point_data.keys()[0]
        if found.n_cells != truth.n_cells or not np.array_equal(
            np.sort(found[name], axis=0), np.sort(truth[name], axis=0)
        ):
            raise ambar.CorruptError("expected equal cells, found others")
        if type(way).read_box is Way.read_box:
            answer["asked"] = answer["bytes"]  # everything is read, and released when it is cut
        return {**answer, "raw": raw_bytes(contents(truth))}

    def part(
        self, way: Way, request: dict[str, Any], read: Callable[[], Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Write the mesh and read a part of it; return that, the seconds and the bytes."""
        begun = time.perf_counter()
        self.write(way, self.mesh, request["level"], request["threads"])
        read()  # imports what it needs
        gc.collect()
        before, started = _read_calls(), time.perf_counter()
        found = read()
        seconds = time.perf_counter() - started
        return found, {
            "seconds": time.perf_counter() - begun,
            "read": seconds,
            "asked": _read_calls() - before + _mapped(self.folder),
            "bytes": size_and_files(self.folder)[0],
        }


def _repeated(action: Callable[[], float], uncounted: int = 0) -> list[float]:
    """Return the seconds of an action, repeated until `TURN_SECONDS` have passed.

    The first times may stay uncounted: a virtual machine that has given free memory back to its
    host waits for it when it is used again, for large pages longer than any way takes to read.
    """
    gc.collect()
    for _ in range(uncounted):
        action()
    times = [action()]
    while sum(times) < TURN_SECONDS and len(times) < TURN_TIMES:
        times.append(action())
    return times


def _read_calls() -> int:
    """Return the bytes that this process' read calls have returned so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


def _mapped(folder: Path) -> int:
    """Return the bytes of mapped files below a folder that this process has touched."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith("Rss:") and inside:
            found += 1024 * int(line.split()[1])
        elif "-" in line.split(" ", 1)[0]:
            inside = str(folder) in line
    return found


if __name__ == "__main__":
    serve(lambda: Server(json.loads(sys.argv[1])).answer)

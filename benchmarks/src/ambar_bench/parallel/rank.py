"""One rank of ambar's versions in Python: does what native/main.c does, over mpi4py."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import ambar.mpi
from ambar import open_store

ARRAY = "values"


class Data:
    """The values, computed by the compiled library that the other programs have as well."""

    def __init__(self, library: str, kind: str) -> None:
        self.library = ctypes.CDLL(library)
        self.library.compare.restype = ctypes.c_uint64
        self.kind = ctypes.c_int(1 if kind == "smooth" else 0)

    def generate(self, start: int, values: np.ndarray) -> None:
        """Fill `values`, those of the array from `start` on."""
        self.library.generate(self.kind, *self._place(start, values))

    def compare(self, start: int, values: np.ndarray) -> tuple[int, float]:
        """Return how many values have other bits than they should, and the largest error."""
        largest = ctypes.c_double()
        place = self._place(start, values)
        differing = self.library.compare(self.kind, *place, ctypes.byref(largest))
        return int(differing), largest.value

    @staticmethod
    def _place(start: int, values: np.ndarray) -> tuple[Any, Any, Any]:
        at = ctypes.c_void_p(values.ctypes.data)
        return ctypes.c_uint64(start), ctypes.c_uint64(len(values)), at


@dataclass
class Job:
    """What this rank writes and reads: its part of the array."""

    comm: Any
    version: str
    path: str
    doubles: int
    bound: float
    start: int
    values: np.ndarray

    def write(self) -> None:
        """Write the part, from memory to a closed store that is on the disk."""
        raw = self.version == "python-raw"
        bound = self.bound if self.version == "python-bounded" else None
        profile: Any = "raw" if raw else "balanced"
        shape, own = (self.doubles,), [((self.start,), self.values.shape)]
        with ambar.mpi.create(self.path, self.comm, profile=profile) as store:
            blocks = store.blocks(shape, own)
            store.create_array(
                ARRAY, shape=shape, dtype="float64", blocks=blocks, dims=["x"], error_bound=bound
            )
            store.write_region(ARRAY, self.values, (self.start,))

    def rehearse(self) -> None:
        """Write once, and delete what was written; see native/main.c."""
        self.write()
        if self.comm.rank == 0:
            Path(self.path).unlink()

    def read(self) -> None:
        """Read the part."""
        store = open_store(self.path)
        part = slice(self.start, self.start + len(self.values))
        # The available cores for each rank, assuming that all ranks are on this node.
        threads = max(1, (os.cpu_count() or 1) // self.comm.size)
        store[ARRAY].read(part, out=self.values, threads=threads)

    def measure(self, act: Callable[[], None]) -> dict[str, Any]:
        """Return the slowest rank's seconds, and the CPU seconds of all until each was done."""
        self.comm.Barrier()
        cpu, begun = _cpu_seconds(), time.perf_counter()
        act()
        seconds, used = time.perf_counter() - begun, _cpu_seconds() - cpu
        slowest = self.comm.allreduce(seconds, MPI.MAX)
        return {"seconds": slowest, "cpu": self.comm.allreduce(used, MPI.SUM)}

    def read_and_compare(self, data: Data) -> dict[str, Any]:
        """Read, compare with what was written, and return what `measure` does and the errors."""
        self.values.fill(np.nan)
        answer = self.measure(self.read)
        differing, error = data.compare(self.start, self.values)
        answer["differing"] = self.comm.allreduce(differing, MPI.SUM)
        answer["error"] = min(self.comm.allreduce(error, MPI.MAX), 1e308)
        return answer


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _forget(path: str) -> None:
    """Have the system forget what it keeps of a file in memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def run(arguments: list[str]) -> None:
    """Do what the arguments say, those of native/main.c after the path of the library of values."""
    library, version, kind, doubles, bound, path, _, do = arguments
    comm = MPI.COMM_WORLD
    data = Data(library, kind)
    each, more = divmod(int(doubles), comm.size)
    start = comm.rank * each + min(comm.rank, more)
    values = np.empty(each + (comm.rank < more))
    job = Job(comm, version, path, int(doubles), float(bound), start, values)
    answer: dict[str, Any] = {"ranks": comm.size}
    if "write" in do:
        data.generate(start, values)
        job.rehearse()
        answer["write"] = job.measure(job.write)
    if "cold" in do:
        comm.Barrier()
        _forget(path)
        answer["cold"] = job.read_and_compare(data)
    if "warm" in do:
        answer["warm"] = job.read_and_compare(data)
    if comm.rank == 0:
        sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    try:
        run(sys.argv[1:])
    except Exception as error:
        sys.stderr.write(f"study: rank {MPI.COMM_WORLD.rank}: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
        MPI.COMM_WORLD.Abort(1)

"""A process that writes a layout or reads it: once for each line that comes in; it answers in JSON.

Each row has one of its own: libraries that bring libhdf5 along do not bear each other, and what a
crash takes with it is one row.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ambar_bench.collection.cases import Case, dataset_name, find_case
from ambar_bench.collection.layouts import Request, stacked
from ambar_bench.collection.rows import LAYOUTS, READERS
from ambar_bench.collection.single import Adding, Looping, Naming, Opening
from ambar_bench.process import serve

TURN_SECONDS = 0.3


class Job(Protocol):
    """What a worker does for each line."""

    def turn(self) -> dict[str, Any]:
        """Do it and return the seconds."""


class Writing:
    """Write a layout anew; what generates the datasets is not timed."""

    def __init__(self, task: dict[str, Any], case: Case) -> None:
        self.kind = LAYOUTS[task["key"]]
        self.case = case
        self.folder = Path(task["folder"])
        self.datasets: int = task["datasets"]
        self.threads: int = task["threads"]
        self.write(2)  # libraries import much of theirs when it is first used

    def turn(self) -> dict[str, Any]:
        """Write all; the store is there when it returns."""
        return {"seconds": self.write(self.datasets)}

    def write(self, datasets: int) -> float:
        """Write `datasets` and return the seconds that the layout's calls took."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        os.sync()  # what others wrote shall not slow this one down
        layout = self.kind(self.folder, self.case, self.threads)
        seconds = 0.0
        started = time.perf_counter()
        layout.begin()
        seconds += time.perf_counter() - started
        for pairs in self.case.batches(datasets):
            gc.collect()
            started = time.perf_counter()
            layout.add(pairs)
            seconds += time.perf_counter() - started
        started = time.perf_counter()
        layout.finish()
        return seconds + time.perf_counter() - started


class Reading:
    """Open a store and read the window; the first answer has the digests of what was read."""

    def __init__(self, task: dict[str, Any], case: Case) -> None:
        names = [dataset_name(number) for number in range(task["datasets"])]
        window = case.window(task["fraction"], task["offset"])
        folder = Path(task["folder"])
        self.names = case.names
        self.reader = READERS[task["key"]](Request(folder, case, names, window, task["threads"]))
        self.digests: dict[str, str] = {}

    def turn(self) -> dict[str, Any]:
        """Read once at first; then until `TURN_SECONDS` have passed, and return the median.

        What ran since the last turn has emptied the processor's caches and let it doze.
        """
        if not self.digests:
            seconds, loaded = self.read()
            self.digests = {name: digest(stacked(loaded, name)) for name in self.names}
            return {"seconds": seconds, "digests": self.digests}
        times: list[float] = []
        while sum(times) < TURN_SECONDS:
            times.append(self.read()[0])
        return {"seconds": statistics.median(times)}

    def read(self) -> tuple[float, Any]:
        """Return the seconds, and what was read."""
        gc.collect()
        started = time.perf_counter()
        loaded = self.reader.read()
        return time.perf_counter() - started, loaded


def digest(values: Any) -> str:
    """Return a fingerprint of an array: SHA-256 of type, shape and values."""
    text = f"{values.dtype.str}{values.shape}"
    return text + hashlib.sha256(values.tobytes()).hexdigest()


def expected(case: Case, datasets: int, fraction: float, offset: int) -> dict[str, str]:
    """Return the digests of what every row has to read."""
    import numpy as np

    box = tuple(case.window(fraction, offset).values())
    found: dict[str, list[Any]] = {name: [] for name in case.names}
    for number in range(datasets):
        for name, values in case.values(number).items():
            found[name].append(values[box].copy())
    return {name: digest(np.stack(values)) for name, values in found.items()}


JOBS: dict[str, Callable[[dict[str, Any], Case], Job]] = {
    "write": Writing,
    "read": Reading,
    "open": Opening,
    "name": Naming,
    "loop": Looping,
    "add": Adding,
}


def start(task: dict[str, Any]) -> Callable[[str], dict[str, Any]]:
    """Return what does the task's job for each line."""
    case = find_case(task["case"]).with_variables(task["n_vars"])
    job: Job = JOBS[task["do"]](task, case)
    return lambda _: job.turn()


if __name__ == "__main__":
    serve(lambda: start(json.loads(sys.argv[1])))

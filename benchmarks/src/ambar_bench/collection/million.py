"""Very many small datasets in one collection: time, memory and bytes of single steps.

Each step runs in a process of its own, so that its memory is that of the step.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar_bench.machine import machine

FILE = "million.ambar"
POINTS = 50
APPENDED = 200
"""Datasets that are appended, with a commit each."""
READ = 200
"""Datasets that are read by name."""
OPENED = 9
"""How often the collection is opened to read a first dataset."""


@dataclass
class Million:
    """What each step took."""

    datasets: int
    machine: dict[str, str]
    steps: dict[str, dict[str, float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return asdict(self)


def run_million(
    scratch: Path, *, datasets: int = 1_000_000, report: Callable[[str], None] = lambda _: None
) -> Million:
    """Create a collection, open it, read datasets by name, and append datasets.

    Raises
    ------
    ValueError
        If there are no datasets to write.
    CorruptError
        If a dataset differs from what was written.
    """
    if datasets < 1:
        raise ambar.InvalidError(f"expected 1 or more datasets, found {datasets}")
    found = Million(datasets, machine(("xarray",)))
    for step in STEPS:
        report(step)
        command = [sys.executable, "-m", __name__, step, str(scratch / FILE), str(datasets)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise ambar.CorruptError(f"the step {step!r} failed: {done.stderr[-2000:]}")
        found.steps[step] = json.loads(done.stdout)
    return found


def name_of(number: int) -> str:
    """Return the name of a dataset."""
    return f"cast_{number:07d}"


class Casts:
    """Generates datasets of two variables and a coordinate, of 50 values each."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._walks = rng.normal(size=(1000, POINTS)).cumsum(1).astype("f4")
        self._depth = np.arange(POINTS) * 2.0

    def __getitem__(self, number: int) -> dict[str, Any]:
        walk = self._walks[number % 1000]
        return {
            "temperature": ("depth", walk + np.float32(number * 1e-3), {"units": "degC"}),
            "salinity": ("depth", walk * 2 + np.float32(number * 1e-4)),
            "depth": ("depth", self._depth),
        }

    def upto(self, datasets: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the names and datasets of a collection."""
        return ((name_of(number), self[number]) for number in range(datasets))

    def check(self, collection: ambar.Collection, number: int) -> None:
        """Raise CorruptError if a dataset differs from what was written."""
        loaded = collection.load(name_of(number))
        for name, (_, values, *_) in self[number].items():
            if not np.array_equal(loaded[name].values, values):
                raise ambar.CorruptError(f"{name_of(number)}: {name} differs from what was written")


def create(path: Path, datasets: int) -> dict[str, float]:
    """Create the collection; what generates the datasets is subtracted."""
    casts = Casts()
    started, cpu = time.perf_counter(), time.process_time()
    for _ in casts.upto(datasets):
        pass
    generating, generating_cpu = time.perf_counter() - started, time.process_time() - cpu
    started, cpu = time.perf_counter(), time.process_time()
    with ambar.open_collection(path, "w", fsync=False) as collection:
        collection.add_many(casts.upto(datasets))
    return {
        "seconds": time.perf_counter() - started - generating,
        "cpu": time.process_time() - cpu - generating_cpu,
        "MB": _peak_memory(),
        "bytes": path.stat().st_size,
    }


def open_(path: Path, datasets: int) -> dict[str, float]:
    """Open the collection; a smaller one was opened before, because modules are imported then."""
    before = _warm(path)
    started = time.perf_counter()
    collection = ambar.open_collection(path)
    seconds = time.perf_counter() - started
    if len(collection) != datasets:
        raise ambar.CorruptError(f"expected {datasets} datasets, found {len(collection)}")
    return {"seconds": seconds, "MB": _peak_memory() - before}


def read(path: Path, datasets: int) -> dict[str, float]:
    """Read datasets by name: the first one after opening, and others; medians."""
    casts, before = Casts(), _warm(path)
    numbers = np.random.default_rng(1).integers(0, datasets, READ).tolist()
    firsts = []
    for number in numbers[:OPENED]:
        collection = ambar.open_collection(path)
        firsts.append(_seconds(collection, number))
    seconds = []
    for number in numbers:
        seconds.append(_seconds(collection, number))
        casts.check(collection, number)
    memory = _peak_memory() - before
    return {"first": float(np.median(firsts)), "seconds": float(np.median(seconds)), "MB": memory}


def _seconds(collection: ambar.Collection, number: int) -> float:
    started = time.perf_counter()
    collection.load(name_of(number))
    return time.perf_counter() - started


def append(path: Path, datasets: int) -> dict[str, float]:
    """Append datasets with a commit each, after opening the collection; the first is separate."""
    casts, before = Casts(), _warm(path)
    seconds, written = [], []
    started, start = time.perf_counter(), _written_bytes()
    with ambar.open_collection(path, "a", fsync=False) as collection:
        for number in range(datasets, datasets + APPENDED):
            collection.add(name_of(number), casts[number])
            collection.commit()
            seconds.append(time.perf_counter() - started)
            written.append(_written_bytes() - start)
            started, start = time.perf_counter(), _written_bytes()
    memory = _peak_memory() - before
    collection = ambar.open_collection(path)
    for number in range(datasets, datasets + APPENDED):
        casts.check(collection, number)
    return {
        "first": seconds[0],
        "seconds": float(np.median(seconds[1:])),
        "longest": max(seconds),
        "MB": memory,
        "bytes": float(np.median(written)),
        "mean bytes": float(np.mean(written)),
    }


STEPS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "create": create,
    "open": open_,
    "read": read,
    "append": append,
}


def _warm(path: Path) -> float:
    """Use a small collection, so that modules are imported; return the memory after it."""
    small = path.with_name("small.ambar")
    with ambar.open_collection(small, "w", fsync=False) as collection:
        collection.add_many(Casts().upto(3))
    with ambar.open_collection(small, "a", fsync=False) as collection:
        collection.add("more", Casts()[3])
    ambar.open_collection(small).load(name_of(0))
    return _peak_memory()


def _peak_memory() -> float:
    """Return the largest resident memory of this process, MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))


def _written_bytes() -> int:
    """Return the bytes that this process has passed to the system."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


if __name__ == "__main__":
    print(json.dumps(STEPS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201

"""What a worker does in the study of scale: open, load by name, load all in turn, add."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ambar
from ambar_bench.collection.access import ACCESSES, Access
from ambar_bench.collection.cases import Case, dataset_name

if TYPE_CHECKING:
    import xarray as xr

NAMES = 100
"""Datasets that a turn loads by name."""
ADDED = 10
"""Datasets that a turn adds, with one commit per dataset."""
CHECKED = 997
"""Every dataset whose number is a multiple of this is compared with what was generated."""


class Single:
    """A worker's job on one store; every turn gives a median."""

    def __init__(self, task: dict[str, Any], case: Case) -> None:
        self.kind = ACCESSES[task["key"]]
        self.case = case
        self.folder = Path(task["folder"])
        self.datasets: int = task["datasets"]
        self.threads: int = task["threads"]
        self.turns = 0
        self.other_attributes: set[int] = set()
        """Datasets that had other attributes than they were given."""
        warm = self.access()
        self.check(0, warm.load(dataset_name(0)))  # libraries import much when first used
        warm.close()

    def access(self, *, adding: bool = False) -> Access:
        """Return the store, opened anew."""
        gc.collect()
        return self.kind(self.folder, self.threads, adding=adding)

    def check(self, number: int, found: xr.Dataset) -> None:
        """Compare a dataset with what was generated; attributes that differ are noted.

        Raises
        ------
        CorruptError
            If its values or coordinates differ.
        """
        expected = self.case.dataset(number)
        if not found.identical(expected):
            self.other_attributes.add(number)
        if not found.equals(expected):
            raise ambar.CorruptError(
                f"{self.folder}: {dataset_name(number)} differs from what was written: "
                f"expected {expected}, found {found}"
            )

    def answer(self, seconds: float, **more: float) -> dict[str, Any]:
        """Return what a turn answers."""
        return {"seconds": seconds, "other_attributes": sorted(self.other_attributes), **more}


class Opening(Single):
    """Open the store."""

    def turn(self) -> dict[str, Any]:
        """Return the median seconds of a few openings."""
        times = []
        for _ in range(5):
            gc.collect()
            started = time.perf_counter()
            access = self.kind(self.folder, self.threads)
            times.append(time.perf_counter() - started)
            access.close()
        return self.answer(statistics.median(times))


class Naming(Single):
    """Load single datasets by their names, after opening."""

    def turn(self) -> dict[str, Any]:
        """Return the median seconds of datasets here and there, and those of the first one."""
        self.turns += 1
        generator = np.random.default_rng(self.turns)
        access = self.access()
        times = []
        for number in generator.integers(0, self.datasets, NAMES).tolist():
            started = time.perf_counter()
            found = access.load(dataset_name(number))
            times.append(time.perf_counter() - started)
            self.check(number, found)
        access.close()
        return self.answer(statistics.median(times[1:]), first=times[0])


class Looping(Single):
    """Load all datasets, one after the other."""

    def turn(self) -> dict[str, Any]:
        """Return the seconds of all, opening included."""
        gc.collect()
        kept = {}
        started = time.perf_counter()
        access = self.kind(self.folder, self.threads)
        for number in range(self.datasets):
            found = access.load(dataset_name(number))
            if number % CHECKED == 0:
                kept[number] = found
        access.close()
        seconds = time.perf_counter() - started
        for number, found in kept.items():
            self.check(number, found)
        return self.answer(seconds)


class Adding(Single):
    """Add single datasets to the open store, with a commit each."""

    def turn(self) -> dict[str, Any]:
        """Return the median seconds of a few; what was added is there when opened anew."""
        first = self.datasets + self.turns * ADDED
        self.turns += 1
        added = {number: self.case.dataset(number) for number in range(first, first + ADDED)}
        access = self.access(adding=True)
        times = []
        for number, dataset in added.items():
            started = time.perf_counter()
            access.add(dataset_name(number), dataset)
            times.append(time.perf_counter() - started)
        access.close()
        again = self.access()
        for number in added:
            self.check(number, again.load(dataset_name(number)))
        again.close()
        return self.answer(statistics.median(times))

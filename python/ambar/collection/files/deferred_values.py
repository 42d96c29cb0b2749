"""Reads deferred values, those of large variables of a file, in processes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ambar._util.progress import Progress
from ambar.collection.files.sources import Reading
from ambar.collection.storage.layout import Box, shape_of
from ambar.collection.storage.records import DeferredValues, Record
from ambar.parallel.workers import Failure, Workers


class DeferredReader:
    """Reads the deferred values of a file in processes.

    After a failure all values are zeros, so that the writer completes the row; `check` raises it.
    """

    def __init__(
        self,
        workers: Workers,
        path: Path,
        reading: Reading,
        record: Record,
        report: Progress | None,
    ) -> None:
        self._workers = workers
        self._path = path
        self._reading = reading
        self._dtypes = {name: v.values.dtype for name, v in record.variables.items()}
        self._failure: Failure | None = None
        self._report = report
        values = [v.values for v in record.variables.values()]
        self._bytes = sum(one.nbytes for one in values if isinstance(one, DeferredValues))
        self._read_bytes = 0

    def __call__(
        self, name: str, boxes: Iterable[Box], dtype: np.dtype[Any]
    ) -> Iterator[np.ndarray]:
        """Yield the values of boxes of a variable in a dtype."""
        from ambar.collection.files.source_reader import read_part

        stored = self._dtypes[name]
        remaining = deque(boxes)
        if self._failure is None:
            tasks = [(self._path, self._reading, name, box, stored, dtype) for box in remaining]

            def weigh(task: tuple[Any, ...]) -> int:
                return math.prod(shape_of(task[3])) * stored.itemsize

            for _, values in self._workers.map(read_part, tasks, weigh):
                if isinstance(values, Failure):
                    self._failure = values
                    break
                remaining.popleft()
                yield values
                self._read_bytes += values.size * stored.itemsize
                if self._report is not None:
                    self._report(min(self._read_bytes, self._bytes), self._bytes)
        yield from (np.zeros(shape_of(box), dtype) for box in remaining)

    def check(self) -> None:
        """Raise an error if values could not be read."""
        if self._failure is not None:
            raise DeferredReadError(self._failure)


class DeferredReadError(Exception):
    """A part of the deferred values of a file could not be read."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.why)
        self.failure = failure

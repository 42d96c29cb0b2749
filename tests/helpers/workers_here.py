"""Conversions and exports of collections in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ambar.collection.files import export
from ambar.parallel.workers import Failure


class WorkersHere:
    """`ambar.parallel.workers.Workers` that run the tasks in this process."""

    def __init__(self, _: int) -> None:
        export._opened.cache_clear()  # a worker process serves a single export

    def __enter__(self) -> WorkersHere:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function: Any, tasks: Any, weigh: Any = len) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            weigh(task)
            try:
                result = function(*task)
            except Exception as error:
                result = Failure.of(error)
            yield task, result

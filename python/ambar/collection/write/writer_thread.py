"""The thread that encodes and writes, while the caller adds the next datasets."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


class WriterThread:
    """One thread that runs tasks in order, with at most one task in the queue.

    After an error it runs no further task, and all methods raise the error again.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "ambar-collection")
        self._process = os.getpid()
        self._tasks: list[Future[None]] = []
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise the error of an earlier task, if any."""
        if self._error is not None:
            raise self._error

    def submit(self, work: Callable[[], None]) -> None:
        """Queue a task; raises the error of an earlier task."""
        self.check()
        if len(self._tasks) > 1:
            self._finish_first()
        self._tasks.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait for all tasks; raises the first error, without running the tasks after it."""
        self.check()
        while self._tasks:
            self._finish_first()

    def close(self) -> None:
        """Finish the running task, and cancel the queued one. Does nothing in a forked child."""
        if os.getpid() != self._process:
            return
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._tasks.clear()

    def _finish_first(self) -> None:
        first = self._tasks[0]
        # Ctrl-C here leaves the task in the queue, so that it can be waited for again.
        wait([first])
        del self._tasks[0]
        self._error = first.exception()
        if self._error is not None:
            self.close()
            raise self._error

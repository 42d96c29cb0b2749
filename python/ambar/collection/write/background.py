"""Work done on another thread, in order: encoding goes on while the next datasets are taken in."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Background:
    """One thread that does one thing after the other, with at most one of them waiting.

    After an error nothing more is done, and everything asked for raises it again.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "ambar-collection")
        self._process = os.getpid()
        self._last: list[Future[None]] = []
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise the error of what was done before, if there was one."""
        if self._error is not None:
            raise self._error

    def submit(self, work: Callable[[], None]) -> None:
        """Have something done once all before it is; raises the error of what is done by now."""
        self.check()
        if len(self._last) > 1:
            self._finish_first()
        self._last.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait until everything is done; raises the first error, and does not do the rest."""
        self.check()
        while self._last:
            self._finish_first()

    def close(self) -> None:
        """Finish what has begun; what waits is not done. A forked child has no thread to end."""
        if os.getpid() != self._process:
            return
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._last.clear()

    def _finish_first(self) -> None:
        first = self._last[0]
        # Ctrl-C here leaves the work where it is: it is waited for again.
        wait([first])
        del self._last[0]
        self._error = first.exception()
        if self._error is not None:
            self.close()
            raise self._error

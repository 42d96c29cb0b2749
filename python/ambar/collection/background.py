"""Work done on another thread, in order: encoding goes on while the next datasets are taken in."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Background:
    """One thread that does one thing after the other, with at most one of them waiting."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "ambar-collection")
        self._last: list[Future[None]] = []

    def submit(self, work: Callable[[], None]) -> None:
        """Have something done once all before it is; raises the error of what is done by now."""
        if len(self._last) > 1:
            self._last.pop(0).result()
        self._last.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait until everything is done; raises the first error, and does not do the rest."""
        while self._last:
            try:
                self._last.pop(0).result()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Finish what has begun; what waits is not done."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._last.clear()

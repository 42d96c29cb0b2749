"""Work of a page in a thread of its own, so that the page stays responsive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import panel as pn
from bokeh.document import Document

_INTERVAL = 0.3
"""Seconds between two results of a task that are shown; the last one is always shown."""


class Background:
    """Runs the last task of a page; a new task ends the previous one at its next result.

    Parameters
    ----------
    show : callable
        Called with each result, in the thread of the page.
    fail : callable
        Called with the exception of a task, in the thread of the page.

    Examples
    --------
    >>> from ambar.viewer.background import Background
    >>> shown = []
    >>> background = Background(shown.append, print)
    >>> background.submit(lambda: iter(["coarse", "fine"]))
    >>> background.wait()
    >>> shown
    ['coarse', 'fine']
    """

    def __init__(self, show: Callable[[Any], None], fail: Callable[[Exception], None]) -> None:
        self._show = show
        self._fail = fail
        self._last = 0
        self._threads = ThreadPoolExecutor(1, "ambar-viewer")

    def submit(self, task: Callable[[], Iterator[Any]]) -> None:
        """Run a task, an iterator of results: usually coarse ones first."""
        self._last += 1
        self._threads.submit(self._run, self._last, task, pn.state.curdoc)

    def wait(self) -> None:
        """Wait for the tasks that were submitted."""
        self._threads.submit(int).result()

    def stop(self) -> None:
        """End the task: nothing of it is shown any more."""
        self._last += 1

    def _run(
        self, number: int, task: Callable[[], Iterator[Any]], document: Document | None
    ) -> None:
        if number != self._last:
            return
        hidden: list[Any] = []
        shown_at = float("-inf")
        failure: Exception | None = None
        try:
            for result in task():
                if number != self._last:
                    return
                hidden = [result]
                if time.monotonic() - shown_at >= _INTERVAL:
                    self._deliver(number, document, partial(self._show, hidden.pop()))
                    shown_at = time.monotonic()
        except Exception as error:
            failure = error
        for result in hidden:
            self._deliver(number, document, partial(self._show, result))
        if failure is not None:
            self._deliver(number, document, partial(self._fail, failure))

    def _deliver(self, number: int, document: Document | None, call: Callable[[], None]) -> None:
        def call_if_last() -> None:
            if number == self._last:
                call()

        if document is None:  # without a server
            call_if_last()
        else:
            document.add_next_tick_callback(call_if_last)

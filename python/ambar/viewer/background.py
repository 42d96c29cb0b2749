"""Work of a page in a thread of its own, so that the page stays responsive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Lock, Thread, Timer
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import panel as pn
from bokeh.document import Document

Task: TypeAlias = Callable[[], Iterator[Any]]
_INTERVAL = 0.3
"""Seconds between two results of a task that are shown; the last one is always shown."""
_PATIENCE = 1.0
"""Seconds without a result after which a page says that it waits."""

_OF_DOCUMENT: WeakKeyDictionary[Document, WeakSet[Background]] = WeakKeyDictionary()


def stop_tasks(document: Document) -> None:
    """End the tasks of a page."""
    for background in _OF_DOCUMENT.get(document, ()):
        background.stop()


class Background:
    """Runs the last task of a page; a new task ends the previous one at its next result.

    Parameters
    ----------
    show : callable
        Called with each result, in the thread of the page.
    fail : callable
        Called with the exception of a task, in the thread of the page.
    wait : callable, optional
        Called with True after a second without a result, and with False before the result is shown
        after that, in the thread of the page.

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

    def __init__(
        self,
        show: Callable[[Any], None],
        fail: Callable[[Exception], None],
        wait: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._show = show
        self._fail = fail
        self._wait = wait
        self._is_waiting = False
        self._last = 0
        self._next: tuple[int, Task, Document | None] | None = None
        self._thread: Thread | None = None
        self._lock = Lock()
        if pn.state.curdoc is not None:
            _OF_DOCUMENT.setdefault(pn.state.curdoc, WeakSet()).add(self)
            pn.state.curdoc.on_session_destroyed(lambda _: self.stop())

    def submit(self, task: Task) -> None:
        """Run a task, an iterator of results: usually coarse ones first."""
        with self._lock:
            self._last += 1
            self._next = self._last, task, pn.state.curdoc
            if self._thread is None:
                # Python waits for the threads of executors at its end, but not for daemons.
                self._thread = Thread(target=self._work, name="ambar-viewer-task", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Wait for the task that was submitted last."""
        if (thread := self._thread) is not None:
            thread.join()

    def stop(self) -> None:
        """End the task at its next result, which is not shown; the page calls it when it closes."""
        with self._lock:
            self._last += 1
            self._next = None

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._next is None:
                    self._thread = None
                    return
                task, self._next = self._next, None
            self._run(*task)

    def _run(self, number: int, task: Task, document: Document | None) -> None:
        hidden: list[Any] = []
        shown_at = float("-inf")
        failure: Exception | None = None
        has_result = Event()

        def wait() -> None:
            if not has_result.is_set():
                self._is_waiting = True
                self._wait(True)

        timer = Timer(_PATIENCE, lambda: self._deliver(number, document, wait))
        timer.daemon = True
        timer.start()
        try:
            for result in task():
                has_result.set()
                timer.cancel()
                if number != self._last:
                    return
                hidden = [result]
                if time.monotonic() - shown_at >= _INTERVAL:
                    self._deliver(number, document, partial(self._answer, self._show, hidden.pop()))
                    shown_at = time.monotonic()
        except Exception as error:
            failure = error
        has_result.set()
        timer.cancel()
        for result in hidden:
            self._deliver(number, document, partial(self._answer, self._show, result))
        if failure is not None:
            self._deliver(number, document, partial(self._answer, self._fail, failure))

    def _answer(self, show: Callable[[Any], None], result: Any) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._wait(False)
        show(result)

    def _deliver(self, number: int, document: Document | None, call: Callable[[], None]) -> None:
        def call_if_last() -> None:
            if number == self._last:
                with pn.io.unlocked():  # the browser gets all changes in one message
                    call()

        if document is None:  # without a server
            call_if_last()
        else:
            document.add_next_tick_callback(call_if_last)

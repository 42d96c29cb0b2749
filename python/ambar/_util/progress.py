"""Functions that work reports its progress to: the caller's, or a progress bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, Timer
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""A function that is called with the work done and all work."""

_DELAY = 1.0  # seconds before a bar is visible


def progress_function(
    progress: Progress | bool | None, title: str
) -> AbstractContextManager[Progress | None]:
    """Return a context manager of the function that progress is reported to.

    That is the caller's function, a progress bar for True, and None for False and None.

    Raises
    ------
    TypeError
        If `progress` is anything else.
    ModuleNotFoundError
        If rich is not installed, in the ``with`` statement of a bar.
    """
    if progress is None or isinstance(progress, bool):
        return _progress_bar(title) if progress else nullcontext()
    if not callable(progress):
        raise TypeError(
            f"expected progress to be a function of two integers, True or False, found {progress!r}"
        )
    return nullcontext(progress)


@contextmanager
def _progress_bar(title: str) -> Iterator[Progress]:
    """Yield a function that draws a bar on stderr, if that is a terminal.

    The bar appears after a second, so that short work prints nothing. It moves without a position
    as long as the function has not been called.

    Raises
    ------
    ModuleNotFoundError
        If rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar
    except ModuleNotFoundError as error:
        message = f"a progress bar needs {error.name}: pip install 'ambar[cli]'"
        raise ModuleNotFoundError(message, name=error.name) from None

    console = Console(stderr=True, emoji=False)
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    bar = Bar(TextColumn("{task.description}"), *columns, console=console, transient=True)
    task = bar.add_task(title, total=None)
    lock, is_done = Lock(), False

    def begin() -> None:
        with lock:
            if not is_done:
                bar.start()

    timer = Timer(_DELAY, begin)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=max(total, 1))
    finally:
        timer.cancel()
        with lock:
            is_done = True
            if bar.live.is_started:
                bar.stop()


def part_of_progress(progress: Progress, done: int, parts: int) -> Progress:
    """Return a function for the progress of one of several equal parts, `done` before it."""

    def report(own: int, total: int) -> None:
        progress(100 * done + 100 * own // max(total, 1), 100 * parts)

    return report

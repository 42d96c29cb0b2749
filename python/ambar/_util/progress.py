"""A progress bar on the terminal, for work that takes longer than a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Timer

_PATIENCE = 1.0  # seconds before a bar is shown


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function to be called with `(done, total)`; draws on stderr, and only on a terminal.

    The bar appears after a second, so that short work leaves no trace. It moves without a position
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
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ModuleNotFoundError as error:
        message = f"a progress bar needs {error.name}: pip install 'ambar[cli]'"
        raise ModuleNotFoundError(message, name=error.name) from None

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda *_: None
        return
    columns = (BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    shown = Progress(TextColumn("{task.description}"), *columns, console=console, transient=True)
    task = shown.add_task(title, total=None)
    lock, is_done = Lock(), False

    def begin() -> None:
        with lock:
            if not is_done:
                shown.start()

    timer = Timer(_PATIENCE, begin)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: shown.update(task, completed=done, total=max(total, 1))
    finally:
        timer.cancel()
        with lock:
            is_done = True
            if shown.live.is_started:
                shown.stop()

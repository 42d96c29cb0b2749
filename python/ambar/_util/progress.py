"""A progress bar on the terminal, for work that takes longer than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE = 1.0  # seconds before a bar is shown


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function to be called with `(done, total)`; draws on stderr, and only on a terminal.

    The bar appears when the work has gone on for a second, so that short work leaves no trace.

    Raises
    ------
    ModuleNotFoundError
        If rich is not installed.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ModuleNotFoundError as error:
        message = f"a progress bar needs {error.name}: pip install 'ambar[cli]'"
        raise ModuleNotFoundError(message, name=error.name) from None

    console = Console(stderr=True)
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = shown.add_task(title, total=None)
    begun = time.monotonic()
    started = False

    def update(done: int, total: int) -> None:
        nonlocal started
        if not started and time.monotonic() - begun > _PATIENCE:
            shown.start()
            started = True
        if started:
            shown.update(task, completed=done, total=max(total, 1))

    try:
        yield update
    finally:
        if started:
            shown.stop()

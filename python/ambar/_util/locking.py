"""Locks of writers: one operation at a time, in the process that made them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from threading import RLock
from typing import Any, TypeVar, cast

from ambar import _core

_Method = TypeVar("_Method", bound=Callable[..., Any])


class _Process:
    """The id of the running process, without the system call, which takes longer than a lock."""

    id = os.getpid()


os.register_at_fork(after_in_child=lambda: setattr(_Process, "id", os.getpid()))


class WriterLock:
    """Serialises the operations of a writer between threads; a context manager.

    Only the process that made the lock may write. In a forked child the lock raises ValueError
    instead of waiting for a thread that does not exist there.
    """

    def __init__(self) -> None:
        lock = RLock()
        self._acquire, self._release = lock.acquire, lock.release
        self._process = _Process.id

    @property
    def is_foreign(self) -> bool:
        """Whether this process is not the one that made the lock."""
        return _Process.id != self._process

    def __enter__(self) -> None:
        if _Process.id != self._process:
            raise _core.InvalidError(
                f"expected the process that opened this writer, {self._process}, found its forked "
                f"child {_Process.id}; open the store in the child"
            )
        self._acquire()

    def __exit__(self, *_: object) -> None:
        self._release()


def locked(method: _Method) -> _Method:
    """Make a method hold its object's ``_lock`` while it runs."""

    @functools.wraps(method)
    def holding(self: Any, /, *args: Any, **options: Any) -> Any:
        with self._lock:
            return method(self, *args, **options)

    return cast("_Method", holding)

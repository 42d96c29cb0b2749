"""Locks of objects that write: one operation at a time, in the process that made the object."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import RLock
from types import TracebackType
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ambar import _core

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class _Process:
    """The id of the running process, without the system call, which takes longer than a lock."""

    id = os.getpid()

    @classmethod
    def update(cls) -> None:
        cls.id = os.getpid()


os.register_at_fork(after_in_child=_Process.update)


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._release()


class _Locked(Protocol):
    @property
    def _lock(self) -> AbstractContextManager[None]: ...


_Owner = TypeVar("_Owner", bound=_Locked)


def locked(
    method: Callable[Concatenate[_Owner, _Parameters], _Result],
) -> Callable[Concatenate[_Owner, _Parameters], _Result]:
    """Make a method hold its object's ``_lock`` while it runs."""

    @functools.wraps(method)
    def holding(self: _Owner, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        with self._lock:
            return method(self, *args, **kwargs)

    return holding

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


class WriterLock:
    """Serialises the operations of a writer between threads; a context manager.

    Only the process that made the lock may write. In a forked child the lock raises InvalidError
    instead of waiting for a thread that does not exist there.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._process = os.getpid()

    @property
    def is_foreign(self) -> bool:
        """Whether this process is not the one that made the lock."""
        return os.getpid() != self._process

    def __enter__(self) -> None:
        if self.is_foreign:
            raise _core.InvalidError(
                f"expected the process that opened this writer, {self._process}, found its forked "
                f"child {os.getpid()}; open the store in the child"
            )
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()


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

"""Properties that are computed on first access and then kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

_Owner = TypeVar("_Owner")
_Value = TypeVar("_Value")


class cached_property(  # noqa: N801 - as that of functools
    functools.cached_property[_Value], Generic[_Owner, _Value]
):
    """A property that is computed on first access and kept in the object's ``__dict__``.

    Unlike `functools.cached_property` before Python 3.12 it holds no lock while it computes: a
    child forked meanwhile would wait for that lock forever. Two threads may both compute the value.
    """

    def __init__(self, compute: Callable[[_Owner], _Value]) -> None:
        super().__init__(compute)

    @overload  # type: ignore[override]
    def __get__(self, instance: None, owner: type) -> cached_property[_Owner, _Value]: ...

    @overload
    def __get__(self, instance: _Owner, owner: type) -> _Value: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self.attrname, self.func(instance))

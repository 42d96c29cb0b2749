"""Checks of arguments: names, modes of writing as in h5py and zarr-python, and positions."""

from __future__ import annotations

import difflib
import inspect
import operator
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, TypeVar, get_args

WriteMode = Literal["w-", "w", "a"]
OpenMode = Literal["r", "w-", "w", "a"]


Class = TypeVar("Class")


def explained_arguments(
    hints: Mapping[str, str] | None = None,
) -> Callable[[type[Class]], type[Class]]:
    """Let the public methods of a class say what to do about unknown keyword arguments.

    Parameters
    ----------
    hints
        What to do, by argument. Without one, the message names the most similar argument.

    Returns
    -------
    callable
        A decorator of classes.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        for name, function in list(vars(cls).items()):
            if inspect.isfunction(function) and not name.startswith("_"):
                setattr(cls, name, _explained(function, hints or {}))
        return cls

    return decorate


def _explained(function: Callable[..., Any], hints: Mapping[str, str]) -> Callable[..., Any]:
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = hints.get(name) or (f"did you mean {close[0]!r}?" if close else "")
                hint = hint or f"arguments: {', '.join(known[1:])}"
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}; {hint}"
                )
        return function(*args, **given)

    return checked


def check_mode(mode: str, accepted: Any = WriteMode) -> None:
    """Refuse a mode that is not in a ``Literal``.

    Parameters
    ----------
    mode : str
        The caller's argument.
    accepted : Literal
        ``WriteMode`` (default), ``OpenMode`` or a ``Literal`` of fewer modes.

    Raises
    ------
    ValueError
        If `mode` is not one of them.
    """
    modes = get_args(accepted)
    if mode not in modes:
        expected = ", ".join(map(repr, modes))
        raise ValueError(f"invalid mode {mode!r}: must be one of {expected}")


def checked_position(index: object, count: int, owner: str, item: str) -> int:
    """Return the position of an item from 0 to `count` - 1; negative ones count from the end.

    Raises
    ------
    TypeError
        If `index` is not an integer.
    IndexError
        If the sequence has no such item.
    """
    try:
        number = operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{owner}: expected the position of one {item}, an integer, or a slice; found {index!r}"
        ) from None
    if not -count <= number < count:
        raise IndexError(
            f"{owner}: expected the position of one of {count} {item}s, from 0 to {count - 1} or "
            f"from -{count} to -1; found {number}"
            if count
            else f"{owner}: no {item} {number}: it has no {item}s"
        )
    return number % count

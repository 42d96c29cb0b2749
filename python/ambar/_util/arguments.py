"""Checks of arguments: names, modes of writing as in h5py and zarr-python, lengths, strings."""

from __future__ import annotations

import difflib
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, SupportsFloat, SupportsIndex, TypeVar, cast, get_args

from ambar import _core

WriteMode = Literal["w-", "w", "a"]
OpenMode = Literal["r", "w-", "w", "a"]


_LENGTHS_BELOW = 2**63
"""Lengths are smaller: the format has integers of 64 bits with a sign."""

Target = TypeVar("Target")


def explained_arguments(
    hints: Mapping[str, str] | None = None,
) -> Callable[[Target], Target]:
    """Let a function, or the public methods of a class, say what to do about wrong arguments.

    Parameters
    ----------
    hints
        What to do, by unknown keyword argument. Without one, the message names the most similar
        argument.

    Returns
    -------
    callable
        A decorator.
    """

    def decorate(target: Target) -> Target:
        if inspect.isfunction(target):
            return cast("Target", _explained(target, hints or {}))
        for name, function in list(vars(target).items()):
            if inspect.isfunction(function) and not name.startswith("_"):
                setattr(target, name, _explained(function, hints or {}))
        return target

    return decorate


def _explained(function: Callable[..., Any], hints: Mapping[str, str]) -> Callable[..., Any]:
    signature, title = inspect.signature(function), f"{function.__name__}()"
    known = [name for name in signature.parameters if name != "self"]
    parameters = signature.parameters.values()
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    named = [f"{one.name}=" for one in parameters if one.kind is one.KEYWORD_ONLY]

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = hints.get(name) or (f"did you mean {close[0]!r}?" if close else "")
                hint = hint or f"arguments: {', '.join(known)}"
                raise TypeError(f"{title} got an unexpected keyword argument {name!r}; {hint}")
        if len(args) > len(positional):
            first = ", ".join(name for name in positional if name != "self") or "none"
            raise TypeError(
                f"{title} takes these arguments without a name: {first}; found "
                f"{args[len(positional)]!r:.40} in addition, which needs one: {', '.join(named)}"
            )
        try:
            signature.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{title}: {error}") from None
        return function(*args, **given)

    return checked


def names_of(what: str, names: object) -> list[str]:
    """Return one name, or several, as a list; raises TypeError for arguments of other types."""
    if isinstance(names, str):
        return [names]
    given: list[object] = list(names) if isinstance(names, Iterable) else [names]
    found = [name for name in given if isinstance(name, str)]
    if len(found) < len(given):
        raise TypeError(f"invalid {what}: expected a name, or a list of names, found {names!r:.80}")
    return found


def check_number(what: str, value: object) -> None:
    """Raise TypeError if an argument is not a number; `what` is its name, for the message."""
    if not isinstance(value, SupportsFloat):
        raise TypeError(
            f"invalid {what}: expected a number, found {value!r:.80} of the type "
            f"{type(value).__name__}; give it as a number, such as 0.5"
        )


def two_numbers(what: str, values: object) -> tuple[float, float]:
    """Return an argument of two numbers, such as a range; raises ValueError for other ones."""
    try:
        low, high = (float(value) for value in cast("Sequence[float]", values))
    except (TypeError, ValueError):
        raise _core.InvalidError(
            f"invalid {what}: {values!r:.80}; expected two numbers, (lowest, highest)"
        ) from None
    return low, high


def check_choice(what: str, value: object, accepted: Iterable[str]) -> None:
    """Raise ValueError for an argument that is not an accepted string; `what` is its name."""
    choices = tuple(accepted)
    if value not in choices:
        expected = ", ".join(map(repr, choices))
        raise _core.InvalidError(f"invalid {what} {value!r:.80}: must be one of {expected}")


def check_bytes(name: str, value: object, least: int = 0) -> None:
    """Raise ValueError if an argument is not an integer number of bytes from `least` on."""
    count = operator.index(value) if isinstance(value, SupportsIndex) else -1
    if not least <= count < _LENGTHS_BELOW:
        raise _core.InvalidError(
            f"invalid {name}: {value!r:.80}; expected a number of bytes >= {least}"
        )


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
    check_choice("mode", mode, get_args(accepted))


class PositionError(IndexError):
    """A position that a sequence does not have."""


def checked_position(index: object, count: int, owner: str, item: str, hint: str = "") -> int:
    """Return the position of an item from 0 to `count` - 1; negative ones count from the end.

    Raises
    ------
    TypeError
        If `index` is not an integer.
    IndexError
        If the sequence has no such item; `hint` is the end of the message.
    """
    try:
        number = operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{owner}: expected the position of one {item}, an integer, or a slice; found {index!r}"
        ) from None
    if not -count <= number < count:
        raise PositionError(
            f"{owner}: expected the position of one of {count} {item}s, from 0 to {count - 1} or "
            f"from -{count} to -1; found {number}{hint}"
            if count
            else f"{owner}: no {item} {number}: it has no {item}s"
        )
    return number % count


def is_unicode(text: str) -> bool:
    """Whether a string has no lone surrogates, as names of files that are not UTF-8 have."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_unicode(what: str, value: object) -> None:
    """Raise ValueError if a string, or one in a list or mapping, has a lone surrogate.

    `what` is the argument, for the message. Objects of other types are not checked.
    """
    if isinstance(value, str):
        if not is_unicode(value):
            raise _core.InvalidError(
                f"invalid {what}: {value!r:.80}; expected a Unicode string, found a lone "
                "surrogate; remove it"
            )
    elif isinstance(value, Mapping):
        for item in value.items():
            check_unicode(what, item)
    elif isinstance(value, list | tuple):
        for item in value:
            check_unicode(what, item)


def lengths_of(path: str, name: str, values: object) -> tuple[int, ...]:
    """Return an argument of integers >= 0; raises ValueError for other ones."""
    try:
        lengths = tuple(operator.index(value) for value in cast("Sequence[int]", values))
    except TypeError:
        lengths = (-1,)
    if not all(0 <= length < _LENGTHS_BELOW for length in lengths):
        raise _core.InvalidError(
            f"{path}: invalid {name}: {values!r:.80}; expected a sequence of integers >= 0, one "
            "for each dimension"
        )
    return lengths

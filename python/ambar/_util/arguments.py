"""Checks of arguments: modes of writing, as in h5py and zarr-python, and positions."""

from __future__ import annotations

import operator
from typing import Any, Literal, get_args

WriteMode = Literal["w-", "w", "a"]
OpenMode = Literal["r", "w-", "w", "a"]


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

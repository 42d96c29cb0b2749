"""Checks of the positions of items in sequences."""

from __future__ import annotations

import operator


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

"""Selections of steps and names for copies of stores."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import TypeAlias, TypeVar

from ambar import _core
from ambar._util.arguments import checked_position
from ambar._util.text import suggestion

Positions: TypeAlias = int | slice | Iterable[int] | None
"""Positions of steps: one, negative ones from the end, a slice or several; None for all."""

Item = TypeVar("Item")
STEP = "step_"
"""The start of the name of a step of arrays or of a mesh."""


def step_name(number: int) -> str:
    """Return the name of the group of a step of arrays or of a mesh."""
    return f"{STEP}{number:06d}"


def select_steps(steps: Sequence[Item], wanted: Positions, where: str) -> list[Item]:
    """Return the steps at some positions, in their order in the store; all of them for None.

    Parameters
    ----------
    steps
        The steps of the store.
    wanted
        A position, negative ones from the end, a slice, or several positions.
    where
        The store, for messages.

    Raises
    ------
    IndexError
        If a position does not exist.
    TypeError
        If a position is not an integer.
    ValueError
        If no step is selected.
    """
    if wanted is None:
        return list(steps)
    if isinstance(wanted, slice):
        chosen = set(range(*wanted.indices(len(steps))))
    else:
        several = wanted if isinstance(wanted, Iterable) else [wanted]
        chosen = {checked_position(each, len(steps), where, "step") for each in several}
    if not chosen:
        found: object = wanted
        if isinstance(wanted, slice):
            ends = (wanted.start, wanted.stop, wanted.step)
            found = ":".join("" if end is None else str(end) for end in ends).removesuffix(":")
        raise _core.InvalidError(
            f"{where}: expected steps among the {len(steps)} of the store, found {found}, which "
            "selects none; positions begin at 0"
        )
    return [step for number, step in enumerate(steps) if number in chosen]


def matching_names(known: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the names that are in `patterns`, or match one of them, such as "velocity_*"."""
    return [
        name
        for name in known
        if name in patterns or any(fnmatch.fnmatchcase(name, each) for each in patterns)
    ]


def select_names(
    known: Sequence[str], patterns: Sequence[str] | None, where: str, what: str
) -> list[str]:
    """Return the names that are in `patterns`, or match one of them; all for None.

    Raises KeyError for a pattern that matches no name.
    """
    if patterns is None:
        return list(known)
    for pattern in patterns:
        if not matching_names(known, [pattern]):
            raise _core.NotFoundError(
                f"{where}: no {what} {pattern!r}; {suggestion(pattern, list(known))}"
            )
    return matching_names(known, patterns)

"""Where an array is: in a step of a series, as a running program writes them, or anywhere else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ambar import _core
from ambar._util.arguments import checked_position
from ambar._util.text import suggestion
from ambar.store.copies.arrays import is_series
from ambar.store.copies.selection import step_name
from ambar.store.group_description import Description

if TYPE_CHECKING:
    from ambar.store.store import Store


@dataclass(frozen=True)
class ArrayPlace:
    """The path of an array in a store, its step, and the part of it that is drawn."""

    path: str
    index: int | None = None
    """The index along the first of three or more dimensions; None for the middle of a side of
    a volume, otherwise for the first index."""
    title: str = ""
    """The step and its time, where they are known."""


def locate(store: Store, name: str, output: int | None) -> ArrayPlace:
    """Return the place of an array: its path, or its name inside a step, by default the last one.

    Raises
    ------
    IndexError
        If the series has no step `output`.
    KeyError
        If the step does not have the array.
    """
    name = name.strip("/")
    times = _times_of(store)
    if not times or name in store:
        return ArrayPlace(name, output)
    if output is not None:
        number = checked_position(output, len(times), store.location, "step")
    else:
        number = max(_steps_with(store, name, len(times)), default=len(times) - 1)
    place = _in_step(name, number, times)
    if place.path not in store:
        group = f"{step_name(number)}/"
        names = [path.removeprefix(group) for path in store if path.startswith(group)]
        raise _core.NotFoundError(
            f"{store.location}: no array {name!r} in step {number}; {suggestion(name, names)}"
        )
    return place


def locate_frames(store: Store, name: str) -> list[ArrayPlace]:
    """Return the places of a movie: the steps with an array, or the indices of its first dimension.

    Raises
    ------
    ValueError
        If the array is in no series, and has less than three dimensions.
    """
    place = locate(store, name, None)
    if place.path != name.strip("/"):
        times = _times_of(store)
        return [_in_step(name, n, times) for n in _steps_with(store, name, len(times))]
    if place.path not in store:
        return [place]
    array = store[place.path]
    if array.ndim < 3:
        raise _core.InvalidError(
            f"{store.location}: expected an array of three dimensions for a movie, found {name!r} "
            f"of {array.ndim}; leave --movie out"
        )
    return [replace(place, index=n) for n in range(array.shape[0])] or [place]


def names_to_choose(store: Store, output: int | None) -> dict[str, str]:
    """Return the arrays to choose from: names inside a step, by default the last, and paths."""
    times = _times_of(store)
    if not times:
        return {path: path for path in store}
    number = -1 if output is None else output
    group = f"{step_name(checked_position(number, len(times), store.location, 'step'))}/"
    return {path.removeprefix(group): path for path in store if path.startswith(group)}


def _times_of(store: Store) -> list[object]:
    """Return the times of the steps of a series of arrays; empty for other stores."""
    if not is_series(store):
        return []
    return Description(store._ambar_attributes(), store.location).items("times")


def _steps_with(store: Store, name: str, count: int) -> list[int]:
    return [n for n in range(count) if f"{step_name(n)}/{name.strip('/')}" in store]


def _in_step(name: str, number: int, times: list[object]) -> ArrayPlace:
    time = times[number]
    title = f"step {number}" + (f", time {time:g}" if isinstance(time, int | float) else "")
    return ArrayPlace(f"{step_name(number)}/{name.strip('/')}", title=title)

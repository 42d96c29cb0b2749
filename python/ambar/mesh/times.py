"""Time steps found by times that differ by rounding errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ambar import _core

TOLERANCE = 1e-6
"""Largest difference of a time, relative to the time plus the smallest interval between steps.

This covers times that were rounded to float32, or computed as a sum of steps.
"""
_LISTED = 3


def is_near(time: float, known: float, times: Sequence[float]) -> bool:
    """Whether `time` equals `known`, one of the ascending `times`, within the tolerance."""
    interval = min((later - earlier for earlier, later in pairwise(times)), default=0.0)
    return abs(time - known) <= TOLERANCE * (abs(known) + interval)


def step_at(times: Sequence[float], time: float, where: str) -> int:
    """Return the number of the step whose time is nearest to `time`.

    Raises KeyError, which names the nearest times, if none is within the tolerance.
    """
    nearest = sorted(range(len(times)), key=lambda number: abs(times[number] - time))
    if nearest and is_near(time, times[nearest[0]], times):
        return nearest[0]
    listed = ", ".join(repr(times[number]) for number in sorted(nearest[:_LISTED]))
    found = f"the nearest of {len(times):,} times are {listed}" if nearest else "it has no times"
    raise _core.NotFoundError(f"{where}: no step has the time {time}; {found}")

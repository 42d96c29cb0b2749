"""Checks of error bounds: those that the caller gives, otherwise those that stores record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ambar.comparison.error_metrics import Scale
from ambar.store.error_bounds import (
    PartBound,
    are_kept,
    bounds_by_target,
    is_kept,
    joined_bounds,
    measured_error,
    resolved,
    select_bounds,
)


@dataclass
class CheckedBound:
    """The error bounds of a field or column, and whether they held."""

    bound: float | str | None
    """The error bound that is checked: a number if it is absolute, 0 if values must be equal.

    None if no bound is known, or if parts have different bounds (see `bounds`).
    """
    held: bool | None
    """Whether the error bounds held; None if no bound is known."""
    bounds: dict[str, str]
    """The error bounds that were given, to `compare` or when the stores were written, by target."""
    measured: float | None
    """The error that `bound` limits: the largest absolute or relative one, or their rms.

    None without `bound`, or if it is in bits.
    """


def check_bounds(
    values: tuple[np.ndarray, np.ndarray],
    difference: np.ndarray,
    scale: Scale,
    *,
    given: Sequence[PartBound],
    recorded: Sequence[PartBound],
    stored: Sequence[float | str | None],
    levels: np.ndarray | None = None,
    positions: Callable[[], Sequence[np.ndarray]],
) -> CheckedBound:
    """Check the error bounds of a field or a column.

    Parameters
    ----------
    values
        The values of the original and of the other version.
    difference
        The errors.
    scale
        The scale of the values of the original.
    given
        The bounds that the caller gives.
    recorded
        The bounds that the stores were written with, which count if the caller gives none.
    stored
        The bound of the whole array in each store: 0 if it is lossless, None if it is unknown.
    levels, positions
        The level and the coordinates of each value, for bounds of levels and boxes.
    """
    parts = given or recorded
    is_lossy = [bound not in (None, 0.0) for bound in stored]
    if len(parts) > 1 and (given or sum(is_lossy) == 1):
        # Bounds "of range" refer to the values before compression.
        original = values[1] if not given and is_lossy[0] else values[0]
        hold = are_kept(parts, original, difference, levels, positions)
        return CheckedBound(None, hold, bounds_by_target(parts), None)
    if given:
        # A range can be larger than the largest number.
        limits = (0.0, min(scale.range * scale.unit, sys.float_info.max))
        bound: float | str | None = resolved(given[-1].bound, limits)
    else:
        bound = joined_bounds(stored)
    targets = bounds_by_target(parts) if parts else {}
    if bound is None:
        return CheckedBound(None, None, targets, None)
    if isinstance(bound, str):
        held = is_kept(bound, values[0], difference)
        return CheckedBound(bound, held, targets, measured_error(bound, values[0], difference))
    largest = float(np.abs(difference).max(initial=0.0))
    return CheckedBound(bound, largest <= bound, targets, largest)


def stored_bound(attributes: Mapping[str, Any] | None, name: str) -> float | str | None:
    """Return the bound of a field in a store, from the attributes of its group; 0 without one.

    None for data that are not in a store.
    """
    if attributes is None:
        return None
    bound: float | str = attributes.get("error_bounds", {}).get(name, 0.0)
    return bound


def recorded_bounds(attributes: Mapping[str, Any] | None, name: str) -> list[PartBound]:
    """Return the bounds that a field was written with, from the attributes of its group."""
    rules = [
        (target, bound)
        for target, bound in (attributes or {}).get("requested_bounds", {}).items()
        if target.partition("@")[0] == name
    ]
    return (select_bounds(rules, [name]) or []) if rules else []

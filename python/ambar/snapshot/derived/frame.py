"""Parameters of derived fields: a center, an axis, a bulk velocity, gamma, and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ambar import _core
from ambar.snapshot.regions import direction

Vector = tuple[float, ...]
BirthTimes = Literal["conformal", "proper"]


@dataclass(frozen=True)
class Parameters:
    """The parameters of derived fields; None for the default."""

    center: Vector | None = None
    """The origin of positions, code length; by default the middle of the box."""
    axis: Vector = (0.0, 0.0, 1.0)
    """The axis of cylindrical and spherical coordinates: a vector of length 1."""
    velocity: Vector | None = None
    """The velocity that others are relative to, code velocity; by default 0."""
    gamma: float | None = None
    """Ratio of specific heats; by default that of the run."""
    mu: float | None = None
    """Mean molecular weight; by default 1/0.76."""
    birth_times: BirthTimes | None = None
    """The time in which birth times of a cosmological run are; by default as the run states."""

    @property
    def basis(self) -> tuple[Vector, Vector, Vector]:
        """Unit vectors x', y' and z' of the frame; those of yt."""
        x, y, z = self.axis
        if z != 0:
            first = direction((1.0, 0.0, -x / z))
        elif y != 0:
            first = (0.0, 0.0, 1.0)
        else:
            first = (0.0, 1.0, 0.0)
        a, b, c = first
        return first, (y * c - z * b, z * a - x * c, x * b - y * a), self.axis


def finite_vector(numbers: Sequence[float], count: int, what: str) -> Vector:
    """Return `count` finite numbers, or raise ValueError."""
    found = tuple(float(number) for number in numbers)
    if len(found) != count or not all(map(math.isfinite, found)):
        raise _core.InvalidError(
            f"invalid {what}: {tuple(numbers)}; expected {count} finite numbers"
        )
    return found

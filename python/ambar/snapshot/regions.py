"""Parts of space to read: a box, a sphere, a shell, in any unit of length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ambar._core import InvalidError

if TYPE_CHECKING:
    from ambar._core import _Periodic as Periodic
    from ambar._core import _Region as CoreRegion
    from ambar.snapshot.run_info import RunInfo

Numbers: TypeAlias = Sequence[float | None]
Center: TypeAlias = str | Sequence[float | str]

Bounds: TypeAlias = Sequence[float]
"""As VTK has them: (x0, x1, y0, y1, z0, z1)."""

_CENTER_NAMES = ("bc", "boxcenter")


def length_of_unit(info: RunInfo, unit: str) -> float:
    """Return one `unit` in code length: "box" (the box's size in x), "code", "cm", "kpc", ..."""
    return info.boxlen if unit == "box" else 1.0 / info.units.length(unit)


def _center(center: Center, info: RunInfo, unit: str) -> tuple[float, ...]:
    """Return `center` in code length; "bc" is the middle of the box, in any or all dimensions."""
    ndim, scale, start = info.ndim, length_of_unit(info, unit), _start(info, unit)
    parts = [center] * ndim if isinstance(center, str) else list(center)
    if len(parts) != ndim:
        raise InvalidError(f"the center {center!r} has {len(parts)} numbers; the data have {ndim}")
    numbers = []
    for axis, part in enumerate(parts):
        if isinstance(part, str):
            if part not in _CENTER_NAMES:
                raise InvalidError(f"{part!r} is no center; use numbers or 'bc', the box's middle")
            numbers.append(info.lower[axis] + info.box_size[axis] / 2)
        else:
            numbers.append(start[axis] + _finite(part) * scale)
    return tuple(numbers)


def _start(info: RunInfo, unit: str) -> tuple[float, ...]:
    """Return where numbers count from: fractions from the box's lower corner, others from 0."""
    return info.lower if unit == "box" else (0.0,) * info.ndim


def _periodic(info: RunInfo) -> Periodic:
    """Return the lower corner and the sides of the box, infinite where it is not periodic."""
    periodic = info.periodic or (False,) * info.ndim
    sides = (
        size if wraps else math.inf for size, wraps in zip(info.box_size, periodic, strict=True)
    )
    return info.lower, tuple(sides)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidError(f"{value} cannot place a region; use finite numbers")
    return float(value)


def _radius(value: float, scale: float) -> float:
    if _finite(value) < 0:
        raise InvalidError(f"the radius {value} is negative")
    return float(value) * scale


@dataclass(frozen=True)
class Box:
    """Everything from `lo` to `hi`; a cell or particle counts if its centre is inside.

    Where the run's box is periodic (``info.periodic``), what reaches over a face enters again at
    the opposite one; an open side ends at the face. Grids, slices and projections end at the faces.

    Parameters
    ----------
    lo, hi
        Corners, a number per dimension; None leaves that side open.
    unit
        Of all numbers: "box" (fractions of the box's size in x), "code", or a unit of length
        ("cm", "m", "km", "Au", "ly", "pc", "kpc", "Mpc"). Of meshes, numbers are coordinates.
    center
        Where `lo` and `hi` count from: if None the origin (for fractions of the box: its lower
        corner), the middle of the box if "bc" (also for
        single dimensions: ``("bc", "bc", 0.3)``), or numbers.
    """

    lo: Numbers
    hi: Numbers
    unit: str = "box"
    center: Center | None = None

    def to_code(self, info: RunInfo) -> CoreRegion:
        """Return the region in code length for data of `info`'s dimensions and units."""
        return ("box", *self.corners(info), _periodic(info))

    def coordinates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the corners as coordinates of a mesh, which has neither a box nor a unit.

        Raises
        ------
        ValueError
            If they have a unit of length, are not three numbers each, or count from "bc".
        """
        center = (0.0, 0.0, 0.0) if self.center is None else self.center
        if self.unit not in ("box", "code"):
            raise InvalidError(
                f"the coordinates of a mesh are in no unit, so not in {self.unit!r} either; leave "
                "it out"
            )
        if not len(self.lo) == len(self.hi) == len(center) == 3:
            raise InvalidError(f"a part of a mesh has corners of three numbers, not {self!r}")
        if any(isinstance(part, str) for part in center):
            raise InvalidError(f"a mesh has no box, so no middle of it: give numbers, not {center}")
        origin = [_finite(float(part)) for part in center]
        lo = _corner(self.lo, origin, 1.0, -math.inf)
        hi = _corner(self.hi, origin, 1.0, math.inf)
        return _in_order(self, lo, hi)

    def corners(self, info: RunInfo) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the corners in code length; infinite where a side is open."""
        scale = length_of_unit(info, self.unit)
        for corner in (self.lo, self.hi):
            if len(corner) != info.ndim:
                raise InvalidError(
                    f"the corner {tuple(corner)} has {len(corner)} numbers; the data have "
                    f"{info.ndim} dimensions"
                )
        origin = _start(info, self.unit)
        if self.center is not None:
            origin = _center(self.center, info, self.unit)
        lo = _corner(self.lo, origin, scale, -math.inf)
        hi = _corner(self.hi, origin, scale, math.inf)
        return _in_order(self, lo, hi)


def as_box(region: Box | Bounds) -> Box:
    """Return a part of a mesh as a `Box`: one unchanged, or bounds (x0, x1, y0, y1, z0, z1).

    Raises
    ------
    ValueError
        If it is neither.
    """
    if isinstance(region, Box):
        return region
    try:
        bounds = [float(number) for number in region]
    except (TypeError, ValueError):
        bounds = []
    if len(bounds) != 6:
        raise InvalidError(
            f"invalid part of a mesh: {region!r:.80}; expected an ambar.Box, or bounds "
            "(x0, x1, y0, y1, z0, z1) such as mesh.bounds"
        )
    return Box(bounds[::2], bounds[1::2], unit="code")


def _in_order(
    box: Box, lo: tuple[float, ...], hi: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if any(low > high for low, high in zip(lo, hi, strict=True)):
        raise InvalidError(f"the box's lower corner {box.lo} is above its upper one {box.hi}")
    return lo, hi


def _corner(
    values: Numbers, origin: Sequence[float], scale: float, open_side: float
) -> tuple[float, ...]:
    return tuple(
        open_side if value is None else start + _finite(value) * scale
        for value, start in zip(values, origin, strict=True)
    )


@dataclass(frozen=True)
class Sphere:
    """Everything within `radius` of `center` (a disc in two dimensions, an interval in one).

    `center` and `unit` are as for `Box`. Where the run's box is periodic, distances are those to
    the nearest image of the center.
    """

    center: Center
    radius: float
    unit: str = "box"

    def to_code(self, info: RunInfo) -> CoreRegion:
        """Return the region in code length for data of `info`'s dimensions and units."""
        scale = length_of_unit(info, self.unit)
        center = _center(self.center, info, self.unit)
        return ("sphere", center, _radius(self.radius, scale), _periodic(info))


@dataclass(frozen=True)
class Shell:
    """Everything between the distances `inner` and `outer` of `center`.

    `center` and `unit` are as for `Box`, distances as for `Sphere`.
    """

    center: Center
    inner: float
    outer: float
    unit: str = "box"

    def to_code(self, info: RunInfo) -> CoreRegion:
        """Return the region in code length for data of `info`'s dimensions and units."""
        scale = length_of_unit(info, self.unit)
        inner, outer = _radius(self.inner, scale), _radius(self.outer, scale)
        if inner > outer:
            raise InvalidError(f"the shell's inner radius {self.inner} exceeds {self.outer}")
        center = _center(self.center, info, self.unit)
        return ("shell", center, inner, outer, _periodic(info))


Region: TypeAlias = Box | Sphere | Shell

"""Regions of space: boxes, spheres, shells, cylinders, and combinations, in any unit of length."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._core import InvalidError
from ambar._util.arguments import check_number

if TYPE_CHECKING:
    from ambar.snapshot.run_info import RunInfo

Levels: TypeAlias = tuple[int, int]
Numbers: TypeAlias = Sequence[float | None] | npt.NDArray[Any]
Direction: TypeAlias = str | Sequence[float] | npt.NDArray[Any]
Center: TypeAlias = str | Sequence[float | str] | npt.NDArray[Any]
Cut: TypeAlias = Literal["center", "whole", "fraction"]
MAX_LEVEL = 255
"""The highest level that a tree can have."""
CUTS = ("center", "whole", "fraction")

Bounds: TypeAlias = Sequence[float] | npt.NDArray[Any]
"""Bounds as in VTK: (x0, x1, y0, y1, z0, z1)."""

AXES = "xyz"
_CENTER_NAMES = ("bc", "boxcenter")


def region_in_code(region: Region | None, info: RunInfo) -> _core.Region | None:
    """Return a region in code length, None for None; raises TypeError if it is not a region."""
    if region is None:
        return None
    if not isinstance(region, Region):
        raise TypeError(
            f"expected a region such as ambar.Box or ambar.Sphere, found {region!r:.80}"
        )
    periodic = info.periodic or (False,) * info.ndim
    sides = [
        size if wraps else math.inf for size, wraps in zip(info.box_size, periodic, strict=True)
    ]
    code = region._to_code(info).in_periodic_box(info.lower, sides)
    upper = tuple(start + size for start, size in zip(info.lower, info.box_size, strict=True))
    # The upper faces are not in the box, so that a region that touches one does not overlap it.
    if not code.may_overlap(info.lower, [math.nextafter(end, -math.inf) for end in upper]):
        raise InvalidError(
            f"the region {region} does not overlap the box of the simulation, from {info.lower} to "
            f"{upper} in code length; check the unit of the region"
        )
    return code


def checked_levels(levels: Levels | None) -> Levels | None:
    """Return levels unchanged.

    Raises TypeError if they are not a tuple of two integers. Raises ValueError for levels outside
    of 0 to 255, and if the first one is above the second one.
    """
    if levels is None:
        return None
    try:
        low, high = map(operator.index, levels)
    except (TypeError, ValueError):
        raise TypeError(
            f"expected levels=(lowest, highest), such as (5, 5) for level 5 alone; found {levels!r}"
        ) from None
    if not 0 <= low <= high <= MAX_LEVEL:
        raise InvalidError(
            f"invalid levels: {levels}; expected (lowest, highest) from 0 to {MAX_LEVEL}, the "
            "lowest first"
        )
    return low, high


def check_max_level(level: object) -> None:
    """Raise TypeError if a level is neither None nor an integer, ValueError if it cannot exist."""
    if level is None:
        return
    if not isinstance(level, SupportsIndex):
        raise TypeError(f"expected an integer as max_level, found {level!r}")
    if not 0 <= operator.index(level) <= MAX_LEVEL:
        raise InvalidError(f"invalid max_level: {level}; expected a number from 0 to {MAX_LEVEL}")


def domain_part(
    region: Region | None, info: RunInfo, lower: Sequence[float], upper: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the corners of a box, cut to the domain from `lower` to `upper`, code length.

    Raises ValueError if `region` is not a box, has no volume, or does not overlap the domain.
    """
    low, high = _corners_of_grid(region, info, lower, upper)
    lo, hi = tuple(map(max, lower, low)), tuple(map(min, upper, high))
    if any(a >= b for a, b in zip(lo, hi, strict=True)):
        raise InvalidError(
            f"the region {region} does not overlap the box of the simulation, from {lower} to "
            f"{upper} in code length"
        )
    return lo, hi


def continued_part(
    region: Region | None, info: RunInfo, lower: Sequence[float], upper: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the corners of a box as `domain_part` does, but do not cut it at periodic faces.

    An open side ends at the face. Along an axis on which the box is longer than the domain, the
    corners are those of the domain. Raises ValueError also if the box is more than a side of the
    domain away from it.
    """
    low, high = _corners_of_grid(region, info, lower, upper)
    if isinstance(region, Box):
        _check_near(region, low, high, info)
    periodic = info.periodic or (False,) * info.ndim
    if not any(periodic):
        return domain_part(region, info, lower, upper)
    lo, hi = [], []
    for wraps, a, b, start, end in zip(periodic, low, high, lower, upper, strict=True):
        first = max(a, start) if a == -math.inf or not wraps else a
        last = min(b, end) if b == math.inf or not wraps else b
        is_whole = wraps and last - first > (end - start) * (1 + 1e-9)
        lo.append(start if is_whole else first)
        hi.append(end if is_whole else last)
    if any(a >= b for a, b in zip(lo, hi, strict=True)):
        return domain_part(region, info, lower, upper)  # raises
    return tuple(lo), tuple(hi)


def _corners_of_grid(
    region: Region | None, info: RunInfo, lower: Sequence[float], upper: Sequence[float]
) -> tuple[Sequence[float], Sequence[float]]:
    if region is None:
        return lower, upper
    if not isinstance(region, Box):
        raise InvalidError(
            f"expected an ambar.Box as the region of a grid, found a {type(region).__name__}; "
            "read() and map() support all regions"
        )
    low, high = region.corners(info)
    for axis, (start, end) in zip(AXES, zip(low, high, strict=True), strict=False):
        if start == end:
            raise InvalidError(
                f"expected a region with a side along {axis} for a grid, found {region}; make it "
                "as thick as a cell, or draw a slice"
            )
    return low, high


def cell_range(
    lo: Sequence[float], hi: Sequence[float], lower: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first cell of a level between two corners, and the cell after the last one.

    Cells have the given sizes and are counted from `lower`. A corner on a face of a cell, except
    for rounding, does not include the next cell.
    """
    first = np.floor((np.array(lo) - lower) / sizes + 1e-9).astype(np.int64)
    after = np.ceil((np.array(hi) - lower) / sizes - 1e-9).astype(np.int64)
    return first, np.maximum(after, first + 1)


def length_of_unit(info: RunInfo, unit: str) -> float:
    """Return one `unit` in code length: "box" (the box's size in x), "code", "cm", "kpc", ..."""
    return info.boxlen if unit == "box" else 1.0 / info.units.length(unit)


def center_in_code(center: Center, info: RunInfo, unit: str) -> tuple[float, ...]:
    """Return `center` in code length; "bc" is the middle of the box, in any or all dimensions."""
    ndim, scale, start = info.ndim, length_of_unit(info, unit), _start(info, unit)
    if isinstance(center, SupportsFloat) and np.ndim(center) == 0:
        raise TypeError(
            f"invalid center: expected 'bc' or {ndim} numbers, found {center!r:.80}; give one "
            "number for each dimension"
        )
    parts = [center] * ndim if isinstance(center, str) else list(center)
    if len(parts) != ndim:
        raise InvalidError(f"expected a center of {ndim} numbers, found {center!r}")
    numbers = []
    for axis, part in enumerate(parts):
        if isinstance(part, str):
            if part not in _CENTER_NAMES:
                advice = f"; find it first: run.amr.find_center({part!r}, unit={unit!r})"
                raise InvalidError(
                    f"invalid center {part!r}; expected a number, or 'bc' for the middle of the box"
                    f"{advice if ':' in part or part == 'com' else ''}"
                )
            numbers.append(info.lower[axis] + info.box_size[axis] / 2)
        else:
            numbers.append(start[axis] + _finite(part) * scale)
    return tuple(numbers)


def _start(info: RunInfo, unit: str) -> tuple[float, ...]:
    """Return the origin of numbers: the lower corner of the box for fractions, otherwise 0."""
    return info.lower if unit == "box" else (0.0,) * info.ndim


def _plain(value: object) -> object:
    """Return numbers of NumPy, also in tuples and lists, as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value


def _finite(value: float) -> float:
    check_number("coordinate or length of a region", value)
    if not math.isfinite(value):
        raise InvalidError(f"invalid coordinate of a region: {value}; expected a finite number")
    return float(value)


def _size(name: str, value: float, scale: float) -> float:
    """Return a radius, a height or a side in code length."""
    if _finite(value) < 0:
        raise InvalidError(f"invalid {name}: {value}; expected a number >= 0")
    return float(value) * scale


class Region(ABC):
    """A part of space. Operators combine regions.

    ``a & b`` is the intersection of two regions, ``a | b`` the union, ``a - b`` the points of `a`
    that are not in `b`, and ``~a`` the points outside of `a`.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> ball, slab = ambar.Sphere("bc", 0.3), ambar.Box((0, 0, 0.4), (1, 1, 0.6))
    >>> def cells(region):
    ...     return len(amr.read("level", region=region))
    >>> cells(ball & slab) + cells(ball | slab) == cells(ball) + cells(slab)
    True
    >>> cells(ball) + cells(~ball) == len(amr)
    True
    """

    @abstractmethod
    def _to_code(self, info: RunInfo) -> _core.Region:
        """Return the region in code length; raises ValueError if it does not fit the data."""

    def __repr__(self) -> str:
        """Return a Python expression."""
        values = ", ".join(
            f"{one.name}={_plain(getattr(self, one.name))!r}"
            for one in fields(self)  # type: ignore[arg-type]
        )
        return f"{type(self).__name__}({values})"

    def __and__(self, other: Region) -> Region:
        return _Combination("&", (self, other)) if isinstance(other, Region) else NotImplemented

    def __or__(self, other: Region) -> Region:
        return _Combination("|", (self, other)) if isinstance(other, Region) else NotImplemented

    def __sub__(self, other: Region) -> Region:
        return _Combination("&", (self, ~other)) if isinstance(other, Region) else NotImplemented

    def __invert__(self) -> Region:
        return _Complement(self)


@dataclass(frozen=True)
class _Combination(Region):
    """The intersection ("&") or union ("|") of regions."""

    operator: Literal["&", "|"]
    regions: tuple[Region, ...]

    def _to_code(self, info: RunInfo) -> _core.Region:
        regions = [region._to_code(info) for region in self.regions]
        if self.operator == "&":
            return _core.Region.intersection(regions)
        return _core.Region.union(regions)

    def __repr__(self) -> str:
        return f"({f' {self.operator} '.join(map(repr, self.regions))})"


@dataclass(frozen=True)
class _Complement(Region):
    """The points outside of a region."""

    region: Region

    def _to_code(self, info: RunInfo) -> _core.Region:
        return self.region._to_code(info).complement()

    def __repr__(self) -> str:
        return f"~{self.region!r}"


@dataclass(frozen=True, repr=False)
class Box(Region):
    """The half-open box ``lo <= point < hi``: cells whose centre, and particles that are inside.

    In a periodic box (``info.periodic``) the region continues over faces; an open side ends at the
    face.

    Parameters
    ----------
    lo, hi : array_like of float or None
        Lower and upper corner, a number per dimension; None leaves the side open.
    unit : str, default "box"
        Unit of all numbers: "box" (fractions of the size of the box in x), "code", or a unit of
        length ("cm", "m", "km", "Au", "ly", "pc", "kpc", "Mpc"). For meshes, numbers are
        coordinates.
    center : "bc", array_like of float, or sequence of float and "bc", optional
        Origin of `lo` and `hi`: "bc" is the middle of the box, also for single dimensions:
        ``("bc", "bc", 0.3)``. By default the origin of code coordinates, or for the unit "box" the
        lower corner of the box.

    Raises
    ------
    ValueError
        When it is used: if the number of dimensions differs from the data, a number is not finite,
        `lo` exceeds `hi`, or a side in fractions, without `center`, is longer than the box.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> octant = amr.read("x", region=ambar.Box((0, 0, 0), (0.5, 0.5, 0.5)))
    >>> slab = amr.read("x", region=ambar.Box((None, None, -0.1), (None, None, 0.1), center="bc"))
    >>> len(octant) < len(amr), float(octant["x"].max()) < 0.5
    (True, True)
    """

    lo: Numbers
    hi: Numbers
    unit: str = "box"
    center: Center | None = None

    def _to_code(self, info: RunInfo) -> _core.Region:
        low, high = self.corners(info)
        _check_near(self, low, high, info)
        return _core.Region.box(low, high)

    def coordinates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the corners as coordinates of a mesh, which has neither a box nor a unit.

        Returns
        -------
        tuple of tuple of float
            Lower and upper corner; infinite for open sides.

        Raises
        ------
        ValueError
            If the corners have a unit of length or the center "bc", or do not have three numbers.

        Examples
        --------
        >>> ambar.Box((0, 0, None), (1, 1, 2)).coordinates()
        ((0.0, 0.0, -inf), (1.0, 1.0, 2.0))
        """
        center = (0.0, 0.0, 0.0) if self.center is None else self.center
        if self.unit not in ("box", "code"):
            raise InvalidError(
                f"coordinates of a mesh have no unit, found unit={self.unit!r}; leave it out"
            )
        if not len(self.lo) == len(self.hi) == len(center) == 3:
            raise InvalidError(f"expected corners of three numbers for a mesh, found {self!r}")
        if any(isinstance(part, str) for part in center):
            raise InvalidError(f"expected numbers as the center for a mesh, found {center}")
        origin = [_finite(float(part)) for part in center]
        lo = _corner(self.lo, origin, 1.0, -math.inf)
        hi = _corner(self.hi, origin, 1.0, math.inf)
        return _in_order(self, lo, hi)

    def corners(self, info: RunInfo) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return the corners in code length.

        Parameters
        ----------
        info : RamsesInfo, AmrexInfo or CodeInfo
            Run information.

        Returns
        -------
        tuple of tuple of float
            Lower and upper corner; infinite for open sides.

        Raises
        ------
        ValueError
            As for `Box`.

        Examples
        --------
        >>> info = ambar.open_snapshot("plt00200").info
        >>> ambar.Box((-0.25, -0.25, None), (0.25, 0.25, None), center="bc").corners(info)
        ((-0.5, 0.0, -inf), (0.5, 1.0, inf))
        """
        scale = length_of_unit(info, self.unit)
        for corner in (self.lo, self.hi):
            if not isinstance(corner, Sequence | np.ndarray) or len(corner) != info.ndim:
                raise InvalidError(
                    f"expected corners of {info.ndim} numbers for data of {info.ndim} dimensions, "
                    f"found {corner!r:.80}; give one number or None for each dimension"
                )
        origin = _start(info, self.unit)
        if self.center is not None:
            origin = center_in_code(self.center, info, self.unit)
        lo = _corner(self.lo, origin, scale, -math.inf)
        hi = _corner(self.hi, origin, scale, math.inf)
        _check_fractions(self, lo, hi, info)
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
        raise InvalidError(f"expected lo <= hi, found the corners {box.lo} and {box.hi}")
    return lo, hi


def _corner(
    values: Numbers, origin: Sequence[float], scale: float, open_side: float
) -> tuple[float, ...]:
    return tuple(
        open_side if value is None else start + _finite(value) * scale
        for value, start in zip(values, origin, strict=True)
    )


@dataclass(frozen=True, repr=False)
class Sphere(Region):
    """The points within `radius` of `center`: a disc in two dimensions, an interval in one.

    In a periodic box, distances are those to the nearest image of the center.

    Parameters
    ----------
    center : "bc", array_like of float, or sequence of float and "bc"
        The center; "bc" is the middle of the box.
    radius : float
        The radius, >= 0.
    unit : str, default "box"
        Unit of `center` and `radius`, as for `Box`.

    Examples
    --------
    >>> particles = ambar.open_snapshot("run.ambar").particles
    >>> inner = particles.read("mass", region=ambar.Sphere(("bc", "bc", 0.4), 0.2))
    >>> 0 < len(inner) < len(particles)
    True
    """

    center: Center
    radius: float
    unit: str = "box"

    def _to_code(self, info: RunInfo) -> _core.Region:
        scale = length_of_unit(info, self.unit)
        center = center_of(self, info)
        return _core.Region.sphere(center, _size("radius", self.radius, scale))


@dataclass(frozen=True, repr=False)
class SphericalShell(Region):
    """The points whose distance from `center` is above `inner` and at most `outer`.

    Parameters
    ----------
    center : "bc", array_like of float, or sequence of float and "bc"
        The center; "bc" is the middle of the box.
    inner, outer : float
        The radii, ``0 <= inner <= outer``.
    unit : str, default "box"
        Unit of `center`, `inner` and `outer`, as for `Box`.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> shell = amr.read("level", region=ambar.SphericalShell("bc", 0.2, 0.4))
    >>> balls = [amr.read("level", region=ambar.Sphere("bc", radius)) for radius in (0.2, 0.4)]
    >>> len(balls[0]) + len(shell) == len(balls[1])
    True
    """

    center: Center
    inner: float
    outer: float
    unit: str = "box"

    def _to_code(self, info: RunInfo) -> _core.Region:
        inner, outer = _radii(self.inner, self.outer, length_of_unit(info, self.unit))
        center = center_of(self, info)
        return _core.Region.shell(center, inner, outer)


@dataclass(frozen=True, repr=False)
class Cylinder(Region):
    """The points within `radius` of an axis through `center`, and within half of `height` along it.

    The data have three dimensions. In a periodic box, distances are those to the nearest image of
    the center.

    Parameters
    ----------
    center : "bc", array_like of float, or sequence of float and "bc"
        The center; "bc" is the middle of the box.
    radius : float
        The radius, >= 0.
    height : float, optional
        The whole height, >= 0; unlimited by default.
    axis : {"x", "y", "z"} or array_like of float, default "z"
        The direction of the axis, of any length.
    unit : str, default "box"
        Unit of `center`, `radius` and `height`, as for `Box`.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> disc = ambar.Cylinder("bc", 0.3, 0.1, axis=(0, 1, 1))
    >>> 0 < len(amr.read("level", region=disc)) < len(amr)
    True
    """

    center: Center
    radius: float
    height: float | None = None
    axis: Direction = "z"
    unit: str = "box"

    def _to_code(self, info: RunInfo) -> _core.Region:
        radius = _size("radius", self.radius, length_of_unit(info, self.unit))
        return _cylinder(self, info, 0.0, radius)


@dataclass(frozen=True, repr=False)
class CylindricalShell(Region):
    """The points whose distance from an axis is above `inner` and at most `outer`.

    Parameters
    ----------
    center : "bc", array_like of float, or sequence of float and "bc"
        The center; "bc" is the middle of the box.
    inner, outer : float
        The radii, ``0 <= inner <= outer``.
    height : float, optional
        As for `Cylinder`.
    axis : {"x", "y", "z"} or array_like of float, default "z"
        As for `Cylinder`.
    unit : str, default "box"
        Unit of all lengths, as for `Box`.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> shell = amr.read("level", region=ambar.CylindricalShell("bc", 0.2, 0.4))
    >>> rods = [amr.read("level", region=ambar.Cylinder("bc", radius)) for radius in (0.2, 0.4)]
    >>> len(rods[0]) + len(shell) == len(rods[1])
    True
    """

    center: Center
    inner: float
    outer: float
    height: float | None = None
    axis: Direction = "z"
    unit: str = "box"

    def _to_code(self, info: RunInfo) -> _core.Region:
        inner, outer = _radii(self.inner, self.outer, length_of_unit(info, self.unit))
        return _cylinder(self, info, inner, outer)


@dataclass(frozen=True, repr=False)
class OrientedBox(Region):
    """A half-open box in any direction, around its center.

    Parameters
    ----------
    center : "bc", array_like of float, or sequence of float and "bc"
        The center; "bc" is the middle of the box of the simulation.
    sides : array_like of float
        The three sides, >= 0: along `axis`, along the part of `towards` that is perpendicular to
        `axis`, and perpendicular to both.
    axis, towards : {"x", "y", "z"} or array_like of float, default "x" and "y"
        Directions of any length that are not parallel.
    unit : str, default "box"
        Unit of `center` and `sides`, as for `Box`.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> bar = ambar.OrientedBox("bc", (0.8, 0.1, 0.1), axis=(1, 1, 0))
    >>> len(amr.read("level", region=bar)) < len(amr)
    True
    """

    center: Center
    sides: Sequence[float] | npt.NDArray[Any]
    axis: Direction = "x"
    towards: Direction = "y"
    unit: str = "box"

    def _to_code(self, info: RunInfo) -> _core.Region:
        _check_space(self, info)
        scale = length_of_unit(info, self.unit)
        if np.shape(self.sides) != (3,):
            raise InvalidError(f"expected three sides of a box, found {self.sides!r:.80}")
        sides = [_size("side", side, scale) for side in self.sides]
        center = center_of(self, info)
        return _core.Region.oriented_box(
            center, sides, direction(self.axis), direction(self.towards)
        )


def center_of(region: Centered, info: RunInfo) -> tuple[float, ...]:
    """Return the center of a region in code length.

    Raises ValueError if it is more than a side of a periodic box away from the box.
    """
    center = center_in_code(region.center, info, region.unit)
    _check_near(region, center, center, info)
    return center


def _check_near(region: Region, low: Sequence[float], high: Sequence[float], info: RunInfo) -> None:
    """Raise ValueError if all of a part is more than a side of a periodic box away from the box."""
    periodic = info.periodic or (False,) * info.ndim
    sides = zip(low, high, info.lower, info.box_size, periodic, strict=True)
    if any(
        wraps and (b < lower - size or a > lower + 2 * size) for a, b, lower, size, wraps in sides
    ):
        upper = tuple(start + size for start, size in zip(info.lower, info.box_size, strict=True))
        raise InvalidError(
            f"the region {region} is more than a side of the periodic box away from it, from "
            f"{info.lower} to {upper} in code length; check the unit of the region"
        )


def _check_fractions(box: Box, low: Sequence[float], high: Sequence[float], info: RunInfo) -> None:
    """Raise ValueError for a side in fractions that is longer than the box."""
    if box.unit != "box" or box.center is not None:
        return
    for lo, hi, a, b, size in zip(box.lo, box.hi, low, high, info.box_size, strict=True):
        # Sides may extend over a face of a periodic box. Each may be as long as the box in x.
        longest = max(size, info.boxlen)
        if longest * (1 + 1e-9) < b - a < math.inf:
            raise InvalidError(
                "invalid region: expected fractions of the side of the box in x, from 0 to "
                f"{longest / info.boxlen:g}, found {lo:g}:{hi:g}, which is longer than the box; "
                'give unit="code", or subtract the lower face of the domain and divide by its '
                "side in x: in a domain from 0 to 12, 3:6 is 0.25:0.5"
            )


def direction(axis: Direction) -> tuple[float, float, float]:
    """Return the unit vector of a direction; raises ValueError if it is not one."""
    if isinstance(axis, str):
        numbers = [float(axis == name) for name in AXES]
    elif np.ndim(axis) != 1:
        numbers = []
    else:
        numbers = [float(number) for number in axis]
    length = math.hypot(*numbers)
    if len(numbers) != 3 or not 0 < length < math.inf:
        raise InvalidError(
            f"invalid axis: {axis!r:.80}; expected 'x', 'y', 'z', or three numbers, not all 0"
        )
    x, y, z = numbers
    return (x / length, y / length, z / length)


def _cylinder(
    region: Cylinder | CylindricalShell, info: RunInfo, inner: float, outer: float
) -> _core.Region:
    _check_space(region, info)
    # Twice the diagonal of the box is beyond all of its points.
    height = 2 * math.hypot(*info.box_size)
    if region.height is not None:
        height = _size("height", region.height, length_of_unit(info, region.unit))
    center = center_of(region, info)
    return _core.Region.cylinder(center, direction(region.axis), inner, outer, height)


def _check_space(region: Region, info: RunInfo) -> None:
    if info.ndim != 3:
        raise InvalidError(
            f"{type(region).__name__}: expected data of three dimensions, found {info.ndim}; use "
            "Box, Sphere or SphericalShell"
        )


def _radii(inner: float, outer: float, scale: float) -> tuple[float, float]:
    """Return the radii of a shell in code length."""
    if inner > outer:
        raise InvalidError(f"expected inner <= outer, found the radii {inner}, {outer}")
    return _size("inner radius", inner, scale), _size("outer radius", outer, scale)


Centered: TypeAlias = Sphere | SphericalShell | Cylinder | CylindricalShell | OrientedBox
"""Regions around a center."""

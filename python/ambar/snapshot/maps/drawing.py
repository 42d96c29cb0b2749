"""Maps of cells and particles along any direction, and cubes of position and velocity."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from ambar import _core
from ambar._core import InvalidError
from ambar._util.arguments import check_choice, check_number
from ambar.snapshot.analysis.batches import (
    FRACTION,
    MAP_BYTES,
    Arrays,
    Selection,
    each_batch,
    weights_of,
    with_fraction,
)
from ambar.snapshot.analysis.columns import units_of
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.regions import (
    AXES,
    Box,
    Cut,
    Direction,
    OrientedBox,
    Region,
    direction,
    length_of_unit,
)
from ambar.snapshot.units import ColumnUnits

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.field_rows import FieldRows
    from ambar.snapshot.run_info import RunInfo

Statistic: TypeAlias = Literal["integral", "mean", "dispersion", "maximum"]
STATISTICS = ("integral", "mean", "dispersion", "maximum")

_MAX_PIXELS = 1 << 28
_SURFACE_DENSITIES = ("Msun/pc**2", "g/cm**2", "kg/m**2", "Msun/kpc**2")
_MIN_COMPONENT = 1e-5
"""Smaller components of a line of sight are neglected where cells are cut across it."""
_MIN_OVERLAP = 1e-9
"""Smaller overlaps of cells with the depth of a map, in parts of either, are rounding."""


@dataclass(frozen=True)
class View:
    """What a map shows: a direction, a part of the domain, and pixels.

    Lengths are in code length.
    """

    center: tuple[float, ...]
    axes: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Unit vectors to the right, upwards, and along the line of sight to the viewer."""
    dims: tuple[str, str]
    pixel: float
    shape: tuple[int, int]
    depth: float
    """The length of the part along the line of sight; infinite for all."""
    origin: tuple[float, float]
    """Coordinates of the middle of the map."""
    length_unit: str
    """The unit of the coordinates of the result."""
    length: float
    """One of these units."""
    ndim: int = 3
    """Dimensions of the data; those of two are in the plane through 0."""

    def camera(self, info: RunInfo, footprint: Footprint) -> _core.Camera:
        """Return the view for the extension module, which leaves out rows by their centres."""
        return _core.Camera(
            center=self.center,
            axes=[axis.tolist() for axis in self.axes],
            pixel=self.pixel,
            shape=self.shape,
            depth=math.inf if footprint.is_cut_by_depth else self.depth,
            periods=_periods(info),
        )

    def region(self, info: RunInfo, footprint: Footprint, *, is_by_volume: bool = False) -> Region:
        """Return a region that contains the centres of all rows that the map can show.

        If `is_by_volume`, it contains the whole rows.
        """
        margin = footprint.margin
        beyond = margin if is_by_volume else 0.0
        width, height = (side * self.pixel + 2 * (margin + beyond) for side in self.shape)
        if self.ndim == 2:
            half = (width / 2, height / 2)
            return Box([-side for side in half], half, "code", center=self.center[:2])
        right, up, _ = (tuple(axis.tolist()) for axis in self.axes)
        depth = min(self.depth, 2 * math.hypot(*info.box_size)) * (1 + 1e-9)
        depth += 2 * (margin + beyond) if footprint.is_cut_by_depth else 0.0
        sides = (width, height, depth)
        return OrientedBox(self.center, sides, axis=right, towards=up, unit="code")

    def coordinates(self) -> dict[str, tuple[str, np.ndarray, dict[str, str]]]:
        """Return the coordinates of pixels for xarray."""
        found = {}
        for dim, middle, count in zip(self.dims, self.origin, self.shape, strict=True):
            places = middle + (np.arange(count) - (count - 1) / 2) * self.pixel
            found[dim] = (dim, places / self.length, {"units": self.length_unit})
        return found

    def attributes(self) -> dict[str, Any]:
        """Return what the map shows for xarray."""
        return {
            "center": [place / self.length for place in self.center[: self.ndim]],
            "axis": self.axes[2].tolist(),
            "up": self.axes[1].tolist(),
            "pixel_size": self.pixel / self.length,
            "length_unit": self.length_unit,
        }


def view_of(
    info: RunInfo,
    *,
    axis: Direction,
    up: Direction | None,
    center: tuple[float, ...],
    width: float | Sequence[float] | None,
    depth: float | None,
    length_unit: str,
    resolution: int,
    pixel_size: float | None,
    is_of_cells: bool,
) -> View:
    """Return what a map shows; `center` is in code length.

    Raises ValueError if an argument is invalid, or the data do not have three dimensions, or two
    of particles.
    """
    if info.ndim != 3 and (is_of_cells or info.ndim != 2):
        raise InvalidError(
            f"expected data of three dimensions for a map, found {info.ndim}; use "
            + ("grid, with a Box as the region" if is_of_cells else "histogram")
        )
    if info.ndim == 2 and (axis != "z" or up is not None or depth is not None):
        raise InvalidError(
            "particles of two dimensions are seen along z; leave axis, up and depth out"
        )
    scale = length_of_unit(info, length_unit)
    middle = (*_inside(center, info), 0.0)[:3]
    axes, dims = _axes(axis, up)
    if depth is not None:
        check_number("depth", depth)
        if not depth > 0:
            raise InvalidError(f"invalid depth: {depth!r}; expected a length > 0")
    sides = _sides(info, axes, width, scale)
    pixel = _pixel(max(sides), resolution, pixel_size, scale)
    # Rounding of the sides must not add a pixel.
    shape = [max(math.ceil(side / pixel - 1e-9), 1) for side in sides]
    if shape[0] * shape[1] > _MAX_PIXELS:
        raise _core.LimitError(
            f"a map of {shape[0]} x {shape[1]} pixels exceeds {_MAX_PIXELS}; choose larger pixels"
        )
    is_named = isinstance(axis, str) and dims != ("right", "up")
    origin = [float(a @ np.array(middle)) if is_named else 0.0 for a in axes[:2]]
    return View(
        center=middle,
        axes=axes,
        dims=dims,
        pixel=pixel,
        shape=(shape[0], shape[1]),
        depth=math.inf if depth is None else depth * scale,
        origin=(origin[0], origin[1]),
        length_unit="code_length" if length_unit in ("box", "code") else length_unit,
        length=1.0 if length_unit in ("box", "code") else scale,
        ndim=info.ndim,
    )


def _sides(
    info: RunInfo,
    axes: Sequence[np.ndarray],
    width: float | Sequence[float] | None,
    scale: float,
) -> list[float]:
    """Return the sides of a map in code length: by default those of the box, seen from an axis."""
    if width is None:
        return [float(np.abs(a[: info.ndim]) @ np.array(info.box_size)) for a in axes[:2]]
    try:
        both = np.ravel(width).astype(float)
    except (TypeError, ValueError):
        both = np.empty(0)
    if len(both) not in (1, 2) or not all(0 < side < math.inf for side in both):
        raise InvalidError(f"invalid width: {width!r}; expected one or two lengths > 0")
    return [float(side) * scale for side in (both[0], both[-1])]


def _pixel(side: float, resolution: int, pixel_size: float | None, scale: float) -> float:
    """Return the side of a pixel in code length."""
    if pixel_size is not None:
        check_number("pixel_size", pixel_size)
        if not 0 < pixel_size < math.inf:
            raise InvalidError(f"invalid pixel_size: {pixel_size!r}; expected a length > 0")
        return pixel_size * scale
    if not isinstance(resolution, SupportsIndex):
        raise TypeError(
            "invalid resolution: expected an integer, the number of pixels along the longer side, "
            f"found {resolution!r:.80}; give the shape by width and pixel_size"
        )
    if not 0 < resolution <= 1 << 20:
        raise InvalidError(f"invalid resolution: {resolution!r}; expected 1 to {1 << 20} pixels")
    return side / resolution


def _periods(info: RunInfo) -> list[float]:
    """Return the sides of the box along three axes; infinite in those that are not periodic."""
    periodic = info.periodic or (False,) * 3
    periods = [
        size if wraps else math.inf for size, wraps in zip(info.box_size, periodic, strict=False)
    ]
    return periods + [math.inf] * (3 - len(periods))


def _inside(center: tuple[float, ...], info: RunInfo) -> tuple[float, ...]:
    """Return the image of a point in the box, in dimensions that are periodic."""
    periodic = info.periodic or (False,) * info.ndim
    sides = zip(center, info.lower, info.box_size, periodic, strict=True)
    return tuple(
        lower + (place - lower) % size if wraps and not lower <= place <= lower + size else place
        for place, lower, size, wraps in sides
    )


def _axes(
    axis: Direction, up: Direction | None
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], tuple[str, str]]:
    """Return the unit vectors to the right, upwards and to the viewer, and dimensions.

    A coordinate axis has the dimensions of `Amr.project`. With x to the right and z upwards, the
    viewer of "y" is at -y.
    """
    sight = np.array(direction(axis))
    if isinstance(axis, str) and axis == "y":
        sight = np.array([0.0, -1.0, 0.0])
    if isinstance(axis, str) and up is None:
        first, second = (other for other in range(3) if AXES[other] != axis)
        unit = np.eye(3)
        return (unit[first], unit[second], sight), (AXES[first], AXES[second])
    if up is None:
        up = "z" if abs(sight[2]) < 0.999 else "y"
    above = np.array(direction(up))
    above -= (above @ sight) * sight
    if not np.linalg.norm(above) > 1e-9:
        raise InvalidError(f"invalid up {up!r}: it is parallel to the axis {axis!r}")
    above /= np.linalg.norm(above)
    return (np.cross(above, sight), above, sight), ("right", "up")


@dataclass(frozen=True)
class MapRequest:
    """The fields of a map, and which rows it shows."""

    fields: tuple[str, ...]
    view: View
    statistic: Statistic
    weight: str | None
    selection: Selection

    @property
    def weight_column(self) -> str | None:
        """The field that is the weight; None for the volume of cells."""
        return None if self.weight in (None, "volume") else self.weight


def checked_statistic(statistic: Statistic | None, weight: str | None) -> Statistic:
    """Return what a map contains: the integral without a weight, otherwise the mean by default."""
    if statistic is None:
        return "integral" if weight is None else "mean"
    check_choice("statistic", statistic, STATISTICS)
    if statistic in ("integral", "maximum") and weight is not None:
        raise InvalidError(
            f"statistic={statistic!r} has no weight, found weight={weight!r}; leave one out"
        )
    return statistic


def draw(rows: FieldRows, request: MapRequest, footprint: Footprint) -> dict[str, np.ndarray]:
    """Return the maps (right, up) of the fields, in code units; NaN in pixels without rows."""
    camera = request.view.camera(rows.info, footprint)
    weight = request.weight_column
    names = [*request.fields, *([] if weight is None else [weight]), *footprint.columns]
    is_maximum = request.statistic == "maximum"
    # Squares of the distances from a typical value keep their precision.
    typical: dict[str, float] = {}
    sums: np.ndarray | None = None
    for columns in batches(rows, names, request, footprint):
        weights = weights_of(columns, weight)
        by = np.ones_like(columns[footprint.columns[0]]) if weights is None else weights
        values = [by]
        for field in request.fields:
            own = columns[field]
            if is_maximum or request.statistic == "integral":
                is_part = FRACTION in columns and not is_maximum
                values.append(own * columns[FRACTION] if is_part else own)
                continue
            if request.statistic == "dispersion":
                finite = own[np.isfinite(own)]
                own = own - typical.setdefault(field, float(finite.mean()) if len(finite) else 0.0)
                values.append(by * own**2)
            values.append(by * own)
        part = camera.render(
            *footprint.of(columns), values, is_maximum=is_maximum, threads=request.selection.threads
        )[:, 0]
        if sums is None:
            sums = part
        elif is_maximum:
            np.maximum(sums, part, out=sums)
        else:
            sums += part
    return _images(request, sums)


def _images(request: MapRequest, sums: np.ndarray | None) -> dict[str, np.ndarray]:
    """Return maps from the sums over rows."""
    if sums is None:
        return {field: np.full(request.view.shape, np.nan) for field in request.fields}
    weight, sums = sums[0], sums[1:]
    if request.statistic == "maximum":
        images = [np.where(image == -math.inf, np.nan, image) for image in sums]
    elif request.statistic == "integral":
        area = request.view.pixel**2
        images = [np.where(weight > 0, image / area, np.nan) for image in sums]
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            images = [image / weight for image in sums]
        if request.statistic == "dispersion":
            pairs = zip(images[::2], images[1::2], strict=True)
            images = [np.sqrt(np.maximum(square - mean**2, 0)) for square, mean in pairs]
    return dict(zip(request.fields, images, strict=True))


def cube(
    rows: FieldRows,
    request: MapRequest,
    footprint: Footprint,
    velocities: Sequence[str],
    edges: np.ndarray,
) -> np.ndarray:
    """Return the integral of a field (velocity, right, up) by velocity along the line of sight."""
    camera = request.view.camera(rows.info, footprint)
    names = [*request.fields, *velocities, *footprint.columns]
    count = len(edges) - 1
    pixels = count * request.view.shape[0] * request.view.shape[1]
    if pixels > _MAX_PIXELS:
        raise _core.LimitError(
            f"a cube of {count} x {request.view.shape[0]} x {request.view.shape[1]} values exceeds "
            f"{_MAX_PIXELS}; choose fewer bins or larger pixels"
        )
    total = np.zeros((count, *request.view.shape))
    rest = velocity_of_frame(rows, request)
    for columns in batches(rows, names, request, footprint):
        along = _velocity_along(request, columns, velocities) - rest
        layers = np.searchsorted(edges, along, side="right") - 1
        # The last interval contains its upper edge, as in numpy.histogram.
        layers[along == edges[-1]] = count - 1
        layers = layers.astype(np.int64)
        own = columns[request.fields[0]]
        values = [own * columns[FRACTION] if FRACTION in columns else own]
        total += camera.render(
            *footprint.of(columns), values, layers, count, threads=request.selection.threads
        )[0]
    return total / request.view.pixel**2


def _velocity_along(
    request: MapRequest, columns: Mapping[str, np.ndarray], velocities: Sequence[str]
) -> np.ndarray:
    """Return the component of the velocity along the line of sight."""
    sight = request.view.axes[2]
    pairs = zip(sight, velocities, strict=True)
    return np.asarray(sum(component * columns[name] for component, name in pairs))


def velocity_of_frame(rows: FieldRows, request: MapRequest) -> float:
    """Return the velocity of the frame of `about` along the line of sight."""
    velocity = rows._parameters.velocity
    return 0.0 if velocity is None else float(request.view.axes[2] @ np.array(velocity))


def velocity_range(
    rows: FieldRows, request: MapRequest, footprint: Footprint, velocities: Sequence[str]
) -> tuple[float, float]:
    """Return the smallest and the largest velocity along the line of sight."""
    low, high = math.inf, -math.inf
    rest = velocity_of_frame(rows, request)
    for columns in batches(rows, [*velocities, *footprint.columns], request, footprint):
        along = _velocity_along(request, columns, velocities) - rest
        along = along[np.isfinite(along)]
        if len(along):
            low, high = min(low, float(along.min())), max(high, float(along.max()))
    if not low <= high:
        raise InvalidError("the map shows no rows; give the range of velocities")
    return (low, high) if low < high else (low - 0.5, high + 0.5)


class Footprint(ABC):
    """The form of the rows of a map, and the columns that it needs."""

    columns: tuple[str, ...]
    margin: float = 0.0
    """Maximum distance from the centre of a row to what it covers, code length."""
    is_cut_by_depth: bool = False
    """Whether rows count by their part in the depth of a map; otherwise their centres decide."""

    @abstractmethod
    def of(self, columns: Mapping[str, np.ndarray]) -> tuple[Any, Any]:
        """Return positions and the form for the extension module."""


class CellFootprint(Footprint):
    """Cells: cuboids."""

    is_cut_by_depth = True

    def __init__(self, sides: Sequence[str], coarsest: Sequence[float]) -> None:
        self._sides = tuple(sides)
        self.columns = (*AXES, *dict.fromkeys(sides))
        self.margin = math.hypot(*coarsest) / 2

    def of(self, columns: Mapping[str, np.ndarray]) -> tuple[Any, Any]:
        """Return centres and sides."""
        return [columns[axis] for axis in AXES], [columns[side] for side in self._sides]


class ParticleFootprint(Footprint):
    """Particles: points, squares of a pixel, or splines of a radius."""

    def __init__(
        self, positions: Sequence[str], method: Literal["nearest", "cloud", "spline"], radius: float
    ) -> None:
        self._positions = tuple(positions)
        self.columns = self._positions
        self._method = method
        self.margin = radius

    def of(self, columns: Mapping[str, np.ndarray]) -> tuple[Any, Any]:
        """Return positions and the form."""
        positions = [columns[name] for name in self._positions]
        positions += [np.zeros(len(positions[0]))] * (3 - len(positions))
        if self._method == "spline":
            return positions, [np.full(len(positions[0]), self.margin)]
        return positions, self._method


def _fractions_in_depth(
    view: View,
    periods: Sequence[float],
    centers: Sequence[np.ndarray],
    sides: Sequence[np.ndarray],
) -> np.ndarray:
    """Return the fraction of the volume of each cell that is in the depth of a map.

    Of each cell the image nearest to the middle counts. Along a periodic axis its next images
    count, too, as the slab continues at the opposite face.
    """
    sight = view.axes[2]
    along: Any = 0.0
    for component, center, middle, period in zip(sight, centers, view.center, periods, strict=True):
        offset = center - middle
        if period < math.inf:
            offset = offset - period * np.round(offset / period)
        along = along + component * offset
    components = [n for n in range(3) if abs(sight[n]) > _MIN_COMPONENT]
    widths = [abs(float(sight[n])) * sides[n] for n in components]
    shifts = [0.0]
    if len(components) == 1 and (period := periods[components[0]]) < math.inf:
        shifts += [-period, period]
    half = view.depth / 2
    found = sum(
        _fraction_below(half - along - shift, widths)
        - _fraction_below(-half - along - shift, widths)
        for shift in shifts
    )
    least = _MIN_OVERLAP * np.minimum(1, view.depth / sum(widths))
    return np.where(found > least, np.minimum(found, 1), 0)


def _fraction_below(x: np.ndarray, widths: Sequence[np.ndarray]) -> np.ndarray:
    """Return the fraction of the volume of cells below a plane at a distance from their centres.

    `widths` are the lengths of the sides of cells, perpendicular to the plane. The fraction is the
    distribution function of a sum of variables that are uniform in these lengths.
    """
    half: Any = sum(widths) / 2
    x = np.clip(x, -half, half)
    found: Any = 0.0
    for corner in product((0, 1), repeat=len(widths)):
        start = sum(bit * width for bit, width in zip(corner, widths, strict=True)) - half
        found = found + (-1) ** sum(corner) * np.maximum(x - start, 0) ** len(widths)
    volume = math.factorial(len(widths)) * math.prod(widths)
    return np.asarray(np.clip(found / volume, 0, 1))


def batches(
    rows: FieldRows, names: Sequence[str], request: MapRequest, footprint: Footprint
) -> Iterator[Arrays]:
    """Yield columns of the rows that a map shows, some chunks at a time."""
    own = request.selection
    view = request.view.region(rows.info, footprint, is_by_volume=own.is_by_volume)
    region = view if own.region is None else view & own.region
    rows, names = with_fraction(rows, list(dict.fromkeys(names)), own)
    cut: Cut = "whole" if own.is_by_volume else "center"
    for _, columns in each_batch(rows, names, replace(own, region=region, cut=cut), MAP_BYTES):
        shown = columns
        if footprint.is_cut_by_depth and request.view.depth < math.inf:
            inside = _fractions_in_depth(request.view, _periods(rows.info), *footprint.of(columns))
            shown = {name: values[inside > 0] for name, values in columns.items()}
            shown[FRACTION] = inside[inside > 0] * shown.get(FRACTION, 1.0)
        if len(shown[names[0]]):
            yield shown


def as_arrays(
    rows: FieldRows,
    request: MapRequest,
    images: Mapping[str, np.ndarray],
    units: Mapping[str, tuple[str, float]],
    default_weight: str,
    integral_of: Callable[[str, str], str],
) -> dict[str, xr.DataArray]:
    """Return maps (up, right) as xarray arrays, in units: names, and factors from code units.

    `integral_of` returns the long name of the integral of a field, given with the unit.
    """
    import xarray as xr

    view = request.view
    attrs: dict[str, Any] = {
        "statistic": request.statistic,
        **view.attributes(),
        **rows._run_attributes(),
    }
    if request.statistic in ("mean", "dispersion"):
        attrs["weight"] = request.weight or default_weight
    found = {}
    is_integral = request.statistic == "integral"
    for field, image in images.items():
        unit, factor = units[field]
        name = integral_of(field, unit) if is_integral else field.replace("_", " ")
        own = {"long_name": name, "units": unit, **attrs}
        found[field] = xr.DataArray(
            (image if factor == 1.0 else image * factor).T,
            coords=view.coordinates(),
            dims=view.dims[::-1],
            name=field,
            attrs=own,
        )
    return found


def name_of_integral(field: str, unit: str, along: str) -> str:
    """Return the long name of the integral of a field of cells along a direction.

    Examples
    --------
    >>> name_of_integral("density", "Msun/pc**2", "z"), name_of_integral("vx", "code", "z")
    ('surface density', 'vx, integrated along z')
    """
    name, quantity = field.replace("_", " "), quantity_of(field)
    integral = f"{name}, integrated along {along}"
    if quantity == "number_density":
        return "column density"
    if quantity == "density" and unit in _SURFACE_DENSITIES:
        return "surface density" if name == "density" else f"surface density ({integral})"
    return integral


def unit_of(rows: FieldRows, field: str, unit: str, exponent: int) -> tuple[str, float]:
    """Return the unit of a field times a power of length, and the factor to it."""
    own = rows._request([field]).units[field]
    name = field if exponent == 0 else f"{field} times length**{exponent}"
    if exponent and own is not None:
        is_known = bool(rows._units.factors)
        own = own * rows._units._code_unit("length") ** exponent if is_known else None
    units = ColumnUnits(rows._units, {name: own})
    return units.label(name, unit), units.factor(name, unit)


def units_of_fields(
    rows: FieldRows, fields: Sequence[str], unit: str | Mapping[str, str], exponent: int
) -> dict[str, tuple[str, float]]:
    """Return the units of fields times a power of length, and the factors to them."""
    given = dict.fromkeys(fields, unit) if isinstance(unit, str) else unit
    units = units_of(rows, fields, given, fields)
    return {name: unit_of(rows, name, units[name], exponent) for name in fields}


def as_cube(
    rows: FieldRows,
    request: MapRequest,
    values: np.ndarray,
    edges: np.ndarray,
    unit: tuple[str, float],
    velocity_unit: str,
) -> xr.DataArray:
    """Return a cube (velocity, up, right) as an xarray array; `edges` are in `velocity_unit`."""
    import xarray as xr

    field, view = request.fields[0], request.view
    middles = (edges[1:] + edges[:-1]) / 2
    coords: dict[str, Any] = {"velocity": ("velocity", middles, {"units": velocity_unit})}
    return xr.DataArray(
        values.transpose(0, 2, 1) * unit[1],
        coords=coords | view.coordinates(),
        dims=("velocity", *view.dims[::-1]),
        name=field,
        attrs={
            "long_name": field.replace("_", " "),
            "units": unit[0],
            "velocity_step": float(edges[1] - edges[0]),
            **view.attributes(),
            **rows._run_attributes(),
        },
    )


def as_result(
    fields: Sequence[str] | str, images: Mapping[str, xr.DataArray]
) -> xr.DataArray | xr.Dataset:
    """Return one map, or a Dataset for a sequence of fields."""
    import xarray as xr

    return images[fields] if isinstance(fields, str) else xr.Dataset(dict(images))

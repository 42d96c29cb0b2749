"""Grids, slices and projections of cells as xarray arrays, in memory or as dask arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ambar._core import InvalidError, LimitError
from ambar._util.optional import require
from ambar.snapshot.derived.resolution import Definition, check_integrals, computed_columns
from ambar.snapshot.interop.periodic_reads import PeriodicRead
from ambar.snapshot.regions import AXES, cell_range, continued_part
from ambar.snapshot.units import ColumnUnits

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.field_rows import Request
    from ambar.snapshot.regions import Box

Chunks: TypeAlias = int | tuple[int, ...] | Literal["auto"]

Corners: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""The lower and the upper corner of a box, in code length."""

_LARGEST_SIDE = {1: 2048, 2: 2048, 3: 256}
"""Largest side of a grid without a given level, by its dimensions: 16 KiB, 32 and 128 MiB."""
_CHUNK_BYTES = 17_000_000
"""Maximum bytes of a dask chunk by default: 128 x 128 x 128 values."""


def raster(
    amr: Amr,
    method: Literal["grid", "slice", "project"],
    field: str,
    axes: Sequence[int],
    level: int | None,
    region: Box | None,
    unit: str,
    chunks: Chunks | None,
    threads: int | None,
    options: Mapping[str, Any],
) -> xr.DataArray:
    """Return the result of `Amr.grid`, `Amr.slice` or `Amr.project`, whose errors it raises.

    Parameters
    ----------
    amr
        The cells.
    method
        The method of the extension module that returns values and the first grid cell.
    axes
        The numbers of the axes of the result.
    field, level, region, unit, chunks, threads
        As for `Amr.grid`.
    options
        Arguments that only this method has.
    """
    require("xarray", purpose=method, install="ambar[xarray]")
    import xarray as xr

    if chunks is not None:
        _check_chunks(chunks, len(axes))
    corners = continued_part(region, amr.info, amr._core.lower, amr._core.upper)
    if method == "slice":
        corners = _whole_along(options["axis"], corners, amr)
    reader = raster_reader(amr, method, field, axes, level, corners, unit, threads, options)
    values: Any
    origin: Any
    is_image = len(axes) == 2
    if chunks is None:
        try:
            values, origin = reader.read(reader.lo, reader.hi)
        except LimitError as error:
            raise LimitError(
                f"{error}; {_grid_text(amr, reader, axes)}; choose a coarser level or a smaller "
                "region"
            ) from None
    else:
        if is_image and isinstance(chunks, tuple):
            chunks = chunks[::-1]
        values, origin = _lazy(reader, list(axes), chunks)
    dims = [AXES[axis] for axis in axes]
    coords = {
        AXES[axis]: (
            AXES[axis],
            reader.lower[axis] + (start + np.arange(count) + 0.5) * reader.sizes[axis],
            {"units": "code_length"},
        )
        for axis, start, count in zip(axes, origin, values.shape, strict=True)
    }
    sizes = [float(reader.sizes[axis]) for axis in axes]
    attrs = {
        "long_name": field.replace("_", " "),
        "units": reader.units,
        "level": reader.level,
        "cell_size": sizes[::-1] if is_image else sizes,
        **amr._run_attributes(),
    }
    if reader.factor != 1.0:
        values = values * reader.factor
    if is_image:  # a row of an image is a line of pixels
        values, dims = values.T, dims[::-1]
    return xr.DataArray(values, coords=coords, dims=dims, name=field, attrs=attrs)


@dataclass(frozen=True)
class RasterReader:
    """Reads values between two corners on the grid of a level, without xarray."""

    read: PeriodicRead
    """Returns values in code units by x, y, z between two corners, and the first grid cell."""
    lo: tuple[float, ...]
    hi: tuple[float, ...]
    level: int
    lower: np.ndarray
    """The lower corner of the domain."""
    sizes: np.ndarray
    """The sides of a grid cell."""
    units: str
    factor: float
    """The factor from code units."""

    def image(self) -> np.ndarray:
        """Return the values of two axes in the unit, row by row."""
        values, _ = self.read(self.lo, self.hi)
        return (values if self.factor == 1.0 else values * self.factor).T


def raster_reader(
    amr: Amr,
    method: Literal["grid", "slice", "project"],
    field: str,
    axes: Sequence[int],
    level: int | None,
    corners: Corners,
    unit: str,
    threads: int | None,
    options: Mapping[str, Any],
) -> RasterReader:
    """Return the reader of a raster between two corners in code length.

    Other arguments, and errors, are those of `raster`.
    """
    lo, hi = corners
    if level is None:
        level = _fitting_level(amr, lo, hi, axes)
    weight = options.get("weight", "")
    request = amr._request([field] if weight in (None, "", "volume") else [field, weight])
    if weight is None:
        check_integrals({field: request.columns[field]}, amr.info)
    units, factor = units_of(amr, request, field, unit, is_integral=weight is None)
    arguments = {**options, "field": request.columns[field], "level": level, "threads": threads}
    read_weight = None
    if weight in request.columns:
        arguments["weight"] = request.columns[weight]
        of_weight = {**arguments, "field": request.columns[weight], "weight": "volume"}
        read_weight = partial(_read, amr, method, of_weight, request.definitions)
    lower, sizes = np.array(amr.lower), np.array(amr.cell_size(level))
    read = PeriodicRead(
        partial(_read, amr, method, arguments, request.definitions),
        read_weight,
        lower,
        sizes,
        np.rint((np.array(amr._core.upper) - lower) / sizes).astype(np.int64),
        tuple(axes),
        is_integral=weight is None,
    )
    return RasterReader(read, lo, hi, level, lower, sizes, units, factor)


def _whole_along(axis: int, corners: Corners, amr: Amr) -> Corners:
    """Return corners that are those of the domain along an axis."""
    lo, hi = map(list, corners)
    lo[axis], hi[axis] = amr._core.lower[axis], amr._core.upper[axis]
    return tuple(lo), tuple(hi)


def _grid_text(amr: Amr, reader: RasterReader, axes: Sequence[int]) -> str:
    """Return the size of a grid, and the levels of the cells, for messages."""
    sides = (np.asarray(reader.hi) - np.asarray(reader.lo)) / reader.sizes
    text = " x ".join(f"{max(1, round(float(sides[axis]))):,}" for axis in axes)
    first, last = amr.levels
    return (
        f"the grid of level {reader.level} has {text} cells, the data have levels {first} to {last}"
    )


def _check_chunks(chunks: Chunks, ndim: int) -> None:
    """Raise ValueError if `chunks` are not "auto", or sides of at least 1 grid cell."""
    sides = chunks if isinstance(chunks, tuple) else (chunks,) * ndim
    is_valid = len(sides) == ndim and all(isinstance(n, Integral) and n > 0 for n in sides)
    if chunks != "auto" and not is_valid:
        raise InvalidError(
            f"invalid chunks: {chunks!r}; expected 'auto', a number of grid cells >= 1, or one for "
            f"each of {ndim} dimensions"
        )


def _read(
    amr: Amr,
    method: str,
    arguments: Mapping[str, Any],
    definitions: Sequence[Definition],
    lo: Sequence[float],
    hi: Sequence[float],
) -> tuple[np.ndarray, Sequence[int]]:
    """Return the values between two corners, and the first grid cell."""
    found: tuple[np.ndarray, Sequence[int]]
    computed = computed_columns(definitions)
    found = getattr(amr._core, method)(lo=list(lo), hi=list(hi), computed=computed, **arguments)
    return found


def _lazy(reader: RasterReader, axes: list[int], chunks: Chunks) -> tuple[Any, np.ndarray]:
    """Return the values between two corners as a dask array, and the first grid cell."""
    require("dask", purpose="an array with chunks", install="ambar[dask]")
    import dask.array as da
    from dask.array.core import normalize_chunks

    lower, sizes = reader.lower, reader.sizes
    first, after = cell_range(reader.lo, reader.hi, lower, sizes)
    shape = tuple((after - first)[axes].tolist())
    blocks = normalize_chunks(chunks, shape, limit=_CHUNK_BYTES, dtype=np.float64)
    meta = np.empty((0,) * len(axes))
    corners = np.array([reader.lo, reader.hi])
    origin = lower + first * sizes
    block = partial(_read_block, reader.read, corners, origin, sizes, axes)
    return da.map_blocks(block, chunks=blocks, dtype=meta.dtype, meta=meta), first[axes]


def _read_block(
    read: PeriodicRead,
    corners: np.ndarray,
    origin: np.ndarray,
    sizes: np.ndarray,
    axes: list[int],
    block_info: Mapping[None, Any],
) -> np.ndarray:
    """Return the values of a dask chunk, whose place is that of its cells from `origin`."""
    cells = np.array(block_info[None]["array-location"]).T
    # The corners are inside the outermost cells, so that rounding adds no cells.
    inside = cells + np.array([[0.25], [-0.25]])
    corners = corners.copy()
    corners[:, axes] = origin[axes] + inside * sizes[axes]
    return read(*corners)[0]


def _fitting_level(amr: Amr, lo: Sequence[float], hi: Sequence[float], axes: Sequence[int]) -> int:
    """Return the finest level at which no side of a grid is too large."""
    for level in range(amr.levels[1], 0, -1):
        sizes = amr.cell_size(level)
        if max((hi[axis] - lo[axis]) / sizes[axis] for axis in axes) <= _LARGEST_SIDE[len(axes)]:
            return level
    return 0


def units_of(
    amr: Amr, request: Request, field: str, unit: str, *, is_integral: bool
) -> tuple[str, float]:
    """Return the unit of the result in pint's notation, and the factor of values to it."""
    own = request.units[field]
    if is_integral and own is not None:
        own = own * amr._units._code_unit("length") if amr._units.factors else None
    name = f"{field} times length" if is_integral else field
    units = ColumnUnits(amr._units, {name: own})
    return units.label(name, unit), units.factor(name, unit)

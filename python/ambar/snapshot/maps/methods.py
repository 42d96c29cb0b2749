"""Methods of cells and particles that return maps and cubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, cast

import numpy as np

from ambar._core import InvalidError
from ambar._util.arguments import (
    check_choice,
    check_number,
    explained_arguments,
    names_of,
    two_numbers,
)
from ambar._util.optional import require
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.centers import find_center
from ambar.snapshot.derived.resolution import check_integrals
from ambar.snapshot.field_names import WEIGHTS_OF_LINES
from ambar.snapshot.maps import drawing as maps
from ambar.snapshot.maps.drawing import Statistic
from ambar.snapshot.physics.unit_expressions import pint_notation
from ambar.snapshot.regions import (
    AXES,
    Center,
    Cut,
    Direction,
    Region,
    Sphere,
    length_of_unit,
)

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.field_rows import FieldRows

VELOCITIES = ("velocity_x", "velocity_y", "velocity_z")


@explained_arguments()
class CellMaps:
    """Maps of cells; a base of `Amr`."""

    def map(
        self,
        fields: Sequence[str] | str,
        *,
        axis: Direction | None = None,
        up: Direction | None = None,
        center: Center | None = None,
        width: float | Sequence[float] | None = None,
        depth: float | None = None,
        length_unit: str = "box",
        resolution: int | None = None,
        pixel_size: float | None = None,
        weight: str | None = None,
        statistic: Statistic | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: tuple[int, int] | None = None,
        where: str | None = None,
        unit: str | Mapping[str, str] = "code",
        threads: int | None = None,
    ) -> Any:
        """Return maps of fields seen from any direction, with pixels of any size.

        Along a coordinate axis the overlap of cells with pixels is exact. Along other directions
        the lengths of rays through a cell are tabulated at 64 x 64 points of its image, for all
        cells of a size, and their sum is the volume of the cell: integrals over the map are exact.
        Cells more than 64 pixels wide are sampled once in each pixel. `project` is faster for whole
        levels of the grid.

        Parameters
        ----------
        fields : str or sequence of str
            Fields; several are read and drawn in one pass.
        axis : {"x", "y", "z", "faceon", "edgeon"} or array_like of float, optional
            The line of sight, by default the axis of `about`, otherwise z: a coordinate axis, three
            numbers, or the direction along ("faceon") or perpendicular to ("edgeon") the angular
            momentum of the cells in the map, relative to their bulk velocity. Numbers are the
            direction to the viewer. "x" is (1, 0, 0), "y" is (0, -1, 0) and "z" is (0, 0, 1), so
            that coordinates increase to the right and upwards.
        up : {"x", "y", "z"} or array_like of float, optional
            The direction that is upwards in the map, by default z if it is not the line of sight.
        center : str or array_like of float, optional
            The point in the middle, as for `find_center`: "max:density", "com", numbers; by default
            the center of `about`, otherwise the middle of the box ("bc").
        width : float or pair of float, optional
            Width and height of the map; by default those of the box, seen from the direction.
        depth : float, optional
            Length of the part along the line of sight, half of it on each side of `center`; by
            default all. Each cell counts by the fraction of its volume in this part. Along a
            coordinate axis this is exact; in other directions a cell is drawn whole, with a value
            that is smaller by the fraction, so that integrals over the map are exact. If `cut` is
            "fraction", too, both fractions are multiplied.
        length_unit : str, default "box"
            Unit of `center`, `width`, `depth` and `pixel_size`, as for `Box`. The coordinates of
            the result are in this unit, but in code length for "box".
        resolution : int, optional
            Pixels along the longer side, by default 512.
        pixel_size : float, optional
            Side of a pixel, instead of `resolution`.
        weight : str, optional
            None: the integral of the fields along the line of sight, which totals of a cell, such
            as "mass", do not have: integrate "density". "volume", or a field: the mean weighted
            with it.
        statistic : {"integral", "mean", "dispersion", "maximum"}, optional
            "dispersion" is the weighted standard deviation, "maximum" the largest value along the
            line of sight, for example of "level". By default "integral" without `weight`, otherwise
            "mean".
        region : Region, optional
            Cells inside.
        cut : {"center", "whole", "fraction"}, default "center"
            How cells at the surface of the region count, as for `statistics`. A cell of which a
            fraction counts is drawn whole, with a value that is smaller by this fraction.
        levels : tuple of int, optional
            As for `read`.
        where : str, optional
            As for `read`.
        unit : str or mapping of str to str, default "code"
            Unit of the results, as for `project`; for several fields also by field, for example
            ``{"rho": "Msol/pc2"}``.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            float64 by position; NaN in pixels without cells. A Dataset for a sequence of fields.
            Along "x", "y" and "z" without `up`, dimensions and coordinates are those of `project`.
            Otherwise dimensions are "up" and "right", with distances from `center` in code length.
            The attribute "axis" is the direction to the viewer.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If an argument is invalid, a total of a cell would be integrated, or the data do not
            have three dimensions.
        LimitError
            If there are too many pixels.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> tilted = amr.map("rho", axis=(1, 1, 1), width=0.5, resolution=64)
        >>> tilted.dims, tilted.shape
        (('up', 'right'), (64, 64))
        >>> both = amr.map(["vx", "vz"], weight="rho", statistic="dispersion", resolution=32)
        >>> sorted(both.data_vars), both.sizes["x"]
        (['vx', 'vz'], 32)
        """
        rows = cast("FieldRows", self)
        names = names_of("fields", fields)
        selection = Selection(region, levels, where, threads, cut)
        weight = WEIGHTS_OF_LINES.get(weight or "", weight)
        view = _view_of(
            rows,
            selection,
            axis=axis,
            up=up,
            center=center,
            width=width,
            depth=depth,
            length_unit=length_unit,
            resolution=resolution,
            pixel_size=pixel_size,
        )
        kind = maps.checked_statistic(statistic, weight)
        request = maps.MapRequest(tuple(names), view, kind, weight, selection)
        exponent = 1 if request.statistic == "integral" else 0
        if exponent:
            check_integrals(rows._request(names).columns, rows.info)
        units = maps.units_of_fields(rows, names, unit, exponent)
        images = maps.draw(rows, request, self._footprint())
        axes = [name for name in AXES if name not in request.view.dims]
        along = axes[0] if len(axes) == 1 else "the line of sight"
        name_of = partial(maps.name_of_integral, along=along)
        return maps.as_result(
            fields, maps.as_arrays(rows, request, images, units, "volume", name_of)
        )

    def velocity_cube(
        self,
        field: str,
        *,
        axis: Direction | None = None,
        up: Direction | None = None,
        bins: int = 64,
        range: tuple[float, float] | None = None,  # noqa: A002 - as numpy.histogram
        velocity_unit: str = "code",
        velocities: Sequence[str] = VELOCITIES,
        center: Center | None = None,
        width: float | Sequence[float] | None = None,
        depth: float | None = None,
        length_unit: str = "box",
        resolution: int | None = None,
        pixel_size: float | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: tuple[int, int] | None = None,
        where: str | None = None,
        unit: str = "code",
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return the integral of a field along the line of sight in intervals of velocity.

        Parameters
        ----------
        field : str
            The field.
        axis, up, center, width, depth, length_unit : optional
            As for `map`.
        bins : int, default 64
            Number of intervals of the velocity towards the viewer, relative to the velocity of
            `about`: along x or z for these axes, along -y for "y", otherwise along `axis`.
        range : tuple of float, optional
            Lowest and highest velocity; cells outside are left out. By default those of the cells
            in the map, which are read twice.
        velocity_unit : str, default "code"
            Unit of `range` and of the coordinate "velocity": "code", or one such as "km/s".
        velocities : sequence of str, default ("velocity_x", "velocity_y", "velocity_z")
            The fields of the velocity.
        resolution : int, optional
            Pixels along the longer side, by default 256.
        pixel_size, region, cut, levels, where, unit, threads : optional
            As for `map`.

        Returns
        -------
        xarray.DataArray
            float64 with the dimension "velocity" and those of `map`.

        Raises
        ------
        KeyError, ValueError, LimitError
            As for `map`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> cube = amr.velocity_cube("rho", axis="x", bins=16, resolution=32)
        >>> dict(cube.sizes)
        {'velocity': 16, 'z': 32, 'y': 32}
        """
        rows = cast("FieldRows", self)
        if not isinstance(field, str):
            raise TypeError(
                f"velocity_cube: expected the name of one field, found {field!r:.80}; call it for "
                "each field"
            )
        check_integrals(rows._request([field]).columns, rows.info)
        if not isinstance(bins, SupportsIndex):
            raise TypeError(f"invalid bins: expected an integer, found {bins!r:.80}; give a number")
        if bins < 1:
            raise InvalidError(f"invalid bins: {bins!r}; expected at least 1")
        selection = Selection(region, levels, where, threads, cut)
        view = _view_of(
            rows,
            selection,
            axis=axis,
            up=up,
            center=center,
            width=width,
            depth=depth,
            length_unit=length_unit,
            resolution=resolution,
            pixel_size=pixel_size,
            usual_resolution=256,
        )
        request = maps.MapRequest((field,), view, "integral", None, selection)
        footprint = self._footprint()
        factor = rows._units.factor("velocity", velocity_unit)
        label = "code_velocity" if velocity_unit == "code" else pint_notation(velocity_unit)
        if range is None:
            low, high = maps.velocity_range(rows, request, footprint, velocities)
        else:
            low, high = (end / factor for end in two_numbers("range", range))
        if not low < high:
            raise InvalidError(f"invalid range: {range!r}; expected (lowest, highest)")
        edges = np.linspace(low, high, bins + 1)
        values = maps.cube(rows, request, footprint, velocities, edges)
        found = maps.unit_of(rows, field, unit, 1)
        return maps.as_cube(rows, request, values, edges * factor, found, label)

    def _footprint(self) -> maps.Footprint:
        amr = cast("Amr", self)
        has_cubes = "dy" not in amr._core.derived
        sides = ("dx", "dx", "dx") if has_cubes else ("dx", "dy", "dz")
        return maps.CellFootprint(sides, amr.cell_size(amr.levels[0]))


@explained_arguments()
class ParticleMaps:
    """Maps of particles; a base of `Particles`."""

    def map(
        self,
        fields: Sequence[str] | str = "mass",
        *,
        method: Literal["nearest", "cloud", "spline"] = "cloud",
        radius: float | None = None,
        axis: Direction | None = None,
        up: Direction | None = None,
        center: Center | None = None,
        width: float | Sequence[float] | None = None,
        depth: float | None = None,
        length_unit: str = "box",
        resolution: int | None = None,
        pixel_size: float | None = None,
        weight: str | None = None,
        statistic: Statistic | None = None,
        region: Region | None = None,
        where: str | None = None,
        unit: str | Mapping[str, str] = "code",
        threads: int | None = None,
    ) -> Any:
        """Return maps of particles: sums per area, or means.

        Parameters
        ----------
        fields : str or sequence of str, default "mass"
            Fields; several are read and drawn in one pass.
        method : {"nearest", "cloud", "spline"}, default "cloud"
            What a particle covers: the nearest pixel (NGP), a square of a pixel (CIC), or a cubic
            spline (Monaghan and Lattanzio 1985) with the support `radius`.
        radius : float, optional
            Radius of the splines, in `length_unit`.
        axis : {"x", "y", "z", "faceon", "edgeon"} or array_like of float, optional
            The line of sight, as for `Amr.map`; angular momenta are those of the particles.
        up, center, width, length_unit, resolution, pixel_size : optional
            As for `Amr.map`.
        depth : float, optional
            Particles that are at most half of it from `center` along the line of sight; by default
            all.
        weight : str, optional
            None: the sum of the fields per area. A field: the mean weighted with it.
        statistic : {"integral", "mean", "dispersion", "maximum"}, optional
            As for `Amr.map`; "integral" is the sum per area.
        region : Region, optional
            Particles inside.
        where : str, optional
            As for `read`.
        unit : str or mapping of str to str, default "code"
            Unit of the results, also by field.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.DataArray or xarray.Dataset
            As for `Amr.map`. Particles of two dimensions are seen along z.

        Raises
        ------
        KeyError, ValueError, LimitError
            As for `Amr.map`.

        Examples
        --------
        >>> particles = ambar.open_snapshot("run.ambar").particles
        >>> surface = particles.map("mass", axis=(0, 1, 1), resolution=64)
        >>> surface.shape[0] == 64 or surface.shape[1] == 64
        True
        """
        rows = cast("FieldRows", self)
        names = names_of("fields", fields)
        if (method == "spline") != (radius is not None):
            raise InvalidError(
                "expected a radius for method='spline' and for no other, found "
                f"method={method!r} and radius={radius!r}"
            )
        check_choice("method", method, ("nearest", "cloud", "spline"))
        if weight == "volume":
            raise InvalidError(
                "particles have no volume; give a field such as 'mass' as the weight"
            )
        selection = Selection(region, None, where, threads)
        view = _view_of(
            rows,
            selection,
            axis=axis,
            up=up,
            center=center,
            width=width,
            depth=depth,
            length_unit=length_unit,
            resolution=resolution,
            pixel_size=pixel_size,
        )
        kind = maps.checked_statistic(statistic, weight)
        request = maps.MapRequest(tuple(names), view, kind, weight, selection)
        if radius is not None:
            check_number("radius", radius)
        reach = (radius or 0.0) * length_of_unit(rows._info, length_unit)
        if reach < 0:
            raise InvalidError(f"invalid radius: {radius!r}; expected a length >= 0")
        footprint = maps.ParticleFootprint(AXES[: view.ndim], method, max(reach, view.pixel))
        exponent = -2 if request.statistic == "integral" else 0
        units = maps.units_of_fields(rows, names, unit, exponent)
        images = maps.draw(rows, request, footprint)
        return maps.as_result(
            fields, maps.as_arrays(rows, request, images, units, "number", _name_per_area)
        )


def _view_of(
    rows: FieldRows,
    selection: Selection,
    *,
    axis: Direction | None,
    up: Direction | None,
    center: Center | None,
    width: float | Sequence[float] | None,
    length_unit: str,
    resolution: int | None,
    pixel_size: float | None,
    usual_resolution: int = 512,
    **rest: Any,
) -> maps.View:
    """Return what a map shows; by default in the frame of `about`."""
    if resolution is not None and pixel_size is not None:
        raise InvalidError(
            f"expected resolution or pixel_size, found both: {resolution!r} and {pixel_size!r}; "
            "leave one out"
        )
    require("xarray", purpose="a map", install="ambar[xarray]")
    own = rows._parameters
    if axis is None:
        axis = "z" if own.axis == (0.0, 0.0, 1.0) else own.axis
    if center is None and own.center is not None:
        middle = own.center
    else:
        place = "bc" if center is None else center
        middle = tuple(find_center(rows, place, length_unit, Selection()).tolist())
    if isinstance(axis, str) and axis in ("faceon", "edgeon"):
        if selection.region is None and width is not None:
            radius = float(np.max(width)) / 2 * length_of_unit(rows._info, length_unit)
            selection = replace(selection, region=Sphere(middle, radius, unit="code"))
        momentum = _spin(rows, middle, selection)
        axis, up = (momentum, up) if axis == "faceon" else (_across(momentum), momentum)
    return maps.view_of(
        rows._info,
        axis=axis,
        up=up,
        center=middle,
        width=width,
        length_unit=length_unit,
        resolution=usual_resolution if resolution is None else resolution,
        pixel_size=pixel_size,
        is_of_cells=not isinstance(rows, ParticleMaps),
        **rest,
    )


def _name_per_area(field: str, _: str) -> str:
    """Return the long name of the integral of a column of particles."""
    return f"{field.replace('_', ' ')} per area"


def _spin(rows: FieldRows, center: tuple[float, ...], selection: Selection) -> np.ndarray:
    """Return the angular momentum of what a map shows, without its bulk velocity."""
    momentum = rows.angular_momentum(
        center=center,
        length_unit="code",
        velocity="bulk",
        region=selection.region,
        cut=selection.cut,
        levels=selection.levels,
        where=selection.where,
        threads=selection.threads,
    )
    if not np.linalg.norm(momentum) > 0:
        raise InvalidError(
            f"{rows._title}: the selection has no angular momentum, which 'faceon' and 'edgeon' "
            "need; give an axis"
        )
    return momentum


def _across(vector: np.ndarray) -> np.ndarray:
    """Return a vector perpendicular to another, and to no coordinate axis unless that one is."""
    others = np.array([[0.36, 0.48, 0.8], [0.8, -0.36, 0.48]])
    return np.cross(vector, others[int(np.argmin(np.abs(others @ vector)))])

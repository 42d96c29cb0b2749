"""Methods of cells and particles that return profiles, phase diagrams and histograms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ambar._util.arguments import explained_arguments
from ambar.snapshot.analysis import centers, profiles
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.columns import AUTO
from ambar.snapshot.analysis.profiles import BinEdges, Range, Statistic
from ambar.snapshot.regions import Center, Cut, Direction, Levels, Region

if TYPE_CHECKING:
    import xarray as xr


@explained_arguments({"unit": 'write units="nH", or units={"density": "nH", "radius": "kpc"}'})
class ProfileMethods:
    """Profiles of cells and particles in one pass, in memory of a few batches."""

    def profile(
        self,
        x: str,
        fields: Iterable[str] | str,
        *,
        weight: str | None = AUTO,
        bins: BinEdges = 64,
        range: Range | None = None,  # noqa: A002
        log: bool | None = None,
        statistic: Statistic = "mean",
        center: Center | None = None,
        length_unit: str = "box",
        axis: Direction | None = None,
        units: Mapping[str, str] | str | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> xr.Dataset:
        """Return the mean, sum or standard deviation of fields in bins of a column.

        Parameters
        ----------
        x : str
            The column of the bins: a field, a derived field or arithmetic. "radius",
            "cylindrical_radius", "cylindrical_z" and others refer to `center` and `axis`.
        fields : str or iterable of str
            Fields, derived fields, or arithmetic of fields.
        weight : str or None, default "auto"
            "mass", "volume", another field, or None for equal weights. By default the volume for
            cells, the mass for particles. Not used for sums.
        bins : int or array_like of float, default 64
            Number of bins, or their edges.
        range : tuple of float, optional
            ``(lowest, highest)`` value of the bins. By default the range of the values, which takes
            a pass over `x`.
        log : bool, optional
            Whether bins are logarithmic. By default if the range is positive and spans more than a
            factor of 100, except for lengths.
        statistic : {"mean", "sum", "std"}, default "mean"
            The statistic of the fields.
        center : str, array_like of float, or sequence of float and "bc", optional
            As for `find_center`. By default that of `about`, otherwise the middle of the box.
        length_unit : str, default "box"
            Unit of the numbers in `center`, as for `Sphere`.
        axis : str or array_like of float, optional
            "x", "y", "z" or a vector; by default that of `about`, or "z".
        units : mapping of str to str, or str, optional
            Units of `x` and of fields, for example ``{"radius": "kpc", "density": "nH"}``, or the
            unit of the only field; by default code units. Bins and the range have the unit of `x`.
        region : Region, optional
            As for `read`.
        cut : {"center", "whole", "fraction"}, default "center"
            As for `statistics`.
        levels : tuple of int, optional
            As for `Amr.read`; not for particles.
        where : str, optional
            As for `read`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.Dataset
            A variable for each field, ``count`` (the number of rows) and, with a weight,
            ``weight_sum``. The centres of the bins are the coordinate `x`, and their edges
            ``{x}_lower`` and ``{x}_upper``. Means of empty bins are NaN.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If the bins, the range, the center, the axis, a unit or the selection is invalid.
        LimitError
            If the bins need more memory than `ambar.limits` permits.
        ModuleNotFoundError
            If xarray is not installed.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> ball = ambar.Sphere("bc", 0.4)
        >>> density = amr.profile("radius", "density", weight="volume", bins=20, region=ball)
        >>> density["density"].dims, density.sizes["radius"]
        (('radius',), 20)
        >>> amr.profile("radius", "mass", statistic="sum")["mass"].sum().item() > 0
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        view = centers.view_about(rows, center, length_unit, selection, axis=axis)
        return profiles.profile(
            view,
            x,
            fields,
            weight=weight,
            bins=bins,
            range=range,
            log=log,
            statistic=statistic,
            units=units,
            selection=selection,
        )

    def phase(
        self,
        x: str,
        y: str,
        *,
        field: str = "mass",
        weight: str | None = None,
        bins: BinEdges | tuple[BinEdges, BinEdges] = 64,
        range: tuple[Range | None, Range | None] | None = None,  # noqa: A002
        log: bool | tuple[bool | None, bool | None] | None = None,
        center: Center | None = None,
        length_unit: str = "box",
        axis: Direction | None = None,
        units: Mapping[str, str] | str | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return the sum, or the weighted mean, of a field in bins of two columns.

        Parameters
        ----------
        x, y : str
            The columns of the bins, as for `profile`.
        field : str, default "mass"
            A field, a derived field, or arithmetic of fields.
        weight : str, optional
            The weight of the mean, as for `profile`. By default the field is summed.
        bins : int, array_like of float, or tuple of two of these, default 64
            Number of bins, or their edges; a tuple has those of `x` and of `y`.
        range : tuple, optional
            The ranges of `x` and of `y`, as for `profile`; each may be None.
        log : bool, or tuple of two, optional
            As for `profile`; a tuple has those of `x` and of `y`.
        center : str, array_like of float, or sequence of float and "bc", optional
            As for `profile`.
        length_unit : str, default "box"
            As for `profile`.
        axis : str or array_like of float, optional
            As for `profile`.
        units : mapping of str to str, or str, optional
            Units of `x`, `y` and `field`, or the unit of `field`; by default code units.
        region : Region, optional
            As for `read`.
        cut : {"center", "whole", "fraction"}, default "center"
            As for `statistics`.
        levels : tuple of int, optional
            As for `Amr.read`; not for particles.
        where : str, optional
            As for `read`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.DataArray
            The dimensions `y` and `x`, as an image of which `x` is horizontal, with coordinates as
            of `profile`. Means of empty bins are NaN.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If `x` and `y` are equal, or the bins, a range, the center, the axis, a unit or the
            selection is invalid.
        LimitError
            If the bins need more memory than `ambar.limits` permits.
        ModuleNotFoundError
            If xarray is not installed.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> diagram = amr.phase("density", "pressure", bins=(32, 16), log=(True, False))
        >>> diagram.dims, diagram.shape
        (('pressure', 'density'), (16, 32))
        >>> abs(diagram.sum().item() / amr.sum("mass") - 1) < 1e-12
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        view = centers.view_about(rows, center, length_unit, selection, axis=axis)
        return profiles.phase(
            view,
            x,
            y,
            field=field,
            weight=weight,
            bins=bins,
            range=range,
            log=log,
            units=units,
            selection=selection,
        )

    def histogram(
        self,
        field: str,
        *,
        weight: str | None = AUTO,
        bins: BinEdges = 64,
        range: Range | None = None,  # noqa: A002
        log: bool | None = None,
        density: bool = False,
        center: Center | None = None,
        length_unit: str = "box",
        axis: Direction | None = None,
        units: Mapping[str, str] | str | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return the sum of a weight in bins of a column.

        Parameters
        ----------
        field : str
            The column of the bins, as for `profile`.
        weight : str or None, default "auto"
            "mass", "volume", another field, or None for the number of rows. By default the volume
            for cells, the number for particles.
        bins : int or array_like of float, default 64
            As for `profile`.
        range : tuple of float, optional
            As for `profile`.
        log : bool, optional
            As for `profile`.
        density : bool, default False
            Whether to return the probability density, whose integral over the bins is 1.
        center : str, array_like of float, or sequence of float and "bc", optional
            As for `profile`.
        length_unit : str, default "box"
            As for `profile`.
        axis : str or array_like of float, optional
            As for `profile`.
        units : mapping of str to str, or str, optional
            Units of `field` and of the weight, or the unit of `field`; by default code units.
        region : Region, optional
            As for `read`.
        cut : {"center", "whole", "fraction"}, default "center"
            As for `statistics`.
        levels : tuple of int, optional
            As for `Amr.read`; not for particles.
        where : str, optional
            As for `read`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.DataArray
            The dimension `field`, with coordinates as of `profile`.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If the bins, the range, the center, the axis, a unit or the selection is invalid.
        LimitError
            If the bins need more memory than `ambar.limits` permits.
        ModuleNotFoundError
            If xarray is not installed.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> volume = amr.histogram("density", bins=32, log=True)
        >>> volume.shape, round(volume.sum().item(), 12)
        ((32,), 1.0)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        view = centers.view_about(rows, center, length_unit, selection, axis=axis)
        return profiles.histogram(
            view,
            field,
            weight=weight,
            bins=bins,
            range=range,
            log=log,
            density=density,
            units=units,
            selection=selection,
        )


def _rows(methods: ProfileMethods) -> Any:
    """Return the cells or particles: each object with these methods is a `FieldRows`."""
    return methods

"""Methods of cells and particles that return statistics and centers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from ambar._core import InvalidError
from ambar._util.arguments import explained_arguments, names_of
from ambar.snapshot.analysis import centers, statistics
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.columns import AUTO, unit_factor
from ambar.snapshot.analysis.quantiles import quantiles
from ambar.snapshot.analysis.statistics import Extremum, Statistics
from ambar.snapshot.regions import Center, Cut, Levels, Region

_FRAME = "radii and angles refer to the frame of about(center, axis): amr.about(...).mean(...)"
FRAME_HINTS = {"center": _FRAME, "axis": _FRAME}


@explained_arguments(FRAME_HINTS)
class StatisticsMethods:
    """Statistics of cells and particles in one pass, in memory of a few batches.

    All methods read the rows in batches of 16 MiB. Results do not depend on `threads`: batches are
    the same for any number of threads, and are added in the same order.
    """

    def statistics(
        self,
        fields: Sequence[str] | str,
        *,
        weight: str | None = AUTO,
        units: Mapping[str, str] | str | None = None,
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Statistics:
        """Return count, mean, standard deviation, extrema and sum of fields, in one pass.

        Parameters
        ----------
        fields : str or sequence of str
            Fields, derived fields, or arithmetic of fields.
        weight : str or None, default "auto"
            The field that weights means and standard deviations: "volume", "mass", or another
            field; None for equal weights. By default the volume for cells, none for particles.
        units : mapping of str to str, or str, optional
            Units of the results by field, for example ``{"density": "g/cm3"}``, or the unit of the
            only field; by default code units.
        region : Region, optional
            As for `read`.
        cut : {"center", "whole", "fraction"}, default "center"
            How cells at the surface of the region count: those whose centre is inside count in full
            ("center"), all that share volume with it count in full ("whole"; of cylinders, oriented
            boxes and combinations also cells up to an eighth of a side outside), or with the
            fraction of their volume inside ("fraction"). Particles are points: inside or outside.
        levels : tuple of int, optional
            As for `Amr.read`; not for particles.
        where : str, optional
            As for `read`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        Statistics
            A mapping from the names of the fields to `FieldStatistics`.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If there are no fields, or the region, the levels, the condition or a unit is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> found = amr.statistics(["rho", "p"], weight="mass", where="level == 6")
        >>> found["rho"].count, found["rho"].mean > amr.mean("rho")
        (19904, True)
        """
        names = names_of("fields", fields)
        selection = Selection(region, levels, where, threads, cut)
        return statistics.statistics(_rows(self), names, weight, units, selection)

    def sum(
        self,
        field: str,
        *,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float:
        """Return the sum of a field.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float
            0 without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.sum("volume")
        1.0
        >>> amr.sum("mass", region=ambar.Sphere("bc", 0.25)) < amr.sum("mass")
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        factor = unit_factor(rows, field, unit)
        return factor * statistics.total(rows, field, selection)

    def mean(
        self,
        field: str,
        *,
        weight: str | None = AUTO,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float:
        """Return the weighted mean of a field.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        weight : str or None, default "auto"
            As for `statistics`: by default the volume for cells, none for particles.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float
            NaN without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.mean("rho") < amr.mean("rho", weight="mass")
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        factor = unit_factor(rows, field, unit)
        return factor * statistics.mean(rows, field, weight, selection)

    def std(
        self,
        field: str,
        *,
        weight: str | None = AUTO,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float:
        """Return the weighted standard deviation of a field, that of the population.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        weight : str or None, default "auto"
            As for `statistics`: by default the volume for cells, none for particles.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float
            NaN without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> particles = ambar.open_snapshot("run.ambar").particles
        >>> particles.std("x") < 1
        True
        """
        units = {field: unit}
        selection = Selection(region, levels, where, threads, cut)
        found = statistics.statistics(_rows(self), [field], weight, units, selection)
        return found[field].std

    def min(
        self,
        field: str,
        *,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float:
        """Return the smallest value of a field.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float
            NaN without rows, or if a value is NaN.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.min("level"), amr.max("level")
        (4.0, 6.0)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        factor = unit_factor(rows, field, unit)
        return factor * statistics.value_range(rows, field, selection)[0]

    def max(
        self,
        field: str,
        *,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float:
        """Return the largest value of a field.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float
            NaN without rows, or if a value is NaN.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.max("rho") == amr.argmax("rho").value
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        factor = unit_factor(rows, field, unit)
        return factor * statistics.value_range(rows, field, selection)[1]

    def argmin(
        self,
        field: str,
        *,
        unit: str = "code",
        length_unit: str = "box",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Extremum:
        """Return the smallest value of a field, and where it is.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        unit : str, default "code"
            Unit of the value: "code", or a unit of the quantity of the field.
        length_unit : str, default "box"
            Unit of the position, as for `Sphere`.
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
        Extremum
            Value and position; the first of equal values.

        Raises
        ------
        ValueError
            If the selection has no rows, or it is invalid.

        Examples
        --------
        >>> well = ambar.open_snapshot("run.ambar").amr.argmin("potential")
        >>> len(well.position)
        3
        """
        selection = Selection(region, levels, where, threads, cut)
        return self._extremum(field, unit, length_unit, selection, is_max=False)

    def argmax(
        self,
        field: str,
        *,
        unit: str = "code",
        length_unit: str = "box",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Extremum:
        """Return the largest value of a field, and where it is.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        unit : str, default "code"
            As for `argmin`.
        length_unit : str, default "box"
            As for `argmin`.
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
        Extremum
            Value and position; the first of equal values.

        Raises
        ------
        ValueError
            If the selection has no rows, or it is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> value, position = amr.argmax("rho")
        >>> bool(value == amr.read("rho")["rho"].max())
        True
        """
        selection = Selection(region, levels, where, threads, cut)
        return self._extremum(field, unit, length_unit, selection, is_max=True)

    def _extremum(
        self, field: str, unit: str, length_unit: str, selection: Selection, *, is_max: bool
    ) -> Extremum:
        rows = _rows(self)
        factor = unit_factor(rows, field, unit)
        found = statistics.extremum(rows, field, selection, is_max=is_max)
        place = centers.in_unit(np.array(found.position), rows.info, length_unit)
        return Extremum(factor * found.value, tuple(place.tolist()))

    @overload
    def quantile(
        self,
        field: str,
        q: float,
        *,
        weight: str | None = ...,
        unit: str = ...,
        region: Region | None = ...,
        cut: Cut = ...,
        levels: Levels | None = ...,
        where: str | None = ...,
        threads: int | None = ...,
    ) -> float: ...
    @overload
    def quantile(
        self,
        field: str,
        q: Sequence[float],
        *,
        weight: str | None = ...,
        unit: str = ...,
        region: Region | None = ...,
        cut: Cut = ...,
        levels: Levels | None = ...,
        where: str | None = ...,
        threads: int | None = ...,
    ) -> np.ndarray: ...
    def quantile(
        self,
        field: str,
        q: float | Sequence[float],
        *,
        weight: str | None = AUTO,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> float | np.ndarray:
        """Return weighted quantiles of a field; 0.5 is the median.

        A quantile is the smallest value at which the sum of the weights reaches the fraction `q` of
        the total, NumPy's method "inverted_cdf". It is a value of the data, exact in all bits.
        Passes narrow the range of the values until at most a million are left, which are sorted:
        two passes for most data, five at most.

        Parameters
        ----------
        field : str
            A field, a derived field, or arithmetic of fields.
        q : float or sequence of float
            Fractions from 0 to 1.
        weight : str or None, default "auto"
            As for `statistics`: by default the volume for cells, none for particles.
        unit : str, default "code"
            Unit of the result: "code", or a unit of the quantity of the field.
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
        float or numpy.ndarray
            A number for a number. NaN without rows, or if a value or a weight is NaN.

        Raises
        ------
        ValueError
            If `q` is not between 0 and 1, or the selection is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> low, median, high = amr.quantile("rho", [0.05, 0.5, 0.95])
        >>> bool(low < median < high), amr.quantile("rho", 1.0) == amr.max("rho")
        (True, True)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        factor = unit_factor(rows, field, unit)
        is_number = np.ndim(q) == 0
        found = quantiles(rows, field, np.atleast_1d(q).tolist(), weight, selection)
        return factor * found[0] if is_number else factor * np.array(found)

    def center_of_mass(
        self,
        *,
        weight: str | None = "mass",
        unit: str = "box",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the center of mass, or the mean position with another weight.

        In a periodic box, positions are those of the nearest image to the center of the region, or
        to the middle of the box if the region is a combination or missing.

        Parameters
        ----------
        weight : str or None, default "mass"
            "mass", "volume", another field, or None for equal weights.
        unit : str, default "box"
            "box", "code", or a unit of length, as for `Sphere`.
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
        numpy.ndarray
            float64 (ndim,): a coordinate for each dimension; NaN without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.center_of_mass(weight="volume").round(12).tolist()
        [0.5, 0.5, 0.5]
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        center = centers.near_selection(selection, rows.info)
        found = statistics.center_of_mass(rows, weight, center, selection)
        return centers.in_unit(found, rows.info, unit)

    def bulk_velocity(
        self,
        *,
        weight: str | None = "mass",
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the mean velocity, weighted with the mass.

        Parameters
        ----------
        weight : str or None, default "mass"
            "mass", "volume", another field, or None for equal weights.
        unit : str, default "code"
            "code", or a unit of velocity.
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
        numpy.ndarray
            float64 (ndim,): a component for each dimension; NaN without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> particles = ambar.open_snapshot("run.ambar").particles
        >>> particles.bulk_velocity(region=ambar.Sphere("bc", 0.2)).shape
        (3,)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        found = statistics.bulk_velocity(rows, weight, selection)
        return found * unit_factor(rows, "vx", unit)

    def velocity_dispersion(
        self,
        *,
        weight: str | None = "mass",
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the velocity dispersion tensor: the covariance of the components.

        Its diagonal has the squares of the dispersions along the axes, and the square root of its
        trace is the dispersion in all dimensions.

        Parameters
        ----------
        weight : str or None, default "mass"
            "mass", "volume", another field, or None for equal weights.
        unit : str, default "code"
            "code", or a unit of velocity: with "km/s" the result is in (km/s)**2.
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
        numpy.ndarray
            float64 (ndim, ndim), symmetric; NaN without rows.

        Raises
        ------
        KeyError, ValueError
            As for `statistics`.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> tensor = amr.velocity_dispersion()
        >>> tensor.shape, bool((tensor == tensor.T).all())
        ((3, 3), True)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        found = statistics.velocity_dispersion(rows, weight, selection)
        return found * unit_factor(rows, "vx", unit) ** 2

    def angular_momentum(
        self,
        *,
        center: Center | None = None,
        length_unit: str = "box",
        velocity: Sequence[float] | str | None = None,
        specific: bool = False,
        unit: str = "code",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the angular momentum about a center.

        Parameters
        ----------
        center : str, array_like of float, or sequence of float and "bc", optional
            As for `find_center`. By default that of `about`, otherwise the middle of the box.
        length_unit : str, default "box"
            Unit of the numbers in `center`, as for `Sphere`.
        velocity : "bulk" or sequence of float, optional
            A velocity in code units that is subtracted: "bulk" for the bulk velocity of the
            selection. By default none.
        specific : bool, default False
            Whether to return the angular momentum of unit mass.
        unit : str, default "code"
            "code", or an expression such as "Msun*kpc*km/s"; without the mass if `specific`.
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
        numpy.ndarray
            Three components; NaN without a bulk velocity that is subtracted.

        Raises
        ------
        UnsupportedError
            If the data do not have three dimensions.
        ValueError
            If the center, the velocity, the unit or the selection is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> ball = ambar.Sphere((0.4, 0.5, 0.5), 0.2)
        >>> spin = amr.angular_momentum(center="region", region=ball, velocity="bulk")
        >>> spin.shape
        (3,)
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        bulk = None
        if isinstance(velocity, str):
            if velocity != "bulk":
                raise InvalidError(f"invalid velocity {velocity!r}; expected 'bulk' or numbers")
            bulk = statistics.bulk_velocity(rows, "mass", selection)
            if not np.isfinite(bulk).all():
                return np.full(3, np.nan)
        elif velocity is not None:
            bulk = np.array(velocity, np.float64)
        view = centers.view_about(rows, center, length_unit, selection, velocity=bulk)
        found = statistics.angular_momentum(view, selection, is_specific=specific)
        name = "specific_angular_momentum_x" if specific else "angular_momentum_x"
        return found * unit_factor(rows, name, unit)

    def find_center(
        self,
        center: Center = "max:density",
        *,
        unit: str = "box",
        region: Region | None = None,
        cut: Cut = "center",
        levels: Levels | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return the position of an extremum, the center of mass, a sink or a clump.

        Parameters
        ----------
        center : str, array_like of float, or sequence of float and "bc", default "max:density"
            "max:FIELD" and "min:FIELD", such as "min:potential": the position of the extremum;
            "com": the center of mass; "sink:ID" and "clump:ID": the sink or clump of this number;
            "bc": the middle of the box; "region": the center of the region, which is not a
            combination. Numbers are returned unchanged. A field that particles lack is that of the
            cells in the region.
        unit : str, default "box"
            Unit of the result, and of the numbers in `center`: "box" for fractions of the size of
            the box in x, "code", or a unit of length, as for `Sphere`.
        region : Region, optional
            Where to search; as for `read`.
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
        numpy.ndarray
            A coordinate for each dimension.

        Raises
        ------
        KeyError
            If the field, the sink or the clump does not exist.
        ValueError
            If the center is invalid, or the selection has no rows; if the field of an extremum has
            NaN there.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> peak = amr.find_center("max:density")
        >>> len(amr.read("rho", region=ambar.Sphere(peak, 0.05))) > 0
        True
        """
        rows, selection = _rows(self), Selection(region, levels, where, threads, cut)
        place = centers.find_center(rows, center, unit, selection)
        return centers.in_unit(place, rows.info, unit)


def _rows(methods: StatisticsMethods) -> Any:
    """Return the cells or particles: each object with these methods is a `FieldRows`."""
    return methods

"""Conversion of code units to physical units.

Constants are those of Mera.jl 1.9 (``createconstants``: IAU 2012 and 2015, CODATA 2018, and the
mass of a hydrogen atom of RAMSES), so that converted values agree with Mera.jl to rounding.
``units.f90`` of RAMSES defines nH and T/mu the same way, with ``X = 0.76``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar._util.properties import cached_property
from ambar.snapshot.field_names import quantity_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt


AU = 1.495978707e13  # cm, IAU 2012
PARSEC = 3.08567758128e18  # cm, IAU 2015
LIGHT_YEAR = 9.4607304725808e17  # cm, IAU
YEAR = 3.15576e7  # s, Julian
SOLAR_MASS = 1.9891e33  # g
EARTH_MASS = 5.9722e27  # g
JUPITER_MASS = 1.89813e30  # g
HYDROGEN_MASS = 1.66e-24  # g, RAMSES
HYDROGEN_FRACTION = 0.76  # RAMSES' cooling module
BOLTZMANN = 1.380649e-16  # erg/K, CODATA 2018, exact

LENGTHS = {
    "mm": 0.1,
    "cm": 1.0,
    "m": 1e2,
    "km": 1e5,
    "Au": AU,
    "ly": LIGHT_YEAR,
    "mpc": PARSEC * 1e-3,
    "pc": PARSEC,
    "kpc": PARSEC * 1e3,
    "Mpc": PARSEC * 1e6,
}
TIMES = {
    "s": 1.0,
    "min": 60.0,
    "hr": 3600.0,
    "day": 86400.0,
    "yr": YEAR,
    "kyr": YEAR * 1e3,
    "Myr": YEAR * 1e6,
    "Gyr": YEAR * 1e9,
}
MASSES = {"g": 1.0, "kg": 1e3, "Mearth": EARTH_MASS, "Mjupiter": JUPITER_MASS, "Msol": SOLAR_MASS}
DIMENSIONS = {
    "length": (1.0, 0.0, 0.0),
    "volume": (3.0, 0.0, 0.0),
    "time": (0.0, 0.0, 1.0),
    "mass": (0.0, 1.0, 0.0),
    "density": (-3.0, 1.0, 0.0),
    "surface_density": (-2.0, 1.0, 0.0),
    "velocity": (1.0, 0.0, -1.0),
    "acceleration": (1.0, 0.0, -2.0),
    "pressure": (-1.0, 1.0, -2.0),
    "specific_energy": (2.0, 0.0, -2.0),
    "energy": (2.0, 1.0, -2.0),
    "temperature": (2.0, 0.0, -2.0),
    "magnetic_field": (-0.5, 0.5, -1.0),
}
"""Exponents of length, mass and time of the quantities in `Units.factors`."""
SPELLINGS = {"au": "Au", "AU": "Au", "Msun": "Msol", "M_sun": "Msol", "h": "hr", "K_mu": "T_mu"}
"""Other names of units."""


@dataclass(frozen=True)
class Units:
    """Factors from code units to physical units.

    Parameters
    ----------
    unit_l, unit_d, unit_t : float
        One code unit of length in cm, of density in g/cm3 and of time in s, as in the info file of
        RAMSES. In a cosmological run they apply at the expansion factor of the output: lengths are
        proper.
    cosmological : bool, default False
        Whether the run is cosmological. Its birth times are conformal times.

    Examples
    --------
    >>> units = ambar.Units(unit_l=3.08567758128e21, unit_d=1e-24, unit_t=3.15576e13)
    >>> units.length("kpc"), units.time("Myr")
    (1.0, 1.0)
    >>> round(units.convert(2.0, "velocity_x", "km/s"))
    1956
    """

    unit_l: float
    unit_d: float
    unit_t: float
    cosmological: bool = False

    def is_conformal(self, field: str) -> bool:
        """Return whether a field contains conformal times: birth times of a cosmological run.

        Parameters
        ----------
        field : str
            Name of the field.

        Returns
        -------
        bool

        Examples
        --------
        >>> ambar.Units(1.0, 1.0, 1.0, cosmological=True).is_conformal("birth_time")
        True
        """
        return self.cosmological and field != "time" and quantity_of(field) == "time"

    @property
    def unit_v(self) -> float:
        """One code unit of velocity in cm/s."""
        return self.unit_l / self.unit_t

    @property
    def unit_m(self) -> float:
        """One code unit of mass in g."""
        return self.unit_d * self.unit_l**3

    @cached_property
    def factors(self) -> dict[str, dict[str, float]]:
        """Factors from code units, by quantity and unit."""
        velocity, pressure = self.unit_v, self.unit_d * self.unit_v**2
        acceleration = self.unit_v / self.unit_t
        kelvin = HYDROGEN_MASS / BOLTZMANN * velocity**2
        gauss = math.sqrt(4 * math.pi * pressure)
        surface = self.unit_d * self.unit_l
        return {
            "length": {name: self.unit_l / unit for name, unit in LENGTHS.items()},
            "volume": {f"{name}3": (self.unit_l / unit) ** 3 for name, unit in LENGTHS.items()},
            "time": {name: self.unit_t / unit for name, unit in TIMES.items()},
            "mass": {name: self.unit_m / unit for name, unit in MASSES.items()},
            "density": {
                "g/cm3": self.unit_d,
                "kg/m3": self.unit_d * 1e3,
                "Msol/pc3": self.unit_d * PARSEC**3 / SOLAR_MASS,
                "Msol/kpc3": self.unit_d * (PARSEC * 1e3) ** 3 / SOLAR_MASS,
                "nH": self.unit_d * HYDROGEN_FRACTION / HYDROGEN_MASS,
            },
            "surface_density": {
                "g/cm2": surface,
                "Msol/pc2": surface * PARSEC**2 / SOLAR_MASS,
                "NH": surface * HYDROGEN_FRACTION / HYDROGEN_MASS,
            },
            "velocity": {"cm/s": velocity, "m/s": velocity * 1e-2, "km/s": velocity * 1e-5},
            "acceleration": {
                "cm/s2": acceleration,
                "m/s2": acceleration * 1e-2,
                "km/s2": acceleration * 1e-5,
                "pc/Myr2": acceleration * (YEAR * 1e6) ** 2 / PARSEC,
            },
            "pressure": {
                "Ba": pressure,
                "erg/cm3": pressure,
                "Pa": pressure * 0.1,
                "K/cm3": pressure / BOLTZMANN,
            },
            "specific_energy": {
                "erg/g": velocity**2,
                "J/kg": velocity**2 * 1e-4,
                "km2/s2": velocity**2 * 1e-10,
            },
            "energy": {"erg": self.unit_m * velocity**2, "J": self.unit_m * velocity**2 * 1e-7},
            # Of pressure over density: T/mu, and T with the mean molecular weight 1/X of RAMSES.
            "temperature": {"T_mu": kelvin, "K": kelvin / HYDROGEN_FRACTION},
            "magnetic_field": {
                "Gauss": gauss,
                "muG": gauss * 1e6,
                "nG": gauss * 1e9,
                "Tesla": gauss * 1e-4,
            },
        }

    def factor(self, quantity: str, unit: str) -> float:
        """Return the factor from code units to a unit.

        Parameters
        ----------
        quantity : str
            A quantity ("length", "density", ...) or the name of a field ("density", "vx", ...).
        unit : str
            A unit of the quantity ("kpc", "g/cm3", ...), or "code".

        Returns
        -------
        float
            The value in `unit` of one code unit.

        Raises
        ------
        ValueError
            If the quantity or the unit does not exist; the message lists the available ones.
        UnsupportedError
            For birth times of a cosmological run, which are conformal times.

        Examples
        --------
        >>> units = ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0)
        >>> units.factor("length", "m"), units.factor("vx", "m/s")
        (1.0, 1.0)
        """
        if unit == "code":
            return 1.0
        if self.is_conformal(quantity):
            raise _core.UnsupportedError(
                f"{quantity!r} cannot be converted to {unit!r}: birth times of a cosmological run "
                "are conformal times, whose conversion is not supported; use 'code'"
            )
        known = self.factors
        kind = quantity if quantity in known else quantity_of(quantity)
        if kind is None:
            raise _core.InvalidError(
                f"{quantity!r} is not a quantity with units; available: {', '.join(known)}, and "
                "fields of such a quantity"
            )
        units = known[kind]
        name = unit if unit in units else SPELLINGS.get(unit, unit)
        if name not in units:
            raise _core.InvalidError(
                f"{unit!r} is not a unit of {kind}; available: code, {', '.join(units)}"
            )
        return units[name]

    def convert(self, values: npt.ArrayLike, quantity: str, unit: str) -> Any:
        """Return values in code units converted to a unit.

        Parameters
        ----------
        values : array_like
            Values in code units.
        quantity, unit : str
            As for `factor`.

        Returns
        -------
        float or numpy.ndarray
            float64 of the same shape; a float for a number.

        Raises
        ------
        ValueError
            If the quantity or the unit does not exist.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).convert([1, 2], "length", "m")
        array([1., 2.])
        """
        import numpy as np

        converted: np.ndarray = np.asarray(values, dtype=np.float64) * self.factor(quantity, unit)
        return converted if converted.ndim else float(converted)

    def length(self, unit: str) -> float:
        """Return one code unit of length in `unit`: cm, m, km, Au, ly, pc, kpc, Mpc, ...

        Parameters
        ----------
        unit : str
            A unit of `factors["length"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).length("m")
        1.0
        """
        return self.factor("length", unit)

    def time(self, unit: str) -> float:
        """Return one code unit of time in `unit`: s, yr, kyr, Myr, Gyr, ...

        Parameters
        ----------
        unit : str
            A unit of `factors["time"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).time("s")
        1.0
        """
        return self.factor("time", unit)

    def mass(self, unit: str) -> float:
        """Return one code unit of mass in `unit`: g, kg, Msol, ...

        Parameters
        ----------
        unit : str
            A unit of `factors["mass"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).mass("kg")
        1000.0
        """
        return self.factor("mass", unit)

    def density(self, unit: str) -> float:
        """Return one code unit of density in `unit`: g/cm3, Msol/pc3, nH (H atoms in cm3), ...

        Parameters
        ----------
        unit : str
            A unit of `factors["density"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).density("kg/m3")
        1000.0
        """
        return self.factor("density", unit)

    def velocity(self, unit: str) -> float:
        """Return one code unit of velocity in `unit`: cm/s, m/s, km/s.

        Parameters
        ----------
        unit : str
            A unit of `factors["velocity"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).velocity("m/s")
        1.0
        """
        return self.factor("velocity", unit)

    def pressure(self, unit: str) -> float:
        """Return one code unit of pressure in `unit`: Ba, Pa, K/cm3.

        Parameters
        ----------
        unit : str
            A unit of `factors["pressure"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).pressure("Pa")
        1000.0
        """
        return self.factor("pressure", unit)

    def temperature(self, unit: str) -> float:
        """Return one code unit of pressure over density in `unit`.

        Units are T_mu (T/mu in K) and K (with the mean molecular weight mu = 1/0.76).

        Parameters
        ----------
        unit : str
            A unit of `factors["temperature"]`, or "code".

        Returns
        -------
        float
            The factor from code units.

        Examples
        --------
        >>> units = ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0)
        >>> round(units.temperature("K") / units.temperature("T_mu"), 3)
        1.316
        """
        return self.factor("temperature", unit)


def parse_where(
    where: str | None, name_of: Callable[[str], str], units: Units
) -> _core.Condition | None:
    """Return the condition `where` with the names that fields are stored by, and in code units.

    Parameters
    ----------
    where
        A condition as in ``docs/howto/conditions.md``; None is returned unchanged.
    name_of
        Returns the stored name of a field.
    units
        The units of the snapshot.

    Raises
    ------
    ValueError
        If the condition is invalid, or a unit differs in its dimension from the field that it is
        compared with.
    UnsupportedError
        If a unit of time is used, and a field contains conformal times.
    """
    if where is None:
        return None
    if not isinstance(where, str):
        raise TypeError(f"expected a condition such as 'rho > 1', found {where!r:.80}")
    condition = _core.Condition(where)
    condition = _with_columns(condition, name_of, units)
    if not condition.units:
        return condition
    if not units.factors:
        raise _core.InvalidError(
            f"expected numbers in code units, found the unit {condition.units[0]!r}; the units of "
            "this run are not known"
        )
    fields = {}
    for name in condition.fields:
        if units.is_conformal(name):
            for unit in TIMES.keys() & condition.units:
                units.factor(name, unit)  # raises UnsupportedError
        elif quantity := quantity_of(name):
            fields[name] = quantity
    quantities = [
        _core.Quantity(quantity, dimension=DIMENSIONS[quantity], units=factors)
        for quantity, factors in units.factors.items()
    ]
    return condition.convert_units(quantities, fields, SPELLINGS)


def _with_columns(
    condition: _core.Condition, name_of: Callable[[str], str], units: Units
) -> _core.Condition:
    """Return a condition whose names are replaced by the names of columns."""
    try:
        return condition.rename({name: name_of(name) for name in condition.fields})
    except _core.NotFoundError as error:
        known = {unit for factors in units.factors.values() for unit in factors}
        spaced = {f"{unit}/{name}" for unit in condition.units for name in condition.fields}
        for unit in known & spaced:
            raise _core.NotFoundError(f"{error}; write the unit {unit} without spaces") from None
        raise

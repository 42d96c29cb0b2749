"""Conversion of code units to physical units.

``units.f90`` of RAMSES defines nH and T/mu the same way, with ``X = 0.76``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar._util.arguments import check_unicode
from ambar._util.properties import cached_property
from ambar._util.text import suggestion
from ambar.snapshot.field_names import ALIASES, BIRTH_TIMES, quantity_of, without_component
from ambar.snapshot.physics.constants import (
    BOLTZMANN,
    HYDROGEN_FRACTION,
    HYDROGEN_MASS,
    LENGTHS,
    MASSES,
    PARSEC,
    SOLAR_MASS,
    SPELLINGS,
    TIMES,
    YEAR,
)
from ambar.snapshot.physics.cosmology import Cosmology
from ambar.snapshot.physics.unit_expressions import (
    NOT_EXPRESSIONS,
    Unit,
    parse_unit,
    pint_notation,
    suggested_unit,
    unit_of_arithmetic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

DIMENSIONS = {
    "length": (1.0, 0.0, 0.0),
    "area": (2.0, 0.0, 0.0),
    "volume": (3.0, 0.0, 0.0),
    "time": (0.0, 0.0, 1.0),
    "frequency": (0.0, 0.0, -1.0),
    "mass": (0.0, 1.0, 0.0),
    "mass_rate": (0.0, 1.0, -1.0),
    "density": (-3.0, 1.0, 0.0),
    "surface_density": (-2.0, 1.0, 0.0),
    "velocity": (1.0, 0.0, -1.0),
    "momentum_density": (-2.0, 1.0, -1.0),
    "specific_angular_momentum": (2.0, 0.0, -1.0),
    "angular_momentum": (2.0, 1.0, -1.0),
    "acceleration": (1.0, 0.0, -2.0),
    "pressure": (-1.0, 1.0, -2.0),
    "specific_energy": (2.0, 0.0, -2.0),
    "energy": (2.0, 1.0, -2.0),
    "pressure_over_density": (2.0, 0.0, -2.0),
    "magnetic_field": (-0.5, 0.5, -1.0),
    "dimensionless": (0.0, 0.0, 0.0),
}
"""Exponents of length, mass and time of the quantities in code units."""
KELVIN = Unit(1.0, (0.0, 0.0, 0.0, 1.0))
ABSOLUTE = {"temperature": KELVIN, "number_density": Unit(1.0, (-3.0, 0.0, 0.0, 0.0))}
"""Units of quantities that are not in code units."""
_KELVIN_IN_CONDITIONS = (1024.0, 0.0, 0.0)
"""The dimension of fields in K in conditions, which have no exponent of temperature."""
_OWN_IN_CONDITIONS = 2048.0
"""The first of the dimensions of fields that are neither in code units nor in K."""


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
        Whether the run is cosmological. Its birth times are conformal times, or, with
        ``use_proper_time`` or radiative transfer, proper times in units of 1/H0.

    Raises
    ------
    ValueError
        If a factor is zero, negative or not finite.

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
    _cosmology: Cosmology | None = field(default=None, init=False, repr=False)
    _own: Mapping[str, Unit | str] = field(default_factory=dict, init=False, repr=False, hash=False)
    """Units of fields that are not in code units; a text where it is not a known unit."""
    _run_time: float | None = field(default=None, init=False, repr=False)
    """One unit of the time of the run in s, as in Nyx; None if it is `unit_t`."""

    def __post_init__(self) -> None:
        """Raise ValueError for factors that are zero, negative or not finite."""
        for name in ("unit_l", "unit_d", "unit_t"):
            if not 0 < getattr(self, name) < math.inf:
                raise _core.InvalidError(
                    f"invalid {name}: {getattr(self, name)}; expected a finite number > 0"
                )

    def _of_universe(self, cosmology: Cosmology | None) -> Units:
        """Return these units with the expansion that converts birth times."""
        units = replace(self)
        object.__setattr__(units, "_cosmology", cosmology)
        object.__setattr__(units, "_own", self._own)
        object.__setattr__(units, "_run_time", self._run_time)
        return units

    def _of_fields(self, own: Mapping[str, Unit | str]) -> Units:
        """Return these units with those of fields that are not in code units."""
        units = self._of_universe(self._cosmology)
        object.__setattr__(units, "_own", own)
        return units

    def _of_run_time(self, seconds: float) -> Units:
        """Return these units with another unit of the time of the run, in s."""
        units = self._of_universe(self._cosmology)
        object.__setattr__(units, "_run_time", seconds)
        return units

    def _factor_of_run_time(self, unit: str) -> float:
        """Return the factor from the time of the run to a unit of time, or 1 for "code"."""
        if self._run_time is None or unit == "code":
            return self.time(unit)
        return self.time(unit) * self._run_time / self.unit_t

    @property
    def _is_uniform(self) -> bool:
        """Whether all fields of a known quantity are in code units: formulas may mix them."""
        for name, own in self._own.items():
            quantity = quantity_of(name)
            if quantity is not None and own != self._code_unit(quantity):
                return False
        return True

    def is_conformal(self, field: str) -> bool:
        """Return whether a field contains birth times of a cosmological run.

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
        names = (field, *ALIASES.get(field, ()))
        return self.cosmological and not BIRTH_TIMES.isdisjoint(names)

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
            # T/mu, and T with the mean molecular weight 1/X of RAMSES.
            "pressure_over_density": {"T_mu": kelvin, "K": kelvin / HYDROGEN_FRACTION},
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
            A quantity ("length", "density", ...), the name of a field ("density", "vx", ...), or
            arithmetic of fields ("rho * vx**2").
        unit : str
            "code", a unit of the quantity in `factors` ("kpc", "nH", ...), or an expression of its
            dimension: "Msun/yr", "km/s/kpc", "erg/cm**3", "g cm-3".

        Returns
        -------
        float
            The value in `unit` of one code unit.

        Raises
        ------
        ValueError
            If the quantity or the unit does not exist, or the unit has another dimension.
        UnsupportedError
            For birth times of a cosmological run: `convert` converts them, but no factor does.

        Examples
        --------
        >>> units = ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0)
        >>> units.factor("length", "m"), units.factor("vx", "m/s")
        (1.0, 1.0)
        >>> units.factor("rho * vx**2", "erg/cm**3")
        10000.0
        """
        if unit == "code":
            return 1.0
        if quantity in self._own:
            return self._factor_of(self._own_unit(quantity), unit, quantity)
        if self.is_conformal(quantity):
            raise _core.UnsupportedError(
                f"{quantity!r} cannot be converted to {unit!r} with a factor: birth times of a "
                "cosmological run are conformal times; use `Units.convert`, or the field 'age'"
            )
        kind = quantity if quantity in DIMENSIONS else quantity_of(quantity)
        if kind is not None:
            return self._factor_of_quantity(kind, unit)
        found = unit_of_arithmetic(quantity, self._unit_of_name)
        if found is None:
            raise _core.InvalidError(
                f"{quantity!r} is not a quantity with units; available: {', '.join(DIMENSIONS)}, "
                "and fields of such a quantity"
            )
        return self._factor_of(found, unit, quantity)

    def _factor_of_quantity(self, kind: str, unit: str) -> float:
        units = self.factors.get(kind, {})
        if (factor := _named_factor(units, unit)) is not None:
            return factor
        own = self._code_unit(kind)
        return self._expressed(own, unit, f"{unit!r} is not a unit of {kind}", units)

    def _factor_of(self, own: Unit, unit: str, name: str) -> float:
        """Return the factor from a unit to another one; `name` is what has it, for messages.

        Raises
        ------
        ValueError
            If `unit` does not exist, or has another dimension.
        """
        for kind, dimension in DIMENSIONS.items():
            if own.is_like(Unit(1.0, (*dimension, 0.0))):
                factor = _named_factor(self.factors.get(kind, {}), unit)
                if factor is not None:
                    return factor * own.factor / self._code_unit(kind).factor
        return self._expressed(own, unit, f"{unit!r} is not a unit of {name}", {})

    def _factor_if_like(self, own: Unit, unit: str) -> float | None:
        """Return the factor from a unit to another one; None if it has another dimension."""
        try:
            return self._factor_of(own, unit, "")
        except _core.InvalidError:
            return None

    def _expressed(self, own: Unit, unit: str, problem: str, units: Mapping[str, float]) -> float:
        """Return the factor from a unit to an expression."""
        available = ", ".join(["code", *units])
        try:
            wanted = parse_unit(unit)
        except _core.InvalidError:
            raise _core.InvalidError(
                f"{problem}; {suggested_unit(unit)}available: {available}, and expressions of the "
                f"dimension {own.text}"
            ) from None
        if not wanted.is_like(own):
            raise _core.InvalidError(
                f"{problem}: expected the dimension {own.text}, found {wanted.text}; available: "
                f"{available}, and expressions of this dimension"
            )
        return own.factor / wanted.factor

    def _code_unit(self, quantity: str) -> Unit:
        """Return the unit of values of a quantity."""
        return ABSOLUTE.get(quantity) or self._unit_of_exponents(*DIMENSIONS[quantity])

    def _unit_of_exponents(self, length: float, mass: float, time: float) -> Unit:
        factor = self.unit_l**length * self.unit_m**mass * self.unit_t**time
        return Unit(factor, (length, mass, time, 0.0))

    def _own_unit(self, name: str) -> Unit:
        own = self._own[name]
        if isinstance(own, str):
            raise _core.UnsupportedError(
                f"{name!r} is in {own!r}, which is not a unit that can be converted; use 'code'"
            )
        return own

    def _unit_of_name(self, name: str) -> Unit | None:
        own = self._own.get(name)
        if own is not None:
            return own if isinstance(own, Unit) else None
        quantity = quantity_of(name)
        if quantity in ABSOLUTE:
            return ABSOLUTE[quantity]
        if quantity is None or not self.factors or self.is_conformal(name):
            return None
        return self._code_unit(quantity)

    def convert(self, values: npt.ArrayLike, quantity: str, unit: str) -> Any:
        """Return values in code units converted to a unit.

        Birth times of a cosmological run become proper times since the Big Bang.

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
        UnsupportedError
            For birth times of a cosmological run, if these units are not those of its `info`.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).convert([1, 2], "length", "m")
        array([1., 2.])
        """
        import numpy as np

        numbers = np.asarray(values, dtype=np.float64)
        if unit != "code" and self.is_conformal(quantity) and self._cosmology is not None:
            numbers = self._cosmology.since_big_bang(np.atleast_1d(numbers)).reshape(numbers.shape)
            converted: np.ndarray = np.asarray(numbers / self.unit_t * self.time(unit))
        else:
            converted = np.asarray(numbers * self.factor(quantity, unit))
        return converted if converted.ndim else float(converted)

    def length(self, unit: str) -> float:
        """Return one code unit of length in `unit`: cm, m, km, Au, ly, pc, kpc, Mpc, ...

        Parameters
        ----------
        unit : str
            A unit of ``factors["length"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

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
            A unit of ``factors["time"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

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
            A unit of ``factors["mass"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

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
            A unit of ``factors["density"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

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
            A unit of ``factors["velocity"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

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
            A unit of ``factors["pressure"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

        Examples
        --------
        >>> ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0).pressure("Pa")
        1000.0
        """
        return self.factor("pressure", unit)

    def temperature(self, unit: str) -> float:
        """Return one code unit of pressure over density in `unit`.

        Units are T_mu (T/mu in K) and K (with the mean molecular weight mu = 1/0.76). The field
        "temperature" is in K already and needs no factor.

        Parameters
        ----------
        unit : str
            A unit of ``factors["pressure_over_density"]``, or "code".

        Returns
        -------
        float
            The factor from code units.

        Raises
        ------
        ValueError
            If the unit does not exist, or has another dimension.

        Examples
        --------
        >>> units = ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0)
        >>> round(units.temperature("K") / units.temperature("T_mu"), 3)
        1.316
        """
        return self.factor("pressure_over_density", unit)


SYSTEMS = ("cgs", "Nyx", "SI", "WarpX")
"""Names of systems of units that codes write without stating them."""
GIVE_UNITS = "snapshot.with_units(...): a name (Nyx, WarpX, SI, cgs) or ambar.Units"
"""How units are given, for messages."""
_WARPX = {
    "rho": "C/m**3",
    **{f"E{axis}": "V/m" for axis in "xyzrt"},
    **{f"B{axis}": "Tesla" for axis in "xyzrt"},
    **{f"j{axis}": "A/m**2" for axis in "xyzrt"},
}
"""Units of fields of WarpX: "rho" is the density of charge."""


def unit_system(name: str, aexp: float | None) -> Units:
    """Return the units of a system by its name; `aexp` is the expansion factor of the run.

    Raises ValueError if the name is not one of `SYSTEMS`.

    Examples
    --------
    >>> unit_system("SI", None).velocity("m/s")
    1.0
    """
    match name:
        case "cgs":
            return Units(unit_l=1.0, unit_d=1.0, unit_t=1.0)
        case "SI" | "WarpX":
            units = Units(unit_l=1e2, unit_d=1e-3, unit_t=1.0)
            own = _WARPX if name == "WarpX" else {}
            return units._of_fields({field: parse_unit(unit) for field, unit in own.items()})
        case "Nyx":
            comoving = PARSEC * 1e6
            length = comoving * (aexp or 1.0)
            units = Units(unit_l=length, unit_d=SOLAR_MASS / length**3, unit_t=length / 1e5)
            # The proper time since the start of the run is in Mpc / (km/s), at any expansion.
            return units._of_run_time(comoving / 1e5)
    raise _core.InvalidError(f"unknown system of units {name!r}; {suggestion(name, SYSTEMS)}")


def _named_factor(units: Mapping[str, float], unit: str) -> float | None:
    """Return the factor of a unit by its name or its label: "K/cm3" or "K/cm**3"."""
    name = SPELLINGS.get(unit, unit)
    if unit in units or name in units:
        return units.get(unit, units.get(name))
    try:
        label = pint_notation(unit)
    except _core.InvalidError:
        return None
    same = (own for own in units if own not in NOT_EXPRESSIONS and pint_notation(own) == label)
    return units.get(next(same, ""))


@dataclass(frozen=True)
class ColumnUnits:
    """The units of columns by name; None for unknown ones. Pickles."""

    units: Units
    of: Mapping[str, Unit | None]

    @classmethod
    def of_names(cls, units: Units, names: Iterable[str]) -> ColumnUnits:
        """Return the units that columns have by their names."""
        return cls(units, {name: units._unit_of_name(without_component(name)) for name in names})

    def factor(self, name: str, unit: str) -> float:
        """Return the factor from the values of a column to a unit.

        Raises
        ------
        ValueError
            If the unit does not exist or has another dimension, or that of the column is unknown.
        """
        own = self.of.get(name)
        if unit == "code":
            return 1.0
        if own is None or without_component(name) in self.units._own:
            return self.units.factor(without_component(name), unit)
        kind = quantity_of(without_component(name))
        if kind in DIMENSIONS and self.units._code_unit(kind) == own:
            return self.units.factor(kind, unit)
        return self.units._factor_of(own, unit, name)

    def convert(self, values: np.ndarray, name: str, unit: str) -> Any:
        """Return the values of a column in a unit."""
        if unit != "code" and self.units.is_conformal(without_component(name)):
            return self.units.convert(values, without_component(name), unit)
        factor = self.factor(name, unit)
        # float32 does not hold masses in g.
        return values * factor if unit == "code" else values.astype("f8", copy=False) * factor

    def label(self, name: str, unit: str) -> str:
        """Return the unit of converted values in pint's notation; "code" for code units."""
        if unit != "code":
            return pint_notation(unit)
        own = self.of.get(name)
        if own is None:
            stated = self.units._own.get(without_component(name), "code")
            return stated if isinstance(stated, str) else "code"
        if own.name:
            return own.name
        if own.is_like(_ONE):
            return "dimensionless" if own.factor == 1.0 else "code"
        if is_code_unit(own, self.units):
            return "code"
        return own.text if own.factor == 1.0 else f"{own.factor!r}*{own.text}"


_ONE = Unit(1.0)


def parse_where(
    where: str | None,
    name_of: Callable[[str], str],
    units: Units,
    unit_of: Callable[[str], Unit | None] | None = None,
) -> _core.Condition | None:
    """Return the condition `where` with the names that columns have, and in code units.

    Parameters
    ----------
    where
        A condition as in ``docs/howto/conditions.md``; None is returned unchanged.
    name_of
        Returns the name of the column of a field.
    units
        The units of the snapshot.
    unit_of
        Returns the unit of the values of a column; by default that of its quantity.

    Raises
    ------
    ValueError
        If the condition is invalid, or a unit differs in its dimension from the field that it is
        compared with.
    UnsupportedError
        If a unit of time is used, and a field contains birth times of a cosmological run.
    """
    if where is None:
        return None
    if not isinstance(where, str):
        raise TypeError(f"expected a condition such as 'rho > 1', found {where!r:.80}")
    check_unicode("where", where)
    condition = _core.Condition(where)
    condition = _with_columns(where, condition, name_of, units)
    if not condition.units:
        return condition
    if not units.factors:
        raise _core.InvalidError(
            f"expected numbers in code units, found the unit {condition.units[0]!r}: the output "
            f"does not state its units; give them with {GIVE_UNITS}"
        )
    return _in_code_units(condition, units, unit_of or units._unit_of_name)


def _in_code_units(
    condition: _core.Condition, units: Units, unit_of: Callable[[str], Unit | None]
) -> _core.Condition:
    """Return a condition whose numbers are in the units of the fields."""
    factors = {name: dict(units.factors.get(name, {})) for name in DIMENSIONS}
    dimensions = dict(DIMENSIONS)
    fields: dict[str, str] = {}
    others: dict[Unit, list[str]] = {}
    for name in condition.fields:
        if units.is_conformal(name):
            for unit in TIMES.keys() & condition.units:
                units.factor(name, unit)  # raises UnsupportedError
            continue
        own = unit_of(name)
        if own == KELVIN:
            dimensions["kelvin"], factors["kelvin"] = _KELVIN_IN_CONDITIONS, {"K": 1.0}
            factors["pressure_over_density"].pop("K", None)
            fields[name] = "kelvin"
        elif own is not None and own.dimension[3] == 0 and not is_code_unit(own, units):
            others.setdefault(own, []).append(name)
        elif own is not None and own.dimension[3] == 0:
            length, mass, time, _ = own.dimension
            kind = quantity_of(name) or own.text
            if DIMENSIONS.get(kind) != (length, mass, time):
                kind = next((k for k, d in DIMENSIONS.items() if d == own.dimension[:3]), own.text)
                dimensions[kind] = (length, mass, time)
                factors.setdefault(kind, {})
            fields[name] = kind
    for unit, wanted in _expressions(condition.units, factors):
        length, mass, time, _ = wanted.dimension
        dimensions[unit] = (length, mass, time)
        factors[unit] = {unit: units._unit_of_exponents(length, mass, time).factor / wanted.factor}
    _add_own_units(others, condition.units, units, dimensions, factors, fields)
    quantities = [
        _core.Quantity(name, dimension=dimension, units=factors[name])
        for name, dimension in dimensions.items()
        if factors[name] or name in fields.values()
    ]
    return condition.convert_units(quantities, fields, SPELLINGS)


def _add_own_units(
    others: Mapping[Unit, list[str]],
    wanted: Iterable[str],
    units: Units,
    dimensions: dict[str, tuple[float, float, float]],
    factors: dict[str, dict[str, float]],
    fields: dict[str, str],
) -> None:
    """Add the fields that are neither in code units nor in K, by their units.

    Each has a quantity of its own, to which the units of its dimension belong, unless other fields
    in the condition have this dimension.
    """
    taken = {dimensions[kind] for kind in fields.values()}
    for number, (own, names) in enumerate(others.items()):
        length, mass, time, _ = own.dimension
        if (length, mass, time) in taken:
            continue
        taken.add((length, mass, time))
        kind = f"the unit of {names[0]}"
        fields.update(dict.fromkeys(names, kind))
        dimensions[kind], factors[kind] = (_OWN_IN_CONDITIONS + number, 0.0, 0.0), {}
        for unit in wanted:
            spelled, factor = SPELLINGS.get(unit, unit), units._factor_if_like(own, unit)
            if factor is not None:
                for known in factors.values():
                    known.pop(spelled, None)
                factors[kind][spelled] = factor


def _expressions(
    names: Iterable[str], factors: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, Unit]]:
    """Yield the units that are expressions of length, mass and time, and not among `factors`."""
    known = {unit for units in factors.values() for unit in units} | SPELLINGS.keys()
    for name in set(names) - known:
        try:
            unit = parse_unit(name)
        except _core.InvalidError:
            if "_" in name and (hint := suggested_unit(name)):
                raise _core.InvalidError(f"unknown unit {name!r}; {hint.rstrip()}") from None
            continue  # convert_units states the position
        if unit.dimension[3] == 0:
            yield name, unit


def is_code_unit(own: Unit, units: Units) -> bool:
    """Return whether `own` is one code unit of its dimension."""
    length, mass, time, kelvin = own.dimension
    code = units._unit_of_exponents(length, mass, time).factor
    return kelvin == 0 and math.isclose(code, own.factor, rel_tol=1e-9)


def _with_columns(
    where: str, condition: _core.Condition, name_of: Callable[[str], str], units: Units
) -> _core.Condition:
    """Return a condition whose names are replaced by the names of columns."""
    try:
        return condition.rename({name: name_of(name) for name in condition.fields})
    except _core.NotFoundError as error:
        known = {unit for factors in units.factors.values() for unit in factors}
        spaced = {f"{unit}/{name}" for unit in condition.units for name in condition.fields}
        for unit in known & spaced:
            raise _core.NotFoundError(f"{error}; write the unit {unit} without spaces") from None
        for name in condition.fields:
            if re.search(rf"\d\s*[*/]\s*{re.escape(name)}\b", where) and _is_unit(name):
                raise _core.NotFoundError(
                    f"{error}; write a unit after a number and a space: 1 g/cm3, 1 cm-3, 1 1/cm3"
                ) from None
        raise


def _is_unit(name: str) -> bool:
    try:
        parse_unit(name)
    except _core.InvalidError:
        return False
    return True

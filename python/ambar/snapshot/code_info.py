"""Run information of any code: domain, time, cosmology, units of the code and of each field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ambar import _core
from ambar._util.properties import cached_property
from ambar._util.text import Summary, span
from ambar.snapshot.amrex_info import CodeUnits, PatchLevel, level_of
from ambar.snapshot.field_names import quantity_of
from ambar.snapshot.physics.unit_expressions import Unit, parse_unit
from ambar.snapshot.units import Units

CELLS = "cells"
"""The component of cells in the names of fields with units."""
_FACTOR = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(?:\*(?!\*)|$)")


@dataclass(frozen=True)
class CodeInfo(Summary):
    """Run information of an output of any code, in code units.

    Stores of codes that ambar has no reader of have it: outputs that yt reads, and those of other
    readers. `unit_l`, `unit_d` and `unit_t` are as for `Units`, and None if the output does not
    state them; `Snapshot.with_units` gives them. Fields in other units have theirs in
    `field_units`.

    Examples
    --------
    >>> info = ambar.CodeInfo(
    ...     code="athena++", ndim=3, time=0.5, lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 2.0)
    ... )
    >>> info.box_size, info.physical
    ((1.0, 1.0, 2.0), False)
    >>> gadget = ambar.CodeInfo(
    ...     code="gadget", ndim=3, time=0.0, lower=(0, 0, 0), upper=(1, 1, 1), aexp=0.25,
    ...     unit_l=3.08567758128e24, unit_d=1e-29, unit_t=3e17,
    ...     field_units={"particles/PartType1/mass": "1.989e43*g"},
    ... )
    >>> gadget.redshift, round(gadget.units.length("Mpc"), 6)
    (3.0, 1.0)
    >>> round(gadget.units_of("particles/PartType1").factor("mass", "kg") / 1.989e40, 6)
    1.0
    """

    code: str
    """Name of the code, or of its file format: "enzo", "gadget_hdf5", ..."""
    ndim: int
    """Dimensions, 1 to 3."""
    time: float
    """Time, code units; in a cosmological run since the Big Bang, if the code states it."""
    lower: tuple[float, ...]
    """Lower corner of the domain, code length."""
    upper: tuple[float, ...]
    """Upper corner of the domain, code length."""
    periodic: tuple[bool, ...] = ()
    """Whether the domain is periodic, in each dimension; empty if unknown."""
    unit_l: float | None = None
    """One code unit of length in cm; proper in a cosmological run. None if unknown."""
    unit_d: float | None = None
    """One code unit of density in g/cm3; None if unknown."""
    unit_t: float | None = None
    """One code unit of time in s; None if unknown."""
    levels: tuple[PatchLevel, ...] = ()
    """Levels of cells in patches, the coarsest first; empty for trees and particles."""
    coordinates: str = "cartesian"
    """The coordinate system: "cartesian", "cylindrical", "spherical" or another name."""
    aexp: float | None = None
    """Expansion factor, 1 today; None in runs without cosmology."""
    H0: float | None = None
    """Hubble constant, km/s/Mpc; None if unknown."""
    omega_m: float | None = None
    """Matter density today, as a fraction of the critical density; None if unknown."""
    omega_l: float | None = None
    """Density of the cosmological constant; None if unknown."""
    gamma: float | None = None
    """Ratio of specific heats; None if unknown."""
    field_units: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Units of fields that are not in code units, by component and name.

    "cells/temperature": "K", "particles/PartType0/Masses": "1.989e43*g". A unit is an expression as
    in docs/howto/units.md, after an optional factor. The unit of another text has a label only.
    """
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    """Other parameters of the run, as the code names them; JSON can represent them."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CodeInfo:
        """Return the run information in a mapping; unknown names are ignored.

        Parameters
        ----------
        values : mapping
            Values by the names of the attributes, such as `dataclasses.asdict` returns.

        Returns
        -------
        CodeInfo

        Raises
        ------
        ValueError
            If a value is missing, out of range, or of another type.

        Examples
        --------
        >>> from dataclasses import asdict
        >>> info = ambar.CodeInfo(code="solver", ndim=1, time=2.0, lower=(0.0,), upper=(1.0,))
        >>> ambar.CodeInfo.from_dict(asdict(info)) == info
        True
        """
        try:
            numbers = ("unit_l", "unit_d", "unit_t", "aexp", "H0", "omega_m", "omega_l", "gamma")
            info = cls(
                code=str(values["code"]),
                ndim=int(values["ndim"]),
                time=float(values["time"]),
                lower=tuple(map(float, values["lower"])),
                upper=tuple(map(float, values["upper"])),
                periodic=tuple(map(bool, values.get("periodic") or ())),
                levels=tuple(map(level_of, values.get("levels") or ())),
                coordinates=str(values.get("coordinates", "cartesian")),
                field_units=dict(values.get("field_units") or {}),
                parameters=dict(values.get("parameters") or {}),
                **{
                    name: None if values.get(name) is None else float(values[name])
                    for name in numbers
                },
            )
            info._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _core.InvalidError(f"invalid run information: {error!r}") from error
        return info

    def _check(self) -> None:
        """Raise ValueError for numbers with which nothing can be calculated."""
        if not 1 <= self.ndim <= 3:
            raise ValueError(f"expected 1 to 3 dimensions, found {self.ndim}")
        corners: dict[str, tuple[float, ...]] = {"lower": self.lower, "upper": self.upper}
        for number, level in enumerate(self.levels):
            corners |= {
                f"{name} of level {number}": getattr(level, name)
                for name in ("lo", "hi", "cell_size", "ratio")
            }
        if self.periodic:
            corners["periodic"] = self.periodic
        for name, corner in corners.items():
            if len(corner) != self.ndim:
                raise ValueError(f"expected {self.ndim} values of {name}, found {len(corner)}")
        for name in ("unit_l", "unit_d", "unit_t"):
            unit = getattr(self, name)
            if unit is not None and not 0 < unit < math.inf:
                raise ValueError(f"expected a number > 0 as {name}, found {unit}")
        for name, text in self.field_units.items():
            if not isinstance(text, str):
                raise TypeError(f"expected text as the unit of {name!r}, found {text!r:.80}")

    @property
    def box_size(self) -> tuple[float, ...]:
        """Size of the domain in each dimension, code length."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def boxlen(self) -> float:
        """Size of the domain in x, code length."""
        return self.box_size[0]

    @property
    def physical(self) -> bool:
        """Whether the units of length, density and time are known."""
        return None not in (self.unit_l, self.unit_d, self.unit_t)

    @cached_property
    def units(self) -> Units:
        """Factors from code units to physical ones; without units only "code" exists."""
        if self.unit_l is None or self.unit_d is None or self.unit_t is None:
            return CodeUnits(1.0, 1.0, 1.0)
        return Units(self.unit_l, self.unit_d, self.unit_t)

    def units_of(self, component: str) -> Units:
        """Return the units with those of the fields of a component, which `field_units` has.

        Parameters
        ----------
        component : str
            "cells", "particles/SPECIES", ...

        Returns
        -------
        Units

        Examples
        --------
        >>> info = ambar.CodeInfo(
        ...     code="solver", ndim=1, time=2.0, lower=(0.0,), upper=(1.0,),
        ...     field_units={"cells/speed": "km/s"},
        ... )
        >>> info.units_of("cells").factor("speed", "m/s")
        1000.0
        """
        own = {}
        for name, text in self.field_units.items():
            owner, _, column = name.rpartition("/")
            if owner == component:
                own[column] = _unit(text)
        return self.units._of_fields(own)

    @property
    def redshift(self) -> float | None:
        """1 / aexp - 1, in a cosmological run; infinite for a factor of 0."""
        if self.aexp is None:
            return None
        return 1.0 / self.aexp - 1.0 if self.aexp else math.inf

    @property
    def namelist(self) -> str:
        """Empty: parameters are in `parameters`."""
        return ""

    def age(self, unit: str = "code") -> float:
        """Return the time.

        Parameters
        ----------
        unit : str, default "code"
            "code", or, with known units, a unit of time.

        Returns
        -------
        float
            The time.

        Raises
        ------
        UnsupportedError
            For another unit than "code", without units.

        Examples
        --------
        >>> info = ambar.CodeInfo(
        ...     code="solver", ndim=1, time=2.0, lower=(0.0,), upper=(1.0,),
        ...     unit_l=1.0, unit_d=1.0, unit_t=60.0,
        ... )
        >>> info.age("s")
        120.0
        """
        return self.time * self.units.time(unit)

    def with_units(self, units: Units) -> CodeInfo:
        """Return the run information with other code units; those of `field_units` stay.

        Parameters
        ----------
        units : Units
            The units.

        Returns
        -------
        CodeInfo

        Examples
        --------
        >>> info = ambar.CodeInfo(code="solver", ndim=1, time=2.0, lower=(0.0,), upper=(1.0,))
        >>> info.with_units(ambar.Units(unit_l=3.0e24, unit_d=1e-29, unit_t=1e16)).physical
        True
        """
        return replace(self, unit_l=units.unit_l, unit_d=units.unit_d, unit_t=units.unit_t)

    def summary(self) -> list[tuple[str, str]]:
        """Return the main values as text, with their names.

        Returns
        -------
        list of tuple of str
            Pairs of a name and a text.

        Examples
        --------
        >>> info = ambar.CodeInfo(code="solver", ndim=1, time=2.0, lower=(0.0,), upper=(1.0,))
        >>> dict(info.summary())["domain"]
        '0 to 1 code'
        """
        sides = [f"{a:g} to {b:g}" for a, b in zip(self.lower, self.upper, strict=True)]
        rows = [
            ("code", self.code),
            ("dimensions", f"{self.ndim}, {self.coordinates}"),
            ("domain", " x ".join(sides) + " code"),
            ("time", f"{self.time:g} code"),
        ]
        if self.aexp is not None:
            rows.append(("aexp", f"{self.aexp:.6g} (redshift {self.redshift:.4g})"))
        if self.levels:
            ratios = [", ".join(map(str, sorted(set(one.ratio)))) for one in self.levels[:-1]]
            refined = f", refined by {' and '.join(dict.fromkeys(ratios))}" if ratios else ""
            rows.append(("levels", f"{span(0, len(self.levels) - 1)}{refined}"))
            rows.append(("boxes", " + ".join(f"{level.boxes:,}" for level in self.levels)))
        if self.physical:
            text = f"length {self.unit_l:.6g} cm, density {self.unit_d:.6g} g/cm3, "
            rows.append(("units", text + f"time {self.unit_t:.6g} s"))
        names = {"H0": self.H0, "omega_m": self.omega_m, "omega_l": self.omega_l}
        known = [f"{name} {value:g}" for name, value in names.items() if value is not None]
        if known:
            rows.append(("cosmology", ", ".join(known)))
        return rows


def _unit(text: str) -> Unit | str:
    """Return the unit that a text means, with an optional factor; the text if it means none."""
    found = _FACTOR.match(text)
    rest = text[found.end() :].strip() if found else text
    try:
        factor = float(found[1]) if found else 1.0
        unit = parse_unit(rest) if rest and rest != "dimensionless" else Unit(1.0, name=rest)
    except ValueError:
        return text
    if not 0 < factor < math.inf:
        return text
    return replace(unit, factor=factor * unit.factor, name=text.strip() or "dimensionless")


def stated_units(units: Mapping[str, Unit | str | None], info: CodeInfo) -> dict[str, str]:
    """Return the units of fields as text, without those that are in code units anyway.

    A text is a unit that `Unit` cannot represent.
    """
    found = {}
    for name, unit in units.items():
        quantity = quantity_of(name)
        if unit is None or isinstance(unit, str):
            if unit:
                found[name] = unit
            continue
        if quantity is not None:
            code = info.units._unit_of_name(name)
            if code and code.is_like(unit) and math.isclose(code.factor, unit.factor, rel_tol=1e-9):
                continue
        found[name] = text_of(unit)
    return found


def text_of(unit: Unit) -> str:
    """Return a unit as text, for `CodeInfo.field_units`."""
    return unit.text if unit.factor == 1.0 else f"{unit.factor!r}*{unit.text}"

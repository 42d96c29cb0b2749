"""What is known of a run without reading its data: box, time, cosmology, levels, units."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ambar._util.properties import cached_property
from ambar.snapshot.units import TIMES, Units

# What the values in JSON are, by the annotation of a field.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "float": (int, float),
    "int": int,
    "str": str,
    "tuple[bool, ...]": tuple,
    "tuple[int, ...]": tuple,
}
_KM_PER_S_PER_MPC = 1e5 / 3.08567758128e24  # 1 km/s/Mpc in 1/s


class RunInfo(Protocol):
    """What the run information of every code has."""

    @property
    def ndim(self) -> int:
        """Dimensions, 1 to 3."""

    @property
    def time(self) -> float:
        """Time, code units."""

    @property
    def boxlen(self) -> float:
        """Size of the box in x, code length."""

    @property
    def lower(self) -> tuple[float, ...]:
        """Lower corner of the box in each dimension, code length."""

    @property
    def box_size(self) -> tuple[float, ...]:
        """Size of the box in each dimension, code length."""

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether the box is periodic, in each dimension; empty where this is not known."""

    @property
    def units(self) -> Units:
        """Factors from code units to physical ones."""

    @property
    def physical(self) -> bool:
        """Whether physical units are known."""

    @property
    def namelist(self) -> str:
        """The run's parameters as text; empty where there are none."""

    def age(self, unit: str = "Myr") -> float:
        """Time since the run's time 0, in `unit`."""

    def summary(self) -> list[tuple[str, str]]:
        """Return what one wants to know first, as pairs of a name and a text."""


def info_of(source: object, values: Mapping[str, Any]) -> RunInfo:
    """Return the run information in `values`, which a snapshot of `source` has."""
    if isinstance(source, Mapping) and source.get("format") == "amrex":
        from ambar.snapshot.amrex_info import AmrexInfo

        return AmrexInfo.from_dict(values)
    return RamsesInfo.from_dict(values)


_LARGEST = 2**63


@dataclass(frozen=True)
class RamsesInfo:
    """A snapshot's run information, in code units but for `unit_l`, `unit_d` and `unit_t`.

    Names are those of RAMSES' ``info_NNNNN.txt``.
    """

    ndim: int
    """Dimensions, 1 to 3."""
    boxlen: float
    """Size of the box in x, code length."""
    time: float
    """Time, code units; conformal, and negative before today, in a cosmological run."""
    unit_l: float = 1.0
    """One code unit of length in cm."""
    unit_d: float = 1.0
    """One code unit of density in g/cm3."""
    unit_t: float = 1.0
    """One code unit of time in s."""
    levelmin: int = 1
    """The level of the coarsest cells RAMSES may have."""
    levelmax: int = 1
    """The level of the finest cells RAMSES may have."""
    ncpu: int = 1
    """Domains (files of a kind) the output was written in."""
    root: tuple[int, ...] = (1, 1, 1)
    """Root cells (of level 0) in each dimension."""
    periodic: tuple[bool, ...] = ()
    """Whether the box is periodic, in each dimension: where the run has no boundary cells."""
    aexp: float = 1.0
    """Expansion factor, 1 today and in runs without cosmology."""
    H0: float = 1.0
    """Hubble constant, km/s/Mpc."""
    omega_m: float = 1.0
    """Matter's share of the critical density today."""
    omega_l: float = 0.0
    """The cosmological constant's share."""
    omega_k: float = 0.0
    """Curvature's share."""
    omega_b: float = 0.0
    """The baryons' share."""
    cosmological: bool = False
    """Whether the run expands."""
    gamma: float | None = None
    """Ratio of specific heats, where the output has hydro files."""
    ngridmax: int | None = None
    """Octs a domain could hold."""
    nstep_coarse: int | None = None
    """Coarse steps done."""
    ordering: str = ""
    """How the domains are laid out: "hilbert", "bisection", ..."""
    output: int | None = None
    """The output's number."""
    namelist: str = dataclasses.field(default="", repr=False)
    """The run's namelist, as written; empty where the output has none."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RamsesInfo:
        """Make a `RamsesInfo` of a mapping; names it does not know are left out.

        Raises ValueError where a value is missing or of another type.
        """
        chosen: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = values.get(field.name)
            if value is None and field.default is not dataclasses.MISSING:
                continue
            if str(field.type).startswith("tuple") and isinstance(value, list):
                value = tuple(value)
            if not isinstance(value, _TYPES[str(field.type).removesuffix(" | None")]):
                raise _invalid(f"the run information has {value!r} as its {field.name}")
            chosen[field.name] = value
        info = cls(**chosen)
        info._check()
        return info

    def _check(self) -> None:
        """Raise ValueError for numbers with which factors and times cannot be calculated."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is int and abs(value) > _LARGEST:
                raise _invalid(f"the run information has {value!s:.40} as its {field.name}")
        if not all(isinstance(cells, int) and 0 < cells < _LARGEST for cells in self.root):
            raise _invalid(f"the run information has {self.root!r:.80} as its root")
        if self.cosmological and not (0 < self.aexp < _LARGEST and 0 < self.H0 < _LARGEST):
            raise _invalid(
                f"the run information has aexp {self.aexp} and H0 {self.H0}; expected positive "
                "numbers in a cosmological run"
            )

    @cached_property
    def units(self) -> Units:
        """Factors from code units to physical ones."""
        return Units(self.unit_l, self.unit_d, self.unit_t, self.cosmological)

    @property
    def levels(self) -> tuple[int, int]:
        """`(levelmin, levelmax)`: the levels RAMSES may have used."""
        return (self.levelmin, self.levelmax)

    @property
    def redshift(self) -> float:
        """1 / aexp - 1; infinite for an expansion factor of 0."""
        return 1.0 / self.aexp - 1.0 if self.aexp else math.inf

    @property
    def physical(self) -> bool:
        """Whether code units are other than centimetre, gram and second."""
        return not self.unit_l == self.unit_d == self.unit_t == 1.0

    @property
    def lower(self) -> tuple[float, ...]:
        """Lower corner of the box, code length: 0 in each of the `ndim` dimensions."""
        return (0.0,) * self.ndim

    @property
    def box_size(self) -> tuple[float, ...]:
        """Size of the box in each of the `ndim` dimensions, code length."""
        root = (*self.root, 1, 1, 1)
        return tuple(self.boxlen * root[axis] / root[0] for axis in range(self.ndim))

    def age(self, unit: str = "Myr") -> float:
        """Time since the run's time 0, or since the Big Bang in a cosmological run, in `unit`.

        The cosmological age is the integral of da / (a H(a)) from 0 to `aexp`, with matter,
        curvature and a cosmological constant, as RAMSES has them.
        """
        if not self.cosmological:
            return self.time * self.units.time(unit)
        import numpy as np

        # With a = b^(2/3) the integrand is smooth at 0, so that Gauss-Legendre converges fast.
        nodes, weights = np.polynomial.legendre.leggauss(64)
        top: float = self.aexp**1.5
        b = 0.5 * top * (nodes + 1)
        a = b ** (2 / 3)
        rate = np.sqrt(self.omega_m + self.omega_k * a + self.omega_l * a**3)
        hubble_times = float((weights * (2 / 3) / rate).sum()) * 0.5 * top
        seconds = hubble_times / (self.H0 * _KM_PER_S_PER_MPC)
        return seconds / TIMES[unit]

    def __str__(self) -> str:
        """Return the run information as lines to read."""
        return "\n".join(f"{name:<13} {value}" for name, value in self.summary())

    def summary(self) -> list[tuple[str, str]]:
        """Return what one wants to know first, as pairs of a name and a text."""
        physical = not math.isclose(self.unit_l, 1.0)
        size = f"{self.boxlen:g} code"
        time = f"{self.time:g} code"
        if physical:
            size += f" = {readable_length(self.boxlen * self.unit_l)}"
            time += f" = {readable_time(self.age('s'))}"
        rows = [
            ("dimensions", str(self.ndim)),
            ("box", size),
            ("time", time),
            ("levels", f"{self.levelmin} to {self.levelmax}"),
            ("domains", f"{self.ncpu}, {self.ordering}" if self.ordering else str(self.ncpu)),
            (
                "units",
                f"length {self.unit_l:.6g} cm, density {self.unit_d:.6g} g/cm3, "
                f"time {self.unit_t:.6g} s",
            ),
        ]
        if self.cosmological:
            rows.insert(3, ("aexp", f"{self.aexp:.6g} (redshift {self.redshift:.4g})"))
            rows.append(
                (
                    "cosmology",
                    f"H0 {self.H0:g}, omega_m {self.omega_m:g}, omega_l {self.omega_l:g}, "
                    f"omega_k {self.omega_k:g}, omega_b {self.omega_b:g}",
                )
            )
        return rows


def readable_length(cm: float) -> str:
    """Return a length in the unit in which it is a small number above 1: "3.2 kpc"."""
    from ambar.snapshot.units import LENGTHS

    names = ("cm", "m", "km", "Au", "pc", "kpc", "Mpc")
    return _readable(cm, {name: LENGTHS[name] for name in names})


def readable_time(seconds: float) -> str:
    """Return a time in the unit in which it is a small number above 1: "14.2 Myr"."""
    return _readable(seconds, {name: TIMES[name] for name in ("s", "day", "yr", "Myr", "Gyr")})


def _readable(value: float, units: Mapping[str, float]) -> str:
    fitting = [name for name, size in units.items() if abs(value) >= size]
    name = fitting[-1] if fitting else next(iter(units))
    return f"{value / units[name]:.4g} {name}"


def _invalid(message: str) -> Exception:
    from ambar._core import InvalidError

    return InvalidError(message)

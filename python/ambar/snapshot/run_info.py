"""Run information of RAMSES outputs: box, time, cosmology, levels and units."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ambar import _core
from ambar._util.properties import cached_property
from ambar._util.text import Summary, plural, span
from ambar.snapshot.amrex_info import AmrexInfo, PatchDomain
from ambar.snapshot.code_info import CELLS, CodeInfo
from ambar.snapshot.field_names import CELL_COMPONENTS
from ambar.snapshot.physics.cosmology import Cosmology
from ambar.snapshot.physics.readable import readable_length, readable_time
from ambar.snapshot.units import Units

# Types of values in JSON, by the annotation of a field.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "bool": bool,
    "float": (int, float),
    "int": int,
    "Mapping[str, tuple[float, ...]]": Mapping,
    "str": str,
    "tuple[bool, ...]": tuple,
    "tuple[int, ...]": tuple,
}
_NUMBERS_BELOW = 2**63
"""Numbers in the information of a run are smaller: the extension module has integers of 64 bits."""


@dataclass(frozen=True)
class RamsesInfo(Summary):
    """Run information of a RAMSES output.

    Values are in code units, except `unit_l`, `unit_d` and `unit_t`. Names are those of
    ``info_NNNNN.txt``.

    Examples
    --------
    >>> info = ambar.open_snapshot("output_00002").info
    >>> info.ndim, info.boxlen, info.levels, info.periodic
    (3, 1.0, (4, 6), (True, True, True))
    >>> expanding = ambar.RamsesInfo(ndim=3, boxlen=1.0, time=-0.5, aexp=0.25, cosmological=True)
    >>> expanding.redshift
    3.0
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
    """Level of the coarsest cells that the run allows."""
    levelmax: int = 1
    """Level of the finest cells that the run allows."""
    ncpu: int = 1
    """Number of domains: files of each component."""
    root: tuple[int, ...] = (1, 1, 1)
    """Root cells (of level 0) in each dimension."""
    periodic: tuple[bool, ...] = ()
    """Whether the box is periodic, in each dimension: true without boundary cells."""
    aexp: float = 1.0
    """Expansion factor, 1 today and in runs without cosmology."""
    H0: float = 1.0
    """Hubble constant, km/s/Mpc."""
    omega_m: float = 1.0
    """Matter density today, as a fraction of the critical density."""
    omega_l: float = 0.0
    """Density of the cosmological constant."""
    omega_k: float = 0.0
    """Curvature density."""
    omega_b: float = 0.0
    """Baryon density."""
    cosmological: bool = False
    """Whether the run is cosmological."""
    gamma: float | None = None
    """Ratio of specific heats; None without hydro files."""
    ngridmax: int | None = None
    """Maximum number of octs of a domain."""
    nstep_coarse: int | None = None
    """Number of coarse steps."""
    ordering: str = ""
    """Decomposition into domains: "hilbert", "bisection", ..."""
    output: int | None = None
    """Number of the output."""
    namelist: str = dataclasses.field(default="", repr=False)
    """Namelist of the run, verbatim; empty if the output has none."""
    rt: Mapping[str, tuple[float, ...]] = dataclasses.field(
        default_factory=dict, repr=False, hash=False
    )
    """Parameters of radiative transfer by name, as in ``info_rt_NNNNN.txt``."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RamsesInfo:
        """Return the run information in a mapping; unknown names are ignored.

        Parameters
        ----------
        values : mapping
            Values by the names of the attributes, such as `dataclasses.asdict` returns.

        Returns
        -------
        RamsesInfo

        Raises
        ------
        ValueError
            If a value is missing, out of range, or of another type.

        Examples
        --------
        >>> ambar.RamsesInfo.from_dict({"ndim": 2, "boxlen": 1.5, "time": 0}).box_size
        (1.5, 1.5)
        """
        chosen: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            value = values.get(field.name)
            defaults = (field.default, field.default_factory)
            if value is None and any(each is not dataclasses.MISSING for each in defaults):
                continue
            if str(field.type).startswith("tuple") and isinstance(value, list):
                value = tuple(value)
            if field.name == "rt" and isinstance(value, Mapping):
                value = {name: tuple(map(float, numbers)) for name, numbers in value.items()}
            if not isinstance(value, _TYPES[str(field.type).removesuffix(" | None")]):
                raise _core.InvalidError(
                    f"invalid {field.name} in the run information: {value!r}; expected {field.type}"
                )
            chosen[field.name] = value
        info = cls(**chosen)
        info._check()
        return info

    def _check(self) -> None:
        """Raise ValueError for numbers with which factors and times cannot be calculated."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is int and not -_NUMBERS_BELOW <= value < _NUMBERS_BELOW:
                raise _core.InvalidError(
                    f"invalid {field.name} in the run information: {value!s:.40}; expected a "
                    "number below 2^63"
                )
        for name in ("boxlen", "unit_l", "unit_d", "unit_t"):
            if not 0 < getattr(self, name) < math.inf:
                raise _core.InvalidError(
                    f"invalid {name} in the run information: {getattr(self, name)}; expected a "
                    "finite number > 0"
                )
        if not all(isinstance(cells, int) and 0 < cells < _NUMBERS_BELOW for cells in self.root):
            raise _core.InvalidError(
                f"invalid root in the run information: {self.root!r:.80}; expected integers > 0"
            )
        is_cosmology = 0 < self.aexp < _NUMBERS_BELOW and 0 < self.H0 < _NUMBERS_BELOW
        if self.cosmological and not is_cosmology:
            raise _core.InvalidError(
                f"invalid aexp {self.aexp} or H0 {self.H0} in the run information; expected "
                "numbers > 0 in a cosmological run"
            )

    @cached_property
    def units(self) -> Units:
        """Factors from code units to physical ones."""
        cosmology = self._cosmology if self.cosmological else None
        units = Units(self.unit_l, self.unit_d, self.unit_t, self.cosmological)
        return units._of_universe(cosmology)

    @property
    def _cosmology(self) -> Cosmology:
        is_proper = namelist_flag(self.namelist, "use_proper_time")
        if is_proper is None:
            is_proper = bool(namelist_flag(self.namelist, "rt"))
        return Cosmology(
            self.H0, self.omega_m, self.omega_l, self.omega_k, self.aexp, has_proper_times=is_proper
        )

    @property
    def levels(self) -> tuple[int, int]:
        """``(levelmin, levelmax)``: the levels that the run allows."""
        return (self.levelmin, self.levelmax)

    @property
    def redshift(self) -> float:
        """1 / aexp - 1; infinite for an expansion factor of 0."""
        return 1.0 / self.aexp - 1.0 if self.aexp else math.inf

    @property
    def physical(self) -> bool:
        """Whether code units differ from centimetre, gram and second."""
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
        """Return the time since time 0 of the run, or since the Big Bang in a cosmological run.

        The cosmological age is the integral of da / (a H(a)) from 0 to `aexp`, with matter,
        curvature and a cosmological constant, as in RAMSES.

        Parameters
        ----------
        unit : str, default "Myr"
            A unit of time: "s", "yr", "kyr", "Myr", "Gyr", ...

        Returns
        -------
        float
            The age.

        Raises
        ------
        ValueError
            If the unit does not exist, or is not one of time.

        Examples
        --------
        >>> year = 3.15576e7
        >>> ambar.RamsesInfo(ndim=3, boxlen=1.0, time=2.0, unit_t=1e6 * year).age("Myr")
        2.0
        """
        if not self.cosmological:
            return self.time * self.units.time(unit)
        return self._cosmology.age / self.unit_t * self.units.time(unit)

    def with_units(self, units: Units) -> RamsesInfo:
        """Return the run information with other code units.

        Parameters
        ----------
        units : Units
            The units.

        Returns
        -------
        RamsesInfo

        Examples
        --------
        >>> info = ambar.open_snapshot("output_00002").info
        >>> info.with_units(ambar.Units(unit_l=3.0e24, unit_d=1e-29, unit_t=1e16)).physical
        True
        """
        return dataclasses.replace(
            self, unit_l=units.unit_l, unit_d=units.unit_d, unit_t=units.unit_t
        )

    def summary(self) -> list[tuple[str, str]]:
        """Return the main values as text, with their names.

        Returns
        -------
        list of tuple of str
            Pairs of a name and a text.

        Examples
        --------
        >>> dict(ambar.open_snapshot("output_00002").info.summary())["levels"]
        '4 to 6'
        """
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
            ("levels", span(self.levelmin, self.levelmax)),
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


def namelist_flag(namelist: str, name: str) -> bool | None:
    """Return the value of a logical variable of a namelist; None if it is not set."""
    found = re.findall(rf"(?:^|,)\s*{name}\s*=\s*\.?([tf])", namelist, re.IGNORECASE | re.MULTILINE)
    return found[-1] in "tT" if found else None


RunInfo: TypeAlias = RamsesInfo | AmrexInfo | CodeInfo
"""The run information of a snapshot, by the simulation code."""


def info_of(source: object, values: Mapping[str, Any]) -> RunInfo:
    """Return the run information in the attributes of a snapshot, whose origin is `source`."""
    code = source.get("format", "ramses") if isinstance(source, Mapping) else "ramses"
    readers: dict[str, type[RunInfo]] = {"ramses": RamsesInfo, "amrex": AmrexInfo}
    return readers.get(code, CodeInfo).from_dict(values)


def redshift_of(info: RunInfo) -> float | None:
    """Return the redshift of a snapshot of a cosmological run; None if it is not known."""
    redshift = info.redshift
    if redshift is None or not math.isfinite(redshift) or not getattr(info, "cosmological", True):
        return None
    return redshift


def run_difference(expected: RunInfo, found: RunInfo) -> tuple[str, str] | None:
    """Return what an output of the run of `expected` has, and what `found` has instead.

    None for outputs of one run, as far as their information shows it, and for codes other than
    RAMSES and AMReX. A restart may change the levels, the domains and the decomposition.
    """
    if isinstance(expected, AmrexInfo) and isinstance(found, AmrexInfo):
        return PatchDomain.of(expected).difference(PatchDomain.of(found))
    if not isinstance(expected, RamsesInfo) or not isinstance(found, RamsesInfo):
        return None
    if expected.ndim != found.ndim:
        return plural(expected.ndim, "dimension"), str(found.ndim)
    roots = [info.root[: info.ndim] for info in (expected, found)]
    if roots[0] != roots[1]:
        known, other = (" x ".join(map(str, root)) for root in roots)
        return f"{known} root cells", other
    names = ["boxlen", "H0", "omega_m", "omega_l"]
    # In an expanding universe, code units change with time.
    if not (expected.cosmological or found.cosmological):
        names += ["unit_l", "unit_d", "unit_t"]
    for name in names:
        pair = getattr(expected, name), getattr(found, name)
        if not math.isclose(*pair, rel_tol=1e-6):
            return f"{name}={pair[0]:.7g}", f"{name}={pair[1]:.7g}"
    return None


def units_of(info: RunInfo, component: str) -> Units:
    """Return the units of the fields of a component: "amr", "particles", "particles/SPECIES"."""
    if not isinstance(info, CodeInfo):
        return info.units
    return info.units_of(CELLS if component == "amr" or component in CELL_COMPONENTS else component)

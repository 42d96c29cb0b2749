"""Run information of AMReX plotfiles: domain, time, levels and boxes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar._util.text import Summary, span
from ambar.snapshot.units import GIVE_UNITS, Units


@dataclass(frozen=True)
class PatchLevel:
    """One level of cells in patches."""

    lo: tuple[int, ...]
    """Cell index of the lower corner of the domain."""
    hi: tuple[int, ...]
    """Cell index after the last cell of the domain in each dimension: exclusive."""
    cell_size: tuple[float, ...]
    """Sides of a cell, code length."""
    ratio: tuple[int, ...]
    """Refinement ratio to the next level; 1 for the finest level."""
    boxes: int
    """Number of boxes."""
    cells: int
    """Number of cells in the boxes, including those that the next level covers."""


class CodeUnits(Units):
    """Units of a code that does not state them: only "code" exists."""

    @property
    def factors(self) -> dict[str, dict[str, float]]:
        """Empty: no unit is known."""
        return {}

    def factor(self, quantity: str, unit: str) -> float:
        """Return 1 for "code"; raises UnsupportedError for others, except of fields with units."""
        if unit == "code":
            return 1.0
        if quantity in self._own:
            return super().factor(quantity, unit)
        raise _core.UnsupportedError(
            f"{quantity} cannot be converted to {unit!r}: the output does not state its units; use "
            f"'code', or give them with {GIVE_UNITS}"
        )


@dataclass(frozen=True)
class AmrexInfo(Summary):
    """Run information of an AMReX plotfile, in code units; plotfiles do not state physical units.

    `Snapshot.with_units` gives them.

    Examples
    --------
    >>> info = ambar.open_snapshot("plt00200").info
    >>> info.ndim, info.lower, info.upper
    (3, (-1.0, 0.0, 2.0), (1.0, 1.0, 3.0))
    >>> [(level.boxes, level.cells) for level in info.levels]
    [(2, 1024), (3, 1248)]
    """

    ndim: int
    """Dimensions, 1 to 3."""
    time: float
    """Time, code units."""
    lower: tuple[float, ...]
    """Lower corner of the domain, code length."""
    upper: tuple[float, ...]
    """Upper corner of the domain, code length."""
    levels: tuple[PatchLevel, ...]
    """Levels, the coarsest first."""
    steps: tuple[int, ...] = ()
    """Number of steps of each level."""
    coordinates: str = "cartesian"
    """The coordinate system: "cartesian", "cylindrical" or "spherical"."""
    format: str = ""
    """Format of the plotfile, such as "HyperCLaw-V1.1"."""
    aexp: float | None = None
    """Expansion factor, if the plotfile states it (Nyx)."""
    text_files: tuple[str, ...] = ()
    """Names of text files, such as "job_info"."""
    periodic: tuple[bool, ...] = ()
    """Whether the domain is periodic, in each dimension; empty if unknown, as in plotfiles."""
    given_units: Units | None = None
    """The units that the caller gave (`Snapshot.with_units`); plotfiles do not state them."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AmrexInfo:
        """Return the run information in a mapping; unknown names are ignored.

        Parameters
        ----------
        values : mapping
            Values by the names of the attributes, such as `dataclasses.asdict` returns.

        Returns
        -------
        AmrexInfo

        Raises
        ------
        ValueError
            If a value is missing or of another type.

        Examples
        --------
        >>> from dataclasses import asdict
        >>> info = ambar.open_snapshot("plt00200").info
        >>> ambar.AmrexInfo.from_dict(asdict(info)) == info
        True
        """
        try:
            aexp = values.get("aexp")
            info = cls(
                ndim=int(values["ndim"]),
                time=float(values["time"]),
                lower=tuple(map(float, values["lower"])),
                upper=tuple(map(float, values["upper"])),
                levels=tuple(map(level_of, values["levels"])),
                steps=tuple(map(int, values.get("steps", ()))),
                coordinates=str(values.get("coordinates", "cartesian")),
                format=str(values.get("format", "")),
                aexp=None if aexp is None else float(aexp),
                text_files=tuple(map(str, values.get("text_files", ()))),
                periodic=tuple(map(bool, values.get("periodic", ()))),
            )
            info._check()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _core.InvalidError(f"invalid run information of AMReX: {error!r}") from error
        return info

    def _check(self) -> None:
        """Raise ValueError if a corner or a level has another number of dimensions."""
        corners = [("lower", self.lower), ("upper", self.upper)]
        for level in self.levels:
            corners += [("lo", level.lo), ("hi", level.hi), ("cell_size", level.cell_size)]
        for name, corner in corners:
            if len(corner) != self.ndim:
                raise ValueError(f"expected {self.ndim} numbers in {name!r}, found {len(corner)}")

    @property
    def box_size(self) -> tuple[float, ...]:
        """Size of the domain in each dimension, code length."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def boxlen(self) -> float:
        """Size of the domain in x, code length."""
        return self.box_size[0]

    @cached_property
    def units(self) -> Units:
        """The given units; without them only "code" exists: plotfiles do not state others."""
        return self.given_units or CodeUnits(1.0, 1.0, 1.0)

    @property
    def physical(self) -> bool:
        """Whether units were given: plotfiles do not state them."""
        return self.given_units is not None

    @property
    def redshift(self) -> float | None:
        """1 / aexp - 1, if the expansion factor is known; infinite for a factor of 0."""
        if self.aexp is None:
            return None
        return 1.0 / self.aexp - 1.0 if self.aexp else math.inf

    @property
    def namelist(self) -> str:
        """Empty: plotfiles have no namelist."""
        return ""

    def age(self, unit: str = "code") -> float:
        """Return the time; of Nyx the proper time since the start of the run.

        Parameters
        ----------
        unit : str, default "code"
            "code", or, with given units, a unit of time: "s", "Myr", "Gyr", ...

        Returns
        -------
        float
            The time.

        Raises
        ------
        UnsupportedError
            For another unit than "code", without given units.

        Examples
        --------
        >>> ambar.open_snapshot("plt00200").info.age()
        0.25
        """
        return self.time * self.units._factor_of_run_time(unit)

    def with_units(self, units: Units) -> AmrexInfo:
        """Return the run information with other code units.

        Parameters
        ----------
        units : Units
            The units.

        Returns
        -------
        AmrexInfo

        Examples
        --------
        >>> info = ambar.open_snapshot("plt00200").info
        >>> info.with_units(ambar.Units(unit_l=3.0e24, unit_d=1e-29, unit_t=1e16)).physical
        True
        """
        return replace(self, given_units=units)

    def summary(self) -> list[tuple[str, str]]:
        """Return the main values as text, with their names.

        Returns
        -------
        list of tuple of str
            Pairs of a name and a text.

        Examples
        --------
        >>> dict(ambar.open_snapshot("plt00200").info.summary())["boxes"]
        '2 + 3'
        """
        sides = [f"{a:g} to {b:g}" for a, b in zip(self.lower, self.upper, strict=True)]
        step = f", step {self.steps[0]}" if self.steps else ""
        ratios = [", ".join(map(str, sorted(set(level.ratio)))) for level in self.levels[:-1]]
        refined = f", refined by {' and '.join(dict.fromkeys(ratios))}" if ratios else ""
        rows = [
            ("dimensions", f"{self.ndim}, {self.coordinates}"),
            ("domain", " x ".join(sides) + " code"),
            ("time", f"{self.time:g} code{step}"),
            ("levels", f"{span(0, len(self.levels) - 1)}{refined}"),
            ("boxes", " + ".join(f"{level.boxes:,}" for level in self.levels)),
        ]
        if self.aexp is not None:
            rows.insert(3, ("aexp", f"{self.aexp:.6g} (redshift {self.redshift:.4g})"))
        return rows


def level_of(values: Mapping[str, Any]) -> PatchLevel:
    """Return the level in a mapping: of a store, or of `dataclasses.asdict`."""
    # Stores have a domain with its last cell; `dataclasses.asdict` yields exclusive corners.
    domain, after = (values["domain"], 1) if "domain" in values else (values, 0)
    return PatchLevel(
        lo=tuple(map(int, domain["lo"])),
        hi=tuple(int(index) + after for index in domain["hi"]),
        cell_size=tuple(map(float, values["cell_size"])),
        ratio=tuple(map(int, values["ratio"])),
        boxes=int(values["boxes"]),
        cells=int(values["cells"]),
    )


@dataclass(frozen=True)
class PatchDomain:
    """The domain of a plotfile: what the plotfiles of one run have in common."""

    size: tuple[float, ...]
    """Sides, code length. The domain may move."""
    cells: tuple[tuple[int, ...], ...]
    """The number of cells along each dimension, by level: the coarsest first."""

    @classmethod
    def of(cls, info: AmrexInfo) -> PatchDomain:
        """Return the domain of an output."""
        levels = (zip(level.lo, level.hi, strict=True) for level in info.levels)
        cells = tuple(tuple(high - low for low, high in ends) for ends in levels)
        return cls(info.box_size, cells)

    def difference(self, found: PatchDomain) -> tuple[str, str] | None:
        """Return what the domain `found` should have, and what it has; None for that of one run.

        Levels that only one of them has are not compared.
        """
        if not np.allclose(self.size, found.size, 1e-6, 0):
            return f"a domain of size {list(self.size)}", str(list(found.size))
        for level, pair in enumerate(zip(self.cells, found.cells, strict=False)):
            if pair[0] != pair[1]:
                expected, other = (" x ".join(map(str, cells)) for cells in pair)
                return f"a domain of {expected} cells on level {level}", other
        return None

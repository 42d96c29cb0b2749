"""What pictures show without options: the field, its unit, and how it is seen through the box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ambar.snapshot.field_names import quantity_of, resolve
from ambar.snapshot.physics.constants import AU
from ambar.snapshot.physics.readable import length_unit
from ambar.snapshot.physics.unit_expressions import parse_unit

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.field_rows import FieldRows
    from ambar.snapshot.run_info import RunInfo

_FIELDS = ("density", "gasDensity", "particle_density", "rho", "Density")
"""Fields of cells in the order in which they are drawn; of others the first one."""
_MASSES = ("mass", "particle_mass", "weight", "weighting")
"""The same of particles."""
_INTEGRALS = ("density", "number_density")
"""Quantities of which the integral along a line of sight is usual."""
_OF_PLASMAS = ({"jx", "jy", "jz"}, {"Ex", "Ey", "Ez"})
"""Fields of codes for plasmas."""
_UNITS = {
    "density": "g/cm3",
    "velocity": "km/s",
    "pressure": "Ba",
    "acceleration": "cm/s2",
    "specific_energy": "erg/g",
    "magnetic_field": "muG",
    "number_density": "cm-3",
    "temperature": "K",
}
_ASTRONOMICAL = {"surface_density": "Msol/pc2", "mass": "Msol", "time": "Myr", "length": "kpc"}
_TERRESTRIAL = {"surface_density": "g/cm2", "mass": "g", "time": "s"}
_ASTRONOMICAL_BOX = 10 * AU
"""The size of a box from which units are those of galaxies, cm."""


def default_field(rows: FieldRows, *, is_particles: bool = False) -> str:
    """Return the field that is drawn by default: the density, or the mass of particles."""
    names = _MASSES if is_particles else _FIELDS
    known = rows.fields
    found = next((name for name in names if resolve(name, known) in known), None)
    if found is not None:
        return resolve(found, known)
    return next((name for name in known if not name.startswith("position")), names[0])


def usual_unit(rows: FieldRows, field: str, exponent: int = 0) -> str:
    """Return the usual unit of a field times a power of length; "code" without one."""
    own = rows._request([field]).units[field]
    if own is None or not rows.info.physical:
        return "code"
    size = max(rows.info.box_size) * rows.info.units.length("cm")
    is_large = size > _ASTRONOMICAL_BOX
    others = _ASTRONOMICAL if is_large else _TERRESTRIAL
    if own.name and exponent == 0 and not (is_large and quantity_of(field)):
        return "code"  # the unit that the output states for the field
    own *= rows.info.units._code_unit("length") ** exponent
    known = {**_UNITS, **others, "length": box_length_unit(rows.info)}
    units = (known.get(quantity_of(field) or ""), *known.values())
    return next((unit for unit in units if unit and parse_unit(unit).is_like(own)), "code")


def box_length_unit(info: RunInfo, part: float = 1.0) -> str:
    """Return the unit in which the longest side of the box, or a part of it, is readable."""
    if not info.physical:
        return "code"
    return length_unit(part * max(info.box_size) * info.units.length("cm"))


def is_integrated(amr: Amr, field: str) -> bool:
    """Return whether the usual picture of a field through a box is its integral.

    That is so for densities of mass and number, and arithmetic. That of other fields is their mean,
    weighted with the density.
    """
    quantity = quantity_of(field)
    if quantity not in _INTEGRALS:
        return not field.isidentifier()
    return _is_of(amr, field, _UNITS[quantity])


def usual_weight(amr: Amr) -> str | None:
    """Return the weight of means along a line of sight; None without a density of mass."""
    name = resolve("density", amr.fields)
    is_density = name in amr.fields and quantity_of(name) == "density"
    return name if is_density and _is_of(amr, name, _UNITS["density"]) else None


def usual_particle_weight(particles: FieldRows, field: str) -> str | None:
    """Return the weight of the mean of a field of particles; None for masses, which are summed."""
    is_summed = quantity_of(field) == "mass" or field in _MASSES or not field.isidentifier()
    name = resolve("mass", particles.fields)
    return None if is_summed or name not in particles.fields else name


def _is_of(amr: Amr, field: str, unit: str) -> bool:
    """Return whether a field can have a unit: "rho" is a charge density in codes for plasmas.

    Outputs of these without units have components of currents or of the electric field, or negative
    densities.
    """
    own = amr._request([field]).units[field]
    if own is None:
        is_of_plasma = any(names.issubset(amr.fields) for names in _OF_PLASMAS)
        return field != "rho" or not (is_of_plasma or amr.min(field) < 0)
    return own.is_like(parse_unit(unit))

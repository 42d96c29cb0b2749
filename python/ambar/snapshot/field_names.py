"""Names of fields: aliases of Mera.jl and older RAMSES versions, and the quantity of each field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ambar._util.text import folded, similar_names

CELL_COMPONENTS = ("hydro", "gravity", "rt", "cells")
"""Components of cells: of RAMSES, and the only one of AMReX."""

_COMPONENT = re.compile(rf"{'|'.join(CELL_COMPONENTS)}|sinks|clumps|(?:particles|halos)(?:/\w+)?")

_UNQUOTED = re.compile(r"[^\W\d][\w.]*")
_CALL = re.compile(r"\w+\([^()]*\)")

FIELDS_OF_COMPONENTS = {
    "rt": r"(?i)\brt\b|photon|\bnp|flux",
    "gravity": r"(?i)grav|pot|phi|accel|\ba[xyz]\b",
}
"""Patterns of the fields of components; others have fields of any name."""

# Alias -> names in descriptors of RAMSES, and in snapshots of Gadget, AREPO and SWIFT; the first
# one that a file contains is used.
ALIASES: dict[str, tuple[str, ...]] = {
    "rho": ("density", "Density", "Densities"),
    "density": ("Density", "Densities"),
    "mass": ("Masses", "Mass", "DynamicalMasses", "GroupMass", "SubhaloMass", "Mvir", "mvir"),
    **dict.fromkeys(
        ("u", "internal_energy", "specific_thermal_energy"), ("InternalEnergy", "InternalEnergies")
    ),
    **dict.fromkeys(
        ("hsml", "smooth", "smoothing_length"), ("SmoothingLength", "SmoothingLengths")
    ),
    "temperature": ("Temperature", "Temperatures"),
    **dict.fromkeys(
        ("sfr", "star_formation_rate"), ("StarFormationRate", "StarFormationRates", "GroupSFR")
    ),
    **dict.fromkeys(
        ("aform", "formation_time"),
        ("StellarFormationTime", "GFM_StellarFormationTime", "BirthScaleFactors"),
    ),
    "vx": ("velocity_x",),
    "vy": ("velocity_y",),
    "vz": ("velocity_z",),
    "p": ("pressure", "thermal_pressure", "Pressure", "Pressures"),
    "pressure": ("thermal_pressure", "Pressure", "Pressures"),
    "thermal_pressure": ("pressure",),
    **dict.fromkeys(("epot", "phi"), ("potential", "Potential", "Potentials")),
    "potential": ("Potential", "Potentials"),
    "ax": ("acceleration_x",),
    "ay": ("acceleration_y",),
    "az": ("acceleration_z",),
    "cx": ("ix",),
    "cy": ("iy",),
    "cz": ("iz",),
    "x": ("position_x",),
    "y": ("position_y",),
    "z": ("position_z",),
    "bx_left": ("B_x_left",),
    "by_left": ("B_y_left",),
    "bz_left": ("B_z_left",),
    "bx_right": ("B_x_right",),
    "by_right": ("B_y_right",),
    "bz_right": ("B_z_right",),
    "id": ("identity", "particle_identity", "ParticleIDs", "ID"),
    "birth": ("birth_time", "birth_epoch"),
    "metals": ("metallicity", "Metallicity", "GFM_Metallicity", "MetalMassFractions"),
    "metallicity": ("Metallicity", "GFM_Metallicity", "MetalMassFractions"),
    "cpu": ("domain",),
}

BIRTH_TIMES = frozenset(("birth_time", "birth_epoch", "tform"))
"""Times of birth, which cosmological runs write in another time."""

WEIGHTS_OF_LINES = {"mass": "density", "cell_mass": "density", "cell_volume": "volume"}
"""Weights of cells along a line of sight: of the mass of a cell, each part has its density."""

DENSITIES_OF_TOTALS = {
    "mass": "density",
    "cell_mass": "density",
    "kinetic_energy": "kinetic_energy_density",
    "thermal_energy": "thermal_energy_density",
    "potential_energy": "density * potential",
    **{
        f"angular_momentum_{part}": f"density * specific_angular_momentum_{part}"
        for part in ("x", "y", "z", "magnitude")
    },
}
"""Totals of a cell, and the density to integrate along a line of sight instead."""

_QUANTITIES = {
    "density": "density",
    "Density": "density",
    "Densities": "density",
    **dict.fromkeys(("Masses", "Mass", "DynamicalMasses"), "mass"),
    **dict.fromkeys(("SmoothingLength", "SmoothingLengths"), "length"),
    "particle_density": "density",
    "pressure": "pressure",
    "thermal_pressure": "pressure",
    "potential": "specific_energy",
    "mass": "mass",
    "msink": "mass",
    "mbh": "mass",
    "del_mass": "mass",
    "dmfsink": "mass",
    "mass_cl": "mass",
    "rho_gas": "density",
    "rho-": "density",
    "rho+": "density",
    "rho_av": "density",
    "etherm": "energy",
    "vx_gas": "velocity",
    "vy_gas": "velocity",
    "vz_gas": "velocity",
    "peak_x": "length",
    "peak_y": "length",
    "peak_z": "length",
    "tform": "time",
    "birth_time": "time",
    "birth_epoch": "time",
    "lx": "angular_momentum",
    "ly": "angular_momentum",
    "lz": "angular_momentum",
    "acc_rate": "mass_rate",
    "cs**2": "specific_energy",
    "x": "length",
    "y": "length",
    "z": "length",
    "dx": "length",
    "dy": "length",
    "dz": "length",
    # Of AMReX codes.
    "gasDensity": "density",
    "gasPressure": "pressure",
    "gasEnergy": "pressure",
    "gasInternalEnergy": "pressure",
    "particle_mass_density": "density",
    "rho_e": "pressure",
    "rho_E": "pressure",
    "phiGrav": "specific_energy",
    "phi_grav": "specific_energy",
    **{f"{axis}{name}": "velocity" for axis in "xyz" for name in ("_velocity", "vel", "_vel")},
    **{f"{axis}{name}": "momentum_density" for axis in "xyz" for name in ("mom", "-GasMomentum")},
    **{f"grav_{axis}": "acceleration" for axis in "xyz"},
    "Temp": "temperature",
    "gasTemperature": "temperature",
    # Derived fields; the units of others are those of their formulas.
    "temperature": "temperature",
    "number_density": "number_density",
    "age": "time",
    "sound_speed": "velocity",
    "relative_speed": "velocity",
    "alfven_speed": "velocity",
    "jeans_length": "length",
    **dict.fromkeys(
        ("radius", "spherical_radius", "cylindrical_radius", "cylindrical_z"), "length"
    ),
    "jeans_mass": "mass",
    "free_fall_time": "time",
    "dynamical_time": "time",
    "level": "dimensionless",
    "virial_parameter": "dimensionless",
    "spherical_theta": "dimensionless",
    "spherical_phi": "dimensionless",
    "cylindrical_theta": "dimensionless",
    "magnetic_pressure": "pressure",
    "magnetic_field_strength": "magnetic_field",
    "velocity_divergence": "frequency",
    "vorticity_x": "frequency",
    "vorticity_y": "frequency",
    "vorticity_z": "frequency",
    "vorticity_magnitude": "frequency",
}
_PREFIXES = {
    "velocity": "velocity",
    "acceleration": "acceleration",
    "position": "length",
    "B": "magnetic_field",
    "magnetic": "magnetic_field",
}


DERIVED = frozenset(("level", *(f"{kind}{axis}" for kind in ("", "d", "i") for axis in "xyz")))
"""The derived columns of cells: level, centre, size, and index on the level."""


def quantity_of(field: str) -> str | None:
    """Return the quantity of a field ("density", "velocity", ...); None if unknown.

    "temperature" and "number_density" are not in code units, but in K and 1/cm3.
    """
    for name in (field, *ALIASES.get(field, ())):
        prefix = name.split("_")[0] if name.isidentifier() else ""
        if quantity := _QUANTITIES.get(name) or _PREFIXES.get(prefix):
            return quantity
    return None


_SUGGESTIONS: dict[str, tuple[str, ...]] = {
    "sd": ("density",),
    "surface_density": ("density",),
    "r": ("radius", "cylindrical_radius"),
    **dict.fromkeys(("div_v", "divv", "div"), ("velocity_divergence",)),
    **dict.fromkeys(("curl_v", "curl"), ("vorticity_magnitude",)),
    **dict.fromkeys(("etherm", "eth", "eint"), ("thermal_energy", "specific_thermal_energy")),
}
"""Fields that names of other tools and of textbooks probably mean."""


def similar_fields(name: str, spellings: Mapping[str, str], most: int = 3) -> list[str]:
    """Return the fields that an unknown name probably means.

    They are the usual meanings of short names ("div_v"), or those with spellings that begin with it
    ("temp", "vr"), have the same words ("velocity_radial"), or differ in a few letters ("densty"),
    in this order.

    Parameters
    ----------
    name
        The unknown name.
    spellings
        The field that each known name means.
    most
        Maximum number of results.
    """
    fields = set(spellings.values())
    if usual := [field for field in _SUGGESTIONS.get(name.lower(), ()) if field in fields]:
        return usual
    plain = _plain(name)
    known = {_plain(spelling): field for spelling, field in spellings.items()}
    words = name.lower().split("_")
    found = [field for spelling, field in known.items() if spelling.startswith(plain)]
    if len(plain) < 2:
        found = []
    if not found and len(words) > 1:
        found = [
            field
            for spelling, field in spellings.items()
            if all(any(_is_like(word, part) for part in spelling.split("_")) for word in words)
        ]
    found = found or [known[close] for close in similar_names(plain, known, 1)]
    return list(dict.fromkeys(found))[:most]


def similar_quoted_field(text: str, fields: Iterable[str]) -> str | None:
    """Return the field, of those whose names conditions have between backquotes, that a text means.

    Parameters
    ----------
    text
        A misspelt name ("Y(H20)"), or an expression with a name that lacks its backquotes
        ("Y(H2O) > 0.1").
    fields
        The fields that exist.
    """
    quoted = [field for field in fields if not _UNQUOTED.fullmatch(field)]
    for part in (text, *_CALL.findall(text)):
        if found := similar_names(part, quoted, 1):
            return found[0]
    return None


def is_call(text: str) -> bool:
    """Return whether a text is a name with brackets, which looks like the call of a function."""
    return _CALL.fullmatch(text) is not None


def _plain(name: str) -> str:
    """Return a name as `folded` does, without underscores, and with Greek letters."""
    return folded(name).replace("_", "").replace("phi", "ϕ").replace("theta", "θ")


def _is_like(word: str, other: str) -> bool:
    """Return whether two words begin with the same four letters, or are short and equal."""
    return word[:4] == other[:4]


def without_component(name: str) -> str:
    """Return a name without the component before it: "rho" for "hydro/rho"."""
    owner, _, plain = name.rpartition("/")
    return plain if _COMPONENT.fullmatch(owner) else name


def resolve_all(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return `names` with aliases resolved, in order and without duplicates."""
    known = set(known)
    return list(dict.fromkeys(resolve(name, known) for name in names))


def resolve(name: str, known: Iterable[str]) -> str:
    """Return the name in `known` that `name` or its alias refers to; otherwise `name`."""
    known = known if isinstance(known, (set, frozenset, dict)) else set(known)
    if name in known:
        return name
    return next((full for full in ALIASES.get(name, ()) if full in known), name)

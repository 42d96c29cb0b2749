"""The names of RAMSES fields in yt: those of ``yt.frontends.ramses`` (yt 4.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

FLUID_TYPES = {"hydro": "ramses", "gravity": "gravity", "rt": "ramses-rt"}
"""The type of fields of each component of the cells."""

_HYDRO = {
    "density": "Density",
    "velocity_x": "x-velocity",
    "velocity_y": "y-velocity",
    "velocity_z": "z-velocity",
    "pressure": "Pressure",
    "thermal_pressure": "Pressure",
    "metallicity": "Metallicity",
    "H_p1_fraction": "HII",
    "He_p1_fraction": "HeII",
    "He_p2_fraction": "HeIII",
}
_GRAVITY = {
    "potential": "Potential",
    "acceleration_x": "x-acceleration",
    "acceleration_y": "y-acceleration",
    "acceleration_z": "z-acceleration",
}
_PARTICLES = {"levelp": "particle_level"}
_SINKS = {
    "id": "particle_identifier",
    "msink": "particle_mass",
    "lx": "particle_angular_momentum_x",
    "ly": "particle_angular_momentum_y",
    "lz": "particle_angular_momentum_z",
    "tform": "particle_formation_time",
    "acc_rate": "particle_accretion_rate",
    "del_mass": "particle_delta_mass",
    "rho_gas": "particle_rho_gas",
    "cs**2": "particle_sound_speed",
    "etherm": "particle_etherm",
    "vx_gas": "particle_velocity_x_gas",
    "vy_gas": "particle_velocity_y_gas",
    "vz_gas": "particle_velocity_z_gas",
    "mbh": "particle_mass_bh",
    "level": "particle_level",
    "rsink_star": "particle_radius_star",
    **{axis: f"particle_position_{axis}" for axis in "xyz"},
    **{f"v{axis}": f"particle_velocity_{axis}" for axis in "xyz"},
}


def fluid_names(component: str, fields: Sequence[str]) -> dict[str, str]:
    """Return the fields of a component by their names in yt.

    Photon densities have two names: RAMSES calls them fluxes, for which yt's own reader has no
    units, and by their second name the derived fields of yt find them.
    """
    if component == "gravity":
        return {_GRAVITY.get(name, name): name for name in fields}
    if component == "hydro":
        same = [name for name in fields if re.fullmatch("B_[xyz]_(left|right)", name)]
        return {
            _HYDRO.get(name, name if name in same else f"hydro_{name}"): name for name in fields
        }
    names = {}
    for name in fields:
        group = re.fullmatch(r"photon_(density|flux)_(\d+)(?:_([xyz]))?", name)
        if group is None:
            names[f"rt_{name}"] = name
        elif group[3]:
            names[f"Photon_flux_{group[3]}_{int(group[2])}"] = name
        else:
            names[f"Photon_density_{int(group[2])}"] = name
            if group[1] == "flux":
                names[f"rt_{name}"] = name
    return names


def particle_names(component: str, fields: Sequence[str]) -> dict[str, str]:
    """Return the fields of particles or sinks by their names in yt."""
    known: Mapping[str, str] = _SINKS if component == "sinks" else _PARTICLES
    return {known.get(name, f"particle_{name}"): name for name in fields}

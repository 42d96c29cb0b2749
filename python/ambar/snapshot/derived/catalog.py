"""The derived fields that ambar defines: their formulas, for each component and simulation code.

Formulas name RAMSES' fields. Where a code has other names, these are formulas as well: of several
formulas the first one is used whose fields exist. Most names are those of yt.

In code units, G is that of the units of the run, and magnetic fields are such that B**2 / 2 is a
pressure, as in RAMSES.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar.snapshot.derived.frame import Parameters
from ambar.snapshot.derived.neighbours import GRADIENTS
from ambar.snapshot.physics.cosmology import Cosmology
from ambar.snapshot.regions import AXES

Formula: TypeAlias = str | tuple[tuple[str, ...], Callable[..., Any] | _core.Region]
"""An expression, or the names of fields and a function of their arrays.

A region instead of a function is the fraction of cells in it, from their centres and sides.

Expressions contain constants in braces: "{gamma}".
"""
Catalog: TypeAlias = Mapping[str, Sequence[Formula]]

_TINY = "1e-300"
"""Keeps components along a radius of 0 at 0."""
_SPEEDS = ("{0}_x**2 + {0}_y**2 + {0}_z**2", "{0}_x**2 + {0}_y**2", "{0}_x**2")


def _magnitudes(vector: str) -> list[str]:
    """Return formulas of the length of a vector of three, two or one components.

    `_of_dimension` leaves out those of fewer components than the data have dimensions.
    """
    return [f"sqrt({squares.format(vector)})" for squares in _SPEEDS]


_FACES: dict[str, list[Formula]] = {
    f"magnetic_field_{axis}": [
        f"(B_{axis}_left + B_{axis}_right) / 2",
        f"(B_left_{axis} + B_right_{axis}) / 2",
        f"`{axis}-BField`",
    ]
    for axis in AXES
}

_CODES: dict[str, list[Formula]] = {
    "density": ["gasDensity", "Density"],
    "pressure": [
        "gasPressure",
        "({gamma} - 1) * rho_e",
        "({gamma} - 1) * gasInternalEnergy",
        "({gamma} - 1) * (rho_E - (xmom**2 + ymom**2 + zmom**2) / (2 * density))",
    ],
    **{
        f"velocity_{axis}": [
            f"{axis}_velocity",
            f"{axis}vel",
            f"{axis}_vel",
            f"`{axis}-velocity`",
            f"{axis}mom / density",
            f"`{axis}-GasMomentum` / gasDensity",
        ]
        for axis in AXES
    },
    **{f"acceleration_{axis}": [f"grav_{axis}"] for axis in AXES},
    "potential": ["phiGrav", "phi_grav", "gpot"],
    **_FACES,
}
"""Fields by other names: of Nyx, Castro, MAESTROeX, Quokka and WarpX; of MHD runs of RAMSES."""

_ELECTROMAGNETIC: dict[str, list[Formula]] = {
    "electric_field_strength": ["sqrt(Ex**2 + Ey**2 + Ez**2)", "sqrt(E_x**2 + E_y**2 + E_z**2)"],
    "electromagnetic_energy_density": [
        "{epsilon_0} / 2 * (Ex**2 + Ey**2 + Ez**2) + (Bx**2 + By**2 + Bz**2) / (2 * {mu_0})",
        "{epsilon_0} / 2 * {electric}**2 * (E_x**2 + E_y**2 + E_z**2)"
        " + {magnetic}**2 * (B_x**2 + B_y**2 + B_z**2) / (2 * {mu_0})",
    ],
    "poynting_flux_x": ["(Ey * Bz - Ez * By) / {mu_0}", "(E_y * B_z - E_z * B_y) * {poynting}"],
    "poynting_flux_y": ["(Ez * Bx - Ex * Bz) / {mu_0}", "(E_z * B_x - E_x * B_z) * {poynting}"],
    "poynting_flux_z": ["(Ex * By - Ey * Bx) / {mu_0}", "(E_x * B_y - E_y * B_x) * {poynting}"],
    "current_density_magnitude": ["sqrt(jx**2 + jy**2 + jz**2)", "sqrt(j_x**2 + j_y**2 + j_z**2)"],
}
"""Fields of WarpX, whose code units are SI units, and of openPMD, whose fields have units; with
three components in any dimension."""

_CELLS: dict[str, list[Formula]] = {
    "cell_mass": ["density * cell_volume"],
    "mass": ["cell_mass"],
    "momentum_density_x": ["density * velocity_x"],
    "momentum_density_y": ["density * velocity_y"],
    "momentum_density_z": ["density * velocity_z"],
    "temperature": ["Temp", "gasTemperature", "pressure / density * {kelvin}"],
    "number_density": ["density * {number_density}"],
    "sound_speed": ["sqrt({gamma} * pressure / density)"],
    "mach_number": ["relative_speed / sound_speed"],
    "kinetic_energy_density": ["0.5 * density * relative_speed**2"],
    "thermal_energy_density": ["pressure / ({gamma} - 1)"],
    "specific_thermal_energy": ["pressure / density / ({gamma} - 1)"],
    "thermal_energy": ["thermal_energy_density * cell_volume"],
    "entropy": ["pressure / density**{gamma}"],
    "jeans_length": ["sqrt({pi} / {G} * sound_speed**2 / density)"],
    "jeans_mass": ["(5 / {G} * pressure / density)**1.5 * sqrt(3 / (4 * {pi}) / density)"],
    "free_fall_time": ["sqrt(3 * {pi} / (32 * {G}) / density)"],
    "dynamical_time": ["sqrt(3 * {pi} / (16 * {G}) / density)"],
    "magnetic_field_strength": [*_magnitudes("magnetic_field")],
    "magnetic_pressure": ["0.5 * magnetic_field_strength**2"],
    **_ELECTROMAGNETIC,
    "alfven_speed": ["magnetic_field_strength / sqrt(density)"],
    "alfven_mach_number": ["relative_speed / alfven_speed"],
    "plasma_beta": ["pressure / magnetic_pressure"],
    "acceleration_magnitude": [*_magnitudes("acceleration")],
    "gravitational_potential": ["potential"],
    "potential_energy": ["potential * cell_mass"],
}
_ROWS: dict[str, list[Formula]] = {
    "x": ["peak_x"],
    "y": ["peak_y"],
    "z": ["peak_z"],
    "velocity_x": ["vx", "xvel", "particle_xvel"],
    "velocity_y": ["vy", "yvel", "particle_yvel"],
    "velocity_z": ["vz", "zvel", "particle_zvel"],
    "mass": ["msink", "mass_cl", "particle_mass"],
    "birth_time": ["birth_epoch", "tform"],
}


def _velocities(mass: str) -> dict[str, list[Formula]]:
    """Return formulas of velocities, also in curvilinear coordinates; `mass` is that of a row."""
    return {
        "velocity_magnitude": [*_magnitudes("velocity")],
        "relative_speed": [*_magnitudes("relative_velocity")],
        "kinetic_energy": [f"0.5 * {mass} * relative_speed**2"],
    }


def _positions(mass: str) -> dict[str, list[Formula]]:
    """Return formulas of Cartesian positions, and of velocities relative to them."""
    return {
        "specific_angular_momentum_x": [
            "relative_position_y * relative_velocity_z - relative_position_z * relative_velocity_y"
        ],
        "specific_angular_momentum_y": [
            "relative_position_z * relative_velocity_x - relative_position_x * relative_velocity_z"
        ],
        "specific_angular_momentum_z": [
            "relative_position_x * relative_velocity_y - relative_position_y * relative_velocity_x"
        ],
        "specific_angular_momentum_magnitude": [*_magnitudes("specific_angular_momentum")],
        **{f"angular_momentum_{a}": [f"{mass} * specific_angular_momentum_{a}"] for a in AXES},
        "angular_momentum_magnitude": [f"{mass} * specific_angular_momentum_magnitude"],
        "radius": [*_magnitudes("relative_position")],
        "spherical_radius": ["radius"],
        "spherical_theta": [(("cylindrical_radius", "cylindrical_z"), np.arctan2)],
        "spherical_phi": ["cylindrical_theta"],
        "cylindrical_radius": ["sqrt(frame_position_x**2 + frame_position_y**2)"],
        "cylindrical_theta": [(("frame_position_y", "frame_position_x"), np.arctan2)],
        "cylindrical_z": ["frame_position_z"],
        "velocity_cylindrical_radius": [
            "(frame_position_x * frame_velocity_x + frame_position_y * frame_velocity_y)"
            f" / max(cylindrical_radius, {_TINY})"
        ],
        "velocity_cylindrical_theta": [
            "(frame_position_x * frame_velocity_y - frame_position_y * frame_velocity_x)"
            f" / max(cylindrical_radius, {_TINY})"
        ],
        "velocity_cylindrical_z": ["frame_velocity_z"],
        "velocity_spherical_radius": [
            "(relative_position_x * relative_velocity_x + relative_position_y * relative_velocity_y"
            f" + relative_position_z * relative_velocity_z) / max(radius, {_TINY})",
            "(relative_position_x * relative_velocity_x"
            f" + relative_position_y * relative_velocity_y) / max(radius, {_TINY})",
            f"relative_position_x * relative_velocity_x / max(radius, {_TINY})",
        ],
        "velocity_spherical_theta": [
            "(frame_position_z * velocity_cylindrical_radius"
            f" - cylindrical_radius * frame_velocity_z) / max(radius, {_TINY})"
        ],
        "velocity_spherical_phi": ["velocity_cylindrical_theta"],
    }


_VECTORS = (
    "magnetic_field_strength",
    "acceleration_magnitude",
    "velocity_magnitude",
    "relative_speed",
    "radius",
    "velocity_spherical_radius",
)
"""Fields with formulas for three, two and one components."""
_FRAME = [
    f"{kind}_{axis}"
    for kind in ("relative_position", "relative_velocity", "frame_position", "frame_velocity")
    for axis in AXES
]
_SIZES = ("cell_volume", "jeans_number", "virial_parameter")
"""Fields that depend on the sides of cells."""
NAMES = frozenset(
    [
        *_CODES,
        *_CELLS,
        *_ROWS,
        *_velocities("mass"),
        *_positions("mass"),
        *_FRAME,
        *_SIZES,
        *GRADIENTS,
        "age",
    ]
)
"""The names of all fields in the catalog."""
SOURCES = frozenset([*_CODES, *_ROWS])
"""Those that codes store, by these or other names."""

INTERNAL = frozenset([*_FRAME, "relative_speed"])
"""Steps of other formulas, which lists of fields leave out."""

SHORT_NAMES = {
    "volume": "cell_volume",
    "T": "temperature",
    "cs": "sound_speed",
    "mach": "mach_number",
    "v": "velocity_magnitude",
    "ekin": "kinetic_energy",
    "freefall_time": "free_fall_time",
    "radial_velocity": "velocity_spherical_radius",
    "magnetic_field_magnitude": "magnetic_field_strength",
    "magnetic_energy_density": "magnetic_pressure",
    "star_age": "age",
    "hx": "specific_angular_momentum_x",
    "hy": "specific_angular_momentum_y",
    "hz": "specific_angular_momentum_z",
    "lx": "angular_momentum_x",
    "ly": "angular_momentum_y",
    "lz": "angular_momentum_z",
    "r_sphere": "radius",
    "r_cylinder": "cylindrical_radius",
    "vr_sphere": "velocity_spherical_radius",
    "vθ_sphere": "velocity_spherical_theta",
    "vϕ_sphere": "velocity_spherical_phi",
    "vr_cylinder": "velocity_cylindrical_radius",
    "vϕ_cylinder": "velocity_cylindrical_theta",
}
"""Names of Mera.jl and yt for fields of the catalog."""

MU_0 = 1.25663706127e-6
_SPHERE_RADIUS = (3 / (4 * math.pi)) ** (1 / 3)
NUMBERS = {
    "pi": math.pi,
    "sphere_radius": _SPHERE_RADIUS,
    "mu_0": MU_0,
    "epsilon_0": 8.8541878188e-12,
}
"""Constants of formulas that need neither units nor parameters; of SI, those of CODATA 2022."""


def cell_formulas(
    derived: Sequence[str], ndim: int, *, is_cartesian: bool
) -> dict[str, list[Formula]]:
    """Return the formulas of fields of cells; `derived` are the derived columns of the core."""
    sides = [f"d{axis}" if f"d{axis}" in derived else "dx" for axis in AXES[:ndim]]
    volume = " * ".join(sides)
    is_cubic = set(sides) == {"dx"}
    longest = "dx" if is_cubic else reduce("max({}, {})".format, sides)
    square = "dx**2" if is_cubic else f"({volume})**{2 / ndim!r}"
    measures: dict[str, list[Formula]] = {
        "jeans_number": [f"jeans_length / {longest}"],
        # Bertoldi and McKee (1992), 5 s**2 R / (G M), of a sphere with the volume of the cell; s is
        # the velocity dispersion in one dimension, thermal and of the bulk motion.
        "virial_parameter": [
            "5 * {sphere_radius} / {G} * (pressure / density + relative_speed**2 / 3)"
            f" / (density * {square})"
        ],
    }
    if is_cartesian:
        measures |= {"cell_volume": [volume], **_positions("cell_mass")}
    return _of_dimension({**_CODES, **measures, **_CELLS, **_velocities("cell_mass")}, ndim)


def row_formulas(
    time: float, ndim: int, cosmology: Cosmology | None, unit_t: float
) -> dict[str, list[Formula]]:
    """Return the formulas of fields of particles, sinks and clumps."""
    age: Formula = (("birth_time",), partial(_ages, time, cosmology, unit_t))
    shared = _velocities("mass") | _positions("mass")
    return _of_dimension({**_ROWS, **shared, "age": [age]}, ndim)


def _of_dimension(catalog: dict[str, list[Formula]], ndim: int) -> dict[str, list[Formula]]:
    """Return a catalog without formulas of vectors that have fewer than `ndim` components."""
    vectors = {name: catalog[name][: 4 - ndim] for name in _VECTORS if name in catalog}
    return catalog | vectors


def _ages(
    time: float, cosmology: Cosmology | None, unit_t: float, birth_times: np.ndarray
) -> np.ndarray:
    """Return ages in code units of time; NaN for a birth time of 0, which stars do not have."""
    if cosmology is not None:
        ages: np.ndarray = cosmology.ages(birth_times) / unit_t
        return ages
    ages = time - birth_times
    # The text of the time in an output has fewer digits than the times of birth.
    ages[np.abs(ages) < 1e-14 * abs(time)] = 0.0
    return np.where(birth_times == 0.0, np.nan, ages)


def frame_formulas(
    parameters: Parameters,
    middle: Sequence[float],
    sides: Sequence[float],
    periodic: Sequence[bool],
) -> dict[str, list[Formula]]:
    """Return the formulas of positions and velocities relative to a center, an axis and a velocity.

    Positions are those of the nearest periodic image.
    """
    center = parameters.center or middle
    formulas: dict[str, list[Formula]] = {}
    for number, axis in enumerate(AXES[: len(sides)]):
        start, side = float(center[number]), float(sides[number])
        low = middle[number] - side / 2
        if periodic[number] and not low <= start <= low + side:
            start = low + (start - low) % side
        position = f"({axis} - {start!r})" if start >= 0 else f"({axis} + {-start!r})"
        if periodic[number] and start != middle[number]:
            position = _nearest(position, side)
        formulas[f"relative_position_{axis}"] = [position]
    velocity = parameters.velocity or (0.0, 0.0, 0.0)
    for number, axis in enumerate(AXES):
        moving = velocity[number] if number < len(velocity) else 0.0
        name = f"velocity_{axis}"
        formulas[f"relative_{name}"] = [name if moving == 0 else f"{name} - ({moving!r})"]
    basis = parameters.basis
    for kind in ("position", "velocity"):
        if parameters.axis == (0.0, 0.0, 1.0):
            formulas |= {f"frame_{kind}_{axis}": [f"relative_{kind}_{axis}"] for axis in AXES}
            continue
        for axis, vector in zip(AXES, basis, strict=True):
            terms = [
                f"({part!r}) * relative_{kind}_{other}"
                for part, other in zip(vector, AXES, strict=True)
                if part != 0
            ]
            formulas[f"frame_{kind}_{axis}"] = [" + ".join(terms)]
    return formulas


def _nearest(distance: str, side: float) -> str:
    """Return an expression of a distance to the nearest periodic image, for distances in a box."""
    above = f"min(max(({distance} - {side / 2!r}) * 1e300, 0), 1)"
    below = f"min(max((-{distance} - {side / 2!r}) * 1e300, 0), 1)"
    return f"{distance} - {side!r} * {above} + {side!r} * {below}"

"""The kinds of RAMSES outputs the tests go through: synthetic ones by name, real ones by folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.paths import RAMSES, RAMSES_CASES, outside_data
from tests.helpers.ramses_outputs import HYDRO, PARTICLES, Spec, without

MHD = (
    *HYDRO[:4],
    *(f"B_{axis}_{side}" for side in ("left", "right") for axis in "xyz"),
    "pressure",
    "metallicity",
)
MHD_V0 = (
    *HYDRO[:4],
    *(f"B_{side}_{axis}" for side in ("left", "right") for axis in "xyz"),
    "thermal_pressure",
)
V0 = (*HYDRO[:4], "non_thermal_pressure_1", "thermal_pressure", "passive_scalar_1")
OLD_PARTICLES = (*PARTICLES[:9], ("birth_time", "d"), ("metallicity", "d"))
EVERY_TYPE = (
    *PARTICLES[:6],
    ("mass", "f"),
    ("identity", "q"),
    ("levelp", "i"),
    ("family", "b"),
    ("tag", "h"),
    ("partp", "i"),
    ("awake", "?"),
)
FULL = Spec(
    gravity="plain", groups=2, particles=PARTICLES, sinks="csv", clumps=2, domains=5, level_max=5
)

SYNTHETIC = {
    "plain": Spec(),
    "one_domain": Spec(domains=1),
    "more_domains_than_octs": Spec(domains=40, level_max=3),
    "one_level": Spec(level_min=3, level_max=3),
    "deep": Spec(ndim=1, hydro=("density", "velocity_x", "pressure"), level_max=28),
    "everything": FULL,
    "everything_1d": replace(FULL, ndim=1, hydro=("density", "velocity_x", "pressure")),
    "everything_2d": replace(FULL, ndim=2, hydro=(*HYDRO[:3], "pressure", "scalar_00")),
    "single": replace(FULL, real="<f4"),
    "single_first_domain_empty": Spec(real="<f4", level_min=1, level_max=1, domains=4),
    "groups": replace(FULL, folders=2),
    "groups_of_one": replace(FULL, folders=1),
    "mhd": Spec(hydro=MHD),
    "mhd_2d": Spec(hydro=MHD, ndim=2),
    "v0": Spec(hydro=V0, hydro_descriptor="v0", header="totals"),
    "v0_mhd": Spec(hydro=MHD_V0, hydro_descriptor="v0", header="totals"),
    "v0_particles": Spec(particles=OLD_PARTICLES, particle_descriptor=False, header="totals"),
    "v0_sinks": Spec(sinks="bare", header="totals"),
    "no_descriptor": Spec(hydro=(*HYDRO, "scalar_00"), hydro_descriptor=""),
    "particle_density": Spec(gravity="density"),
    "particle_types": Spec(particles=EVERY_TYPE, tracer_seed=True),
    "particle_potential": Spec(
        header="totals", particles=(*PARTICLES[:9], ("potential", "d")), particle_descriptor=False
    ),
    "cosmological": Spec(expansion=0.125, particles=PARTICLES),
    "quad": Spec(quad=True, domains=4),
    "bisection": Spec(ordering="bisection"),
    "planar": Spec(ordering="planar"),
    "angular": Spec(ordering="angular"),
    "overload": Spec(overload=3),
    "walls": Spec(walls=((1, 1), (1, 1), (1, 1))),
    "walls_above": Spec(ndim=2, walls=((0, 1), (0, 1)), hydro=HYDRO[:4]),
    "wall_below": Spec(ndim=2, walls=((1, 0), (0, 0)), hydro=HYDRO[:4]),
    "wall_z": Spec(walls=((0, 0), (0, 0), (1, 1)), particles=PARTICLES, boxlen=2.5),
    "box_3x2": Spec(ndim=2, root=(3, 2), hydro=HYDRO[:4], level_min=1, level_max=3, boxlen=4.0),
    "box_3x1x2_walls": Spec(
        root=(3, 1, 2), level_min=1, level_max=3, walls=((1, 1), (0, 0), (0, 0))
    ),
    "no_hydro": without(FULL, "hydro"),
    "hydro_alone": without(FULL, "gravity", "groups", "particles", "sinks", "clumps"),
    "particles_alone": without(FULL, "hydro", "gravity", "groups", "sinks", "clumps"),
    "no_particles_at_all": replace(FULL, particle_count=0),
}

TRUE_NAMES = {
    "rho": "particle_density",
    "phi": "potential",
    "gx": "acceleration_x",
    "gy": "acceleration_y",
    "gz": "acceleration_z",
}
"""What the truth files call gravity's fields, and their names."""


def shared_data() -> Path | None:
    """Return the folder of RAMSES outputs outside the repository, if it exists."""
    folder = outside_data() / "ramses"
    return folder if folder.is_dir() else None


def real_outputs() -> list[object]:
    """Return pytest parameters: folders of real outputs that have their truth beside them."""
    shared = shared_data()
    roots = [RAMSES, RAMSES_CASES]
    found: dict[str, object] = {}
    for root in [*roots, *([shared] if shared else [])]:
        for truth in sorted(root.glob("*/truth_leaf_*.npz")):
            name = f"{truth.parent.name}-{truth.stem[-5:]}"
            folder = truth.parent / f"output_{truth.stem[-5:]}"
            found.setdefault(name, pytest.param(folder, id=name))
    if shared is None:
        reason = "no outputs outside the repository: set AMBAR_TEST_DATA"
        mark = pytest.mark.skip(reason=reason)
        found["shared"] = pytest.param(None, id="shared", marks=mark)
    return list(found.values())


def real_truth(output: Path, kind: str) -> dict[str, np.ndarray]:
    """Return the true columns of a real output, `kind` "leaf" or "part"; empty if none."""
    path = output.parent / f"truth_{kind}_{output.name[-5:]}.npz"
    if not path.exists():
        return {}
    with np.load(path) as columns:
        true = {TRUE_NAMES.get(name, name): columns[name] for name in columns.files}
    if "domain" in true:
        true["domain"] = true["domain"].astype(np.uint32)
    return true

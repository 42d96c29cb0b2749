"""Writes the text files of a synthetic RAMSES output: info, header, descriptors, namelist."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from tests.helpers.ramses_outputs.cells import GRID_MAX, Tree
from tests.helpers.ramses_outputs.spec import Columns, Spec

HEADER_WORDS = {
    "identity": "iord",
    "levelp": "level",
    "potential": "phi",
    "birth_time": "tform",
    "metallicity": "metal",
}
"""What the header calls the particle columns after positions, velocities and mass."""
FAMILIES = {1: "DM", 2: "star", 3: "cloud", 4: "debris", 5: "other"}
RT_INFO = """nRTvar       = {fields:11d}
nIons        =           3
nGroups      = {groups:11d}
iIons        =           6

X_fraction   =   0.100000000000000E+01
Y_fraction   =   0.000000000000000E+00

unit_np      =   0.100000000000000E+01
unit_pf      =   0.977813951206781E+08
rt_c_frac    =   0.100000000000000E-01

n_star       =   0.100000000000000E+00
T2_star      =   0.000000000000000E+00
g_star       =   0.160000000000000E+01

 Photon group properties------------------------------
"""


def write_texts(place: Path, spec: Spec, tree: Tree, particles: Columns | None) -> None:
    """Write the text files into the folder `place`; `particles` is None where there are none."""
    texts = {
        f"info_{spec.number:05d}.txt": _info(spec, tree),
        f"header_{spec.number:05d}.txt": _header(spec, particles),
        "namelist.txt": f"&RUN_PARAMS\ncosmo={'.true.' if spec.cosmological else '.false.'}\n/\n",
    }
    if spec.hydro and spec.hydro_descriptor:
        old = spec.hydro_descriptor == "v0"
        text = _descriptor_v0(spec.hydro) if old else _descriptor(_reals(spec.hydro))
        texts["hydro_file_descriptor.txt"] = text
    if spec.groups:
        fields = tree.fields["rt"]
        texts["rt_file_descriptor.txt"] = _descriptor(_reals(fields))
        info = RT_INFO.format(fields=len(fields), groups=spec.groups)
        texts[f"info_rt_{spec.number:05d}.txt"] = info
    if particles is not None and spec.particle_descriptor:
        texts["part_file_descriptor.txt"] = _descriptor(spec.particle_columns)
    for name, text in texts.items():
        (place / name).write_text(text)


def _reals(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(name, "d") for name in names]


def _descriptor(columns: list[tuple[str, str]]) -> str:
    lines = ["# version:  1", "# ivar, variable_name, variable_type"]
    lines += [f"{i:2d}, {name}, {letter}" for i, (name, letter) in enumerate(columns, start=1)]
    return "\n".join(lines) + "\n"


def _descriptor_v0(names: tuple[str, ...]) -> str:
    lines = [f"nvar        ={len(names):11d}"]
    lines += [f"variable #{i:2d}: {name}" for i, name in enumerate(names, start=1)]
    return "\n".join(lines) + "\n"


def _info(spec: Spec, tree: Tree) -> str:
    whole = {
        "ncpu": spec.domains,
        "ndim": spec.ndim,
        "levelmin": spec.level_min,
        "levelmax": tree.depth,
        "ngridmax": GRID_MAX,
        "nstep_coarse": 3,
    }
    reals = {
        "boxlen": spec.boxlen / spec.box[0],
        "time": 0.25,
        "aexp": spec.expansion,
        "H0": 70.0,
        "omega_m": 0.3,
        "omega_l": 0.7,
        "omega_k": 0.0,
        "omega_b": 0.05,
        "unit_l": 3.0e21,
        "unit_d": 1.66e-24,
        "unit_t": 3.15e13,
    }
    lines = [f"{name:<12}={value:11d}" for name, value in whole.items()]
    lines += ["", *(f"{name:<12}={value:23.15E}" for name, value in reals.items()), ""]
    lines.append(f"ordering type={spec.ordering:<80}")
    if spec.ordering == "bisection":
        numbers = [0.0] * spec.ndim + [1.0] * (spec.ndim + 1)
        lines += [f"{number:23.15E}" for _ in range(spec.domains) for number in numbers]
    else:
        lines.append("   DOMAIN   ind_min                 ind_max")
        for i, (low, high) in enumerate(pairwise(tree.keys(spec.overload)), start=1):
            lines.append(f"{i:8d} {float(low):23.15E} {float(high):23.15E}")
    return "\n".join(lines) + "\n"


def _header(spec: Spec, particles: Columns | None) -> str:
    if spec.header == "totals":
        total = 0 if particles is None else spec.particle_count
        kinds = {"": total, "dark matter ": total, "star ": 0, "sink ": 0}
        lines = [f" Total number of {kind}particles\n {n:11d}" for kind, n in kinds.items()]
    else:
        nothing = np.zeros(0, np.int8)
        family = nothing if particles is None else particles.get("family", nothing)
        counts = {name: int((family == code).sum()) for code, name in FAMILIES.items()}
        lines = ["#      Family     Count"]
        lines += [f"{name:>13}{n:10d}" for name, n in (counts | {"undefined": 0}).items()]
    others = [name for name, _ in spec.particles if not name.startswith(("pos", "vel", "mass"))]
    words = ["pos", "vel", "mass", *(HEADER_WORDS.get(name, name) for name in others)]
    return "\n".join([*lines, " Particle fields", " ".join(words) + " "])

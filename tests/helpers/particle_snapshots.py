"""Writes small snapshots in the layouts of Gadget-2, Gadget-4, AREPO and SWIFT, with h5py.

The layouts follow the manuals and the output functions of the codes. Values are random, from a
seed; positions cluster, so that chunks have different sizes in space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

KPC, MPC, SUN = 3.085678e21, 3.085678e24, 1.989e33
BOX, A, H, OMEGA_M, OMEGA_L = 50000.0, 0.25, 0.6774, 0.3089, 0.6911
GADGET_UNITS = {
    "UnitLength_in_cm": KPC,
    "UnitMass_in_g": 1e10 * SUN,
    "UnitVelocity_in_cm_per_s": 1e5,
}
# Exponents of expansion factor and h, of length, mass and velocity.
SCALINGS = {
    "Coordinates": (1.0, -1.0, 1.0, 0.0, 0.0),
    "Velocities": (0.5, 0.0, 0.0, 0.0, 1.0),
    "Masses": (0.0, -1.0, 0.0, 1.0, 0.0),
    "InternalEnergy": (0.0, 0.0, 0.0, 0.0, 2.0),
    "Density": (-3.0, 2.0, -3.0, 1.0, 0.0),
    "SmoothingLength": (1.0, -1.0, 1.0, 0.0, 0.0),
}
Particles = dict[str, dict[str, np.ndarray]]


def particles(
    rows: Mapping[int, int],
    *,
    box: float = BOX,
    floats: str = "f4",
    ids: str = "u8",
    masses: Sequence[int] = (0, 4, 5),
) -> Particles:
    """Return datasets by group; `masses` are the types whose particles have their own mass."""
    generator = np.random.default_rng(5)
    found: Particles = {}
    first = 1
    for number, count in rows.items():
        centers = generator.uniform(0, box, (20, 3))
        places = centers[generator.integers(0, 20, count)]
        places = (places + generator.normal(0, box / 30, (count, 3))) % box
        own: dict[str, np.ndarray] = {
            "Coordinates": places.astype(floats) % np.dtype(floats).type(box),
            "Velocities": generator.normal(0, 200, (count, 3)).astype(floats),
            "ParticleIDs": (first + generator.permutation(count)).astype(ids),
        }
        if number in masses:
            own["Masses"] = generator.uniform(0.5, 1.5, count).astype(floats)
        if number == 0:
            own["InternalEnergy"] = generator.lognormal(5, 1, count).astype(floats)
            own["Density"] = generator.lognormal(-15, 2, count).astype(floats)
            own["SmoothingLength"] = generator.uniform(1, 9, count).astype(floats)
        found[f"PartType{number}"] = own
        first += count
    return found


def write_gadget(
    path: Path,
    data: Particles,
    *,
    code: str = "gadget4",
    files: int = 1,
    cosmological: bool = True,
    box: float = BOX,
    mass: float = 0.03125,
    compression: str | None = None,
) -> list[Path]:
    """Write a snapshot as "gadget2", "gadget4", "arepo" or "eagle" do; return its files."""
    counts = np.array([_count(data.get(f"PartType{number}")) for number in range(6)])
    table = [
        mass if counts[number] and "Masses" not in data[f"PartType{number}"] else 0.0
        for number in range(6)
    ]
    groups = _gadget_groups(code, cosmological)
    groups["Header"] |= {
        "NumPart_Total": counts.astype("u8" if code == "gadget4" else "u4"),
        "MassTable": np.array(table),
        "BoxSize": box,
        "NumFilesPerSnapshot": np.int32(files),
    }
    paths = []
    for number in range(files):
        own = path if files == 1 else path.with_name(f"{path.stem}.{number}{path.suffix}")
        with h5py.File(own, "w") as file:
            slices = {
                group: slice(_count(sets) * number // files, _count(sets) * (number + 1) // files)
                for group, sets in data.items()
            }
            here = [_length(slices.get(f"PartType{one}")) for one in range(6)]
            groups["Header"]["NumPart_ThisFile"] = np.array(here, dtype="u4")
            for name, attributes in groups.items():
                file.create_group(name).attrs.update(attributes)
            for name, sets in data.items():
                for dataset, values in sets.items():
                    rows = values[slices[name]]
                    if len(rows):
                        node = file.create_dataset(
                            f"{name}/{dataset}", data=rows, compression=compression
                        )
                        node.attrs.update(_scalings(dataset, code, cosmological))
        paths.append(own)
    return paths


def _gadget_groups(code: str, cosmological: bool) -> dict[str, dict[str, Any]]:
    """Return the attributes of groups that describe the run."""
    time = A if cosmological else 2.5
    header: dict[str, Any] = {"Time": time, "Redshift": 1 / A - 1 if cosmological else 0.0}
    cosmology = {
        "Omega0": OMEGA_M if cosmological else 0.0,
        "OmegaLambda": OMEGA_L if cosmological else 0.0,
        "HubbleParam": H if cosmological else 1.0,
    }
    parameters = {**GADGET_UNITS, **cosmology, "ComovingIntegrationOn": np.int32(cosmological)}
    older = {**header, **cosmology, "NumPart_Total_HighWord": np.zeros(6, "u4")}
    if code == "gadget2":
        return {"Header": older}
    if code == "eagle":
        return {"Header": {**older, "ExpansionFactor": time, "Time": 0.0149}, "Units": GADGET_UNITS}
    if code == "arepo":
        config = {"VORONOI": np.bytes_(""), "NTYPES": 6.0}
        return {"Header": {**older, **GADGET_UNITS}, "Parameters": parameters, "Config": config}
    header |= {"Git_commit": np.bytes_("1f2e3d"), "Git_date": np.bytes_("2021")}
    return {"Header": header, "Parameters": parameters, "Config": {"PERIODIC": np.bytes_("")}}


def _count(sets: Mapping[str, np.ndarray] | None) -> int:
    return 0 if sets is None else len(sets["Coordinates"])


def _length(rows: slice | None) -> int:
    return 0 if rows is None else rows.stop - rows.start


def _scalings(dataset: str, code: str, cosmological: bool) -> dict[str, float]:
    if dataset not in SCALINGS or code == "gadget2":
        return {}
    a, h, length, mass, velocity = SCALINGS[dataset]
    factor = KPC**length * (1e10 * SUN) ** mass * 1e5**velocity
    if code == "eagle":
        return {"aexp-scale-exponent": a, "h-scale-exponent": h, "CGSConversionFactor": factor}
    return {
        "a_scaling": a if cosmological else 0.0,
        "h_scaling": h if cosmological else 0.0,
        "length_scaling": length,
        "mass_scaling": mass,
        "velocity_scaling": velocity,
        "to_cgs": factor,
    }


SWIFT_NAMES = {
    "InternalEnergy": "InternalEnergies",
    "Density": "Densities",
    "SmoothingLength": "SmoothingLengths",
}
# Exponents of length, mass, time and expansion factor.
SWIFT_UNITS = {
    "Coordinates": (1, 0, 0, 1),
    "Velocities": (1, 0, -1, 0),
    "Masses": (0, 1, 0, 0),
    "ParticleIDs": (0, 0, 0, 0),
    "InternalEnergies": (2, 0, -2, -2),
    "Densities": (-3, 1, 0, -3),
    "SmoothingLengths": (1, 0, 0, 1),
    "ElementMassFractions": (0, 0, 0, 0),
}


def write_swift(
    path: Path, data: Particles, *, box: float = 50.0, files: int = 1, arrays: bool = True
) -> list[Path]:
    """Write a snapshot in the layout of SWIFT, in Mpc, 1e10 solar masses and km/s.

    SWIFT writes numbers as arrays of one value, which yt 4.4 does not read with NumPy 2.4; without
    `arrays`, they are scalars.
    """

    def one(value: Any, dtype: str = "f8") -> np.ndarray:
        return np.array([value] if arrays else value, dtype)

    length, mass, time = MPC, 1e10 * SUN, MPC / 1e5
    counts = np.array([_count(data.get(f"PartType{number}")) for number in range(7)])
    paths = []
    for number in range(files):
        own = path if files == 1 else path.with_name(f"{path.stem}.{number}{path.suffix}")
        paths.append(own)
        with h5py.File(own, "w") as file:
            slices = {
                group: slice(_count(sets) * number // files, _count(sets) * (number + 1) // files)
                for group, sets in data.items()
            }
            here = [_length(slices.get(f"PartType{one}")) for one in range(7)]
            file.create_group("Header").attrs.update(
                {
                    "BoxSize": np.full(3, box),
                    "Code": np.bytes_("SWIFT"),
                    "Dimension": one(3, "i4"),
                    "Time": one(0.0024),
                    "Redshift": one(1 / A - 1),
                    "Scale-factor": one(A),
                    "NumPart_ThisFile": np.array(here, dtype="i8"),
                    "NumPart_Total": counts.astype("u4"),
                    "NumPart_Total_HighWord": np.zeros(7, "u4"),
                    "MassTable": np.zeros(7),
                    "NumFilesPerSnapshot": one(files, "i4"),
                    "ThisFile": one(number, "i4"),
                    "Virtual": one(0, "i4"),
                }
            )
            units = file.create_group("Units").attrs
            units.update(
                {
                    "Unit length in cgs (U_L)": one(length),
                    "Unit mass in cgs (U_M)": one(mass),
                    "Unit time in cgs (U_t)": one(time),
                    "Unit current in cgs (U_I)": one(1.0),
                    "Unit temperature in cgs (U_T)": one(1.0),
                }
            )
            file.create_group("InternalCodeUnits").attrs.update(dict(units))
            file.create_group("Cosmology").attrs.update(
                {
                    "Cosmological run": one(1, "i4"),
                    "h": one(H),
                    "Omega_m": one(OMEGA_M),
                    "Omega_cdm": one(OMEGA_M),
                    "Omega_b": one(0.0),
                    "Omega_nu_0": one(0.0),
                    "Omega_lambda": one(OMEGA_L),
                    "Redshift": one(1 / A - 1),
                    "Scale-factor": one(A),
                }
            )
            file.create_group("Policy").attrs["cosmological integration"] = one(1, "i4")
            file.create_group("Parameters").attrs.update(
                {
                    "InitialConditions:periodic": np.bytes_("1"),
                    "Cosmology:Omega_lambda": np.bytes_(str(OMEGA_L)),
                    "Cosmology:Omega_m": np.bytes_(str(OMEGA_M)),
                    "Cosmology:Omega_cdm": np.bytes_(str(OMEGA_M)),
                    "Cosmology:Omega_b": np.bytes_("0.0"),
                    "Cosmology:h": np.bytes_(str(H)),
                }
            )
            file.create_group("HydroScheme").attrs["Adiabatic index"] = one(5 / 3)
            scheme = file.create_group("SubgridScheme")
            scheme["NamedColumns/ElementMassFractions"] = np.array([b"Hydrogen", b"Helium"], "S32")
            for name, sets in data.items():
                for dataset, values in sets.items():
                    title, rows = SWIFT_NAMES.get(dataset, dataset), values[slices[name]]
                    if not len(rows):
                        continue
                    node = file.create_dataset(
                        f"{name}/{title}",
                        data=rows,
                        chunks=(min(8192, len(rows)), *rows.shape[1:]),
                        compression="gzip",
                        shuffle=True,
                        fletcher32=True,
                    )
                    node.attrs.update(_swift_units(title, (length, mass, time)))
            file["GasParticles"] = h5py.SoftLink("/PartType0")
    return paths


def _swift_units(title: str, units: tuple[float, float, float]) -> dict[str, Any]:
    *exponents, scale = SWIFT_UNITS[title]
    factor = float(np.prod([unit**power for unit, power in zip(units, exponents, strict=True)]))
    names = ("U_L exponent", "U_M exponent", "U_t exponent")
    return {
        **{name: np.array([p], "f4") for name, p in zip(names, exponents, strict=True)},
        "U_I exponent": np.array([0], "f4"),
        "U_T exponent": np.array([0], "f4"),
        "h-scale exponent": np.array([0], "f4"),
        "a-scale exponent": np.array([scale], "f4"),
        "Conversion factor to CGS (not including cosmological corrections)": np.array([factor]),
        "Conversion factor to physical CGS (including cosmological corrections)": np.array(
            [factor * A**scale]
        ),
    }


def write_subfind(path: Path, *, groups: int = 300, subhalos: int = 500) -> dict[str, np.ndarray]:
    """Write a catalogue of Gadget-4 with groups and subhalos; return its datasets."""
    generator = np.random.default_rng(8)
    sets = {
        "Group/GroupPos": generator.uniform(0, BOX, (groups, 3)).astype("f4"),
        "Group/GroupVel": generator.normal(0, 100, (groups, 3)).astype("f4"),
        "Group/GroupMass": generator.lognormal(2, 1, groups).astype("f4"),
        "Group/GroupLen": np.arange(groups, dtype="i4"),
        "Group/GroupLenType": generator.integers(0, 99, (groups, 6)).astype("i4"),
        "Group/Group_R_Crit200": generator.uniform(10, 99, groups).astype("f4"),
        "Subhalo/SubhaloPos": generator.uniform(0, BOX, (subhalos, 3)).astype("f4"),
        "Subhalo/SubhaloVel": generator.normal(0, 100, (subhalos, 3)).astype("f4"),
        "Subhalo/SubhaloMass": generator.lognormal(1, 1, subhalos).astype("f4"),
        "Subhalo/SubhaloIDMostbound": generator.permutation(subhalos).astype("u8"),
    }
    with h5py.File(path, "w") as file:
        file.create_group("Header").attrs.update(
            {
                "Ngroups_ThisFile": np.uint64(groups),
                "Ngroups_Total": np.uint64(groups),
                "Nsubhalos_ThisFile": np.uint64(subhalos),
                "Nsubhalos_Total": np.uint64(subhalos),
                "NumFiles": np.int32(1),
                "Time": A,
                "Redshift": 1 / A - 1,
                "BoxSize": BOX,
            }
        )
        for name, values in sets.items():
            file[name] = values
    return sets


ROCKSTAR = f"""\
#id num_p mvir mbound_vir rvir vmax rvmax vrms x y z vx vy vz Jx Jy Jz Spin A[x] A[y](500c) T/|U|
#a = {A:.6f}
#Om = {OMEGA_M}; Ol = {OMEGA_L}; h = {H}
#FOF linking length: 0.280000
#Particle mass: 6.70000e+06 Msun/h
#Box size: 50.000000 Mpc/h
#Units: Masses in Msun / h
#Units: Positions in Mpc / h (comoving)
#Units: Velocities in km / s (physical, peculiar)
#Units: Halo Distances, Lengths, and Radii in kpc / h (comoving)
#Rockstar Version: 0.99.9-RC3+
"""


def write_rockstar(path: Path, *, halos: int = 200) -> np.ndarray:
    """Write halos as Rockstar does; return the numbers of its lines, of shape (halos, 21)."""
    generator = np.random.default_rng(9)
    values = generator.lognormal(1, 1, (halos, 21)).round(4)
    values[:, 0] = np.arange(halos)
    values[:, 1] = generator.integers(20, 9999, halos)
    values[:, 8:11] = generator.uniform(0, 50, (halos, 3)).round(6)
    lines = "\n".join(" ".join(f"{value:g}" for value in line) for line in values.tolist())
    path.write_text(ROCKSTAR + lines + "\n")
    return np.array([[float(f"{value:g}") for value in line] for line in values.tolist()])

"""The headers of snapshots: box, time, cosmology and units, of each code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar.formats.gadget.files import FileKind, attributes_of, open_hdf5_snapshot
from ambar.snapshot.physics.cosmology import Cosmology

SNAPSHOT = FileKind("snapshot", "NumPart_ThisFile", "NumFilesPerSnapshot")
_GROUPS = (
    "Header",
    "Parameters",
    "RuntimePars",
    "Units",
    "Cosmology",
    "HydroScheme",
    "Config",
    "Code",
)
_UNITS = {
    "length": (("Unit length in cgs (U_L)", "UnitLength_in_cm", "UnitLength_In_CGS"), 3.085678e21),
    "mass": (("Unit mass in cgs (U_M)", "UnitMass_in_g", "UnitMass_In_CGS"), 1.989e43),
    "velocity": (("UnitVelocity_in_cm_per_s", "UnitVelocity_In_CGS"), 1e5),
}
"""Names of the units in files, and those of the parameter files of Gadget-2, in CGS."""


@dataclass(frozen=True)
class Header:
    """What the files state about the run, in the units of the files."""

    code: str
    """The code: "swift", "arepo", "gizmo", "gadget4" or "gadget"."""
    paths: tuple[Path, ...]
    """The files, in order."""
    counts: np.ndarray
    """Numbers of particles, int64 of shape (files, types)."""
    masses: tuple[float, ...]
    """The mass of all particles of each type; 0 if each has its own."""
    time: float
    box: tuple[float, ...]
    """Sides of the box; 0 without a box."""
    periodic: bool | None
    """Whether the box is periodic; None if the files do not state it."""
    aexp: float | None
    """Expansion factor; None without cosmology."""
    hubble: float
    """The parameter h that units contain, 1 if they do not."""
    H0: float | None
    """Hubble constant, km/s/Mpc."""
    omega_m: float | None
    omega_l: float | None
    length: float
    """Unit of length in cm, without h and expansion factor, as the others."""
    mass: float
    """Unit of mass in g."""
    velocity: float
    """Unit of velocity in cm/s."""
    gamma: float | None
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Names of the columns of datasets, as SWIFT states them."""

    @property
    def has_domain(self) -> bool:
        """Whether the box and its boundaries are known without the positions."""
        return self.periodic is not None and all(self.box)

    @property
    def unit_l(self) -> float:
        """One code unit of length in cm, proper."""
        return self.length * (self.aexp or 1.0) / self.hubble

    @property
    def unit_v(self) -> float:
        """One code unit of velocity in cm/s, peculiar."""
        is_scaled = self.aexp is not None and self.code != "swift"
        return self.velocity * (math.sqrt(self.aexp or 1.0) if is_scaled else 1.0)

    @property
    def unit_m(self) -> float:
        """One code unit of mass in g."""
        return self.mass / self.hubble

    @property
    def unit_t(self) -> float:
        """One code unit of time in s: that of lengths and velocities."""
        return self.unit_l / self.unit_v

    @property
    def age(self) -> float:
        """The time in code units; in a cosmological run since the Big Bang, if it is known."""
        if self.code == "swift":
            return self.time * self.length / self.velocity / self.unit_t
        if self.aexp is None:
            return self.time
        if self.H0 is None or self.omega_m is None or self.omega_l is None:
            return self.time
        curvature = 1.0 - self.omega_m - self.omega_l
        universe = Cosmology(self.H0, self.omega_m, self.omega_l, curvature, self.aexp)
        age = universe.age / self.unit_t
        return age if math.isfinite(age) else self.time


def read_header(paths: Sequence[Path]) -> Header:
    """Return the header of a snapshot, from all of its files.

    Raises
    ------
    CorruptError
        If a header lacks a value, or the files are not those of one snapshot.
    """
    headers: list[dict[str, Any]] = []
    for path in paths:
        with open_hdf5_snapshot(path) as file:
            if not headers:
                groups = {name: attributes_of(file[name]) for name in _GROUPS if name in file}
                names = _named_columns(file)
                gas = list(file.get("PartType0", ()))
            header = attributes_of(file["Header"])
        if SNAPSHOT.rows_attribute not in header:
            raise _wrong(path, f"the attribute {SNAPSHOT.rows_attribute}", "none")
        headers.append(header)
    first = headers[0]
    counts = _counts(paths, headers)
    values: dict[str, Any] = {}
    for group in reversed(groups.values()):
        values |= group
    try:
        return _header(values, groups, gas, paths, counts, names)
    except (KeyError, TypeError, ValueError) as error:
        raise _wrong(paths[0], "the attributes of a snapshot", f"{error!r} in {first}") from error


def _header(
    values: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, Any]],
    gas: Sequence[str],
    paths: Sequence[Path],
    counts: np.ndarray,
    names: Mapping[str, Sequence[str]],
) -> Header:
    code = _code(values, groups, gas)
    units = {
        name: next((float(values[key]) for key in keys if key in values), default)
        for name, (keys, default) in _UNITS.items()
    }
    if "Unit time in cgs (U_t)" in values:
        units["velocity"] = units["length"] / float(values["Unit time in cgs (U_t)"])
    time, redshift = float(values["Time"]), float(values.get("Redshift", 0.0))
    omega_m = _first(values, "Omega_m", "Omega0", "Omega_Matter")
    omega_l = _first(values, "Omega_lambda", "OmegaLambda", "Omega_Lambda")
    h = _first(values, "h", "HubbleParam", "HubbleParameter")
    is_cosmological = _first(values, "Cosmological run", "ComovingIntegrationOn")
    box = np.atleast_1d(values.get("BoxSize", 0.0)).astype(np.float64)
    aexp = _first(values, "Scale-factor", "ExpansionFactor")
    if aexp is None:
        aexp = time
    if is_cosmological is None:
        is_expansion = math.isclose(aexp * (1 + redshift), 1.0, rel_tol=1e-4)
        # Runs without cosmology have the redshift 0, also at the time 1.
        is_certain = redshift != 0.0 or bool(box.min() > 0 and omega_l and h not in (None, 0, 1))
        is_cosmological = float(is_expansion and bool(omega_m) and is_certain)
    if not is_cosmological:
        aexp = None
    types = counts.shape[1]
    masses = np.zeros(types)
    table = np.atleast_1d(values.get("MassTable", 0.0)).astype(np.float64)[:types]
    masses[: len(table)] = table
    return Header(
        code=code,
        paths=tuple(paths),
        counts=counts,
        masses=tuple(masses.tolist()),
        time=time,
        box=tuple(np.broadcast_to(box, 3).tolist()),
        periodic=_periodic(values, groups, code),
        aexp=aexp,
        hubble=1.0 if code == "swift" or aexp is None else h or 1.0,
        H0=100.0 * h if h and aexp is not None else None,
        omega_m=omega_m if aexp is not None else None,
        omega_l=omega_l if aexp is not None else None,
        gamma=_first(values, "Adiabatic index"),
        names=names,
        **units,
    )


def _counts(paths: Sequence[Path], headers: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Return the numbers of particles, of shape (files, types)."""
    first = headers[0]
    for path, header in zip(paths, headers, strict=True):
        for name in ("Time", "Redshift", "BoxSize", "MassTable", "NumPart_Total"):
            if header.get(name) != first.get(name):
                raise _core.CorruptError(
                    f"{path}: expected {name} = {first.get(name)} as in {paths[0].name}, found "
                    f"{header.get(name)}; use the files of one snapshot"
                )
    counts = np.array(
        [np.atleast_1d(header[SNAPSHOT.rows_attribute]) for header in headers], dtype=np.int64
    )
    total = np.atleast_1d(first.get("NumPart_Total", counts.sum(axis=0))).astype(np.int64)
    high = first.get("NumPart_Total_HighWord", first.get("NumPart_Total_HW"))
    if high is not None and total.max(initial=0) < 1 << 32:
        total = total + (np.atleast_1d(high).astype(np.int64) << 32)
    found = counts.sum(axis=0)
    # Particles of a type that was not written are counted in the total.
    if np.any((found != total) & (found > 0)):
        raise _core.CorruptError(
            f"{paths[0]}: expected {total.tolist()} particles of each type, as NumPart_Total says, "
            f"found {found.tolist()} in {len(paths)} files; use all files of one snapshot"
        )
    return counts


def _code(
    values: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]], gas: Sequence[str]
) -> str:
    if "SWIFT" in (values.get("Code"), groups.get("Header", {}).get("Code")):
        return "swift"
    if "GIZMO_version" in values or "UnitLength_In_CGS" in values:
        return "gizmo"
    is_moving_mesh = any(name == "CenterOfMass" or name.startswith("GFM_") for name in gas)
    if is_moving_mesh or {"VORONOI", "AMR"} & groups.get("Config", {}).keys():
        return "arepo"
    return "gadget4" if "Git_commit" in values and "Parameters" in groups else "gadget"


def _periodic(
    values: Mapping[str, Any], groups: Mapping[str, Mapping[str, Any]], code: str
) -> bool | None:
    if code == "swift":
        found = values.get("InitialConditions:periodic", values.get("PeriodicBoundariesOn"))
        return None if found is None else str(found) == "1"
    if code == "gadget4" and "Config" in groups:
        return "PERIODIC" in groups["Config"]
    return None


def _named_columns(file: Any) -> dict[str, list[str]]:
    """Return the names of the columns of SWIFT's wide datasets, by name of the dataset."""
    if "SubgridScheme/NamedColumns" not in file:
        return {}
    return {
        name: [text.decode() if isinstance(text, bytes) else str(text) for text in node[()]]
        for name, node in file["SubgridScheme/NamedColumns"].items()
    }


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    """Return the number with the first of the names that exists; None if it is not finite."""
    found = next((float(values[name]) for name in names if name in values), math.nan)
    return found if math.isfinite(found) else None


def _wrong(path: Path, expected: str, found: str) -> _core.CorruptError:
    return _core.CorruptError(
        f"{path}: expected {expected} in the group Header, found {found}; restore it from a copy"
    )

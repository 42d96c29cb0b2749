"""Files of openPMD in the layouts of WarpX, PIConGPU and FBPIC, written and read by openpmd_api."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpmd_api as io

SCALAR = io.Record_Component.SCALAR
SHAPE = (16, 24, 20)
"""Cells of level 0 along z, y, x."""
REFINED = (slice(8, 24), slice(16, 32), slice(8, 32))
"""The cells of level 1 that are written, along z, y, x."""
ELECTRON_MASS = 9.1093837015e-31
_LENGTH, _TIME, _CHARGE = {io.Unit_Dimension.L: 1}, {io.Unit_Dimension.T: 1}, 1.602176634e-19
_FIELD = {
    io.Unit_Dimension.L: 1,
    io.Unit_Dimension.M: 1,
    io.Unit_Dimension.T: -3,
    io.Unit_Dimension.I: -1,
}
_MAGNETIC = {io.Unit_Dimension.M: 1, io.Unit_Dimension.I: -1, io.Unit_Dimension.T: -2}
# Along z, y, x.
_E = {"x": (0.0, 0.0, 0.5), "y": (0.0, 0.5, 0.0), "z": (0.5, 0.0, 0.0)}
_B = {"x": (0.5, 0.5, 0.0), "y": (0.5, 0.0, 0.5), "z": (0.0, 0.5, 0.5)}


def write_warpx(path: Path, numbers: Sequence[int] = (100, 200)) -> Path:
    """Write two levels, staggered fields and electrons; the finer level has zeros where coarse."""
    series = io.Series(str(path), io.Access.create)
    series.set_software("WarpX", "24.05")
    series.set_meshes_path("fields")
    series.set_particles_path("particles")
    series.set_author("A. Physicist")
    series.set_attribute("openPMDextension", 1, np.dtype("u4"))
    series.set_attribute("warpx_flags", np.array([1.5, np.inf], np.float32))
    for number in numbers:
        iteration = series.write_iterations()[number]
        iteration.time, iteration.dt, iteration.time_unit_SI = number * 1e-16, 1e-16, 1.0
        iteration.meshes.set_attribute("fieldSolver", "Yee")
        iteration.meshes.set_attribute("fieldBoundary", ["open", "periodic"])
        random = np.random.default_rng(number)
        for level in (0, 1):
            for name, places in (("E", _E), ("B", _B), ("rho", {SCALAR: (0.5, 0.5, 0.5)})):
                mesh = iteration.meshes[f"{name}_lvl1" if level else name]
                mesh.geometry, mesh.data_order = io.Geometry.cartesian, "C"
                mesh.axis_labels = ["z", "y", "x"]
                mesh.set_grid_spacing(np.array([1e-6, 5e-7, 5e-7]) / 2**level)
                mesh.grid_global_offset, mesh.grid_unit_SI = [-8e-6, -6e-6, -5e-6], 1.0
                if name != "rho":
                    mesh.unit_dimension = _FIELD if name == "E" else _MAGNETIC
                mesh.set_attribute("fieldSmoothing", "none")
                for component, position in places.items():
                    values = random.standard_normal([side << level for side in SHAPE])
                    if level:
                        inside, values = values[REFINED].copy(), np.zeros_like(values)
                        values[REFINED] = inside
                    part = mesh[component]
                    part.reset_dataset(io.Dataset(values.dtype, list(values.shape)))
                    part.set_attribute("position", list(position), np.dtype("f8"))
                    part.unit_SI = 1.0
                    part.store_chunk(values)
                    series.flush()
        _write_electrons(series, iteration.particles["electrons"], random)
        iteration.close()
    series.close()
    return path


def _write_electrons(series: Any, electrons: Any, random: np.random.Generator) -> None:
    electrons.set_attribute("particleShape", 3.0)
    rows = io.Dataset(np.dtype("f8"), [70_000])
    for axis, side in zip("xyz", (5e-6, 6e-6, 8e-6), strict=True):
        part = electrons["position"][axis]
        part.reset_dataset(rows)
        part.store_chunk(random.uniform(-side, side, 70_000))
        part = electrons["positionOffset"][axis]
        part.reset_dataset(rows)
        part.make_constant(0.0)
        part = electrons["momentum"][axis]
        part.reset_dataset(rows)
        part.store_chunk(random.standard_normal(70_000) * 1e-22)
        series.flush()
    electrons["position"].unit_dimension = electrons["positionOffset"].unit_dimension = _LENGTH
    for name, value in (("mass", ELECTRON_MASS), ("charge", -_CHARGE), ("weighting", 40.0)):
        electrons[name][SCALAR].reset_dataset(rows)
        electrons[name][SCALAR].make_constant(value)
    electrons["mass"].unit_dimension = {io.Unit_Dimension.M: 1}
    ids = electrons["id"][SCALAR]
    ids.reset_dataset(io.Dataset(np.dtype("u8"), [70_000]))
    ids.store_chunk(random.permutation(70_000).astype("u8"))
    for name in electrons:
        electrons[name].set_attribute("macroWeighted", int(name == "weighting"), np.dtype("u4"))
        electrons[name].set_attribute("weightingPower", 1.0, np.dtype("f8"))


def write_picongpu(path: Path, numbers: Sequence[int] = (0, 50)) -> Path:
    """Write fields in units of the code, positions in cells, patches, a mesh of another grid."""
    length, time = 1.25e-7, 4e-16  # units of the code in SI
    series = io.Series(str(path), io.Access.create)
    series.set_software("PIConGPU", "0.7.0")
    series.set_attribute("unit_length", length)
    for number in numbers:
        iteration = series.write_iterations()[number]
        iteration.time, iteration.dt, iteration.time_unit_SI = float(number), 1.0, time
        random = np.random.default_rng(number + 1)
        shape = (8, 12, 4)
        for name, places, unit in (("E", _E, 1.3e13), ("B", _B, 4.2e4)):
            mesh = iteration.meshes[name]
            mesh.geometry, mesh.data_order = io.Geometry.cartesian, "C"
            mesh.axis_labels, mesh.grid_unit_SI = ["z", "y", "x"], length
            mesh.set_grid_spacing(np.array([0.75, 0.5, 0.75]))
            mesh.grid_global_offset = [0.0, 6.0 + number, 0.0]
            mesh.unit_dimension = _FIELD if name == "E" else _MAGNETIC
            for component, position in places.items():
                part = mesh[component]
                part.reset_dataset(io.Dataset(np.dtype("f4"), list(shape)))
                part.set_attribute("position", list(position), np.dtype("f4"))
                part.unit_SI = unit
                part.store_chunk(random.standard_normal(shape, np.float32))
        ids = iteration.meshes["idProvider_nextId"]
        ids.axis_labels, ids.grid_spacing = ["z", "y", "x"], [1.0] * 3
        ids.grid_global_offset = [0.0] * 3
        ids.reset_dataset(io.Dataset(np.dtype("u8"), [1, 2, 1]))
        ids.set_attribute("position", [0.0] * 3, np.dtype("f8"))
        ids.store_chunk(np.array([[[2**63 + 1], [7]]], np.uint64))
        electrons = iteration.particles["e"]
        count = 1000
        for k, axis in enumerate("zyx"):
            spacing = (0.75, 0.5, 0.75)[k] * length
            part = electrons["position"][axis]
            part.reset_dataset(io.Dataset(np.dtype("f4"), [count]))
            part.unit_SI = spacing
            part.store_chunk(random.random(count, np.float32))
            part = electrons["positionOffset"][axis]
            part.reset_dataset(io.Dataset(np.dtype("i4"), [count]))
            part.unit_SI = spacing
            first = 12 + 2 * number if axis == "y" else 0
            part.store_chunk(random.integers(first, first + shape[k], count).astype("i4"))
        weights = electrons["weighting"][SCALAR]
        weights.reset_dataset(io.Dataset(np.dtype("f4"), [count]))
        weights.store_chunk(random.random(count, np.float32))
        patches = electrons.particle_patches
        for name, values in (("numParticles", [600, 400]), ("numParticlesOffset", [0, 600])):
            part = patches[name][SCALAR]
            part.reset_dataset(io.Dataset(np.dtype("u8"), [2]))
            for index, value in enumerate(values):
                part.store(index, np.uint64(value))
        for name, sides in (("offset", [0.0, 6.0]), ("extent", [6.0, 6.0])):
            part = patches[name]["y"]
            part.reset_dataset(io.Dataset(np.dtype("f4"), [2]))
            for index, side in enumerate(sides):
                part.store(index, np.float32(side))
        iteration.close()
    series.close()
    return path


def write_modes(path: Path) -> Path:
    """Write fields as azimuthal modes, with components of different grids, and a 1-D mesh."""
    series = io.Series(str(path), io.Access.create)
    iteration = series.write_iterations()[3]
    iteration.time, iteration.dt, iteration.time_unit_SI = 3e-15, 1e-15, 1.0
    random = np.random.default_rng(3)
    for name, labels, shape, position in (
        ("E", ["r", "z"], (3, 5, 9), [0.5, 0.0]),
        ("density", ["z"], (7,), [0.5]),
    ):
        mesh = iteration.meshes[name]
        mesh.geometry = io.Geometry.thetaMode if len(labels) > 1 else io.Geometry.cartesian
        if len(labels) > 1:
            mesh.set_attribute("geometryParameters", "m=2;imag=+")
        mesh.axis_labels, mesh.data_order, mesh.grid_unit_SI = labels, "C", 1e-6
        mesh.set_grid_spacing(np.array([0.5, 0.25][: len(labels)]))
        mesh.grid_global_offset = [0.0, 10.0][-len(labels) :]
        for component in ("r", "t") if len(labels) > 1 else (SCALAR,):
            part = mesh[component]
            own = (3, 6, 9) if component == "t" else shape
            part.reset_dataset(io.Dataset(np.dtype("f8"), list(own)))
            part.set_attribute("position", position, np.dtype("f8"))
            part.store_chunk(random.random(own))
    iteration.close()
    series.close()
    return path


ENCODING = {
    "basePath",
    "closed",
    "iterationEncoding",
    "iterationFormat",
    "snapshot",
}
"""Attributes that state how iterations are in files."""


class _Reader:
    """Collects the attributes and values of a series."""

    def __init__(self, series: Any) -> None:
        self.series = series
        self.found: dict[str, Any] = {}
        self.add("", series)
        for number in series.iterations:
            iteration = series.iterations[number]
            iteration.open()
            self.add(f"{number}", iteration)
            self.add(f"{number}/meshes", iteration.meshes)
            self.add(f"{number}/particles", iteration.particles)
            for name in iteration.meshes:
                self.add_record(f"{number}/meshes/{name}", iteration.meshes[name])
            for name in iteration.particles:
                self.add_species(f"{number}/particles/{name}", iteration.particles[name])
            iteration.close()

    def add(self, place: str, node: Any) -> None:
        dtypes = node.attribute_dtypes
        for name in node.attributes:
            if name not in ENCODING:
                self.found[f"{place}@{name}"] = (str(dtypes[name]), node.get_attribute(name))

    def add_species(self, place: str, species: Any) -> None:
        self.add(place, species)
        for record in species:
            self.add_record(f"{place}/{record}", species[record])
        patches = species.particle_patches
        for record in patches:
            self.add_record(f"{place}/patches/{record}", patches[record])

    def add_record(self, place: str, record: Any) -> None:
        self.add(place, record)
        for name in record:
            part = record[name]
            short = "" if name == SCALAR else f"/{name}"
            self.add(f"{place}{short}", part)
            values = part.load_chunk() if hasattr(part, "load_chunk") else part.load()
            self.series.flush()
            self.found[f"{place}{short}"] = np.array(values)


def contents(path: Path | str) -> dict[str, Any]:
    """Return all attributes with their types, and all values, of a series, by their names."""
    options = '{"verify_homogeneous_extents": false}'
    series = io.Series(str(path), io.Access.read_only, options)
    found = _Reader(series).found
    series.close()
    return found


def assert_equal(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Assert that two results of `contents` are equal, bit for bit."""
    assert first.keys() == second.keys()
    for name, value in first.items():
        if isinstance(value, np.ndarray):
            assert value.dtype == second[name].dtype, name
            assert value.shape == second[name].shape, name
            assert value.tobytes() == second[name].tobytes(), name
        else:
            np.testing.assert_equal(second[name], value, name)


def write_plane(path: Path, order: str) -> tuple[Path, np.ndarray, np.ndarray]:
    """Write a 2-D mesh in x and z, x slowest; return its values and those of level 1.

    On level 1, two chunks are written.
    """
    random = np.random.default_rng(5)
    coarse, fine = random.random((70, 10)), random.random((140, 20))
    series = io.Series(str(path), io.Access.create)
    iteration = series.write_iterations()[7]
    iteration.time, iteration.dt, iteration.time_unit_SI = 0.0, 1.0, 1.0
    step = 1 if order == "C" else -1
    for name, values in (("rho", coarse), ("rho_lvl1", fine)):
        mesh = iteration.meshes[name]
        mesh.set_attribute("dataOrder", order)
        mesh.axis_labels, mesh.grid_unit_SI = ["x", "z"][::step], 1e-3
        mesh.set_grid_spacing(np.array([1.0, 2.0][::step]) * len(coarse) / len(values))
        mesh.grid_global_offset = [-35.0, 4.0][::step]
        mesh.set_attribute("position", [0.5, 0.5], np.dtype("f8"))
        mesh.reset_dataset(io.Dataset(values.dtype, list(values.shape)))
        if name == "rho":
            mesh.store_chunk(values)
            continue
        for part in (np.s_[8:32, 0:8], np.s_[32:48, 8:20]):
            start = [one.start for one in part]
            mesh.store_chunk(np.ascontiguousarray(values[part]), start, list(values[part].shape))
    iteration.close()
    series.close()
    return path, coarse, fine

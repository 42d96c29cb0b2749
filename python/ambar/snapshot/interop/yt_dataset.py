"""yt datasets of cells and particles, in memory.

Units, gamma and cosmology are those of yt's RAMSES frontend (yt 4.4): code_length is the side of
the box, all other code units are those of RAMSES.

``yt.load_octree`` refines all cells of an oct or none; RAMSES refines single cells. The dataset
therefore gets another index, to which octs are added one by one, as in yt's RAMSES frontend.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ambar import _core
from ambar.snapshot.field_names import quantity_of, resolve_all
from ambar.snapshot.run_info import RamsesInfo

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.run_info import RunInfo

# code_length is the side of the box, so that code_velocity is not code_length/code_time, and so on.
_UNITS = {
    "density": "code_density",
    "pressure": "code_pressure",
    "velocity": "code_velocity",
    "acceleration": "code_velocity/code_time",
    "specific_energy": "code_velocity**2",
    "magnetic_field": "code_magnetic",
    "length": "code_length",
    "mass": "code_mass",
    "time": "code_time",
}
_PARTICLE_NAMES = {"identity": "particle_index", "birth_time": "creation_time"}
# Names in the descriptors of RAMSES, and the names of these gas fields in yt.
_GAS_NAMES = {
    "thermal_pressure": ("pressure",),
    "potential": ("potential", "gravitational_potential"),
    "metallicity": ("metallicity",),
    **{f"acceleration_{axis}": (f"acceleration_{axis}",) for axis in "xyz"},
    **{
        name: (f"magnetic_field_{axis}_{side}",)
        for axis in "xyz"
        for side in ("left", "right")
        for name in (f"B_{axis}_{side}", f"B_{side}_{axis}")
    },
}


def cells_to_yt(amr: Amr, fields: list[str] | None = None) -> Any:
    """Return a yt octree dataset; the fields are ("stream", name), and yt derives others.

    Parameters
    ----------
    amr
        Cells in three dimensions that fill the box.
    fields
        Fields; by default all.

    Raises
    ------
    UnsupportedError
        If the data have fewer dimensions, or the leaf cells do not fill the box.
    """
    import yt

    info = amr.info
    _check_dimensions(info)
    names = [name for name in resolve_all(fields or amr.fields, amr.fields) if name != "domain"]
    table = amr.read(["level", "ix", "iy", "iz", *names])
    level = table["level"].astype(np.int64)
    index = np.stack([table["ix"], table["iy"], table["iz"]], axis=1)
    root = np.round(np.divide(info.box_size, amr.cell_size(0))).astype(np.int64)
    filled = float(np.ldexp(1.0, (-3 * level).astype(np.int32)).sum()) / root.prod()
    if filled != 1.0 or level.min() < 1:
        raise _core.UnsupportedError(
            "expected leaf cells of level 1 and finer that fill the box for yt, found cells that "
            f"fill {filled:.3g} of it; use all levels and no region"
        )
    octs = _octs(level, index)
    cell = (index & 1) @ np.array([4, 2, 1])
    data = {}
    for name in names:
        values = np.zeros((len(octs.level), 8))  # 0 in refined cells, which yt does not use
        values[octs.of_leaf, cell] = table[name]
        data["stream", name] = (values, _unit(name))
    dataset = yt.load_octree(
        np.zeros(1, dtype=np.uint8),  # a mask of refined cells, replaced by _octree_index
        data,
        domain_dimensions=2 * root,
        **_loader_options(info),
    )
    dataset._index_class = _octree_index(octs)
    dataset._field_info_class = _ramses_fields()
    return _with_attributes(dataset, info)


def particles_to_yt(particles: Particles) -> Any:
    """Return a yt particle dataset with fields ("io", "particle_mass") and so on.

    Birth times of cosmological runs are left out, with a warning: they are conformal times.

    Raises
    ------
    UnsupportedError
        If the data have fewer than three dimensions.
    """
    import yt

    info = particles.info
    _check_dimensions(info)
    table = particles.read()
    names = [name for name in table if not info.units.is_conformal(name)]
    if left_out := [name for name in table if name not in names]:
        warnings.warn(
            f"to_yt leaves out {', '.join(left_out)}: birth times of a cosmological run are "
            "conformal times, which are not converted; Particles.read() returns them unchanged",
            stacklevel=3,
        )
    data = {}
    for name in names:
        scale = _code_length(info) if quantity_of(name) == "length" else 1.0
        values = table[name].astype(np.float64) / scale
        data[_PARTICLE_NAMES.get(name, f"particle_{name}")] = (values, _unit(name))
    return _with_attributes(yt.load_particles(data, **_loader_options(info)), info)


def _check_dimensions(info: RunInfo) -> None:
    if info.ndim != 3:
        raise _core.UnsupportedError(f"expected data of 3 dimensions for yt, found {info.ndim}")


def _code_length(info: RunInfo) -> float:
    """Return yt's code_length in code units: the side of a RAMSES box, otherwise 1."""
    return info.boxlen if isinstance(info, RamsesInfo) else 1.0


def _unit(name: str) -> str:
    return _UNITS.get(quantity_of(name) or "", "dimensionless")


def _loader_options(info: RunInfo) -> dict[str, Any]:
    """Return box, time, units and parameters as arguments of yt's loaders."""
    units = info.units
    gauss = math.sqrt(4 * math.pi * units.unit_d) * units.unit_v
    length = _code_length(info)
    sides = zip(info.lower, info.box_size, strict=True)
    return {
        "bbox": np.array([[start, start + side] for start, side in sides]) / length,
        "sim_time": info.age("s") / units.unit_t if units.cosmological else info.time,
        "length_unit": (units.unit_l * length, "cm"),
        "mass_unit": (units.unit_m, "g"),
        "time_unit": (units.unit_t, "s"),
        "velocity_unit": (units.unit_v, "cm/s"),
        "magnetic_unit": (gauss, "gauss"),
        "parameters": dataclasses.asdict(info),
    }


def _with_attributes(dataset: Any, info: RunInfo) -> Any:
    """Return the dataset after setting attributes that yt's loaders do not set."""
    from yt.utilities.physical_constants import kb, mp

    units = info.units
    dataset.density_unit = dataset.quan(units.unit_d, "g/cm**3")
    dataset.pressure_unit = dataset.quan(units.unit_d * units.unit_v**2, "dyne/cm**2")
    dataset.temperature_unit = (dataset.quan(units.unit_v, "cm/s") ** 2 * mp / kb).in_units("K")
    if isinstance(info, RamsesInfo) and info.gamma is not None:
        dataset.gamma = info.gamma
    if isinstance(info, RamsesInfo) and info.cosmological:
        dataset.cosmological_simulation = True
        dataset.current_redshift = info.redshift
        dataset.omega_matter = info.omega_m
        dataset.omega_lambda = info.omega_l
        dataset.hubble_constant = info.H0 / 100.0
    dataset.set_units()
    dataset.setup_cosmology()
    return dataset


def _ramses_fields() -> type:
    """Return a class of yt fields with the names and derived fields of yt's RAMSES frontend."""
    from yt.frontends.stream.fields import StreamFieldInfo
    from yt.utilities.physical_constants import boltzmann_constant_cgs, mass_hydrogen_cgs

    def temperature(_field: Any, data: Any) -> Any:
        ratio = data["gas", "pressure"] / data["gas", "density"]
        return ratio * (mass_hydrogen_cgs / boltzmann_constant_cgs)

    def magnetic(axis: str) -> Any:
        def mean(_field: Any, data: Any) -> Any:
            left, right = (data["gas", f"magnetic_field_{axis}_{s}"] for s in ("left", "right"))
            return (left + right) / 2

        return mean

    class RamsesFields(StreamFieldInfo):  # type: ignore[misc] # yt has no types
        known_other_fields = (
            *StreamFieldInfo.known_other_fields,
            *((name, (_unit(name), list(known), None)) for name, known in _GAS_NAMES.items()),
        )

        def setup_fluid_fields(self) -> None:
            super().setup_fluid_fields()
            system = self.ds.unit_system
            if ("gas", "pressure") in self and ("gas", "density") in self:
                # yt's RAMSES frontend assumes a mean molecular weight of 1 without a table.
                for name in ("temperature_over_mu", "temperature"):
                    self.add_field(("gas", name), temperature, "cell", units=system["temperature"])
            for axis in "xyz":
                if ("gas", f"magnetic_field_{axis}_left") in self:
                    name, units = f"magnetic_field_{axis}", system["magnetic_field_cgs"]
                    self.add_field(("gas", name), magnetic(axis), "cell", units=units)

    return RamsesFields


class Octs(NamedTuple):
    """The octs (refined cells) of a tree, the coarsest first."""

    level: np.ndarray
    """Level of the refined cell; the level of its children is one higher."""
    indices: np.ndarray
    """Index of the refined cell on its level, shape (n, 3)."""
    of_leaf: np.ndarray
    """The number of the oct of each leaf."""


def _octs(level: np.ndarray, index: np.ndarray) -> Octs:
    """Return the octs that contain leaves, which fill the box and are in Morton order.

    The first leaf of a refined cell is at its lower corner; `ancestors` counts the refined cells of
    which a leaf is the first.
    """
    bits = np.bitwise_or.reduce(index, axis=1)
    lowest = np.where(bits == 0, np.int64(1) << 62, bits & -bits)
    ancestors = np.minimum(np.log2(lowest.astype(np.float64)).astype(np.int64), level)
    of_leaf = np.empty(len(level), dtype=np.int64)
    levels, places, before = [], [], 0
    for depth in range(int(level.max())):
        first = np.flatnonzero((level - ancestors <= depth) & (depth < level))
        children = np.flatnonzero(level == depth + 1)
        of_leaf[children] = before + first.searchsorted(children, side="right") - 1
        levels.append(np.full(len(first), depth))
        places.append(index[first] >> (level[first] - depth)[:, None])
        before += len(first)
    return Octs(np.concatenate(levels), np.concatenate(places), of_leaf)


def _octree_index(octs: Octs) -> type:
    """Return a class of yt's index that contains `octs`."""
    from yt.frontends.stream.data_structures import StreamOctreeHandler
    from yt.geometry.oct_container import OctreeContainer

    class OctIndex(StreamOctreeHandler):  # type: ignore[misc] # yt has no types
        def _initialize_oct_handler(self) -> None:
            dataset = self.dataset
            left, right = dataset.domain_left_edge, dataset.domain_right_edge
            roots = dataset.domain_dimensions // 2
            sizes = (right.d - left.d) / roots / 2.0 ** octs.level[:, None]
            handler = OctreeContainer(roots, left, right, partial_coverage=1, num_zones=2)
            handler.allocate_domains([len(octs.level)])
            handler.add(1, -1, (octs.indices + 0.5) * sizes, levels=octs.level.astype(np.uint64))
            self.oct_handler = handler
            self.max_level = dataset.max_level = int(octs.level.max())

    return OctIndex

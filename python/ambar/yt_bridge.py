"""yt datasets of cells and particles, in memory.

yt's own loader of octrees (``yt.load_octree``) refines all cells of an oct or none, where RAMSES
refines one by one; so the dataset it makes is given an index whose octs are added one by one,
the way yt's RAMSES reader does it (yt 4.4).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ambar import _core
from ambar.names import quantity_of

if TYPE_CHECKING:
    from ambar.amr import Amr
    from ambar.info import RunInfo
    from ambar.rows import Particles

_UNITS = {
    "density": "code_mass/code_length**3",
    "pressure": "code_mass/code_length/code_time**2",
    "velocity": "code_length/code_time",
    "acceleration": "code_length/code_time**2",
    "specific_energy": "code_length**2/code_time**2",
    "magnetic_field": "code_magnetic",
    "length": "code_length",
    "mass": "code_mass",
    "time": "code_time",
}
_PARTICLE_NAMES = {"identity": "particle_index", "birth_time": "creation_time"}


def cells_to_yt(amr: Amr, fields: list[str] | None = None) -> Any:
    """Return a yt octree dataset; the fields are ("stream", name), yt's own ones follow.

    Parameters
    ----------
    amr
        Cells in three dimensions that fill the box.
    fields
        The fields to take; all by default.

    Raises
    ------
    UnsupportedError
        If the data have fewer dimensions, or the leaf cells do not fill the box.
    """
    import yt

    _check_dimensions(amr.info)
    names = [name for name in (fields or amr.fields) if name != "domain"]
    table = amr.cells(["level", "ix", "iy", "iz", *names])
    level = table["level"].astype(np.int64)
    place = np.stack([table["ix"], table["iy"], table["iz"]], axis=1)
    root = np.round(np.divide(amr.info.box_size, amr.cell_size(0))).astype(np.int64)
    filled = float(np.ldexp(1.0, (-3 * level).astype(np.int32)).sum()) / root.prod()
    if filled != 1.0 or level.min() < 1:
        raise _core.UnsupportedError(
            f"yt needs leaf cells of level 1 and finer that fill the box; these fill {filled:.3g} "
            "of it; read all levels and no region"
        )
    octs = _octs(level, place)
    cell = (place & 1) @ np.array([4, 2, 1])
    data = {}
    for name in names:
        values = np.zeros((len(octs.level), 8))  # 0 in refined cells, which yt never shows
        values[octs.of_leaf, cell] = table[name]
        data["stream", name] = (values, _unit(name))
    dataset = yt.load_octree(
        np.zeros(1, dtype=np.uint8),  # of an octree that _index_of replaces
        data,
        domain_dimensions=2 * root,
        **_frame(amr.info),
    )
    dataset._index_class = _index_of(octs)
    return dataset


def particles_to_yt(particles: Particles) -> Any:
    """Return a yt particle dataset with fields ("io", "particle_mass") and so on.

    Raises
    ------
    UnsupportedError
        If the data have fewer than three dimensions.
    """
    import yt

    _check_dimensions(particles.info)
    table = particles.read()
    data = {
        _PARTICLE_NAMES.get(name, f"particle_{name}"): (column.astype(np.float64), _unit(name))
        for name, column in table.items()
    }
    return yt.load_particles(data, **_frame(particles.info))


def _check_dimensions(info: RunInfo) -> None:
    if info.ndim != 3:
        raise _core.UnsupportedError(f"yt takes data in 3 dimensions; these have {info.ndim}")


def _unit(name: str) -> str:
    return _UNITS.get(quantity_of(name) or "", "dimensionless")


def _frame(info: RunInfo) -> dict[str, Any]:
    """Return box, time and units, as yt's loaders take them."""
    units = info.units
    gauss = math.sqrt(4 * math.pi * units.unit_d) * units.unit_v
    return {
        "bbox": np.array(
            [[start, start + side] for start, side in zip(info.lower, info.box_size, strict=True)]
        ),
        "sim_time": info.time,
        "length_unit": (units.unit_l, "cm"),
        "mass_unit": (units.unit_m, "g"),
        "time_unit": (units.unit_t, "s"),
        "velocity_unit": (units.unit_v, "cm/s"),
        "magnetic_unit": (gauss, "gauss"),
    }


class Octs(NamedTuple):
    """The octs (refined cells) of a tree, the coarsest first."""

    level: np.ndarray
    """Level of the refined cell; its children are of the next one."""
    place: np.ndarray
    """Place of the refined cell at its level, (n, 3)."""
    of_leaf: np.ndarray
    """For each leaf, the oct that it is a child of."""


def _octs(level: np.ndarray, place: np.ndarray) -> Octs:
    """Return the octs above leaves that fill the box and are in Morton order.

    A leaf is the first one in those refined cells above it at whose level its place is at the
    cell's lower corner; the other leaves in them follow.
    """
    bits = np.bitwise_or.reduce(place, axis=1)
    lowest = np.where(bits == 0, np.int64(1) << 62, bits & -bits)
    opened = np.minimum(np.log2(lowest.astype(np.float64)).astype(np.int64), level)
    of_leaf = np.empty(len(level), dtype=np.int64)
    levels, places, before = [], [], 0
    for depth in range(int(level.max())):
        first = np.flatnonzero((level - opened <= depth) & (depth < level))
        children = np.flatnonzero(level == depth + 1)
        of_leaf[children] = before + first.searchsorted(children, side="right") - 1
        levels.append(np.full(len(first), depth))
        places.append(place[first] >> (level[first] - depth)[:, None])
        before += len(first)
    return Octs(np.concatenate(levels), np.concatenate(places), of_leaf)


def _index_of(octs: Octs) -> type:
    """Return a class of yt's index that holds `octs`."""
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
            handler.add(1, -1, (octs.place + 0.5) * sizes, levels=octs.level.astype(np.uint64))
            self.oct_handler = handler
            self.max_level = dataset.max_level = int(octs.level.max())

    return OctIndex

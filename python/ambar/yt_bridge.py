"""yt datasets of cells and particles, in memory.

yt's in-memory octree (``yt.load_octree``) takes a mask of the tree in depth-first order, 1 for a
refined node and 0 for a leaf, and the leaves' values in that order. In yt's order z varies fastest;
in ours, x does: the leaves are sorted anew.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.names import quantity_of

if TYPE_CHECKING:
    from ambar.amr import Amr
    from ambar.info import Info
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
    root = amr.info.root
    filled = float(np.ldexp(1.0, (-3 * level).astype(np.int32)).sum())
    if filled != math.prod(root):
        raise _core.UnsupportedError(
            f"yt needs leaf cells that fill the box; these fill {filled / math.prod(root):.3g} "
            "of it; read all levels and no region"
        )
    order = _depth_first(level, place, root)
    data = {
        ("stream", name): (table[name][order, None].astype(np.float64), _unit(name))
        for name in names
    }
    dataset = yt.load_octree(
        _mask(level[order], place[order]),
        data,
        num_zones=1,
        partial_coverage=0,
        domain_dimensions=np.array(root),
        **_frame(amr.info),
    )
    # yt 4.4 sets this on the dataset only, and its spheres ask the index.
    dataset.index.max_level = dataset.max_level
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


def _check_dimensions(info: Info) -> None:
    if info.ndim != 3:
        raise _core.UnsupportedError(f"yt takes data in 3 dimensions; these have {info.ndim}")


def _unit(name: str) -> str:
    return _UNITS.get(quantity_of(name) or "", "dimensionless")


def _frame(info: Info) -> dict[str, Any]:
    """Return box, time and units, as yt's loaders take them."""
    units = info.units
    gauss = math.sqrt(4 * math.pi * units.unit_d) * units.unit_v
    return {
        "bbox": np.array([[0.0, side] for side in info.box_size]),
        "sim_time": info.time,
        "length_unit": (units.unit_l, "cm"),
        "mass_unit": (units.unit_m, "g"),
        "time_unit": (units.unit_t, "s"),
        "velocity_unit": (units.unit_v, "cm/s"),
        "magnetic_unit": (gauss, "gauss"),
    }


def _depth_first(level: np.ndarray, place: np.ndarray, root: tuple[int, ...]) -> np.ndarray:
    """Return the order of the leaves in yt's depth-first walk.

    Each leaf's path from its root cell is a text with a letter per level, so that any number of
    levels sorts; the root cells are walked with z fastest, too.
    """
    deepest = int(level.max(initial=1)) or 1
    lattice = place << (deepest - level)[:, None]
    letters = np.empty((len(level), deepest), dtype=np.uint8)
    for depth in range(deepest):
        bits = (lattice >> (deepest - 1 - depth)) & 1
        letters[:, depth] = ord("1") + bits @ np.array([4, 2, 1])
    order = letters.view(f"S{deepest}").ravel().argsort(kind="stable")
    roots = (place >> level[:, None]) @ np.array([root[1] * root[2], root[2], 1])
    return order[roots[order].argsort(kind="stable")]


def _mask(level: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return yt's mask for leaves in depth-first order.

    A leaf is preceded by the nodes whose first leaf it is: one per level at whose end its place
    is even in all dimensions.
    """
    bits = np.bitwise_or.reduce(place, axis=1)
    lowest = np.where(bits == 0, np.int64(1) << 62, bits & -bits)
    opened = np.minimum(np.log2(lowest.astype(np.float64)).astype(np.int64), level)
    ends = np.cumsum(opened + 1) - 1
    mask = np.ones(int(ends[-1]) + 1, dtype=np.uint8)
    mask[ends] = 0
    return mask

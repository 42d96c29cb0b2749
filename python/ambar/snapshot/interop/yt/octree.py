"""Oct containers of yt: one for each domain, and one of the whole tree for ghost zones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from yt.geometry.oct_container import RAMSESOctreeContainer

from ambar.snapshot.interop.yt.octs import CellIndex, Domain, Leaves, Octs, child

Field = tuple[str, str]

_VELOCITIES = ("velocity_x", "velocity_y", "velocity_z")
_PRESSURE_AVERAGED = r"\binterpol_var\s*=\s*[12]"
"""A line of a namelist with which RAMSES averages pressure instead of energy."""


class DomainOfOcts:
    """A domain and its octs, which are read when first asked for."""

    def __init__(self, index: Any, number: int) -> None:
        self.ds = index.dataset
        self.domain_id = number + 1
        self._index = index
        self._number = number

    def read_octs(self) -> Octs:
        """Return the octs of the domain."""
        domain = self._domain
        amr = self.ds.snapshot.amr
        return Octs.of(domain, Leaves.read(amr, domain.chunks), self.ds.coarsest)

    @property
    def _domain(self) -> Domain:
        domain: Domain = self._index.domain_rows[self._number]
        return domain

    @property
    def oct_handler(self) -> Any:
        """The octs as yt has them, with those of other domains around and in them."""
        return self._tree[0]

    @property
    def rows(self) -> np.ndarray:
        """The rows of the cells of the octs: shape (octs, 8); -1 for refined cells."""
        return self._tree[1]

    @cached_property
    def _tree(self) -> tuple[Any, np.ndarray]:
        octs, ds, me = self.read_octs(), self.ds, self.domain_id
        foreign_octs = [self._domain.ancestors, self._domain.octs_in_later_domains]
        foreign_domain = 2 if me == 1 else 1
        counts = np.zeros(max(me, 2), dtype=np.int64)
        counts[me - 1] = len(octs.level)
        counts[foreign_domain - 1] = sum(map(len, foreign_octs))
        levels = np.concatenate([octs.level, *map(_levels, foreign_octs)])
        handler = new_handler(ds, counts, int(np.count_nonzero(levels == ds.coarsest)))
        before, after = (np.array(cells, np.int64).reshape(-1, 4) for cells in foreign_octs)
        add_octs(handler, ds, foreign_domain, before[:, 0], before[:, 1:])
        add_octs(handler, ds, me, octs.level, octs.index)
        add_octs(handler, ds, foreign_domain, after[:, 0], after[:, 1:])
        handler.finalize()
        return handler, octs.rows

    def included(self, selector: Any) -> bool:
        """Return whether cells of the domain may be selected."""
        if getattr(selector, "domain_id", None) is not None:
            return bool(selector.domain_id == self.domain_id)
        boxes = self._index.boxes_of(self._number)
        levels = np.full((len(boxes), 1), max(int(selector.min_level), 0), dtype=np.int32)
        left, right = (np.ascontiguousarray(boxes[:, side]) for side in (0, 1))
        return bool(selector.select_grids(left, right, levels).any())


def _levels(cells: list[CellIndex]) -> np.ndarray:
    return np.array([cell.level for cell in cells], dtype=np.int64)


def new_handler(ds: Any, counts: np.ndarray, roots: int) -> Any:
    """Return a tree of yt for as many octs of each domain, `roots` of them of the root mesh."""
    edges = ds.domain_left_edge, ds.domain_right_edge
    handler = RAMSESOctreeContainer(ds.domain_dimensions / 2, *edges)
    handler.allocate_domains(counts, roots)
    return handler


def add_octs(handler: Any, ds: Any, domain: int, level: np.ndarray, index: np.ndarray) -> None:
    """Add octs, the coarsest first."""
    if not len(level):
        return
    depth = level - ds.coarsest
    sides = np.ldexp(1.0, (-depth).astype(np.int32))[:, None]
    root = ds.domain_width.d / (ds.domain_dimensions / 2)
    handler.add(domain, -1, (index + 0.5) * sides * root, levels=depth.astype(np.uint64))


class WholeTree:
    """All octs, for cells beside those of a domain (ghost zones): whole fields are read for them.

    Refined cells, which are not stored, get the values that RAMSES writes there (``upload_fine``):
    the mean of the eight parts, for velocities that of momentum, and for pressure, unless the
    namelist sets ``interpol_var``, that of the energy of gas, without magnetic fields.
    """

    def __init__(self, index: Any) -> None:
        self._ds = ds = index.dataset
        octs = [domain.read_octs() for domain in index.domains]
        counts = np.array([len(part.level) for part in octs])
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._rows = np.concatenate([part.rows for part in octs])
        level = np.concatenate([part.level for part in octs])
        first = np.concatenate([part.first for part in octs])
        cell = np.concatenate([child(part.index) for part in octs])
        self.oct_handler = new_handler(ds, counts, int(np.count_nonzero(level == ds.coarsest)))
        for domain, part in zip(index.domains, octs, strict=True):
            add_octs(self.oct_handler, ds, domain.domain_id, part.level, part.index)
        self.oct_handler.finalize()
        self._parents = list(_parents(level, first, cell))
        self._last: dict[Field, np.ndarray] = {}

    def values(
        self, field: Field, domains: np.ndarray, octs: np.ndarray, cells: np.ndarray
    ) -> np.ndarray:
        """Return a field in cells: of octs, by their numbers in their domains. NaN outside."""
        whole = self._last.get(field)
        if whole is None:
            whole = self._field(field)
            self._last = {field: whole}
        found = np.full(len(octs), np.nan)
        inside = octs >= 0
        numbers = self._starts[domains[inside] - 1] + octs[inside]
        found[inside] = whole[numbers, cells[inside]]
        return found

    def _field(self, field: Field) -> np.ndarray:
        """Return a field in all cells of the octs: shape (octs, 8)."""
        name = self._ds.fluids[field]
        available = set(self._ds.snapshot.amr.fields)
        if name in _VELOCITIES and "density" in available:
            return self._velocity(name)
        has_energy = {"density", *_VELOCITIES} <= available and "B_x_left" not in available
        interpolates = re.search(_PRESSURE_AVERAGED, self._ds.info.namelist, re.IGNORECASE)
        if name in ("pressure", "thermal_pressure") and has_energy and not interpolates:
            return self._pressure(name)
        table = self._cells([name])
        self._average(table.values())
        return table[name]

    def _velocity(self, name: str) -> np.ndarray:
        """Return a velocity; in refined cells the mean weighted with density."""
        table = self._cells([name, "density"])
        table[name] *= table["density"]
        self._average(table.values())
        return np.asarray(table[name] / table["density"])

    def _pressure(self, name: str) -> np.ndarray:
        """Return the pressure; in refined cells that of the mean energy without the motion."""
        table = self._cells([name, "density", *_VELOCITIES])
        own, density = table[name], table["density"]
        momenta = [table[velocity] * density for velocity in _VELOCITIES]
        inverse = self._ds.gamma - 1
        energy = own / inverse + sum(momentum**2 for momentum in momenta) / (2 * density)
        self._average([energy, density, *momenta])
        motion = sum(momentum**2 for momentum in momenta) / (2 * density)
        return np.where(self._rows < 0, (energy - motion) * inverse, own)

    def _cells(self, columns: list[str]) -> dict[str, np.ndarray]:
        """Return columns in all cells of the octs, and 1 in refined cells."""
        table = self._ds.snapshot.amr._read_arrays(columns)
        is_refined = self._rows < 0
        return {
            name: np.where(is_refined, 1.0, values[self._rows]) for name, values in table.items()
        }

    def _average(self, columns: Iterable[np.ndarray]) -> None:
        """Set refined cells to the mean of their eight parts."""
        for values in columns:
            for octs, parents, cells in self._parents:
                values[parents, cells] = values[octs].mean(axis=1)


def _parents(
    level: np.ndarray, first: np.ndarray, cell: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the octs of each level, the finest first, their parents, and the cells there."""
    for depth in range(int(level.max()), int(level.min()), -1):
        octs, above = np.flatnonzero(level == depth), np.flatnonzero(level == depth - 1)
        parents = above[first[above].searchsorted(first[octs], side="right") - 1]
        yield octs, parents, cell[octs]

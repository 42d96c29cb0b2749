"""Writes the amr, hydro, grav and rt files of a synthetic RAMSES output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.helpers.ramses_outputs.records import binary128, record
from tests.helpers.ramses_outputs.spec import Array, Ints, Spec
from tests.helpers.ramses_outputs.tree import Bools, Level, random_levels, share_out

POISON = -7.0e33
"""What ghost and boundary octs hold: a reader that lets one through cannot go unnoticed."""
GRID_MAX = 5000
CHANCES = {1: 0.45, 2: 0.4, 3: 0.3}
"""Of a cell to be refined, by dimensions: the deepest trees stay small."""
SPECIALS = (np.nan, np.inf, -np.inf, -0.0, 1e-310, 1e-42, -1.5)


@dataclass
class Tree:
    """The cells of an output and their values."""

    levels: list[Level]
    depth: int
    """Levels the files have room for."""
    bounds: list[int]
    """Keys at which the domains begin, and the end of the last one."""
    fields: dict[str, tuple[str, ...]]
    """Field names by kind of file."""
    values: list[dict[str, Array]] = field(default_factory=list)
    """Per level and kind of file: (fields, octs, cells)."""

    def keys(self, parts: int) -> list[int]:
        """Return `bounds` with each domain's range in `parts` parts, as `bound_key` has them."""
        starts, ends = self.bounds[:-1], self.bounds[1:]
        pairs = list(zip(starts, ends, strict=True))
        inner = [a + (b - a) * part // parts for a, b in pairs for part in range(parts)]
        return [*inner, self.bounds[-1]]


def make_tree(rng: np.random.Generator, spec: Spec) -> Tree:
    """Return a random tree with random values."""
    chance = CHANCES[spec.ndim]
    levels = random_levels(rng, spec.box, spec.level_min, spec.level_max, chance)
    depth = spec.level_max + 1
    bounds = share_out(levels, spec.box, spec.domains, depth + 1, spec.ordering)
    fields: dict[str, tuple[str, ...]] = {}
    if spec.hydro:
        fields["hydro"] = spec.hydro
    if spec.gravity:
        density = ("particle_density",) if spec.gravity == "density" else ()
        accelerations = (f"acceleration_{axis}" for axis in spec.axes)
        fields["grav"] = (*density, "potential", *accelerations)
    if spec.groups:
        parts = ("", *(f"_{axis}" for axis in spec.axes))
        groups = range(1, spec.groups + 1)
        fields["rt"] = tuple(f"photon_flux_{g:02d}{part}" for g in groups for part in parts)
    tree = Tree(levels, depth, bounds, fields)
    for level in levels:
        shapes = {kind: (len(names), *level.refined.shape) for kind, names in fields.items()}
        tree.values.append({kind: _reals(rng, spec, shape) for kind, shape in shapes.items()})
    return tree


def _reals(rng: np.random.Generator, spec: Spec, shape: tuple[int, ...]) -> Array:
    values = (rng.random(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(spec.real)
    for special in SPECIALS if spec.specials else ():
        values.flat[rng.integers(0, values.size, 1 + values.size // 500)] = special
    return values


class DomainFiles:
    """The files of one domain: the octs in `held`, those of a level and owner in random order."""

    def __init__(
        self, spec: Spec, tree: Tree, domain: int, held: list[Bools], rng: np.random.Generator
    ) -> None:
        self.spec, self.tree, self.domain = spec, tree, domain
        self.counts = np.zeros((tree.depth, spec.domains + spec.boundaries), np.int64)
        self.counts[0, spec.domains :] = 1
        self.octs: dict[tuple[int, int], Ints] = {}
        self.numbers = [np.zeros(len(level.owner), np.int64) for level in tree.levels]
        self.used = 0
        for i, level in enumerate(tree.levels):
            for owner in range(spec.domains):
                chosen = rng.permutation(np.flatnonzero(held[i] & (level.owner == owner)))
                self.octs[i, owner] = chosen
                self.counts[i, owner] = len(chosen)
                self.numbers[i][chosen] = self.used + 1 + np.arange(len(chosen))
                self.used += len(chosen)

    def write(self, place: Path) -> None:
        """Write the files into the folder `place`."""
        ending = f"_{self.spec.number:05d}.out{self.domain + 1:05d}"
        blocks = [(i, block) for i, row in enumerate(self.counts) for block in range(len(row))]
        bodies = [self._tree_block(i, block) for i, block in blocks]
        (place / f"amr{ending}").write_bytes(self._amr_head() + b"".join(bodies))
        for kind in self.tree.fields:
            bodies = [self._cell_block(kind, i, block) for i, block in blocks]
            (place / f"{kind}{ending}").write_bytes(self._cell_head(kind) + b"".join(bodies))

    def _amr_head(self) -> bytes:
        spec, depth = self.spec, self.tree.depth
        lists, walls = np.split(self.counts, [spec.domains], axis=1)
        numbers = [[spec.domains], [spec.ndim], spec.coarse, [depth], [GRID_MAX]]
        numbers += [[spec.boundaries], [self.used]]
        times = [[1.0], [1.0], [0.25], [0.0] * depth, [0.0] * depth]
        cosmology = [0.3, 0.7, 0.0, 0.05, 70.0, 0.1, 1.0]
        reals = [[0.0] * 3, cosmology, [spec.expansion, 0.0, 0.0, 0.0, 0.0], [0.0]]
        totals = np.zeros((depth, 10), np.int64)
        totals[: len(self.tree.levels), 0] = [len(level.owner) for level in self.tree.levels]
        chains: list[Sequence[int] | Ints] = [lists * 0, lists * 0, lists, totals]
        chains += [walls * 0, walls * 0, walls] if spec.boundaries else []
        coarse = int(np.prod(spec.coarse))
        records = [record(data) for data in numbers]
        records += [record([spec.boxlen], spec.real), record([1, 2, 2])]
        records += [record(data, spec.real) for data in times]
        records += [record([3, 3]), *(record(data, spec.real) for data in reals)]
        records += [record(data) for data in chains]
        records += [record([0] * 5), record(spec.ordering.ljust(128).encode()), *self._ordering()]
        records += [record([value] * coarse) for value in (1, 0, 1)]
        return b"".join(records)

    def _ordering(self) -> list[bytes]:
        spec = self.spec
        if spec.ordering == "bisection":
            nodes = 2 ** ((spec.domains - 1).bit_length() + 1) - 1
            sides = spec.domains * spec.ndim
            walls, corners = [0.5] * nodes, ([0.0] * sides, [1.0] * sides)
            tree = [record([0] * 2 * nodes), record([0] * nodes)]
            return [record(walls, spec.real), *tree, *(record(x, spec.real) for x in corners)]
        keys = self.tree.keys(spec.overload)
        return [record(b"".join(map(binary128, keys))) if spec.quad else record(keys, "<f8")]

    def _tree_block(self, i: int, block: int) -> bytes:
        if not self.counts[i, block]:
            return b""
        if block >= self.spec.domains:
            return self._wall_block(block - self.spec.domains)
        octs, level, ndim = self.octs[i, block], self.tree.levels[i], self.spec.ndim
        numbers, nothing = self.numbers[i][octs], [0] * len(octs)
        records = [record(numbers), record(np.roll(numbers, -1)), record(np.roll(numbers, 1))]
        centres = (level.father[octs] + 0.5) * 0.5**i + [low for low, _ in self.spec.layers]
        records += [record(centre, self.spec.real) for centre in centres.T]
        father = np.ones(len(octs), np.int64)
        if i > 0:
            father += self.numbers[i - 1][level.parent[octs]] + GRID_MAX * level.slot[octs]
        records += [record(father), *[record(nothing)] * 2 * ndim]
        children = np.zeros(level.refined.shape, np.int64)
        if i + 1 < len(self.tree.levels):
            below = self.tree.levels[i + 1]
            children[below.parent, below.slot] = self.numbers[i + 1]
        records += [record(children[octs, cell]) for cell in range(2**ndim)]
        records += [record(level.owner[octs] + 1)] * 2**ndim + [record(nothing)] * 2**ndim
        return b"".join(records)

    def _wall_block(self, wall: int) -> bytes:
        """Return one oct of level 1 in a boundary cell beside the box."""
        spec = self.spec
        sides = [(a, side) for a in range(spec.ndim) for side in (0, 1) if spec.layers[a][side]]
        axis, side = sides[wall]
        centre = [low + 0.5 for low, _ in spec.layers]
        centre[axis] = 0.5 if side == 0 else spec.layers[axis][0] + spec.box[axis] + 0.5
        records = [record([4000 + wall]), record([0]), record([0])]
        records += [record([x], spec.real) for x in centre]
        records += [record([0])] * (1 + 2 * spec.ndim + 3 * 2**spec.ndim)
        return b"".join(records)

    def _cell_head(self, kind: str) -> bytes:
        spec = self.spec
        numbers = [spec.domains, len(self.tree.fields[kind]), self.tree.depth, spec.boundaries]
        if kind == "grav":
            return b"".join(record([n]) for n in numbers)
        numbers.insert(2, spec.ndim)
        return b"".join(record([n]) for n in numbers) + record([1.4], spec.real)

    def _cell_block(self, kind: str, i: int, block: int) -> bytes:
        count = int(self.counts[i, block])
        head = record([i + 1]) + record([count])
        if count == 0:
            return head
        cells, fields = range(2**self.spec.ndim), range(len(self.tree.fields[kind]))
        if block != self.domain:
            poison = record([POISON] * count, self.spec.real)
            return head + poison * len(cells) * len(fields)
        values = self.tree.values[i][kind][:, self.octs[i, block]]
        records = [record(values[n, :, cell], self.spec.real) for cell in cells for n in fields]
        return head + b"".join(records)

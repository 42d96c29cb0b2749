"""Random refinement trees, shared out among domains as RAMSES does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.helpers.ramses_outputs.spec import Ints

Bools = NDArray[np.bool_]


TURNS: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {
    1: [((0,), (0,))] * 2,
    2: [((1, 0), (0, 0)), ((0, 1), (0, 0)), ((0, 1), (0, 0)), ((1, 0), (1, 1))],
    3: [
        ((2, 0, 1), (0, 0, 0)),
        ((1, 2, 0), (0, 0, 0)),
        ((1, 2, 0), (0, 0, 0)),
        ((0, 1, 2), (0, 1, 1)),
        ((0, 1, 2), (0, 1, 1)),
        ((1, 2, 0), (1, 0, 1)),
        ((1, 2, 0), (1, 0, 1)),
        ((2, 0, 1), (1, 1, 0)),
    ],
}
"""How the Hilbert curve is turned inside each step: which axes are taken, and which mirrored."""


@dataclass
class Level:
    """The octs whose cells are of one level: `n` octs of `2**ndim` cells, x the lowest bit."""

    father: Ints
    """(n, ndim) coordinates of the father cells, in cells of the level above."""
    parent: Ints
    """(n,) index of the oct that holds the father cell, in the level above."""
    slot: Ints
    """(n,) which of that oct's cells the father cell is."""
    refined: Bools
    """(n, 2**ndim) which cells have an oct of their own on the next level."""
    owner: Ints
    """(n,) 0-based domain; an oct goes with its father cell."""

    def cells(self) -> Ints:
        """Return the (n, 2**ndim, ndim) coordinates of the cells, in cells of this level."""
        return self.father[:, None, :] * 2 + corners(self.father.shape[1])[None, :, :]


def corners(ndim: int) -> Ints:
    """Return the (2**ndim, ndim) offsets of an oct's cells."""
    return np.array(
        [[(cell >> axis) & 1 for axis in range(ndim)] for cell in range(2**ndim)], np.int64
    )


def random_levels(
    rng: np.random.Generator, root: tuple[int, ...], level_min: int, level_max: int, chance: float
) -> list[Level]:
    """Return levels 1 to `level_max` of a tree in `root` coarse cells, all owned by domain 0.

    From `level_min` on a cell is refined with probability `chance`, and one cell always.
    """
    ndim = len(root)
    father = np.stack(
        [axis.ravel() for axis in np.meshgrid(*map(np.arange, root), indexing="ij")], axis=1
    )
    parent = np.zeros(len(father), np.int64)
    slot = np.zeros(len(father), np.int64)
    levels: list[Level] = []
    for level in range(1, level_max + 1):
        shape = (len(father), 2**ndim)
        if level == level_max:
            refined = np.zeros(shape, bool)
        elif level < level_min:
            refined = np.ones(shape, bool)
        else:
            refined = rng.random(shape) < chance
            refined.flat[rng.integers(refined.size)] = True
        levels.append(
            Level(father.astype(np.int64), parent, slot, refined, np.zeros(len(father), np.int64))
        )
        parent, slot = np.nonzero(refined)
        father = levels[-1].cells()[refined]
    return levels


def hilbert_keys(coordinates: Ints, bits: int) -> Ints:
    """Return the keys of (n, ndim) integer coordinates along RAMSES' Hilbert curve.

    A cube's corners come in the order of a Gray code with x its highest bit, and the curve goes
    on inside each of them turned as `TURNS` says.
    """
    ndim = coordinates.shape[1]
    axes = np.tile(np.arange(ndim), (len(coordinates), 1))
    flips = np.zeros_like(axes)
    key = np.zeros(len(coordinates), np.int64)
    turn_axes = np.array([axes for axes, _ in TURNS[ndim]])
    turn_flips = np.array([flips for _, flips in TURNS[ndim]])
    for bit in range(bits - 1, -1, -1):
        corner = np.take_along_axis((coordinates >> bit) & 1, axes, axis=1) ^ flips
        step = np.zeros_like(key)
        parity = np.zeros_like(key)
        for axis in range(ndim):
            parity ^= corner[:, axis]
            step = step * 2 + parity
        key = (key << ndim) | step
        flips = np.take_along_axis(flips, turn_axes[step], axis=1) ^ turn_flips[step]
        axes = np.take_along_axis(axes, turn_axes[step], axis=1)
    return key


def share_out(
    levels: list[Level], root: tuple[int, ...], domains: int, bits: int, ordering: str
) -> list[int]:
    """Set every oct's owner and return the `domains + 1` bounds of the ordering's keys.

    `bits` is the depth of the key's grid: RAMSES takes one more than the file's deepest level.
    """
    fine_bits = bits + (root[0] - 1).bit_length()

    def keys(level: int, cells: Ints) -> Ints:
        middle = cells * 2 + 1 << bits - level - 1
        return hilbert_keys(middle, fine_bits) if ordering == "hilbert" else middle[:, 0]

    every = np.sort(np.concatenate([keys(i, level.father) for i, level in enumerate(levels)]))
    ends = [int(every[len(every) * i // domains]) for i in range(1, domains)]
    top = 1 << fine_bits * (len(root) if ordering == "hilbert" else 1)
    for i, level in enumerate(levels):
        level.owner = np.searchsorted(np.array(ends, np.int64), keys(i, level.father), side="right")
    return [0, *ends, top]


def held_by(
    levels: list[Level], domain: int, rng: np.random.Generator, ghosts: float
) -> list[Bools]:
    """Return which octs a domain's files hold.

    These are its own, those its own cells are refined into, a share `ghosts` of the others', and
    the fathers of all of them.
    """
    held = [(level.owner == domain) | (rng.random(len(level.owner)) < ghosts) for level in levels]
    for i in range(len(levels) - 1, 0, -1):
        held[i] |= levels[i - 1].owner[levels[i].parent] == domain
        held[i - 1][levels[i].parent[held[i]]] = True
    return held

"""The particles in each domain of a tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ambar._util.morton import morton_keys
from ambar.snapshot.interop.yt.row_reading import read_rows

if TYPE_CHECKING:
    from ambar.snapshot.interop.yt.octs import CellIndex, Domain
    from ambar.snapshot.particles import Particles

_BITS = 21
"""Bits of each coordinate in one part of a key."""


class ParticleRows:
    """Particles by the domain whose octs they are in; all positions are read when first needed.

    Particles in stores are in the order of the curve, as cells are, so that those of a domain are
    in few chunks.
    """

    def __init__(
        self, particles: Particles, domains: Sequence[Domain], roots: Sequence[int], side: float
    ) -> None:
        self._particles = particles
        self._count = len(domains)
        self._starts = [start for domain in domains for start in domain.starts]
        # The curve goes through the lattice of all root cells.
        self._curve = _Curve(_BITS - (max(roots) - 1).bit_length())
        self._side = side

    def __len__(self) -> int:
        """Return the number of all particles."""
        return len(self._particles)

    def read(self, domain: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns of the particles in a domain; only chunks that have some are read."""
        return read_rows(self._particles, names, self._rows[domain])

    @cached_property
    def _rows(self) -> list[np.ndarray]:
        """The rows of the particles in each domain, ascending."""
        keys = [self._curve.key_of_cell(start.cell) for start in self._starts]
        first_parts = np.array([first for first, _ in keys], dtype=np.int64)
        owners = np.array([start.domain for start in self._starts])
        domain_of = np.empty(len(self._particles), dtype=np.int32)
        row = 0
        names = [f"position_{axis}" for axis in "xyz"]
        for chunk, length in enumerate(self._particles._core.chunk_lengths):
            table = self._particles._read_arrays(names, chunks=(chunk, chunk + 1))
            points = np.stack([table[name] for name in names], axis=1).astype(np.float64)
            first, second = self._curve.keys(points / self._side)
            found = first_parts.searchsorted(first, side="right") - 1
            # Starts with the same first part differ in the second.
            for tie in np.flatnonzero(np.isin(first, first_parts)).tolist():
                found[tie] = bisect_right(keys, (int(first[tie]), int(second[tie]))) - 1
            domain_of[row : row + length] = owners[found.clip(0)]
            row += length
        order = np.argsort(domain_of, kind="stable")
        ends = domain_of[order].searchsorted(np.arange(1, self._count))
        return np.split(order, ends)


class _Curve:
    """The Morton curve through all root cells; x is the lowest bit. Keys have two parts."""

    def __init__(self, levels: int) -> None:
        self._levels = levels
        """The levels in the first part of keys; the second part has 21 more."""

    def key_of_cell(self, cell: CellIndex) -> tuple[int, int]:
        """Return the key of the lower corner of a cell."""
        corner = np.array([cell[1:]], dtype=np.float64) * 2.0**-cell.level
        first, second = self.keys(corner)
        return int(first[0]), int(second[0])

    def keys(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys of points in root cells, of shape (n, 3)."""
        scaled = np.nan_to_num(points).clip(0) * 2.0**self._levels
        whole = np.floor(scaled)
        return _interleaved(whole), _interleaved(np.floor((scaled - whole) * 2.0**_BITS))


def _interleaved(index: np.ndarray) -> np.ndarray:
    """Return the key of places; those outside of the box are taken to the nearest inside."""
    return morton_keys(index.clip(0, 2**_BITS - 1).astype(np.int64).T)

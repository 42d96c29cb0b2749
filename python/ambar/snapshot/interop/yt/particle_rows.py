"""The particles in each domain of a tree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ambar.snapshot.interop.yt.octs import Domain
    from ambar.snapshot.particles import Particles

_BITS = 20
"""Bits of each coordinate in one part of a key."""


class ParticleRows:
    """Particles by the domain of cells that they are in; positions are read when first asked for.

    Particles in stores are in the order of the curve, as cells are, so that those of a domain are
    in few chunks.
    """

    def __init__(self, particles: Particles, domains: Sequence[Domain], root_side: float) -> None:
        self._particles = particles
        self._domains = domains
        self._root_side = root_side

    def __len__(self) -> int:
        """Return the number of all particles."""
        return len(self._particles)

    def read(self, domain: int, names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns of the particles in a domain."""
        rows = self._rows[domain]
        if not len(rows):
            return {name: np.empty(0, self._particles.dtype(name)) for name in names}
        ends = np.cumsum(self._particles._core.chunk_lengths)
        first, last = ends.searchsorted(rows[[0, -1]], side="right").tolist()
        start = ends[first - 1] if first else 0
        table = self._particles._read_arrays(names, chunks=(first, last + 1))
        return {name: values[rows - start] for name, values in table.items()}

    @cached_property
    def _rows(self) -> list[np.ndarray]:
        """The rows of the particles in each domain, ascending."""
        firsts = [_keys(*domain.first) for domain in self._domains]
        starts = np.array([high for high, _ in firsts], dtype=np.uint64)
        domain_of = np.empty(len(self._particles), dtype=np.int32)
        start = 0
        names = [f"position_{axis}" for axis in "xyz"]
        for chunk, length in enumerate(self._particles._core.chunk_lengths):
            table = self._particles._read_arrays(names, chunks=(chunk, chunk + 1))
            place = np.stack([table[name] for name in names], axis=1) / self._root_side
            high, low = _keys_of_points(place.astype(np.float64))
            found = starts.searchsorted(high, side="right") - 1
            # Domains that begin in the same cell of level 20 differ in the second part of the key.
            for row in np.flatnonzero(np.isin(high, starts)).tolist():
                found[row] = bisect_right(firsts, (int(high[row]), int(low[row]))) - 1
            domain_of[start : start + length] = found.clip(0)
            start += length
        order = np.argsort(domain_of, kind="stable")
        ends = domain_of[order].searchsorted(np.arange(1, len(self._domains)))
        return np.split(order, ends)


def _keys(level: int, x: int, y: int, z: int) -> tuple[int, int]:
    """Return the key of the lower corner of a cell: above level 20, and below it."""
    corner = np.array([[x, y, z]], dtype=np.float64) * 2.0**-level
    high, low = _keys_of_points(corner)
    return int(high[0]), int(low[0])


def _keys_of_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of points in root cells, along the Morton curve: x is the lowest bit.

    The curve in root cells is that of their own indices, so levels above 0 are part of the key.
    """
    points = np.nan_to_num(points).clip(0)
    fine = np.floor(points * 2.0**_BITS)
    rest = np.floor((points * 2.0**_BITS - fine) * 2.0**_BITS)
    return _interleaved(fine), _interleaved(rest)


def _interleaved(index: np.ndarray) -> np.ndarray:
    """Return the bits of three numbers below 2^21 by turns."""
    key = np.zeros(len(index), dtype=np.uint64)
    for axis in range(3):
        bits = index[:, axis].clip(0, 2**21 - 1).astype(np.uint64)
        for shift, mask in (
            (32, 0x1F00000000FFFF),
            (16, 0x1F0000FF0000FF),
            (8, 0x100F00F00F00F00F),
            (4, 0x10C30C30C30C30C3),
            (2, 0x1249249249249249),
        ):
            bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)
        key |= bits << np.uint64(axis)
    return key

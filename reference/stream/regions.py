"""Regions of arrays and unit blocks, and masks (format.md, 7.3 and 7.4).

A region is an array (z, y, x) of indices into the stream's values; -1 where no value is.
"""

import numpy as np

from .bits import BinaryDecoder, Reader, check


def interleave(index: list[int]) -> int:
    """Return the Morton key of indices below 2^42, of which x is the last."""
    return int("".join(map("".join, zip(*(f"{n:042b}" for n in index)))), 2)


def deinterleave(key: int, dimensions: int) -> list[int]:
    """Return the indices of a Morton key, x last."""
    return [int(f"{key:0{42 * dimensions}b}"[d::dimensions], 2) for d in range(dimensions)]


def partition(rows: np.ndarray, split, cuts: int = 0) -> list[np.ndarray]:
    """Bisect a set of rows while `split` returns which of them come first (7.3)."""
    first = split(rows, cuts)
    if first is None:
        return [rows]
    return partition(rows[first], split, cuts + 1) + partition(rows[~first], split, cuts + 1)


def fill(points: np.ndarray, values: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Return the region of points (n, 3): their bounding box, rounded to multiples of `side`."""
    low, high = points.min(axis=0) // side * side, (points.max(axis=0) // side + 1) * side
    region = np.full(high - low, -1)
    region[tuple((points - low).T)] = values
    return region


def of_array(shape: list[int], count: int) -> list[np.ndarray]:
    """Return the regions of an array of one to four dimensions (7.3)."""
    return list(np.arange(count).reshape([1, 1, 1, *shape][-4:]))


def read_places(reader: Reader, count: int) -> np.ndarray:
    """Read block keys; return the places of the blocks (7.3)."""
    coder, key, places = BinaryDecoder(reader.section()), 0, []
    for row in range(count):
        difference = coder.integer64()
        check(row == 0 or difference > 0, "block keys that do not increase")
        key += difference
        check(key < 1 << 63, "a block key beyond 2^63")
        places.append([n - (1 << 20) for n in deinterleave(key, 3)])
    coder.end()
    return np.array(places, np.int64).reshape(-1, 3)


def of_blocks(places: np.ndarray, side: list[int], limit: float) -> list[np.ndarray]:
    """Return the regions of blocks, which are filled at least to `limit` (7.3)."""

    def split(rows: np.ndarray, cuts: int) -> np.ndarray | None:
        dense = len(rows) == 1 or len(rows) / volume(places[rows]) >= limit
        return None if dense else cut(places[rows], cuts)

    points = places[:, None] * side + np.indices(side).reshape(3, -1).T
    values = np.arange(points.size // 3).reshape(points.shape[:2])
    sets = partition(np.arange(len(places)), split) if len(places) else []
    return [fill(points[s].reshape(-1, 3), values[s].ravel(), np.array(side)) for s in sets]


def volume(places: np.ndarray) -> float:
    """Return the volume of the bounding box."""
    lengths = (places.max(axis=0) - places.min(axis=0) + 1).astype(np.float64)
    return lengths[0] * lengths[1] * lengths[2]


def cut(places: np.ndarray, cuts: int) -> np.ndarray:
    """Return which places come before the best cut (7.3)."""
    low, lengths = places.min(axis=0), np.ptp(places, axis=0) + 1
    d = 2 - int(np.argmax(lengths[::-1]))
    first, best = places[:, d] < low[d] + lengths[d] // 2, volume(places)
    for d in range(3 if cuts < 48 else 0):
        for at in np.unique(places[:, d])[1:]:
            below = places[:, d] < at
            total = volume(places[below]) + volume(places[~below])
            if total < best:
                first, best = below, total
    return first


def read_mask(reader: Reader, region: np.ndarray) -> np.ndarray:
    """Read the mask of a region; return the region without the values whose mask is 0 (7.4)."""
    side, coder, region = reader.unpack("B"), BinaryDecoder(reader.section()), region.copy()
    check(side in (1, 2, 4, 8), f"cubes of side {side}; expected 1, 2, 4 or 8")
    cubes = [-(-n // side) for n in region.shape]
    states = np.full([n + 1 for n in cubes], 2)  # the last of each dimension is also number -1
    for k, j, i in np.ndindex(*cubes):
        cube = region[tuple(slice(n * side, (n + 1) * side) for n in (k, j, i))]
        if (cube >= 0).any():
            bit = coder.bit(states[k - 1, j, i], states[k, j - 1, i], states[k, j, i - 1])
            states[k, j, i] = bit
            cube[...] = np.where(bit, cube, -1)
    coder.end()
    return region


def predicted_holes(blocks: np.ndarray, side: list[int]) -> np.ndarray:
    """Return which points without a block are coded where holes are predicted (7.5)."""
    coded = np.zeros_like(blocks)
    coded[0, 0, 0] = not blocks[0, 0, 0]
    for d in range(3):
        line, target = np.moveaxis(blocks, d, 0), np.moveaxis(coded, d, 0)
        target[side[d] :: side[d]] |= line[side[d] - 1 : -1 : side[d]] & ~line[side[d] :: side[d]]
    return coded

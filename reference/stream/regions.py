"""Regions of a stream's values, places of blocks, and masks (format.md, 7.3 and 7.4).

A region is an array of three dimensions (z, y, x) of indices into the stream's values; -1 where
no value is.
"""

import numpy as np

from .bits import BinaryDecoder, Reader, Whole, check, probabilities


def of_array(shape: list[int]) -> list[np.ndarray]:
    """Return the regions of an array of one to four dimensions."""
    values = np.arange(int(np.prod(shape, dtype=object)))
    return list(values.reshape([1, 1, 1, *shape][-4:]))


def read_places(data: bytes, count: int) -> np.ndarray:
    """Decode the keys of `count` blocks; return their places, (count, 3) in z, y, x."""
    coder, whole, key, places = BinaryDecoder(data), Whole(), 0, np.zeros((count, 3), np.int64)
    for row in range(count):
        difference = whole.decode(coder)
        check(row == 0 or difference > 0, "keys of blocks that do not increase")
        key += difference
        check(key < 1 << 63, "a key of a block beyond 2^63")
        for d in range(3):  # bits 0, 1, 2 of each three are of x, y, z
            places[row, 2 - d] = int(f"{key >> d:063b}"[-1::-3][::-1], 2)
    coder.end()
    return places - (1 << 20)


def cut(places: np.ndarray, density: float) -> list[np.ndarray]:
    """Cut sorted places into regions; return the rows of `places` in each."""
    regions, stack = [], [(np.arange(len(places)), 0)]
    while stack:
        rows, cuts = stack.pop()
        mine = places[rows]
        if len(rows) > 1 and len(rows) / _volume(mine) < density:
            d, at = _best_cut(mine, cuts)
            below = mine[:, d] < at
            stack += [(rows[~below], cuts + 1), (rows[below], cuts + 1)]
        else:
            regions.append(rows)
    return regions


def _volume(places: np.ndarray) -> float:
    lengths = (np.max(places, axis=0) - np.min(places, axis=0) + 1).astype(np.float64)
    return lengths[0] * lengths[1] * lengths[2]


def _best_cut(places: np.ndarray, cuts: int) -> tuple[int, int]:
    """Return the dimension and the place of the cut that leaves the least volume."""
    best, choice = _volume(places), None
    if cuts < 48:
        for d in range(3):
            for at in np.unique(places[:, d])[1:]:
                below = places[:, d] < at
                volume = _volume(places[below]) + _volume(places[~below])
                if volume < best:
                    best, choice = volume, (d, int(at))
    if choice is None:
        lo, lengths = places.min(axis=0), np.ptp(places, axis=0) + 1
        d = 2 - int(np.argmax(lengths[::-1]))
        choice = d, int(lo[d] + lengths[d] // 2)
    return choice


def of_blocks(places: np.ndarray, side: list[int], density: float) -> list[np.ndarray]:
    """Return the regions of blocks, whose values are consecutive."""
    size, regions = side[0] * side[1] * side[2], []
    for rows in cut(places, density):
        lo = places[rows].min(axis=0)
        lengths = places[rows].max(axis=0) - lo + 1
        region = np.full((lengths[0], side[0], lengths[1], side[1], lengths[2], side[2]), -1)
        for row in rows:
            z, y, x = places[row] - lo
            region[z, :, y, :, x, :] = np.arange(row * size, (row + 1) * size).reshape(side)
        regions.append(region.reshape(lengths * side))
    return regions


def read_mask(reader: Reader, region: np.ndarray) -> np.ndarray:
    """Read the mask of one region; return the region without the values whose mask is 0."""
    side, coder, p = reader.unpack("B"), BinaryDecoder(reader.section()), probabilities(27)
    check(side in (1, 2, 4, 8), "a side of cubes that does not exist")
    starts = [range(0, n, side) for n in region.shape]
    state = np.full([len(s) + 1 for s in starts], 2)
    region = region.copy()
    for k, z in enumerate(starts[0]):
        for j, y in enumerate(starts[1]):
            for i, x in enumerate(starts[2]):
                cube = region[z : z + side, y : y + side, x : x + side]
                if (cube >= 0).any():
                    a, b, c = state[k, j + 1, i + 1], state[k + 1, j, i + 1], state[k + 1, j + 1, i]
                    bit = coder.bit(p, 9 * a + 3 * b + c)
                    state[k + 1, j + 1, i + 1] = bit
                    if bit == 0:
                        cube[...] = -1
    coder.end()
    return region


def edges(blocks: np.ndarray, side: list[int]) -> np.ndarray:
    """Return which points in no block are coded where holes are predicted (7.5)."""
    coded = np.zeros_like(blocks)
    coded[0, 0, 0] = not blocks[0, 0, 0]
    for d in range(3):
        line = np.moveaxis(blocks, d, 0)
        starts = slice(side[d], None, side[d])
        before = slice(side[d] - 1, -1, side[d])
        target = np.moveaxis(coded, d, 0)
        target[starts] |= line[before] & ~line[starts]
    return coded

"""Wavelet coefficients, values from them, and corrections of values (format.md, 7.17)."""

import numpy as np

from .traversal import F32, Traversal

LOW = (
    *(1.0, 0.877374609, 0.745345403, 0.641693558),
    *(0.556501562, 0.483697057, 0.420666218, 0.365904104),
)
HIGH = (1.127043657, 1.016806485, 0.853124951, 0.729750802, 0.631643066, 0.548727337, 0.477160316)
STEPS = (  # the first number of the changed values, and the weight
    (0, -0.443506852043971),
    (1, -0.882911075530934),
    (0, 0.052980118572961),
    (1, 1.586134342059924),
)


def possible_levels(length: int) -> int:
    """Return how many times a dimension may be transformed: until it has fewer than 9 values."""
    return next(k for k in range(8) if k == 7 or -(-length >> k) < 9)


class Axis:
    """The arrangement of a dimension: for each number its index, band, scale, and parent or -1."""

    def __init__(self, length: int, levels: int) -> None:
        bands = [range(0, length, 1 << levels)]
        bands += [range(1 << k, length, 2 << k) for k in reversed(range(levels))]
        scales = LOW[levels], *reversed(HIGH[:levels])
        first = np.cumsum([0, *map(len, bands)])
        self.index = np.concatenate(bands).astype(int)
        self.band = np.repeat(np.arange(levels + 1), np.diff(first))
        self.scale = np.repeat(scales, np.diff(first))
        self.parent = np.full(length, -1)
        for b in range(2, levels + 1):
            halves = np.arange(len(bands[b])) // 2
            self.parent[first[b] : first[b + 1]] = np.minimum(first[b - 1] + halves, first[b] - 1)

    def follows(self, k: int) -> bool:
        """Return whether number k has a predecessor in its band."""
        return bool(k > 0 and self.band[k] == self.band[k - 1])


class Wavelet(Traversal):
    """Decodes the regions of a stream `s` of wavelet coefficients; its fields are those of 7.1."""

    def bin_width(self, level: int) -> float:  # noqa: ARG002 (coefficients have no levels)
        """Return the bin width of what is decoded: coefficients, or corrections."""
        return min(2 * self.bound, float(self.limit))

    def region(self, index: np.ndarray, coded: np.ndarray, present: np.ndarray) -> None:
        """Decode a region of indices into the stream's values; all points are coded."""
        self.bound = self.s.coefficient_bound or self.s.error_bound
        levels = [max(0, possible_levels(n) - self.s.omitted) for n in index.shape]
        axes = [Axis(*pair) for pair in zip(index.shape, levels)]
        values, shape = np.zeros(index.shape, self.T), index.shape
        magnitudes = np.zeros((*shape[:2], shape[2] + 2), np.int64)
        zeros, points = np.zeros(shape[2], self.T), coded & present
        for z, y in np.ndindex(*shape[:2]):
            contexts = find_contexts(axes, z, y, magnitudes)
            row = index[z, y], points[z, y], zeros, contexts
            magnitudes[z, y, 1:-1] = self.points(0, zeros.copy(), *row, False)
            scale = (axes[0].scale[z] * axes[1].scale[y]) * axes[2].scale
            coefficients = self.s.out[index[z, y]] * scale.astype(self.T)
            values[axes[0].index[z], axes[1].index[y], axes[2].index] = coefficients
        for d in (2, 1, 0):
            for level in reversed(range(levels[d])):
                self.lift(np.moveaxis(values, d, 0)[:: 1 << level])
        self.s.out[index] = values = self.finite_or_zero(values)
        if self.s.coefficient_bound:
            self.correct(index, points, values)

    def correct(self, index: np.ndarray, points: np.ndarray, values: np.ndarray) -> None:
        """Decode the corrections of values from coefficients."""
        self.bound, shape = self.s.error_bound, index.shape
        sums = np.zeros((shape[0] + 1, shape[1] + 1, shape[2]), np.int64)
        for z, y in np.ndindex(*shape[:2]):
            contexts = 28 + np.minimum(10, sums[z + 1, y] + sums[z, y + 1])
            row = values[z, y].copy(), index[z, y], points[z, y], values[z, y], contexts, False
            sums[z + 1, y + 1] = around(np.pad(self.points(0, *row), 1))

    def lift(self, values: np.ndarray) -> None:
        """Perform the four steps along the first dimension."""
        last = len(values) - 1
        for first, weight in STEPS:
            k = np.arange(first, len(values), 2)
            before, after = np.where(k, k - 1, 1), np.where(k == last, k - 1, k + 1)
            values[k] += self.T(weight) * (values[before] + values[after])


def find_contexts(axes: list[Axis], z: int, y: int, magnitudes: np.ndarray) -> np.ndarray:
    """Return the contexts of a row."""
    parents = axes[0].parent[z], axes[1].parent[y]
    own = [(z, y - 1)] * axes[1].follows(y) + [(z - 1, y)] * axes[0].follows(z)
    coarse = [(parents[0], y)] * bool(parents[0] >= 0) + [(z, parents[1])] * bool(parents[1] >= 0)
    weight = 9 * len(own) + 2 * len(coarse)
    if weight == 0:
        return np.full(magnitudes.shape[2] - 2, 39)
    sums = [sum((around(magnitudes[at]) for at in rows), np.int64(0)) for rows in (own, coarse)]
    factors = F32(9 / (4 * weight)), F32(1 / (4 * weight))
    expected = F32(sums[0]) * factors[0] + F32(sums[1]) * factors[1]
    bits = (expected + F32(1 / 64)).view(np.uint32) >> 22
    return np.minimum(39, bits.astype(np.int64) - int(F32(1 / 64).view(np.uint32) >> 22))


def around(row: np.ndarray) -> np.ndarray:
    """Return the weighted sums of the magnitudes of a row."""
    return 2 * row[1:-1] + row[:-2] + row[2:]

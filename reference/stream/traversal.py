"""Traversal, prediction, contexts and values of the points of a region (format.md, 7.5 to 7.8)."""

import itertools

import numpy as np

from .entropy import LITERAL

BY_LEVEL, BY_ROW, BY_PLANE = 1, 2, 3  # contexts
LEVEL_SCALINGS = ((1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0), (2.0, 8.0))
SHARPNESS = (1 / 16, 0, 3 / 32, 5 / 32)
IGNORED_BITS = {3: 6, 5: 8, 6: 10, 7: 12}  # by phase
# The pairs of dimensions of the diagonals of each phase, in the order of coding (7.7).
DIAGONALS = {1: (), 2: ((0, 1),), 4: ((0, 2), (1, 2)), 3: ((0, 1),), 5: ((0, 2), (1, 2)),
             6: ((0, 1), (0, 2), (1, 2)), 7: ((0, 1), (0, 2), (1, 2))}  # fmt: skip
WEIGHTS = {1: (0.3, 0.4, 0.15), 2: (0.4, 0.25, 0.1), 3: (0.5, 0.2, 0.08)}
PAD = 4  # positions around a phase, for extrapolated values
F32 = np.float32


def moved(array: np.ndarray, size: tuple[int, ...], moves: dict[int, int]) -> np.ndarray:
    """Return the points of a padded phase at the indices of a phase of `size`, plus `moves`."""
    return array[tuple(slice(s := PAD + moves.get(d, 0), s + n) for d, n in enumerate(size))]


class Traversal:
    """Decodes the regions of a stream `s`, whose fields are those of 7.1."""

    def __init__(self, s) -> None:
        self.s, self.T, self.word = s, s.out.dtype.type, np.dtype(f"u{s.out.itemsize}").type
        self.limit = self.T(1e34 if s.out.itemsize == 4 else 1e300)

    def finite_or_zero(self, values: np.ndarray) -> np.ndarray:
        """Return values, and 0 for those that are too large, or NaN (7.6)."""
        return np.where(np.abs(values) < self.limit, values, self.T(0))

    def bin_width(self, level: int) -> float:
        """Return the bin width of a level (7.5); 0 if it is coded losslessly."""
        (base, most), factor = LEVEL_SCALINGS[self.s.level_scaling], 1.0
        for _ in range(min(level, 63)):
            factor *= base
        return min(2 * self.s.error_bound / min(factor, most), float(self.limit))

    def region(self, index: np.ndarray, coded: np.ndarray, present: np.ndarray) -> None:
        """Decode a region of indices into the stream's values, coded and present points (7.5)."""
        grids = np.zeros(index.shape, self.T), index, coded, present
        last = (max(index.shape) - 1).bit_length()
        anchor = [grid[:1, :1, :1] for grid in grids]
        self.points(last, *anchor[:3], anchor[0] * 0, np.full((1, 1, 1), 39), False)
        for level in range(last - 1, -1, -1):
            self.level(level, [grid[(slice(None, None, 1 << level),) * 3] for grid in grids])

    def level(self, level: int, grids: list[np.ndarray]) -> None:
        """Decode the phases 1 to 7 of a lattice."""
        shape, width, known, magnitudes = grids[0].shape, self.bin_width(level), {}, {}
        by_level = self.s.contexts == BY_LEVEL
        by_plane = self.s.contexts == BY_PLANE and shape[1] > 1 and width > 0
        for t in (0, 1, 2, 4, 3, 5, 6, 7):  # phases
            phase = tuple(slice(t >> d & 1, None, 2) for d in range(3))
            values, index, coded, present = (grid[phase] for grid in grids)
            size = values.shape
            if t and values.size:
                prediction, variation = self.predict(t, size, known, level, shape)
                magnitudes[t] = m = np.zeros([n + 2 * PAD for n in size], np.int64)
                for z in range(size[0]):
                    whole = by_level or (by_plane and z > 0)
                    for y in [slice(None)] if whole else range(size[1]):
                        piece = [grid[z, y] for grid in (values, index, coded, prediction)]
                        contexts = np.full(piece[0].shape, min(level, 2))
                        if not by_level:
                            local = variation[z, y]
                            contexts = find_contexts(t, z, y, size, shape, magnitudes, local, width)
                        moved(m, size, {})[z, y] = self.points(level, *piece, contexts, by_level)
            known[t] = self.extrapolate(t, values, present, shape)

    def extrapolate(self, t: int, values, present, shape) -> tuple[np.ndarray, np.ndarray]:
        """Extrapolate a phase (7.6); return its values and presence, padded."""
        values, present = np.pad(values, PAD), np.pad(present, PAD)
        total, count = np.zeros_like(values), np.zeros(values.shape, np.int64)
        for d, sign in itertools.product(range(3), (1, -1)):
            if t >> d & 1 == 0 and shape[d] > 1:
                (a, b, c), (has_a, has_b, has_c) = (
                    [np.roll(grid, -sign * i, d) for i in (1, 2, 3)] for grid in (values, present)
                )
                b = np.where(has_b, b, a)
                c = np.where(has_b & has_c, c, (b + b) - a)
                e = a - b
                used = has_a & ~present
                total += np.where(used, self.finite_or_zero(((e + e) + e) + c), self.T(0))
                count += used
        mean = total * (1 / np.maximum(count, 1)).astype(self.T)
        return np.where(count > 0, mean, values), present

    def predict(self, t: int, size, known, level: int, shape) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of a phase and their local variation (7.7)."""
        half, zero = self.T(0.5), self.T(-0.0)  # -0 is neutral: -0 + -0 is -0
        bits = self.s.interpolations[level] if level < len(self.s.interpolations) else 0
        odd, first = [d for d in range(3) if t >> d & 1], IGNORED_BITS.get(t, 16)
        lines = [d for k, d in enumerate(odd) if not bits >> (first + k) & 1]
        sharpness = [SHARPNESS[bits >> 2 * d & 3] for d in lines]
        if bits >> 15:
            sharpness = [self.s.weights[level][t][0]] * len(lines)
        sharpness = np.array(sharpness).reshape(-1, 1, 1, 1)
        near_weight, far_weight = (
            (0.5 + sharpness).astype(self.T),
            (0 - sharpness).astype(self.T),
        )
        (v0, v1, v2, v3), (_, h1, h2, _) = (
            [np.array([moved(known[t - (1 << d)][i], size, {d: k}) for d in lines])
             for k in (-1, 0, 1, 2)] for i in (0, 1))  # fmt: skip
        near_sum, far_sum = v1 + v2, v0 + v3
        between = near_sum * near_weight + far_sum * far_weight
        near, far = np.where(h1, v1, v2), np.where(h1, v0, v3)
        slope, count = (near - far) * half, h1.astype(np.int64) + h2
        most = count.max(axis=0)  # the rule is 3 - most
        used = (count == most) & (most > 0)
        part = (1 / np.maximum(used.sum(axis=0), 1)).astype(self.T)
        value = np.where(count == 2, between, near + slope)
        curvature = np.where(count == 2, np.abs(between - near_sum * half), np.abs(slope))
        mean, variation = (
            sum(np.where(used, terms, zero), zero) * part for terms in (value, curvature)
        )
        spread = np.where(used, value, -np.inf).max(axis=0) - np.where(used, value, np.inf).min(0)
        variation = variation + np.where(most == 2, spread, 0).astype(self.T)
        prediction = np.where(most > 0, self.finite_or_zero(mean), self.T(0))
        if bits >> 15:
            _, outer_weight, slope_weight, *weights = self.s.weights[level][t]
            prediction = self.add_outer_points(t, prediction, known, lines, outer_weight)
            prediction = self.add_slopes(t, prediction, known, lines, slope_weight)
            prediction = self.add_diagonals(t, prediction, known, shape, weights)
        return prediction, np.where(most > 0, variation, 0).astype(F32)

    def add_outer_points(self, t: int, prediction, known, lines, weight: float) -> np.ndarray:
        """Return the predictions of a phase with its outer points along `lines` (7.7)."""
        total, everywhere = self.T(-0.0), bool(weight)
        for d in lines:
            (a, b, c, e, f, g), has_points = (
                [moved(grid, prediction.shape, {d: k}) for k in range(-2, 4)]
                for grid in known[t - (1 << d)]
            )
            total = total + (((a + g) - (b + f) * self.T(3)) + (c + e) * self.T(2))
            everywhere = everywhere & np.all(has_points, axis=0)
        total = prediction + total * self.T(weight / (2 * len(lines)))
        return np.where(everywhere, self.finite_or_zero(total), prediction)

    def add_slopes(self, t: int, prediction, known, lines, weight: float) -> np.ndarray:
        """Return the predictions of a phase with its slopes along `lines` (7.7)."""
        total, everywhere = self.T(-0.0), bool(weight)
        for d in lines:
            (a, b), has_points = (
                [moved(grid, prediction.shape, {d: k}) for k in (0, 1)]
                for grid in known[t - (1 << d)]
            )
            total = total + (b - a)
            everywhere = everywhere & np.all(has_points, axis=0)
        total = prediction + total * self.T(weight / (2 * len(lines)))
        return np.where(everywhere, self.finite_or_zero(total), prediction)

    def add_diagonals(self, t: int, prediction, known, shape, weights) -> np.ndarray:
        """Return the predictions of a phase with the points on its diagonals (7.7)."""
        used = [(pair, w) for pair, w in zip(DIAGONALS[t], weights)
                if w and all(shape[d] > 1 for d in pair)]  # fmt: skip
        total, everywhere = prediction * self.T(1 - sum(w for _, w in used)), bool(used)
        for (i, j), weight in used:
            places = [{i: k + (t >> i & 1) - 1, j: m + (t >> j & 1) - 1}
                      for k in (0, 1) for m in (0, 1)]  # fmt: skip
            values, present = known[t ^ 1 << i ^ 1 << j]
            a, b, c, d = (moved(values, prediction.shape, place) for place in places)
            total = total + ((a + b) + (c + d)) * self.T(weight / 4)
            for place in places:
                everywhere = everywhere & moved(present, prediction.shape, place)
        return np.where(everywhere, self.finite_or_zero(total), prediction)

    def points(self, level, values, index, coded, prediction, contexts, is_run) -> np.ndarray:
        """Decode consecutive points (7.8); return their residual magnitudes."""
        width, packets = self.bin_width(level), self.s.packets
        packet = packets[max(0, len(packets) - 1 - level)]
        tokens = packet.tokens(contexts[coded].tolist(), is_run)
        folded, literal = np.zeros(values.shape, np.uint64), np.zeros(values.shape, bool)
        folded[coded] = [packet.value(token, 8 * values.itemsize) for token in tokens]
        literal[coded] = [token == LITERAL for token in tokens]
        bits = folded[literal]
        folded[literal] = 0
        residual = (folded >> 1).astype(np.int64) ^ -(folded & 1).astype(np.int64)
        if width:
            values[...] = prediction + residual.astype(self.T) * self.T(width)
            magnitudes = np.minimum((folded >> 1) + (folded & 1), 255)
        else:
            values[...] = self.lossless(prediction, residual)
            magnitudes = np.vectorize(int.bit_length, otypes=[np.int64])(folded)
        magnitudes[literal] = 255 if width else 64
        self.s.out[index[coded]] = values[coded]
        self.s.out.view(self.word)[index[literal]] = bits
        original = bits.astype(self.word).view(self.T)
        distance = np.abs(original.astype(np.float64) - prediction[literal].astype(np.float64))
        near = distance < 2.0**53 * float(self.T(width))
        values[literal] = np.where(near, original, prediction[literal])
        return magnitudes

    def lossless(self, prediction: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Return the values of lossless residuals (7.8)."""
        shift, sign = self.word(self.s.shift), self.word(1 << 8 * prediction.itemsize - 1)
        bits = prediction.view(self.word)
        order = np.where(bits & sign, ~bits, bits | sign) + self.word(1 << self.s.shift >> 1)
        order = (order >> shift) + residual.astype(self.word) << shift
        return (np.where(order & sign, order ^ sign, ~order) >> shift << shift).view(self.T)


def find_contexts(t, z, y, size, shape, magnitudes, variation, width) -> np.ndarray:
    """Return the contexts of the row, or the whole plane, `y` of the plane `z` of a phase (7.7)."""
    odd, by_plane = [d for d in range(3) if t >> d & 1], isinstance(y, slice)
    terms = [(t - (1 << d), {d: k}) for d in odd for k in (0, 1)]
    if len(odd) == 1:
        before = [e for e in range(odd[0]) if shape[e] > 1]
        terms = [(1 << e, {odd[0]: k, e: j}) for e in before for k in (0, 1) for j in (0, -1)]
    near = sum(moved(magnitudes[other], size, moves)[z, y] for other, moves in terms)
    lines, r, weight = ((0, -1, 1), (-1, 0, 1)), (y != 0) + (z > 0), 4
    if by_plane:
        lines, r, weight = ((-1, -1, 1), (-1, 0, 2), (-1, 1, 1)), 1, 16
    sums = sum(w * (2 - abs(i)) * moved(magnitudes[t], size, {0: k, 1: j, 2: i})[z, y]
               for k, j, w in lines for i in (-1, 0, 1))  # fmt: skip
    a, b, g = map(F32, WEIGHTS[len(odd)] if width else (0.5, 0.5, 0))
    a = a if r else a + b
    b = b if terms else b + a
    expected = F32(near) * (a / F32(max(len(terms), 1))) + F32(sums) * (b / F32(weight * max(r, 1)))
    if not width:
        return np.minimum(39, expected * (F32(40) / F32(65))).astype(np.int64)
    expected = expected + variation * (g * F32(1 / np.float64(width)))
    bits = (expected + F32(1 / 64)).view(np.uint32) >> 22
    bits = bits.astype(np.int64) - int(F32(1 / 64).view(np.uint32) >> 22)
    return np.where(np.isnan(expected), 39, np.minimum(39, bits))

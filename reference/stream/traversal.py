"""Traversal of a region's lattices: prediction, contexts and values (format.md, 7.5 to 7.8)."""

import itertools

import numpy as np

from .entropy import Tokens

PHASES = (1, 2, 4, 3, 5, 6, 7)
LEVEL_SCALINGS = ((1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0))
WEIGHTS = {1: (0.3, 0.4, 0.15), 2: (0.4, 0.25, 0.1), 3: (0.5, 0.2, 0.08)}
BY_LEVEL, BY_ROW, BY_PLANE = 1, 2, 3  # contexts
PAD = 4  # positions around a phase, for extrapolated values
F32 = np.float32


def phase(lattice: np.ndarray, t: int) -> np.ndarray:
    """Return the points of phase `t` of a lattice, a view."""
    return lattice[tuple(slice(t >> d & 1, None, 2) for d in range(3))]


class Traversal:
    """Decodes regions, one after the other.

    Parameters
    ----------
    out
        The values of the stream, one dimension.
    packets
        The tokens of the level packets.
    contexts
        `BY_LEVEL`, `BY_ROW` or `BY_PLANE`.
    bound
        The error bound, 0 without loss.
    shift
        Lowest bits that are 0 in all values, of lossless streams.
    options
        The byte *level options* (7.1).
    """

    def __init__(self, out: np.ndarray, packets: list[Tokens], contexts: int, bound: float,
                 shift: int, options: int) -> None:  # fmt: skip
        self.out, self.packets, self.contexts = out, packets, contexts
        self.bound, self.shift, self.options = bound, shift, options
        self.T, self.word = out.dtype.type, np.dtype(f"u{out.itemsize}").type
        self.limit = self.T(1e34 if out.itemsize == 4 else 1e300)

    def finite_or_zero(self, values: np.ndarray) -> np.ndarray:
        """Return values, and 0 for those that are too large, or no numbers."""
        return np.where(np.abs(values) < self.limit, values, self.T(0))

    def bin_width(self, level: int) -> float:
        """Return the width of a level's bins (7.5); 0 if it is coded losslessly."""
        base, most = LEVEL_SCALINGS[self.options & 3]
        factor = 1.0
        for _ in range(min(level, 63)):
            factor *= base
        return min(2 * self.bound / min(factor, most), float(self.limit))

    def region(self, index: np.ndarray, coded: np.ndarray, present: np.ndarray) -> None:
        """Decode one region: indices into the stream's values, or -1; coded and present points."""
        values = np.zeros(index.shape, self.T)
        last = (max(index.shape) - 1).bit_length()
        anchor = tuple([slice(0, 1)] * 3)
        self.points(self.packets[0], values[anchor], index[anchor], coded[anchor],
                    np.zeros((1, 1, 1), self.T), self.bin_width(last),
                    np.full((1, 1, 1), 39), False)  # fmt: skip
        for level in range(last - 1, -1, -1):
            lattice = tuple([slice(None, None, 1 << level)] * 3)
            self.level(level, values[lattice], index[lattice], coded[lattice], present[lattice])

    def level(self, level: int, values, index, coded, present) -> None:
        """Decode the phases 1 to 7 of a level."""
        packet = self.packets[max(0, len(self.packets) - 1 - level)]
        bin_width, shape, magnitudes, known = self.bin_width(level), values.shape, {}, {}
        for t in (0, *PHASES):
            mine = phase(values, t)
            if t and mine.size:
                prediction, variation = self.predict(t, mine.shape, known, level)
                magnitudes[t] = np.zeros([n + 2 for n in mine.shape], np.int64)
                near = neighbours(t, mine.shape, shape, magnitudes)
                for piece in self.pieces(mine.shape, shape, bin_width):
                    contexts = np.full(mine[piece].shape, min(level, 2))
                    if self.contexts != BY_LEVEL:
                        rows = self.rows(magnitudes[t], piece, shape, bin_width)
                        contexts = find_contexts(t, near[0][piece], near[1], *rows,
                                                 variation[piece], bin_width)  # fmt: skip
                    inner = magnitudes[t][1:-1, 1:-1, 1:-1]
                    inner[piece] = self.points(
                        packet, mine[piece], phase(index, t)[piece], phase(coded, t)[piece],
                        prediction[piece], bin_width, contexts,
                        self.contexts == BY_LEVEL)  # fmt: skip
            known[t] = self.extrapolate(t, mine, phase(present, t), shape)

    def extrapolate(self, t: int, values, present, shape) -> tuple[np.ndarray, np.ndarray]:
        """Extrapolate a phase (7.6); return values and presence, `PAD` points more all around."""
        values, present = np.pad(values, PAD), np.pad(present, PAD)
        total, count = np.zeros_like(values), np.zeros(values.shape, np.int64)
        for d, sign in itertools.product(range(3), (1, -1)):
            if t >> d & 1 or shape[d] == 1:
                continue
            a, b, c = (np.roll(values, -sign * i, d) for i in (1, 2, 3))
            has_a, has_b, has_c = (np.roll(present, -sign * i, d) for i in (1, 2, 3))
            b = np.where(has_b, b, a)
            c = np.where(has_b & has_c, c, (b + b) - a)
            e = a - b
            term = self.finite_or_zero(((e + e) + e) + c)
            used = has_a & ~present
            total, count = np.where(used, total + term, total), count + used
        mean = total * (1 / np.maximum(count, 1)).astype(self.T)
        return np.where(count > 0, mean, values), present

    def predict(self, t: int, size, known, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of a phase and the local variation (7.7)."""
        dtype = self.T
        linear = self.options >> (2 + min(level, 3)) & 1
        weights = (dtype(0.5), dtype(0)) if linear else (dtype(0.5625), dtype(-0.0625))
        both, one = [], []  # of each dimension: where it counts, its value and curvature
        for d in (d for d in range(3) if t >> d & 1):
            (v0, v1, v2, v3), (_, h1, h2, _) = (
                [array[shifted(size, {d: k}, PAD)] for k in (-1, 0, 1, 2)]
                for array in known[t - (1 << d)]
            )
            inner, outer = v1 + v2, v0 + v3
            value = inner * weights[0] + outer * weights[1]
            both.append((h1 & h2, value, np.abs(value - inner * dtype(0.5))))
            near, far = np.where(h1, v1, v2), np.where(h1, v0, v3)
            half = (near - far) * dtype(0.5)
            one.append((h1 ^ h2, near + half, np.abs(half)))
        counts, values = np.array([used for used, _, _ in both]), np.array([v for _, v, _ in both])
        low = np.where(counts, values, np.inf).min(axis=0)
        high = np.where(counts, values, -np.inf).max(axis=0)
        alone = ~counts.any(axis=0)
        prediction, variation = (np.where(alone, o, b) for o, b in zip(means(one), means(both)))
        spread = np.where(alone, 0, high - low).astype(dtype)
        return self.finite_or_zero(prediction), (variation + spread).astype(F32)

    def pieces(self, size, shape, bin_width: float):
        """Yield the pieces of a phase whose contexts are known before any of their points is."""
        for z in range(size[0]):
            if self.contexts == BY_LEVEL or (z and self.has_planes(shape, bin_width)):
                yield slice(z, z + 1), slice(0, size[1])
            else:
                yield from ((slice(z, z + 1), slice(y, y + 1)) for y in range(size[1]))

    def has_planes(self, shape, bin_width: float) -> bool:
        """Return whether contexts of a level are by plane."""
        return self.contexts == BY_PLANE and shape[1] > 1 and bin_width != 0

    def rows(self, m: np.ndarray, piece, shape, bin_width) -> tuple[np.ndarray, int, int]:
        """Return the weighted magnitudes of the rows before a piece, their number and weight."""
        z, y = piece[0].start, piece[1].start
        m = m[:, :, :-2] + 2 * m[:, :, 1:-1] + m[:, :, 2:]
        if z and self.has_planes(shape, bin_width):
            return m[z, :-2] + 2 * m[z, 1:-1] + m[z, 2:], 1, 16
        return m[z + 1, y] + m[z, y + 1], (y > 0) + (z > 0), 4

    def points(self, packet, values, index, coded, prediction, bin_width, contexts, grouped):
        """Decode the coded points of a piece (7.8); return the magnitudes of all its points."""
        decoded = packet.decode(contexts[coded].tolist(), grouped, 8 * values.itemsize)
        residual, literal = np.zeros(values.shape, object), np.zeros(values.shape, bool)
        magnitude = np.zeros(values.shape, np.int64)
        literal[coded] = [bits is not None for _, bits in decoded]
        residual[coded] = [folded >> 1 ^ -(folded & 1) for folded, _ in decoded]
        if bin_width:
            magnitude[coded] = [min(255, abs(s)) for s in residual[coded]]
            values[...] = prediction + residual.astype(self.T) * self.T(bin_width)
        else:
            magnitude[coded] = [folded.bit_length() for folded, _ in decoded]
            values[...] = self.lossless(prediction, residual)
        magnitude[literal] = 255 if bin_width else 64
        result = np.array(values)
        result.view(self.word)[literal] = [bits for _, bits in decoded if bits is not None]
        values[literal] = prediction[literal]
        wanted = coded & (index >= 0)
        self.out[index[wanted]] = result[wanted]
        return magnitude

    def lossless(self, prediction, residual) -> np.ndarray:
        """Return the values that follow from predictions and lossless residuals (7.8)."""
        bits, shift = 8 * prediction.itemsize, self.word(self.shift)
        sign = self.word(1 << (bits - 1))
        order = np.ascontiguousarray(prediction).view(self.word)
        order = np.where(order & sign, ~order, order | sign)
        half = self.word(1 << self.shift >> 1)
        wrapped = (residual & ((1 << bits) - 1)).astype(self.word)
        order = (((order + half) >> shift) + wrapped) << shift
        value = np.where(order & sign, order & ~sign, ~order)
        return (value >> shift << shift).view(self.T)


def means(terms: list[tuple]) -> list[np.ndarray]:
    """Return the means of values and curvatures over the dimensions that count at each point."""
    used, *columns = map(np.array, zip(*terms))
    part = (1 / np.maximum(used.sum(axis=0), 1)).astype(columns[0].dtype)
    # Adding -0 changes no number, not even -0.
    return [
        np.where(used, column, -0.0).astype(part.dtype).sum(axis=0) * part for column in columns
    ]


def shifted(size, moved: dict[int, int], pad: int) -> tuple[slice, ...]:
    """Return where the points of a phase are in a padded one, moved along some dimensions."""
    return tuple(slice(s := pad + moved.get(d, 0), s + n) for d, n in enumerate(size))


def neighbours(t: int, size, shape, magnitudes) -> tuple[np.ndarray, int]:
    """Return the sum N of the magnitudes near each point of a phase, and their number c (7.7)."""
    odd = [d for d in range(3) if t >> d & 1]
    if len(odd) > 1:
        offsets = [(t - (1 << d), {d: k}) for d in odd for k in (0, 1)]
    else:
        before = [e for e in range(odd[0]) if shape[e] > 1]
        offsets = [(1 << e, {odd[0]: k, e: j}) for e in before for k in (0, 1) for j in (0, -1)]
    views = [magnitudes[other][shifted(size, moved, 1)] for other, moved in offsets]
    return sum(views, np.zeros(size, np.int64)), len(views)


def find_contexts(t, near, count, sums, rows, scale, variation, bin_width) -> np.ndarray:
    """Return the contexts of points from residual magnitudes before them (7.7).

    `sums` is R, of the magnitudes in `rows` rows, each of which weighs `scale`.
    """
    a, b, g = map(F32, WEIGHTS[t.bit_count()] if bin_width else (0.5, 0.5, 0))
    if rows == 0:
        a = a + b
    if count == 0:
        b = b + a
    expected = near.astype(F32) * (a / F32(max(count, 1)))
    expected = expected + sums.astype(F32) * (b / F32(scale * max(rows, 1)))
    if not bin_width:
        return np.minimum(39, expected * (F32(40) / F32(65))).astype(np.int64)
    expected = expected + variation * (g * F32(1 / np.float64(bin_width)))
    bits = ((expected + F32(1 / 64)).view(np.uint32) >> 22).astype(np.int64)
    bits -= int(F32(1 / 64).view(np.uint32) >> 22)
    return np.where(np.isnan(expected), 39, np.minimum(39, bits))

"""The walk over a region's lattices: predictions, classes and values (format.md, 7.5 to 7.8)."""

import itertools

import numpy as np

from .entropy import LITERAL, Tokens

PHASES = (1, 2, 4, 3, 5, 6, 7)
TIGHTENINGS = ((1.0, 1.0), (1.25, 2.0), (1.5, 3.0), (2.0, 4.0))
WEIGHTS = {1: (0.3, 0.4, 0.15), 2: (0.4, 0.25, 0.1), 3: (0.5, 0.2, 0.08)}
LEVELS, ROWS, PLANES = 1, 2, 3  # kinds of contexts
F32 = np.float32


def phase(lattice: np.ndarray, t: int) -> np.ndarray:
    """Return the points of phase `t` of a lattice, a view."""
    return lattice[tuple(slice(t >> d & 1, None, 2) for d in range(3))]


class Walk:
    """Decodes regions, one after the other.

    Parameters
    ----------
    out
        The values of the stream, one dimension.
    packets
        The tokens of the level packets.
    contexts
        `LEVELS`, `ROWS` or `PLANES`.
    bound
        The error bound, 0 without loss.
    shift
        Lowest bits that are 0 in all values, of lossless streams.
    plan
        The byte *plan* (7.1).
    """

    def __init__(self, out: np.ndarray, packets: list[Tokens], contexts: int, bound: float,
                 shift: int, plan: int) -> None:  # fmt: skip
        self.out, self.packets, self.tokens, self.contexts = out, packets, packets[0], contexts
        self.bound, self.shift, self.plan = bound, shift, plan
        self.T = out.dtype.type
        self.word = np.dtype(f"u{out.itemsize}").type
        self.limit = self.T(1e34 if out.itemsize == 4 else 1e300)

    def tame(self, values: np.ndarray) -> np.ndarray:
        """Return values, and 0 for those that are too large, or no numbers."""
        return np.where(np.abs(values) < self.limit, values, self.T(0))

    def step(self, level: int) -> float:
        """Return the step of a level (7.5); 0 where it is coded without loss."""
        base, most = TIGHTENINGS[self.plan & 3]
        factor = 1.0
        for _ in range(min(level, 63)):
            factor *= base
        return min(2 * self.bound / min(factor, most), float(self.limit))

    def region(self, index: np.ndarray, coded: np.ndarray, everywhere: bool) -> None:
        """Decode one region.

        Parameters
        ----------
        index
            The region: indices into the stream's values, -1 for none.
        coded
            Whether a point is coded.
        everywhere
            Whether all points are there for predictions: *holes are predicted*.
        """
        values = np.zeros(index.shape, self.T)
        there = np.ones(index.shape, bool) if everywhere else coded
        last = (max(index.shape) - 1).bit_length()
        first = (slice(0, 1), slice(0, 1), slice(0, 1))
        self.tokens = self.packets[0]
        self.points(values[first], index[first], coded[first], np.zeros((1, 1, 1), self.T),
                    self.step(last), np.full((1, 1, 1), 39), False)  # fmt: skip
        for level in range(last - 1, -1, -1):
            self.tokens = self.packets[max(0, len(self.packets) - 1 - level)]
            view = tuple([slice(None, None, 1 << level)] * 3)
            self.level(level, values[view], index[view], coded[view], there[view])

    def level(self, level: int, values, index, coded, there) -> None:
        """Decode the phases 1 to 7 of a level."""
        step, shape, marks, continued = self.step(level), values.shape, {}, {}
        for t in (0, *PHASES):
            mine, present = phase(values, t), phase(there, t)
            if t and mine.size:
                prediction, roughness = self.predict(t, mine.shape, shape, continued, level)
                marks[t] = np.zeros([n + 2 for n in mine.shape], np.int64)
                near, count = neighbours(t, mine.shape, shape, marks)
                self.rows(t, level, step, shape[1], mine, phase(index, t), phase(coded, t),
                          prediction, roughness, near, count, marks[t])  # fmt: skip
            continued[t] = self.continuation(t, mine, present, shape)

    def continuation(self, t: int, values, there, shape) -> tuple[np.ndarray, np.ndarray]:
        """Continue a phase where no values are (7.6).

        Returns values, and what is there without them, both with 4 points more on either side
        in the dimensions in which the level has several.
        """
        pad = [(4, 4) if n > 1 else (0, 0) for n in shape]
        values, there = np.pad(values, pad), np.pad(there, pad)
        total, count = np.zeros_like(values), np.zeros(values.shape, np.int64)
        for d, sign in itertools.product(range(3), (1, -1)):
            if t >> d & 1 or shape[d] == 1 or values.size == 0:
                continue
            a, b, c = (np.roll(values, -sign * i, d) for i in (1, 2, 3))
            use, b_there, c_there = (np.roll(there, -sign * i, d) for i in (1, 2, 3))
            b = np.where(b_there, b, a)
            c = np.where(b_there & c_there, c, (b + b) - a)
            e = a - b
            value = self.tame(((e + e) + e) + c)
            use = use & ~there
            total, count = np.where(use, total + value, total), count + use
        mean = total * (1 / np.maximum(count, 1)).astype(self.T)
        return np.where(count > 0, mean, values), there

    def predict(self, t: int, size, shape, continued, level: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the predictions of a phase and their roughness (7.7)."""
        dtype = self.T
        linear = self.plan >> (2 + min(level, 3)) & 1
        weights = (dtype(0.5), dtype(0)) if linear else (dtype(0.5625), dtype(-0.0625))
        zero, none = np.zeros(size, dtype), np.zeros(size, np.int64)
        # of dimensions with both neighbours, and with one: sum, count, bends, smallest, largest
        pairs, singles = [[zero, none, zero, zero, zero] for _ in range(2)]
        for d in (d for d in range(3) if t >> d & 1):
            values, there = continued[t - (1 << d)]

            def at(array, k, d=d):
                starts = [(4 if n > 1 else 0) + (k if e == d else 0) for e, n in enumerate(shape)]
                return array[tuple(slice(s, s + n) for s, n in zip(starts, size, strict=True))]

            v0, v1, v2, v3 = (at(values, k) for k in (-1, 0, 1, 2))
            h1, h2 = at(there, 0), at(there, 1)
            near, far = v1 + v2, v0 + v3
            value = near * weights[0] + far * weights[1]
            add(pairs, h1 & h2, value, np.abs(value - near * dtype(0.5)))
            near, far = np.where(h1, v1, v2), np.where(h1, v0, v3)
            bend = (near - far) * dtype(0.5)
            add(singles, h1 ^ h2, near + bend, np.abs(near - far) * dtype(0.5))
        alone = pairs[1] == 0
        total, count, bends, low, high = (
            np.where(alone, s, p) for s, p in zip(singles, pairs, strict=True)
        )
        part = (1 / np.maximum(count, 1)).astype(dtype)
        spread = np.where(alone, dtype(0), high - low)
        return self.tame(total * part), (bends * part + spread).astype(F32)

    def rows(self, t, level, step, height, values, index, coded, prediction, roughness, near, count,
             marks) -> None:  # fmt: skip
        """Decode a phase, in pieces whose classes are known before any of their points is."""
        depth, rows, _ = values.shape
        planes = self.contexts == PLANES and height > 1 and step != 0
        for z in range(depth):
            whole = self.contexts == LEVELS or (planes and z > 0)
            for y in [slice(0, rows)] if whole else [slice(y, y + 1) for y in range(rows)]:
                piece = (slice(z, z + 1), y)
                if self.contexts == LEVELS:
                    classes = np.full(values[piece].shape, min(level, 2))
                else:
                    above = plane(marks[z]) if planes and z > 0 else row(marks, z, y.start)
                    classes = self.classes(t, near[piece], count, *above, roughness[piece], step)
                mark = self.points(values[piece], index[piece], coded[piece], prediction[piece],
                                   step, classes, self.contexts == LEVELS)  # fmt: skip
                marks[z + 1, y.start + 1 : y.stop + 1, 1:-1] = mark[0]

    def classes(self, t, near, count, sums, rows, scale, roughness, step) -> np.ndarray:
        """Return the classes of points from marks before them (7.7).

        `sums` is of the marks in `rows` rows before, each weighing `scale` in all.
        """
        a, b, g = WEIGHTS[t.bit_count()] if step else (0.5, 0.5, 0)
        a, b = F32(a), F32(b)
        if rows == 0:
            a = a + b
        if count == 0:
            b = b + a
        expected = near.astype(F32) * (a / F32(max(count, 1)))
        expected = expected + sums.astype(F32) * (b / F32(scale * max(rows, 1)))
        if not step:
            return np.minimum(39, expected * (F32(40) / F32(65))).astype(np.int64)
        expected = expected + roughness * (F32(g) * F32(1 / np.float64(step)))
        bits = (expected + F32(1 / 64)).view(np.uint32) >> 22
        bits = bits.astype(np.int64) - int(F32(1 / 64).view(np.uint32) >> 22)
        return np.where(np.isnan(expected), 39, np.minimum(39, bits))

    def points(self, values, index, coded, prediction, step, classes, grouped) -> np.ndarray:
        """Decode the coded points of a piece (7.8); return the marks of all its points."""
        tokens = self.tokens.run(classes[coded].tolist(), grouped)
        residuals, marks, literals = [], [], []
        for token in tokens:
            if token == LITERAL:
                literals.append((len(marks), self.tokens.raw.take(8 * values.itemsize)))
                residuals.append(0)
                marks.append(255 if step else 64)
            else:
                folded = self.tokens.residual(token)
                residuals.append(folded >> 1 if folded & 1 == 0 else -(folded + 1 >> 1))
                marks.append(min(255, abs(residuals[-1])) if step else folded.bit_length())
        residual, mark = np.zeros(values.shape, object), np.zeros(values.shape, np.int64)
        residual[coded], mark[coded] = residuals, marks
        if step:
            step_t = self.T(step)
            values[...] = np.where(
                np.ones(1, bool), prediction + residual.astype(self.T) * step_t, 0
            )
        else:
            values[...] = self.shifted(prediction, residual)
        decoded = values[coded]
        if literals:
            places = [place for place, _ in literals]
            decoded.view(self.word)[places] = [bits for _, bits in literals]
            flat = values[coded]
            flat[places] = prediction[coded][places]
            values[coded] = flat
        wanted = index[coded]
        self.out[wanted[wanted >= 0]] = decoded[wanted >= 0]
        return mark

    def shifted(self, prediction, residual) -> np.ndarray:
        """Return the values that lie `residual` behind predictions in the order of values."""
        bits, shift = 8 * prediction.itemsize, self.word(self.shift if not self.bound else 0)
        sign = self.word(1 << (bits - 1))
        order = np.ascontiguousarray(prediction).view(self.word)
        order = np.where(order & sign, ~order, order | sign)
        half = self.word(1 << int(shift) >> 1)
        wrapped = (residual & ((1 << bits) - 1)).astype(self.word)
        order = (((order + half) >> shift) + wrapped) << shift
        value = np.where(order & sign, order & ~sign, ~order)
        return (value >> shift << shift).view(self.T)


def add(sums: list[np.ndarray], where, value, bend) -> None:
    """Add values and bends to their sums where they count."""
    total, count, bends, low, high = sums
    first = where & (count == 0)
    sums[:] = (
        np.where(first, value, np.where(where, total + value, total)),
        count + where,
        np.where(where, bends + bend, bends),
        np.where(first | (where & (value < low)), value, low),
        np.where(first | (where & (value > high)), value, high),
    )


def neighbours(t: int, size, shape, marks) -> tuple[np.ndarray, int]:
    """Return the sum of the marks near each point of a phase, and of how many points (7.7)."""
    near, count = np.zeros(size, np.int64), 0
    odd = [d for d in range(3) if t >> d & 1]
    if len(odd) > 1:
        offsets = [(t - (1 << d), {d: k}) for d in odd for k in (0, 1)]
    else:
        before = [e for e in range(odd[0]) if shape[e] > 1]
        offsets = [(1 << e, {odd[0]: k, e: j}) for e in before for k in (0, 1) for j in (0, -1)]
    for other, moved in offsets:
        starts = [1 + moved.get(d, 0) for d in range(3)]
        view = tuple(slice(s, s + n) for s, n in zip(starts, size, strict=True))
        near, count = near + marks[other][view], count + 1
    return near, count


def row(marks: np.ndarray, z: int, y: int) -> tuple[np.ndarray, int, int]:
    """Return the weighted marks of the rows before row (z, y), their number and weight."""
    before = [marks[z + 1, y]] if y else []
    before += [marks[z, y + 1]] if z else []
    sums = sum((2 * m[1:-1] + m[:-2] + m[2:] for m in before), np.zeros(marks.shape[2] - 2, int))
    return sums, len(before), 4


def plane(marks: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Return the weighted marks of a plane around each point, and their weight."""
    sums = marks[:, :-2] + 2 * marks[:, 1:-1] + marks[:, 2:]
    return sums[:-2] + 2 * sums[1:-1] + sums[2:], 1, 16

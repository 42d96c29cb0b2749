"""The stream of the codec `ambar.simplices`: corners of cells (format.md, chapter 9)."""

from bisect import bisect_left
from collections import defaultdict
from itertools import combinations, product

import numpy as np

from .bits import BinaryDecoder, Reader, check, check_supported, probabilities, sealed

OPEN, WALL, MET = range(3)
MASK = (1 << 64) - 1


def decode(data: bytes, expected: int | None = None) -> np.ndarray:
    """Return the corners of all cells, of unsigned integers, in one dimension.

    `expected` is their number, if the caller knows it: no more memory is asked for.

    Raises
    ------
    ValueError
        If the stream is damaged, or of another version.
    """
    reader = Reader(sealed(data))
    version, size, width, flags = reader.take(4)
    check_supported(version == 1, f"a stream of version {version}; expected 1")
    check(size in (4, 8) and 2 <= width <= 4 and flags < 4, "size, width or flags do not exist")
    cells, points = reader.number(), reader.number()
    check(expected in (None, cells * width), "another number of corners than expected")
    check(cells <= 1 << 27 and points <= cells * width, "cells or points that cannot be")
    coder = BinaryDecoder(reader.section())
    reader.end()
    values, magnitude, value = [], Magnitude(coder, MASK), -1
    for _ in range(points):
        value += magnitude.decode() + 1
        values.append(value)
    check(value < 1 << 8 * size, "values that exceed their size")
    walk = Walk(coder, width, cells, points, flags)
    rows = walk.decode()
    coder.end()
    ranks = [walk.ranks[corner] for row in rows for corner in row]
    return np.array(values, f"u{size}")[ranks] if ranks else np.zeros(0, f"u{size}")


class Magnitude:
    """Whole numbers up to `most` with probabilities of their own (9.2)."""

    def __init__(self, coder: BinaryDecoder, most: int) -> None:
        self.coder, self.width = coder, most.bit_length().bit_length()
        self.lengths = probabilities(1 << self.width)
        self.tops: dict = defaultdict(lambda: probabilities(8))

    def decode(self) -> int:
        """Return the next number."""
        length = min(64, self.coder.tree(self.lengths, self.width))
        if length < 2:
            return length
        top = min(3, length - 1)
        value, left = 1 << top | self.coder.tree(self.tops[length], top), length - 1 - top
        while left:
            piece = min(16, left)
            value, left = value << piece | self.coder.uniform(1 << piece), left - piece
        return value

    def folded(self) -> int:
        """Return the next number, which is signed."""
        value = self.decode()
        return value >> 1 if value & 1 == 0 else -(value + 1 >> 1)


class Places:
    """Places of which each is taken once, in blocks of 64 (9.2)."""

    def __init__(self, coder: BinaryDecoder, count: int) -> None:
        self.coder = coder
        self.free = [list(range(b, min(b + 64, count))) for b in range(0, count, 64)]

    def probabilities(self) -> tuple[Magnitude, ...]:
        """Return new probabilities for places: of blocks, within, before and behind."""
        return tuple(Magnitude(self.coder, n) for n in (2 * len(self.free), 128, 128, 128))

    def decode(self, near: int, chances: tuple[Magnitude, ...]) -> int:
        """Take a place near another one, and return it."""
        away = chances[0].folded()
        block = near // 64 + away
        check(
            0 <= block < len(self.free) and self.free[block], "a place in no block, or a full one"
        )
        free = self.free[block]
        if away == 0:
            number = bisect_left(free, near) + chances[1].folded()
        elif away == -1:
            number = len(free) - 1 - chances[2].decode()
        elif away == 1:
            number = chances[3].decode()
        else:
            number = self.coder.uniform(len(free))
        check(0 <= number < len(free), "a place beyond those that are free")
        return free.pop(number)

    def first(self) -> int:
        """Take the first free place, and return it."""
        return next(filter(None, self.free)).pop(0)


class Facet:
    """A cell's corners without one, and what it touches in its ridges."""

    def __init__(self, corners: list[int], row: int, missing: int) -> None:
        self.corners, self.row, self.missing, self.state = corners, row, missing, OPEN
        self.touched: list = [None] * len(corners)  # facet and ridge, or None
        self.around = [1] * len(corners)

    def ridge(self, i: int) -> list[int]:
        """Return the corners of ridge `i`."""
        return sorted(self.corners[:i] + self.corners[i + 1 :])

    def contact(self, i: int):
        """Return facet and ridge that ridge `i` touches, or None."""
        other = self.touched[i]
        if other is None or other[0].touched[other[1]] != (self, i):
            return None
        return None if other[0].state == MET or other[0] is self else other


def touch(a: Facet, i: int, b: Facet, j: int, around: int) -> None:
    """Make two ridges touch."""
    a.touched[i], b.touched[j] = (b, j), (a, i)
    a.around[i] = b.around[j] = min(255, around)


class Walk:
    """Meets all cells, mostly behind facets of those before (9.4)."""

    def __init__(self, coder: BinaryDecoder, width: int, cells: int, points: int, flags: int):
        self.coder, self.width, self.points, self.flags = coder, width, points, flags
        self.rows = Places(coder, cells)
        self.all_points = Places(coder, points)
        self.cells: list = [None] * cells
        self.ranks: list[int] = []  # of points, by their numbers
        self.queue: list[Facet] = []
        self.table: dict = defaultdict(list)
        least = max(64, cells // 4)
        self.slot_bits = min(18, (least - 1).bit_length())
        self.row_chances = [self.rows.probabilities() for _ in range(2)]
        self.point_chances = self.all_points.probabilities()
        self.since = Magnitude(coder, points)
        self.since_begin = Magnitude(coder, points)
        self.bits: dict = defaultdict(lambda: probabilities(1))
        self.orders: dict = defaultdict(lambda: probabilities(4))
        self.last_wall, self.last_of_highest = 0, {}

    def decode(self) -> list[list[int]]:
        """Return the corners of all cells, as numbers of points."""
        met, head = 0, 0
        while met < len(self.cells):
            if head == len(self.queue):
                self.begin()
                met += 1
            else:
                facet, head = self.queue[head], head + 1
                if facet.state == OPEN:
                    met += self.go_through(facet)
        check(len(self.ranks) == self.points, "points that belong to no cell")
        return self.cells

    def bit(self, *context) -> int:
        """Return a bit under a probability of its own."""
        return self.coder.bit(self.bits[context], 0)

    def new_point(self, near: int) -> int:
        """Meet a new point; return its number."""
        near = self.points // 2 if self.flags & 2 else near
        self.ranks.append(self.all_points.decode(near, self.point_chances))
        return len(self.ranks) - 1

    def old_point(self, since: Magnitude) -> int:
        """Return a point that was met, by how many were since."""
        number = len(self.ranks) - 1 - since.decode()
        check(number >= 0, "a point that was not met")
        return number

    def begin(self) -> None:
        """Meet a cell behind no facet."""
        row, corners = self.rows.first(), []
        for j in range(self.width):
            near = self.ranks[-1] if self.ranks else 0
            is_new = self.bit("first new", j)
            corners.append(self.new_point(near) if is_new else self.old_point(self.since_begin))
        self.meet(row, corners)
        facets = facets_of(corners, row, range(self.width))
        for facet in facets:
            self.enter(facet)
        self.queue += [f for f in facets if f.state == OPEN]

    def meet(self, row: int, corners: list[int]) -> None:
        """Note that a cell is met."""
        self.cells[row] = corners
        self.last_of_highest[max(corners, key=lambda c: self.ranks[c])] = row

    def slot(self, corners: list[int]) -> list[Facet]:
        """Return the facets in the slot of these corners, the one entered last at the end."""
        total = 0
        for corner in corners:
            p = corner * 0x9E3779B97F4A7C15 & MASK
            total += p ^ p >> 29
        return self.table[(total * 0xBF58476D1CE4E5B9 & MASK) >> 64 - self.slot_bits]

    def enter(self, facet: Facet) -> None:
        """Enter a facet into the table, or join it with the one of the same corners there."""
        slot = self.slot(facet.corners)
        for other in slot[:-49:-1]:
            if sorted(other.corners) == sorted(facet.corners):
                slot.remove(other)
                join(other, facet)
                return
        slot.append(facet)

    def leave(self, facet: Facet) -> None:
        """Take a facet out of the table."""
        if facet in (slot := self.slot(facet.corners)):
            slot.remove(facet)

    def go_through(self, facet: Facet) -> int:
        """Pass an open facet: meet the cell behind it; return how many were met."""
        self.leave(facet)
        contacts = [facet.contact(i) for i in range(len(facet.corners))]
        around = max(facet.around)
        walls = sum(c is not None and c[0].state == WALL for c in contacts)
        self.last_wall = self.bit("walls", walls, self.last_wall, min(7, around))
        if self.last_wall:
            facet.state = WALL
            return 0
        corner = self.behind(facet, contacts, around)
        corners = [*facet.corners, corner]
        ordered = self.order(facet.missing, corners)
        highest = max(ordered, key=lambda c: self.ranks[c])
        near, chances = facet.row, self.row_chances[1]
        if highest in self.last_of_highest:
            near, chances = self.last_of_highest[highest], self.row_chances[0]
        if self.flags & 1:
            near, chances = len(self.cells) // 2, self.row_chances[0]
        row = self.rows.decode(near, chances)
        self.meet(row, ordered)
        self.attach(facet, corner, row, ordered)
        return 1

    def attach(self, facet: Facet, corner: int, row: int, ordered: list[int]) -> None:
        """Make the facets of the cell behind `facet`."""
        contacts = [facet.contact(i) for i in range(len(facet.corners))]
        around = list(facet.around)
        facet.state = MET
        facets = facets_of(ordered, row, map(ordered.index, facet.corners))
        for i, new in enumerate(facets):
            if contacts[i]:
                touch(new, new.corners.index(corner), *contacts[i], around[i] + 1)
        for i, new in enumerate(facets):
            other = contacts[i]
            if other and other[0].state == OPEN and other[0].corners[other[1]] == corner:
                self.leave(other[0])
                join(other[0], new)
            else:
                self.enter(new)
        self.queue += [f for f in facets if f.state == OPEN]

    def behind(self, facet: Facet, contacts: list, around: int) -> int:
        """Return the corner behind a facet."""
        across: dict[int, list[int]] = {}
        for i, contact in enumerate(contacts):
            if contact:
                seen = across.setdefault(contact[0].corners[contact[1]], [0, 0])
                seen[0], seen[1] = seen[0] + 1, max(seen[1], facet.around[i])
        candidates = sorted(((r, a, c) for c, (r, a) in across.items()), reverse=True)
        for i, (r, a, c) in enumerate(candidates):
            following = next((a for _, a, _ in candidates[i + 1 :]), 0)
            if self.bit("candidates", i, r, min(7, a), min(7, following)):
                return c
        if self.bit("new", min(7, around)):
            ranks = sorted(self.ranks[c] for c in facet.corners)
            return self.new_point(ranks[len(ranks) // 2])
        near = [c[0].contact(j) for c in contacts if c for j in range(self.width - 1)]
        further = dict.fromkeys(f.corners[j] for f, j in filter(None, near))
        far = [c for c in further if c not in facet.corners and c not in across]
        for number, c in enumerate(far):
            if self.bit("away", number):
                return c
        return self.old_point(self.since)

    def order(self, missing: int, corners: list[int]) -> list[int]:
        """Return the corners of a cell in the order of its row."""
        ranks = [self.ranks[c] for c in corners]
        context = missing, ranks.index(max(ranks)), ranks.index(min(ranks))
        left, ordered = list(range(self.width)), []
        while len(left) > 1:
            tree = self.orders[(*context, len(ordered), *ordered)]
            number = self.coder.tree(tree, (len(left) - 1).bit_length())
            ordered.append(left.pop(min(number, len(left) - 1)))
        return [corners[i] for i in ordered + left]


def facets_of(corners: list[int], row: int, missing) -> list[Facet]:
    """Return the facets of a cell without these corners. Ridges of the same corners touch."""
    facets = [Facet(corners[:j] + corners[j + 1 :], row, j) for j in missing]
    for a, b in combinations(facets, 2):
        for i, j in product(range(len(corners) - 1), repeat=2):
            if a.ridge(i) == b.ridge(j):
                touch(a, i, b, j, 1)
    return facets


def join(first: Facet, second: Facet) -> None:
    """Join two facets of the same corners."""
    for i, corner in enumerate(first.corners):
        j = len(second.corners) - 1 - second.corners[::-1].index(corner)
        a, b = first.contact(i), second.contact(j)
        if a and b and a[0] is not second and b[0] is not first:
            touch(*a, *b, first.around[i] + second.around[j])
    first.state = second.state = MET

"""Streams of the codec `ambar.simplices`: corners of cells (format.md, chapter 9)."""

from bisect import bisect_left
from collections import defaultdict, deque
from itertools import combinations, pairwise

import numpy as np

from .bits import BinaryDecoder, Reader, UnsupportedError, check, damage, sealed

OPEN, BOUNDARY, CLOSED = range(3)
MASK = (1 << 64) - 1


@damage()
def decode(data: bytes, expected: int | None = None) -> np.ndarray:
    """Return the corners of all cells, in one dimension; `expected` is their number, if known."""
    reader = Reader(sealed(data))
    version, size, width, flags = reader.take(4)
    check(version == 1, f"a stream of version {version}; expected 1", UnsupportedError)
    check(size in (4, 8) and 2 <= width <= 4 and flags < 4, "invalid size, width or flags")
    cells, points = reader.number(), reader.number()
    check(expected in (None, cells * width), "another number of corners than expected")
    check(cells <= 1 << 27 and points <= cells * width, "too many cells or points")
    coder, value, values = BinaryDecoder(reader.section()), -1, []
    reader.end()
    for _ in range(points):
        value += coder.magnitude(MASK, "values") + 1
        values.append(value)
    check(value < 1 << 8 * size, "values that exceed their size")
    traversal = Traversal(coder, width, cells, points, flags)
    rows = traversal.decode()
    coder.end()
    ranks = np.array([traversal.ranks[corner] for row in rows for corner in row], np.int64)
    return np.array(values, f"u{size}")[ranks]


def decode_position(coder: BinaryDecoder, blocks: list[list[int]], near: int, name: str) -> int:
    """Return *position(near)*, one of the free positions of blocks of 64 (9.2)."""
    offset = coder.signed(2 * len(blocks), name, "blocks")
    block = near // 64 + offset
    check(0 <= block < len(blocks) and blocks[block], "a block without free positions")
    free = blocks[block]
    if offset == 0:
        number = bisect_left(free, near) + coder.signed(128, name, "within")
    elif offset == -1:
        number = len(free) - 1 - coder.magnitude(128, name, "before")
    elif offset == 1:
        number = coder.magnitude(128, name, "after")
    else:
        number = coder.uniform(len(free))
    check(0 <= number < len(free), "a position beyond those that are free")
    return free.pop(number)


class Ridge:
    """A facet without one of its corners."""

    def __init__(self, facet: "Facet", corner: int) -> None:
        self.facet, self.corner, self.contact, self.degree = facet, corner, None, 1

    @property
    def touched(self) -> "Ridge | None":
        """Return the ridge that this one touches; its corner is opposite to this ridge."""
        other = self.contact
        lost = other is None or other.contact is not self or other.facet.state == CLOSED
        return None if lost or other.facet is self.facet else other


class Facet:
    """A cell without the corner at index `missing` of its row."""

    def __init__(self, corners: list[int], row: int, missing: int) -> None:
        self.corners = corners[:missing] + corners[missing + 1 :]
        self.row, self.missing, self.state = row, missing, OPEN
        self.ridges = [Ridge(self, corner) for corner in self.corners]

    def ridge(self, index: int) -> Ridge:
        """Return the ridge without the corner at an index of the row."""
        return self.ridges[index - (index > self.missing)]


def connect(a: Ridge, b: Ridge, degree: int) -> None:
    """Connect two ridges."""
    a.contact, b.contact = b, a
    a.degree = b.degree = min(255, degree)


def facets_of(corners: list[int], row: int, missing) -> list[Facet]:
    """Return the facets of a cell without the corners at these indices, and connect them."""
    facets = [Facet(corners, row, index) for index in missing]
    for a, b in combinations(facets, 2):
        connect(a.ridge(b.missing), b.ridge(a.missing), 1)
    return facets


def join(new: Facet, old: Facet) -> None:
    """Join two facets with the same corners."""
    others = {ridge.corner: ridge for ridge in old.ridges}  # the last one of equal corners
    for ridge in new.ridges:
        other = others[ridge.corner]
        a, b = ridge.touched, other.touched
        if a and b and a.facet is not old and b.facet is not new:
            connect(a, b, ridge.degree + other.degree)
    new.state = old.state = CLOSED


class Traversal:
    """Visits all cells (9.4)."""

    def __init__(self, coder: BinaryDecoder, width: int, cells: int, points: int, flags: int):
        self.coder, self.width, self.points = coder, width, points
        self.cells_are_scattered, self.points_are_scattered = flags & 1, flags & 2
        self.free_rows, self.free_ranks = (
            [[*range(b, min(b + 64, count))] for b in range(0, count, 64)]
            for count in (cells, points)
        )
        self.cells: list = [None] * cells
        self.ranks: list[int] = []  # of points, by their numbers
        self.queue: deque[Facet] = deque()
        self.table: dict[int, list[Facet]] = defaultdict(list)
        self.slot_bits = min(18, (max(64, cells // 4) - 1).bit_length())
        self.rest, self.last_boundary = cells, 0
        self.rows_of_highest: dict[int, int] = {}

    def decode(self) -> list[list[int]]:
        """Return the corners of all cells, as numbers of points."""
        while self.rest:
            if not self.queue:
                self.start()
            elif (facet := self.queue.popleft()).state == OPEN:
                self.cross(facet)
        check(len(self.ranks) == self.points, f"{len(self.ranks)} points; expected {self.points}")
        return self.cells

    def new_point(self, near: int) -> int:
        """Visit a new point; return its number."""
        near = self.points // 2 if self.points_are_scattered else near
        self.ranks.append(decode_position(self.coder, self.free_ranks, near, "new point"))
        return len(self.ranks) - 1

    def old_point(self, context: str) -> int:
        """Return a point by the number of points visited after it."""
        number = len(self.ranks) - 1 - self.coder.magnitude(self.points, context)
        check(number >= 0, "a point that was not visited")
        return number

    def start(self) -> None:
        """Start a component."""
        row, corners = next(filter(None, self.free_rows)).pop(0), []
        for j in range(self.width):
            near = self.ranks[-1] if self.ranks else 0
            is_new = self.coder.bit("starts new", j)
            corners.append(self.new_point(near) if is_new else self.old_point("old at start"))
        facets = facets_of(corners, row, range(self.width))
        self.visit(row, corners, facets, [None] * self.width)

    def cross(self, facet: Facet) -> None:
        """Cross a facet."""
        self.remove(facet)
        touched, degrees = zip(*((ridge.touched, ridge.degree) for ridge in facet.ridges))
        boundaries = sum(ridge is not None and ridge.facet.state == BOUNDARY for ridge in touched)
        context = boundaries, self.last_boundary, min(7, max(degrees))
        self.last_boundary = self.coder.bit("boundaries", *context)
        if self.last_boundary:
            facet.state = BOUNDARY
            return
        apex = self.decode_apex(facet, touched, degrees)
        corners = [*facet.corners, apex]
        order = self.decode_order(facet.missing, corners)
        corners = [corners[number] for number in order]
        near, name = self.rows_of_highest.get(self.highest(corners)), "row of highest"
        if self.cells_are_scattered:
            near = len(self.cells) // 2
        elif near is None:
            near, name = facet.row, "row of facet"
        row = decode_position(self.coder, self.free_rows, near, name)
        facet.state = CLOSED
        *indices, apex_index = (order.index(number) for number in range(self.width))
        facets = facets_of(corners, row, indices)
        for new, ridge, degree in zip(facets, touched, degrees):
            if ridge:
                connect(new.ridge(apex_index), ridge, degree + 1)
        self.visit(row, corners, facets, touched, apex)

    def decode_apex(self, facet: Facet, touched, degrees) -> int:
        """Return the corner of the next cell that is not in the facet."""
        found: dict[int, tuple[int, int]] = {}
        for ridge, degree in zip(touched, degrees):
            if ridge:
                count, highest = found.get(ridge.corner, (0, 0))
                found[ridge.corner] = count + 1, max(highest, degree)
        candidates = sorted(((r, a, corner) for corner, (r, a) in found.items()), reverse=True)
        for i, ((r, a, corner), (_, b, _)) in enumerate(pairwise([*candidates, (0, 0, 0)])):
            if self.coder.bit("candidates", i, r, min(7, a), min(7, b)):
                return corner
        if self.coder.bit("new", min(7, max(degrees))):
            ranks = sorted(self.ranks[corner] for corner in facet.corners)
            return self.new_point(ranks[len(ranks) // 2])
        further = [ridge.touched for near in touched if near for ridge in near.facet.ridges]
        corners = dict.fromkeys(ridge.corner for ridge in further if ridge)
        distant = [corner for corner in corners if corner not in {*facet.corners, *found}]
        for i, corner in enumerate(distant):
            if self.coder.bit("distant", i):
                return corner
        return self.old_point("old at facet")

    def decode_order(self, missing: int, corners: list[int]) -> list[int]:
        """Return the numbers of the corners of a cell in the order of its row."""
        ranks = [self.ranks[corner] for corner in corners]
        context = missing, ranks.index(max(ranks)), ranks.index(min(ranks))
        rest, placed = list(range(self.width)), []
        while len(rest) > 1:
            width = (len(rest) - 1).bit_length()
            number = self.coder.tree(width, "order", *context, *placed)
            placed.append(rest.pop(min(number, len(rest) - 1)))
        return placed + rest

    def highest(self, corners: list[int]) -> int:
        """Return the corner of the highest rank."""
        return max(corners, key=self.ranks.__getitem__)

    def visit(self, row: int, corners: list[int], facets, touched, apex=None) -> None:
        """Visit a cell: join its facets to those of other cells, or enter them."""
        self.cells[row], self.rows_of_highest[self.highest(corners)] = corners, row
        self.rest -= 1
        for facet, ridge in zip(facets, touched):
            if ridge and ridge.facet.state == OPEN and ridge.corner == apex:
                self.remove(ridge.facet)
                join(facet, ridge.facet)
            else:
                self.enter(facet)
        self.queue += [facet for facet in facets if facet.state == OPEN]

    def slot(self, corners: list[int]) -> list[Facet]:
        """Return the facets in the slot of these corners, the one entered last at the end."""
        products = [corner * 0x9E3779B97F4A7C15 & MASK for corner in corners]
        total = sum(p ^ p >> 29 for p in products) * 0xBF58476D1CE4E5B9 & MASK
        return self.table[total >> 64 - self.slot_bits]

    def enter(self, facet: Facet) -> None:
        """Enter a facet into the table, or join it with that of the same corners."""
        slot = self.slot(facet.corners)
        for other in slot[:-49:-1]:
            if sorted(other.corners) == sorted(facet.corners):
                slot.remove(other)
                join(facet, other)
                return
        slot.append(facet)

    def remove(self, facet: Facet) -> None:
        """Remove a facet from the table."""
        if facet in (slot := self.slot(facet.corners)):
            slot.remove(facet)

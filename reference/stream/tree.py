"""Regions of the leaf cells of a tree (format.md, 7.11).

A node is its level and its key on that level: the bits of its indices by turns, x first.
"""

import numpy as np

from .bits import BinaryDecoder, Reader, Whole, check, probabilities

BITS = 42  # of the indices of nodes of the finest level


class Places:
    """Decodes the places of cells, in the order of the curve."""

    def __init__(self, data: bytes, dimensions: int, depth: int, count: int) -> None:
        self.coder, self.whole = BinaryDecoder(data), Whole()
        self.once, self.twice = probabilities(500), probabilities(500)
        self.dimensions, self.depth, self.count = dimensions, depth, count
        self.cells: list[tuple[int, int]] = []
        self.states: dict[tuple[int, int], int] = {}
        self.refined = 0  # how many nodes have state 4

    def decode(self) -> list[tuple[int, int]]:
        """Return level and key of each cell."""
        follows = None
        while len(self.cells) < self.count:
            follows = self.run(follows)
        self.coder.end()
        return self.cells

    def run(self, follows: tuple[int, int] | None) -> tuple[int, int]:
        """Decode a run of cells that begins behind node `follows`; return the next node."""
        end = len(self.cells) + self.whole.decode(self.coder)
        level = self.whole.decode(self.coder)
        index = [self.whole.decode(self.coder) for _ in range(self.dimensions)]
        check(len(self.cells) < end <= self.count, "a run of too few or too many cells")
        check(level <= self.depth, "a level beyond the depth")
        check(max(index) < 1 << (BITS - self.depth + level), "an index that is too large")
        node = level, interleave(index)
        check(follows is None or self.first(node) > self.first(follows), "runs out of order")
        if self.refined > self.count:
            self.states, self.refined = {}, 0
        self.ancestors(node)
        self.cell(node)
        node = self.next(node)
        while len(self.cells) < end:
            check(self.first(node) < 1 << BITS * self.dimensions, "a node beyond the end")
            node = self.next(self.step(node, end))
        return node

    def step(self, node: tuple[int, int], end: int) -> tuple[int, int]:
        """Decode the cells that begin where `node` does; return the last of them."""
        while True:
            level, key = node
            if level == 0:
                self.ancestors(node)
            if level == self.depth or not self.bit(self.once, node):
                self.cell(node)
                return node
            if level + 1 == self.depth or not self.bit(self.twice, node):
                children = 1 << self.dimensions
                left = min(children, end - len(self.cells))
                check(left == children or level + 1 == self.depth, "children that are too many")
                self.states[node] = 3
                first = key << self.dimensions
                self.cells += [(level + 1, first + i) for i in range(left)]
                return self.cells[-1]
            self.refine(node)
            node = level + 1, key << self.dimensions

    def cell(self, node: tuple[int, int]) -> None:
        """Add a cell."""
        self.cells.append(node)
        self.states[node] = 2

    def refine(self, node: tuple[int, int]) -> None:
        """Say that a node is refined twice, or that the first cell of a run lies in it."""
        self.refined += self.states.get(node) != 4
        self.states[node] = 4

    def ancestors(self, node: tuple[int, int]) -> None:
        """Say that all parents of a node are refined."""
        level, key = node
        while level > self.depth - BITS - 1:
            level, key = level - 1, key >> self.dimensions
            self.refine((level, key))

    def next(self, node: tuple[int, int]) -> tuple[int, int]:
        """Return the largest node of level 0 or finer that begins where `node` ends."""
        level, key = node[0], node[1] + 1
        while level > 0 and key % (1 << self.dimensions) == 0:
            level, key = level - 1, key >> self.dimensions
        return level, key

    def first(self, node: tuple[int, int]) -> int:
        """Return the key, on the finest level, at which a node begins."""
        return node[1] << (self.depth - node[0]) * self.dimensions

    def bit(self, p: list[int], node: tuple[int, int]) -> int:
        """Return a bit on a node, under the states of its neighbours."""
        level, key = node
        index, number = deinterleave(key, self.dimensions), 0
        for d in range(3):
            state, back = 0, d - 3 + self.dimensions
            if back >= 0 and index[back]:
                moved = [n - (e == back) for e, n in enumerate(index)]
                state = self.state(level, interleave(moved))
            number = 5 * number + state
        return self.coder.bit(p, 125 * min(3, self.depth - 1 - level) + number)

    def state(self, level: int, key: int) -> int:
        """Return the state of a node."""
        up = 0
        while (level, key) not in self.states:
            level, key, up = level - 1, key >> self.dimensions, up + 1
            if level < self.depth - BITS - 1:
                return 0
        state = self.states[level, key]
        if up == 0:
            return state
        if state == 3:
            return 2 if up == 1 else 1
        return 1 if state == 2 else 0


def interleave(index: list[int]) -> int:
    """Return the key of indices whose last one is x."""
    key, dimensions = 0, len(index)
    for d, n in enumerate(reversed(index)):
        for b in range(n.bit_length()):
            key |= (n >> b & 1) << (b * dimensions + d)
    return key


def deinterleave(key: int, dimensions: int) -> list[int]:
    """Return the indices of a key, the last one x."""
    bits = f"{key:0{BITS * dimensions}b}"[::-1]
    return [int(bits[d::dimensions][::-1], 2) for d in range(dimensions - 1, -1, -1)]


def read_regions(reader: Reader, count: int) -> list[np.ndarray]:
    """Read the part *tree* of a stream; return the regions of its values."""
    dimensions, depth, cells = reader.unpack("B"), reader.unpack("B"), reader.number()
    check(1 <= dimensions <= 3 and depth <= BITS and cells <= count, "a tree that cannot be")
    nodes = Places(reader.section(), dimensions, depth, cells).decode()
    regions = []
    for level in range(depth + 1):
        rows = [row for row, node in enumerate(nodes) if node[0] == level]
        stack = [rows] if rows else []
        while stack:
            rows = stack.pop()
            parents = [nodes[row][1] >> dimensions for row in rows]
            places = np.array([deinterleave(nodes[row][1], dimensions) for row in rows])
            lo, hi = places.min(axis=0) // 2, places.max(axis=0) // 2 + 1
            volume = float(np.prod((hi - lo).astype(np.float64)))
            if parents[0] != parents[-1] and len(rows) < volume * 0.125 * 2**dimensions:
                bit = (parents[0] ^ parents[-1]).bit_length() - 1
                at = sum(not parent >> bit & 1 for parent in parents)
                stack += [rows[at:], rows[:at]]
                continue
            region = np.full(2 * (hi - lo), -1)
            region[tuple((places - 2 * lo).T)] = rows
            regions.append(region.reshape((1, 1, 1, *region.shape)[-3:]))
    rest = np.arange(cells, count)
    return regions + ([rest.reshape(1, 1, -1)] if rest.size else [])

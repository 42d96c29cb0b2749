"""Regions of the leaf cells of a tree (format.md, 7.11). A node is its level and Morton key."""

import numpy as np

from .bits import BinaryDecoder, Reader, check
from .regions import deinterleave, fill, interleave, partition, volume

BITS = 42  # of the indices of nodes of the finest level


class Tree:
    """Decodes the positions of the cells of a tree."""

    def __init__(self, data: bytes, dimensions: int, depth: int, count: int) -> None:
        self.coder, self.dimensions = BinaryDecoder(data), dimensions
        self.depth, self.count = depth, count
        self.axes = [sum(1 << dimensions * b + d for b in range(BITS)) for d in range(dimensions)]
        self.cells: list[tuple[int, int]] = []
        self.states: dict[tuple[int, int], int] = {}  # 2 and 3
        self.refined: set[tuple[int, int]] = set()  # nodes of state 4

    def decode(self) -> list[tuple[int, int]]:
        """Return the cells."""
        node = None
        while len(self.cells) < self.count:
            end = len(self.cells) + self.coder.integer64()
            level = self.coder.integer64()
            index = [self.coder.integer64() for _ in range(self.dimensions)]
            check(len(self.cells) < end <= self.count, "a run of too few or too many cells")
            check(level <= self.depth, "a level beyond the depth")
            check(max(index) < 1 << (BITS - self.depth + level), "an index that is too large")
            cell = level, interleave(index)
            check(node is None or self.begin(cell) > self.begin(node), "runs out of order")
            if len(self.refined) > self.count:
                self.states, self.refined = {}, set()
            self.refine_parents(*cell)
            node = self.next(*self.add(cell))
            while len(self.cells) < end:
                check(self.begin(node) < 1 << BITS * self.dimensions, "a node beyond the end")
                node = self.next(*self.decode_node(node, end))
        self.coder.end()
        return self.cells

    def add(self, cell: tuple[int, int]) -> tuple[int, int]:
        """Add a cell, and return it."""
        self.cells.append(cell)
        self.states[cell] = 2
        return cell

    def decode_node(self, node: tuple[int, int], end: int) -> tuple[int, int]:
        """Decode the cells that begin where `node` does; return the last of them."""
        level, key = node
        if level == 0:
            self.refine_parents(*node)
        if level == self.depth or not self.bit("refined", level, key):
            return self.add(node)
        first, children = key << self.dimensions, 1 << self.dimensions
        if level + 1 < self.depth and self.bit("refined twice", level, key):
            self.refined.add(node)
            return self.decode_node((level + 1, first), end)
        rest = end - len(self.cells)
        check(children <= rest or level + 1 == self.depth, "more children than rows")
        self.states[node] = 3
        self.cells += [(level + 1, first + i) for i in range(min(children, rest))]
        return self.cells[-1]

    def refine_parents(self, level: int, key: int) -> None:
        """Set the state 4 for all ancestors of a node."""
        for up in range(1, level - self.depth + BITS + 2):
            self.refined.add((level - up, key >> up * self.dimensions))

    def next(self, level: int, key: int) -> tuple[int, int]:
        """Return *next(node)*."""
        key += 1
        while level > 0 and key % (1 << self.dimensions) == 0:
            level, key = level - 1, key >> self.dimensions
        return level, key

    def begin(self, node: tuple[int, int]) -> int:
        """Return the key, on the finest level, at which a node begins."""
        return node[1] << (self.depth - node[0]) * self.dimensions

    def bit(self, name: str, level: int, key: int) -> int:
        """Return a bit of a node; its context are the states of the nodes before it in z, y, x."""
        states = []
        for axis in reversed(self.axes):
            before = (key & axis) - 1 & axis | key & ~axis  # the key of the index less one
            states.append(self.state(level, before) if key & axis else 0)
        return self.coder.bit(name, min(3, self.depth - 1 - level), *states)

    def state(self, level: int, key: int) -> int:
        """Return the state of a node."""
        if (level, key) in self.refined:
            return 4
        if (level, key) in self.states or level < self.depth - BITS:
            return self.states.get((level, key), 0)
        return {3: 2, 2: 1, 1: 1}.get(self.state(level - 1, key >> self.dimensions), 0)


def read_regions(reader: Reader, count: int) -> list[np.ndarray]:
    """Read the part *tree*; return the regions of the cells, level by level, and of the rest."""
    dimensions, depth, cells = reader.unpack("B"), reader.unpack("B"), reader.number()
    check(1 <= dimensions <= 3 and depth <= BITS and cells <= count, "a tree out of range")
    nodes = Tree(reader.section(), dimensions, depth, cells).decode()
    side = np.array([1, 1, 1, 2, 2, 2][dimensions : dimensions + 3])
    points = np.array([[0] * (3 - dimensions) + deinterleave(key, dimensions) for _, key in nodes])

    def split(rows: np.ndarray, _: int) -> np.ndarray | None:
        first, last = (nodes[row][1] >> dimensions for row in (rows[0], rows[-1]))
        dense = len(rows) >= volume(points[rows] // side) * 0.125 * 2**dimensions
        if first == last or dense:
            return None
        bit = (first ^ last).bit_length() - 1 + dimensions
        return np.array([not nodes[row][1] >> bit & 1 for row in rows])

    levels = np.array([level for level, _ in nodes])
    sets = [np.flatnonzero(levels == level) for level in range(depth + 1)]
    regions = [rows for level in sets if level.size for rows in partition(level, split)]
    rest = np.arange(cells, count).reshape(1, 1, -1)
    return [fill(points[rows], rows, side) for rows in regions] + [rest] * (rest.size > 0)

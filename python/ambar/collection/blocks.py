"""Rows of families, decoded a chunk of rows at a time and kept: the next dataset is often near."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import numpy as np

from ambar.store import Store

KEPT = 64 << 20
"""Bytes of decoded values that are kept."""


def blocks_of(store: Store) -> Blocks:
    """Return the blocks kept of a store."""
    blocks: Blocks = store.kept.setdefault("blocks", Blocks(store))
    return blocks


class Blocks:
    """Decoded rows of the arrays of one commit; the least recently used are dropped."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._blocks: OrderedDict[tuple[str, int], np.ndarray] = OrderedDict()
        self._bytes = 0

    def row(self, path: str, row: int) -> np.ndarray:
        """Return a copy of a row of an array."""
        array = self._store[path]
        length = array.chunks[0]
        if length == 1:
            values: np.ndarray = array.read(row)
            return values
        number = row // length
        with self._lock:
            block = self._blocks.get((path, number))
            if block is not None:
                self._blocks.move_to_end((path, number))
        if block is None:
            rows = slice(number * length, (number + 1) * length)
            block = array.read(rows)
            self._keep((path, number), block)
        found: np.ndarray = np.array(block[row - number * length])
        return found

    def _keep(self, key: tuple[str, int], block: np.ndarray) -> None:
        with self._lock:
            self._blocks[key] = block
            self._bytes = sum(kept.nbytes for kept in self._blocks.values())
            while self._bytes > KEPT and len(self._blocks) > 1:
                _, dropped = self._blocks.popitem(last=False)
                self._bytes -= dropped.nbytes

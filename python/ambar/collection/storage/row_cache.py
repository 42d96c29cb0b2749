"""Cache of decoded rows of families, by chunks: the next dataset is often in the same chunk."""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import Lock
from typing import TypeAlias

import numpy as np

from ambar.collection.storage.tails import array_of
from ambar.store.array import Array
from ambar.store.store import Store

Part: TypeAlias = slice | int
Key: TypeAlias = tuple[str, int, str]

AHEAD = 2 << 20
"""Bytes of values that are decoded in one call if rows are read sequentially."""

CAPACITY = 64 << 20
"""Bytes of decoded values in the cache of a store."""


def blocks_of(store: Store) -> Blocks:
    """Return the cache of a store in this process; a forked child may inherit a locked lock."""
    blocks: Blocks = store._cache.setdefault(f"blocks {os.getpid()}", Blocks(store))
    return blocks


class Blocks:
    """Decoded rows of the arrays of one commit, with least recently used eviction."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._blocks: OrderedDict[Key, np.ndarray] = OrderedDict()

    def row(self, path: str, row: int, part: tuple[Part, ...] = ()) -> np.ndarray:
        """Return a copy of a row of an array, or of a part by slices and integers."""
        array = array_of(self._store, path)
        length = array.chunks[0]
        if length == 1:
            values: np.ndarray = array.read((row, *part))
            return values
        number = row // length
        # Slices are not hashable before Python 3.12.
        key = (path, number, repr(part))
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
        if block is None:
            block = self._read(array, key, part)
        # Without a dtype, NumPy drops trailing NULs of a single string.
        return np.array(block[row - number * length], block.dtype)

    def _read(self, array: Array, key: Key, part: tuple[Part, ...]) -> np.ndarray:
        """Read the rows of a chunk; of several chunks if the previous chunk is in the cache."""
        path, number, text = key
        length = array.chunks[0]
        count = 1
        if (path, number - 1, text) in self._blocks:
            row = array.nbytes // max(len(array), 1)
            count = max(AHEAD // max(length * row, 1), 1)
        rows = array.read((slice(number * length, (number + count) * length), *part))
        for ahead in range(1, count):
            following = rows[ahead * length : (ahead + 1) * length]
            if len(following):
                self._store_block((path, number + ahead, text), following)
        block: np.ndarray = rows[:length]
        self._store_block(key, block)
        return block

    def _store_block(self, key: Key, block: np.ndarray) -> None:
        with self._lock:
            self._blocks[key] = block
            size = sum(each.nbytes for each in self._blocks.values())
            while size > CAPACITY and len(self._blocks) > 1:
                _, oldest = self._blocks.popitem(last=False)
                size -= oldest.nbytes

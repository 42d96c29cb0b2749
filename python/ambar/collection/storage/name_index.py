"""The index of a catalogue: the positions of names, sorted by hashes.

The array ``datasets/index`` has rows of hash and position. It consists of runs, each of which is
sorted. Runs are merged so that each is at least 8 times as long as the next one: an append writes
few rows, and a name is searched in few runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np

from ambar import _core
from ambar.store.array import Array
from ambar.store.store import Store
from ambar.store.writer import Writer

INDEX = "datasets/index"
RATIO = 8
"""Minimum ratio of the lengths of two consecutive runs."""
CHUNK, SHARD = 4096, 1 << 18

_HASHES = 1 << 32
_GUESSES = 4


def hash_of(name: str) -> int:
    """Return the hash of a name: the CRC-32 of its UTF-8 bytes."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


class NameIndex:
    """The index of the names of a commit, and the runs that a writer adds to it."""

    def __init__(
        self, store: Store | None = None, runs: Iterable[int] = (), names: int = 0
    ) -> None:
        self._runs = list(runs)
        self._stored = tuple(self._runs)
        self._blocks: dict[int, np.ndarray] = {}
        self._array: Array | None = None
        if store is None:
            return
        array = store._array(INDEX)
        if (array.shape, array.type_name) != ((names, 2), "uint32") or sum(self._runs) != names:
            raise _core.CorruptError(
                f"{store.location}: /{INDEX} is {array.type_name}{array.shape} with runs of "
                f"{self._runs!r:.80}, expected uint32{(names, 2)}; restore the store from a copy"
            )
        self._location = store.location
        self._length = array.chunks[0]
        self._array = array

    def reopen(self, store: Store) -> None:
        """Read from a later commit, which has the runs that were added."""
        self._array = store._array(INDEX)
        self._location = store.location
        self._length = self._array.chunks[0]
        self._stored = tuple(self._runs)
        self._blocks.clear()

    @property
    def runs(self) -> list[int]:
        """The lengths of the runs."""
        return self._runs

    def positions(self, name: str) -> Iterator[int]:
        """Yield the positions of the names in the stored index with the hash of `name`."""
        value, first = hash_of(name), 0
        for length in self._stored:
            row, last = self._search(value, first, first + length), first + length
            while row < last:
                found, position = self._block(row // self._length)[row % self._length].tolist()
                if found != value:
                    break
                yield position
                row += 1
            first = last

    def _search(self, value: int, low: int, high: int) -> int:
        """Return the first row in a run whose hash is not less than `value`.

        Hashes are uniform, so a few interpolations find the chunk; otherwise bisection does.
        """
        bottom, top = 0, _HASHES
        guesses = 0
        while low < high:
            guesses += 1
            guess = (low + high) // 2
            if guesses <= _GUESSES and bottom <= value < top:
                guess = low + (high - low) * (value - bottom) // (top - bottom)
            number = guess // self._length
            start = number * self._length
            first, last = max(low, start), min(high, start + self._length)
            hashes = self._block(number)[first - start : last - start, 0]
            at = int(np.searchsorted(hashes, value))
            if at == 0 and first > low:
                high, top = first, int(hashes[0])
            elif at == len(hashes) and last < high:
                low, bottom = last, int(hashes[-1])
            else:
                return first + at
        return low

    def _block(self, number: int) -> np.ndarray:
        """Return the rows of a chunk."""
        found = self._blocks.get(number)
        if found is None:
            start = number * self._length
            found = self._blocks[number] = self._rows(start, self._length)
        return found

    def check(self, names: Iterable[str]) -> None:
        """Raise CorruptError if the index differs from the names, or a run is not sorted."""
        if self._array is None:
            return
        rows = self._array.read()
        hashes = np.fromiter(map(hash_of, names), np.uint32)
        first = 0
        for length in self._stored:
            run = rows[first : first + length, 0]
            first += length
            if (run[1:] < run[:-1]).any():
                raise self._damaged("a run that is not sorted")
        order = np.argsort(rows[:, 1], kind="stable")
        if not np.array_equal(rows[order, 1], np.arange(len(hashes))) or not np.array_equal(
            rows[order, 0], hashes
        ):
            raise self._damaged("other names than the catalog")

    def _damaged(self, what: str) -> _core.CorruptError:
        return _core.CorruptError(
            f"{self._location}: /{INDEX} has {what}; restore the store from a copy"
        )

    def add(self, writer: Writer, names: Iterable[str], first: int) -> None:
        """Write a run of names whose positions begin with `first`, merged with short runs."""
        hashes = np.fromiter(map(hash_of, names), np.uint32)
        positions = np.arange(first, first + len(hashes), dtype=np.uint32)
        parts = [np.stack([hashes, positions], 1)]
        start = end = sum(self._runs)
        while self._runs and self._runs[-1] < RATIO * (end - start + len(hashes)):
            length = self._runs.pop()
            start -= length
            parts.append(self._rows(start, length))
        rows = np.concatenate(parts)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        if end == 0:
            writer.create_array(
                INDEX,
                shape=(0, 2),
                dtype=np.uint32,
                dims=("entry", "hash_position"),
                chunks=(CHUNK, 2),
                shards=(SHARD, 2),
            )
        if start < end:
            writer.write_region(INDEX, rows[: end - start], (start, 0))
        writer.append(INDEX, rows[end - start :])
        self._runs.append(len(rows))

    def _rows(self, start: int, length: int) -> np.ndarray:
        return cast("Array", self._array).read(slice(start, start + length))

"""Chunks and shards of the arrays of a family, for slices of all datasets and for single ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

Box: TypeAlias = tuple[slice, ...]
"""A part of the values of a variable of one dataset."""

PARTS = 4
"""Parts of each dimension: a slice of a quarter of a dimension touches few chunks."""
MAX_PARTS = 64
"""Largest number of parts of a dataset."""
CHUNK = 32 << 10
"""Approximate raw bytes of a chunk: small parts of several datasets share one."""
LARGEST = 64 << 10
"""Largest raw bytes of a chunk of one dataset."""
SHARD = 4 << 20
"""Approximate raw bytes of a shard: adding a dataset rewrites the last shard of each variable."""
LARGEST_SHARD = 32 << 20
"""Largest raw bytes of a shard: those of larger datasets have a part of a dataset."""
COLUMN = 64 << 10
"""Raw bytes of a chunk of consecutive values without a fixed length."""


def cut(
    shape: Sequence[int], itemsize: int, chunks: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Return the shapes of chunks and shards of an array (datasets, *shape).

    Parameters
    ----------
    shape
        The shape of one dataset's values.
    itemsize
        Bytes of a value.
    chunks
        The part of one dataset that a chunk contains, if the user chose it.
    """
    inner = (
        [min(c, max(n, 1)) for c, n in zip(chunks, shape, strict=True)]
        if chunks
        else _inner(shape, itemsize)
    )
    chunk = max(math.prod(inner) * itemsize, 1)
    rows = max(CHUNK // chunk, 1)
    padded = [-(-max(n, 1) // c) * c for n, c in zip(shape, inner, strict=True)]
    if math.prod(padded) * itemsize > LARGEST_SHARD:
        return [1, *inner], [1, *_part(padded, inner, itemsize)]
    blocks = max(SHARD // (rows * math.prod(padded) * itemsize), 1)
    return [rows, *inner], [rows * blocks, *padded]


def _inner(shape: Sequence[int], itemsize: int) -> list[int]:
    """Return the part of a dataset that a chunk contains."""
    parts = [1] * len(shape)
    lengths = [max(n, 1) for n in shape]
    for axis in sorted(range(len(shape)), key=lambda axis: -lengths[axis]):
        if lengths[axis] >= 2 * PARTS and math.prod(parts) * PARTS <= MAX_PARTS:
            parts[axis] = PARTS
    inner = [-(-n // p) for n, p in zip(lengths, parts, strict=True)]
    while math.prod(inner) * itemsize > LARGEST:
        axis = max(range(len(inner)), key=lambda axis: inner[axis])
        inner[axis] = -(-inner[axis] // 2)
    return inner


def _part(padded: Sequence[int], inner: Sequence[int], itemsize: int) -> list[int]:
    """Return the part of a large dataset that a shard contains: some of the first indices."""
    part = list(padded)
    for axis, chunk in enumerate(inner):
        slab = math.prod(part) // part[axis] * chunk * itemsize
        part[axis] = min(max(LARGEST_SHARD // slab, 1) * chunk, part[axis])
    return part


def boxes(shape: Sequence[int], part: Sequence[int]) -> Iterator[Box]:
    """Yield the boxes of the shape `part` that cover an array; the last ones may be smaller."""
    starts = (range(0, length, step) for length, step in zip(shape, part, strict=True))
    for start in itertools.product(*starts):
        ends = zip(start, part, shape, strict=True)
        yield tuple(slice(at, min(at + step, length)) for at, step, length in ends)


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the shape of a box."""
    return tuple(part.stop - part.start for part in box)


def column(inner: Sequence[int], itemsize: int) -> tuple[list[int], list[int]]:
    """Return the shapes of chunks and shards of an array (rows, *inner) that grows by rows."""
    padded = [max(n, 1) for n in inner]
    rows = max(COLUMN // (itemsize * math.prod(padded)), 1)
    return [rows, *padded], [rows * (SHARD // COLUMN), *padded]

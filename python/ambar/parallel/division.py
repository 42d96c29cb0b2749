"""Divides arrays that are written in parts into chunks and shards that fit the parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Bytes of chunks as `ambar.create` chooses them: of one dimension, of several, and with an error
# bound; a test compares them with crates/ambar/src/array/chunk_grid.rs. Maximum bytes of a shard.
_COLUMN_CHUNK = 256 << 10
_BLOCK_CHUNK = 64 << 10
_BOUNDED_CHUNK = 512 << 10
_SHARD = 128 << 20


@dataclass(frozen=True)
class Division:
    """The chunks and shards of an array that is written in parts."""

    chunks: tuple[int, ...]
    shards: tuple[int, ...]
    blocks: tuple[int, ...]
    """The shape of the parts, a multiple of that of a shard."""


def divide(
    itemsize: int,
    blocks: Sequence[Sequence[int]],
    *,
    chunks: tuple[int, ...] | None = None,
    shards: tuple[int, ...] | None = None,
    has_bound: bool = False,
) -> Division:
    """Choose chunks and shards of an array so that every shard is written once.

    `blocks` are the lengths of the parts that are written, along each dimension. A shard is such a
    part if all have equal lengths and at most 128 MiB. Arrays with an error bound have longer
    chunks by default.
    """
    largest = [max((1, *sizes)) for sizes in blocks]
    chunks = chunks or _chunks_of(largest, itemsize, has_bound=has_bound)
    if shards is None:
        counts = [math.ceil(size / chunk) for size, chunk in zip(largest, chunks, strict=True)]
        axis = 0
        while axis < len(counts) and math.prod(counts) * math.prod(chunks) * itemsize > _SHARD:
            counts[axis] = _divisor_below(counts[axis])
            axis += counts[axis] == 1
        shards = tuple(count * chunk for count, chunk in zip(counts, chunks, strict=True))
    whole = [math.ceil(size / shard) * shard for size, shard in zip(largest, shards, strict=True)]
    return Division(tuple(chunks), tuple(shards), tuple(whole))


def _chunks_of(block: Sequence[int], itemsize: int, *, has_bound: bool) -> tuple[int, ...]:
    """Return the shape of chunks of a block; halves the longest dimension of the block."""
    target = _COLUMN_CHUNK if len(block) == 1 else _BLOCK_CHUNK
    target = _BOUNDED_CHUNK if has_bound else target
    pieces = [1] * len(block)
    chunk = list(block)
    while math.prod(chunk) * itemsize > target and max(chunk) > 1:
        axis = chunk.index(max(chunk))
        pieces[axis] *= 2
        chunk[axis] = math.ceil(block[axis] / pieces[axis])
    return tuple(_even(size, count) for size, count in zip(block, pieces, strict=True))


def _even(size: int, pieces: int) -> int:
    """Return the length of `pieces` parts of `size`, or of more parts if these are equal."""
    exact = (size // count for count in range(pieces, 2 * pieces) if size % count == 0)
    return next(exact, math.ceil(size / pieces))


def _divisor_below(count: int) -> int:
    """Return the largest proper divisor of `count`; 1 for a prime number."""
    return next((count // p for p in range(2, math.isqrt(count) + 1) if count % p == 0), 1)

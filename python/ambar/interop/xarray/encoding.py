"""Chunks, shards, codecs and error bounds of variables, from xarray's `encoding`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr

from ambar import _core
from ambar.store.writer import Profile

KEYS = ("chunks", "shards", "fill_value", "profile", "error_bound")

# Bytes of chunks as `ambar.create` chooses them: of one dimension, of several, and with an error
# bound; and the maximum bytes of a shard.
_COLUMN_CHUNK = 256 << 10
_BLOCK_CHUNK = 64 << 10
_BOUNDED_CHUNK = 512 << 10
_SHARD = 128 << 20


@dataclass(frozen=True)
class ArrayEncoding:
    """How an array is stored; None for what `ambar.create` chooses."""

    chunks: tuple[int, ...] | None
    """The shape of a chunk."""
    shards: tuple[int, ...] | None
    """The shape of a shard, a multiple of that of a chunk."""
    fill_value: Any
    """The value of elements that were never written."""
    profile: Profile | None
    error_bound: float | str | None

    @classmethod
    def of(cls, variable: xr.Variable, name: str, *, explicit: bool) -> Self:
        """Return the encoding of `variable`.

        An `explicit` encoding is given for this write: unknown keys raise ValueError. Otherwise the
        encoding is that of the file that the variable was read from. Then unknown keys are ignored,
        and so are shards that are not a multiple of the chunks, which the caller has changed.
        """
        encoding = dict(variable.encoding)
        unknown = [key for key in encoding if key not in KEYS and key != "_FillValue"]
        if explicit and (unknown := [key for key in unknown if key != "preferred_chunks"]):
            raise ValueError(
                f"unexpected encoding parameters for ambar: {unknown} of variable {name!r}; "
                f"available: {', '.join(KEYS)}, and those of the CF conventions. The profile "
                "chooses the codecs"
            )
        fill = encoding.get("fill_value")
        if fill is None and variable.dtype.kind == "f":
            fill = np.nan  # as xarray's own Zarr backend
        chunks = _lengths(encoding.get("chunks"), "chunks", variable, name)
        shards = _lengths(encoding.get("shards"), "shards", variable, name)
        if not explicit and "preferred_chunks" in encoding and not _divides(chunks, shards):
            shards = None  # those of the file do not fit the chunks, which were changed
        if not explicit and chunks:
            chunks, shards = _cut_to(variable.shape, chunks, shards)
        if chunks and shards and not _divides(chunks, shards):
            raise ValueError(
                f"encoding['shards']={shards} of variable {name!r}: expected a multiple of "
                f"encoding['chunks']={chunks}"
            )
        return cls(chunks, shards, fill, encoding.get("profile"), encoding.get("error_bound"))

    def check_masks(self, name: str, masks: Iterable[Any]) -> None:
        """Raise ValueError for an error bound if numbers mark missing values.

        The bound would change them: they would no longer be equal to `_FillValue`.
        """
        if self.error_bound is None:
            return
        for mask in masks:
            values = np.atleast_1d(np.asarray(mask)) if mask is not None else np.empty(0)
            if values.dtype.kind in "iuf" and not np.isnan(values.astype(float)).all():
                raise _core.InvalidError(
                    f"variable {name!r} has an error bound, and {mask} marks missing values, which "
                    "the bound would change; set '_FillValue' to NaN, which no bound changes, and "
                    "remove 'missing_value'"
                )


def _lengths(given: Any, key: str, variable: xr.Variable, name: str) -> tuple[int, ...] | None:
    """Return the length along each dimension; None if `given` does not fit the dimensions."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return None
    if isinstance(given, int | np.integer):
        return (int(given),) * variable.ndim
    lengths = tuple(given)
    if not all(isinstance(length, int | np.integer) for length in lengths):
        raise TypeError(
            f"encoding[{key!r}]={lengths} of variable {name!r} must be an int or a tuple of ints"
        )
    if len(lengths) != variable.ndim:
        return None  # those of the file, before the caller added or removed dimensions
    return tuple(int(length) for length in lengths)


def _divides(chunks: tuple[int, ...] | None, shards: tuple[int, ...] | None) -> bool:
    """Whether a shard consists of whole chunks."""
    if not chunks or not shards:
        return False
    return all(s % c == 0 for s, c in zip(shards, chunks, strict=True))


def _cut_to(
    shape: tuple[int, ...], chunks: tuple[int, ...], shards: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the chunks of a file, cut to the shape of an array that may be smaller now."""
    cut = tuple(min(c, max(size, 1)) for c, size in zip(chunks, shape, strict=True))
    return cut, shards if cut == chunks else None


@dataclass(frozen=True)
class Division:
    """The chunks and shards of a dask array in a store."""

    chunks: tuple[int, ...]
    shards: tuple[int, ...]
    blocks: tuple[int, ...]
    """The shape of dask's chunks, a multiple of that of a shard."""


def divide(itemsize: int, blocks: Sequence[Sequence[int]], encoding: ArrayEncoding) -> Division:
    """Choose chunks and shards of a dask array so that every shard is written once.

    `blocks` are the lengths of dask's chunks. A shard is a dask chunk if all have equal lengths and
    at most 128 MiB.
    """
    largest = [max((1, *sizes)) for sizes in blocks]
    bounded = encoding.error_bound is not None
    chunks = encoding.chunks or _chunks_of(largest, itemsize, bounded=bounded)
    shards = encoding.shards
    if shards is None:
        counts = [math.ceil(size / chunk) for size, chunk in zip(largest, chunks, strict=True)]
        axis = 0
        while axis < len(counts) and math.prod(counts) * math.prod(chunks) * itemsize > _SHARD:
            counts[axis] = _divisor_below(counts[axis])
            axis += counts[axis] == 1
        shards = tuple(count * chunk for count, chunk in zip(counts, chunks, strict=True))
    whole = [math.ceil(size / shard) * shard for size, shard in zip(largest, shards, strict=True)]
    return Division(tuple(chunks), tuple(shards), tuple(whole))


def _chunks_of(block: Sequence[int], itemsize: int, *, bounded: bool) -> tuple[int, ...]:
    """Return the shape of chunks of a block; halves the longest dimension of the block."""
    target = _COLUMN_CHUNK if len(block) == 1 else _BLOCK_CHUNK
    target = _BOUNDED_CHUNK if bounded else target
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

"""How a variable is to be stored: chunks, shards, codecs, loss, from xarray's `encoding`."""

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

# As the library itself cuts arrays: bytes of a chunk of a column, of several dimensions, and within
# an error bound; and bytes of a shard at most.
_COLUMN_CHUNK = 256 << 10
_BLOCK_CHUNK = 64 << 10
_BOUNDED_CHUNK = 512 << 10
_SHARD = 128 << 20


@dataclass(frozen=True)
class ArrayEncoding:
    """What `encoding` says of how an array is stored; None where the library chooses."""

    chunks: tuple[int, ...] | None
    """Shape of a chunk."""
    shards: tuple[int, ...] | None
    """Shape of a shard, a multiple of that of a chunk."""
    fill_value: Any
    """What the array has where nothing was written."""
    profile: Profile | None
    error_bound: float | str | None

    @classmethod
    def of(cls, variable: xr.Variable, name: str, *, explicit: bool) -> Self:
        """Take what counts from the encoding of `variable`.

        With `explicit`, which is an encoding given for this write, a key of no meaning raises
        ValueError; else it is left over from where the variable was read, and passed over. So are
        shards that a variable was read with, where its chunks have been changed and do not fit.
        """
        encoding = dict(variable.encoding)
        unknown = [key for key in encoding if key not in KEYS and key != "_FillValue"]
        if explicit and (unknown := [key for key in unknown if key != "preferred_chunks"]):
            raise ValueError(
                f"unexpected encoding parameters for ambar: {unknown} of variable {name!r}; there "
                f"are {', '.join(KEYS)}, and those of the CF conventions. The codecs are chosen by "
                "the profile"
            )
        fill = encoding.get("fill_value")
        if fill is None and variable.dtype.kind == "f":
            fill = np.nan  # as xarray's own Zarr backend
        chunks = _lengths(encoding.get("chunks"), "chunks", variable, name)
        shards = _lengths(encoding.get("shards"), "shards", variable, name)
        if not explicit and "preferred_chunks" in encoding and not _divides(chunks, shards):
            shards = None  # of the store it was read from; its chunks have been changed since
        if not explicit and chunks:
            chunks, shards = _cut_to(variable.shape, chunks, shards)
        if chunks and shards and not _divides(chunks, shards):
            raise ValueError(
                f"encoding['shards']={shards} of variable {name!r} are no multiples of "
                f"encoding['chunks']={chunks}"
            )
        return cls(chunks, shards, fill, encoding.get("profile"), encoding.get("error_bound"))

    def check_masks(self, name: str, masks: Iterable[Any]) -> None:
        """Refuse a bound on values among which numbers stand for missing ones.

        They would no longer be equal to `_FillValue`, and so become data.
        """
        if self.error_bound is None:
            return
        for mask in masks:
            values = np.atleast_1d(np.asarray(mask)) if mask is not None else np.empty(0)
            if values.dtype.kind in "iuf" and not np.isnan(values.astype(float)).all():
                raise _core.InvalidError(
                    f"variable {name!r} has an error bound and {mask} for missing values, which "
                    "would change with the others; set '_FillValue' to NaN, which stays as it is, "
                    "and take out 'missing_value'"
                )


def _lengths(given: Any, key: str, variable: xr.Variable, name: str) -> tuple[int, ...] | None:
    """Return lengths given as one number or one for each dimension; None where they do not fit."""
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
        return None  # left over from before dimensions were added or taken away
    return tuple(int(length) for length in lengths)


def _divides(chunks: tuple[int, ...] | None, shards: tuple[int, ...] | None) -> bool:
    """Whether shards are whole chunks."""
    if not chunks or not shards:
        return False
    return all(s % c == 0 for s, c in zip(shards, chunks, strict=True))


def _cut_to(
    shape: tuple[int, ...], chunks: tuple[int, ...], shards: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return chunks left over from a larger array, none longer than the array is now."""
    cut = tuple(min(c, max(size, 1)) for c, size in zip(chunks, shape, strict=True))
    return cut, shards if cut == chunks else None


@dataclass(frozen=True)
class Division:
    """How an array that dask computes is divided."""

    chunks: tuple[int, ...]
    shards: tuple[int, ...]
    blocks: tuple[int, ...]
    """Shape of dask's chunks, so that each is whole shards."""


def divide(itemsize: int, blocks: Sequence[Sequence[int]], encoding: ArrayEncoding) -> Division:
    """Divide an array of dask chunks `blocks` so that every shard is written once.

    A shard is a dask chunk where that is neither uneven nor larger than 128 MiB.
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
    """Return chunks that divide `block`, its longest dimension halved until they are small."""
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
    """Return the length of `pieces` pieces, or of a few more if these divide `size`."""
    exact = (size // count for count in range(pieces, 2 * pieces) if size % count == 0)
    return next(exact, math.ceil(size / pieces))


def _divisor_below(count: int) -> int:
    """Return the largest proper divisor of `count`, 1 for a prime number."""
    return next((count // p for p in range(2, math.isqrt(count) + 1) if count % p == 0), 1)

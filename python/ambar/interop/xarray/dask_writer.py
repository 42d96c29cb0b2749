"""Writing what dask computes, chunk by chunk, as it is computed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xarray.backends.common import ArrayWriter

from ambar import _core
from ambar.store.error_bounds import as_text, resolved
from ambar.store.writer import Writer

# Bytes of the blocks that processes compute before they are written: dask starts its processes for
# each such batch.
_BATCH = 256 << 20


@dataclass(frozen=True)
class Piece:
    """An array of dask's on its way into a part of an array of a store."""

    node: str
    data: Any
    start: tuple[int, ...]
    """Where it begins in the array of the store."""
    appended: bool
    """Whether it goes behind the last row of that array."""


class _Target:
    """What dask stores into: a region of an array of a store."""

    def __init__(self, writer: Writer, piece: Piece) -> None:
        self._writer = writer
        self._piece = piece
        self.shape = piece.data.shape
        self.dtype = piece.data.dtype

    def __setitem__(self, key: tuple[slice, ...], values: Any) -> None:
        inside = (part.start or 0 for part in key)
        start = tuple(map(sum, zip(self._piece.start, inside, strict=True)))
        self._writer.write_region(self._piece.node, np.asarray(values), start)


def compute_and_write(writer: Writer, pieces: Sequence[Piece]) -> None:
    """Compute `pieces` on the scheduler in use, and write each of their chunks when it is there.

    With threads, no more is held than they work on. Processes and clusters send chunks to this
    process, which writes them: dask's workers never open the store for writing.
    """
    whole = [piece for piece in pieces if not piece.appended]
    if whole:
        _in_any_order(writer, whole)
    for piece in pieces:
        if piece.appended:
            _in_order(writer, piece)


def _in_any_order(writer: Writer, pieces: Sequence[Piece]) -> None:
    results = _results_elsewhere(pieces)
    if results is None:
        threads = ArrayWriter()
        for piece in pieces:
            region = tuple(slice(0, size) for size in piece.data.shape)
            threads.add(piece.data, _Target(writer, piece), region)
        threads.sync()
        return
    for (node, start), values in results:
        writer.write_region(node, np.asarray(values), start)


def _in_order(writer: Writer, piece: Piece) -> None:
    """Append the chunks of the first dimension one after the other."""
    first = 0
    for rows in piece.data.chunks[0]:
        values = piece.data[first : first + rows].compute()
        writer.append(piece.node, np.asarray(values))
        first += rows


Place = tuple[str, tuple[int, ...]]


def _results_elsewhere(pieces: Sequence[Piece]) -> Iterator[tuple[Place, Any]] | None:
    """Give the blocks that other processes compute, as they come; None where threads of this do."""
    from dask.base import get_scheduler

    get = get_scheduler(collections=[piece.data for piece in pieces])
    client = getattr(get, "__self__", None)
    if hasattr(client, "scheduler_info") and hasattr(client, "compute"):
        return _from_cluster(client, pieces)
    if get is not None and get.__module__ == "dask.multiprocessing":
        return _from_processes(get, pieces)
    return None


def _from_cluster(client: Any, pieces: Sequence[Piece]) -> Iterator[tuple[Place, Any]]:
    from distributed import as_completed

    places, blocks = zip(*_blocks(pieces), strict=True)
    futures = client.compute(list(blocks))
    where = {future.key: place for future, place in zip(futures, places, strict=True)}
    completed = as_completed(futures, with_results=True)
    del futures, blocks  # a result that was written is not to be kept
    for future, values in completed:
        yield where[future.key], values


def _from_processes(
    get: Callable[..., Any], pieces: Sequence[Piece]
) -> Iterator[tuple[Place, Any]]:
    from dask.base import compute

    largest = max(math.prod(piece.data.chunksize) * piece.data.dtype.itemsize for piece in pieces)
    count = max(_BATCH // max(largest, 1), 1)
    remaining = _blocks(pieces)
    while batch := list(itertools.islice(remaining, count)):
        results = compute(*(block for _, block in batch), scheduler=get)
        yield from zip((place for place, _ in batch), results, strict=True)


def _blocks(pieces: Sequence[Piece]) -> Iterator[tuple[Place, Any]]:
    for piece in pieces:
        ends = (itertools.accumulate(sizes, initial=0) for sizes in piece.data.chunks)
        starts = itertools.product(*(list(offsets)[:-1] for offsets in ends))
        for inside, block in zip(starts, piece.data.to_delayed().ravel(), strict=True):
            start = tuple(map(sum, zip(piece.start, inside, strict=True)))
            yield (piece.node, start), block


def aligned(data: Any, start: Sequence[int], shards: Sequence[int], blocks: Sequence[int]) -> Any:
    """Return `data` cut so that no shard gets values from two chunks, or as few as can be.

    Parameters
    ----------
    data
        An array of dask's.
    start
        Where it begins in the array of the store.
    shards
        Shape of a shard there.
    blocks
        Shape of chunks to make where those of `data` do not fit: multiples of `shards`.
    """
    fits = tuple(
        _along(sizes, *rest)
        for sizes, *rest in zip(data.chunks, start, shards, blocks, strict=True)
    )
    return data if fits == data.chunks else data.rechunk(fits)


def _along(sizes: tuple[int, ...], start: int, shard: int, block: int) -> tuple[int, ...]:
    ends = [start + end for end in itertools.accumulate(sizes)]
    if all(end % shard == 0 for end in ends[:-1]):
        return sizes
    stop = ends[-1]
    first = (start + block) // shard * shard
    cuts = [start, *range(first, stop, block), stop]
    return tuple(after - before for before, after in itertools.pairwise(cuts))


def bound_of(bound: float | str | None, data: Any) -> float | str | None:
    """Return an error bound of chunks; where it needs the value range, dask computes that first."""
    if bound is None:
        return None
    if data.dtype.kind != "f":
        raise _core.InvalidError(
            f"an error bound is for float32 and float64 values, not {data.dtype}: leave it out"
        )
    if not _core.bound_needs_range(as_text(bound)):
        return resolved(bound)
    import dask.array as da
    from dask.base import compute

    finite = da.where(da.isfinite(data), data, np.nan)
    low, high = (float(end) for end in compute(da.nanmin(finite), da.nanmax(finite)))
    # Without a finite value: lossless.
    return resolved(bound, (low, high) if low <= high else (np.inf, -np.inf))

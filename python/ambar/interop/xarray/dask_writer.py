"""Writes dask arrays to a store chunk by chunk, as dask computes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar.store.error_bounds import as_text, resolved
from ambar.store.writer import Writer

# Bytes of the blocks that processes compute before they are written: dask starts its processes for
# each such batch.
_BATCH = 256 << 20


@dataclass(frozen=True)
class PendingArray:
    """A dask array to write into a region of an array of a store."""

    node: str
    data: Any
    start: tuple[int, ...]
    """The first index of the region."""
    is_appended: bool
    """Whether the region begins after the last row of the array."""


class _Region:
    """A region of an array of a store, as a target of `dask.array.store`."""

    def __init__(self, writer: Writer, array: PendingArray) -> None:
        self._writer = writer
        self._array = array

    def __setitem__(self, key: tuple[slice, ...], values: Any) -> None:
        start = _offset(self._array.start, key)
        self._writer.write_region(self._array.node, np.asarray(values), start)


def compute_and_write(writer: Writer, arrays: Sequence[PendingArray]) -> None:
    """Compute dask arrays with the current scheduler, and write each chunk when it is complete.

    Threads write the chunks that they compute. Processes and clusters send chunks to this process,
    which writes them: dask's workers never open the store for writing.
    """
    import dask.array as da

    regions = [array for array in arrays if not array.is_appended]
    blocks = _blocks_of_processes(regions) if regions else ()
    if blocks is None:
        targets: list[Any] = [_Region(writer, array) for array in regions]
        da.store([array.data for array in regions], targets, lock=False)
    for (node, start), values in blocks or ():
        writer.write_region(node, np.asarray(values), start)
    for array in arrays:
        if array.is_appended:
            for rows in range(array.data.numblocks[0]):
                writer.append(array.node, np.asarray(array.data.blocks[rows].compute()))


BlockKey: TypeAlias = tuple[str, tuple[int, ...]]
"""The node and the first index of a block."""


def _blocks_of_processes(arrays: Sequence[PendingArray]) -> Iterator[tuple[BlockKey, Any]] | None:
    """Return the blocks that other processes compute; None if threads of this process compute."""
    from dask.base import get_scheduler

    get = get_scheduler(collections=[array.data for array in arrays])
    client = getattr(get, "__self__", None)
    if hasattr(client, "scheduler_info") and hasattr(client, "compute"):
        return _from_cluster(client, arrays)
    if get is not None and get.__module__ == "dask.multiprocessing":
        return _from_processes(get, arrays)
    return None


def _from_cluster(client: Any, arrays: Sequence[PendingArray]) -> Iterator[tuple[BlockKey, Any]]:
    from distributed import as_completed

    places, blocks = zip(*_blocks(arrays), strict=True)
    futures = client.compute(list(blocks))
    place_of = {future.key: place for future, place in zip(futures, places, strict=True)}
    completed = as_completed(futures, with_results=True)
    del futures, blocks  # the cluster releases results after they are written
    for future, values in completed:
        yield place_of[future.key], values


def _from_processes(
    get: Callable[..., Any], arrays: Sequence[PendingArray]
) -> Iterator[tuple[BlockKey, Any]]:
    from dask.base import compute

    largest = max(math.prod(array.data.chunksize) * array.data.dtype.itemsize for array in arrays)
    count = max(_BATCH // max(largest, 1), 1)
    remaining = _blocks(arrays)
    while batch := list(itertools.islice(remaining, count)):
        results = compute(*(block for _, block in batch), scheduler=get)
        yield from zip((place for place, _ in batch), results, strict=True)


def _blocks(arrays: Sequence[PendingArray]) -> Iterator[tuple[BlockKey, Any]]:
    from dask.array.core import slices_from_chunks

    for array in arrays:
        blocks = array.data.to_delayed().ravel()
        for key, block in zip(slices_from_chunks(array.data.chunks), blocks, strict=True):
            yield (array.node, _offset(array.start, key)), block


def _offset(start: Sequence[int], key: tuple[slice, ...]) -> tuple[int, ...]:
    return tuple(first + (part.start or 0) for first, part in zip(start, key, strict=True))


def aligned(data: Any, start: Sequence[int], shards: Sequence[int], blocks: Sequence[int]) -> Any:
    """Return a dask array with chunks that contain whole shards, except at the ends.

    Parameters
    ----------
    data
        The dask array.
    start
        The first index of the region that it is written to.
    shards
        The shape of a shard of the array in the store.
    blocks
        The shape of new chunks if those of `data` do not fit: a multiple of `shards`.
    """
    chunks = tuple(
        _aligned_sizes(sizes, *lengths)
        for sizes, *lengths in zip(data.chunks, start, shards, blocks, strict=True)
    )
    return data if chunks == data.chunks else data.rechunk(chunks)


def _aligned_sizes(sizes: tuple[int, ...], start: int, shard: int, block: int) -> tuple[int, ...]:
    ends = [start + end for end in itertools.accumulate(sizes)]
    if all(end % shard == 0 for end in ends[:-1]):
        return sizes
    stop = ends[-1]
    first = (start + block) // shard * shard
    cuts = [start, *range(first, stop, block), stop]
    return tuple(after - before for before, after in itertools.pairwise(cuts))


def bound_of(bound: float | str | None, data: Any) -> float | str | None:
    """Return the error bound of a dask array; computes its value range if the bound needs it."""
    if bound is None:
        return None
    if data.dtype.kind != "f":
        raise _core.InvalidError(
            f"an error bound applies to float32 and float64 values, found {data.dtype}; leave it "
            "out"
        )
    if not _core.bound_needs_range(as_text(bound)):
        return resolved(bound)
    import dask.array as da
    from dask.base import compute

    finite = da.where(da.isfinite(data), data, np.nan)
    low, high = (float(end) for end in compute(da.nanmin(finite), da.nanmax(finite)))
    # Without a finite value, the array is lossless.
    return resolved(bound, (low, high)) if low <= high else 0.0

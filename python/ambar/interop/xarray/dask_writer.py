"""Writes dask arrays to a store chunk by chunk, as dask computes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util.user_warnings import warn
from ambar.store.error_bounds import as_text, bound_of_limits, check_bounded_dtype
from ambar.store.nodes import absolute
from ambar.store.urls import is_object
from ambar.store.writer import Writer

if TYPE_CHECKING:
    from ambar.distributed.commit import SharedCommit

# Bytes of the blocks that processes compute before they are written: dask starts its processes for
# each such batch.
_BATCH = 256 << 20
# Maximum bytes of the values that the codecs of an array are chosen by.
_SAMPLE = 4 << 20


@dataclass(frozen=True)
class PendingArray:
    """A dask array to write into a region of an array of a store."""

    node: str
    data: Any
    start: tuple[int, ...]
    """The first index of the region."""
    shape: tuple[int, ...]
    """The shape of the array in the store, with the region."""
    shards: tuple[int, ...]
    """The shape of its shards, or of its chunks if it has none."""
    is_new: bool = False
    """Whether no values determine its codecs yet."""
    is_appended: bool = False
    """Whether the region begins after the last row of the array."""

    def has_whole_shards(self, start: Sequence[int], shape: Sequence[int]) -> bool:
        """Whether a block consists of whole shards."""
        ends = [at + length for at, length in zip(start, shape, strict=True)]
        return all(
            at % shard == 0 and (end % shard == 0 or end == size)
            for at, end, shard, size in zip(start, ends, self.shards, self.shape, strict=True)
        )


class _Region:
    """A region of an array of a store, as a target of `dask.array.store`."""

    def __init__(self, writer: Writer, array: PendingArray) -> None:
        self._writer = writer
        self._array = array

    def __setitem__(self, key: tuple[slice, ...], values: Any) -> None:
        start = _offset(self._array.start, key)
        self._writer.write_region(self._array.node, np.asarray(values), start)


def compute_and_write(writer: Writer, arrays: Sequence[PendingArray], location: str) -> None:
    """Compute dask arrays with the current scheduler, and write each chunk when it is complete.

    Threads write the chunks that they compute. The workers of a cluster write them, too, into the
    store at `location`, and this process adopts them. Other processes, and workers where `location`
    is the URL of one object, send chunks to this process.
    """
    import dask.array as da

    get = _scheduler(arrays)
    client = _client(get)
    if client is not None and not is_object(location):
        with _usable(client) as client:
            _write_on_cluster(client, writer, arrays, location)
        return
    if client is not None:
        _warn(location, "an object is written by one process; end the URL with '/'")
    regions = [array for array in arrays if not array.is_appended]
    if client is not None or (get is not None and get.__module__ == "dask.multiprocessing"):
        for (node, start), values in _from_processes(get, regions) if regions else ():
            writer.write_region(node, np.asarray(values), start)
    else:
        targets: list[Any] = [_Region(writer, array) for array in regions]
        da.store([array.data for array in regions], targets, lock=False)
    for array in arrays:
        if array.is_appended:
            for rows in range(array.data.numblocks[0]):
                writer.append(array.node, np.asarray(array.data.blocks[rows].compute()))


BlockKey: TypeAlias = tuple[str, tuple[int, ...]]
"""The node and the first index of a block."""


def _scheduler(arrays: Sequence[PendingArray]) -> Any:
    from dask.base import get_scheduler

    return get_scheduler(collections=[array.data for array in arrays])


def _client(get: Any) -> Any:
    """Return the client whose scheduler is `get`; None for threads and processes of this one."""
    client = getattr(get, "__self__", None)
    return client if hasattr(client, "scheduler_info") and hasattr(client, "compute") else None


def _warn(place: str, why: str) -> None:
    warn(f"{place}: the values go through the client: {why}")


@contextmanager
def _usable(client: Any) -> Iterator[Any]:
    """Yield a client; in a task of the cluster, one for which the task gives up its thread."""
    from distributed import get_worker, worker_client

    try:
        get_worker()
    except ValueError:
        yield client
        return
    with worker_client() as own:
        yield own


def _write_on_cluster(
    client: Any, writer: Writer, arrays: Sequence[PendingArray], location: str
) -> None:
    """Write dask arrays from the workers of a cluster.

    Blocks at the ends of regions of existing arrays may have parts of shards. Their values come to
    this process, which merges them with the values of the shards. So do all blocks of a store in a
    folder, which only one process can write.
    """
    from dask.delayed import delayed
    from distributed import as_completed

    from ambar.distributed.commit import SharedCommit

    blocks = [list(_blocks([array])) for array in arrays]
    held = _choose_codecs(client, writer, arrays, [of_array[0][1] for of_array in blocks])
    commit = SharedCommit(writer, location)
    for array in arrays:
        if array.is_appended:
            writer._core.extend(absolute(array.node), array.data.shape[0])
        commit.update_array(array.node)
    try:
        invitation = _try_invite(commit, location)
        write = delayed(_write_block, pure=False)
        whole, parts = [], []
        for array, of_array in zip(arrays, blocks, strict=True):
            for (place, block), shape in zip(of_array, _shapes(array.data), strict=True):
                if invitation is not None and array.has_whole_shards(place[1], shape):
                    whole.append(write(invitation, *place, block))
                else:
                    parts.append((place, block))
        futures = client.compute(whole) if whole else []
        completed = as_completed(futures, loop=client.loop, with_results=True)
        del blocks, futures, held, whole  # the cluster releases blocks after they are written
        try:
            receipts = [receipt for _, receipt in completed]
        except BaseException:
            client.cancel(list(completed.futures))
            raise
        if invitation is not None:
            commit._adopt(receipts)
    finally:
        commit._end()
    for (node, start), values in _from_cluster(client, parts) if parts else ():
        writer.write_region(node, np.asarray(values), start)


def _try_invite(commit: SharedCommit, location: str) -> Any:
    """Return the delayed invitation of a commit; None if tasks cannot write: in a folder."""
    from dask.delayed import delayed

    try:
        return delayed(commit.invitation)
    except _core.UnsupportedError as error:
        _warn(location, str(error))
        return None


def _choose_codecs(
    client: Any, writer: Writer, arrays: Sequence[PendingArray], first: Sequence[Any]
) -> list[Any]:
    """Choose the codecs of new arrays by samples of their first blocks, which are returned.

    The workers keep these blocks in memory while the result exists.
    """
    from dask.delayed import delayed

    from ambar.distributed.commit import choose_codecs

    new = [at for at, array in enumerate(arrays) if array.is_new]
    if not new:
        return []
    held = list(client.persist([first[at] for at in new]))
    samples = client.gather(client.compute([delayed(_sample)(block) for block in held]))
    for at, sample in zip(new, samples, strict=True):
        choose_codecs(writer, arrays[at].node, sample)
    return held


def _sample(values: Any) -> npt.NDArray[Any]:
    """Return a part of a block of at most `_SAMPLE` bytes, if it has several rows."""
    values = np.asarray(values)
    lengths = list(values.shape)
    while math.prod(lengths) * values.itemsize > _SAMPLE and max(lengths) > 1:
        longest = lengths.index(max(lengths))
        lengths[longest] = math.ceil(lengths[longest] / 2)
    return np.asarray(values[tuple(map(slice, lengths))], order="C")


def _write_block(invitation: Any, node: str, start: tuple[int, ...], values: Any) -> bytes:
    """Write a block in a task of the cluster, and return the receipt."""
    with invitation.writer() as writer:
        writer.write_region(node, np.asarray(values), start)
        return bytes(writer.receipt())


def _from_cluster(
    client: Any, parts: Sequence[tuple[BlockKey, Any]]
) -> Iterator[tuple[BlockKey, Any]]:
    from distributed import as_completed

    futures = client.compute([block for _, block in parts])
    place_of = {future.key: place for future, (place, _) in zip(futures, parts, strict=True)}
    completed = as_completed(futures, loop=client.loop, with_results=True)
    del futures  # the cluster releases results after they are written
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


def _shapes(data: Any) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of the blocks of a dask array, in the order of `_blocks`."""
    return itertools.product(*data.chunks)


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


def bound_of(
    path: str, bound: float | str | None, data: Any, value_range: Sequence[float] | None
) -> float | str | None:
    """Return the error bound of a dask array, as a number if its value range has to be computed."""
    if bound is None:
        return None
    check_bounded_dtype(path, str(data.dtype.newbyteorder("=")), as_text(bound))
    if value_range is not None or not _core.bound_needs_range(as_text(bound)):
        return bound
    import dask.array as da
    from dask.base import compute

    finite = da.where(da.isfinite(data), data, np.nan)
    ends = compute(da.nanmin(finite), da.nanmax(finite))
    return bound_of_limits(path, bound, [float(end) for end in ends], can_grow=data.ndim > 0)

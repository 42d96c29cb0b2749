"""One store written by many MPI ranks, over mpi4py."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar.parallel.collectives import Ranks
from ambar.parallel.launch_check import check_launched
from ambar.store.commit_context import Closing
from ambar.store.dtypes import describe, to_bytes, to_zarr
from ambar.store.error_bounds import resolved
from ambar.store.node_paths import absolute, to_json
from ambar.store.urls import refuse_url
from ambar.store.writer import Durability

Profile: TypeAlias = Literal["fast", "balanced", "small", "raw"]
Placement: TypeAlias = Literal["counter", "reserved"]
Blocks = _core.Blocks


class MpiWriter(Closing):
    """One rank's end of a store that all ranks of a communicator write.

    Leaving its ``with`` block commits, on all ranks together; an exception on any rank keeps all
    from committing, and is raised on the others as an error that names the rank. All ranks call,
    in the same order, `blocks`, `declare`, `group`, `step`, `commit` and `close`; each calls
    `write` by itself.
    """

    def __init__(self, core: _core.RankWriter, ranks: Ranks, profile: Profile) -> None:
        self._core = core
        self._ranks = ranks
        self._profile = profile
        self._arrays: dict[str, tuple[int, str]] = {}

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._ranks.rank

    def blocks(
        self, shape: Sequence[int], own: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Blocks:
        """Gather who holds what of arrays of one shape; for `declare`.

        Parameters
        ----------
        shape
            The arrays' shape, of all ranks together.
        own
            Start and shape of each block that this rank holds; none, and empty ones, are allowed.
            Blocks of different ranks do not overlap.

        Raises
        ------
        ValueError
            If a block does not lie in the array, or ranks speak of different shapes.
        """
        with self._ranks.together():
            pairs = [(list(start), list(count)) for start, count in own]
            part = _core.Blocks.encode(list(shape), pairs)
        parts = self._ranks.comm.allgather(part)
        return _core.Blocks.gather(parts)

    def group(self, path: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Make a group, and those it lies in, and set its attributes, which are those of rank 0."""
        self._core.group(absolute(path), to_json(attributes))

    def declare(
        self,
        path: str,
        dtype: npt.DTypeLike,
        shape: Sequence[int],
        *,
        blocks: Blocks | None = None,
        dims: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        value_range: Sequence[float] | None = None,
        predict: bool = False,
    ) -> None:
        """Make an array that the ranks write before the next commit.

        All ranks declare the same arrays with the same arguments, in the same order; nothing is
        communicated. A commit is refused where two ranks differ. Arguments are as for
        `ambar.Writer.declare`.

        Parameters
        ----------
        blocks
            Who holds what, by `blocks`; by default rank 0 writes all of it.
        fill_value
            What values read as that no rank writes; zero by default. The array's
            `unwritten_values` says how many these are.
        chunks, shards
            By default cut so that a rank's blocks hold whole shards where their places allow it:
            then no values go from rank to rank.
        profile
            "fast", "balanced", "small", or "raw": not compressed; in place of the store's.
        value_range
            The lowest and the highest finite value of the whole array, on all ranks; only bounds
            such as ``"1e-3 of range"`` and ``"80 dB"`` need it. For example
            ``(comm.allreduce(values.min(), MPI.MIN), comm.allreduce(values.max(), MPI.MAX))``.
        predict
            With "fast", encode float32 and float64 that have no error bound by the codec ambar,
            near the speed of memory: readers need ambar then. Other profiles take no notice.

        Raises
        ------
        ValueError
            If the arguments do not fit together, or there is such a node.
        UnsupportedError
            If the dtype has no fixed size.
        """
        name, kind = describe(dtype)
        about = (
            name,
            list(shape),
            None if dims is None else list(dims),
            to_json(attributes),
            None if fill_value is None else to_bytes(fill_value, kind),
            None if chunks is None else list(chunks),
            None if shards is None else list(shards),
            profile or self._profile,
        )
        path = absolute(path)
        bound = None if error_bound is None else resolved(error_bound, value_range)
        self._arrays[path] = (self._core.declare(path, about, bound, predict, blocks), name)

    def write(self, path: str, data: npt.ArrayLike, start: Sequence[int]) -> None:
        """Write `data` from the index `start` on, a region that lies in one of this rank's blocks.

        Each value is written once before a commit; what no rank writes is the fill value. The data
        are the caller's again when this returns.

        Parameters
        ----------
        path
            An array declared since the last commit.
        data
            Values of the array's dtype; those that are not C-contiguous are copied.
        start
            Their first index, in the array of all ranks.

        Raises
        ------
        ValueError
            If the array was not declared, or data and blocks do not fit.
        OSError
            If the file system refuses, such as when the disk is full; nothing is committed then.
        """
        path = absolute(path)
        if path not in self._arrays:
            raise _core.InvalidError(f"{path}: not declared since the last commit; declare it")
        array, declared = self._arrays[path]
        values = np.asarray(data)
        dtype, native = to_zarr(values)
        if dtype != declared:
            raise _core.InvalidError(f"{path}: values of {dtype} for an array of {declared}")
        self._core.write(array, native, list(start), list(values.shape))

    def commit(self) -> None:
        """Make visible and durable what all ranks have written, at once: all of it, or nothing.

        It is refused if ranks declared an array differently, or not all of them declared it; the
        error names the array, the rank and what differs.

        Raises
        ------
        AmbarError
            What kept any rank from it, on all ranks. The last commit stands, and this writer can
            only be closed.
        """
        self._arrays.clear()
        ranks, core = self._ranks, self._core
        with ranks.together():
            boxes = [core.outbox(to) for to in range(ranks.size)]
        for sender, box in ranks.exchange(boxes):
            # What it is refused for is remembered by the writer, which then says so to rank 0.
            with contextlib.suppress(_core.AmbarError):
                core.inbox(sender, box)
        with ranks.together():
            index = core.seal()
        indices = ranks.gather(index)
        outcome = None
        with ranks.together():
            outcome = core.commit(indices) if ranks.rank == 0 else None
        outcome = ranks.comm.bcast(outcome)
        try:
            core.conclude(outcome)
        except BaseException:
            ranks.failed = True
            raise

    @contextlib.contextmanager
    def step(self, time: float, series: str = "") -> Iterator[str]:
        """Write a step of a series; leaving the ``with`` block commits it.

        Parameters
        ----------
        time
            The step's time, that of rank 0.
        series
            The group that the steps lie in, the root by default.

        Yields
        ------
        str
            The path of the step's group, such as ``"step_000003"``: steps are counted on when a
            store is appended to.

        Raises
        ------
        ValueError
            If the group holds something else.
        """
        path = None
        with self._ranks.together():
            if self.rank == 0:
                path = self._core.begin_step(series, float(time))
        path = self._ranks.comm.bcast(path)
        yield str(path)
        self.commit()

    def close(self) -> None:
        """Give up what was not committed, and let other writers in."""
        self._core.close()
        self._ranks.close()

    def _succeeded(self) -> None:
        self.commit()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._ranks.tell(error)
        finally:
            super().__exit__(kind, error, traceback)


def create(
    path: str | os.PathLike[str],
    comm: Any = None,
    *,
    overwrite: bool = False,
    durability: Durability = "full",
    profile: Profile = "balanced",
    placement: Placement = "counter",
    alignment: int = 4096,
    extent: int = 0,
    threads: int = 1,
) -> MpiWriter:
    """Return this rank's writer of a new store, which appears under its name with the first commit.

    All ranks of `comm` call it; arguments other than `comm` and `profile` count on rank 0.

    Parameters
    ----------
    path
        Where to write it: a file that all ranks see.
    comm
        The ranks that write, a communicator of mpi4py; ``MPI.COMM_WORLD`` by default.
    overwrite
        Replace what is there, at the first commit; by default that is an error.
    durability
        "full": commits survive a power cut. "none" leaves out the fsyncs, for scratch files.
    profile
        How arrays are compressed: "fast" to read, "balanced", "small", or "raw".
    placement
        How ranks get their extents of the file: "counter", a fetch-and-add on a counter in the
        memory of rank 0, or "reserved" when an array is declared, without communication, with holes
        in the file.
    alignment
        Extents begin at multiples of it, in bytes: the file system's block or stripe.
    extent
        Bytes that a rank takes from the counter at least; 0 for 16 KiB, doubled each time up to
        1 MiB.
    threads
        Threads that each rank encodes with.

    Raises
    ------
    FileExistsError
        If `path` exists.
    BusyError
        If another writer has it open.
    ValueError
        If the launcher started several processes, but MPI sees one.
    OSError
        If the file system refuses on any rank.
    """
    mode: Literal["create", "overwrite"] = "overwrite" if overwrite else "create"
    how = (placement, alignment, extent, threads)
    return _start(path, comm, mode, durability, profile, how)


def append(
    path: str | os.PathLike[str],
    comm: Any = None,
    *,
    durability: Durability = "full",
    profile: Profile = "balanced",
    placement: Placement = "counter",
    alignment: int = 4096,
    extent: int = 0,
    threads: int = 1,
) -> MpiWriter:
    """Return this rank's writer that adds to the store at `path`, on any number of ranks.

    Arguments are as for `create`. What a killed run left behind the last commit is cut off. Raises
    KeyError if the store does not exist, BusyError if another writer has it open.
    """
    how = (placement, alignment, extent, threads)
    return _start(path, comm, "append", durability, profile, how)


def _start(
    path: str | os.PathLike[str],
    comm: Any,
    mode: Literal["create", "overwrite", "append"],
    durability: Durability,
    profile: Profile,
    how: tuple[Placement, int, int, int],
) -> MpiWriter:
    refuse_url(path)
    check_launched()
    ranks = Ranks(comm)
    core = invitation = None
    try:
        with ranks.together():
            if ranks.rank == 0:
                core = _core.RankWriter.first(path, mode, durability, (ranks.size, *how))
                invitation = core.invitation()
        invitation = ranks.comm.bcast(invitation)
        with ranks.together():
            if core is None:
                core = _core.RankWriter.join(invitation, ranks.rank)
        if core.counts:
            with ranks.together():
                core.count_with(ranks.counter())
    except BaseException:
        if core is not None:
            core.close()
        ranks.close()
        raise
    return MpiWriter(core, ranks, profile)

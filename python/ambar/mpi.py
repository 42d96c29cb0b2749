"""One store written by many MPI ranks, over mpi4py."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import WriteMode, check_bytes, check_choice, check_mode, lengths_of
from ambar._util.commit_context import CommitContext
from ambar.parallel.collectives import Ranks, check_launched, mpi
from ambar.store.dtypes import as_unmasked_array, describe, to_core
from ambar.store.error_bounds import check_range
from ambar.store.nodes import absolute, check_reserved, relative
from ambar.store.urls import refuse_url
from ambar.store.writer import (
    ArrayOptions,
    Layout,
    Profile,
    check_dims,
    check_layout,
    core_mode,
    durability,
)

Placement: TypeAlias = Literal["counter", "reserved"]
Blocks = _core.Blocks


class _Array(NamedTuple):
    """An array that was created since the last commit."""

    number: int
    dtype: str
    limits: tuple[float, float] | None


class MpiWriter(CommitContext):
    """Writes one store from all ranks of a communicator.

    `create` returns one on each rank. The end of its ``with`` block commits, on all ranks together.
    After an exception on any rank nothing is committed; the other ranks raise an error that names
    the rank. All ranks call `blocks`, `create_array`, `create_group`, `step`, `commit` and `close`
    in the same order. Each rank calls `write_region` independently of the others.

    Examples
    --------
    This program runs on any number of ranks: ``mpiexec -n 4 python program.py``.

    >>> import ambar.mpi
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_WORLD
    >>> with ambar.mpi.create("ranks.ambar", comm) as writer:
    ...     writer.create_group("run", {"ranks": comm.size})
    ...     blocks = writer.blocks((100 * comm.size,), [((100 * comm.rank,), (100,))])
    ...     writer.create_array("x", shape=(100 * comm.size,), dtype="f8", blocks=blocks)
    ...     writer.write_region("x", np.full(100, float(comm.rank)), (100 * comm.rank,))
    ...     writer.commit()
    >>> ambar.open_store("ranks.ambar")["x"].shape == (100 * comm.size,)
    True
    """

    def __init__(self, core: _core.RankWriter, ranks: Ranks, profile: Profile) -> None:
        self._core = core
        self._ranks = ranks
        self._profile = profile
        self._arrays: dict[str, _Array] = {}

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self._ranks.rank

    def blocks(
        self, shape: Sequence[int], own: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> Blocks:
        """Gather which rank has which blocks of arrays of one shape, for `create_array`.

        All ranks call it.

        Parameters
        ----------
        shape : sequence of int
            The shape of the arrays, over all ranks.
        own : sequence of (start, shape)
            Start and shape of each block of this rank. It may be empty, and blocks may be empty.
            Blocks of different ranks do not overlap.

        Returns
        -------
        Blocks
            The blocks of all ranks.

        Raises
        ------
        ValueError
            If an argument is invalid, a block is not inside the array, or ranks give different
            shapes.
        """
        with self._ranks.together():
            array_shape = list(lengths_of("blocks", "shape", shape))
            encoded = _core.Blocks.encode(array_shape, _checked_blocks(own))
        return _core.Blocks.gather(self._ranks.comm.allgather(encoded))

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Create a group and its parents.

        All ranks call it.

        Parameters
        ----------
        path : str
            The path of the group.
        attrs : mapping, optional
            Attributes of the group, those of rank 0: names and JSON values.

        Raises
        ------
        ValueError
            If the path is invalid, or JSON cannot represent the attributes.
        """
        check_reserved(attrs)
        self._core.group(absolute(path), attrs or {})

    def create_array(
        self,
        path: str,
        *,
        shape: Sequence[int],
        dtype: npt.DTypeLike,
        blocks: Blocks | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        value_range: Sequence[float] | None = None,
        layout: Layout | None = None,
    ) -> None:
        """Create an array, which the ranks write before the next commit.

        All ranks create the same arrays with the same arguments, in the same order; nothing is
        communicated. If two ranks differ, the commit fails.

        Parameters
        ----------
        path : str
            The path of the array; missing groups are created.
        shape : sequence of int
            The shape. `ambar.Array.unwritten_values` counts the values that no rank wrote.
        dtype : dtype_like
            A dtype of fixed size.
        blocks : Blocks, optional
            Which rank has which blocks, from `blocks`; by default rank 0 writes the whole array.
        dims : sequence of str or None, optional
            A name, or None, for each dimension.
        attrs : mapping, optional
            Attributes of the array: names and JSON values.
        fill_value : scalar, optional
            The value of elements that were never written; zero by default.
        chunks, shards : sequence of int, optional
            Shapes of chunks and shards. By default, blocks consist of whole shards if their
            positions allow it; then ranks exchange no values.
        profile : {"fast", "balanced", "small", "raw"}, optional
            How codecs are chosen; "raw" does not compress. By default as for the writer.
        error_bound : float or str, optional
            As for `ambar.Writer.create_array`.
        value_range : (float, float), optional
            The lowest and the highest finite value of the whole array, on all ranks, for bounds
            that depend on it (``"1e-3 of range"``, ``"80 dB"``). For example
            ``(comm.allreduce(values.min(), MPI.MIN), comm.allreduce(values.max(), MPI.MAX))``.
            Other values are refused.
        layout : {"grid"}, optional
            What the values are, as for `ambar.Writer.create_array`; other layouts need the data
            that an array is created from. Codecs are chosen before ranks write values: "grid" lets
            the profile "fast" use the codec ``ambar`` for float32 and float64 without an error
            bound, near the speed of memory, and does not change other profiles.

        Raises
        ------
        ValueError
            If arguments are invalid or contradict each other, or the path exists.
        UnsupportedError
            If the dtype has no fixed size.
        """
        path, profile = relative(path), profile or self._profile
        check_layout(path, layout, ("grid",))
        check_dims(path, dims)
        check_reserved(attrs)
        options = ArrayOptions(
            dims, attrs, fill_value, chunks, shards, profile, error_bound, value_range
        )
        spec = options.declared(path, dtype, shape, is_grid=layout == "grid")
        number = self._core.declare(path, spec, blocks)
        self._arrays[path] = _Array(number, describe(path, dtype)[0], options.limits)

    def write_region(self, path: str, data: npt.ArrayLike, start: Sequence[int]) -> None:
        """Write `data` into a region of an array, inside one block of this rank.

        A rank calls it independently of the other ranks. Write each value once before a commit;
        values that no rank writes are the fill value. The data may change after the call. With
        `queue_bytes`, values are encoded and written in the background.

        Parameters
        ----------
        path : str
            An array created since the last commit.
        data : array_like
            Values of the dtype of the array; values that are not C-contiguous are copied.
        start : sequence of int
            The first index of the region, in the array of all ranks.

        Raises
        ------
        ValueError
            If the array was not created since the last commit, or data and blocks do not fit, or
            values are outside the `value_range` of the array.
        OSError
            If the file system reports an error, such as a full disk; then nothing is committed.
        """
        path = relative(path)
        if path not in self._arrays:
            raise _core.InvalidError(
                f"{path}: expected an array created since the last commit; call create_array first"
            )
        array = self._arrays[path]
        values = as_unmasked_array(path, data)
        dtype, native = to_core(path, values)
        if dtype != array.dtype or isinstance(native, list):
            raise _core.InvalidError(
                f"{path}: expected values of {array.dtype}, found values of {dtype}; convert them"
            )
        check_range(path, values, array.limits)
        self._core.write(array.number, native, list(start), list(values.shape))

    def commit(self) -> None:
        """Make the changes of all ranks visible to readers: all of them, or none.

        All ranks call it. It fails if ranks created an array with different arguments, or only
        some ranks created it; the error names the array, the rank and the difference.

        Raises
        ------
        AmbarError
            If it failed on any rank; all ranks raise the error. The last commit remains, and the
            writer can only be closed.
        """
        self._arrays.clear()
        ranks, core = self._ranks, self._core
        with ranks.together():
            messages = [core.message_to(to) for to in range(ranks.size)]
        for sender, message in ranks.exchange(messages):
            # The writer keeps the error and sends it to rank 0.
            with contextlib.suppress(_core.AmbarError):
                core.receive(sender, message)
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
        """Write a step of a series; the end of the ``with`` block commits it.

        All ranks call it.

        Parameters
        ----------
        time : float
            The time of the step, from rank 0.
        series : str, default ""
            The group that contains the steps; the root by default.

        Yields
        ------
        str
            The path of the group of the step, such as ``"step_000003"``. In mode "a" the numbers
            continue those of the store.

        Raises
        ------
        ValueError
            If the group is not a series.

        Examples
        --------
        >>> import ambar.mpi
        >>> with ambar.mpi.create("steps_of_ranks.ambar") as writer:
        ...     with writer.step(time=0.5) as path:
        ...         writer.create_array(f"{path}/energy", shape=(1,), dtype="f8")
        ...         if writer.rank == 0:
        ...             writer.write_region(f"{path}/energy", [2.5], (0,))
        >>> ambar.open_store("steps_of_ranks.ambar")["step_000000/energy"].read()
        array([2.5])
        """
        path = None
        with self._ranks.together():
            if self.rank == 0:
                path = self._core.begin_step(series, float(time))
        path = self._ranks.comm.bcast(path)
        yield str(path)
        self.commit()

    def close(self) -> None:
        """Discard changes that were not committed, and release the lock of the store.

        All ranks call it; the end of the ``with`` block does.

        Examples
        --------
        >>> import ambar.mpi
        >>> writer = ambar.mpi.create("closed.ambar")
        >>> writer.create_group("run")
        >>> writer.commit()
        >>> writer.close()
        >>> ambar.open_store("closed.ambar").groups
        ['', 'run']
        """
        self._core.close()
        self._ranks.close()

    def _succeeded(self) -> None:
        self.commit()

    def __exit__(self, kind: type[BaseException] | None, *details: Any) -> None:
        try:
            if kind is not None:
                self._ranks.report(details[0])
        finally:
            super().__exit__(kind)


def create(
    path: str | os.PathLike[str],
    comm: Any = None,
    mode: WriteMode = "w-",
    *,
    profile: Profile = "balanced",
    placement: Placement | None = None,
    alignment: int = 4096,
    extent: int = 0,
    threads: int = 1,
    queue_bytes: int = 0,
    fsync: bool = True,
) -> MpiWriter:
    """Open a store for writing by all ranks. A new store appears with the first commit.

    All ranks of `comm` call it. Arguments other than `comm` and `profile` are those of rank 0.

    Parameters
    ----------
    path : str or path-like
        The path of the store, a file that all ranks see.
    comm : mpi4py.MPI.Comm, optional
        The ranks that write; ``MPI.COMM_WORLD`` by default.
    mode : {"w-", "w", "a"}, default "w-"
        "w-": create a store; raise FileExistsError if `path` exists. "w": replace an existing
        store at the first commit. "a": change an existing store, on any number of ranks, or create
        one.
    profile : {"balanced", "fast", "small", "raw"}, default "balanced"
        How codecs are chosen. "fast" is for fast reading; "raw" does not compress.
    placement : {"counter", "reserved"}, optional
        How ranks get extents of the file. "counter": a counter in the memory of rank 0, by
        one-sided MPI. "reserved": when an array is created, without communication; the file then
        has holes. By default "counter", with `queue_bytes` and several ranks "reserved".
    alignment : int, default 4096
        Extents begin at multiples of it, in bytes: the block size of the file system, or the
        stripe size.
    extent : int, default 0
        The minimum size in bytes of an extent from the counter. 0: from 16 KiB, doubled each time,
        to 1 MiB.
    threads : int, default 1
        The number of threads with which each rank encodes.
    queue_bytes : int, default 0
        Above 0, a thread of each rank encodes and writes values while the program computes:
        `MpiWriter.write_region` copies them and returns. It waits while the copies have more bytes
        than this. The commit waits for the thread, and raises its errors. With the placement
        "counter" the thread calls MPI, which needs ``MPI_THREAD_MULTIPLE``.
    fsync : bool, default True
        Whether commits survive a power failure. False is faster, for temporary files.

    Returns
    -------
    MpiWriter
        A context manager that commits at the end of its block.

    Raises
    ------
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the store open.
    ValueError
        If an argument is invalid, the level of thread support is too low for `queue_bytes`, or the
        launcher started several processes but MPI sees one.
    TypeError
        If `comm` is not an intracommunicator.
    OSError
        If the file system reports an error on any rank.

    Examples
    --------
    >>> import ambar.mpi
    >>> from mpi4py import MPI
    >>> with ambar.mpi.create("groups_of_ranks.ambar", MPI.COMM_WORLD, "w") as writer:
    ...     writer.create_group("run", {"code": "solver"})
    >>> dict(ambar.open_store("groups_of_ranks.ambar")["run"].attrs)
    {'code': 'solver'}
    """
    refuse_url(path)
    check_launched()
    ranks = Ranks(comm)
    core = invitation = None
    try:
        with ranks.together():
            check_choice("profile", profile, get_args(Profile))
            if ranks.rank == 0:
                check_mode(mode)
                check_bytes("alignment", alignment, least=1)
                check_bytes("extent", extent)
                check_bytes("queue_bytes", queue_bytes)
                if placement is not None:
                    check_choice("placement", placement, get_args(Placement))
                placement, queue = _background(placement, queue_bytes, ranks.size)
                core = _core.RankWriter.first(
                    path,
                    core_mode(path, mode),
                    durability=durability(fsync),
                    ranks=ranks.size,
                    placement=placement,
                    alignment=alignment,
                    extent=extent,
                    threads=threads,
                    queue=queue,
                )
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


def _checked_blocks(
    blocks: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> list[tuple[list[int], list[int]]]:
    """Return start and shape of each block; raises ValueError if they are invalid."""
    try:
        pairs = [(start, shape) for start, shape in blocks]
    except (TypeError, ValueError) as error:
        raise _core.InvalidError(
            f"blocks: invalid own: {blocks!r:.80}; expected a sequence of pairs (start, shape)"
        ) from error
    return [
        (
            list(lengths_of("blocks", "start of a block", start)),
            list(lengths_of("blocks", "shape of a block", shape)),
        )
        for start, shape in pairs
    ]


def _background(
    placement: Placement | None, queue_bytes: int, ranks: int
) -> tuple[Placement, int | None]:
    """Return how ranks get extents, and the bytes of the queue; None without one."""
    if queue_bytes == 0:
        return placement or "counter", None
    if placement == "counter" and ranks > 1:
        library = mpi()
        if library.Query_thread() < library.THREAD_MULTIPLE:
            raise _core.InvalidError(
                "expected MPI_THREAD_MULTIPLE for queue_bytes with placement='counter', found a "
                "lower level; leave out placement, or initialize MPI with it"
            )
    return placement or ("reserved" if ranks > 1 else "counter"), queue_bytes

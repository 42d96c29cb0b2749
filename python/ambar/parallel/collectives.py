"""MPI through mpi4py: collective operations of the ranks that write one store, and their launch."""

from __future__ import annotations

import builtins
import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ambar import _core

# Messages are sent in pieces of this many bytes at most: MPI counts with int.
_PIECE = 1 << 30


class Ranks:
    """The ranks of a communicator, which succeed or fail together."""

    def __init__(self, comm: Any = None) -> None:
        self._mpi = mpi()
        comm = self._mpi.COMM_WORLD if comm is None else comm
        is_null = comm == self._mpi.COMM_NULL
        if is_null or not isinstance(comm, self._mpi.Intracomm):
            found = "MPI.COMM_NULL" if is_null else f"{comm!r:.80}"
            raise TypeError(
                "invalid comm: expected an intracommunicator of mpi4py, such as MPI.COMM_WORLD, "
                f"found {found}; give one, or leave it out"
            )
        self.comm = comm.Dup()
        self.rank: int = self.comm.rank
        self.size: int = self.comm.size
        self.failed = False
        self._window: Any = None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Run a block on all ranks; if it fails on one, all ranks raise, also in all later blocks.

        Raises
        ------
        AmbarError
            The error of the first rank that failed; the other ranks raise an error of its type.
        """
        self._check()
        try:
            yield
        except BaseException as error:
            self.report(error)
            raise
        self._agree(None)

    def report(self, error: BaseException) -> None:
        """Report an error to the other ranks, which raise it at the end of their block."""
        if not self.failed:
            with contextlib.suppress(Exception):
                self._agree(error)

    def _check(self) -> None:
        if self.failed:
            raise _core.InvalidError("the ranks have failed before; close the writer and append")

    def _agree(self, error: BaseException | None) -> None:
        """Raise the error of the first rank that failed, if any did."""
        none = self.size
        first = self.comm.allreduce(none if error is None else self.rank, self._mpi.MIN)
        if first == none:
            return
        self.failed = True
        failure = None if error is None else (type(error).__name__, str(error))
        name, text = self.comm.bcast(failure, root=first)
        raise _error_type(name)(f"rank {first}: {text}")

    def counter(self) -> Callable[[int], int]:
        """Return a function that adds to a counter on rank 0, and returns its previous value."""
        window = self._mpi.Win.Allocate(8 if self.rank == 0 else 0, 8, comm=self.comm)
        self._window = window
        window.Lock_all()
        if self.rank == 0:
            np.frombuffer(window, np.uint64)[0] = 0
        window.Sync()
        self.comm.Barrier()

        def reserve(count: int) -> int:
            added, before = np.array([count], np.uint64), np.zeros(1, np.uint64)
            window.Fetch_and_op(added, before, 0, 0, self._mpi.SUM)
            window.Flush(0)
            return int(before[0])

        return reserve

    def exchange(self, messages: list[bytes]) -> list[tuple[int, bytearray]]:
        """Send a message to each rank; return the senders and messages for this rank.

        Nothing is sent if all messages are empty.
        """
        sizes = np.array([len(message) for message in messages], np.uint64)
        if self.comm.allreduce(int(sizes.sum()), self._mpi.MAX) == 0:
            return []
        incoming = np.empty_like(sizes)
        self.comm.Alltoall(sizes, incoming)
        with self.together():
            received = [(rank, bytearray(int(n))) for rank, n in enumerate(incoming) if n]
        self._move(received, list(enumerate(messages)))
        return received

    def gather(self, own: bytes) -> list[bytes]:
        """Return the bytes of all ranks on rank 0, and nothing on the other ranks."""
        sizes = self.comm.gather(len(own))
        received: list[bytearray] = []
        with self.together():
            received = [bytearray(size) for size in sizes or []]
        self._move(list(enumerate(received)), [(0, own)])
        return [bytes(message) for message in received]

    def _move(
        self, incoming: list[tuple[int, bytearray]], outgoing: list[tuple[int, bytes]]
    ) -> None:
        """Receive messages of known sizes from ranks, and send messages to ranks."""
        kind, comm = self._mpi.BYTE, self.comm
        requests = []
        for sender, buffer in incoming:
            requests += [comm.Irecv([piece, kind], sender) for piece in _pieces(buffer)]
        for to, message in outgoing:
            requests += [comm.Isend([piece, kind], to) for piece in _pieces(message)]
        self._mpi.Request.Waitall(requests)

    def close(self) -> None:
        """Free the counter and the communicator. Collective."""
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None
        if self.comm != self._mpi.COMM_NULL:
            self.comm.Free()


def _error_type(name: str) -> type[Exception]:
    """Return the type of the error that the other ranks raise, by the name of that of a rank.

    It is AmbarError for types that this module does not know, such as those of the program.
    """
    found: Any = getattr(_core, name, getattr(builtins, name, None))
    is_of_stores = isinstance(found, type) and issubclass(found, (_core.AmbarError, OSError))
    return found if is_of_stores or found in (TypeError, ValueError) else _core.AmbarError


def _pieces(message: bytes | bytearray) -> Iterator[memoryview]:
    view = memoryview(message)
    for start in range(0, len(view), _PIECE):
        yield view[start : start + _PIECE]


# Set by the mpirun of Open MPI, of MPICH and its derivatives, and of MVAPICH.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
# Set by srun. SLURM_NTASKS, of the whole job, is also set for processes that srun did not start.
_SLURM = "SLURM_STEP_NUM_TASKS"


def mpi() -> Any:
    """Return ``mpi4py.MPI``.

    Raises
    ------
    ImportError
        If mpi4py is missing, or finds no MPI library.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"ambar.mpi needs mpi4py and an MPI library: {error}; run: pip install 'ambar[mpi]'"
        ) from error
    return MPI


def check_launched() -> None:
    """Refuse several processes if MPI sees one rank in each of them.

    This happens if mpi4py uses another MPI library than mpirun. Each process would write the file.

    Raises
    ------
    ValueError
        If MPI sees one process where the launcher has started several.
    """
    library = mpi()
    if library.COMM_WORLD.size != 1 or library.Comm.Get_parent() != library.COMM_NULL:
        return
    started = {name: _number(name) for name in _LAUNCHERS}
    if not any(started.values()):
        started = {_SLURM: _number(_SLURM)}
    for name, number in started.items():
        if number > 1:
            version = library.Get_library_version().splitlines()[0].strip("\0 ")
            raise _core.InvalidError(
                f"MPI.COMM_WORLD has 1 rank, but the launcher started {number} ({name}): mpi4py "
                f"uses {version}, mpirun another library; use one MPI for both: "
                "set MPI4PY_MPIABI=openmpi or mpich for a wheel of mpi4py, or build it for your "
                "MPI with pip install --no-binary mpi4py mpi4py"
            )


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0

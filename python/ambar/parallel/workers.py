"""Worker processes for libraries that may crash.

Libraries such as libhdf5 crash under threads, and on some damaged files. The death of a process
fails only its task. Processes are new interpreters and import only the modules of the functions
that they run, never the program's ``__main__``.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from numbers import Integral
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.resources import usable_cores

MAX_PROCESSES = 1024
"""Maximum number of processes, as of threads."""
AHEAD = 4
"""Maximum number of submitted tasks per process."""
WEIGHT = 64 << 20
"""Maximum weight of the submitted tasks, if they are more than the processes."""
LARGE = 1 << 20
"""Bytes from which on an array is sent in parts of this size."""
_TIMEOUT = 5.0  # seconds for a process to end


@dataclass(frozen=True, slots=True)
class Failure:
    """The result of a task that failed."""

    why: str
    error: Exception | None = None
    """The error, if it is one of ambar, or one of Python whose message is complete."""
    has_died: bool = False
    """Whether the process has ended."""

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return the failure of an error; it can be sent to another process."""
        if isinstance(error, OSError):
            # Libraries use negative numbers.
            known = error.errno is not None and error.errno > 0
            return cls(explained(error), OSError(error.errno, error.strerror) if known else None)
        if isinstance(error, _core.AmbarError):
            return cls(explained(error), type(error)(str(error)))
        # Libraries derive classes from these, with other arguments.
        kinds: tuple[type[Exception], ...] = (ModuleNotFoundError, ImportError, MemoryError)
        kind = next((kind for kind in kinds if isinstance(error, kind)), None)
        return cls(explained(error), None if kind is None else kind(str(error)))

    def raised_for(self, path: str, advice: str) -> Exception:
        """Return the error to raise for a file that could not be read."""
        if isinstance(self.error, OSError):
            return OSError(self.error.errno, f"{self.error.strerror}{advice}", path)
        if self.error is None:
            return _core.CorruptError(f"{path}: {self.why}{advice}")
        message = str(self.error)
        for name in (path, str(Path(path).absolute())):
            message = message.removeprefix(f"{name}: ")
        return type(self.error)(f"{path}: {message}{advice}")


class Workers(AbstractContextManager["Workers"]):
    """A number of processes: a context manager, at the end of which they have ended."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._threads = ThreadPoolExecutor(processes, "ambar-workers")
        self._all: list[_Worker] = []
        self._idle: queue.SimpleQueue[_Worker | None] = queue.SimpleQueue()
        for _ in range(processes):
            self._idle.put(None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if kind is not None:
            for worker in list(self._all):
                worker.kill()
        # Pipes are closed when no thread waits for them.
        self._threads.shutdown(wait=True)
        for worker in self._all:
            worker.end()

    def map(
        self,
        function: Callable[..., Any],
        tasks: Iterable[tuple[Any, ...]],
        weigh: Callable[[tuple[Any, ...]], int] = lambda _: 0,
    ) -> Iterator[tuple[tuple[Any, ...], Any]]:
        """Yield tasks and results of `function`, or a `Failure`, in the order of the tasks.

        `function` belongs to a module, as it is sent by its name. The number of submitted tasks is
        limited to `AHEAD` per process and the sum of `weigh` to `WEIGHT`, so that results do not
        accumulate.
        """
        waiting: deque[tuple[tuple[Any, ...], int, Future[Any]]] = deque()
        weight = 0
        for task in tasks:
            own = weigh(task)
            while len(waiting) >= self._processes and (
                len(waiting) >= AHEAD * self._processes or weight + own > WEIGHT
            ):
                first, its, future = waiting.popleft()
                weight -= its
                yield first, future.result()
            waiting.append((task, own, self._threads.submit(self._call, function, task)))
            weight += own
        for task, _, future in waiting:
            yield task, future.result()

    def _call(self, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        worker = self._idle.get()
        try:
            if worker is None:
                worker = _Worker()
                self._all.append(worker)
            return worker.call(function, task)
        except (EOFError, ConnectionError):
            if worker is None:
                raise
            ended = worker
            worker = None
            self._all.remove(ended)
            why = f"the process that worked on it {ended.end()}"
            return Failure(why, _core.AmbarError(why), has_died=True)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process, and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        with theirs:
            code = (
                f"import sys; sys.path[:] = {sys.path!r}; "
                f"from ambar.parallel.workers import _serve; _serve({theirs.fileno()})"
            )
            # Ctrl-C reaches all processes of a terminal; the first one ends the others. The process
            # inherits the mask, as it would print a traceback while it starts.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                self._process = subprocess.Popen(  # noqa: S603 - this interpreter and our own code
                    [sys.executable, "-c", code],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        try:
            self._pipe.recv()
        except (EOFError, ConnectionError):
            raise _core.AmbarError(
                f"{sys.executable} could not be started as a worker process: it {self.end()}; see "
                "its output for the reason"
            ) from None

    def call(self, function: Callable[..., Any], task: tuple[Any, ...]) -> Any:
        """Return the result of a task; raises EOFError if the process dies."""
        self._pipe.send((function, task))
        return _receive(self._pipe)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def end(self) -> str:
        """Wait until the process ends; return how it ended."""
        self._pipe.close()
        try:
            code = self._process.wait(_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def _serve(descriptor: int) -> None:
    """Run the tasks from the pipe until its other end is closed."""
    warnings.simplefilter("ignore")
    # Output of libraries must not mix with the results of the program on stdout.
    os.dup2(2, 1)
    pipe = Connection(descriptor)
    try:
        pipe.send(True)  # any message: the process has started
        while True:
            _send(pipe, _answer(pipe))
    except (EOFError, ConnectionError):
        return


def _answer(pipe: Connection) -> Any:
    try:
        function, task = pipe.recv()
        return function(*task)
    except (EOFError, ConnectionError):
        raise
    except Exception as error:  # files may cause any error
        return Failure.of(error)


def _send(pipe: Connection, value: Any) -> None:
    """Send an object; large arrays follow it in parts, without a copy of them."""
    large: list[memoryview] = []

    def is_small(buffer: pickle.PickleBuffer) -> bool:
        part = buffer.raw()
        if part.nbytes >= LARGE:
            large.append(part)
        return part.nbytes < LARGE

    head = pickle.dumps(value, protocol=5, buffer_callback=is_small)
    pipe.send((head, [part.nbytes for part in large]))
    for part in large:
        for at in range(0, len(part), LARGE):
            pipe.send_bytes(part[at : at + LARGE])


def _receive(pipe: Connection) -> Any:
    """Return an object of `_send`."""
    head, sizes = pipe.recv()
    large = [bytearray(size) for size in sizes]
    for part in large:
        for at in range(0, len(part), LARGE):
            pipe.recv_bytes_into(part, at)
    return pickle.loads(head, buffers=large)  # noqa: S301 - from our own process


def explained(error: BaseException) -> str:
    """Return an error as one line."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    return f"{kind}: {text}" if text else kind


def processes_for(tasks: int, processes: int | None) -> int:
    """Return the number of processes to start: `processes`, but at most one per `AHEAD` tasks.

    Raises ValueError unless `processes` is None (one per core) or an integer from 1 to
    `MAX_PROCESSES`.
    """
    is_valid = isinstance(processes, Integral) and not isinstance(processes, bool)
    if processes is not None and not (is_valid and 1 <= processes <= MAX_PROCESSES):
        raise _core.InvalidError(
            f"invalid processes: {processes!r}; expected an integer from 1 to {MAX_PROCESSES}, or "
            "None for one per core"
        )
    return max(min(processes or usable_cores(), MAX_PROCESSES, -(-tasks // AHEAD)), 1)

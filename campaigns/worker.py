"""A child process that reads hostile input: it has a time limit and a memory limit for each task.

One child runs many tasks, because starting Python is slow. After the child dies, the next task
starts a new one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import pickle
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[1]
_CHILD = "from campaigns.worker import main; main()"
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Answer:
    """The outcome of a task."""

    value: Any = None
    """The return value of the function."""
    error: str | None = None
    """The traceback of the exception that the function raised."""
    died: str | None = None
    """How the child died (signal, hang or abort), with its output to stderr."""
    peak: int = 0
    """Peak memory of the task in bytes, without the memory that the child had before."""
    seconds: float = 0.0


class Worker:
    """A child process that calls functions of this package.

    Parameters
    ----------
    seconds
        Time limit of a task.
    memory
        Bytes of address space that a task may take.
    variables
        More variables of its environment.
    """

    def __init__(self, seconds: float = 10, memory: int = 1 << 30, **variables: str) -> None:
        self._variables = variables
        self._seconds = seconds
        self._memory = memory
        self._child: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._errors.close()

    def call(self, function: str, *arguments: Any) -> Answer:
        """Call ``module.function`` of this package in the child."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            _send(child.stdin, (function, arguments))
            answer: Answer = _receive(child.stdout)
        except (EOFError, BrokenPipeError):
            return Answer(died=self._death(child))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors.seek(0)
        self._errors.truncate()
        command = [sys.executable, "-c", _CHILD, str(self._seconds), str(self._memory)]
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(**self._variables),
        )
        return self._child

    def _death(self, child: subprocess.Popen[bytes]) -> str:
        code = child.wait()
        self._child = None
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace").strip()[-3000:]
        if "Timeout (" in text:
            return f"no answer within {self._seconds:g} s: {text}"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the process died ({how}): {text}"

    def _end(self) -> None:
        if self._child is not None:
            assert self._child.stdin is not None
            self._child.stdin.close()
            self._child.kill()
            self._child.wait()
            self._child = None


def environment(**more: str) -> dict[str, str]:
    """Return the variables with which a child imports this package and the tests' helpers."""
    places = [str(ROOT), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), **more}


def _send(stream: BinaryIO | Any, value: Any) -> None:
    data = pickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO | Any) -> Any:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    return pickle.loads(stream.read(_LENGTH.unpack(head)[0]))


def _status(name: str) -> int:
    """Return a number of bytes from /proc/self/status."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def _answer(act: Callable[..., Any], arguments: tuple[Any, ...], memory: int) -> Answer:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    before = _status("VmRSS")
    limit = _status("VmSize") + memory
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    value, error = None, None
    started = os.times().elapsed
    try:
        value = act(*arguments)
    except BaseException:  # the parent judges it
        error = traceback.format_exc()
    seconds = os.times().elapsed - started
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return Answer(value, error, None, max(0, _status("VmHWM") - before), seconds)


def main() -> None:
    """Answer the parent's tasks until it closes the pipe."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the output of a task does not go to the parent
    faulthandler.enable()
    while True:
        try:
            function, arguments = _receive(sys.stdin.buffer)
        except EOFError:
            os._exit(0)
        module, name = function.rsplit(".", 1)
        act = getattr(importlib.import_module(f"campaigns.{module}"), name)
        faulthandler.dump_traceback_later(seconds, exit=True)
        answer = _answer(act, arguments, memory)
        faulthandler.cancel_dump_traceback_later()
        _send(answers, answer)

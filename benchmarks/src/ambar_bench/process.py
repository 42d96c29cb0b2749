"""Worker processes: they answer requests with JSON, and are restarted after a crash."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

CRASHES = 3
"""How often a process may crash in one turn before its row is left out."""
TURN_LIMIT = 3600.0
"""Seconds after which a turn counts as hung, and its process is ended."""


class Failure(Exception):  # noqa: N818 - what failed is not the study
    """Why a process gave no answer."""


class Turns(Protocol):
    """What takes turns: a worker, or a row that has one do its work."""

    failed: str
    """Why it takes no more; empty while it does."""

    @property
    def seconds(self) -> list[float]:
        """Of each turn."""

    def turn(self) -> None:
        """Take one."""


def take_turns(
    everyone: Mapping[str, Turns], rounds: int, patience: float, report: Callable[[str], None]
) -> None:
    """Give everyone one turn a round, until they fail or have taken `patience` seconds.

    Each round starts with another one, so that whatever else the machine does hits all alike.
    """
    items = list(everyone.items())
    for number in range(rounds):
        first = number % max(len(items), 1)
        for name, one in items[first:] + items[:first]:
            if one.failed or sum(one.seconds) >= patience:
                continue
            report(f"round {number + 1} of {rounds}: {name}")
            one.turn()


class Worker:
    """A process that answers requests, and its answers.

    `module` is run with `task` as its argument, and calls `serve`.
    """

    def __init__(self, task: dict[str, Any], module: str) -> None:
        self.task = task
        self.module = module
        self.answers: list[dict[str, Any]] = []
        self.crashes = 0
        self.failed = ""
        """Why there are no more answers; empty while there may be."""
        self._process: subprocess.Popen[str] | None = None
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by __exit__

    @property
    def seconds(self) -> list[float]:
        """Of each turn."""
        return [answer["seconds"] for answer in self.answers]

    def turn(self) -> None:
        """Run the task once more, and record the answer or the failure."""
        try:
            self.answers.append(self.ask())
        except Failure as failure:
            self.failed = str(failure)

    def ask(self, request: str = "") -> dict[str, Any]:
        """Return the answer to a line; a process that crashes is restarted, a few times.

        Raises
        ------
        Failure
            If it crashed every time, or ended.
        """
        code = 0
        for _ in range(CRASHES):
            if line := self._ask(self._running(), request):
                answer: dict[str, Any] = json.loads(line)
                return answer
            code = self._stop()
            if code >= 0:
                raise Failure(self._last_words() or f"it ended with code {code}")
            self.crashes += 1
        raise Failure(f"it crashed {CRASHES} times in a row, by signal {-code}")

    def command(self) -> list[str]:
        """Return what is run: it answers every line of its input with a line of JSON."""
        task = json.dumps(self.task)
        return [sys.executable, "-P", "-W", "ignore", "-m", self.module, task]

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                self.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                text=True,
            )
        return self._process

    def _ask(self, process: subprocess.Popen[str], request: str) -> str:
        """Return the line that the process answers with; empty if it ended instead."""
        if process.stdin is None or process.stdout is None:
            return ""
        alarm = threading.Timer(TURN_LIMIT, process.kill)
        alarm.start()
        try:
            process.stdin.write(request + "\n")
            process.stdin.flush()
            return process.stdout.readline()
        except BrokenPipeError:
            return ""
        finally:
            alarm.cancel()

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        return lines[-1] if lines else ""

    def _stop(self) -> int:
        """End the process and return its code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.communicate()
        return process.returncode

    def close(self) -> None:
        """End the process."""
        self._stop()
        self._said.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(start: Callable[[], Callable[[str], dict[str, Any]]]) -> None:
    """Answer every line of the standard input with a line of JSON: a worker's other end.

    `start` makes what answers; neither can spoil the answers by printing.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    warnings.simplefilter("ignore")
    answer = start()
    for line in sys.stdin:
        answers.write(json.dumps(answer(line)) + "\n")

"""The study's end of a worker's pipe: asks, waits, restarts what crashed, and gives up."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from typing import Any, Self

CRASHES = 3
"""How often a process may crash in one turn before its row is left out."""
TURN_LIMIT = 3600.0
"""Seconds after which a turn counts as hung, and its process is ended."""


class Worker:
    """A process that does one task again and again, and what it answered."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
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
        """Have the task done once more; a process that crashes is restarted, a few times."""
        code = 0
        for _ in range(CRASHES):
            if line := self._ask(self._running()):
                self.answers.append(json.loads(line))
                return
            code = self._stop()
            if code >= 0:
                self.failed = self._last_words() or f"it ended with code {code}"
                return
            self.crashes += 1
        self.failed = f"it crashed {CRASHES} times in a row, by signal {-code}"

    def command(self) -> list[str]:
        """Return what is run: it answers every line of its input with a line of JSON."""
        module = "ambar.bench.collection.worker"
        return [sys.executable, "-P", "-W", "ignore", "-m", module, json.dumps(self.task)]

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

    def _ask(self, process: subprocess.Popen[str]) -> str:
        """Return the line that the process answers with; empty if it ended instead."""
        if process.stdin is None or process.stdout is None:
            return ""
        alarm = threading.Timer(TURN_LIMIT, process.kill)
        alarm.start()
        try:
            process.stdin.write("\n")
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._said.close()

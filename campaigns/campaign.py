"""One run of a campaign: its time, its random numbers, its counts and its findings."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

MAX_FINDINGS = 20
"""The number of findings after which a run ends."""
_ENDING = 200


class MissingToolError(Exception):
    """A program that a campaign needs is not installed."""


@dataclass
class Run:
    """One run of a campaign."""

    name: str
    seed: int
    seconds: float
    folder: Path
    """An empty folder, removed after the run."""
    keep: Path | None = None
    """The folder to which files of findings are copied."""
    only: int | None = None
    """The only case to run, to repeat a finding."""
    counts: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    _reported: float = 0.0
    _known: set[str] = field(default_factory=set)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def begin(self) -> None:
        """Start the clock again after preparations, which do not count."""
        self.started = time.monotonic()

    @property
    def is_over(self) -> bool:
        """True when the time is used up, or there are too many findings."""
        return self.elapsed >= self.seconds or len(self.findings) >= MAX_FINDINGS

    def cases(self, most: int | None = None) -> Iterator[int]:
        """Yield the numbers of the cases, at least one, until the run is over."""
        if self.only is not None:
            yield self.only
            return
        case = 0
        while case == 0 or not self.is_over:
            if case == most:
                return
            yield case
            case += 1
            self._progress(case)

    def random(self, case: int) -> np.random.Generator:
        """Return the random numbers of a case."""
        return np.random.default_rng([self.seed, case])

    def count(self, what: str, number: int = 1) -> None:
        """Add `number` to the count `what` of the result line."""
        self.counts[what] = self.counts.get(what, 0) + number

    def finding(self, case: int, text: str, *files: Path, what: str | None = None) -> None:
        """Report a violated guarantee, and keep the files that show it.

        Only the first of several findings with the same `what` is reported. The default of `what`
        is the end of the text.
        """
        what = what or text[-_ENDING:]
        if what in self._known:
            return
        self._known.add(what)
        kept = "".join(f"\n  kept: {self._kept(case, file)}" for file in files) if self.keep else ""
        options = f"--seed {self.seed} --seconds {self.seconds:g} --case {case}"
        again = f"python -m campaigns {self.name} {options}"
        self.findings.append(text)
        show(f"{self.name}: finding in case {case}: {text}\n  repeat: {again}{kept}")

    def result(self) -> str:
        """Return the line with the counts of the run."""
        counts = [f"{number:,} {what}" for what, number in self.counts.items()]
        found = f"{len(self.findings):,} findings"
        return f"{self.name}: " + ", ".join(
            [f"seed {self.seed}", f"{self.elapsed:.0f} s", *counts, found]
        )

    def _kept(self, case: int, file: Path) -> Path:
        assert self.keep is not None
        target = self.keep / f"{self.name}-{self.seed}-{case}-{file.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(file, target, symlinks=True)
        elif file.exists():
            shutil.copyfile(file, target)
        return target

    def _progress(self, case: int) -> None:
        if self.elapsed - self._reported >= 30:
            self._reported = self.elapsed
            show(f"{self.name}: case {case:,}, {self.elapsed:.0f} s")


def show(line: str) -> None:
    """Print a line and flush."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def removed(path: Path) -> Path:
    """Remove a file or a folder, if there is one; return its path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    return path

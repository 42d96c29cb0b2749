"""The study of analysis: the time and memory of every task with every tool."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ambar
from ambar.formats.ramses.kind import files_of
from ambar.store.writer import Profile
from ambar_bench.analysis.tools import PEERS, TASKS, TOOLS
from ambar_bench.machine import machine
from ambar_bench.process import Worker, take_turns

_AGREE = 1e-6
"""Largest relative difference of results: cells at the edges of bins differ in their place."""
_LARGEST_LEVEL = 10
"""Finest level of maps."""


@dataclass
class Row:
    """A task with a tool."""

    task: str
    tool: str
    source: str
    """The input: "RAMSES", or the profile of a store."""
    threads: int
    first_seconds: float = math.nan
    """The first run in a fresh process, after imports."""
    warm: list[float] = field(default_factory=list)
    """Seconds of the other runs, each of which opens the output."""
    peak_bytes: int = 0
    """Peak of resident memory of the process and its children after the first run."""
    idle_bytes: int = 0
    """That of the imports alone."""
    result: list[float] = field(default_factory=list)
    note: str = ""
    """How the result differs from ambar's, or why there is none."""

    @property
    def name(self) -> str:
        """What to call it in tables."""
        if self.source != "RAMSES":
            return f"{self.tool} {self.source}"
        return "ambar on RAMSES" if self.tool == "ambar" else self.tool

    @property
    def seconds(self) -> float:
        """The median of the warm runs."""
        return statistics.median(self.warm) if self.warm else math.nan


@dataclass
class Study:
    """All rows, and what they were measured on."""

    path: str
    output_bytes: int
    cells: int
    machine: dict[str, str]
    rounds: int
    store_bytes: dict[str, int] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def faster(self, row: Row, peer: str) -> float:
        """Return how many times faster a row is than a peer; NaN without the peer's result."""
        for other in self.rows:
            if (other.task, other.tool, other.source) == (row.task, peer, "RAMSES"):
                return other.seconds / row.seconds
        return math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, with medians and speedups."""
        values = asdict(self)
        for row, entry in zip(self.rows, values["rows"], strict=True):
            speedups = {peer: self.faster(row, peer) for peer in PEERS}
            entry["name"] = row.name
            entry["first_seconds"] = _number(row.first_seconds)
            entry["median_seconds"] = _number(row.seconds)
            entry["times_faster"] = {peer: _number(value) for peer, value in speedups.items()}
        return values


def run_study(
    path: Path,
    scratch: Path,
    *,
    tasks: Sequence[str] = tuple(TASKS),
    profiles: Sequence[Profile] = ("balanced",),
    peers: Sequence[str] = PEERS,
    threads: int | None = None,
    rounds: int = 5,
    patience: float = 60,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure every task on the output at `path`; stores are written into `scratch`.

    Each row runs in a separate process. Rounds go through all rows of a task in turn.

    Raises
    ------
    NotFoundError
        If a task or a peer does not exist.
    UnsupportedError
        If the output does not have three dimensions.
    """
    for kind, names, known in (("task", tasks, tuple(TASKS)), ("peer", peers, PEERS)):
        if unknown := [name for name in names if name not in known]:
            raise ambar.NotFoundError(f"no {kind} {unknown[0]!r}; available: {', '.join(known)}")
    snapshot = ambar.open_snapshot(path)
    if snapshot.info.ndim != 3:
        raise ambar.UnsupportedError(
            f"{path}: expected an output of 3 dimensions, found {snapshot.info.ndim}"
        )
    threads = threads or len(os.sched_getaffinity(0))
    study = Study(
        path=str(path),
        output_bytes=sum(kind["bytes"] for kind in files_of(path).values()),
        cells=len(snapshot.amr),
        machine=machine(PEERS),
        rounds=rounds,
    )
    sources = {"RAMSES": path}
    for profile in profiles:
        report(f"writing a store, {profile}")
        sources[profile] = scratch / f"{path.name}.{profile}.ambar"
        ambar.convert(path, sources[profile], profile=profile, mode="w", fsync=False)
        study.store_bytes[profile] = sources[profile].stat().st_size
    settings = _settings(snapshot, threads)
    installed = [peer for peer in peers if TOOLS[peer].installed()]
    for task in tasks:
        rows = [Row(task, "ambar", source, threads) for source in reversed(sources)]
        rows += [
            Row(task, peer, "RAMSES", threads if peer == "pynbody" else 1)
            for peer in installed
            if task in TOOLS[peer].tasks
        ]
        if "yt" in installed:
            rows += [Row(task, "yt", profile, 1) for profile in profiles]
        _measure(rows, sources, settings, rounds, patience, report)
        study.rows += rows
    return study


def _settings(snapshot: ambar.Snapshot, threads: int) -> dict[str, Any]:
    """Return what all tools receive: units, sizes, and the ranges of phase diagrams."""
    info, amr = snapshot.info, snapshot.amr
    ranges = amr.statistics(["density", "pressure"], where="pressure > 0")
    return {
        "threads": threads,
        "units": [info.units.unit_l, info.units.unit_d, info.units.unit_t],
        "boxlen": info.boxlen,
        "level": min(amr.levels[1], _LARGEST_LEVEL),
        # Wider than the values, so that rounding of the outer edges excludes none.
        **{
            f"{name}_range": [found.min * 0.999, found.max * 1.001]
            for name, found in ranges.items()
        },
    }


def _measure(
    rows: list[Row],
    sources: dict[str, Path],
    settings: dict[str, Any],
    rounds: int,
    patience: float,
    report: Callable[[str], None],
) -> None:
    """Run a task with every tool in turn, and fill in the rows."""
    with ExitStack() as stack:
        workers = {}
        for row in rows:
            about = {"tool": row.tool, "task": row.task, "path": str(sources[row.source])}
            worker = Worker(settings | about, "ambar_bench.analysis.worker")
            workers[f"{row.task}, {row.name}"] = stack.enter_context(worker)
        take_turns(workers, rounds + 1, patience, report)
        for row, worker in zip(rows, workers.values(), strict=True):
            row.note = worker.failed
            for answer in worker.answers[:1]:
                row.first_seconds = answer["seconds"]
                row.peak_bytes, row.idle_bytes = answer["peak_bytes"], answer["idle_bytes"]
                row.result = answer["result"]
            row.warm = [answer["seconds"] for answer in worker.answers[1:]]
    for row in rows[1:]:
        if row.result and not row.note and not agrees(rows[0].result, row.result):
            row.note = "another result"


def agrees(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    """Return whether results are equal within 1e-6 of the largest number."""
    scale = max(map(abs, ours), default=0.0)
    return len(ours) == len(theirs) and all(
        abs(one - other) <= _AGREE * scale for one, other in zip(ours, theirs, strict=True)
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None

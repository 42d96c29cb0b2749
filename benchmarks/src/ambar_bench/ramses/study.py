"""The study of RAMSES: what each way of loading an output costs in time, memory and disk."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import ambar
from ambar.formats.ramses.kind import files_of
from ambar.store.writer import Profile
from ambar_bench.machine import machine
from ambar_bench.ramses.readers import CELL_COMPONENTS, PEERS, READERS, parts_of

PROFILES: tuple[Profile, ...] = ("fast", "balanced", "small")
FILES = {"hydro": "hydro", "gravity": "grav", "rt": "rt", "particles": "part"}
"""The kinds of RAMSES' files that contain components, beside amr."""
_AGREE = 1e-9
"""Largest difference of sums: the order of addition alone makes about 1e-13."""


@dataclass
class Row:
    """One way of loading one component, and what it cost."""

    component: str
    reader: str
    source: str
    """What is read: "RAMSES", or a store's profile."""
    threads: int
    """Threads, or processes of pynbody; yt and osyris have one."""
    path: str
    disk_bytes: int
    """Size of what is read: RAMSES' files of the component, or the store's arrays."""
    first_seconds: float = 0.0
    """The first load in a fresh process, its import included."""
    import_seconds: float = 0.0
    warm: list[float] = field(default_factory=list)
    """Seconds of the loads after it."""
    peak_bytes: int = 0
    """Peak of resident memory of the process and its children after the first load."""
    column_bytes: int = 0
    note: str = ""
    """How its columns differ from ambar's, if they do; such a row is not compared with."""

    @property
    def name(self) -> str:
        """What to call it in tables."""
        what = self.reader
        if what == "ambar":
            what += " on RAMSES" if self.source == "RAMSES" else f" {self.source}"
        one, many = ("process", "processes") if self.reader == "pynbody" else ("thread", "threads")
        return f"{what}, {self.threads} {one if self.threads == 1 else many}"

    @property
    def seconds(self) -> float:
        """The median of the warm loads."""
        return statistics.median(self.warm)


@dataclass
class Study:
    """All rows, and what they were measured on."""

    path: str
    output_bytes: int
    domains: int
    files: int
    component_bytes: dict[str, int]
    machine: dict[str, str]
    rounds: int
    cold: str
    """How the page cache was emptied before first loads; empty where it was not."""
    rows: list[Row] = field(default_factory=list)
    store_bytes: dict[str, int] = field(default_factory=dict)

    def fastest_peer(self, component: str) -> Row | None:
        """Return the fastest of yt, osyris and pynbody that loads the same values."""
        peers = [r for r in self.rows if r.component == component and r.reader in PEERS]
        return min((r for r in peers if not r.note), key=lambda row: row.seconds, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, with each row's medians and speedups."""
        values = asdict(self)
        for row, entry in zip(self.rows, values["rows"], strict=True):
            peer = self.fastest_peer(row.component)
            entry["name"] = row.name
            entry["median_seconds"] = row.seconds
            entry["megabytes_per_second"] = self.component_bytes[row.component] / row.seconds / 1e6
            entry["times_faster"] = peer.seconds / row.seconds if peer else None
        return values


class Worker:
    """The process that measures a row; its first load begins when it does."""

    def __init__(self, row: Row, parts: list[str]) -> None:
        self.row = row
        self._parts = parts
        self._process: subprocess.Popen[str] | None = None

    def first(self) -> dict[str, Any]:
        """Start the process and return what it says of the first load."""
        row = self.row
        parts = self._parts
        task = {"reader": row.reader, "path": row.path, "parts": parts, "threads": row.threads}
        script = str(Path(__file__).with_name("worker.py"))
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [sys.executable, "-P", "-W", "ignore", script, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self._answer(self._process)

    def again(self) -> float:
        """Load once more and return the seconds it took."""
        process = self._process
        if process is None or process.stdin is None:
            raise ambar.InvalidError("expected the first load before others")
        process.stdin.write("load\n")
        process.stdin.flush()
        return float(self._answer(process)["seconds"])

    def _answer(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            _, said = process.communicate()
            reason = said.strip().splitlines() or ["it ended without a word"]
            raise ambar.AmbarError(f"{self.row.name}: {reason[-1]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.communicate()


def run_study(
    path: Path,
    scratch: Path,
    *,
    components: Sequence[str] = ("hydro", "gravity", "particles", "all"),
    profiles: Sequence[Profile] = PROFILES,
    peers: Sequence[str] = PEERS,
    threads: int | None = None,
    rounds: int = 9,
    cold: bool = False,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure every way of loading the output at `path`; stores are written into `scratch`.

    Each row runs in a separate process. Rounds go through all rows of a component in turn, each
    round starting with another one, so that whatever else the machine does hits all alike.
    `report` is called with the description of each step.

    Raises
    ------
    NotFoundError
        If the output lacks one of `components`, before anything is measured.
    """
    output = ambar.open_snapshot(path)
    there = [name for name in FILES if name in output.components]
    _require(output, path, components, there)
    kinds = files_of(path)
    threads = threads or len(os.sched_getaffinity(0))
    study = Study(
        path=str(path),
        output_bytes=sum(kind["bytes"] for kind in kinds.values()),
        domains=_domains(output),
        files=sum(kind["files"] for kind in kinds.values()),
        component_bytes={c: _ramses_bytes(kinds, parts_of(c, there)) for c in components},
        machine=machine(PEERS),
        rounds=rounds,
        cold="",
    )
    stores = {}
    for profile in profiles:
        report(f"writing a store, {profile}")
        stores[profile] = scratch / f"{path.name}.{profile}.ambar"
        ambar.convert(path, stores[profile], profile=profile, mode="w", fsync=False)
        study.store_bytes[profile] = stores[profile].stat().st_size
    peers = [peer for peer in peers if READERS[peer].installed()]
    for component in components:
        parts = parts_of(component, there)
        rows = list(_rows(component, parts, path, stores, peers, threads, study))
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker(row, parts)) for row in rows]
            study.rows += _measure(workers, study, cold=cold, report=report)
    return study


def _domains(output: ambar.Snapshot) -> int:
    return output.info.ncpu if isinstance(output.info, ambar.RamsesInfo) else 0


def _require(
    output: ambar.Snapshot, path: Path, components: Sequence[str], there: list[str]
) -> None:
    for component in components:
        if component not in (*FILES, "all"):
            raise ambar.NotFoundError(
                f"no component {component!r}; available: {', '.join(FILES)}, all"
            )
        if component != "all" and component not in there:
            why = output.missing.get(component, "its files are not there")
            raise ambar.NotFoundError(
                f"{path}: no {component}: {why}; choose among --components {','.join(there)},all"
            )


def _ramses_bytes(kinds: dict[str, dict[str, int]], parts: list[str]) -> int:
    needed = {FILES[part] for part in parts}
    if any(part in CELL_COMPONENTS for part in parts):
        needed.add("amr")
    return sum(kinds[kind]["bytes"] for kind in needed if kind in kinds)


def _rows(
    component: str,
    parts: list[str],
    path: Path,
    stores: Mapping[Profile, Path],
    peers: Sequence[str],
    threads: int,
    study: Study,
) -> Iterator[Row]:
    counts = sorted({1, threads})
    size = study.component_bytes[component]
    for peer in peers:
        processes = threads if peer == "pynbody" else 1
        yield Row(component, peer, "RAMSES", processes, str(path), size)
    for count in counts:
        yield Row(component, "ambar", "RAMSES", count, str(path), size)
    for profile, store in stores.items():
        stored = _stored_bytes(store, parts) if component != "all" else store.stat().st_size
        for count in counts:
            yield Row(component, "ambar", profile, count, str(store), stored)


def _stored_bytes(path: Path, parts: list[str]) -> int:
    store = ambar.open_store(path)
    components = store.attrs["ambar"]["components"]
    names = [
        f"amr/{name}" for part in parts if part in CELL_COMPONENTS for name in components[part]
    ]
    names += ["amr/level"] if names else []
    if "particles" in parts:
        names += [f"particles/{name}" for name in components["particles"]]
    return sum(store[name].stored_bytes for name in names)


def _measure(
    workers: list[Worker], study: Study, *, cold: bool, report: Callable[[str], None]
) -> list[Row]:
    """Return the rows that could be measured, filled in; one that fails is reported."""
    prints: dict[str, dict[str, list[float]]] = {}
    running = []
    for worker in workers:
        row = worker.row
        report(f"{row.component}: first load, {row.name}")
        if cold:
            study.cold = drop_cache(Path(row.path))
        try:
            answer = worker.first()
        except ambar.AmbarError as error:
            report(f"left out: {error}")
            continue
        row.first_seconds = answer["seconds"]
        row.import_seconds = answer["import_seconds"]
        row.peak_bytes = answer["peak_bytes"]
        row.column_bytes = answer["column_bytes"]
        prints[row.name] = answer["columns"]
        running.append(worker)
    for number in range(study.rounds):
        report(f"{workers[0].row.component}: round {number + 1} of {study.rounds}")
        turn = number % len(running)
        for worker in running[turn:] + running[:turn]:
            worker.row.warm.append(worker.again())
    ours = next(prints[worker.row.name] for worker in running if worker.row.reader == "ambar")
    for worker in running:
        worker.row.note = differences(ours, prints[worker.row.name])
    return [worker.row for worker in running]


def differences(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> str:
    """Return which columns another program lacks or has other values in; empty if none."""
    lacking = [name for name in ours if name not in theirs]
    other = [
        name
        for name in ours
        if name in theirs
        and any(abs(a - b) > _AGREE for a, b in zip(ours[name], theirs[name], strict=True))
    ]
    parts = [f"lacks {', '.join(lacking)}"] if lacking else []
    parts += [f"other values in {', '.join(other)}"] if other else []
    return "; ".join(parts)


def drop_cache(path: Path) -> str:
    """Empty the page cache, of everything where that is permitted, else of the files at `path`.

    Returns how it was done.
    """
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
    except OSError:
        for file in [path] if path.is_file() else path.rglob("*"):
            if file.is_file():
                with _opened(file) as descriptor:
                    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return "posix_fadvise on every file"
    return "drop_caches"


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)

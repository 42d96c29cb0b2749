"""The study of collections: what each way of keeping many datasets costs to write and to read."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ambar
from ambar_bench.collection.cases import find_case
from ambar_bench.collection.layouts import Reader, lacking
from ambar_bench.collection.rows import READERS
from ambar_bench.collection.turns import Plan, take_turns
from ambar_bench.collection.worker import expected
from ambar_bench.files import size_and_files
from ambar_bench.machine import machine
from ambar_bench.process import Worker

DATASETS = (100, 500, 1000)
PACKAGES = (
    "xarray",
    "dask",
    "zarr",
    "netCDF4",
    "h5py",
    "hdf5plugin",
    "tensorstore",
    "atlas-python",
)
TOGETHER_BYTES = 2 << 30
"""Raw bytes up to which all layouts are on disk together; larger ones are measured one by one."""


@dataclass
class Row:
    """One way of reading one layout, and what it cost."""

    key: str
    name: str
    layout: str
    ours: bool
    datasets: int
    bytes: int
    """Of all the layout's files."""
    files: int
    write: list[float]
    """Seconds of each writing of the layout."""
    first: float
    """Seconds of the first reading in its process, opening included."""
    read: list[float]
    """Seconds of the readings after it; none where the first took too long to go on."""
    crashes: int = 0

    @property
    def write_seconds(self) -> float:
        """The median."""
        return statistics.median(self.write)

    @property
    def read_seconds(self) -> float:
        """The median of the readings after the first, or the first where there are none."""
        return statistics.median(self.read or [self.first])


@dataclass
class Study:
    """All rows, and what they were measured on."""

    case: str
    variables: list[str]
    shape: dict[str, int]
    dataset_bytes: int
    window: dict[str, tuple[int, int]]
    """Where the slice begins and ends in each dimension."""
    datasets: list[int]
    rounds: int
    patience: float
    threads: int
    machine: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Rows that were not measured, and why."""

    def at(self, datasets: int) -> list[Row]:
        """Return the rows of a number of datasets."""
        return [row for row in self.rows if row.datasets == datasets]

    def fastest_peer(self, datasets: int) -> Row | None:
        """Return the row of the peers that reads in the shortest time."""
        peers = [row for row in self.at(datasets) if not row.ours]
        return min(peers, key=lambda row: row.read_seconds, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, with each row's medians."""
        values = asdict(self)
        for row, entry in zip(self.rows, values["rows"], strict=True):
            peer = self.fastest_peer(row.datasets)
            entry["write_seconds"] = row.write_seconds
            entry["read_seconds"] = row.read_seconds
            entry["times_faster"] = peer.read_seconds / row.read_seconds if peer else None
        return values


def run_study(
    case: str,
    scratch: Path,
    *,
    datasets: Sequence[int] = DATASETS,
    n_vars: int | None = None,
    fraction: float = 0.25,
    offset: int = 0,
    keys: Sequence[str] | None = None,
    threads: int | None = None,
    rounds: int = 5,
    patience: float = 60,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Write the datasets of a case in every layout, into `scratch`, and read a slice of all.

    Rounds go through all rows in turn, each round starting with another one, so that whatever else
    the machine does hits all alike. A row that has taken `patience` seconds gets no more turns.
    What every row reads is compared with what was generated, by digests.

    Raises
    ------
    KeyError
        If the case or a row of `keys` (all by default) does not exist.
    ValueError
        If there are no datasets or variables to write, or no slice to read.
    """
    chosen = find_case(case).with_variables(n_vars)
    _require(datasets, fraction, offset)
    threads = threads or len(os.sched_getaffinity(0))
    study = Study(
        case=case,
        variables=chosen.names,
        shape={dimension.name: dimension.size for dimension in chosen.dimensions},
        dataset_bytes=chosen.dataset_bytes,
        window={k: (s.start, s.stop) for k, s in chosen.window(fraction, offset).items()},
        datasets=sorted(set(datasets)),
        rounds=rounds,
        patience=patience,
        threads=threads,
        machine=machine(PACKAGES),
    )
    readers = _installed(study, keys)
    for count in study.datasets:
        report(f"{count} datasets: what they hold")
        truth = expected(chosen, count, fraction, offset)
        plan = Plan(chosen, n_vars, count, threads, rounds, patience, scratch, report)
        found: dict[str, Row] = {}
        for group in _groups(readers, count * chosen.dataset_bytes):
            found |= _measure(plan, group, {"fraction": fraction, "offset": offset}, truth, study)
        study.rows += [found[reader.key] for reader in readers if reader.key in found]
    return study


def _require(datasets: Sequence[int], fraction: float, offset: int) -> None:
    if not datasets or min(datasets) < 1:
        raise ambar.InvalidError(f"expected 1 or more datasets, found {list(datasets)}")
    if not 0 < fraction <= 1:
        raise ambar.InvalidError(f"expected a fraction with 0 < F <= 1, found {fraction:g}")
    if offset < 0:
        raise ambar.InvalidError(f"expected an offset of 0 or more, found {offset}")


def _installed(study: Study, keys: Sequence[str] | None) -> list[type[Reader]]:
    """Return the requested readers whose libraries are installed; record the others."""
    for key in keys or ():
        if key not in READERS:
            raise ambar.NotFoundError(f"no row {key!r}; available: {', '.join(READERS)}")
    found = []
    for reader in READERS.values():
        if keys is not None and reader.key not in keys:
            continue
        if missing := lacking(reader.layout):
            study.left_out[reader.name] = f"{', '.join(missing)} not installed"
        else:
            found.append(reader)
    return found


def _groups(readers: Sequence[type[Reader]], raw_bytes: int) -> Iterator[list[type[Reader]]]:
    """Yield what is measured in turn: all, or the readers of one layout where it is large."""
    if raw_bytes <= TOGETHER_BYTES:
        yield list(readers)
        return
    for layout in dict.fromkeys(reader.layout for reader in readers):
        yield [reader for reader in readers if reader.layout is layout]


def _measure(
    plan: Plan,
    readers: list[type[Reader]],
    window: dict[str, float],
    truth: dict[str, str],
    study: Study,
) -> dict[str, Row]:
    """Write the readers' layouts, read them, delete them; return the rows that were measured."""
    layouts = list(dict.fromkeys(reader.layout for reader in readers))
    with ExitStack() as stack:
        for layout in layouts:
            stack.callback(shutil.rmtree, plan.scratch / layout.key, ignore_errors=True)
        writers = {layout.key: plan.worker("write", layout.key, layout.key) for layout in layouts}
        with ExitStack() as writing:
            for worker in writers.values():
                writing.enter_context(worker)
            take_turns(plan, {f"write {key}": worker for key, worker in writers.items()})
        for reader in readers:
            if why := writers[reader.layout.key].failed:
                study.left_out[reader.name] = f"writing it failed: {why}"
        written = [reader for reader in readers if reader.name not in study.left_out]
        workers = {
            reader.key: stack.enter_context(
                plan.worker("read", reader.key, reader.layout.key, **window)
            )
            for reader in written
        }
        take_turns(plan, {f"read {key}": worker for key, worker in workers.items()})
        found = {}
        for reader in written:
            worker = workers[reader.key]
            if why := worker.failed or differences(truth, worker.answers[0]["digests"]):
                study.left_out[reader.name] = why
            else:
                writer = writers[reader.layout.key]
                found[reader.key] = _row(plan, reader, writer, worker)
        return found


def differences(truth: dict[str, str], found: dict[str, str]) -> str:
    """Return which variables a row has read other values of; empty if none."""
    other = [name for name in truth if found[name] != truth[name]]
    return f"it reads other values of {', '.join(other)}" if other else ""


def _row(plan: Plan, reader: type[Reader], writer: Worker, worker: Worker) -> Row:
    stored, files = size_and_files(plan.scratch / reader.layout.key)
    return Row(
        key=reader.key,
        name=reader.name,
        layout=reader.layout.key,
        ours=reader.layout.ours,
        datasets=plan.datasets,
        bytes=stored,
        files=files,
        write=writer.seconds,
        first=worker.seconds[0],
        read=worker.seconds[1:],
        crashes=worker.crashes + writer.crashes,
    )

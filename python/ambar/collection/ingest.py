"""From files of NetCDF and Zarr stores to a collection: read in processes, added in this one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ambar import _core
from ambar.bounds import ErrorBound
from ambar.collection.collection import Collection
from ambar.collection.opening import open_collection
from ambar.collection.records import Record
from ambar.collection.sources import Paths, check_readable, find_sources, named, size_of
from ambar.converted import Conversion, Progress, shown
from ambar.store import Store
from ambar.workers import Failure, Workers, explained, processes_for
from ambar.writer import Durability, Profile

COMMIT_DATASETS = 1000
COMMIT_BYTES = 256 << 20
COMMIT_SECONDS = 30.0
"""How much is read at most, and for how long, until it is committed: what a kill may cost."""

OnMismatch = Literal["family", "cast", "raise"]


@dataclass(frozen=True)
class Ingest(Conversion):
    """What became of files that were to become a collection."""

    failed: dict[str, str] = field(default_factory=dict)
    """The files that could not be taken in, and why."""


def ingest(
    paths: Paths,
    target: str | os.PathLike[str],
    *,
    variables: Iterable[str] | None = None,
    ragged: Iterable[str] | None = None,
    error_bound: ErrorBound | None = None,
    on_mismatch: OnMismatch | None = None,
    engine: str | None = None,
    processes: int | None = None,
    profile: Profile = "balanced",
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    durability: Durability = "full",
) -> Ingest:
    """Make a collection of NetCDF files and Zarr stores, each of which becomes a dataset.

    What cannot be read, or held by a collection, is told in the report; all else is taken in. What
    is in is committed every 1000 files, 256 MiB or 30 seconds: where this was interrupted, it goes
    on with `resume`.

    Parameters
    ----------
    paths
        Files, folders (with all below them), globs, or several of these.
    target
        The store to write.
    variables
        Data variables to keep, of those that a file has; with their coordinates; by
        default all.
    ragged, on_mismatch
        As for `Collection.create`.
    error_bound
        How far values may be off: a dict by variable, of numbers in the variable's own unit.
    engine
        xarray's engine for all files; by default each file's own.
    processes
        Processes to read in; by default one a core.
    profile, threads, durability
        As for `ambar.create`.
    progress
        A function called with the number of files done and of all, or True for a bar on the
        terminal.
    overwrite
        Replace a store of that name; by default that is an error.
    resume
        Add to the collection at `target`, if there is one, the files that it lacks by their names.

    Returns
    -------
    Ingest
        What was taken in (`converted`), was there already (`skipped`), and failed. Where nothing
        could be taken in, no store is made.

    Raises
    ------
    FileNotFoundError
        If there is nothing at a path.
    NotFoundError
        If there are no such files in a folder.
    InvalidError
        If an option makes no sense, or is not as the collection that is gone on with has it.
    BusyError
        If there is a store at `target`, without `overwrite` or `resume`, or a writer is at it.
    ModuleNotFoundError
        If the library that reads such files is missing.
    """
    begun = time.monotonic()
    sources = named(find_sources(paths))
    check_readable(sources.values(), engine)
    settings = {
        "ragged": None if ragged is None else list(ragged),
        "encoding": _encoding(error_bound),
        "on_mismatch": on_mismatch,
    }
    options = {"durability": durability, "profile": profile, "threads": threads}
    keep = None if variables is None else list(variables)
    with _opened(target, settings, options, overwrite, resume) as fleet:
        run = _Run(fleet, sources)
        with (
            shown(progress, f"taking in {len(run.wanted):,} files") as report,
            Workers(processes_for(len(run.wanted), processes)) as workers,
        ):
            run.take_in(workers, keep, engine, report)
        if not run.taken:
            # Nothing is committed, so that no empty store is left, and none grows for nothing.
            fleet.close()
    stored = Store(_core.Store(os.fspath(target))).usage()["total"] if Path(target).exists() else 0
    seconds = time.monotonic() - begun
    return Ingest(
        os.fspath(target),
        run.bytes,
        stored,
        seconds,
        run.taken,
        run.skipped,
        failed=run.failed,
    )


class _Run:
    """One go at the files that a collection lacks."""

    def __init__(self, fleet: Collection, sources: Mapping[str, Path]) -> None:
        _check_names(fleet, sources)
        self._fleet = fleet
        self.skipped = [name for name in sources if name in fleet]
        self.wanted = {name: path for name, path in sources.items() if name not in fleet}
        self.taken: list[str] = []
        self.failed: dict[str, str] = {}
        self.bytes = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self._last = time.monotonic()

    def take_in(
        self,
        workers: Workers,
        variables: Sequence[str] | None,
        engine: str | None,
        report: Progress | None,
    ) -> None:
        """Read the files in processes, and add what they hold."""
        from ambar.collection.source_reading import read_source

        sizes: dict[Path, int] = {}

        def weigh(task: tuple[Any, ...]) -> int:
            path = task[1]
            try:
                sizes[path] = size_of(path)
            except OSError:
                sizes[path] = 0  # reading it says what is wrong
            return sizes[path]

        tasks = ((name, path, variables, engine) for name, path in self.wanted.items())
        for done, (task, record) in enumerate(workers.map(read_source, tasks, weigh), 1):
            self._take(task[0], task[1], record, sizes.pop(task[1]))
            if report is not None:
                report(done, len(self.wanted))

    def _take(self, name: str, path: Path, record: Record | Failure, size: int) -> None:
        if isinstance(record, Failure):
            self.failed[str(path)] = record.why
            return
        try:
            self._fleet.add(name, record)
        except (_core.InvalidError, _core.UnsupportedError) as error:
            self._fleet.check()
            self.failed[str(path)] = explained(error)
            return
        self.taken.append(name)
        self.bytes += size
        self._waiting += 1
        self._waiting_bytes += record.nbytes
        if (
            self._waiting >= COMMIT_DATASETS
            or self._waiting_bytes >= COMMIT_BYTES
            or time.monotonic() - self._last >= COMMIT_SECONDS
        ):
            self._fleet.commit()
            self._waiting = self._waiting_bytes = 0
            self._last = time.monotonic()


def _opened(
    target: str | os.PathLike[str],
    settings: Mapping[str, Any],
    options: Mapping[str, Any],
    overwrite: bool,
    resume: bool,
) -> Collection:
    given = {key: value for key, value in settings.items() if value is not None}
    if not (resume and Path(target).exists()):
        return Collection.create(target, overwrite=overwrite and not resume, **given, **options)
    fleet = open_collection(target, "a", **options)
    for key, value in given.items():
        if value != fleet.settings[key]:
            fleet.close()
            raise _core.InvalidError(
                f"{os.fspath(target)} was begun with {key}={fleet.settings[key]!r}; it cannot be "
                f"gone on with {value!r}"
            )
    return fleet


def _check_names(fleet: Collection, sources: Mapping[str, Path]) -> None:
    """Raise InvalidError where a dataset may be a file that has another name by now."""
    for name, path in sources.items():
        stem = path.stem
        if name != stem and stem in fleet and stem not in sources:
            raise _core.InvalidError(
                f"{fleet.path} has a dataset {stem!r}, but of {path} and another file of that name "
                "it is not known which that was: take in folders one by one, or rename the file"
            )


def _encoding(bounds: ErrorBound | None) -> dict[str, dict[str, float]] | None:
    if bounds is None:
        return None
    encoding = {}
    for name, bound in bounds.items() if isinstance(bounds, Mapping) else [("", bounds)]:
        try:
            encoding[str(name)] = {"error_bound": float(bound)}
        except ValueError:
            encoding.clear()
        if not encoding or not name:
            raise _core.InvalidError(
                f"error bounds of collections are absolute and by variable, such as "
                f"{{'temperature': 0.01}}, not {bounds!r}"
            )
    return encoding

"""From files of NetCDF and Zarr stores to a collection: read in processes, added in this one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ambar import _core
from ambar._util.modes import WriteMode, check_mode
from ambar._util.text import size
from ambar.collection.collection import Collection
from ambar.collection.files.sources import (
    Paths,
    Reading,
    check_readable,
    find_sources,
    named,
    size_of,
)
from ambar.collection.openers import open_collection
from ambar.collection.storage.records import Record
from ambar.kinds.request import Conversion, OnError, Progress, shown
from ambar.parallel.workers import Failure, Workers, processes_for
from ambar.store.error_bounds import ErrorBound, as_text, resolved
from ambar.store.store import Store
from ambar.store.writer import Profile

COMMIT_DATASETS = 1000
COMMIT_BYTES = 256 << 20
COMMIT_SECONDS = 30.0
"""How much is read at most, and for how long, until it is committed: what a kill may cost."""

OnMismatch = Literal["family", "cast", "raise"]


@dataclass(frozen=True)
class Ingest(Conversion):
    """What became of files that were to become a collection; `failed` is by their paths."""

    def __str__(self) -> str:
        """Return the numbers of datasets, the sizes and the time."""
        text = f"{self.target}: {len(self.converted):,} datasets taken in"
        if self.skipped:
            text += f", {len(self.skipped):,} were there already"
        if self.converted:
            text += f"; {size(self.source_bytes)} read, the store has {size(self.stored_bytes)}"
        return f"{text}, in {self.seconds:.2f} s"


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
    mode: WriteMode = "w-",
    fsync: bool = True,
    profile: Profile = "balanced",
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
    on_error: OnError = "stop",
    decode_times: bool = True,
) -> Ingest:
    """Make a collection of NetCDF files and Zarr stores, each of which becomes a dataset.

    Datasets are committed every 1000 files, 256 MiB or 30 seconds, and at the end. After an
    interruption continue with ``mode="a"``.

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
        As for `ambar.open_collection`.
    error_bound
        How far values may differ from the originals: a dict by variable. Bounds must not depend on
        the value range: ``0.01`` (in the variable's own unit), ``"1e-3 relative"``, ``"12 bits"``.
    engine
        xarray's engine for all files; by default each file's own.
    processes
        Processes to read in; by default one a core.
    mode
        "w-" creates a new collection. "w" replaces the store at `target` at the first commit. "a"
        adds the files that the collection at `target` lacks by their names, or creates it.
    fsync, profile, threads
        As for `ambar.open_collection`.
    progress
        A function called with the number of files done and of all, or True for a bar on the
        terminal.
    on_error
        What happens if a file cannot be read, or not be held by a collection. "stop" raises its
        error; nothing more is committed, so that a new store appears only if it was committed to
        before. "skip" takes in the others and lists the failed ones in `Ingest.failed`; it raises
        the first error if all files failed, and then no store is made or replaced.
    decode_times
        Whether numbers with units such as "days since 2000-01-01" become times, as in
        `xarray.open_dataset`. Without it they stay numbers, with their units as attributes.

    Returns
    -------
    Ingest
        What was taken in (`converted`), was there already (`skipped`), and failed (`failed`).

    Raises
    ------
    FileNotFoundError
        If a path does not exist.
    FileNotFoundError
        If a folder contains no such files.
    ValueError
        If an option is invalid, or differs from that of the existing collection; if no file has
        a dimension of `ragged`.
    CorruptError, UnsupportedError, ValueError, KeyError, OSError
        If a file cannot be taken in (see `on_error`); the message names it.
    FileExistsError
        If `target` exists, with mode "w-".
    BusyError
        If another writer has `target` open.
    ModuleNotFoundError
        If the library that reads such files is missing.
    """
    begun = time.monotonic()
    if on_error not in ("stop", "skip"):
        raise _core.InvalidError(f"on_error={on_error!r} is invalid; must be 'stop' or 'skip'")
    check_mode(mode)
    sources = named(find_sources(paths))
    check_readable(sources.values(), engine)
    reading = Reading(None if variables is None else list(variables), engine, decode_times)
    with open_collection(
        target,
        mode,
        ragged=ragged,
        encoding=_encoding(error_bound),
        on_mismatch=on_mismatch,
        fsync=fsync,
        profile=profile,
        threads=threads,
    ) as fleet:
        run = _Run(fleet, sources, on_error)
        with (
            shown(progress, f"taking in {len(run.wanted):,} files") as report,
            Workers(processes_for(len(run.wanted), processes)) as workers,
        ):
            run.take_in(workers, reading, report)
        run.check()
        if not run.taken:
            # Nothing is committed, so that no empty store is left, and none grows for nothing.
            fleet.close()
    stored = Store._open(target).usage()["total"] if Path(target).exists() else 0
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

    def __init__(self, fleet: Collection, sources: Mapping[str, Path], on_error: OnError) -> None:
        _check_names(fleet, sources)
        self._fleet = fleet
        self._on_error = on_error
        self._count = len(sources)
        self.skipped = [name for name in sources if name in fleet]
        self.wanted = {name: path for name, path in sources.items() if name not in fleet}
        self.taken: list[str] = []
        self.failed: dict[str, str] = {}
        self.bytes = 0
        self._first_error: Exception | None = None
        self._committed = 0
        self._waiting_bytes = 0
        self._last = time.monotonic()

    def take_in(self, workers: Workers, reading: Reading, report: Progress | None) -> None:
        """Read the files in processes, and add what they hold."""
        from ambar.collection.files.source_reader import read_source

        sizes: dict[Path, int] = {}

        def weigh(task: tuple[Any, ...]) -> int:
            path = task[1]
            try:
                sizes[path] = size_of(path)
            except OSError:
                sizes[path] = 0  # reading it says what is wrong
            return sizes[path]

        tasks = ((name, path, reading) for name, path in self.wanted.items())
        for done, (task, record) in enumerate(workers.map(read_source, tasks, weigh), 1):
            self._take(task[0], task[1], record, sizes.pop(task[1]))
            if report is not None:
                report(done, len(self.wanted))

    def check(self) -> None:
        """Raise the first error if all files failed, ValueError for a dimension of no file."""
        if self._first_error is not None and len(self.failed) == self._count:
            raise self._first_error
        families = self._fleet._families
        known = {dim for f in families for column in f.columns.values() for dim in column.dims}
        for dim in self._fleet.settings["ragged"] if self.taken else ():
            if dim not in known:
                raise _core.InvalidError(
                    f"ragged: no file has a dimension {dim!r}; available: "
                    f"{', '.join(sorted(known))}{self._kept()}"
                )

    def _take(self, name: str, path: Path, record: Record | Failure, size: int) -> None:
        if isinstance(record, Failure):
            self._fail(path, record)
            return
        try:
            self._fleet.add(name, record)
        except (_core.InvalidError, _core.UnsupportedError) as error:
            self._fleet._check()
            self._fail(path, Failure.of(error))
            return
        self.taken.append(name)
        self.bytes += size
        self._waiting_bytes += record.nbytes
        if (
            len(self.taken) - self._committed >= COMMIT_DATASETS
            or self._waiting_bytes >= COMMIT_BYTES
            or time.monotonic() - self._last >= COMMIT_SECONDS
        ):
            self._fleet.commit()
            self._committed, self._waiting_bytes = len(self.taken), 0
            self._last = time.monotonic()

    def _fail(self, path: Path, failure: Failure) -> None:
        """Raise the error of a file, or note it and go on."""
        if self._on_error == "stop":
            advice = "; take in the other files with on_error='skip' (--on-error skip)"
            raise failure.raised_for(str(path), advice * (self._count > 1) + self._kept())
        self.failed[str(path)] = failure.why
        if self._first_error is None:
            more = f"; none of the {self._count} files can be read" if self._count > 1 else ""
            self._first_error = failure.raised_for(str(path), more)

    def _kept(self) -> str:
        """Return what an error says of datasets that are committed."""
        if not self._committed:
            return ""
        return (
            f"; {self._committed} datasets are committed to {self._fleet.location}: continue with "
            "mode='a' (--resume)"
        )


def _check_names(fleet: Collection, sources: Mapping[str, Path]) -> None:
    """Raise ValueError where a dataset may be a file that has another name by now."""
    for name, path in sources.items():
        stem = path.stem
        if name != stem and stem in fleet and stem not in sources:
            raise _core.InvalidError(
                f"{fleet.location} has a dataset {stem!r}, which may be {path} or another file of "
                "this name; ingest one folder at a time, or rename the file"
            )


def _encoding(bounds: ErrorBound | None) -> dict[str, dict[str, float | str]] | None:
    if bounds is None:
        return None
    if not isinstance(bounds, Mapping):
        raise _core.InvalidError(
            f"error bounds of collections are by variable, such as {{'temperature': 0.01}}, "
            f"not {bounds!r}"
        )
    return {str(name): {"error_bound": _bound(name, bound)} for name, bound in bounds.items()}


def _bound(name: str, bound: float | str) -> float | str:
    if _core.bound_needs_range(as_text(bound)):
        raise _core.InvalidError(
            f"the error bound of {name!r}, {bound!r}, depends on the value range of all datasets, "
            "which is unknown while they are added; give an absolute or relative bound"
        )
    return resolved(bound)

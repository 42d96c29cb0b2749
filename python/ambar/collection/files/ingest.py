"""Ingests NetCDF files and Zarr stores: processes read them, this process adds them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ambar import _core
from ambar._util.arguments import WriteMode, check_mode, names_of
from ambar._util.progress import Progress, part_of_progress, progress_function
from ambar._util.text import plural, size, suggestion
from ambar.collection.cluster import JOIN_LIMIT_BYTES
from ambar.collection.collection import Collection
from ambar.collection.copies import copy_datasets
from ambar.collection.files.deferred_values import DeferredReader, DeferredReadError
from ambar.collection.files.sources import (
    Paths,
    Reading,
    check_readable,
    find_sources,
    name_sources,
    size_of,
)
from ambar.collection.openers import open_collection
from ambar.collection.storage.records import Record
from ambar.collection.storage.settings import encoding_of
from ambar.kinds.request import Conversion, OnError
from ambar.parallel.cluster import Scheduler, batches, connected, new_name, scratch_in
from ambar.parallel.cluster import run as run_tasks
from ambar.parallel.workers import Failure, Workers, processes_for
from ambar.store.error_bounds import ErrorBound
from ambar.store.locations import store_at
from ambar.store.urls import folder_of, refuse_empty
from ambar.store.writer import Profile

COMMIT_DATASETS = 1000
COMMIT_BYTES = 256 << 20
COMMIT_SECONDS = 30.0
"""Datasets, bytes and seconds between commits: the most that a killed process loses."""

_SMALL_FILES, _SMALL_BYTES = 64, 32 << 20
"""Files, and their bytes, that one process reads before a second one has started."""

_EXPANSION = 4
"""Estimated bytes of values for each byte of a file."""

OnMismatch = Literal["family", "cast", "raise"]


@dataclass(frozen=True)
class Ingest(Conversion):
    """The report of `ambar.ingest`; `failed` has the errors by the paths of the files.

    Examples
    --------
    >>> done = ambar.ingest("profiles", "casts.ambar")
    >>> done.converted, done.failed
    (['station_0040', 'station_0041', 'station_0042', 'station_0043'], {})
    """

    hint: str = ""
    """How to store the files as one dataset, if they may be times of one grid; otherwise ""."""

    def __str__(self) -> str:
        """Return the numbers of datasets, the sizes and the time."""
        text = f"{self.target}: {plural(len(self.converted), 'dataset')} added"
        if self.skipped:
            text += f", {len(self.skipped):,} already there"
        if self.converted:
            text += f"; {size(self.source_bytes)} read, the store has {size(self.stored_bytes)}"
        lines = (f"left out: {name}, {why}" for name, why in self.left_out.items())
        hint = [self.hint] if self.hint else []
        return "\n".join([f"{text}, in {self.seconds:.2f} s", *lines, *hint])


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
    progress: Progress | bool | None = None,
    on_error: OnError = "stop",
    decode_times: bool = True,
    scheduler: Scheduler | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Ingest:
    """Ingest NetCDF files and Zarr stores into a collection: each becomes a dataset.

    The datasets are committed every 1000 files, 256 MiB or 30 seconds, and at the end. Resume an
    interrupted call with ``mode="a"``.

    Numerical data variables beyond the first 32 MiB of a file are read and written in parts of
    about 32 MiB. Coordinates and strings are read as a whole.

    Parameters
    ----------
    paths : str, path-like or iterable of these
        Files, folders (searched recursively) and globs.
    target : str or path-like
        The path or URL of the store to write.
    variables : str or iterable of str, optional
        Names or patterns, such as ``"temp*"``, of the data variables to read from each file, with
        their coordinates; all by default. Variables that a file lacks are ignored.
    ragged : str or iterable of str, optional
        Dimensions whose lengths differ, as for `ambar.open_collection`.
    error_bound : mapping, optional
        Error bounds by variable; lossless by default. They must not depend on the value range:
        ``0.01`` (in the unit of the variable), ``"1e-3 relative"``, ``"12 bits"``.
    on_mismatch : {"family", "cast", "raise"}, optional
        What happens if dtypes differ, as for `ambar.open_collection`.
    engine : str, optional
        xarray's engine for all files; by default it is determined for each file.
    processes : int, optional
        The number of processes that read. By default one for each core, and only one for up to 64
        files of up to 32 MiB in total.
    mode : {"w-", "w", "a"}, default "w-"
        "w-" creates a collection. "w" replaces the store at `target` at the first commit. "a" adds
        the files whose datasets the collection at `target` lacks, or creates it.
    fsync : bool, default True
        Whether commits survive a power failure.
    profile : {"fast", "balanced", "small", "raw"}, default "balanced"
        How codecs are chosen; "raw" does not compress.
    threads : int, optional
        The number of threads that encode; all cores by default.
    progress : callable or bool, optional
        A function called with the work done and all work, or True for a progress bar. The work is
        the number of files, and 100 times it while a large file is read in parts.
    on_error : {"stop", "skip"}, default "stop"
        What happens if a file cannot be read, or a collection cannot store its content. "stop"
        raises the error without a further commit; a new store exists only after an earlier commit.
        "skip" ingests the other files and lists the failed ones in `Ingest.failed`; if all files
        failed, it raises the first error and writes nothing.
    decode_times : bool, default True
        Whether numbers with units such as "days since 2000-01-01" become times, as in
        `xarray.open_dataset`. Otherwise they stay numbers, with their units as attributes.
    scheduler : str or distributed.Client, optional
        A dask cluster whose workers read the files, by the address of its scheduler, such as
        ``"tcp://node1:8786"``, or its client. Each worker writes a collection of some files beside
        `target`, or, if that is a URL, in the current folder, which the workers must see; at the
        end, their chunks are copied verbatim, in one commit. Datasets of equal variables are one
        family for each of these collections, but lossless ones of up to 64 MiB are encoded again,
        as one family of all.
    storage_options : mapping, optional
        Options of the URL of the store, as for `ambar.open`.

    Returns
    -------
    Ingest
        The names of the new datasets (`converted`) and of existing ones (`skipped`), the errors of
        files (`failed`), and the groups of files that are not converted (`left_out`).

    Raises
    ------
    FileNotFoundError
        If a path does not exist, or a folder contains no such files.
    FileExistsError
        If `target` exists, with mode "w-".
    ValueError
        If an option is invalid, or differs from that of the existing collection, or if no file has
        a dimension of `ragged`.
    KeyError
        If no file has the variable of an error bound; then nothing is written.
    CorruptError, UnsupportedError, ValueError, KeyError, OSError
        If a file cannot be ingested (see `on_error`); the message names the file.
    BusyError
        If another writer has `target` open.
    ImportError
        If the library that reads such files is missing; the message has the extra to install.

    Examples
    --------
    >>> report = ambar.ingest("profiles", "again.ambar", error_bound={"temperature": 0.01})
    >>> report.converted[:2], report.failed
    (['station_0040', 'station_0041'], {})
    >>> ambar.ingest("profiles", "again.ambar", mode="a").skipped[:2]
    ['station_0040', 'station_0041']
    """
    begun = time.monotonic()
    if on_error not in ("stop", "skip"):
        raise _core.InvalidError(f"invalid on_error {on_error!r}; must be 'stop' or 'skip'")
    check_mode(mode)
    refuse_empty("target", target)
    sources = name_sources(find_sources(paths))
    check_readable(sources.values(), engine)
    reading = Reading(
        None if variables is None else names_of("variables", variables), engine, decode_times
    )
    encoding = encoding_of(error_bound)
    writing: dict[str, Any] = {"profile": profile, "threads": threads, "fsync": fsync}
    with open_collection(
        target,
        mode,
        ragged=ragged,
        encoding=encoding,
        on_mismatch=on_mismatch,
        storage_options=storage_options,
        **writing,
    ) as collection:
        run = _Run(collection, sources, on_error)
        title = f"ingesting {plural(len(run.wanted), 'file')}"
        with (
            progress_function(progress, title) as report,
            Workers(run.processes(processes)) as workers,
        ):
            run.check_bounds(encoding or (), workers, reading)
            if scheduler is None:
                run.ingest(workers, reading, report)
            else:
                run.ingest_on_cluster(scheduler, target, reading, writing, report)
        run.check()
        if not run.added:
            # Without a commit, no empty store is created and an existing one does not grow.
            collection.close()
    written = store_at(target, storage_options)
    stored = 0 if written is None else written.usage()["total"]
    seconds = time.monotonic() - begun
    return Ingest(
        os.fspath(target),
        run.bytes,
        stored,
        seconds,
        run.added,
        run.skipped,
        failed=run.failed,
        left_out=run.left_out,
        hint=run.hint,
    )


class _Run:
    """The state of one call of `ingest`."""

    def __init__(
        self, collection: Collection, sources: Mapping[str, Path], on_error: OnError
    ) -> None:
        _check_names(collection, sources)
        self._collection = collection
        self._on_error = on_error
        self._count = len(sources)
        self.skipped = [name for name in sources if name in collection]
        self.wanted = {name: path for name, path in sources.items() if name not in collection}
        self.added: list[str] = []
        self.failed: dict[str, str] = {}
        self.bytes = 0
        self._groups: dict[str, list[Path]] = {}
        self._first_error: Exception | None = None
        self._committed = 0
        self._waiting_bytes = 0
        self._last = time.monotonic()

    @property
    def left_out(self) -> dict[str, str]:
        """The groups of files that are not in the collection, by name."""
        return {
            f"the group {name!r}": f"of {plural(len(paths), 'file')} ({paths[0]}"
            f"{', ...' if len(paths) > 1 else ''}): a dataset has the variables of the root group; "
            "read a group with xarray.open_dataset(path, group=...), and add it"
            for name, paths in self._groups.items()
        }

    def processes(self, processes: int | None) -> int:
        """Return the number of processes that read, of a number that is given or None."""
        count = processes_for(len(self.wanted), processes)
        is_small = processes is None and len(self.wanted) <= _SMALL_FILES
        with suppress(OSError):  # reading the file raises the error
            if is_small and sum(map(size_of, self.wanted.values())) <= _SMALL_BYTES:
                return 1
        return count

    def check_bounds(self, targets: Iterable[str], workers: Workers, reading: Reading) -> None:
        """Raise KeyError if no file has the variable of an error bound.

        Files are opened until each of the variables is found: usually only the first ones.
        """
        from ambar.collection.files.source_reader import variable_names

        known = dict.fromkeys(self._collection.variables)
        missing = [name for name in targets if name not in known]
        if not missing:
            return
        tasks = ((path, reading) for path in self.wanted.values())
        for _, names in workers.map(variable_names, tasks):
            if not isinstance(names, Failure):  # `ingest` reports it
                known |= dict.fromkeys(names)
                missing = [name for name in missing if name not in known]
            if not missing:
                return
        if known:
            raise _core.NotFoundError(_unknown_target(missing[0], known))

    def ingest(self, workers: Workers, reading: Reading, report: Progress | None) -> None:
        """Read the files in processes, and add their datasets."""
        from ambar.collection.files.source_reader import WHOLE, read_source

        sizes: dict[Path, int] = {}

        def weigh(task: tuple[Any, ...]) -> int:
            try:
                size = size_of(task[1])
            except OSError:
                size = 0  # reading the file raises the error
            return min(_EXPANSION * sizes.setdefault(task[1], size), WHOLE)

        tasks = ((name, path, reading, WHOLE) for name, path in self.wanted.items())
        for done, (task, found) in enumerate(workers.map(read_source, tasks, weigh), 1):
            record = found
            if isinstance(found, Record) and found.has_deferred:
                part = report and part_of_progress(report, done - 1, len(self.wanted))
                record = found._replace(read=DeferredReader(workers, task[1], reading, found, part))
            self._add(task[0], task[1], record, sizes.pop(task[1]))
            if report is not None:
                report(done, len(self.wanted))

    def ingest_on_cluster(
        self,
        scheduler: Scheduler,
        target: str | os.PathLike[str],
        reading: Reading,
        writing: Mapping[str, Any],
        report: Progress | None,
    ) -> None:
        """Ingest batches of files in tasks to collections beside the target, and copy these."""
        with connected(scheduler) as client, scratch_in(folder_of(target)) as scratch:
            options = {**self._collection.settings, **writing, "threads": writing["threads"] or 1}
            named = [(name, path.absolute()) for name, path in self.wanted.items()]
            tasks = [(dict(batch), scratch, reading, options) for batch in batches(named, client)]
            function = partial(_ingest_batch, on_error=self._on_error)
            files = [len(task[0]) for task in tasks]
            for batch in run_tasks(client, function, tasks, report, files):
                self.failed |= batch.failed
                self._first_error = self._first_error or batch.first_error
                self.bytes += batch.bytes
                for group, paths in batch.groups.items():
                    self._groups.setdefault(group, []).extend(paths)
                self._copy(batch)

    def _copy(self, batch: _Batch) -> None:
        """Copy the datasets of a task, whose store is closed when the method returns."""
        if batch.added:
            source = open_collection(batch.target)
            copy_datasets(source, self._collection, batch.added, join_limit=JOIN_LIMIT_BYTES)
            self.added += batch.added

    def batch(self, target: Path) -> _Batch:
        """Return what was ingested to the collection at `target`, for the coordinator."""
        return _Batch(target, self.added, self.failed, self.bytes, self._groups, self._first_error)

    def check(self) -> None:
        """Raise the first error if all files failed, ValueError for a dimension of no file."""
        if self._first_error is not None and len(self.failed) == self._count:
            raise self._first_error
        families = self._collection._families
        known = {dim for f in families for column in f.columns.values() for dim in column.dims}
        for dim in self._collection.settings["ragged"] if self.added else ():
            if dim not in known:
                raise _core.InvalidError(
                    f"ragged: no file has a dimension {dim!r}; available: "
                    f"{', '.join(sorted(known))}{self._committed_note()}"
                )

    @property
    def hint(self) -> str:
        """Return how to make one dataset of files that may be times of one grid, or ""."""
        families = self._collection._families
        columns = families[0].columns.values() if len(families) == 1 else ()
        is_grid = any(
            column.dims[0] == "time" and len(column.dims) > 2 for column in columns if column.dims
        )
        if not is_grid or len(self.added) < 2 or self.skipped:
            return ""
        return (
            "If the files are consecutive times of one grid, one dataset with all times is "
            "smaller and simpler to read: xarray.open_mfdataset(FILES).ambar.write(TARGET)"
        )

    def _add(self, name: str, path: Path, record: Record | Failure, size: int) -> None:
        if isinstance(record, Failure):
            self._fail(path, record)
            return
        try:
            self._collection.add(name, record)
        except DeferredReadError as error:
            self._fail(path, error.failure)
            return
        except (_core.InvalidError, _core.UnsupportedError) as error:
            self._collection._check()
            self._fail(path, Failure.of(error))
            return
        self.added.append(name)
        for group in record.groups:
            self._groups.setdefault(group, []).append(path)
        self.bytes += size
        self._waiting_bytes += record.nbytes
        if (
            len(self.added) - self._committed >= COMMIT_DATASETS
            or self._waiting_bytes >= COMMIT_BYTES
            or time.monotonic() - self._last >= COMMIT_SECONDS
        ):
            self._collection.commit()
            self._committed, self._waiting_bytes = len(self.added), 0
            self._last = time.monotonic()

    def _fail(self, path: Path, failure: Failure) -> None:
        """Raise the error of a file, or record it."""
        if self._on_error == "stop":
            # A variable that the first file lacks is usually a misspelled one.
            others = self._count > 1 and (
                bool(self.added) or not isinstance(failure.error, _core.NotFoundError)
            )
            advice = "; use on_error='skip' to ingest the other files" if others else ""
            raise failure.raised_for(str(path), advice + self._committed_note())
        self.failed[str(path)] = failure.why
        if self._first_error is None:
            more = f"; all {self._count} files failed" if self._count > 1 else ""
            self._first_error = failure.raised_for(str(path), more)

    def _committed_note(self) -> str:
        """Return the end of an error message: the number of committed datasets."""
        if not self._committed:
            return ""
        return (
            f"; {self._committed} datasets are committed to {self._collection.location}: resume "
            'with mode="a"'
        )


class _Batch(NamedTuple):
    """What one task has ingested."""

    target: Path
    added: list[str]
    failed: dict[str, str]
    bytes: int
    groups: dict[str, list[Path]]
    first_error: Exception | None


def _ingest_batch(
    sources: dict[str, Path],
    scratch: Path,
    reading: Reading,
    options: dict[str, Any],
    on_error: OnError,
) -> _Batch:
    """Ingest files to a collection in a folder, in a task of a cluster."""
    target = new_name(scratch)
    with open_collection(target, "w", **options) as collection:
        run = _Run(collection, sources, on_error)
        with Workers(1) as workers:
            run.ingest(workers, reading, None)
        if not run.added:
            collection.close()
    return run.batch(target)


def _check_names(collection: Collection, sources: Mapping[str, Path]) -> None:
    """Raise ValueError if a file may already be a dataset, under a name that is ambiguous now."""
    for name, path in sources.items():
        stem = path.stem
        if name != stem and stem in collection and stem not in sources:
            raise _core.InvalidError(
                f"{collection.location} has a dataset {stem!r}, which may be {path} or another "
                "file of this name; ingest one folder at a time, or rename the file"
            )


def _unknown_target(name: str, known: Iterable[str]) -> str:
    """Return the error for a bound of a variable that no file has."""
    hint = suggestion(name, known)
    if "*" in name or "@" in name:
        hint = f"patterns do not apply to collections, give a bound for each variable; {hint}"
    return f"an error bound is given for {name!r}, but no file has such a variable; {hint}"

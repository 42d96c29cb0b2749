"""Conversion of the outputs of a run by the workers of a dask cluster."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.arguments import WriteMode
from ambar._util.progress import Progress, progress_function
from ambar._util.text import plural
from ambar.io.merge import merge
from ambar.kinds.registry import Kind
from ambar.kinds.request import Conversion
from ambar.kinds.request import Path as AnyPath
from ambar.parallel.cluster import Scheduler, connected, new_name, run, scratch_in
from ambar.store.copies.merging import OnConflict
from ambar.store.locations import store_at
from ambar.store.store import Store
from ambar.store.urls import folder_of
from ambar.store.writer import create


def convert_on_cluster(
    convert: Callable[..., Conversion],
    kind: Kind,
    paths: Sequence[AnyPath],
    target: AnyPath,
    mode: WriteMode,
    options: Mapping[str, Any],
    scheduler: Scheduler,
    progress: Progress | bool | None,
) -> Conversion:
    """Convert each output of a run in a task to a store beside the target, and merge the stores.

    `convert` is `ambar.convert`, which the tasks call. With mode "a", they know the outputs of the
    series at the target, and convert new and changed ones.

    Raises
    ------
    ValueError
        If the source is a single output.
    """
    begun = time.perf_counter()
    outputs = [] if kind.outputs is None else kind.outputs(paths)
    if not outputs:
        raise _core.InvalidError(
            f"{os.fspath(paths[0])}: expected a run of several outputs to divide among workers, "
            f"found one source of the kind {kind.name!r}; leave out scheduler"
        )
    if options.get("halos") is not None:
        raise _core.InvalidError(
            "halos belong to one output, and scheduler divides several; leave one out"
        )
    storage_options = options["storage_options"]
    existing = store_at(target, storage_options) if mode == "a" else None
    count = len(outputs)
    with (
        connected(scheduler) as client,
        scratch_in(folder_of(target)) as scratch,
        progress_function(progress, f"converting {plural(count, 'output')}") as report,
    ):
        # Half of the progress is that of the tasks, half that of the copy.
        part = report and (lambda done, total: report(count * done // total, 2 * count))
        given = dict(options) | {"threads": options["threads"] or 1, "storage_options": None}
        series = None if existing is None else _write_steps(existing, scratch / "series.ambar")
        tasks = [
            _Task(convert, output.absolute(), os.fspath(target), scratch, series, given)
            for output in outputs
        ]
        reports = run(client, _Task.run, [(task,) for task in tasks], part)
        stores = [done.target for done in reports if done.converted or done.replaced]
        if stores:
            part = report and (
                lambda done, total: report(count + count * done // max(total, 1), 2 * count)
            )
            # The series has other versions of changed outputs.
            on_conflict: OnConflict = "error" if existing is None else "replace"
            done = merge(
                stores,
                target,
                mode=mode,
                fsync=options["fsync"],
                progress=part,
                on_conflict=on_conflict,
                storage_options=storage_options,
            )
        elif existing is None or not any(done.skipped for done in reports):
            reasons = [(*done.failed.items(), *done.left_out.items()) for done in reports]
            pairs = [pair for pairs in reasons for pair in pairs]
            if not pairs:
                raise _core.InvalidError(
                    f"{os.fspath(paths[0])}: expected at least one output that can be converted, "
                    f"found {count} without a reason; convert one of them without scheduler"
                )
            name, why = pairs[0]
            raise _core.CorruptError(f"{name}: {why}; no output of {count} was converted")
        else:
            done = Conversion(os.fspath(target), 0, existing.usage()["total"], 0.0)
    return dataclasses.replace(
        done,
        seconds=time.perf_counter() - begun,
        source_bytes=sum(done.source_bytes for done in reports),
        converted=[name for done in reports for name in done.converted],
        skipped=[name for done in reports for name in done.skipped],
        replaced=[name for done in reports for name in done.replaced],
        failed={name: why for done in reports for name, why in done.failed.items()},
        left_out={name: why for done in reports for name, why in done.left_out.items()},
    )


def _write_steps(series: Store, path: Path) -> Path:
    """Write a series of the same outputs, without their arrays, and return its path."""
    with create(path, fsync=False) as writer:
        for group in series.groups:
            if group.count("/") == 0:
                writer._create_group(group or "/", series._attributes(group))
    return path


@dataclass(frozen=True)
class _Task:
    """The conversion of one output to a series that has it alone."""

    convert: Callable[..., Conversion]
    output: Path
    target: str
    """The store that gets the output at the end."""
    scratch: Path
    series: Path | None
    """A series of the outputs of the target, without their arrays."""
    options: dict[str, Any]

    def run(self) -> Conversion:
        """Convert the output, in a task."""
        folder = new_name(self.scratch)
        run_folder = folder / "run"
        # Not with parents: after an error elsewhere the scratch folder is gone.
        folder.mkdir()
        run_folder.mkdir()
        (run_folder / self.output.name).symlink_to(self.output)
        target = folder / "output.ambar"
        options = self.options
        if self.series is not None:
            shutil.copyfile(self.series, target)
            options = options | {"mode": "a"}
        try:
            done = self.convert(run_folder, target, **options)
        except (_core.AmbarError, OSError) as error:
            why = str(error).replace(str(run_folder), str(self.output.parent))
            why = why.replace(str(target), self.target)
            if options.get("on_error") == "skip":
                return Conversion(os.fspath(target), 0, 0, 0.0, failed={self.output.name: why})
            raise type(error)(why) if isinstance(error, _core.AmbarError) else error from None
        if self.series is not None and not done.skipped:
            _remove_steps_without_arrays(target)
        return done


def _remove_steps_without_arrays(path: Path) -> None:
    store = Store._open(path)
    converted = {array.split("/")[0] for array in store}
    steps = {group.split("/")[0] for group in store.groups if group}
    with create(path, "a", fsync=False) as writer:
        for step in steps - converted:
            writer.remove(step)

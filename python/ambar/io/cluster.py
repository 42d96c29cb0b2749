"""Conversion of the outputs of a run by the workers of a dask cluster."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
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
from ambar.parallel.cluster import Scheduler, connected, new_name, run, scratch_beside
from ambar.store.urls import refuse_url


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

    `convert` is `ambar.convert`, which the tasks call.

    Raises
    ------
    ValueError
        If the source is a single output, or mode "a" would add to a store.
    """
    begun = time.perf_counter()
    refuse_url(target)
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
    if mode == "a" and Path(target).exists():
        raise _core.InvalidError(
            f"{os.fspath(target)}: expected a new store with scheduler, found one to add to; "
            "convert the new outputs to another store, and add it with ambar.merge"
        )
    with connected(scheduler) as client, scratch_beside(target) as scratch:
        title = f"converting {plural(len(outputs), 'output')}"
        with progress_function(progress, title) as report:
            given = dict(options) | {"threads": options["threads"] or 1}
            tasks = [(convert, str(output.absolute()), scratch, given) for output in outputs]
            reports = run(client, _convert_output, tasks, report)
        stores = [done.target for done in reports if done.converted]
        if not stores:
            name, why = next((*done.failed.items(), *done.left_out.items()) for done in reports)[0]
            raise _core.CorruptError(f"{name}: {why}; no output of {len(outputs)} was converted")
        merged = merge(stores, target, mode=mode, fsync=options["fsync"])
    return dataclasses.replace(
        merged,
        seconds=time.perf_counter() - begun,
        source_bytes=sum(done.source_bytes for done in reports),
        converted=[name for done in reports for name in done.converted],
        failed={name: why for done in reports for name, why in done.failed.items()},
        left_out={name: why for done in reports for name, why in done.left_out.items()},
    )


def _convert_output(
    convert: Callable[..., Conversion], output: str, scratch: Path, options: dict[str, Any]
) -> Conversion:
    """Convert one output, in a task, to a series that has it alone."""
    folder = new_name(scratch)
    run_folder = folder / "run"
    run_folder.mkdir(parents=True)
    place = Path(output)
    (run_folder / place.name).symlink_to(place)
    target = folder / "output.ambar"
    try:
        return convert(run_folder, target, **options)
    except (_core.AmbarError, OSError) as error:
        why = str(error).replace(str(run_folder), str(place.parent))
        if options.get("on_error") == "skip":
            return Conversion(os.fspath(target), 0, 0, 0.0, failed={place.name: why})
        raise type(error)(why) if isinstance(error, _core.AmbarError) else error from None

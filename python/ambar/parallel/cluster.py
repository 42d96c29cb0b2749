"""Tasks on the workers of a dask cluster, which write stores of their own beside the target."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

from ambar import _core
from ambar._util.optional import require
from ambar._util.progress import Progress

Scheduler: TypeAlias = Any
"""The address of a scheduler of dask, such as ``"tcp://node1:8786"``, or a ``Client``."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@contextmanager
def connected(scheduler: Scheduler) -> Iterator[Any]:
    """Yield the client of a scheduler; one that was given stays open.

    Raises
    ------
    ModuleNotFoundError
        If distributed is not installed.
    ValueError
        If the address is invalid.
    OSError
        If no scheduler answers at the address.
    """
    distributed = require("distributed", purpose="scheduler=", install="ambar[distributed]")
    if not isinstance(scheduler, str):
        yield scheduler
        return
    try:
        distributed.comm.resolve_address(scheduler)
    except ValueError as error:
        raise _core.InvalidError(
            f"invalid address of a scheduler: {scheduler!r} ({error}); expected tcp://HOST:PORT"
        ) from None
    with distributed.Client(scheduler, set_as_default=False) as client:
        yield client


def run(
    client: Any,
    function: Callable[..., _Result],
    tasks: Sequence[tuple[Any, ...]],
    report: Progress | None = None,
    weights: Sequence[int] | None = None,
) -> list[_Result]:
    """Return the results of `function` for tasks, in their order; raises the first error.

    A task runs again if its worker dies. `weights` is the work of each task that is reported, 1 by
    default.
    """
    from distributed import as_completed

    futures = client.map(function, *zip(*tasks, strict=True), pure=False) if tasks else []
    place_of = {future.key: place for place, future in enumerate(futures)}
    work = weights or [1] * len(tasks)
    results: dict[int, _Result] = {}
    completed = as_completed(futures, loop=client.loop, with_results=True)
    try:
        for future, result in completed:
            results[place_of[future.key]] = result
            if report is not None:
                report(sum(work[place] for place in results), sum(work))
    finally:
        client.cancel(futures)
    return [results[place] for place in range(len(tasks))]


def new_name(folder: Path) -> Path:
    """Return a path in a folder that no other attempt of a task has."""
    return folder / uuid4().hex


@contextmanager
def scratch_in(folder: Path) -> Iterator[Path]:
    """Yield a hidden folder for the stores of tasks, in a folder that they see; it is removed."""
    scratch = Path(mkdtemp(prefix=".ambar.parts-", dir=folder))
    try:
        yield scratch
    finally:
        # After an error, tasks that still run create no more files: the folder has another name.
        with suppress(OSError):
            scratch = scratch.rename(f"{scratch}.removed")
        shutil.rmtree(scratch, ignore_errors=True)


def batches(items: Sequence[_Item], client: Any) -> list[list[_Item]]:
    """Divide items into consecutive batches of equal numbers, one for each thread of a cluster."""
    threads = sum(client.nthreads().values())
    count = min(max(threads, 1), len(items))
    ends = [len(items) * number // count for number in range(count + 1)] if count else []
    return [list(items[start:end]) for start, end in itertools.pairwise(ends)]

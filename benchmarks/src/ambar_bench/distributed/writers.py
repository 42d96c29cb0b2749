"""Writes the array once, in a process whose peak of resident memory is measured: the client's."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ambar
import ambar.distributed
from ambar_bench.memory import field

PLANE = (512, 1024)
ROWS = 16
"""Planes of float32 in a block, which a task computes and writes: 32 MiB."""


def block(number: int, plane: Sequence[int] | None = None) -> np.ndarray:
    """Return the values of a block, or of the first part of its planes: smooth, with noise."""
    first = number * ROWS
    axes = [np.arange(first, first + ROWS), *map(np.arange, plane or PLANE)]
    return field(*axes).astype("f4")


def shape_of(megabytes: float) -> tuple[int, ...]:
    """Return the shape of an array of about this size."""
    return (max(round(megabytes * 1e6 / (4 * PLANE[0] * PLANE[1] * ROWS)), 1) * ROWS, *PLANE)


def layout_of(shape: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of an array whose blocks are shards."""
    return {"shape": shape, "dtype": "f4", "chunks": (ROWS, 64, 64), "shards": (ROWS, *PLANE)}


def write_block(
    invitation: ambar.distributed.Invitation,
    region: ambar.distributed.ArrayRegion,
    fatal: str | None = None,
) -> bytes:
    """Compute and write a block in a task, whose worker dies once before it returns the receipt."""
    with invitation.writer() as writer:
        writer.write_region(region.path, block(region.start[0] // ROWS), region.start)
        die_once(fatal)
        return writer.receipt()


def die_once(marker: str | None) -> None:
    """Kill this process, unless the file `marker` exists; it is created."""
    if marker is None:
        return
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def by_process(target: str, shape: Sequence[int], profile: Any, *_: Any) -> None:
    """Write the array from this process."""
    with ambar.create(target, "w", profile=profile, threads=1, fsync=False) as writer:
        writer.create_array("x", **layout_of(shape))
        for number in range(shape[0] // ROWS):
            writer.write_region("x", block(number), (number * ROWS, 0, 0))


def by_tasks(
    target: str, shape: Sequence[int], profile: Any, client: Any, fatal: str | None
) -> None:
    """Write the array from tasks."""
    with ambar.distributed.open(target, "w", profile=profile, fsync=False) as commit:
        commit.create_array("x", **layout_of(shape), sample=block(0, (128, 128)))
        regions = commit.regions()
        fatals = [fatal if at == len(regions) // 2 else None for at in range(len(regions))]
        invitations = [commit.invitation] * len(regions)
        futures = client.map(write_block, invitations, regions, fatals, pure=False)
        commit.finish(client.gather(futures))


def by_xarray(target: str, shape: Sequence[int], profile: Any, _: Any, fatal: str | None) -> None:
    """Write a dask array as a dataset."""
    import dask.array as da
    import xarray as xr

    import ambar.xarray  # noqa: F401 - registers the accessor

    count = shape[0] // ROWS
    data = da.map_blocks(
        partial(_numbered_block, count // 2, fatal),
        chunks=((ROWS,) * count, *((n,) for n in PLANE)),
        dtype="f4",
        meta=np.empty((0, 0, 0), "f4"),
    )
    encoding = {"x": {"chunks": (ROWS, 64, 64), "shards": (ROWS, *PLANE)}}
    dataset = xr.Dataset({"x": (("t", "y", "x_"), data)})
    dataset.ambar.write(target, mode="w", encoding=encoding, profile=profile, fsync=False)


def _numbered_block(dying: int, fatal: str | None, block_info: Any = None) -> np.ndarray:
    number = block_info[None]["chunk-location"][0]
    values = block(number)
    die_once(fatal if number == dying else None)
    return values


WRITERS: dict[str, Callable[[str, Sequence[int], Any, Any, str | None], None]] = {
    "process": by_process,
    "tasks": by_tasks,
    "xarray": by_xarray,
}


def run_one(
    version: str, workers: int, megabytes: float, profile: str, target: str, fatal: str | None
) -> dict[str, Any]:
    """Write the array, in this process, and return the measurements.

    With `fatal`, a file that does not exist, a worker is killed on the way, and all values are
    compared with those that were written; otherwise those of three blocks.
    """
    shape = shape_of(megabytes)
    if version == "process":
        seconds = _timed(version, target, shape, profile, None, None)
    else:
        from distributed import Client, LocalCluster

        cluster = LocalCluster(workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            client.gather(client.map(_warm_up, range(workers)))
            seconds = _timed(version, target, shape, profile, client, fatal)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    if fatal is not None and not Path(fatal).exists():
        raise SystemExit("no worker was killed")
    check(target, shape, is_whole=fatal is not None)
    stored = ambar.open_store(target).usage()["total"] / 1e6
    return {"seconds": seconds, "client": int(peak) * 1024 / 1e6, "stored": stored}


def _warm_up(number: int) -> int:
    """Import in a worker what the blocks need."""
    return block(number, (8, 8)).size


def _timed(
    version: str,
    target: str,
    shape: Sequence[int],
    profile: str,
    client: Any,
    fatal: str | None,
) -> float:
    begun = time.perf_counter()
    WRITERS[version](target, shape, profile, client, fatal)
    return time.perf_counter() - begun


def check(target: str, shape: Sequence[int], *, is_whole: bool) -> None:
    """Compare blocks of the store, or all, with the values that were written."""
    array = ambar.open_store(target)["x"]
    count = shape[0] // ROWS
    for number in range(count) if is_whole else {0, count // 2, count - 1}:
        found = array[number * ROWS : (number + 1) * ROWS]
        if not np.array_equal(found, block(number)):
            raise SystemExit(f"block {number} differs")


if __name__ == "__main__":
    name, number, size, chosen, place, marker = sys.argv[1:]
    run = run_one(name, int(number), float(size), chosen, place, marker or None)
    print(json.dumps(run))  # noqa: T201

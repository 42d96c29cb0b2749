"""One array written by one process, and by the workers of a dask cluster on this machine.

Every row runs in a fresh process, whose peak of resident memory is measured: that of the client,
without its workers.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ambar
import ambar.distributed
from ambar_bench import output
from ambar_bench.machine import machine
from ambar_bench.memory import field

if TYPE_CHECKING:
    from rich.table import Table

PLANE = (512, 1024)
ROWS = 16
"""Planes of float32 in a block, which a task computes and writes: 32 MiB."""

VERSIONS = {
    "process": "`ambar.create`, one process, one thread",
    "tasks": "`ambar.distributed`, tasks of dask",
    "xarray": "`dataset.ambar.write`",
}


@dataclass(frozen=True)
class Row:
    """The medians of one version with a number of workers."""

    version: str
    workers: int
    seconds: float
    client_megabytes: float
    stored_megabytes: float


@dataclass(frozen=True)
class Study:
    """All rows, and what they were measured on."""

    megabytes: float
    profile: str
    rounds: int
    machine: dict[str, str]
    rows: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON represents it."""
        return asdict(self)


def block(number: int, plane: Sequence[int] | None = None) -> np.ndarray:
    """Return the values of a block, or of the first part of its planes: smooth, with noise."""
    first = number * ROWS
    axes = [np.arange(first, first + ROWS), *map(np.arange, plane or PLANE)]
    return field(*axes).astype("f4")


def write_block(
    invitation: ambar.distributed.Invitation, region: ambar.distributed.ArrayRegion
) -> bytes:
    """Compute and write a block in a task."""
    with invitation.writer() as writer:
        writer.write_region(region.path, block(region.start[0] // ROWS), region.start)
        return writer.receipt()


def by_process(target: Path, shape: Sequence[int], profile: Any, _: Any) -> None:
    """Write the array from this process."""
    spec: dict[str, Any] = {"dtype": "f4", "chunks": (ROWS, 64, 64), "shards": (ROWS, *PLANE)}
    with ambar.create(target, "w", profile=profile, threads=1, fsync=False) as writer:
        writer.create_array("x", shape=shape, **spec)
        for number in range(shape[0] // ROWS):
            writer.write_region("x", block(number), (number * ROWS, 0, 0))


def by_tasks(target: Path, shape: Sequence[int], profile: Any, client: Any) -> None:
    """Write the array from tasks."""
    spec: dict[str, Any] = {
        "shape": shape,
        "dtype": "f4",
        "chunks": (ROWS, 64, 64),
        "shards": (ROWS, *PLANE),
    }
    with ambar.distributed.open(target, "w", profile=profile, fsync=False) as commit:
        commit.create_array("x", **spec, sample=block(0, (128, 128)))
        regions = commit.regions()
        commit.finish(
            client.gather(client.map(write_block, [commit.invitation] * len(regions), regions))
        )


def by_xarray(target: Path, shape: Sequence[int], profile: Any, _: Any) -> None:
    """Write a dask array as a dataset."""
    import dask.array as da
    import xarray as xr

    import ambar.xarray  # noqa: F401 - registers the accessor

    count = shape[0] // ROWS
    data = da.map_blocks(
        _numbered_block,
        chunks=((ROWS,) * count, *((n,) for n in PLANE)),
        dtype="f4",
        meta=np.empty((0, 0, 0), "f4"),
    )
    encoding = {"x": {"chunks": (ROWS, 64, 64), "shards": (ROWS, *PLANE)}}
    dataset = xr.Dataset({"x": (("t", "y", "x_"), data)})
    dataset.ambar.write(target, mode="w", encoding=encoding, profile=profile, fsync=False)


def _numbered_block(block_info: Any = None) -> np.ndarray:
    return block(block_info[None]["chunk-location"][0])


WRITERS: dict[str, Callable[[Path, Sequence[int], Any, Any], None]] = {
    "process": by_process,
    "tasks": by_tasks,
    "xarray": by_xarray,
}


def run_one(
    version: str, workers: int, megabytes: float, profile: str, target: Path
) -> dict[str, Any]:
    """Write the array once, in this process, and return the measurements."""
    shape = (round(megabytes * 1e6 / (4 * PLANE[0] * PLANE[1] * ROWS)) * ROWS, *PLANE)
    if version == "process":
        seconds = _timed(version, target, shape, profile, None)
    else:
        from distributed import Client, LocalCluster

        cluster = LocalCluster(workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster) as client:
            client.gather(client.map(_warm_up, range(workers)))
            seconds = _timed(version, target, shape, profile, client)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    _check(target, shape)
    stored = target.stat().st_size / 1e6
    return {"seconds": seconds, "client": int(peak) * 1024 / 1e6, "stored": stored}


def _warm_up(number: int) -> int:
    """Import in a worker what the blocks need."""
    return block(number, (8, 8)).size


def _timed(version: str, target: Path, shape: Sequence[int], profile: str, client: Any) -> float:
    begun = time.perf_counter()
    WRITERS[version](target, shape, profile, client)
    return time.perf_counter() - begun


def _check(target: Path, shape: Sequence[int]) -> None:
    array = ambar.open_store(target)["x"]
    last = shape[0] // ROWS - 1
    for number in {0, last // 2, last}:
        found = array[number * ROWS : (number + 1) * ROWS]
        if not np.array_equal(found, block(number)):
            raise SystemExit(f"block {number} differs")


def run_study(
    folder: Path,
    *,
    megabytes: float,
    workers: Sequence[int],
    profile: str,
    rounds: int,
    report: Callable[[str], None],
) -> Study:
    """Measure all versions in turn."""
    keys = [("process", 1), *((version, n) for n in workers for version in ("tasks", "xarray"))]
    found: dict[tuple[str, int], list[dict[str, Any]]] = {key: [] for key in keys}
    for number in range(rounds):
        for version, count in keys:
            report(f"round {number + 1} of {rounds}: {version}, {count}")
            target = folder / "x.ambar"
            task = [version, str(count), str(megabytes), profile, str(target)]
            command = [sys.executable, "-W", "ignore", "-m", "ambar_bench.distributed", *task]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
            found[version, count].append(json.loads(done.stdout.splitlines()[-1]))
            target.unlink()
    rows = [
        Row(
            version,
            count,
            *(
                statistics.median(run[name] for run in runs)
                for name in ("seconds", "client", "stored")
            ),
        )
        for (version, count), runs in found.items()
    ]
    return Study(megabytes, profile, rounds, machine(["dask", "distributed", "xarray"]), rows)


def headline(study: Study) -> str:
    """Return what was measured."""
    return (
        f"{study.megabytes:.0f} MB of float32, profile {study.profile}, medians of {study.rounds}"
    )


_COLUMNS = ("version", "workers", "s", "times as fast", "client MB", "stored MB")


def _cells(study: Study) -> list[list[str]]:
    first = study.rows[0].seconds
    return [
        [
            VERSIONS[row.version],
            "" if row.version == "process" else str(row.workers),
            f"{row.seconds:.1f}",
            f"{first / row.seconds:.2f}",
            f"{row.client_megabytes:.0f}",
            f"{row.stored_megabytes:.1f}",
        ]
        for row in study.rows
    ]


def tables(study: Study) -> list[Table]:
    """Return the table for the screen."""
    rows = [(cells, bool(cells[1])) for cells in _cells(study)]
    return [output.screen_table("one array, written together", _COLUMNS, rows)]


def notes(study: Study) -> list[str]:
    """Return the machine, line by line."""
    return output.machine_lines(study.machine)


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON and Markdown, and return their paths."""
    lines = [
        f"# {headline(study)}",
        "",
        *output.markdown_table(_COLUMNS, _cells(study)),
        "",
        *notes(study),
    ]
    return output.write(folder, study.to_dict(), "\n".join(lines) + "\n", {})


if __name__ == "__main__":
    name, number, size, chosen, place = sys.argv[1:]
    print(json.dumps(run_one(name, int(number), float(size), chosen, Path(place))))  # noqa: T201

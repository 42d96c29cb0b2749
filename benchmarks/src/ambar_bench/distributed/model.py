"""A model, not a measurement: a run of many files on up to 64 nodes, from costs of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ambar.distributed
from ambar._util.text import plural
from ambar_bench import output
from ambar_bench.distributed.writers import block, layout_of, shape_of, write_block
from ambar_bench.machine import machine

if TYPE_CHECKING:
    from rich.table import Table

FILES = 100_000
"""Files of the modelled run. A task reads one, and writes its values as one shard of 32 MiB."""
NODES = (1, 4, 16, 64)
WORKERS_PER_NODE = 48
BANDWIDTH = 20e9
"""Assumed bytes a second of the shared file system, or of the object store."""
FILE_CALL = 1e-3
"""Assumed seconds of a call of the shared file system for metadata."""
REQUEST = 30e-3
"""Assumed seconds of a request to the object store."""
FILE_CALLS = 20
"""Calls for metadata of a task: to join, and to claim an extent of the file."""
REQUESTS = 4
"""Requests of a task: to join, before it writes, the object, and before the receipt."""

_TASKS = 2000


@dataclass(frozen=True)
class Costs:
    """What was measured on this machine, one process at a time."""

    compute: float
    """Seconds of a task that computes the values, in place of reading a file."""
    encode: float
    """Seconds of a task that encodes and writes them, without `fsync`."""
    stored: float
    """Stored bytes of a task."""
    join: float
    """Seconds of a task to join a commit, write 8 bytes and return the receipt."""
    schedule: float
    """Seconds of dask's scheduler and client for a task."""
    commit: float
    """Seconds of the coordinator for a receipt: to check, adopt and commit it."""
    machine: dict[str, str]


@dataclass(frozen=True)
class Model:
    """The costs and the assumptions, and the seconds by number of nodes."""

    files: int
    workers_per_node: int
    bandwidth: float
    costs: Costs
    nodes: list[int]
    file: list[float]
    objects: list[float]
    scheduler: float
    transfer: float
    coordinator: float

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON represents it."""
        return asdict(self)


def measure(folder: Path, report: Callable[[str], None]) -> Costs:
    """Measure the costs of tasks on this machine."""
    report("encoding and writing")
    count = 8
    shape = shape_of(count * 33.6)
    compute, _ = _timed(lambda: [block(number) for number in range(count)])
    with ambar.distributed.open(folder / "x.ambar", "w", fsync=False) as commit:
        commit.create_array("x", **layout_of(shape), sample=block(0, (128, 128)))
        task = partial(write_block, commit.invitation)
        both, receipts = _timed(lambda: [task(region) for region in commit.regions()])
        commit.finish(receipts)
    stored = ambar.open_store(folder / "x.ambar").usage()["total"]

    report("joining and committing")
    arrays = {"x": {"shape": (_TASKS,), "dtype": "f8", "chunks": (1,), "profile": "raw"}}
    with ambar.distributed.open(folder / "y.ambar", "w", arrays=arrays, fsync=False) as commit:
        invitation = commit.invitation
        join, receipts = _timed(lambda: [_write_one(invitation, n) for n in range(_TASKS)])
        finish, _ = _timed(lambda: commit.finish(receipts))

    report("scheduling")
    from distributed import Client, LocalCluster

    cluster = LocalCluster(2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.gather(client.map(_nothing, range(100), pure=False))
        run = partial(client.map, _nothing, range(_TASKS), pure=False)
        schedule, _ = _timed(lambda: client.gather(run()))
    return Costs(
        compute / count,
        (both - compute) / count,
        stored / count,
        join / _TASKS,
        schedule / _TASKS,
        finish / _TASKS,
        machine(["dask", "distributed"]),
    )


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def _write_one(invitation: ambar.distributed.Invitation, number: int) -> bytes:
    with invitation.writer() as writer:
        writer.write_region("x", [float(number)], (number,))
        return writer.receipt()


def _nothing(number: int) -> int:
    return number


def model(costs: Costs) -> Model:
    """Return the seconds of the modelled run.

    Tasks compute and encode at the speed of this machine, and wait for the file system or the
    object store. Meanwhile, one process schedules all of them, and all bytes go through the
    network: the slowest of the three counts. Then the coordinator commits. Lost workers, and what
    a file system makes of many writers, are not in the model.
    """
    scheduler = FILES * costs.schedule
    transfer = FILES * costs.stored / BANDWIDTH
    coordinator = FILES * costs.commit
    own = costs.compute + costs.encode + costs.join
    waits = {"file": FILE_CALLS * FILE_CALL, "objects": REQUESTS * REQUEST}

    def seconds(place: str, nodes: int) -> float:
        tasks = FILES * (own + waits[place]) / (nodes * WORKERS_PER_NODE)
        return max(tasks, scheduler, transfer) + coordinator

    return Model(
        FILES,
        WORKERS_PER_NODE,
        BANDWIDTH,
        costs,
        list(NODES),
        [seconds("file", nodes) for nodes in NODES],
        [seconds("objects", nodes) for nodes in NODES],
        scheduler,
        transfer,
        coordinator,
    )


def headline(found: Model) -> str:
    """Return what is modelled."""
    return (
        f"A model, not a measurement: {found.files:,} files of 32 MiB, "
        f"{found.workers_per_node} workers on each node"
    )


def _columns(found: Model) -> list[str]:
    return ["seconds to", *(plural(nodes, "node") for nodes in found.nodes)]


def _cells(found: Model) -> list[list[str]]:
    return [
        [name, *(f"{seconds:.0f}" for seconds in row)]
        for name, row in (("a file", found.file), ("objects on S3", found.objects))
    ]


def tables(found: Model) -> list[Table]:
    """Return the table for the screen."""
    rows = [(cells, True) for cells in _cells(found)]
    return [output.screen_table("a model", _columns(found), rows)]


def notes(found: Model) -> list[str]:
    """Return what was measured and what is assumed, and the machine, line by line."""
    costs = found.costs
    return [
        f"measured, a task: {costs.compute:.3f} s to compute 32 MiB, {costs.encode:.3f} s to "
        f"encode and write them as {costs.stored / 1e6:.1f} MB, {costs.join * 1e3:.2f} ms to join "
        "and return a receipt  ",
        f"measured, in one process: {costs.schedule * 1e3:.2f} ms to schedule a task, "
        f"{costs.commit * 1e3:.3f} ms to commit a receipt  ",
        f"assumed: {found.bandwidth / 1e9:.0f} GB/s of the file system or the object store; "
        f"{FILE_CALLS} calls of {FILE_CALL * 1e3:.0f} ms for a task that writes to a file, "
        f"{REQUESTS} requests of {REQUEST * 1e3:.0f} ms for one that puts an object  ",
        f"limits: {found.scheduler:.0f} s of dask's scheduler, {found.transfer:.0f} s of the "
        f"transfer, {found.coordinator:.0f} s of the coordinator at the end  ",
        *output.machine_lines(costs.machine),
    ]


def write(found: Model, folder: Path) -> list[Path]:
    """Write JSON and Markdown, and return their paths."""
    table = output.markdown_table(_columns(found), _cells(found))
    lines = [f"# {headline(found)}", "", *table, "", *notes(found)]
    return output.write(folder, found.to_dict(), "\n".join(lines) + "\n", {}, "model")

"""The rows of the study: every one runs in a fresh process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar_bench import output
from ambar_bench.distributed.server import BUCKET, s3_environment
from ambar_bench.machine import machine

if TYPE_CHECKING:
    from rich.table import Table

VERSIONS = {
    "process": "`ambar.create`, one process, one thread",
    "tasks": "`ambar.distributed`, tasks of dask",
    "xarray": "`dataset.ambar.write`",
}
PLACES = {"file": "a file", "objects": "objects on S3"}


@dataclass(frozen=True)
class Row:
    """The medians of one version with a number of workers."""

    version: str
    place: str
    workers: int
    is_killed: bool
    """Whether a worker was killed on the way, and all values were compared."""
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


def run_study(
    folder: Path,
    *,
    megabytes: float,
    workers: Sequence[int],
    profile: str,
    rounds: int,
    report: Callable[[str], None],
) -> Study:
    """Measure all versions in turn; then, once, those with a killed worker, on both places."""
    speeds = [("process", 1), *((version, n) for n in workers for version in ("tasks", "xarray"))]
    found: dict[tuple[str, str, int, bool], list[dict[str, Any]]] = {}
    for number in range(rounds):
        for version, count in speeds:
            report(f"round {number + 1} of {rounds}: {version}, {count}")
            run = _run(version, count, megabytes, profile, f"{folder}/x.ambar")
            found.setdefault((version, "file", count, False), []).append(run)
            (folder / "x.ambar").unlink()
    most = max(workers)
    for place, name in PLACES.items():
        for version in ("tasks", "xarray"):
            report(f"with a killed worker: {version}, {name}")
            killed = str(folder / f"{version}-{place}")
            run = _run_at(place, folder, version, most, megabytes, profile, killed)
            found[version, place, most, True] = [run]
    rows = [
        Row(*key, *(statistics.median(run[name] for run in runs) for name in _MEASURED))
        for key, runs in found.items()
    ]
    about = machine(["dask", "distributed", "xarray", "moto"])
    return Study(megabytes, profile, rounds, about, rows)


_MEASURED = ("seconds", "client", "stored")


def _run_at(place: str, folder: Path, *how: Any) -> dict[str, Any]:
    """Write to a file, or to a server of S3 that runs meanwhile."""
    version, workers, megabytes, profile, killed = how
    if place == "file":
        run = _run(version, workers, megabytes, profile, f"{folder}/x.ambar", killed)
        (folder / "x.ambar").unlink()
        return run
    with s3_environment() as environment:
        target = f"s3://{BUCKET}/x/"
        return _run(version, workers, megabytes, profile, target, killed, environment)


def _run(
    version: str,
    workers: int,
    megabytes: float,
    profile: str,
    target: str,
    killed: str = "",
    environment: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Run one row in a process of its own."""
    task = [version, str(workers), str(megabytes), profile, target, killed]
    command = [sys.executable, "-W", "ignore", "-m", "ambar_bench.distributed.writers", *task]
    done = subprocess.run(  # noqa: S603
        command,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def headline(study: Study) -> str:
    """Return what was measured."""
    return (
        f"{study.megabytes:.0f} MB of float32, profile {study.profile}, medians of {study.rounds}"
    )


_COLUMNS = ("version", "to", "workers", "killed", "s", "times as fast", "client MB", "stored MB")


def _cells(study: Study) -> list[list[str]]:
    first = study.rows[0].seconds
    return [
        [
            VERSIONS[row.version],
            PLACES[row.place],
            "" if row.version == "process" else str(row.workers),
            "one" if row.is_killed else "",
            f"{row.seconds:.1f}",
            "" if row.is_killed else f"{first / row.seconds:.2f}",
            f"{row.client_megabytes:.0f}",
            f"{row.stored_megabytes:.1f}",
        ]
        for row in study.rows
    ]


def tables(study: Study) -> list[Table]:
    """Return the table for the screen."""
    rows = [(cells, bool(cells[2])) for cells in _cells(study)]
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
        "Of rows with a killed worker, all values were compared with the source.",
        "",
        *notes(study),
    ]
    return output.write(folder, study.to_dict(), "\n".join(lines) + "\n", {})

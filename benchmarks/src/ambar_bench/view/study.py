"""Times and memory of the viewer: the first picture, and steps of panning and zooming."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ambar
from ambar_bench.machine import machine
from ambar_bench.view.browser import Page, Step, opened_page

TURN = 200.0
"""The turn of the wheel in a zoom step."""
DRAG = 150.0
"""Pixels of a pan step."""


@dataclass(frozen=True)
class Times:
    """Times of a kind of steps, medians in milliseconds."""

    name: str
    count: int
    images: int
    """Steps for which the server sent an image."""
    moved: float
    """Until the browser has painted the last image at its new place."""
    painted: float
    """Until the image of the server is painted; of steps with an image."""
    server: float
    """From the report of the window to the last image, in the server; of steps with an image."""


@dataclass(frozen=True)
class Row:
    """The measurements of a store."""

    name: str
    cells: int
    stored_bytes: int
    first_picture: float
    """Milliseconds from the first visit of a new server until its image is painted; the median."""
    next_picture: float
    """The same of the next visit."""
    steps: list[Times]
    resident_bytes: int
    """The memory of the server at the end."""


@dataclass(frozen=True)
class Study:
    """What was found, and on what."""

    machine: dict[str, str]
    visits: int
    rows: list[Row]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return asdict(self)


class ServerLog:
    """The times of the server: it prints a line for each report of a window and each image."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._log = (folder / "server.log").open("w+", encoding="utf-8")
        command = [sys.executable, "-m", "ambar_bench.view.server", str(path)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(command, stdout=self._log, env=environment)  # noqa: S603
        while not (found := re.search(r"http://\S+", self._read())):
            time.sleep(0.02)
            if self.process.poll() is not None:
                raise RuntimeError(f"{path}: the server of the viewer has ended")
        self.url = found[0]

    def server_times(self) -> list[float]:
        """Return the milliseconds from a report to the last image for it, since the last call."""
        events = re.findall(r"^(window|image) ([\d.]+)$", self._read(), re.MULTILINE)
        self._log.truncate(0)
        times, begin = [], None
        for kind, at in events:
            if kind == "window":
                begin = float(at)
            elif begin is not None:
                times.append((float(at) - begin) * 1e3)
        return times[-1:]

    @property
    def resident_bytes(self) -> int:
        """The memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) * 1024 if found else 0

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait()
        self._log.close()

    def _read(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text(encoding="utf-8").replace("\0", "")


def run_study(
    paths: Sequence[Path],
    scratch: Path,
    *,
    visits: int = 5,
    steps: int = 18,
    pictures: Path | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure the viewer of stores, one after the other.

    Parameters
    ----------
    paths
        Stores with cells.
    scratch
        A folder for the log of the server.
    visits
        The number of new servers, of which the first pictures are medians.
    steps
        The number of steps of each kind.
    pictures
        A folder for a picture of each page at the end.
    report
        Called with what is measured.
    """
    rows = []
    for path in paths:
        report(f"measuring {path.name}")
        rows.append(_measure(path, scratch, visits, steps, pictures))
    found = machine(("bokeh", "panel", "playwright"))
    return Study({**found, "load": f"{os.getloadavg()[0]:.1f}"}, visits, rows)


def _measure(path: Path, scratch: Path, visits: int, steps: int, pictures: Path | None) -> Row:
    first, following = [], []
    for visit in range(visits):
        server = ServerLog(path, scratch)
        try:
            with opened_page() as page:
                first.append(page.first_picture(server.url))
                following.append(page.first_picture(server.url))
                if visit < visits - 1:
                    continue
                page.set_frame()
                measured = list(_measure_steps(page, server, steps))
                if pictures is not None:
                    page.save(str(pictures / f"{path.stem}.png"))
                resident_bytes = server.resident_bytes
        finally:
            server.stop()
    return Row(
        path.stem,
        _cells(path),
        path.stat().st_size,
        statistics.median(first),
        statistics.median(following),
        measured,
        resident_bytes,
    )


def _measure_steps(page: Page, server: ServerLog, count: int) -> Iterator[Times]:
    turns = [TURN * (-1 if number * 3 < count * 2 else 1) for number in range(count)]
    drags = [(DRAG * (-1) ** (number // 3), DRAG * (number % 2)) for number in range(count)]
    yield _times("zoom", server, [partial(page.wheel, -turn) for turn in turns])
    yield _times("pan", server, [partial(page.drag, *drag) for drag in drags])


def _cells(path: Path) -> int:
    opened = ambar.open(path)
    snapshot = opened[-1] if isinstance(opened, ambar.Series) else opened
    return len(snapshot.amr) if isinstance(snapshot, ambar.Snapshot) else 0


def _times(name: str, server: ServerLog, moves: list[Callable[[], Step]]) -> Times:
    done: list[Step] = []
    in_server: list[float] = []
    server.server_times()
    for move in moves:
        done.append(move())
        in_server += server.server_times()
    return Times(
        name,
        len(done),
        sum(step.has_image for step in done),
        statistics.median(step.moved for step in done),
        _median([step.settled for step in done if step.has_image]),
        _median(in_server),
    )


def _median(times: list[float]) -> float:
    return statistics.median(times) if times else float("nan")

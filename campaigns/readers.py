"""A reader beside a writer, a compactor and SIGKILLs: commits never go back and never mix.

The writer stores the number of the commit in every array of the store, and notes each acknowledged
number in a file. The reader must find one number in all arrays. It must not be less than a number
that was noted before the reader opened the store, or that the reader has seen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ambar
from campaigns.campaign import Run, removed
from campaigns.worker import environment

ARRAYS = 4
_NUMBER = struct.Struct("<Q")


def write(path: str, noted: str) -> None:
    """Commit in a loop, starting after the number that the store has."""
    with Path(noted).open("r+b", buffering=0) as file:
        while True:
            with contextlib.suppress(ambar.BusyError), ambar.create(path, "a") as writer:
                number = _only_number(path) + 1
                for _ in range(5):
                    _put(writer, number)
                    writer.commit()
                    os.pwrite(file.fileno(), _NUMBER.pack(number), 0)
                    number += 1


def compact(path: str, _: str) -> None:
    """Compact in a loop."""
    while True:
        with contextlib.suppress(ambar.BusyError):
            ambar.compact(path)
        time.sleep(0.02)


def _put(writer: ambar.Writer, number: int) -> None:
    rng = np.random.default_rng(number)
    for array in range(ARRAYS):
        values = np.full(int(rng.integers(1, 3000)), number)
        writer.create_array(f"g{(array + number) % 3}/a{array}", values, chunks=(500,))
        for other in range(3):
            if other != (array + number) % 3:
                with contextlib.suppress(KeyError):
                    writer.remove(f"g{other}/a{array}")


def _only_number(path: str) -> int:
    """Return the number that all arrays hold; raises ValueError if there are several."""
    store = ambar.Store._open(path)
    found = {int(value) for name in store for value in np.unique(store[name].read())}
    if len(found) != 1 or len(store) != ARRAYS:
        raise ValueError(f"{len(store)} arrays hold {sorted(found)[:5]}")
    return found.pop()


@contextlib.contextmanager
def _processes(path: Path, noted: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    running = {name: _start(name, path, noted) for name in ("write", "compact")}
    try:
        yield running
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def _start(name: str, path: Path, noted: Path) -> subprocess.Popen[bytes]:
    code = f"from campaigns.readers import {name}; {name}({str(path)!r}, {str(noted)!r})"
    return subprocess.Popen([sys.executable, "-c", code], env=environment())


def run(run: Run) -> None:
    """Read beside a writer and a compactor; half of the time in each container."""
    for case, directory in enumerate((False, True)):
        if run.only not in (None, case):
            continue
        path = removed(run.folder / f"{case}.ambar")
        noted = run.folder / f"{case}.noted"
        with ambar.create(path, directory=directory) as writer:
            _put(writer, 1)
        noted.write_bytes(_NUMBER.pack(1))
        end = time.monotonic() + run.seconds / 2
        with _processes(path, noted) as running:
            _read_until(end, run, case, path, noted, running)


def _read_until(
    end: float,
    run: Run,
    case: int,
    path: Path,
    noted: Path,
    running: dict[str, subprocess.Popen[bytes]],
) -> None:
    rng = run.random(case)
    seen, next_kill = 1, time.monotonic() + 2
    while time.monotonic() < end and not run.is_over:
        least = max(seen, _NUMBER.unpack(noted.read_bytes())[0])
        try:
            number = _only_number(str(path))
        except ambar.BusyError:  # a commit replaced entries of the directory: open it again
            run.count("reopened")
            continue
        except Exception:
            run.finding(case, f"after commit {least}: {traceback.format_exc()[-700:]}", path)
            return
        run.count("reads")
        if number < least:
            run.finding(case, f"commit {number} was read after commit {least}", path)
            return
        if number > seen:
            run.count("commits seen")
        seen = number
        for name, process in running.items():
            code = process.poll()
            if code not in (None, -signal.SIGKILL):
                run.finding(case, f"the process {name} ended with {code}", path)
                return
        if time.monotonic() > next_kill:
            name = str(rng.choice(list(running)))
            running[name].kill()
            running[name].wait()
            running[name] = _start(name, path, noted)
            run.count("kills")
            next_kill = time.monotonic() + float(rng.random()) * 3

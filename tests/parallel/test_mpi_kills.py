"""Ranks that are killed while they write: the last commit stands, and the next run goes on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.mpi_programs import (
    LIMIT,
    MPIS,
    SOURCES,
    Mpi,
    compile_program,
    each_mpi,
    variables,
)
from tests.helpers.mpi_programs import run as run_ranks

LENGTH = 200_003
RUNS = 240  # of all MPIs together
NEW = 12  # runs in one store, before the next is begun
STEPS = 12  # of a run without kills
DELAYS = [0.0, 0.005, 0.02, 0.1]  # seconds from a commit to the kill, at most


def ranks_of(program: Path) -> list[int]:
    """Return the processes that run a program now."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if (entry / "exe").readlink() == program:
                found.append(int(entry.name))
    return found


def killed_run(mpi: Mpi, ranks: int, program: Path, arguments: list[str], seed: int) -> int:
    """Run until a moment of chance, kill one rank or all; return how many steps it committed."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated
    words = [*mpi.mpirun(ranks), str(program), *arguments]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=variables(),
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        # MPI is running: from here on the store is made, and written. After these commits:
        lines = [process.stdout.readline() for _ in range(1 + chance.randrange(5))]
        pids = ranks_of(program)
        time.sleep(chance.choice(DELAYS) * chance.random())
        victims = pids if chance.random() < 0.3 else chance.sample(pids, min(1, len(pids)))
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # No rank waits for a dead one for ever: mpirun ends the others.
        deadline = time.monotonic() + LIMIT
        while ranks_of(program):
            assert time.monotonic() < deadline, "a rank waits for ever"
            time.sleep(0.01)
        # Open MPI's mpirun does not always notice that its last rank is gone.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
    return max(
        [int(line.split()[1]) + 1 for line in lines if line.startswith("committed")], default=0
    )


def checked(path: Path, at_least: int) -> int:
    """Check every step of a store; return how many it has."""
    if not path.exists():
        assert at_least == 0
        return 0
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    store.verify()
    steps = len(store.groups) - 1
    assert steps >= at_least, f"{at_least} steps were committed, {steps} are there"
    assert steps <= at_least + 1, "a step that was not committed"
    place = np.arange(LENGTH, dtype=np.uint64) * np.uint64(7919) % np.uint64(104729)
    for step in range(steps):
        found = store[f"step_{step:06d}/u"].read()
        np.testing.assert_array_equal(found, step * 1000003.0 + place.astype("f8"))
    assert store._ambar_attributes()["times"] == list(range(steps))
    return steps


@pytest.mark.campaign
@pytest.mark.timeout(7200)
@each_mpi
def test_killed_ranks_leave_the_last_commit(
    mpi: Mpi, tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    program = compile_program(mpi, SOURCES / "steps.c", tmp_path)
    runs, cut_short, began, found = RUNS // len(MPIS), 0, 0, 0
    for run in range(runs):
        path = tmp_path / f"{run // NEW}.ambar"
        placement = ["counter", "reserved", "queued"][run // 3 % 3]
        durability = ["fsync", "none"][run // 2 % 2]
        before = checked(path, 0) if run % NEW == 0 else found
        arguments = [str(path), str(STEPS), placement, durability, str(LENGTH)]
        committed = killed_run(mpi, 2 + run % 3, program, arguments, run)
        found = checked(path, max(before, committed))
        began += found > before
        cut_short += found < before + STEPS
    # Most are to be killed while they write, not before or behind.
    assert cut_short > runs // 2
    assert began > runs // 2
    for name, count in [("runs", runs), ("killed", cut_short), ("committed before", began)]:
        record_testsuite_property(f"{mpi.name}: {name}", count)
    # And the last store goes on to be written in peace.
    run_ranks(mpi, 4, program, str(path), "2", "counter", "fsync", str(LENGTH))
    checked(path, found + 2)


@each_mpi
def test_a_killed_rank_leaves_the_last_commit(mpi: Mpi, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "steps.c", tmp_path)
    path = tmp_path / "x.ambar"
    arguments = [str(path), "200", "counter", "fsync", str(LENGTH)]
    words = [*mpi.mpirun(3), str(program), *arguments]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=variables()
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "committed 1\n":
                break
        os.kill(ranks_of(program)[1], signal.SIGKILL)
        lines = process.communicate(timeout=LIMIT)[0].splitlines()
    committed = max([1, *(int(line.split()[1]) for line in lines if line.startswith("comm"))]) + 1
    found = checked(path, committed)
    assert found < 200
    arguments[1] = "2"
    run_ranks(mpi, 2, program, *arguments)
    checked(path, found + 2)

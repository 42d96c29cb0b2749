"""Stores written by many MPI ranks with ambar.mpi."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.kinds.registry import overview
from tests.helpers.mpi_programs import SOURCES, Mpi, each_mpi, python_run, variables
from tests.helpers.paths import ROOT

PROGRAM = SOURCES / "blocks.py"
SHAPE = (60, 41, 7)


def check(path: Path, step: int) -> None:
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    assert store.verify()["chunks"] > 0
    truth = np.sqrt(np.arange(np.prod(SHAPE), dtype="f8")).reshape(SHAPE)
    group = f"step_{step:06d}"
    np.testing.assert_array_equal(store[f"{group}/a"].read(), truth)
    assert store[f"{group}/a"].dims == ("z", "y", "x")
    assert store[f"{group}/a"].attrs == {"units": "m"}
    np.testing.assert_array_equal(store[f"{group}/b"].read(), truth.astype("i2"))
    assert np.abs(store[f"{group}/c"].read() - truth.astype("f4")).max() <= 0.01
    assert store[f"{group}/first"].read().astype("i8").tolist() == [1, 2, 3]
    assert store[group].attrs == {"time": 2.5}
    assert store["about"].attrs == {"code": "blocks"}


@each_mpi
@pytest.mark.parametrize("placement", ["counter", "reserved", "queued", "queued counter"])
def test_ranks_write_and_go_on(mpi: Mpi, placement: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    done = python_run(mpi, 4, tmp_path, PROGRAM, "write", path, placement)
    assert not done.stdout
    check(path, 0)
    done = python_run(mpi, 3, tmp_path, PROGRAM, "append", path, placement)
    assert not done.stdout
    check(path, 0)
    check(path, 1)


STEPS = """
import sys, time
import numpy as np
import ambar.mpi
with ambar.mpi.create(sys.argv[1], fsync=False) as writer:
    for step in range(5):
        time.sleep(0.1)
        with writer.step(time=step / 2) as path:
            blocks = writer.blocks((3,), [((writer.rank,), (1,))])
            writer.create_array(f"{path}/rank", shape=(3,), dtype="f8", blocks=blocks)
            values = np.array([float(step + writer.rank)])
            writer.write_region(f"{path}/rank", values, (writer.rank,))
"""


INVALID = """
import sys
import ambar.mpi
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
bad_on_rank_1 = "x" if rank == 1 else "fast"
for given in (
    {"comm": 3},
    {"comm": MPI.COMM_NULL},
    {"profile": bad_on_rank_1},
    {"mode": "x"},
    {"placement": "x"},
    {"placement": 3},
    {"alignment": 0},
    {"extent": -1},
    {"queue_bytes": "x"},
    {"threads": 0},
):
    try:
        ambar.mpi.create(sys.argv[1], **given).close()
        found = "no error"
    except (TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}".partition("; ")[0]
    sys.stdout.write(f"{rank} {found}\\n")
"""


@each_mpi
def test_invalid_arguments_are_the_same_error_on_all_ranks(mpi: Mpi, tmp_path: Path) -> None:
    path, program = tmp_path / "x.ambar", tmp_path / "invalid.py"
    program.write_text(INVALID)
    lines = python_run(mpi, 2, tmp_path, program, path).stdout.splitlines()
    found = [
        [line.partition(" ")[2] for line in lines if line.startswith(f"{rank} ")]
        for rank in range(2)
    ]
    comm = "TypeError: invalid comm: expected an intracommunicator of mpi4py, such as"
    assert found[0] == [
        f"{comm} MPI.COMM_WORLD, found 3",
        f"{comm} MPI.COMM_WORLD, found MPI.COMM_NULL",
        "InvalidError: rank 1: invalid profile 'x': must be one of 'fast', 'balanced', 'small', "
        "'raw'",
        "InvalidError: invalid mode 'x': must be one of 'w-', 'w', 'a'",
        "InvalidError: invalid placement 'x': must be one of 'counter', 'reserved'",
        "InvalidError: invalid placement 3: must be one of 'counter', 'reserved'",
        "InvalidError: invalid alignment: 0",
        "InvalidError: invalid extent: -1",
        "InvalidError: invalid queue_bytes: 'x'",
        "InvalidError: invalid number of threads: 0",
    ]
    assert [text.replace("rank 0: ", "") for text in found[1]] == [
        text.replace("rank 1: ", "") for text in found[0]
    ]
    assert not path.exists()


INVALID_BLOCKS = """
import sys
import ambar.mpi
from mpi4py import MPI
for own in ([((-1,), (1,))], [((0,), (-1,))], ((0,), (4,)), 3):
    with_error_on_rank_1 = own if MPI.COMM_WORLD.rank == 1 else []
    writer = ambar.mpi.create(sys.argv[1])
    try:
        writer.blocks((4,), with_error_on_rank_1)
    except ValueError as error:
        sys.stdout.write(f"{type(error).__name__}: {error}\\n".replace("rank 1: ", ""))
    writer.close()
"""


@each_mpi
def test_invalid_blocks(mpi: Mpi, tmp_path: Path) -> None:
    """Errors named neither the block nor the argument, or were a TypeError of Python."""
    path, program = tmp_path / "x.ambar", tmp_path / "invalid.py"
    program.write_text(INVALID_BLOCKS)
    lines = python_run(mpi, 2, tmp_path, program, path).stdout.splitlines()
    numbers = "expected a sequence of integers >= 0, one for each dimension"
    pairs = "expected a sequence of pairs (start, shape)"
    for expected in (
        f"InvalidError: blocks: invalid start of a block: (-1,); {numbers}",
        f"InvalidError: blocks: invalid shape of a block: (-1,); {numbers}",
        f"InvalidError: blocks: invalid own: ((0,), (4,)); {pairs}",
        f"InvalidError: blocks: invalid own: 3; {pairs}",
    ):
        assert lines.count(expected) == 2
    assert len(lines) == 8


@each_mpi
def test_steps_are_followed_while_ranks_write_them(mpi: Mpi, tmp_path: Path) -> None:
    path, program = tmp_path / "x.ambar", tmp_path / "steps.py"
    program.write_text(STEPS)
    with ThreadPoolExecutor() as pool:
        done = pool.submit(python_run, mpi, 3, tmp_path, program, path)
        followed = ambar.follow(path, timeout=60)
        for step in range(5):
            group = next(followed)
            assert group.path == f"step_{step:06}"
            assert group.attrs["time"] == step / 2
            assert group["rank"].read().tolist() == [step, step + 1, step + 2]
        assert not done.result().stdout


@each_mpi
def test_an_error_on_one_rank_reaches_all(mpi: Mpi, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    done = python_run(mpi, 3, tmp_path, PROGRAM, "fail", path, "queued")
    lines = sorted(done.stdout.splitlines())
    assert lines[-1] == "refused"
    for rank in range(3):
        assert lines[rank].startswith(f"rank {rank}: InvalidError: rank 0: "), done.stdout
        assert "written before" in lines[rank]
    # The step before it stands.
    check(path, 0)

    path = tmp_path / "y.ambar"
    done = python_run(mpi, 3, tmp_path, PROGRAM, "leave", path, "counter")
    assert sorted(done.stdout.splitlines()) == [
        "rank 0: AmbarError: rank 1: rank 1 has had enough",
        "rank 1: RuntimeError: rank 1 has had enough",
        "rank 2: AmbarError: rank 1: rank 1 has had enough",
    ]
    assert list(tmp_path.glob("*y.ambar*")) == []

    path = tmp_path / "x.ambar"
    done = python_run(mpi, 3, tmp_path, PROGRAM, "write", path, "counter")
    assert (
        sorted(line.split(": ")[1] for line in done.stdout.splitlines()) == ["FileExistsError"] * 3
    )


@each_mpi
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (
            "bound",
            "a: the array is not defined alike on all ranks: error_bound: none on rank 0, 0.5",
        ),
        ("skip", "b: the array is not defined alike on all ranks: rank 1 did not define it"),
    ],
)
def test_ranks_that_declare_an_array_differently_commit_nothing(
    mpi: Mpi, mode: str, expected: str, tmp_path: Path
) -> None:
    """They committed, and the values of some ranks were lost or read as 0."""
    path = tmp_path / "x.ambar"
    lines = python_run(mpi, 3, tmp_path, PROGRAM, mode, path, "counter").stdout.splitlines()
    assert len(lines) == 3
    for rank, line in enumerate(sorted(lines)):
        assert line.startswith(f"rank {rank}: InvalidError: {expected}"), line
    assert not path.exists()


@each_mpi
def test_values_that_a_rank_forgot_are_counted(mpi: Mpi, tmp_path: Path) -> None:
    """They read as the fill value, and nothing said that they were never written."""
    path = tmp_path / "x.ambar"
    assert not python_run(mpi, 3, tmp_path, PROGRAM, "forget", path, "reserved").stdout
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    for name in ("a", "b"):
        assert store[name].unwritten_values == 10
        assert store[name].read().tolist() == [0.0] * 10 + [-1.0] * 10 + [0.0] * 10
    arrays = {array["path"]: array for array in overview(path)["arrays"]}
    assert arrays["a"]["unwritten_values"] == 10


@each_mpi
def test_singletons_are_refused(mpi: Mpi, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    path = tmp_path / "x.ambar"
    for name, started in [("MV2_COMM_WORLD_SIZE", 3), ("SLURM_STEP_NUM_TASKS", 2)]:
        done = subprocess.run(
            [sys.executable, PROGRAM, "write", path, "counter"],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            env=variables({name: str(started), **mpi.for_mpi4py(tmp_path)}),
        )
        assert "InvalidError: MPI.COMM_WORLD has 1 rank, but the launcher started" in done.stdout
        assert f"started {started} ({name})" in done.stdout
        assert not path.exists()


def test_without_mpi4py_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['mpi4py'] = None\n"
        "import ambar.mpi\n"
        "try:\n    ambar.mpi.create('x.ambar')\n"
        "except ImportError as error:\n    assert 'ambar[mpi]' in str(error)\n"
        "else:\n    raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env=variables())

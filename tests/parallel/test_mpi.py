"""Stores written by many MPI ranks from C, C++ and Fortran, read back by other numbers of ranks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar import _core
from tests.helpers.c_programs import installed
from tests.helpers.mpi_programs import (
    FORTRAN,
    MODULES,
    MPIS,
    SOURCES,
    Mpi,
    compile_program,
    compiled,
    each_mpi,
    variables,
)
from tests.helpers.mpi_programs import run as run_ranks
from tests.helpers.paths import ROOT

SHAPES = {1: (30_011,), 2: (211, 97), 3: (40, 33, 21), 4: (12, 9, 10, 11)}
INVALID, NOT_FOUND, IO, EXISTS = 13, 14, 18, 20  # exit statuses of blocks.c


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mpi")


def expected(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values that blocks.c writes."""
    place = np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    spread = place * np.uint64(2654435761)
    reals = (spread % np.uint64(1000003)).astype("f8") / 7.0 + place.astype("f8")
    integers = (place * np.uint64(40503) % np.uint64(65521)).astype("i4") - 32768
    return reals, integers


def check(path: Path, shape: tuple[int, ...], step: int = 0) -> None:
    """Check the store as ambar reads it, chunk by chunk."""
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    assert store.verify()["chunks"] > 0
    reals, integers = expected(shape)
    np.testing.assert_array_equal(store[f"run/step_{step:06d}/reals"].read(), reals)
    np.testing.assert_array_equal(store[f"run/step_{step:06d}/integers"].read(), integers)


@each_mpi
@pytest.mark.parametrize("placement", ["counter", "reserved"])
@pytest.mark.parametrize("ndim", SHAPES)
def test_blocks_are_read_back_by_any_number_of_ranks(
    mpi: Mpi, ndim: int, placement: str, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, SOURCES / "blocks.c", folder)
    lengths = [str(length) for length in SHAPES[ndim]]
    path = tmp_path / "x.ambar"
    cuts = ["rows", "uneven", "stripes", *(["grid"] if ndim > 1 else [])]
    cut = cuts[(ndim + (placement == "reserved")) % len(cuts)]
    run_ranks(mpi, 4, program, "write", path, cut, placement, "0", *lengths)
    check(path, SHAPES[ndim])
    readers = [(1, "rows"), (2, "stripes"), (3, "rows"), (8, "rows")]
    for ranks, other in readers if placement == "counter" else readers[1:2]:
        run_ranks(mpi, ranks, program, "read", path, other, placement, "0", *lengths)


@each_mpi
@pytest.mark.parametrize("cut", ["rows", "uneven", "stripes", "grid"])
def test_every_cut_can_be_written_piece_by_piece_and_appended_to(
    mpi: Mpi, cut: str, folder: Path, tmp_path: Path
) -> None:
    # Messages in many small pieces, as those of more than 2 GiB would be.
    program = compile_program(mpi, SOURCES / "blocks.c", folder, "-DAMBAR_MPI_PIECE=1000")
    path, shape = tmp_path / "x.ambar", (257, 190)
    lengths = [str(length) for length in shape]
    run_ranks(mpi, 4, program, "write", path, cut, "counter", "4000", *lengths)
    run_ranks(mpi, 3, program, "append", path, "rows", "reserved", "3000", *lengths)
    run_ranks(mpi, 1, program, "append", path, "stripes", "counter", "0", *lengths)
    run_ranks(mpi, 4, program, "append", path, cut, "queued", "2000", *lengths)
    for step in range(4):
        check(path, shape, step)
    shown = subprocess.run(["unzip", "-tq", path], check=False, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stdout
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(path, mode="r") as opened:
        group = zarr.open_group(opened, mode="r")
        np.testing.assert_array_equal(group["run/step_000002/reals"][:], expected(shape)[0])


@each_mpi
def test_a_rank_decodes_only_what_it_asks_for(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "blocks.c", folder)
    path, lengths = tmp_path / "x.ambar", ["400000"]
    run_ranks(mpi, 4, program, "write", path, "rows", "counter", "0", *lengths)
    array = _core.Store(path).array("/run/step_000000/reals")
    last = max(array.chunk_ranges(), key=lambda found: found.chunk)
    assert last.chunk[0] * array.chunks[0] >= 300_000
    damaged = bytearray(path.read_bytes())
    damaged[last.offset + last.length // 2] ^= 1
    path.write_bytes(damaged)
    done = run_ranks(mpi, 4, program, "read", path, "rows", "counter", "0", *lengths, expect=None)
    # The last rank sees the damage; the others have no part in it.
    assert "rank 3: status 1" in done.stderr
    assert not any(f"rank {rank}:" in done.stderr for rank in range(3))


@each_mpi
def test_what_fails_on_one_rank_fails_on_all(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "blocks.c", folder)

    def refused(mode: str, path: Path, status: int) -> None:
        arguments = (mode, path, "rows", "counter", "0", "30000")
        done = run_ranks(mpi, 4, program, *arguments, expect=None)
        for rank in range(4):
            assert f"rank {rank}: status {status - 10}: " in done.stderr, done.stderr
        assert "all failed" in done.stdout

    refused("write", tmp_path / "none" / "x.ambar", NOT_FOUND)
    refused("append", tmp_path / "x.ambar", NOT_FOUND)
    path = tmp_path / "x.ambar"
    run_ranks(mpi, 4, program, "write", path, "rows", "counter", "0", "30000")
    before = path.read_bytes()
    refused("write", path, EXISTS)
    assert path.read_bytes() == before


def differ(mpi: Mpi, mode: str, folder: Path, path: Path) -> dict[str, list[str]]:
    """Run differ.c on three ranks; return what each step of it printed, by rank."""
    report = str(SOURCES / "differ_report.c")
    program = compile_program(mpi, SOURCES / "differ.c", folder, report)
    lines = run_ranks(mpi, 3, program, path, mode).stdout.splitlines()
    said: dict[str, list[str]] = {}
    for line in sorted(lines):
        _, what, text = line.split(": ", 2)
        said.setdefault(what, []).append(text)
    assert all(len(texts) == 3 for texts in said.values())
    return said


@each_mpi
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("bound", "group/a: the array is not defined alike on all ranks: error_bound: none on"),
        ("skip", "group/b: the array is not defined alike on all ranks: rank 1 did not define it"),
    ],
)
def test_ranks_that_define_an_array_differently_commit_nothing(
    mpi: Mpi, mode: str, expected: str, folder: Path, tmp_path: Path
) -> None:
    """They committed, and the values of some ranks were lost or read as 0."""
    path = tmp_path / "x.ambar"
    said = differ(mpi, mode, folder, path)
    assert all(text.startswith(f"3: {expected}") for text in said["commit"]), said
    for what in ("again", "step", "define"):
        assert all(text.startswith("3: ") and len(text) > 20 for text in said[what]), said
    assert list(tmp_path.iterdir()) == []


@each_mpi
def test_values_that_a_rank_forgot_are_counted(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    """They read as zeros, and nothing said that they were never written."""
    path = tmp_path / "x.ambar"
    assert differ(mpi, "forget", folder, path) == {"commit": ["0: "] * 3}
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    forgotten, complete = store["group/a"], store["group/b"]
    assert (forgotten.unwritten_values, complete.unwritten_values) == (1000, 0)
    assert forgotten.attrs == {"ambar": {"unwritten_values": 1000}}
    np.testing.assert_array_equal(forgotten[1000:2000], np.full(1000, -1.0))
    command: list[str | Path] = [sys.executable, "-m", "ambar", "info", path]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=variables())
    assert "incomplete: group/a: 1,000 of 3,000 values were not written" in shown.stdout


@each_mpi
def test_a_full_disk_under_one_rank_keeps_all_from_committing(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, SOURCES / "blocks.c", folder)
    path = tmp_path / "x.ambar"
    run_ranks(mpi, 4, program, "write", path, "rows", "counter", "0", "400000")
    full = {"DISK_IS_FULL_ON": "2"}
    for placement in ("counter", "queued"):
        arguments = ("append", path, "rows", placement, "0", "400000")
        done = run_ranks(mpi, 4, program, *arguments, environment=full, expect=None)
        for rank in range(4):
            assert f"rank {rank}: status 8: rank 2: " in done.stderr, done.stderr
        assert "all failed" in done.stdout
        check(path, (400_000,))
    run_ranks(mpi, 4, program, *arguments)
    check(path, (400_000,), 1)


@each_mpi
def test_singletons_are_refused(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "blocks.c", folder)
    path = tmp_path / "x.ambar"
    arguments = [str(program), "write", str(path), "rows", "counter", "0", "1000"]
    # What a program of one MPI sees under the mpirun of another.
    for name in ["SLURM_STEP_NUM_TASKS", "MV2_COMM_WORLD_SIZE"]:
        done = run_ranks(mpi, 1, "env", "-u", "PMI_SIZE", "-u", "OMPI_COMM_WORLD_SIZE",
                         f"{name}=4", *arguments, expect=None)  # fmt: skip
        assert "status 3: rank 0: MPI_COMM_WORLD has 1 rank, but the launcher started 4" in (
            done.stderr
        )
    assert not path.exists()
    run_ranks(mpi, 1, "env", "SLURM_NTASKS=4", *arguments)
    check(path, (1000,))


def test_a_program_under_another_mpirun_is_refused(folder: Path, tmp_path: Path) -> None:
    if len(MPIS) < 2:
        pytest.skip("there are no two MPIs here")
    one, other = MPIS[:2]
    for mpi, launcher in [(one, other), (other, one)]:
        program = compile_program(mpi, SOURCES / "blocks.c", folder)
        arguments = ("write", tmp_path / "x.ambar", "rows", "counter", "0", "1000")
        done = run_ranks(launcher, 2, program, *arguments, expect=None)
        assert "MPI_COMM_WORLD has 1 rank, but the launcher started 2" in done.stderr
        assert not (tmp_path / "x.ambar").exists()


@each_mpi
def test_fortran_has_its_own_order(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "columns.f90", folder)
    for ranks in (1, 4):
        path = tmp_path / f"{ranks}.ambar"
        run_ranks(mpi, ranks, program, path)
        store = ambar.open(path)
        assert isinstance(store, ambar.Store)
        assert store.verify()["chunks"] > 0
        x, y, z, t = np.ogrid[1:51, 1:32, 1:13, 1:6]
        u = (1e6 * x + 1e3 * y + z + t / 8).transpose()
        np.testing.assert_array_equal(store["run/all"].read(), u)
        assert np.abs(store["run/cube"].read() - u[0]).max() <= 0.5
        plane = store["run/plane"]
        np.testing.assert_array_equal(plane.read(), (100 * x + y)[:, :, 0, 0].transpose())
        assert plane.dims == ("y", "x")
        assert plane.chunks == (10, 25)
        np.testing.assert_array_equal(store["run/line"].read(), 10 * np.arange(1, 32))
        assert store["run"].attrs == {"code": "columns"}


def run_alone(source: Path, folder: Path) -> None:
    """Run a program in Fortran without MPI, which writes the store x.ambar in the folder."""
    gfortran = shutil.which("gfortran")
    if gfortran is None:
        pytest.skip("no gfortran here")
    program, lib = folder / "alone", installed() / "lib"
    sources = [*(FORTRAN / f"{name}.f90" for name in MODULES), source]
    flags = ["-std=f2008ts", "-Wall", "-Wextra", "-Werror"]
    links = [f"-L{lib}", "-lambar", f"-Wl,-rpath,{lib}"]
    compiled([gfortran, *flags, *sources, "-o", program, *links], folder)
    subprocess.run([program, folder / "x.ambar"], check=True, timeout=300)


def test_fortran_without_mpi(tmp_path: Path) -> None:
    run_alone(SOURCES / "alone.f90", tmp_path)
    store = ambar.open(tmp_path / "x.ambar")
    assert isinstance(store, ambar.Store)
    assert store.groups[1:] == ["step_000000", "step_000001"]
    np.testing.assert_array_equal(store["step_000001/u"].read(), [[2, 4, 6], [3, 6, 9]])
    np.testing.assert_array_equal(store["step_000001/v"].read(), [5, -7])
    assert store["step_000001/v"].unwritten_values == 1
    outputs = ambar.open_store(tmp_path / "x.ambar.outputs")
    assert outputs.groups[1:] == ["output_00007"]
    np.testing.assert_array_equal(outputs["output_00007/n"].read(), [2])


def test_attributes_steps_and_logicals_in_fortran(tmp_path: Path) -> None:
    run_alone(SOURCES / "attributes.f90", tmp_path)
    store = ambar.open_store(tmp_path / "x.ambar")
    u = 0.5 * np.arange(1, 31).reshape(5, 6)
    mask = np.round(2 * u) % 3 == 0
    u[1:, 3:] = u[:0:-1, :2:-1]
    for step in range(3):
        group = f"run/step_{step:06d}"
        assert store[group].attrs == {"time": 0.25 * (step + 1), "cycle": step + 1}
        np.testing.assert_array_equal(store[f"{group}/u"].read(), u)
        assert dict(store[f"{group}/u"].attrs) == {
            "units": "K",
            "origin": [1.5, -2.0],
            "counts": [2**40, 3],
            "is_old": False,
            "flags": [True, False],
        }
        if step != 1:
            stored = store[f"{group}/mask"]
            assert stored.dtype == bool
            np.testing.assert_array_equal(stored[:, :6], mask)
            assert stored[:, 6:].all()


@each_mpi
def test_steps_are_written_while_the_next_is_computed(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, ROOT / "examples" / "mpi" / "background.c", folder)
    reader = compile_program(mpi, ROOT / "examples" / "c" / "steps.c", folder)
    path = tmp_path / "wave.ambar"
    done = run_ranks(mpi, 3, program, path, "4", "300000")
    assert done.stdout.count("step ") == 3
    store = ambar.open_store(path)
    for step in range(4):
        wave = store[f"step_{step:06d}/wave"]
        expected = np.sin(1e-3 * np.arange(300_000) + 0.1 * step)
        assert np.abs(wave.read() - expected).max() <= 1e-6
    shown = subprocess.run([reader, path], check=True, capture_output=True, text=True).stdout
    lines = shown.splitlines()
    assert lines[2] == "step_000001 at 0.1"
    assert lines[3].startswith(f"  step_000001/wave (x), {wave.codecs}")
    assert lines[3].endswith(", at most 1")


@each_mpi
def test_fortran_writes_cells_and_particles_in_the_background(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, ROOT / "examples" / "mpi" / "amr.f90", folder)
    path = tmp_path / "run.ambar"
    run_ranks(mpi, 3, program, path, "2")
    series = ambar.open_series(path)
    assert series.outputs == [10, 20]
    np.testing.assert_array_equal(series.times, [0.5, 1.0])
    cells = series[1].amr.read(["x", "y", "z", "density", "temperature"])
    x, y, z, density = (np.asarray(cells[name]) for name in ("x", "y", "z", "density"))
    expected = 1 + x + 2 * y + 4 * z
    assert len(x) == 32**3 - 8**3 + 16**3
    assert np.abs(density / expected - 1).max() <= 1e-4
    np.testing.assert_allclose(cells["temperature"], 100 * expected, rtol=1e-14)
    stars = series[1].particles.read(["position_x", "position_y", "position_z", "id"])
    ids = np.asarray(stars["id"])
    assert sorted(ids) == list(range(1, 601))
    for d in range(3):
        place = 3 * (ids - 1) + d + 1
        found = np.asarray(stars[f"position_{'xyz'[d]}"])
        np.testing.assert_allclose(found, np.mod(0.618 * place * place, 1), atol=1e-9)


@each_mpi
@pytest.mark.parametrize("language", ["cpp", "f90"])
def test_the_example_goes_on_where_it_ended(
    mpi: Mpi, language: str, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, ROOT / "examples" / "mpi" / f"heat.{language}", folder)
    path = tmp_path / "heat.ambar"
    run_ranks(mpi, 4, program, path, "2", "48")
    run_ranks(mpi, 3, program, path, "1", "48")
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    assert store.groups[1:] == [f"step_{step:06d}" for step in range(3)]
    u = np.zeros((50, 50))
    u[13:37, 13:37] = 1
    for step in range(3):
        for _ in range(20):
            around = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1]
            u[1:-1, 1:-1] += 0.2 * (around - 4 * u[1:-1, 1:-1])
        array = store[f"step_{step:06d}/temperature"]
        np.testing.assert_allclose(array.read(), u[1:-1, 1:-1], rtol=0, atol=1e-13)
        assert array.dims == ("y", "x")
        assert store[f"step_{step:06d}"].attrs["time"] == 20 * (step + 1)

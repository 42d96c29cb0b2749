"""Cells and particles that many ranks write from memory: what a converted plotfile has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from tests.helpers.amrex_plotfiles import BOXES_3D, write_plotfile
from tests.helpers.mpi_programs import SOURCES, Mpi, compile_program, each_mpi
from tests.helpers.mpi_programs import run as run_ranks
from tests.helpers.paths import PROGRAMS
from tests.helpers.sample_outputs import amrex_sample

KEEP, DROP = "1", "2"
# Boxes that share unit blocks of 16 cells a side, among them.
BOXES = [
    BOXES_3D[0],
    [((8, 8, 8), (23, 23, 23)), ((24, 8, 8), (39, 15, 23)), ((24, 16, 8), (31, 23, 15))],
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("in_situ")


@pytest.fixture(scope="session", params=["small", "nyx64_plt00040"])
def plotfile(request: pytest.FixtureRequest, folder: Path) -> Path:
    if request.param == "small":
        return write_plotfile(folder / "small", boxes=BOXES)
    return amrex_sample(request.param)


def describe(plotfile: Path, folder: Path) -> Path:
    """Write what boxes.c needs to know of a plotfile, and its values."""
    path = folder / f"{plotfile.name}.bin"
    if path.exists():
        return path
    core = _core.Amrex(plotfile)
    info, levels = core.info, core.levels
    boxes = [np.array(level["boxes"], dtype="i8").reshape(-1, 6) for level in levels]
    with path.open("wb") as file:

        def put(values: object, dtype: str) -> None:
            file.write(np.ascontiguousarray(values, dtype=dtype).tobytes())

        put([len(levels), len(info["fields"])], "i8")
        put([info["lower"], info["upper"]], "f8")
        for level in info["levels"]:
            put([level["domain"]["lo"], np.array(level["domain"]["hi"]) + 1], "i8")
        put([level["cell_size"] for level in info["levels"]], "f8")
        put([level["ratio"] for level in info["levels"]], "i4")
        put([len(own) for own in boxes], "i4")
        put(np.concatenate(boxes), "i8")
        put([np.bytes_(name) for name in info["fields"]], "S64")
        for level, own in enumerate(boxes):
            for index in range(len(own)):
                for name in info["fields"]:
                    put(core.read_box(level, index, name), "f8")
    return path


def same_boxes(store: Path, plotfile: Path, folder: Path, bound: float) -> None:
    """Check all cells of all boxes, covered ones too, by writing a plotfile of the store."""
    exported = folder / "again"
    ambar.export(store, exported)
    ours, theirs = _core.Amrex(exported), _core.Amrex(plotfile)
    info, told = theirs.info, ours.info
    for key in ("ndim", "lower", "upper", "fields"):
        assert told[key] == info[key]
    for level, there in enumerate(theirs.levels):
        assert ours.levels[level]["boxes"] == there["boxes"]
        for index in range(len(there["boxes"])):
            for name in info["fields"]:
                a, b = (side.read_box(level, index, name) for side in (ours, theirs))
                if bound:
                    assert np.abs(a - b).max() <= bound
                else:
                    np.testing.assert_array_equal(a.view("u8"), b.view("u8"))


@each_mpi
@pytest.mark.parametrize(("ranks", "deal"), [(1, "0"), (2, "1"), (3, "2"), (5, "0")])
def test_ranks_write_what_converting_the_plotfile_does(
    mpi: Mpi, ranks: int, deal: str, plotfile: Path, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, SOURCES / "boxes.c", folder)
    path = tmp_path / "x.ambar"
    run_ranks(mpi, ranks, program, describe(plotfile, folder), path, deal, KEEP, "0", "0")
    same_boxes(path, plotfile, tmp_path, 0.0)
    snapshot = ambar.open(path)
    assert isinstance(snapshot, ambar.Snapshot)
    assert snapshot.info.time == 0.25
    alone = tmp_path / "alone.ambar"
    ambar.convert(plotfile, alone, covered="keep", components=["cells"])
    by_ranks, alone_attributes = (_core.Store(store).attributes("/amr") for store in (path, alone))
    assert by_ranks == alone_attributes
    ours, theirs = (ambar.compare(plotfile, store) for store in (path, alone))
    assert ours.held
    for a, b in zip(ours.fields, theirs.fields, strict=True):
        # One process chooses codecs by all values, ranks by one box.
        assert a.ratio >= 0.9 * b.ratio, (a.field, a.ratio, b.ratio)


@each_mpi
def test_a_bound_holds_and_covered_cells_are_left_out(
    mpi: Mpi, plotfile: Path, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, SOURCES / "boxes.c", folder)
    description = describe(plotfile, folder)
    kept, dropped = tmp_path / "kept.ambar", tmp_path / "dropped.ambar"
    run_ranks(mpi, 3, program, description, kept, "2", KEEP, "0.5", "0")
    same_boxes(kept, plotfile, tmp_path, 0.5)
    run_ranks(mpi, 3, program, description, dropped, "2", "0", "0.5", "0")
    found = ambar.compare(dropped, plotfile)
    assert found.held
    assert all(field.bound == 0.5 for field in found.fields)
    levels = _core.Store(dropped).attributes("/amr")["ambar"]["levels"]
    assert levels[0]["dropped"] == [field.field for field in found.fields]
    levels = _core.Store(kept).attributes("/amr")["ambar"]["levels"]
    assert not any(level["dropped"] for level in levels)


@each_mpi
def test_particles_of_all_ranks_are_there(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    program = compile_program(mpi, SOURCES / "boxes.c", folder)
    small = folder / "particles"
    if not small.exists():
        write_plotfile(small, boxes=BOXES)
    path = tmp_path / "x.ambar"
    run_ranks(mpi, 5, program, describe(small, folder), path, "0", KEEP, "0", "2")
    snapshot = ambar.open(path)
    assert isinstance(snapshot, ambar.Snapshot)
    rows = snapshot.particles.read(["position_x", "position_z", "id"])
    order = np.argsort(rows["id"])
    ids = np.arange(4000.0)
    np.testing.assert_array_equal(rows["id"][order], ids)
    np.testing.assert_array_equal(rows["position_x"][order], np.fmod(0.618 * (ids + 1), 1.0))
    np.testing.assert_array_equal(rows["position_z"][order], np.fmod(0.618 * 3 * (ids + 1), 1.0))


@each_mpi
def test_a_box_that_is_missing_keeps_all_from_committing(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    program = compile_program(mpi, SOURCES / "boxes.c", folder)
    small = folder / "mistake"
    if not small.exists():
        write_plotfile(small, boxes=BOXES)
    path = tmp_path / "x.ambar"
    done = run_ranks(
        mpi, 3, program, describe(small, folder), path, "0", KEEP, "0", "1", expect=None
    )
    assert done.returncode != 0
    assert "expected the values of all boxes of rank" in done.stderr
    assert not path.exists()


def plotfile_program(mpi: Mpi, folder: Path, mode: str, path: Path, value: float) -> list[str]:
    """Run plotfile.cpp on two ranks; return what it printed, by rank.

    Where the ranks end before MPI does, any status is right: mpirun may have killed one of them.
    """
    headers = f"-I{PROGRAMS / 'amrex'}"
    program = compile_program(mpi, SOURCES / "plotfile.cpp", folder, headers)
    expect = None if mode.endswith(":die") else 0
    done = run_ranks(mpi, 2, program, path, str(value), mode, expect=expect)
    return sorted(done.stdout.splitlines())


def time_of(path: Path) -> float:
    """Return the time of a store, once its values were checked."""
    snapshot = ambar.open(path)
    assert isinstance(snapshot, ambar.Snapshot)
    values: Any = (
        _core.Store(path).array("/amr/level_0/phi").read([(0, 1, 1)] + [(0, 16, 1)] * 3, None, 1)
    )
    assert values.min() == snapshot.info.time
    return float(snapshot.info.time)


@each_mpi
def test_a_plotfile_that_exists_is_renamed(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    """A run that resumed from a checkpoint aborted at a step that it had written before."""
    path = tmp_path / "plt00010.ambar"
    assert plotfile_program(mpi, folder, "keep", path, 1.0) == []
    assert plotfile_program(mpi, folder, "class", path, 2.0) == []
    (old,) = tmp_path.glob("plt00010.ambar.old.*")
    assert (time_of(path), time_of(old)) == (2.0, 1.0)
    assert plotfile_program(mpi, folder, "replace", path, 3.0) == []
    assert list(tmp_path.glob("plt00010.ambar.old.*")) == [old]
    assert time_of(path) == 3.0


@each_mpi
def test_a_bound_of_a_variable_that_does_not_exist_is_an_error(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    """It was ignored, and the variable that was meant was stored without loss."""
    path = tmp_path / "plt.ambar"
    plotfile_program(mpi, folder, "keep", path, 1.0)
    found = plotfile_program(mpi, folder, "unknown", path, 2.0)
    why = 'rank 0: an error bound is given for "phi2", but such a field does not exist; '
    why += "did you mean phi? available: phi"
    assert found == [f"rank {rank}: {why}" for rank in range(2)]
    found = plotfile_program(mpi, folder, "unknown_particles", path, 2.0)
    why = 'error_bounds has "tracers/mass", but such a component of particles does not exist'
    assert [line.split(";")[0] for line in found] == [f"rank {rank}: {why}" for rank in range(2)]
    found = plotfile_program(mpi, folder, "wrong", path, 2.0)
    why = 'rank 0: error_bounds["phi"]: invalid error bound: "1e-3 of rnage"'
    assert [line.split(";")[0] for line in found] == [f"rank {rank}: {why}" for rank in range(2)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["plt.ambar"]
    assert time_of(path) == 1.0


@each_mpi
def test_a_bound_of_the_range_is_that_of_all_ranks(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "plt.ambar"
    assert plotfile_program(mpi, folder, "bounded", path, 2.0) == []
    array = _core.Store(path).array("/amr/level_0/phi")
    assert array.error_bound == pytest.approx(1e-3 * 4.095)


def errors_of_blocks(path: Path, level: int) -> list[float]:
    """Return the largest error of each of the two blocks of plotfile.cpp's noise on a level."""
    at = np.arange(4096.0).reshape(16, 16, 16)
    expected = 1.0 + np.fmod(0.618 * at * at, 1.0)
    array = _core.Store(path).array(f"/amr/level_{level}/phi")
    blocks: list[Any] = [array.read([(i, i + 1, 1)] + [(0, 16, 1)] * 3, None, 1) for i in range(2)]
    return [float(np.abs(block.reshape(16, 16, 16) - expected).max()) for block in blocks]


@each_mpi
def test_bounds_differ_by_level_and_box(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "levels.ambar"
    assert plotfile_program(mpi, folder, "*=0.1;phi@1:=1e-4;phi@7:=0", path, 1.0) == []
    assert all(1e-4 < error <= 0.1 for error in errors_of_blocks(path, 0))
    assert all(0 < error <= 1e-4 for error in errors_of_blocks(path, 1))
    path = tmp_path / "range.ambar"
    bounds = "p*=0.1 of range;p*@1=1e-4 of range"
    assert plotfile_program(mpi, folder, bounds, path, 1.0) == []
    assert all(1e-4 < error <= 0.1 for error in errors_of_blocks(path, 0))
    assert all(0 < error <= 1e-4 for error in errors_of_blocks(path, 1))
    path = tmp_path / "box.ambar"
    box = "phi=0.1;phi@0@[0:0.4, :, :]=1e-4"
    assert plotfile_program(mpi, folder, box, path, 1.0) == []
    assert 0 < errors_of_blocks(path, 0)[0] <= 1e-4
    assert all(1e-4 < error <= 0.1 for error in errors_of_blocks(path, 1))
    told = _core.Store(path).attributes("/amr")["ambar"]["requested_bounds"]
    assert told == {"phi": "1e-1", "phi@0@[0:0.4, :, :]": "1e-4"}


@each_mpi
@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ("phi@7=1", 'amr: an error bound is given for "phi@7", but such a level does not exist'),
        ("phi@x=1", 'invalid target of an error bound: "phi@x"; "x" is not a level'),
        ("phi@[0:1]=1", 'invalid target of an error bound: "phi@[0:1]"; expected a box of 3'),
        ("q*=1", 'an error bound is given for "q*", but such a field does not exist'),
        ("phi=1;phi@1=1 rms", 'the error bounds of "phi", "1e0" and "1e0 rms", cannot be compared'),
        ("tracers/mass@1=1", 'error_bounds["tracers/mass@1"]: particles take one bound for each'),
    ],
)
def test_levels_and_boxes_that_do_not_exist_are_errors(
    mpi: Mpi, folder: Path, tmp_path: Path, bounds: str, why: str
) -> None:
    found = plotfile_program(mpi, folder, bounds, tmp_path / "x.ambar", 1.0)
    assert len(found) == 2
    assert all(why in line for line in found), found
    assert list(tmp_path.iterdir()) == []


@each_mpi
def test_options_that_differ_between_ranks_are_an_error(
    mpi: Mpi, folder: Path, tmp_path: Path
) -> None:
    """Ranks with other bounds waited for reductions that the others did not make."""
    path = tmp_path / "plt.ambar"
    found = plotfile_program(mpi, folder, "differ", path, 2.0)
    assert len(found) == 2
    assert all("rank 1: the options differ from those of rank 0" in line for line in found)
    assert list(tmp_path.iterdir()) == []


@each_mpi
def test_steps_are_added_to_one_store(mpi: Mpi, folder: Path, tmp_path: Path) -> None:
    """Killed writers leave the steps before; a step that a restarted run reaches is replaced."""
    path = tmp_path / "run.ambar"
    assert plotfile_program(mpi, folder, "series:0:die", path, 9.0) == []
    assert not path.exists()
    for step, value in ((0, 1.0), (10, 2.0), (100000, 4.0)):
        assert plotfile_program(mpi, folder, f"series:{step}", path, value) == []
    assert plotfile_program(mpi, folder, "series:20:die", path, 9.0) == []
    series = ambar.open_series(path)
    assert series.outputs == [0, 10, 100000]
    assert plotfile_program(mpi, folder, "series:10", path, 3.0) == []
    assert list(series.times) == [1.0, 2.0, 4.0]  # of the commit that was opened
    series = ambar.open_series(path)
    assert list(series.times) == [1.0, 3.0, 4.0]
    found = plotfile_program(mpi, folder, "series:10:other", path, 5.0)
    assert any('output 10 is "plt00010", found "smallplt00010"' in line for line in found)
    for snapshot in series:
        assert snapshot.amr.read(["phi"])["phi"].min() == snapshot.info.time
    series.store.verify()
    ambar.export(path, tmp_path / "plotfiles")
    names = sorted(place.name for place in (tmp_path / "plotfiles").iterdir())
    assert names == ["plt00000", "plt00010", "plt100000"]
    again = ambar.open_snapshot(tmp_path / "plotfiles" / "plt00010")
    assert again.amr.read(["phi"])["phi"].min() == again.info.time == 3.0
    # Stores of other kinds stay.
    single = tmp_path / "plt.ambar"
    plotfile_program(mpi, folder, "keep", single, 1.0)
    found = plotfile_program(mpi, folder, "series:10", single, 2.0)
    assert len(found) == 2
    assert all("expected a series of outputs, found a store" in line for line in found)
    assert time_of(single) == 1.0
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "plotfiles",
        "plt.ambar",
        "run.ambar",
    ]

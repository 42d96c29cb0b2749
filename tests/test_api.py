"""Snapshots equal the true values, in whole and in part, from a store and from RAMSES' files."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ambar
from conftest import CASES, DATA, by_place, output, truth


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["fast", "balanced", "small", "ramses"])
def test_cells_equal_the_truth(case: str, way: str, tmp_path: Path) -> None:
    if way == "ramses":
        snapshot = ambar.read_ramses(output(case))
    else:
        ambar.convert(output(case), tmp_path / "x.ambar", profile=way)
        snapshot = ambar.open(tmp_path / "x.ambar")
    expected = truth(case)
    cells = snapshot.amr.cells([*expected])
    found, true = by_place(cells), by_place(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(cells[name][found], values[true], err_msg=name)
        assert cells[name].dtype.kind == values.dtype.kind


def test_particles_equal_the_truth(gravpart: ambar.Snapshot) -> None:
    expected = truth("gravpart", "part")
    rows = gravpart.particles.read()
    found, true = np.argsort(rows["identity"]), np.argsort(expected["identity"])
    for name, values in expected.items():
        np.testing.assert_array_equal(rows[name][found], values[true], err_msg=name)


def test_both_ways_give_the_same(stores: dict[str, Path]) -> None:
    stored, direct = ambar.open(stores["gravpart"]), ambar.read_ramses(output("gravpart"))
    left, right = stored.amr.cells(), direct.amr.cells()
    assert left.columns == right.columns
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)
    left, right = stored.particles.read(), direct.particles.read()
    assert left.columns == right.columns
    orders = np.argsort(left["identity"]), np.argsort(right["identity"])
    for name in left:
        np.testing.assert_array_equal(left[name][orders[0]], right[name][orders[1]], err_msg=name)
    assert stored.info == direct.info
    assert stored.components == direct.components
    assert stored.missing == direct.missing


def test_default_columns_and_positions(gravpart: ambar.Snapshot) -> None:
    cells = gravpart.amr.cells()
    assert cells.columns[:4] == ["level", "x", "y", "z"]
    assert "domain" not in cells
    assert cells["level"].dtype == np.int32
    place = gravpart.amr.cells(["ix", "dx", "level"])
    np.testing.assert_array_equal(cells["x"], (place["ix"] + 0.5) * place["dx"])
    np.testing.assert_array_equal(place["dx"], 0.5 ** place["level"])


def test_aliases_are_accepted_wherever_a_field_is_named(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.cells(["rho", "vx", "epot", "cx", "ax"], where="rho > 1 and p < 10")
    assert cells.columns == ["density", "velocity_x", "potential", "ix", "acceleration_x"]
    np.testing.assert_array_equal(cells["rho"], cells["density"])
    assert amr.dtype("p") == np.float64
    assert amr.project("rho", level=4, weight="rho").name == "density"
    assert gravpart.particles.read(["x", "id"]).columns == ["position_x", "identity"]


REGIONS = {
    "box": (ambar.Box((0.1, 0.2, 0.3), (0.5, 0.6, 0.45)), None),
    "half": (ambar.Box((None, None, 0.5), (None, None, None)), None),
    "centred": (ambar.Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1), center="bc"), None),
    "sphere": (ambar.Sphere("bc", 0.3), (0, 0.3)),
    "shell": (ambar.Shell(("bc", 0.5, 0.5), 0.2, 0.4), (0.2, 0.4)),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions_select_by_the_centre(gravpart: ambar.Snapshot, name: str) -> None:
    region, radii = REGIONS[name]
    everything = gravpart.amr.cells(["x", "y", "z", "density"])
    centre = np.stack([everything[axis] for axis in "xyz"], axis=1)
    if radii is None:
        _, lo, hi = region.to_code(gravpart.info)
        inside = ((centre >= lo) & (centre <= hi)).all(axis=1)
    else:
        distance = np.sqrt(((centre - 0.5) ** 2).sum(axis=1))
        inside = (distance >= radii[0]) & (distance <= radii[1])
    assert 0 < inside.sum() < len(inside)
    chosen = gravpart.amr.cells(["x", "density"], region=region)
    np.testing.assert_array_equal(chosen["density"], everything["density"][inside])
    np.testing.assert_array_equal(chosen["x"], everything["x"][inside])


def test_particles_in_a_region_and_under_a_condition(gravpart: ambar.Snapshot) -> None:
    rows = gravpart.particles.read()
    place = np.stack([rows[f"position_{axis}"] for axis in "xyz"], axis=1)
    inside = ((place - 0.5) ** 2).sum(axis=1) <= 0.3**2
    inside &= rows["velocity_x"] > 0
    chosen = gravpart.particles.read(
        ["identity"], region=ambar.Sphere("bc", 0.3), where="vx > 0 and family == 1"
    )
    np.testing.assert_array_equal(chosen["identity"], rows["identity"][inside])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("density > 1.5", lambda c: c["density"] > 1.5),
        ("5 <= level <= 5", lambda c: c["level"] == 5),
        (
            "not (density < 2 or vx > 1e-1)",
            lambda c: ~((c["density"] < 2) | (c["velocity_x"] > 0.1)),
        ),
    ],
)
def test_conditions(gravpart: ambar.Snapshot, where: str, expected) -> None:
    everything = gravpart.amr.cells(["density", "velocity_x", "level"])
    chosen = gravpart.amr.cells(["density"], where=where)
    np.testing.assert_array_equal(chosen["density"], everything["density"][expected(everything)])


def test_levels(gravpart: ambar.Snapshot) -> None:
    assert gravpart.amr.levels == (4, 6)
    cells = gravpart.amr.cells(["level"], levels=(5, 5))
    assert set(cells["level"]) == {5}


def test_small_selections_touch_few_chunks(stores: dict[str, Path]) -> None:
    amr = ambar.open(stores["gravpart"]).amr
    assert amr.chunks_touched() == amr.chunks
    assert amr.chunks_touched(where="density > 1e30") == 0


def test_projection_conserves_mass(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.cells(["density", "dx"])
    mass = (cells["density"] * cells["dx"] ** 3).sum()
    for level in (3, 5, 7):
        image = amr.project("density", axis="y", level=level)
        assert image.dims == ("x", "z")
        side = float(image["x"][1] - image["x"][0])
        assert float(image.sum()) * side**2 == pytest.approx(mass, rel=1e-13)


def test_weighted_projection_is_a_mean(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.cells(["density", "velocity_x", "dx"])
    mass = cells["density"] * cells["dx"] ** 3
    image = amr.project("vx", level=0, weight="density")
    assert image.shape == (1, 1)
    expected = (cells["velocity_x"] * mass).sum() / mass.sum()
    assert float(image[0, 0]) == pytest.approx(expected, rel=1e-12)


def test_grid_and_slice_have_the_cells_values(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    level = amr.levels[1]
    cube = amr.grid("density", level=level)
    assert cube.shape == (2**level,) * 3
    cells = amr.cells(["level", "ix", "iy", "iz", "density"], levels=(level, level))
    values = cube.to_numpy()[cells["ix"], cells["iy"], cells["iz"]]
    np.testing.assert_array_equal(values, cells["density"])
    cut = amr.slice("density", axis="x", at=0.3, level=level)
    np.testing.assert_array_equal(cut, cube.sel(x=0.3, method="nearest"))
    part = amr.grid("density", level=level, region=ambar.Box((0.25, 0, 0), (0.5, 1, 0.25)))
    np.testing.assert_array_equal(
        part, cube.sel(x=part["x"], y=part["y"], z=part["z"], method="nearest")
    )
    assert part.shape == (2**level // 4, 2**level, 2**level // 4)


def test_missing_components_are_a_clear_statement(stores: dict[str, Path]) -> None:
    for snapshot in (ambar.open(stores["sedov"]), ambar.read_ramses(output("sedov"))):
        assert "particles" in snapshot.missing
        with pytest.raises(ambar.NotFoundError, match="no particles"):
            _ = snapshot.particles
        assert "hydro" in repr(snapshot)
    with pytest.raises(ambar.NotFoundError, match="no particles"):
        ambar.read_ramses(output("sedov"), components=["particles"])


def test_unknown_names_name_those_there_are(gravpart: ambar.Snapshot) -> None:
    with pytest.raises(ambar.NotFoundError, match="density"):
        gravpart.amr.cells(["entropy"])
    with pytest.raises(ambar.NotFoundError, match="density"):
        gravpart.amr.project("entropy", level=3)
    with pytest.raises(ambar.NotFoundError, match="mass"):
        gravpart.particles.read(["charge"])
    with pytest.raises(ambar.InvalidError, match="axis"):
        gravpart.amr.slice("density", axis="w")
    with pytest.raises(ambar.InvalidError):
        gravpart.amr.cells(where="density >")


def test_partial_conversion(tmp_path: Path) -> None:
    target = tmp_path / "part.ambar"
    ambar.convert(
        output("gravpart"), target, components=["hydro"], fields=["rho", "p"], levels=(4, 5)
    )
    snapshot = ambar.open(target)
    assert snapshot.amr.fields == ["density", "pressure"]
    assert list(snapshot.components) == ["hydro"]
    cells = snapshot.amr.cells(["density", "dx", "level"])
    assert set(cells["level"]) <= {4, 5}
    whole = ambar.read_ramses(output("gravpart"), ["hydro"], ["rho", "p"], levels=(4, 5))
    np.testing.assert_array_equal(cells["density"], whole.amr.cells(["rho"])["rho"])
    assert (cells["dx"] ** 3).sum() == pytest.approx(1.0)


def test_read_ramses_of_a_region(stores: dict[str, Path]) -> None:
    region = ambar.Sphere(("bc", "bc", 0.4), 0.2)
    part = ambar.read_ramses(output("gravpart"), region=region)
    stored = ambar.open(stores["gravpart"])
    expected = stored.amr.cells(["density", "x", "iz"], region=region)
    found = part.amr.cells(["density", "x", "iz"])
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    rows = stored.particles.read(["identity"], region=region)
    np.testing.assert_array_equal(
        np.sort(part.particles.read()["identity"]), np.sort(rows["identity"])
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with the two outputs of the Sedov case."""
    folder = tmp_path / "a run"
    for number in (1, 2):
        name = f"output_0000{number}"
        shutil.copytree(DATA / CASES["sedov"] / name, folder / name)
    return folder


def test_a_run_becomes_a_series_that_can_be_continued(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    later = run / "output_00002"
    aside = tmp_path / "aside"
    later.rename(aside)
    first = ambar.convert(run, target)
    assert len(first.converted) == 1
    aside.rename(later)
    second = ambar.convert(run, target)
    assert (len(second.converted), len(second.skipped)) == (1, 1)
    series = ambar.open(target)
    assert isinstance(series, ambar.Series)
    assert (len(series), series.outputs) == (2, [1, 2])
    assert series.times[0] < series.times[1]
    assert series[-1].info == series.output(2).info
    expected = ambar.read_ramses(later).amr.cells()
    for name, values in series.output(2).amr.cells().items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    with pytest.raises(ambar.NotFoundError, match="1, 2"):
        series.output(3)


def test_conversion_reports_progress_and_can_be_interrupted(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    ambar.convert(
        output("gravpart"), tmp_path / "a.ambar", progress=lambda *call: calls.append(call)
    )
    assert all(0 <= done <= total for done, total in calls)
    assert calls[-1][0] == calls[-1][1]

    def interrupt(done: int, total: int) -> None:  # noqa: ARG001 - the interface
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ambar.convert(output("gravpart"), tmp_path / "b.ambar", progress=interrupt)
    assert [file.name for file in tmp_path.iterdir()] == ["a.ambar"]


def test_ctrl_c_ends_a_conversion_and_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    # A shell's background jobs ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupted = threading.Event()

    def interrupt(*_: int) -> None:
        if not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # so that the conversion is not done before it is heard

    try:
        with pytest.raises(KeyboardInterrupt):
            ambar.convert(output("gravpart"), target, progress=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert list(tmp_path.iterdir()) == []


def test_conversion_refuses(tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    with pytest.raises(ambar.InvalidError, match="of range"):
        ambar.convert(output("sedov"), target, error_bound="a little")
    with pytest.raises((FileNotFoundError, ambar.NotFoundError)):
        ambar.convert(tmp_path / "nothing", target)
    with pytest.raises(ambar.NotFoundError, match="entropy"):
        ambar.convert(output("sedov"), target, fields=["entropy"])
    assert list(tmp_path.iterdir()) == []
    ambar.convert(output("sedov"), target)
    with pytest.raises(ambar.BusyError):
        ambar.convert(output("sedov"), target)
    ambar.convert(output("sedov"), target, overwrite=True)


def test_a_cut_short_output_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "output_00002"
    shutil.copytree(output("sedov"), folder)
    file = folder / "hydro_00002.out00003"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ambar.CorruptError, match="hydro_00002.out00003"):
        ambar.convert(folder, tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


def test_opening_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ambar.open(tmp_path / "nothing.ambar")
    (tmp_path / "empty.ambar").write_bytes(b"")
    (tmp_path / "text.ambar").write_bytes(b"no store at all" * 1000)
    for name in ("empty.ambar", "text.ambar"):
        with pytest.raises(ambar.CorruptError, match=name):
            ambar.open(tmp_path / name)


def test_opening_a_folder_of_outputs_says_what_to_do(run: Path) -> None:
    with pytest.raises(ambar.InvalidError, match="convert"):
        ambar.open(run)


def test_open_reads_ramses_lazily(gravpart: ambar.Snapshot) -> None:
    snapshot = ambar.open(output("gravpart"))
    assert isinstance(snapshot, ambar.Snapshot)
    assert snapshot.info.ndim == gravpart.info.ndim
    assert snapshot.namelist.startswith("&RUN_PARAMS")
    assert len(snapshot.amr) == len(gravpart.amr)


def test_threads_change_nothing(gravpart: ambar.Snapshot) -> None:
    one, many = gravpart.amr.cells(threads=1), gravpart.amr.cells(threads=4)
    for name in one:
        np.testing.assert_array_equal(one[name], many[name], err_msg=name)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"info": 3},
        {"info": {"ndim": 3}},
        {"info": {"ndim": "3", "boxlen": 1, "time": 0}},
        {"info": {"ndim": 3, "boxlen": 1, "time": 0}, "components": 5},
        {"info": {"ndim": 3, "boxlen": 1, "time": 0}, "components": {"hydro": ["density"]}},
    ],
    ids=str,
)
def test_a_store_that_only_claims_to_be_a_snapshot(attributes: dict, tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.group("", {"ambar": {"version": 1, "kind": "snapshot", **attributes}})
    with pytest.raises((ambar.CorruptError, ambar.NotFoundError)):
        _ = ambar.open(tmp_path / "x.ambar").amr

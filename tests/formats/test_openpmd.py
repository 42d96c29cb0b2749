"""openPMD files in and out, against openpmd_api, h5py and yt; damaged and mixed ones."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import ambar
from tests.helpers.command_line import run

pytest.importorskip("openpmd_api")
pytest.importorskip("typer")


from ambar.formats.openpmd.grids import _are_disjoint
from ambar.formats.openpmd.source import piece_sides
from tests.helpers.openpmd_files import (
    ELECTRON_MASS,
    REFINED,
    SHAPE,
    assert_equal,
    contents,
    write_modes,
    write_picongpu,
    write_plane,
    write_warpx,
)
from tests.helpers.pages import BLOCK, read_page, run_ambar
from tests.helpers.paths import RAMSES


@pytest.fixture(scope="module")
def warpx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each of two iterations, and the store of both."""
    folder = tmp_path_factory.mktemp("warpx")
    (folder / "diags").mkdir()
    write_warpx(folder / "diags" / "openpmd_%06T.h5")
    ambar.convert(folder / "diags" / "openpmd_%T.h5", folder / "run.ambar", fsync=False)
    return folder


def assert_same(one: Path, other: Path, output: int) -> None:
    """Assert that two stores have the same cells and particles."""
    found = ambar.compare(one, other, output=output)
    assert len(found.fields) == 7
    assert all(field.all.max_error == 0 for field in found.fields)
    assert [table.component for table in found.tables] == ["particles/electrons"]
    assert all(column.max_error == 0 for column in found.tables[0].columns)


def info_of(snapshot: ambar.Snapshot) -> ambar.CodeInfo:
    assert isinstance(snapshot.info, ambar.CodeInfo)
    return snapshot.info


def fields_of(folder: Path, number: int) -> Any:
    return h5py.File(folder / "diags" / f"openpmd_{number:06}.h5")[f"data/{number}/fields"]


def test_cells_of_both_levels_are_those_of_the_file(warpx: Path) -> None:
    series = ambar.open_series(warpx / "run.ambar")
    assert series.outputs == [100, 200]
    np.testing.assert_array_equal(series.times, [100 * 1e-16, 200 * 1e-16])
    names = {"E_x", "E_y", "E_z", "B_x", "B_y", "B_z", "rho"}
    for snapshot in series:
        info = info_of(snapshot)
        fields = fields_of(warpx, info.parameters["iteration"])
        assert (info.code, info.ndim, info.unit_l) == ("openpmd", 3, 100.0)
        assert info.parameters["positions"]["E_x"] == [0.5, 0.0, 0.0]
        assert info.age("s") == info.time
        np.testing.assert_allclose(info.lower, [-5e-6, -6e-6, -8e-6])
        np.testing.assert_allclose(info.upper, [5e-6, 6e-6, 8e-6])
        assert set(snapshot.amr.fields) == names
        assert snapshot.amr.levels == (0, 1)
        cells = snapshot.amr.read([*names, "level", "ix", "iy", "iz", "volume"])
        refined = int(np.prod([part.stop - part.start for part in REFINED]))
        assert np.sum(cells["level"] == 1) == refined
        assert len(cells) == np.prod(SHAPE) + refined - refined // 8
        for level in (0, 1):
            own = cells["level"] == level
            place = tuple(cells[f"i{axis}"][own] for axis in "zyx")
            for name in names:
                mesh, _, component = name.partition("_")
                mesh += "_lvl1" if level else ""
                values = fields[f"{mesh}/{component}" if component else mesh][()]
                np.testing.assert_array_equal(cells[name][own], values[place], name)


def test_units_slices_and_comparisons(warpx: Path) -> None:
    snapshot = ambar.open_series(warpx / "run.ambar").output(100)
    plane = snapshot.amr.slice("E_x", axis="z", level=1)
    values = fields_of(warpx, 100)["E_lvl1/x"][16]
    found = plane.transpose("y", "x").to_numpy()
    np.testing.assert_array_equal(found[REFINED[1:]], values[REFINED[1:]])
    units = info_of(snapshot).field_units
    assert units["cells/E_x"] == "V/m"
    assert units["cells/B_x"] == "Tesla"
    cells = snapshot.amr.read(
        [*(f"{mesh}_{axis}" for mesh in "EB" for axis in "xyz"), "poynting_flux_z"]
    )
    flux = (cells["E_x"] * cells["B_y"] - cells["E_y"] * cells["B_x"]) / 1.25663706127e-6
    np.testing.assert_allclose(cells["poynting_flux_z"], flux, rtol=1e-6)
    strength = snapshot.amr.read(["electric_field_strength"]).column(
        "electric_field_strength", "kV/m"
    )
    norm = np.sqrt(sum(cells[f"E_{axis}"].astype("f8") ** 2 for axis in "xyz"))
    np.testing.assert_allclose(strength, norm / 1e3, rtol=1e-6)
    energy = snapshot.amr.read(["electromagnetic_energy_density"])["electromagnetic_energy_density"]
    field = sum(cells[f"B_{axis}"].astype("f8") ** 2 for axis in "xyz")
    expected = 8.8541878188e-12 / 2 * norm**2 + field / (2 * 1.25663706127e-6)
    np.testing.assert_allclose(energy, expected, rtol=1e-6)
    assert units["particles/electrons/mass"] == "kg"
    light = snapshot.particles.read(["mass"], where="mass < 1e-27 g")
    assert set(light["mass"]) == {ELECTRON_MASS}
    assert len(light) == 70_000


def test_particles_are_those_of_the_file(warpx: Path) -> None:
    snapshot = ambar.open_series(warpx / "run.ambar").output(200)
    electrons = fields_of(warpx, 200).parent["particles/electrons"]
    particles = snapshot.species["electrons"]
    rows = particles.read()
    for axis in "xyz":
        np.testing.assert_array_equal(rows[f"position_{axis}"], electrons[f"position/{axis}"])
        np.testing.assert_array_equal(rows[f"momentum_{axis}"], electrons[f"momentum/{axis}"])
    np.testing.assert_array_equal(rows["id"], electrons["id"])
    assert set(rows["charge"]) == {-1.602176634e-19}
    x, y, z = (electrons[f"position/{axis}"][()] for axis in "xyz")
    near = np.sqrt(x**2 + y**2 + z**2) < 2e-6
    ball = particles.read(["id"], region=ambar.Sphere((0.0, 0.0, 0.0), 2e-6, unit="code"))
    assert sorted(ball["id"]) == sorted(electrons["id"][()][near])


def test_yt_reads_the_same_values_from_the_files(warpx: Path) -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level("error")
    dataset = yt.load(str(warpx / "diags" / "openpmd_000100.h5"))
    snapshot = ambar.open_series(warpx / "run.ambar").output(100)
    data = dataset.all_data()
    core = snapshot.amr._core
    boxes = range(len(core.boxes(0)))
    mine = np.concatenate([core.read_box(0, box, "E_x") for box in boxes])
    theirs = data["openPMD", "E_x"].to_value("V/m")  # zeros in place of the finer level
    np.testing.assert_array_equal(np.sort(theirs[theirs != 0]), np.sort(mine))


@pytest.mark.parametrize("target", ["again", "again.h5", "again.bp"])
def test_an_export_is_equal_to_the_source(warpx: Path, tmp_path: Path, target: str) -> None:
    done = ambar.export(warpx / "run.ambar", tmp_path / target, format="openpmd")
    assert done.target == str(tmp_path / target)
    path = tmp_path / target
    if path.suffix == "":
        assert [file.name for file in sorted(path.iterdir())] == [
            "openpmd_000100.h5",
            "openpmd_000200.h5",
        ]
        path /= "openpmd_%06T.h5"
    assert_equal(contents(warpx / "diags" / "openpmd_%06T.h5"), contents(path))
    ambar.export(warpx / "run.ambar", tmp_path / target, mode="w")
    ambar.convert(tmp_path / target, tmp_path / "again.ambar", fsync=False)
    assert_same(warpx / "run.ambar", tmp_path / "again.ambar", 200)


@pytest.mark.parametrize("name", ["simData_%06T.h5", "simData.bp"])
def test_units_and_offsets_of_picongpu(tmp_path: Path, name: str) -> None:
    source = write_picongpu(tmp_path / name)
    ambar.convert(source, tmp_path / "run.ambar", fsync=False)
    expected = contents(source)
    snapshot = ambar.open_series(tmp_path / "run.ambar").output(50)
    info, length = info_of(snapshot), 1.25e-7
    assert info.age("s") == pytest.approx(50 * 4e-16)
    np.testing.assert_allclose(info.lower, [0.0, 56.0, 0.0])
    np.testing.assert_allclose(info.upper, [3.0, 62.0, 6.0])
    assert info.field_units["cells/E_x"] == "13000000000000.0*V/m"
    cells = snapshot.amr.read(["E_x", "ix", "iy", "iz"])
    assert cells["E_x"].dtype == np.float32
    place = tuple(cells[f"i{axis}"] for axis in "zyx")
    np.testing.assert_array_equal(cells["E_x"], expected["50/meshes/E/x"][place])
    strong = snapshot.amr.read(["E_x"], where="E_x > 1e4 GV/m")
    assert len(strong) == np.sum(cells["E_x"] * 1.3e13 > 1e13) > 0
    rows = snapshot.particles.read()
    for axis, spacing in zip("xyz", (0.75, 0.5, 0.75), strict=True):
        within, cell = (
            expected[f"50/particles/e/{record}/{axis}"] for record in ("position", "positionOffset")
        )
        np.testing.assert_array_equal(rows[f"relative_position_{axis}"], within)
        np.testing.assert_array_equal(rows[f"positionOffset_{axis}"], cell)
        exact = (within.astype("f8") + cell) * spacing
        np.testing.assert_allclose(rows[f"position_{axis}"], exact, rtol=1e-14)
        assert info.field_units[f"particles/e/relative_position_{axis}"].startswith(
            f"{spacing * length!r}*"
        )
    store = ambar.open_store(tmp_path / "run.ambar")
    ids = store["output_00050/meshes/idProvider_nextId/idProvider_nextId"]
    assert ids[:].ravel().tolist() == [2**63 + 1, 7]
    ambar.export(tmp_path / "run.ambar", tmp_path / "out", format="openpmd")
    exported = tmp_path / "out" / f"{Path(name).stem}.h5"
    assert_equal(expected, contents(exported))


def test_modes_and_lines_are_arrays_with_coordinates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    xr = pytest.importorskip("xarray")
    # Arrays are read in pieces along all dimensions.
    monkeypatch.setattr("ambar.formats.openpmd.conversion._CHUNK_BYTES", 128)
    for module in ("conversion", "source"):
        monkeypatch.setattr(f"ambar.formats.openpmd.{module}.SLAB_BYTES", 256)
    source = write_modes(tmp_path / "modes.h5")
    ambar.convert(source, tmp_path / "modes.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "modes.ambar")
    assert snapshot.components == {}
    expected = contents(source)
    modes = xr.open_dataset(tmp_path / "modes.ambar", engine="ambar", group="meshes/E")
    assert modes["E_r"].dims == ("mode", "r", "z")
    assert modes["E_t"].dims == ("mode_E_t", "r_E_t", "z_E_t")
    np.testing.assert_array_equal(modes["E_r"], expected["3/meshes/E/r"])
    np.testing.assert_allclose(modes["r"], (np.arange(5) + 0.5) * 0.5e-6)
    np.testing.assert_allclose(modes["z_E_t"], (10 + np.arange(9) * 0.25) * 1e-6)
    assert modes["z"].attrs["units"] == "m"
    line = xr.open_dataset(tmp_path / "modes.ambar", engine="ambar", group="meshes/density")
    np.testing.assert_allclose(line["z"], (10 + (np.arange(7) + 0.5) * 0.5) * 1e-6)
    ambar.export(tmp_path / "modes.ambar", tmp_path / "again.h5")
    assert_equal(expected, contents(tmp_path / "again.h5"))


def test_other_datasets_of_a_file_are_listed(warpx: Path, tmp_path: Path) -> None:
    source = tmp_path / "more.h5"
    shutil.copy(warpx / "diags" / "openpmd_000100.h5", source)
    with h5py.File(source, "a") as file:
        file["data/100/checkpoint/state"] = np.arange(3)
        file["notes"] = "by hand"
    done = ambar.convert(source, tmp_path / "more.ambar", fsync=False)
    assert sorted(done.left_out) == ["more.h5/data/100/checkpoint/state", "more.h5/notes"]


@pytest.mark.parametrize("order", ["C", "F"])
def test_axes_of_any_order_and_chunks_of_a_level(tmp_path: Path, order: str) -> None:
    source, coarse, fine = write_plane(tmp_path / "plane.bp", order)
    ambar.convert(source, tmp_path / "plane.ambar", fsync=False)
    for number in range(2):
        snapshot = ambar.open_snapshot(tmp_path / "plane.ambar")
        info = info_of(snapshot)
        assert (info.lower, info.upper) == ((-35.0, 4.0), (35.0, 24.0))
        assert info.parameters["axes"] == ["x", "z"]
        cells = snapshot.amr.read(["rho", "level", "ix", "iy"])
        for level, values in enumerate((coarse, fine)):
            own = cells["level"] == level
            place = cells["ix"][own], cells["iy"][own]
            np.testing.assert_array_equal(cells["rho"][own], values[place])
        assert np.sum(cells["level"] == 1) == 24 * 8 + 16 * 12
        if number == 0:
            suffix = "bp" if order == "C" else "h5"
            ambar.export(tmp_path / "plane.ambar", tmp_path / f"again.{suffix}")
            ambar.convert(
                tmp_path / f"again.{suffix}", tmp_path / "plane.ambar", mode="w", fsync=False
            )


def test_resuming_adds_the_iterations_that_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_picongpu(tmp_path / "data_%T.h5", [0])
    first = ambar.convert(tmp_path, tmp_path / "run.ambar", mode="a", fsync=False)
    assert (first.converted, first.skipped) == (["output_00000"], [])
    write_picongpu(tmp_path / "data_%T.h5", [50])
    second = ambar.convert(tmp_path, tmp_path / "run.ambar", mode="a", fsync=False)
    assert (second.converted, second.skipped) == (["output_00050"], ["output_00000"])
    assert ambar.open_series(tmp_path / "run.ambar").outputs == [0, 50]
    content = (tmp_path / "data_50.h5").read_bytes()
    (tmp_path / "data_70.h5").write_bytes(content[: len(content) // 2])
    write_picongpu(tmp_path / "data_%T.h5", [90])
    with pytest.raises(ambar.CorruptError, match=r"data_70\.h5"):
        ambar.convert(tmp_path, tmp_path / "run.ambar", mode="a")
    opened: list[str] = []
    monkeypatch.setattr(
        "ambar.formats.openpmd.kind.check_file", lambda path: opened.append(path.name)
    )
    third = ambar.convert(tmp_path, tmp_path / "run.ambar", mode="a", on_error="skip", fsync=False)
    assert (third.converted, list(third.failed)) == (["output_00090"], ["data_70.h5"])
    assert opened == ["data_70.h5", "data_90.h5"]
    assert third.skipped == ["output_00000", "output_00050"]
    assert ambar.open_series(tmp_path / "run.ambar").outputs == [0, 50, 90]
    write_warpx(tmp_path / "other_%T.h5", [300])
    with pytest.raises(ValueError, match="expected the meshes of iteration 0 .*found in itera"):
        ambar.convert(tmp_path / "other_300.h5", tmp_path / "run.ambar", mode="a")
    assert ambar.open_series(tmp_path / "run.ambar").outputs == [0, 50, 90]


def test_error_bounds_apply_to_cells_and_columns(warpx: Path, tmp_path: Path) -> None:
    source = warpx / "diags" / "openpmd_000100.h5"
    bounds: dict[str, float | str] = {"E_*": 1e-3, "electrons/momentum_*": "1e-3 of range"}
    ambar.convert(source, tmp_path / "small.ambar", error_bound=bounds, fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "small.ambar")
    exact = ambar.open_series(warpx / "run.ambar").output(100)
    lossy, plain = (one.amr.read(["E_x", "rho"]) for one in (snapshot, exact))
    assert 0 < np.abs(lossy["E_x"] - plain["E_x"]).max() <= 1e-3
    np.testing.assert_array_equal(lossy["rho"], plain["rho"])
    lossy, plain = (one.particles.read(["momentum_x", "id"]) for one in (snapshot, exact))
    error = np.abs(lossy["momentum_x"] - plain["momentum_x"]).max()
    assert 0 < error <= 1e-3 * np.ptp(plain["momentum_x"])
    np.testing.assert_array_equal(lossy["id"], plain["id"])


def test_bad_input_is_an_error_and_leaves_nothing(
    warpx: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "bad.ambar"
    good = warpx / "diags" / "openpmd_000100.h5"
    content = good.read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file["x"] = np.zeros(3)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    shutil.copy(good, mixed / "data_000100.h5")
    write_picongpu(mixed / "data_%06T.h5", [50])
    twice = [good, shutil.copy(good, tmp_path / "copy.h5")]
    empty = tmp_path / "empty"
    empty.mkdir()
    several = tmp_path / "several"
    several.mkdir()
    shutil.copy(good, several / "a_1.h5")
    shutil.copy(good, several / "b_1.h5")
    cases: list[tuple[Any, type[Exception], str]] = [
        (tmp_path / "cut.h5", ambar.CorruptError, "cut.h5"),
        ([good, tmp_path / "plain.h5"], KeyError, "plain.h5: expected a file of openPMD"),
        (tmp_path / "none_%T.h5", FileNotFoundError, "no file matches the pattern"),
        ([good, tmp_path / "openpmd_000300.h5"], FileNotFoundError, "openpmd_000300.h5"),
        (mixed, ValueError, "expected the meshes of iteration 50 .*found in iteration 100"),
        (twice, ValueError, "found iteration 100 in both"),
        (several, ValueError, r"found a_%T.h5, b_%T.h5; give the pattern"),
    ]
    for source, error, message in cases:
        with pytest.raises(error, match=message):
            ambar.convert(source, target, fsync=False)
        # What is committed before the error stays.
        is_later = source in (mixed, twice) or (isinstance(source, list) and source[1].exists())
        assert target.exists() == is_later
        target.unlink(missing_ok=True)
    for bound in ("electrons/speed", "protons/mass", "F_x"):
        with pytest.raises(KeyError, match=bound):
            ambar.convert(good, target, error_bound={bound: 0.1})
        assert not target.exists()
    with pytest.raises(ambar.InvalidError, match="convert it first: ambar convert"):
        ambar.open(good)
    code, out, _ = run(capsys, "info", good)
    assert code == 0
    assert "iterations" in out
    assert "E, " in out
    ambar.convert(good, tmp_path / "one.ambar", fsync=False)
    with pytest.raises(ValueError, match="expected a series of outputs"):
        ambar.convert(good, tmp_path / "one.ambar", mode="a")
    with pytest.raises(ValueError, match=r"expected the suffix \.h5"):
        ambar.export(tmp_path / "one.ambar", tmp_path / "one.txt")
    with pytest.raises(ValueError, match="invalid format 'netcdf'"):
        ambar.export(tmp_path / "one.ambar", tmp_path / "one.h5", format="netcdf")


def write_particles(path: Path, *, time: float = 0.0) -> Path:
    """Write three particles of a species, without meshes."""
    io = pytest.importorskip("openpmd_api")
    series = io.Series(str(path), io.Access.create)
    iteration = series.write_iterations()[7]
    iteration.time = time
    for axis, last in zip("xyz", (1.0, 3.0, 5.0), strict=True):
        for record, values in (("position", [0.0, 0.5, last]), ("positionOffset", [0.0] * 3)):
            part = iteration.particles["e"][record][axis]
            part.reset_dataset(io.Dataset(np.dtype("f8"), [3]))
            part.store_chunk(np.array(values))
            series.flush()
    iteration.close()
    series.close()
    return path


def test_all_particles_are_in_the_domain(tmp_path: Path) -> None:
    source, target = write_particles(tmp_path / "e.h5"), tmp_path / "e.ambar"
    for bound in ("E_x", "e/speed"):
        with pytest.raises(KeyError, match=bound):
            ambar.convert(source, target, error_bound={bound: 0.1})
        assert not target.exists()
    ambar.convert(source, target, fsync=False)
    snapshot = ambar.open_snapshot(target)
    info = info_of(snapshot)
    box = ambar.Box(info.lower, info.upper, unit="code")
    assert len(snapshot.particles.read(region=box)) == 3
    source = write_particles(tmp_path / "nan.h5", time=np.nan)
    with pytest.raises(ambar.CorruptError, match=r"nan\.h5: iteration 7: .*'time', found nan"):
        ambar.convert(source, target, mode="w")


def test_errors_of_progress_functions_are_raised(warpx: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def fail(done: int, total: int) -> None:
        seen.append((done, total))
        if done:
            raise RuntimeError("stop")

    source = warpx / "diags" / "openpmd_000100.h5"
    with pytest.raises(RuntimeError, match="stop"):
        ambar.convert(source, tmp_path / "x.ambar", progress=fail)
    seen.clear()
    ambar.convert(source, tmp_path / "x.ambar", progress=lambda *pair: seen.append(pair))
    assert seen == sorted(seen)
    assert seen[-1] == (100, 100)


def test_many_boxes_are_checked_and_cut_quickly() -> None:
    corners = [(8 * z, 8 * y, 8 * x) for z in range(40) for y in range(40) for x in range(40)]
    boxes = [(corner, (8, 8, 8)) for corner in corners]
    assert _are_disjoint(boxes, (320, 320, 320))
    assert not _are_disjoint([*boxes, ((4, 4, 4), (1, 1, 1))], (320, 320, 320))
    assert piece_sides([2048] * 3, [64, 64, 32], 8) == [64, 64, 1024]
    assert piece_sides([100_000], [32_768], 8) == [100_000]


def test_the_page_runs_as_written(
    warpx: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xarray")
    (tmp_path / "diags").symlink_to(warpx / "diags")
    write_picongpu(tmp_path / "simData.bp")
    write_modes(tmp_path / "modes.h5")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"ambar": ambar}
    for language, text in BLOCK.findall(read_page("docs/howto/openpmd")):
        if language == "python":
            exec(text, names)  # noqa: S102 - the page's own
        else:
            for command in text.splitlines():
                run_ambar(command)
    assert sorted(path.name for path in (tmp_path / "files").iterdir()) == [
        "openpmd_000100.h5",
        "openpmd_000200.h5",
    ]
    assert (tmp_path / "run.bp").is_dir()


def test_stores_of_other_codes_are_refused(tmp_path: Path) -> None:
    store = tmp_path / "run.ambar"
    ambar.convert(RAMSES / "sedov2d_small", store, fsync=False)
    with pytest.raises(ambar.UnsupportedError, match="made from openPMD files"):
        ambar.export(store, tmp_path / "out", format="openpmd")
    assert not (tmp_path / "out").exists()
    (tmp_path / "own").mkdir()
    with h5py.File(tmp_path / "own" / "results.h5", "w") as file:
        file["x"] = np.zeros(3)
    ambar.convert(write_modes(tmp_path / "modes.h5"), tmp_path / "modes.ambar", fsync=False)
    with pytest.raises(ValueError, match="other files than those of an export"):
        ambar.export(tmp_path / "modes.ambar", tmp_path / "own", mode="w")
    write_picongpu(tmp_path / "data.h5")
    with pytest.raises(
        ValueError, match="expected a series of outputs of openpmd, found one of ramses"
    ):
        ambar.convert(tmp_path / "data.h5", store, mode="a")

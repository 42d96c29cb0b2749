"""Snapshots equal the true values, in whole and in part, from a store and from RAMSES' files."""

from __future__ import annotations

import os
import re
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.sample_outputs import CASES, by_place, output, truth


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", ["fast", "balanced", "small", "ramses"])
def test_cells_equal_the_truth(case: str, way: Any, tmp_path: Path) -> None:
    if way == "ramses":
        snapshot = ambar.open_snapshot(output(case)).load()
    else:
        ambar.convert(output(case), tmp_path / "x.ambar", profile=way)
        snapshot = ambar.open_snapshot(tmp_path / "x.ambar")
    expected = truth(case)
    cells = snapshot.amr.read([*expected])
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
    stored, direct = (
        ambar.open_snapshot(stores["gravpart"]),
        ambar.open_snapshot(output("gravpart")).load(),
    )
    left, right = stored.amr.read(), direct.amr.read()
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
    cells = gravpart.amr.read()
    assert cells.columns[:4] == ["level", "x", "y", "z"]
    assert "domain" not in cells
    assert cells["level"].dtype == np.int32
    place = gravpart.amr.read(["ix", "dx", "level"])
    np.testing.assert_array_equal(cells["x"], (place["ix"] + 0.5) * place["dx"])
    np.testing.assert_array_equal(place["dx"], 0.5 ** place["level"])


def test_aliases_are_accepted_wherever_a_field_is_named(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.read(["rho", "vx", "epot", "cx", "ax"], where="rho > 1 and p < 10")
    assert cells.columns == ["rho", "vx", "epot", "cx", "ax"]
    np.testing.assert_array_equal(cells["rho"], cells["density"])
    assert amr.dtype("p") == np.float64
    assert amr.project("rho", level=4, weight="rho").name == "rho"
    rows = gravpart.particles.read(["x", "particles/identity", "mass", "mass"])
    assert rows.columns == ["x", "particles/identity", "mass"]
    np.testing.assert_array_equal(rows["position_x"], rows["x"])
    with pytest.raises(KeyError, match="identity"):
        rows["identity"]


REGIONS: dict[str, tuple[Any, Any]] = {
    "box": (ambar.Box((0.1, 0.2, 0.3), (0.5, 0.6, 0.45)), None),
    "half": (ambar.Box((None, None, 0.5), (None, None, None)), None),
    "centred": (ambar.Box((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1), center="bc"), None),
    "sphere": (ambar.Sphere("bc", 0.3), (0, 0.3)),
    "shell": (ambar.SphericalShell(("bc", 0.5, 0.5), 0.2, 0.4), (0.2, 0.4)),
}


@pytest.mark.parametrize("name", REGIONS)
def test_regions_select_by_the_centre(gravpart: ambar.Snapshot, name: str) -> None:
    region, radii = REGIONS[name]
    everything = gravpart.amr.read(["x", "y", "z", "density"])
    centre = np.stack([everything[axis] for axis in "xyz"], axis=1)
    if radii is None:
        assert isinstance(region, ambar.Box)
        lo, hi = region.corners(gravpart.info)
        inside: Any = ((centre >= lo) & (centre <= hi)).all(axis=1)
    else:
        distance = np.sqrt(((centre - 0.5) ** 2).sum(axis=1))
        inside = (distance >= radii[0]) & (distance <= radii[1])
    assert 0 < inside.sum() < len(inside)
    chosen = gravpart.amr.read(["x", "density"], region=region)
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
def test_conditions(gravpart: ambar.Snapshot, where: str, expected: Any) -> None:
    everything = gravpart.amr.read(["density", "velocity_x", "level"])
    chosen = gravpart.amr.read(["density"], where=where)
    np.testing.assert_array_equal(chosen["density"], everything["density"][expected(everything)])


def test_levels(gravpart: ambar.Snapshot) -> None:
    assert gravpart.amr.levels == (4, 6)
    cells = gravpart.amr.read(["level"], levels=(5, 5))
    assert set(cells["level"]) == {5}


def test_small_selections_touch_few_chunks(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    assert amr.chunks_touched() == amr.chunk_count
    assert amr.chunks_touched(where="density > 1e30") == 0


def test_projection_conserves_mass(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.read(["density", "dx"])
    mass = (cells["density"] * cells["dx"] ** 3).sum()
    for level in (3, 5, 7):
        image = amr.project("density", axis="y", level=level)
        assert image.dims == ("z", "x")
        side = float(image["x"][1] - image["x"][0])
        assert float(image.sum()) * side**2 == pytest.approx(mass, rel=1e-13)


def test_weighted_projection_is_a_mean(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.read(["density", "velocity_x", "dx"])
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
    cells = amr.read(["level", "ix", "iy", "iz", "density"], levels=(level, level))
    values = cube.to_numpy()[cells["ix"], cells["iy"], cells["iz"]]
    np.testing.assert_array_equal(values, cells["density"])
    cut = amr.slice("density", axis="x", at=0.3, level=level)
    np.testing.assert_array_equal(cut.T, cube.sel(x=0.3, method="nearest"))
    assert cut.dims == ("z", "y")
    part = amr.grid("density", level=level, region=ambar.Box((0.25, 0, 0), (0.5, 1, 0.25)))
    np.testing.assert_array_equal(
        part, cube.sel(x=part["x"], y=part["y"], z=part["z"], method="nearest")
    )
    assert part.shape == (2**level // 4, 2**level, 2**level // 4)


def test_missing_components_are_a_clear_statement(stores: dict[str, Path]) -> None:
    for snapshot in (
        ambar.open_snapshot(stores["sedov"]),
        ambar.open_snapshot(output("sedov")).load(),
    ):
        assert "particles" in snapshot.missing
        with pytest.raises(KeyError, match="no particles"):
            _ = snapshot.particles
        assert "hydro" in repr(snapshot)
    with pytest.raises(KeyError, match="no particles"):
        ambar.open_snapshot(output("sedov")).load("particles")


def test_unknown_names_name_those_there_are(gravpart: ambar.Snapshot) -> None:
    with pytest.raises(KeyError, match="density"):
        gravpart.amr.read(["enthalpy"])
    with pytest.raises(KeyError, match="density"):
        gravpart.amr.project("enthalpy", level=3)
    with pytest.raises(KeyError, match="mass"):
        gravpart.particles.read(["charge"])
    with pytest.raises(ValueError, match="axis"):
        gravpart.amr.slice("density", axis="w")
    with pytest.raises(ValueError):
        gravpart.amr.read(where="density >")


def test_partial_conversion(tmp_path: Path) -> None:
    target = tmp_path / "part.ambar"
    ambar.convert(
        output("gravpart"), target, components=["hydro"], fields=["rho", "p"], max_level=5
    )
    snapshot = ambar.open_snapshot(target)
    assert snapshot.amr.fields == ["density", "pressure"]
    assert list(snapshot.components) == ["hydro"]
    cells = snapshot.amr.read(["density", "dx", "level"])
    assert set(cells["level"]) <= {4, 5}
    whole = ambar.open_snapshot(output("gravpart")).load(["rho", "p"], max_level=5)
    np.testing.assert_array_equal(cells["density"], whole.amr.read(["rho"])["rho"])
    assert (cells["dx"] ** 3).sum() == pytest.approx(1.0)


def test_loading_a_region(stores: dict[str, Path]) -> None:
    region = ambar.Sphere(("bc", "bc", 0.4), 0.2)
    part = ambar.open_snapshot(output("gravpart")).load(region=region)
    stored = ambar.open_snapshot(stores["gravpart"])
    expected = stored.amr.read(["density", "x", "iz"], region=region)
    found = part.amr.read(["density", "x", "iz"])
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
        shutil.copytree(RAMSES / CASES["sedov"] / name, folder / name)
    return folder


def test_a_run_becomes_a_series_that_can_be_continued(run: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    later = run / "output_00002"
    aside = tmp_path / "aside"
    later.rename(aside)
    first = ambar.convert(run, target)
    assert len(first.converted) == 1
    aside.rename(later)
    with pytest.raises(FileExistsError, match="already exists"):
        ambar.convert(run, target)
    with pytest.raises(ValueError, match="is converted as a whole"):
        ambar.convert(later, target, mode="a")
    for options in ({"error_bound": {"rho": 1e-3}}, {"levels": (1, 5)}, {"max_level": 5}):
        with pytest.raises(ValueError, match=f"expected {next(iter(options))}=None, as for the"):
            ambar.convert(run, target, mode="a", **options)
    second = ambar.convert(run, target, mode="a")
    assert (len(second.converted), len(second.skipped)) == (1, 1)
    series = ambar.open(target)
    assert isinstance(series, ambar.Series)
    assert (len(series), series.outputs) == (2, [1, 2])
    assert series.times[0] < series.times[1]
    assert series[-1].info == series.output(2).info
    expected = ambar.open_snapshot(later).load().amr.read()
    for name, values in series.output(2).amr.read().items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    with pytest.raises(KeyError, match="1, 2"):
        series.output(3)


def test_a_series_of_small_outputs_is_not_mostly_dead_bytes(tmp_path: Path) -> None:
    """Each commit replaces the list of entries and the metadata: of n steps, O(n**2) bytes died."""
    target = tmp_path / "run.ambar"
    spec = Spec(ndim=2, domains=1, level_min=1, level_max=2)
    for number in range(1, 61):
        write_output(tmp_path / "run", replace(spec, number=number))
    ambar.convert(tmp_path / "run", target, mode="a", fsync=False)
    for number in range(61, 71):
        write_output(tmp_path / "run", replace(spec, number=number))
        ambar.convert(tmp_path / "run", target, mode="a", fsync=False)
    series = ambar.open(target)
    assert isinstance(series, ambar.Series)
    assert len(series) == 70
    usage = series.store.usage()
    assert usage["dead"] <= usage["live"]
    series.store.verify()


@pytest.fixture
def gravity_run(tmp_path: Path) -> Path:
    """A folder with outputs 2, 3 and 4, which have hydro, gravity, particles and timers."""
    folder = tmp_path / "gravity run"
    for number in (2, 3, 4):
        copy = folder / f"output_{number:05d}"
        shutil.copytree(output("gravpart"), copy)
        for file in list(copy.iterdir()):
            file.rename(copy / file.name.replace("_00002.", f"_{number:05d}."))
        (copy / f"timer_{number:05d}.txt").write_text("minimum  average  maximum\n")
    return folder


# What a run has not written yet, and how its absence is recognized.
UNWRITTEN = {
    "part_*": "header_00004.txt counts 4000 particles",
    "grav_*": "poisson=.true.",
    "hydro_*.out*": "hydro_file_descriptor.txt",
    "timer_*": "timer_00004.txt",
    "amr_*.out00003": "amr_00004.out00003",
    "hydro_*.out00003": "hydro_00004.out00003",
    "[a-z]*": "info_NNNNN.txt",
}


@pytest.mark.parametrize("unwritten", UNWRITTEN)
def test_an_unfinished_output_is_converted_once_it_is_complete(
    unwritten: str, gravity_run: Path, tmp_path: Path
) -> None:
    """An output without particles and gravity used to become a final step with hydro only."""
    target, aside = tmp_path / "run.ambar", tmp_path / "aside"
    newest = gravity_run / "output_00004"
    aside.mkdir()
    for file in list(newest.glob(unwritten)):
        shutil.move(file, aside / file.name)
    done = ambar.convert(gravity_run, target, mode="a")
    assert (done.converted, done.skipped) == (["output_00002", "output_00003"], [])
    assert UNWRITTEN[unwritten] in done.left_out["output_00004"]
    os.utime(gravity_run / "output_00002" / "amr_00002.out00001", (1, 1))
    done = ambar.convert(gravity_run, target, mode="a")
    assert (done.converted, done.replaced) == ([], ["output_00002"])
    done = ambar.convert(gravity_run, target, mode="a", on_error="skip")
    assert (done.skipped, done.failed) == (["output_00002", "output_00003"], {})
    assert (list(done.left_out), done.source_bytes) == (["output_00004"], 0)
    assert "nothing new, 2 already there, the store has" in str(done)
    for file in aside.iterdir():
        shutil.move(file, newest / file.name)
    done = ambar.convert(gravity_run, target, mode="a")
    assert (done.converted, done.replaced, done.failed) == (["output_00004"], [], {})
    assert set(ambar.open_series(target)[-1].components) == {"hydro", "gravity", "particles"}


@pytest.mark.parametrize("file", ["hydro_00004.out00002", "grav_00004.out00003"])
def test_a_file_without_content_is_an_unfinished_output(
    file: str, gravity_run: Path, tmp_path: Path
) -> None:
    (gravity_run / "output_00004" / file).write_bytes(b"")
    message = f"not complete: expected content in {file}, found 0 bytes"
    with pytest.raises(ambar.CorruptError, match=message):
        ambar.convert(gravity_run / "output_00004", tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


def test_outputs_with_invalid_units_are_skipped(gravity_run: Path, tmp_path: Path) -> None:
    """They stopped the conversion with on_error="skip", too."""
    info = gravity_run / "output_00003" / "info_00003.txt"
    info.write_text(re.sub(r"(unit_l\s*=).*", r"\1  0.0", info.read_text()))
    message = "info_00003.txt: invalid unit_l: 0.0; expected a finite number > 0"
    with pytest.raises(ambar.InvalidError, match=message):
        ambar.convert(gravity_run, tmp_path / "stopped.ambar")
    done = ambar.convert(gravity_run, tmp_path / "run.ambar", on_error="skip")
    assert done.converted == ["output_00002", "output_00004"]
    assert message in done.failed["output_00003"]


def test_other_files_of_a_run_are_reported(run: Path, tmp_path: Path) -> None:
    """They were ignored without a word."""
    (run / "averages.nc").write_bytes(b"CDF")
    (run / "maps.zarr").mkdir()
    (run / "notes.txt").write_text("a run")
    done = ambar.convert(run, tmp_path / "x.ambar")
    assert (len(done.converted), list(done.left_out)) == (2, ["averages.nc", "maps.zarr"])
    assert "left out: averages.nc, it is not an output of RAMSES; convert it" in str(done)
    assert ambar.convert(run / "output_00001", tmp_path / "one.ambar").left_out == {}
    shutil.rmtree(run / "output_00002")
    with pytest.raises(ValueError, match="is a folder of 1 RAMSES output: use one, .*, or convert"):
        ambar.open(run)


def test_components_that_were_removed_can_be_left_out(gravity_run: Path, tmp_path: Path) -> None:
    """What was removed on purpose does not make an output incomplete for the other components."""
    single = gravity_run / "output_00003"
    for kind in ("grav", "part"):
        for file in single.glob(f"{kind}_*.out*"):
            file.unlink()
    with pytest.raises(ambar.CorruptError, match="name the components"):
        ambar.convert(single, tmp_path / "x.ambar")
    ambar.convert(single, tmp_path / "x.ambar", components=["hydro"])
    assert list(ambar.open_snapshot(tmp_path / "x.ambar").components) == ["hydro"]


def test_an_output_that_was_overwritten_is_converted_again(run: Path, tmp_path: Path) -> None:
    """An output that a restarted run wrote again used to be skipped for ever."""
    target = tmp_path / "run.ambar"
    ambar.convert(run, target, mode="a")
    assert ambar.convert(run, target, mode="a").skipped == ["output_00001", "output_00002"]
    (run / "output_00002" / "notes.md").write_text("not a file of RAMSES")
    assert ambar.convert(run, target, mode="a").skipped == ["output_00001", "output_00002"]
    file = run / "output_00001" / "hydro_00001.out00001"
    content = bytearray(file.read_bytes())
    # The last value of the last record, of a domain's own or a neighbour's octs.
    before = ambar.open_snapshot(run / "output_00001").load().amr.read()
    value = np.float64(before["pressure"].max()).tobytes()
    at = content.index(value)
    content[at : at + 8] = np.float64(1234.5).tobytes()
    file.write_bytes(content)
    done = ambar.convert(run, target, mode="a")
    assert (done.replaced, done.skipped, done.converted) == (["output_00001"], ["output_00002"], [])
    series = ambar.open_series(target)
    assert series.outputs == [1, 2]
    expected = ambar.open_snapshot(run / "output_00001").load().amr.read()
    for name, values in series.output(1).amr.read().items():
        np.testing.assert_array_equal(values, expected[name], err_msg=name)
    assert ambar.convert(run, target, mode="a").skipped == ["output_00001", "output_00002"]


def edit_info(folder: Path, values: dict[str, str]) -> None:
    """Replace values in the info file of an output."""
    (file,) = folder.glob("info_[0-9]*.txt")
    text = file.read_text()
    for name, value in values.items():
        text, count = re.subn(rf"(?m)^({name} *= *)\S+", rf"\g<1>{value}", text)
        assert count == 1
    file.write_text(text)


BASE = Spec(ndim=2, domains=1, level_min=1, level_max=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replace(BASE, ndim=3), "expected 2 dimensions like the outputs in .*, found 3;"),
        (replace(BASE, boxlen=2.0), "expected boxlen=1 like .*, found boxlen=2;"),
        (replace(BASE, root=(2, 1)), "expected 1 x 1 root cells like .*, found 2 x 1;"),
        ({"unit_d": "2.0E-24"}, "expected unit_d=.* like .*, found unit_d=2e-24; convert outputs"),
        ({"H0": "67.5"}, r"expected H0=70 like .*, found H0=67\.5;"),
    ],
)
def test_outputs_of_another_run_are_refused(
    change: Spec | dict[str, str], message: str, tmp_path: Path
) -> None:
    """They replaced the outputs with the same numbers."""
    target = tmp_path / "run.ambar"
    write_output(tmp_path / "run", BASE)
    ambar.convert(tmp_path / "run", target)
    before = target.read_bytes()
    spec = change if isinstance(change, Spec) else BASE
    other = write_output(tmp_path / "other", spec).folder
    if isinstance(change, dict):
        edit_info(other, change)
    with pytest.raises(ValueError, match=message):
        ambar.convert(tmp_path / "other", target, mode="a")
    assert target.read_bytes() == before
    one = tmp_path / "one.ambar"
    ambar.convert(other, one)
    with pytest.raises(ValueError, match="a series has the outputs of one run"):
        ambar.merge([target, one], tmp_path / "both.ambar", on_conflict="skip")


def test_levels_domains_and_units_of_an_expanding_run_may_change(tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    first = replace(BASE, expansion=0.5)
    later = replace(BASE, expansion=0.75, number=8, domains=2, level_max=3, seed=2)
    write_output(tmp_path / "run", first)
    ambar.convert(tmp_path / "run", target)
    folder = write_output(tmp_path / "run", later).folder
    edit_info(folder, {"unit_l": "4.5E+21"})
    assert ambar.convert(tmp_path / "run", target, mode="a").converted == ["output_00008"]
    units = [snapshot.info.units.length("cm") for snapshot in ambar.open_series(target)]
    assert units == [3.0e21, 4.5e21]
    edit_info(folder, {"omega_m": "0.31"})
    with pytest.raises(ValueError, match=r"expected omega_m=0\.3 like .*, found omega_m=0\.31"):
        ambar.convert(tmp_path / "run", target, mode="a")


def spoil(run: Path, number: int, how: str) -> None:
    """Make an output of a run one that cannot be converted."""
    folder = run / f"output_{number:05d}"
    if how == "cut short":  # found while the output is written to the store
        file = folder / f"hydro_{number:05d}.out00002"
        file.write_bytes(file.read_bytes()[:-100])
    else:
        for file in folder.glob("info_*" if how == "no info" else "amr_*"):
            file.unlink()


@pytest.mark.parametrize("how", ["cut short", "no info", "no amr"])
@pytest.mark.parametrize("number", [2, 3, 4])
def test_one_bad_output_does_not_block_the_others(
    how: str, number: int, gravity_run: Path, tmp_path: Path
) -> None:
    """One bad output used to keep all outputs of a run from being converted."""
    spoil(gravity_run, number, how)
    others = [other for other in (2, 3, 4) if other != number]
    name = f"output_{number:05d}"
    done = ambar.convert(gravity_run, tmp_path / "skip.ambar", on_error="skip", fields=["rho"])
    is_newest = number == 4  # RAMSES may be writing it
    assert list(done.left_out if is_newest else done.failed) == [name]
    assert done.converted == [f"output_{other:05d}" for other in others]
    series = ambar.open_series(tmp_path / "skip.ambar")
    assert series.outputs == others
    assert all(snapshot.amr.fields == ["density"] for snapshot in series)
    again = ambar.convert(
        gravity_run, tmp_path / "skip.ambar", mode="a", on_error="skip", fields=["rho"]
    )
    assert list(again.left_out if is_newest else again.failed) == [name]
    assert again.skipped == done.converted
    if is_newest:
        return

    target = tmp_path / "stop.ambar"
    with pytest.raises((ambar.AmbarError, OSError), match=name):
        ambar.convert(gravity_run, target, mode="a")
    before = [other for other in others if other < number]
    assert target.exists() == bool(before)
    if before:
        assert ambar.open_series(target).outputs == before


def test_advice_on_fields_regions_and_boxes(run: Path, tmp_path: Path) -> None:
    output, target = run / "output_00002", tmp_path / "x.ambar"
    with pytest.raises(KeyError, match="did you mean 'density'"):
        ambar.convert(output, target, fields=["dens"])
    with pytest.raises(ValueError, match="but to stores: convert the source to a store first"):
        ambar.convert(output, target, region=ambar.Box((0, 0, 0), (1, 1, 1)))
    box = "density@[2:3, 0:1, 0:1]"
    with pytest.warns(UserWarning, match=r"outside of the domain.* code coordinates, here from"):
        ambar.convert(output, target, error_bound={box: 0.1})


def test_a_run_of_bad_outputs_raises(gravity_run: Path, tmp_path: Path) -> None:
    for number in (2, 3, 4):
        spoil(gravity_run, number, "cut short")
    with pytest.raises(ambar.CorruptError, match="output_00002"):
        ambar.convert(gravity_run, tmp_path / "x.ambar", on_error="skip")
    assert not (tmp_path / "x.ambar").exists()
    with pytest.raises(ValueError, match="on_error"):
        ambar.convert(gravity_run, tmp_path / "x.ambar", on_error="ignore")


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
    with pytest.raises(ValueError, match="of range"):
        ambar.convert(output("sedov"), target, error_bound="a little")
    with pytest.raises((FileNotFoundError, KeyError)):
        ambar.convert(tmp_path / "nothing", target)
    with pytest.raises(KeyError, match="entropy"):
        ambar.convert(output("sedov"), target, fields=["entropy"])
    assert list(tmp_path.iterdir()) == []
    ambar.convert(output("sedov"), target)
    with pytest.raises(FileExistsError):
        ambar.convert(output("sedov"), target)
    ambar.convert(output("sedov"), target, mode="w")


def test_a_cut_short_output_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "output_00002"
    shutil.copytree(output("sedov"), folder)
    file = folder / "hydro_00002.out00003"
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(ambar.CorruptError, match="hydro_00002.out00003"):
        ambar.convert(folder, tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


def test_opening_paths_that_are_not_stores(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ambar.open(tmp_path / "nothing.ambar")
    (tmp_path / "empty.ambar").write_bytes(b"")
    (tmp_path / "text.ambar").write_bytes(b"no store at all" * 1000)
    for name in ("empty.ambar", "text.ambar"):
        with pytest.raises(ambar.CorruptError, match=name):
            ambar.open(tmp_path / name)


def test_opening_a_folder_of_outputs_says_what_to_do(run: Path) -> None:
    with pytest.raises(ValueError, match="convert"):
        ambar.open(run)


def test_open_reads_ramses_lazily(gravpart: ambar.Snapshot) -> None:
    snapshot = ambar.open(output("gravpart"))
    assert isinstance(snapshot, ambar.Snapshot)
    assert snapshot.info.ndim == gravpart.info.ndim
    assert snapshot.namelist.startswith("&RUN_PARAMS")
    assert "RUN_PARAMS" not in repr(snapshot.info)  # fits on a screen
    assert len(snapshot.amr) == len(gravpart.amr)


def test_an_opened_output_reads_only_what_is_asked_for(
    gravpart: ambar.Snapshot, tmp_path: Path
) -> None:
    """Files are emptied that must not be needed. All components used to be read for any of them."""
    folder = tmp_path / "output_00002"
    shutil.copytree(output("gravpart"), folder)
    cells = gravpart.amr.read()
    snapshot = ambar.open_snapshot(folder)

    def empty(*patterns: str) -> None:
        for pattern in patterns:
            for file in folder.glob(pattern):
                file.write_bytes(b"")

    empty("part_*")
    corner = ambar.Box((0.05,) * 3, (0.1,) * 3)
    expected = gravpart.amr.read(["x", "density", "potential"], region=corner)
    found = snapshot.amr.read(["x", "density", "potential"], region=corner)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    some: dict[str, Any] = {
        "region": ambar.Sphere("bc", 0.3),
        "where": "density > 1.5",
        "levels": (4, 5),
    }
    np.testing.assert_array_equal(
        snapshot.amr.read(["ix"], **some)["ix"], gravpart.amr.read(["ix"], **some)["ix"]
    )

    empty("grav_*")
    assert snapshot.amr.fields == [name for name in gravpart.amr.fields if name != "domain"]
    for name in ("density", "pressure"):
        read = snapshot.amr.read([name])[name]
        np.testing.assert_array_equal(read, cells[name], err_msg=name)
    np.testing.assert_array_equal(
        snapshot.amr.read(["x"], where="velocity_x > 0")["x"],
        cells["x"][cells["velocity_x"] > 0],
    )
    image = gravpart.amr.project("velocity_y", weight="velocity_z", level=4)
    np.testing.assert_array_equal(
        snapshot.amr.project("velocity_y", weight="velocity_z", level=4), image
    )
    with pytest.raises(ambar.CorruptError, match="grav_00002"):
        snapshot.amr.read(["potential"])

    empty("hydro_*", "amr_*")
    # The tree and these fields are kept.
    assert (len(snapshot.amr), snapshot.amr.levels) == (len(gravpart.amr), (4, 6))
    both = snapshot.amr.read(["density", "velocity_x"], region=corner)["density"]
    np.testing.assert_array_equal(both, expected["density"])
    grid = snapshot.amr.grid("pressure", level=4)
    np.testing.assert_array_equal(grid, gravpart.amr.grid("pressure", level=4))


def test_particles_of_an_opened_output_are_read_by_columns(gravpart: ambar.Snapshot) -> None:
    opened = ambar.open_snapshot(output("gravpart"))
    assert len(opened.particles) == len(gravpart.particles)
    assert opened.particles.dtype("mass") == np.float64
    region, where = ambar.Sphere((0.0,) * 3, 0.4), "velocity_x > 0"
    for fields in (["mass"], ["identity", "family"], None):
        for part in ({}, {"region": region}, {"where": where}, {"region": region, "where": where}):
            found = opened.particles.read(fields, **part)
            expected = gravpart.particles.read(fields, **part)
            assert found.columns == expected.columns
            for name in expected:
                np.testing.assert_array_equal(np.sort(found[name]), np.sort(expected[name]))


def test_threads_change_nothing(gravpart: ambar.Snapshot) -> None:
    one, many = gravpart.amr.read(threads=1), gravpart.amr.read(threads=4)
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
def test_a_store_that_only_claims_to_be_a_snapshot(
    attributes: dict[str, Any], tmp_path: Path
) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer._create_group("", {"ambar": {"version": 1, "kind": "snapshot", **attributes}})
    with pytest.raises((ambar.CorruptError, KeyError)):
        _ = ambar.open_snapshot(tmp_path / "x.ambar").amr

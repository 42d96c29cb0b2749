"""Comparisons find every error, tell whether bounds held, refuse what does not belong together."""

from __future__ import annotations

import json
import math
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar.cli import app, main
from ambar.comparison import error_metrics as measures
from ambar.comparison import rows as row_comparison
from tests.helpers.amrex_plotfiles import BOXES_3D, smooth, steep, write_plotfile
from tests.helpers.ramses_outputs import write_output
from tests.helpers.ramses_outputs.variants import FULL
from tests.helpers.sample_outputs import amrex_sample, output

BOUND = 1e-3


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plotfile, and a store of it with a bound."""
    folder = tmp_path_factory.mktemp("pair")
    plotfile = write_plotfile(folder / "plt00003")
    store = folder / "plt.ambar"
    ambar.convert(plotfile, store, error_bound=f"{BOUND} of range", fsync=False)
    return plotfile, store


def test_errors_are_those_of_the_cells(pair: tuple[Path, Path]) -> None:
    found = ambar.compare(*pair)
    assert [one.field for one in found.fields] == ["density", "Temp"]
    a, b = (ambar.open_snapshot(path).amr for path in pair)
    for one in found.fields:
        names = ["level", "ix", "iy", "iz", one.field]
        columns = []
        for cells in (a.read(names), b.read(names)):
            order = np.lexsort([cells[name] for name in names[3::-1]])
            columns.append((cells["level"][order], cells[one.field][order]))
        (level, values), (_, other) = columns
        difference = np.abs(other - values)
        value_range = values.max() - values.min()
        assert one.all.max_error == difference.max()
        assert one.all.psnr == pytest.approx(
            20 * math.log10(value_range) - 10 * math.log10(np.square(difference).mean())
        )
        assert one.bound == pytest.approx(BOUND * value_range, rel=1e-2)
        assert one.held
        assert isinstance(one.bound, float)
        assert 0.3 * one.bound < one.all.max_error <= one.bound
        assert found.cells == len(a) == one.all.cells
        assert [part.level for part in one.levels] == [0, 1]
        for part in one.levels:
            assert part.cells == np.count_nonzero(level == part.level)
            assert part.max_error == difference[level == part.level].max()
            assert part.lowest == values[level == part.level].min()
            assert 0.99 < part.ssim < 1
        assert one.ratio > 5
    assert found.held
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["held"] is True


def test_a_lossless_store_has_no_errors(pair: tuple[Path, Path], tmp_path: Path) -> None:
    store = tmp_path / "x.ambar"
    ambar.convert(pair[0], store, fsync=False)
    for first, second in ((pair[0], store), (store, pair[0])):
        for one in ambar.compare(first, second).fields:
            assert (one.bound, one.all.max_error, one.all.psnr) == (0.0, 0.0, math.inf)
            assert one.all.ssim == pytest.approx(1)
            assert one.held
    forward, backward = ambar.compare(pair[0], store), ambar.compare(store, pair[0])
    assert [one.ratio for one in forward.fields] == [one.ratio for one in backward.fields]
    assert max(one.ratio for one in forward.fields) > 1.5
    (one,) = ambar.compare(pair[0], pair[0], "Temp").fields
    assert (one.bound, one.held, one.ratio) == (None, None, 1.0)


def test_bounds_that_are_given_count(pair: tuple[Path, Path]) -> None:
    assert not ambar.compare(*pair, bound="1e-5 of range").held
    assert ambar.compare(*pair, bound={"Temp": "2e-3 of range"}).fields[1].held
    (one,) = ambar.compare(*pair, ["Temp"], bound=0.5).fields
    assert one.bound == 0.5
    for wrong in ("much", "-1", "1e-3 of ranges", "nan"):
        with pytest.raises(ValueError, match="invalid error bound"):
            ambar.compare(*pair, bound=wrong)
    with pytest.raises(KeyError, match="bound is given for .gas."):
        ambar.compare(*pair, bound={"gas": 1.0})


def test_two_lossy_stores_may_differ_by_both_bounds(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.ambar"
    ambar.convert(pair[0], other, error_bound={"Temp": 0.25}, fsync=False)
    found = {one.field: one for one in ambar.compare(pair[1], other).fields}
    own = ambar.compare(*pair, ["Temp"]).fields[0].bound
    assert isinstance(own, float)
    assert found["Temp"].bound == own + 0.25
    assert found["Temp"].held
    # The density of one is exact.
    assert found["density"].held


def test_a_value_that_is_wrong_breaks_the_bound(pair: tuple[Path, Path], tmp_path: Path) -> None:
    def spoiled(*places: np.ndarray) -> np.ndarray:
        values = smooth(*places)
        values[0, 0, 0] += 0.5
        return values

    def lost(*places: np.ndarray) -> np.ndarray:
        values = steep(*places)
        values[1, 1, 1] = np.nan
        return values

    path = write_plotfile(tmp_path / "plt", fields={"density": lost, "Temp": spoiled})
    density, temperature = ambar.compare(pair[0], path, bound=0.4).fields
    assert temperature.held is False
    assert temperature.all.max_error == pytest.approx(0.5)
    assert density.held is False
    assert density.all.max_error == math.inf
    assert math.isnan(density.all.psnr)
    told = CliRunner().invoke(app, ["compare", str(pair[0]), str(path), "--bound", "0.4"])
    assert told.exit_code == 1
    assert told.output.count("NO") == 2
    assert told.output.rstrip().endswith("2 fields exceed their bounds: density, Temp")


def test_what_does_not_belong_together_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_plotfile(tmp_path / "plt", [BOXES_3D[0], BOXES_3D[1][:1]])
    with pytest.raises(ValueError, match="different cells"):
        ambar.compare(pair[0], other)
    flat = write_plotfile(tmp_path / "flat", [[((0, 0), (15, 7))]], domain=(16, 8))
    with pytest.raises(ValueError, match="expected cells of 3 dimensions"):
        ambar.compare(pair[0], flat)
    with pytest.raises(KeyError, match="no field 'gas' in both"):
        ambar.compare(*pair, ["gas"])
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(pair[0]), str(other)])
    assert stopped.value.code == 2


def test_ramses_outputs_are_compared(tmp_path: Path) -> None:
    path = output("gravpart")
    store = tmp_path / "x.ambar"
    ambar.convert(path, store, error_bound={"density": "1e-2 of range"}, fsync=False)
    found = {one.field: one for one in ambar.compare(path, store).fields}
    assert found["density"].all.max_error > 0
    assert all(one.held for one in found.values())
    others = [one for name, one in found.items() if name != "density"]
    assert len(others) > 3
    assert all(one.all.max_error == 0 for one in others)


def test_stores_of_arrays_are_compared(tmp_path: Path) -> None:
    values = np.cumsum(np.random.default_rng(1).normal(size=(50, 60)), axis=1)
    paths = [tmp_path / "a.ambar", tmp_path / "b.ambar", tmp_path / "c.ambar"]
    for path, bound, shape in zip(paths, (None, 0.01, None), (50, 50, 49), strict=True):
        with ambar.create(path, fsync=False) as writer:
            writer.create_array("deep/x", values[:shape], error_bound=bound)
            writer.create_array("count", np.arange(5))
            writer.create_array("name", np.array(["a", "b"]))
    found = ambar.compare(paths[0], paths[1])
    by_name = {one.field: one for one in found.fields}
    assert set(by_name) == {"deep/x", "count", "name"}
    x = by_name["deep/x"]
    assert (x.bound, x.held, x.levels) == (0.01, True, [])
    assert 0.005 < x.all.max_error <= 0.01
    assert by_name["count"].bound == by_name["name"].bound == 0
    assert found.held
    assert "Values:  2 to 3,000 of a field" in repr(found)
    with pytest.raises(ValueError, match="has shape"):
        ambar.compare(paths[0], paths[2])


@pytest.mark.parametrize(
    ("values", "other", "error", "unequal"),
    [
        ([True, False, True], [True, True, False], np.inf, 2),
        ([1 + 2j, 3j], [1 + 2j, 3j + 4], 4.0, 1),
        (["a", "b", "c"], ["a", "d", "c"], np.inf, 1),
        ([b"a", b"b"], [b"a", b"c"], np.inf, 1),
        (
            np.array(["2020-01-01", "NaT"], "M8[s]"),
            np.array(["2020-01-02", "NaT"], "M8[s]"),
            86400,
            1,
        ),
        (np.array([5], "m8[s]"), np.array([5], "m8[ms]"), 4995.0, 1),
        (np.array([5], "M8[ns]"), np.array([5]), np.inf, 1),
        ([2**60, 1], [2**60 + 1, 1], 1.0, 1),
        ([2**60 + 1, 1], [2.0**60, 1.0], 1.0, 1),
        (np.array([2**63 - 1, 5]), np.array([2**63, 5], "u8"), 1.0, 1),
    ],
)
def test_values_of_any_dtype_are_compared(
    values: Any, other: Any, error: float, unequal: int, tmp_path: Path
) -> None:
    """Arrays that were not real numbers were left out, and `held` was True."""
    for name, array in (("a", values), ("b", other), ("c", values)):
        with ambar.create(tmp_path / f"{name}.ambar", fsync=False) as writer:
            writer.create_array("x", np.asarray(array))
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")
    (one,) = found.fields
    assert (one.held, found.held) == (False, False)
    assert (one.all.max_error, one.all.unequal) == (error, unequal)
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "c.ambar")
    assert (found.held, found.fields[0].all.max_error, found.fields[0].all.unequal) == (True, 0, 0)


def test_nothing_compared_is_not_held(tmp_path: Path) -> None:
    for name in "ab":
        with ambar.create(tmp_path / f"{name}.ambar", fsync=False) as writer:
            writer.create_array(name, np.arange(3))
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")
    assert (found.fields, found.only_in_original, found.held) == ([], ["a"], False)


def test_values_near_the_largest_number_cause_no_warnings_of_numpy(tmp_path: Path) -> None:
    """Medians, means and the division by the scale of other values overflowed."""

    def large(*places: np.ndarray) -> np.ndarray:
        return 1.6e308 + 1e307 * places[0]

    def small(*places: np.ndarray) -> np.ndarray:
        return large(*places) / 1e308

    first, other = (
        write_plotfile(tmp_path / name, fields={"a": field})
        for name, field in (("large", large), ("small", small))
    )
    store = tmp_path / "x.ambar"
    ambar.convert(first, store, error_bound="1e-3 of range", fsync=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ambar.compare(first, store, spectrum="a")
        assert ambar.compare(other, first).fields[0].all.max_error > 1e308
    assert found.held
    assert found.spectrum is not None
    assert found.spectrum.ratio == pytest.approx([1.0] * len(found.spectrum.k), abs=0.2)


@pytest.mark.parametrize("size", [1e300, 1e308, 1e-300, 5e-324])
def test_values_of_any_size_are_compared(tmp_path: Path, size: float) -> None:
    """Squares of values such as 1e300 overflowed; those of 1e-300 vanished, and their errors."""

    def large(*places: np.ndarray) -> np.ndarray:
        return np.where(places[0] > 0.5, size, -size) * np.where(places[1] > 0.5, 1.0, 0.5)

    def changed(*places: np.ndarray) -> np.ndarray:
        return large(*places) * np.where(places[2] > 0.5, 1.0, 0.75)

    def unit(*places: np.ndarray) -> np.ndarray:
        return large(*places) / size

    def unit_changed(*places: np.ndarray) -> np.ndarray:
        return changed(*places) / size

    pairs = [
        [
            write_plotfile(tmp_path / f"{name}{number}", fields={"a": field})
            for number, field in all_
        ]
        for name, all_ in (
            ("x", enumerate((large, changed))),
            ("unit", enumerate((unit, unit_changed))),
        )
    ]
    store = tmp_path / "x.ambar"
    ambar.convert(pairs[0][0], store, fsync=False)
    (same,) = ambar.compare(pairs[0][0], store).fields
    assert (same.all.max_error, same.all.psnr, same.held) == (0.0, math.inf, True)
    (one,), (expected,) = (
        ambar.compare(first, other, bound="0.3 of range").fields for first, other in pairs
    )
    if size > 1e-320:  # of the smallest numbers there are no quarters
        assert one.all.psnr == pytest.approx(expected.all.psnr)
        assert one.all.ssim == pytest.approx(expected.all.ssim)
    assert one.all.max_error > 0 or size < 1e-320
    assert isinstance(one.bound, float)
    assert math.isfinite(one.bound)


@pytest.mark.parametrize(
    ("bound", "fine"), [("1e-3 of range", "1e-4 of range"), ("80 dB", "90 dB")]
)
def test_bounds_of_parts_of_a_field_without_finite_values(
    bound: str, fine: str, tmp_path: Path
) -> None:
    """`compare` raised an error about an invalid value range."""

    def nan(*places: np.ndarray) -> np.ndarray:
        return np.full(places[0].shape, np.nan)

    plotfile = write_plotfile(tmp_path / "plt", fields={"a": nan})
    bounds = {"a": bound, "a@1": fine}
    (one,) = ambar.compare(plotfile, plotfile, bound=bounds).fields
    assert (one.held, one.all.max_error, len(one.bounds)) == (True, 0, 2)


@pytest.mark.parametrize(
    ("coarse", "fine"), [("40 dB", "80 dB"), ("0.01 rms", "1e-5 rms"), ("1e-5 rms", "0.01 rms")]
)
def test_mean_errors_of_each_part_are_checked(coarse: str, fine: str, tmp_path: Path) -> None:
    """Only the loosest of the bounds was checked."""
    plotfile = write_plotfile(tmp_path / "plt")
    bounds = {"density": coarse, "density@1": fine}
    store = tmp_path / "x.ambar"
    ambar.convert(plotfile, store, error_bound=bounds, fsync=False)
    (one,) = ambar.compare(plotfile, store, ["density"]).fields
    assert one.held
    assert one.all.max_error > 0
    ambar.convert(plotfile, store, mode="w", error_bound={"density": "30 dB"}, fsync=False)
    (one,) = ambar.compare(plotfile, store, ["density"], bound=bounds).fields
    assert not one.held


def test_the_error_that_a_bound_limits_is_measured(tmp_path: Path) -> None:
    source, store = output("gravpart"), tmp_path / "x.ambar"
    bounds = {"density": "1e-3 relative", "pressure": "60 dB", "velocity_x": "8 bits"}
    ambar.convert(source, store, components=["hydro"], error_bound=bounds, fsync=False)
    found = ambar.compare(source, store)
    measured = {one.field: one.measured for one in found.fields}
    assert 5e-4 < (measured["density"] or 0) <= 1e-3
    pressure = next(one for one in found.fields if one.field == "pressure")
    root = float(str(pressure.bound).removesuffix(" rms"))
    assert 0.5 * root < (pressure.measured or 0) <= root
    assert measured["velocity_x"] is None
    assert measured["velocity_y"] == 0
    assert "max abs error  measured   error bound" in str(found)


def test_spaces_in_bounds_do_not_count(pair: tuple[Path, Path]) -> None:
    (one,) = ambar.compare(*pair, ["Temp"], bound="1e-3 of range").fields
    (other,) = ambar.compare(*pair, ["Temp"], bound=" 1e-3  of \trange ").fields
    assert one.bound == other.bound


@pytest.fixture(scope="module")
def particles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An output with particles, sinks and clumps, and a store of it."""
    folder = tmp_path_factory.mktemp("particles")
    run = write_output(folder, replace(FULL, specials=False)).folder
    store = folder / "run.ambar"
    ambar.convert(run, store, error_bound={"mass": 1e-3}, fsync=False)
    return run, store


def test_particles_are_compared_too(particles: tuple[Path, Path], tmp_path: Path) -> None:
    """Particles were passed over: whatever happened to them, both were said to be equal."""
    for pair in (particles, particles[::-1]):
        found = ambar.compare(*pair)
        assert found.held
        tables = {one.component: one for one in found.tables}
        assert set(tables) == {"particles", "sinks", "clumps"}
        one = tables["particles"]
        assert (one.matched_by, one.missing, one.extra) == ("identity", 0, 0)
        errors = {column.column: column for column in one.columns}
        assert errors["mass"].bound == 1e-3
        assert 0 < errors["mass"].max_error <= 1e-3
        assert errors["position_x"].max_error == errors["position_x"].bound == 0
    spoiled = tmp_path / "spoiled.ambar"
    shutil.copy(particles[1], spoiled)
    with ambar.create(spoiled, "a") as writer:
        values = ambar.open_snapshot(spoiled).particles.read(["velocity_y"])["velocity_y"]
        writer.write_region("particles/velocity_y", values[:1] + 0.25, [0])
    found = ambar.compare(particles[0], spoiled)
    assert not found.held
    (wrong,) = [
        (one.component, column.column, column.max_error)
        for one in found.tables
        for column in one.columns
        if not column.held
    ]
    assert wrong == ("particles", "velocity_y", pytest.approx(0.25))
    assert all(one.held for one in found.fields)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["held"] is False
    result = CliRunner().invoke(app, ["compare", str(particles[0]), str(spoiled)])
    assert result.exit_code == 1
    assert "velocity_y" in result.output
    assert ambar.compare(particles[0], spoiled, bound={"particles/velocity_y": 0.3}).held
    assert ambar.compare(particles[0], spoiled, ["density", "sinks"]).held
    with pytest.raises(KeyError, match="bound is given for .dust/mass."):
        ambar.compare(particles[0], spoiled, bound={"dust/mass": 0.3})
    found = ambar.compare(
        particles[0], spoiled, ["particles"], bound={"particles/mass": "1e-1 of range"}
    )
    assert {one.column: one.bounds for one in found.tables[0].columns}["mass"] == {
        "particles/mass": "1e-1 of range"
    }


def test_components_that_one_lacks_are_named(particles: tuple[Path, Path], tmp_path: Path) -> None:
    for number, components in enumerate((["hydro"], ["particles"])):
        part = tmp_path / f"{number}.ambar"
        ambar.convert(particles[0], part, components=components, fsync=False)
        found = ambar.compare(particles[0], part)
        assert ("particles" in found.only_in_original) == (number == 0)
        assert ("density" in found.only_in_original) == (number == 1)
        assert [one.component for one in found.tables] == ["particles"][: number == 1]


def test_species_of_a_plotfile_are_compared(tmp_path: Path) -> None:
    plotfile, store = amrex_sample("nyx64_plt00040"), tmp_path / "x.ambar"
    ambar.convert(plotfile, store, components=["DM"], fsync=False)
    (one,) = ambar.compare(plotfile, store).tables
    assert (one.component, one.matched_by, one.rows) == ("particles/DM", "id, cpu", 262144)
    assert one.held
    assert all(column.max_error == 0 for column in one.columns)
    with ambar.create(store, "a", fsync=False) as writer:
        writer.write_region("particles/DM/mass", np.zeros(1), [7])
    (one,) = ambar.compare(plotfile, store).tables
    assert [column.column for column in one.columns if not column.held] == ["mass"]


def table(**columns: object) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in columns.items()}


@pytest.mark.parametrize(
    ("a", "b", "by", "pairs"),
    [
        # By number, in whichever order they are, where numbers tell them apart.
        (
            table(identity=[3, 1, 2], mass=[0, 0, 0]),
            table(identity=[1, 2, 4], mass=[0, 0, 0]),
            "identity",
            {(1, 0), (2, 1)},
        ),
        (table(id=[1, 1], cpu=[0, 1]), table(id=[1, 1], cpu=[1, 0]), "id, cpu", {(0, 1), (1, 0)}),
        # Numbers twice tell nothing.
        (
            table(identity=[0, 0], position_x=[1.0, 2.0]),
            table(identity=[0, 0], position_x=[2.0, 1.0]),
            "position",
            {(0, 1), (1, 0)},
        ),
        # In order, where that is nearer.
        (
            table(position_x=[2.0, 1.0]),
            table(position_x=[2.1, 1.1]),
            "order",
            {(0, 0), (1, 1)},
        ),
        (
            table(x=[1.0, 2.0, 3.0], y=[0.0, 0.0, 0.0]),
            table(x=[3.0, 1.0], y=[0.0, 0.0]),
            "position",
            {(0, 1), (2, 0)},
        ),
        (table(mass=[1.0, 2.0]), table(mass=[1.0]), "order", {(0, 0)}),
        (table(), table(), "order", set()),
    ],
)
def test_rows_are_matched(
    a: dict[str, Any], b: dict[str, Any], by: str, pairs: set[tuple[int, int]]
) -> None:
    how, rows, other = row_comparison._match(a, b)
    assert how == by
    assert set(zip(rows.tolist(), other.tolist(), strict=True)) == pairs


def test_a_series_needs_a_number(tmp_path: Path) -> None:
    run, store = tmp_path / "run", tmp_path / "run.ambar"
    run.mkdir()
    for number in (1, 2):
        write_output(run, replace(FULL, number=number, specials=False))
    ambar.convert(run, store, fsync=False, error_bound={"density": "1e-2 of range"})
    with pytest.raises(ValueError, match="series of 2 outputs; choose one, for example output=1"):
        ambar.compare(run / "output_00002", store)
    found = ambar.compare(run / "output_00002", store, ["density", "pressure"], output=2)
    assert [one.held for one in found.fields] == [True, True]
    assert found.fields[0].bound
    assert found.fields[1].bound == 0


def test_similarity_is_that_of_its_definition() -> None:
    random = np.random.default_rng(3)
    a = random.normal(5, 1, (16, 16))
    b = a + random.normal(0, 0.3, a.shape)
    places = [place.reshape(-1) for place in np.indices(a.shape)]
    window = measures.windows(places)
    assert len(np.unique(window)) == 4
    value_range = float(a.max() - a.min())
    scale = measures.Scale(1.0, value_range)
    found, count = measures.ssim(a.reshape(-1), b.reshape(-1), window, scale, 2)
    one, two = (0.01 * value_range) ** 2, (0.03 * value_range) ** 2
    expected = []
    for y, x in ((0, 0), (0, 8), (8, 0), (8, 8)):
        p, q = (of[y : y + 8, x : x + 8].reshape(-1) for of in (a, b))
        covariance = ((p - p.mean()) * (q - q.mean())).mean()
        above = (2 * p.mean() * q.mean() + one) * (2 * covariance + two)
        expected.append(above / ((p.mean() ** 2 + q.mean() ** 2 + one) * (p.var() + q.var() + two)))
    assert count == 4
    assert found == pytest.approx(np.mean(expected))
    # A window of which less than half is there does not count.
    few = places[0] * 16 + places[1] < 16 * 3
    assert measures.ssim(a.reshape(-1)[few], b.reshape(-1)[few], window[few], scale, 2)[1] == 0


def test_the_power_of_a_wave_is_at_its_number() -> None:
    x = (np.arange(32) + 0.5) / 32 * 2.0
    grid = 3 * (1 + 0.1 * np.cos(2 * np.pi * 4 * x / 2.0))[:, None, None] * np.ones((1, 16, 16))
    k, power, modes = measures.power_spectrum(grid, [2 / 32] * 3)
    peak = int(np.argmax(power))
    # The box is 1 wide in y, so shells are 2 pi apart; the wave has 4 / 2 of them.
    assert k[peak] == pytest.approx(2 * np.pi * 2, rel=0.2)
    # Its variance over the volume of 2, shared by the shell's modes.
    assert (power * modes).sum() / 2 == pytest.approx(0.1**2 / 2)
    assert power.sum() == pytest.approx(power[peak])


def test_the_command_prints_and_exits(pair: tuple[Path, Path]) -> None:
    a, b = map(str, pair)
    told = CliRunner().invoke(app, ["compare", a, b])
    assert told.exit_code == 0, told.output
    assert told.output.count("yes") == 2
    assert CliRunner().invoke(app, ["compare", a, b, "--bound", "1e-6 of range"]).exit_code == 1
    printed = CliRunner().invoke(app, ["compare", a, b, "--json", "-f", "Temp"])
    values = json.loads(printed.stdout)
    assert [one["field"] for one in values["fields"]] == ["Temp"]
    assert values["fields"][0]["held"] is True
    # The coarse level fills its box in this plotfile.
    printed = CliRunner().invoke(app, ["compare", a, b, "--spectrum", "density"])
    assert printed.exit_code == 0, printed.output
    assert "spectrum of density" in printed.output


def blocks_of_meshes() -> Any:
    pv = pytest.importorskip("pyvista")
    rng = np.random.default_rng(0)
    made = []
    for size in (20, 24):
        mesh = pv.ImageData(dimensions=(size,) * 3).to_tetrahedra()
        mesh.clear_data()
        mesh["T"] = 300 + 20 * np.sin(mesh.points[:, 0] / 5) + rng.random(mesh.n_points)
        mesh["v"] = rng.random((mesh.n_points, 3))
        mesh.cell_data["rank"] = rng.integers(0, 9, mesh.n_cells)
        made.append(mesh)
    return pv.MultiBlock({"inlet": made[0], "wing": made[1]})


@pytest.mark.parametrize("reorder", [False, True])
def test_arrays_of_meshes_have_their_names(reorder: bool, tmp_path: Path) -> None:
    """Fields were called point_data/0, their path in the store, and "T" was refused."""
    mesh = blocks_of_meshes()["wing"]
    ambar.write_mesh(mesh, tmp_path / "a.ambar", fsync=False)
    ambar.write_mesh(
        mesh, tmp_path / "b.ambar", fsync=False, error_bound={"T": 0.5}, reorder=reorder
    )
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")
    names = ["points", *([] if reorder else ["cells"]), "T", "v", "rank"]
    assert [one.field for one in found.fields] == names
    assert all(one.held for one in found.fields)
    assert (found.not_compared, found.held) == (["cells"] if reorder else [], not reorder)
    assert ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", names).held
    by_name = {one.field: one for one in found.fields}
    assert (by_name["T"].bound, by_name["T"].all.cells) == (0.5, mesh.n_points)
    assert 0.1 < by_name["T"].all.max_error <= 0.5
    assert all(by_name[name].all.max_error == 0 for name in names if name != "T")
    assert by_name["T"].ratio > 2
    (one,) = ambar.compare(
        tmp_path / "a.ambar", tmp_path / "b.ambar", "T", bound={"T": 0.01}
    ).fields
    assert (one.field, one.held) == ("T", False)
    with pytest.raises(KeyError, match="no field 'p'.*in both.*; available: points, .*T, v, rank"):
        ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", "p")


def test_arrays_in_blocks_have_the_names_of_these(tmp_path: Path) -> None:
    mesh = blocks_of_meshes()
    mesh["wing"].cell_data["v"] = np.arange(float(mesh["wing"].n_cells))
    ambar.write_mesh(mesh, tmp_path / "a.ambar", fsync=False)
    ambar.write_mesh(mesh, tmp_path / "b.ambar", fsync=False, error_bound={"T": 0.5})
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", ["T"], bound={"T": 0.5})
    assert [(one.field, one.bound) for one in found.fields] == [
        ("inlet/T", 0.5),
        ("wing/T", 0.5),
    ]
    names = [one.field for one in ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar").fields]
    assert names[2:] == [
        *("inlet/T", "inlet/v", "inlet/rank"),
        *("wing/T", "wing/point_data/v", "wing/rank", "cell_data/v"),
    ]


def test_small_arrays_of_meshes_are_compared(tmp_path: Path) -> None:
    """Arrays that are stored beside the description of a small mesh were left out silently."""
    pv = pytest.importorskip("pyvista")
    mesh = pv.Cube()
    mesh["T"] = np.arange(float(mesh.n_points))
    for name in "ab":
        ambar.write_mesh(mesh, tmp_path / f"{name}.ambar", fsync=False)
        mesh["T"][3] += 7
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", "T")
    assert (found.fields[0].all.max_error, found.held) == (7, False)
    moved = mesh.translate((0, 0, 1))
    ambar.write_mesh(moved, tmp_path / "c.ambar", fsync=False)
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "c.ambar", "points")
    assert (found.fields[0].all.max_error, found.held) == (1, False)
    ambar.write_mesh(pv.ImageData(dimensions=(2, 2, 2)), tmp_path / "d.ambar", fsync=False)
    with pytest.raises(ValueError, match="different blocks, types or grids"):
        ambar.compare(tmp_path / "a.ambar", tmp_path / "d.ambar")


def test_steps_of_meshes_are_compared(tmp_path: Path) -> None:
    mesh = blocks_of_meshes()["wing"]
    for name, bound in (("a", None), ("b", 0.25)):
        path = tmp_path / f"{name}.ambar"
        with ambar.open_mesh_series(path, "w-", fsync=False, error_bound=bound) as series:
            for time in range(3):
                mesh["T"] = mesh.points[:, 1] * time + np.sin(mesh.points[:, 0])
                series.add(mesh, time)
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar", "T", output=2)
    assert found.held
    assert 0 < found.fields[0].all.max_error <= 0.25
    with pytest.raises(ValueError, match="a series of 3 meshes; choose one, for example output=0"):
        ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")


def casts(path: Path, letters: str, bound: float | None = None, shift: int = 0) -> Path:
    encoding = {} if bound is None else {"t": {"error_bound": bound}}
    with ambar.open_collection(path, "w-", encoding=encoding, fsync=False) as made:
        for number, letter in enumerate(letters):
            values = np.sin(np.arange(50.0 + 10 * number))
            times = np.datetime64("2020-01-01", "ns") + np.arange(3) + shift
            names = ("n", np.array(["x"], object))
            made.add(letter, {"t": ("z", values), "time": times, "name": names})
    return path


def test_collections_are_compared_by_their_common_datasets(tmp_path: Path) -> None:
    a = casts(tmp_path / "a.ambar", "abcd")
    found = ambar.compare(a, casts(tmp_path / "b.ambar", "abcd", 0.01))
    assert [(one.field, one.bound, one.held) for one in found.fields] == [
        ("t", 0.01, True),
        ("time", 0.0, True),
        ("name", 0.0, True),
    ]
    assert 0 < found.fields[0].all.max_error <= 0.01
    assert (found.fields[0].bounds, found.cells) == ({"t": "0.01"}, 50 + 60 + 70 + 80)
    assert found.held
    assert not ambar.compare(a, tmp_path / "b.ambar", "t", bound=1e-4).held
    assert not ambar.compare(a, casts(tmp_path / "c.ambar", "abcd", shift=1), "time").held
    found = ambar.compare(a, casts(tmp_path / "d.ambar", "abxy"))
    assert found.datasets_only_in_original == ["c", "d"]
    assert found.datasets_only_in_other == ["x", "y"]
    assert [one.held for one in found.fields] == [True, True, True]
    assert not found.held
    assert "Datasets only in the other:" in repr(found)
    told = CliRunner().invoke(app, ["compare", str(a), str(tmp_path / "d.ambar")])
    assert (told.exit_code, "only in the original:  c, d" in told.output) == (1, True)
    with pytest.raises(ValueError, match="dataset 'a': t has different dimensions"):
        ambar.compare(a, casts(tmp_path / "e.ambar", "ba"))
    with pytest.raises(ValueError, match="no dataset in common"):
        ambar.compare(a, casts(tmp_path / "f.ambar", "xy"))


def test_times_of_collections_are_printed_as_dates(tmp_path: Path) -> None:
    paths = {}
    for name, shift in (("a", 0), ("b", 90_000)):
        paths[name] = tmp_path / f"{name}.ambar"
        times = np.array("2021-04-20T12:30:00.25", "M8[ns]") + np.array([0, shift, "NaT"], "m8[ms]")
        days = np.array("2021-04-20", "M8[s]")
        with ambar.open_collection(paths[name], "w-", fsync=False) as made:
            made.add("x", {"time": ("t", times), "day": days, "wait": ("t", times - times[0])})
            # Another family, with times in another unit.
            made.add("y", {"day": days.astype("M8[ns]"), "station": np.array("Kiel" + name)})
    found = ambar.compare(paths["a"], paths["b"])
    assert found.verdict == "3 fields differ: time, wait, station"
    rows = {line.split()[0]: line for line in repr(found).splitlines() if line[:4] == "    "}
    assert rows["time"].split()[1:3] == rows["wait"].split()[1:3] == ["90", "s"]
    told = CliRunner().invoke(app, ["compare", str(paths["b"]), str(paths["a"])])
    assert told.exit_code == 1
    ranges = [" ".join(line.split()) for line in told.stdout.splitlines()]
    assert "time 3 2021-04-20T12:30:00.25 2021-04-20T12:31:30.25" in ranges
    assert "day 2 2021-04-20T00:00:00 2021-04-20T00:00:00" in ranges
    assert {"wait 3 0 90 s", "station 1 - -"} <= {*ranges}


def test_families_of_collections_are_compared_in_their_own_dtypes(tmp_path: Path) -> None:
    """A family of floats turned the integers of others into floats, which hid differences."""
    for name, shift in (("a", 0), ("b", 1), ("c", 0)):
        with ambar.open_collection(tmp_path / f"{name}.ambar", "w-", fsync=False) as made:
            made.add(
                "x", {"i": np.array([2**60 + shift]), "s": ("t", np.array(["q", np.nan], object))}
            )
            made.add("y", {"i": np.array([0.5]), "flag": np.array([True])})
            made.add("z", {"i": np.array([5], "M8[ns]"), "flag": np.array([3.0])})
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")
    assert {one.field: one.held for one in found.fields} == {"i": False, "s": True, "flag": True}
    assert (found.fields[0].all.unequal, found.fields[0].all.cells) == (1, 3)
    assert ambar.compare(tmp_path / "a.ambar", tmp_path / "c.ambar").held
    with ambar.open_collection(tmp_path / "c.ambar", "a", fsync=False) as changed:
        changed.replace("y", {"flag": np.array([True])})
    with pytest.raises(ValueError, match="dataset 'y' has i only in .*a.ambar"):
        ambar.compare(tmp_path / "a.ambar", tmp_path / "c.ambar")


def test_a_comparison_is_printed_as_a_table(pair: tuple[Path, Path]) -> None:
    found = ambar.compare(*pair)
    lines = repr(found).splitlines()
    assert lines[0] == f"<ambar.Comparison> {pair[0]} and {pair[1]}"
    assert [line.split()[0] for line in lines[-3:-1]] == ["density", "Temp"]
    assert all("1e-3 of range" in line and "  yes  " in line for line in lines[-3:-1])
    assert lines[-1] == "  all bounds hold"
    exceeding = ambar.compare(*pair, bound="1e-6 of range")
    assert "NO" in repr(exceeding)
    assert exceeding.verdict == "2 fields exceed their bounds: density, Temp"
    assert ambar.compare(pair[0], pair[0]).verdict == "all values are equal"
    other = pair[0].with_name("other")
    shutil.copytree(pair[0], other)
    part = next(other.glob("Level_0/Cell_D_*"))
    data = bytearray(part.read_bytes())
    data[-8:] = np.float64(0.5).tobytes()
    part.write_bytes(data)
    differing = ambar.compare(pair[0], other)
    assert differing.verdict == "values differ, and no error bound is known"


def test_the_verdict_names_what_was_not_checked(tmp_path: Path) -> None:
    source = output("gravpart")
    paths = {name: tmp_path / f"{name}.ambar" for name in ("a", "b")}
    bounds = {"a": "60 dB", "b": "1e-3 relative"}
    components = {"a": ["hydro"], "b": ["hydro", "particles"]}
    for name, path in paths.items():
        ambar.convert(
            source,
            path,
            components=components[name],
            error_bound={"density": bounds[name]},
            fsync=False,
        )
    found = ambar.compare(paths["a"], paths["b"])
    assert found.held
    assert found.verdict == (
        "all known bounds hold; not checked, without a known bound: density; not compared, only in "
        "the other: particles"
    )
    chosen = ambar.compare(paths["a"], paths["b"], ["pressure"])
    assert chosen.verdict == "all values are equal"
    done = CliRunner().invoke(app, ["compare", str(paths["a"]), str(paths["b"])])
    assert done.exit_code == 0
    assert done.stdout.count("all known bounds hold") == 1
    assert "by part" not in done.stdout
    assert done.stdout.splitlines()[-1] == found.verdict


def test_strings_and_flags_of_meshes_are_compared(tmp_path: Path) -> None:
    pv = pytest.importorskip("pyvista")
    mesh = pv.ImageData(dimensions=(9, 9, 9)).to_tetrahedra()
    mesh.clear_data()
    for name in "ab":
        mesh.field_data["label"] = [f"run {name}"]
        mesh.cell_data["wet"] = np.arange(mesh.n_cells) % 2 == (name == "b")
        ambar.write_mesh(mesh, tmp_path / f"{name}.ambar", fsync=False)
    found = ambar.compare(tmp_path / "a.ambar", tmp_path / "b.ambar")
    by_name = {one.field: one.all.unequal for one in found.fields}
    assert by_name == {"points": 0, "cells": 0, "wet": mesh.n_cells, "label": 1}
    assert not found.held
    assert ambar.compare(tmp_path / "a.ambar", tmp_path / "a.ambar").held

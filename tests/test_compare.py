"""Comparisons find every error, tell whether bounds held, refuse what does not belong together."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar import measures
from ambar.cli import app, main
from ambar.cli.compare import bars_of
from amrex_plotfiles import BOXES_3D, FIELDS, smooth, steep, write_plotfile
from conftest import output
from ramses_outputs import write_output
from ramses_variants import FULL

BOUND = 1e-3


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plotfile, and a store of it with a bound."""
    folder = tmp_path_factory.mktemp("pair")
    plotfile = write_plotfile(folder / "plt00003")
    store = folder / "plt.ambar"
    ambar.convert(plotfile, store, error_bound=f"{BOUND} of range", durability="none")
    return plotfile, store


def test_errors_are_those_of_the_cells(pair: tuple[Path, Path]) -> None:
    found = ambar.compare(*pair)
    assert [one.field for one in found.fields] == ["density", "Temp"]
    a, b = (ambar.open(path).amr for path in pair)
    for one in found.fields:
        names = ["level", "ix", "iy", "iz", one.field]
        columns = []
        for cells in (a.cells(names), b.cells(names)):
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
        assert 0.3 * one.bound < one.all.max_error <= one.bound
        assert sum(one.histogram) == found.cells == len(a) == one.all.cells
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
    ambar.convert(pair[0], store, durability="none")
    for first, second in ((pair[0], store), (store, pair[0])):
        for one in ambar.compare(first, second).fields:
            assert (one.bound, one.all.max_error, one.all.psnr) == (0.0, 0.0, math.inf)
            assert one.all.ssim == pytest.approx(1)
            assert one.held
    (one,) = ambar.compare(pair[0], pair[0], "Temp").fields
    assert (one.bound, one.held, one.ratio) == (None, None, 1.0)


def test_bounds_that_are_given_count(pair: tuple[Path, Path]) -> None:
    assert not ambar.compare(*pair, bound="1e-5 of range").held
    assert ambar.compare(*pair, bound={"Temp": "2e-3 of range"}).fields[1].held
    (one,) = ambar.compare(*pair, ["Temp"], bound=0.5).fields
    assert (one.bound, one.scale) == (0.5, 0.5)
    for wrong in ("much", "-1", "1e-3 of ranges", "nan"):
        with pytest.raises(ambar.InvalidError, match="no error bound"):
            ambar.compare(*pair, bound=wrong)
    with pytest.raises(ambar.NotFoundError, match="bound is given for 'gas'"):
        ambar.compare(*pair, bound={"gas": 1.0})


def test_two_lossy_stores_may_differ_by_both_bounds(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.ambar"
    ambar.convert(pair[0], other, error_bound={"Temp": 0.25}, durability="none")
    found = {one.field: one for one in ambar.compare(pair[1], other).fields}
    own = ambar.compare(*pair, ["Temp"]).fields[0].bound
    assert own is not None
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
    # The spoiled cells lie beyond the bound, outside of the histogram.
    assert temperature.all.cells - sum(temperature.histogram) == 4
    assert density.held is False
    assert density.all.max_error == math.inf
    assert math.isnan(density.all.psnr)
    told = CliRunner().invoke(app, ["compare", str(pair[0]), str(path), "--bound", "0.4"])
    assert told.exit_code == 1
    assert told.output.count("NO") == 2


def test_what_does_not_belong_together_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = write_plotfile(tmp_path / "plt", [BOXES_3D[0], BOXES_3D[1][:1]])
    with pytest.raises(ambar.InvalidError, match="other cells"):
        ambar.compare(pair[0], other)
    flat = write_plotfile(tmp_path / "flat", [[((0, 0), (15, 7))]], domain=(16, 8))
    with pytest.raises(ambar.InvalidError, match="other dimensions"):
        ambar.compare(pair[0], flat)
    with pytest.raises(ambar.NotFoundError, match="no field 'gas' in both"):
        ambar.compare(*pair, ["gas"])
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(pair[0]), str(other)])
    assert stopped.value.code == 2


def test_ramses_outputs_are_compared(tmp_path: Path) -> None:
    path = output("gravpart")
    store = tmp_path / "x.ambar"
    ambar.convert(path, store, error_bound={"density": "1e-2 of range"}, durability="none")
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
        with ambar.create(path, durability="none") as writer:
            writer.array("deep/x", values[:shape], error_bound=bound)
            writer.array("count", np.arange(5))
            writer.array("name", np.array(["a", "b"]))
    found = ambar.compare(paths[0], paths[1])
    by_name = {one.field: one for one in found.fields}
    assert set(by_name) == {"deep/x", "count"}
    x = by_name["deep/x"]
    assert (x.bound, x.held, x.levels) == (0.01, True, [])
    assert 0.005 < x.all.max_error <= 0.01
    assert by_name["count"].bound == 0
    with pytest.raises(ambar.InvalidError, match="has the shape"):
        ambar.compare(paths[0], paths[2])


def test_a_series_needs_a_number(tmp_path: Path) -> None:
    run, store = tmp_path / "run", tmp_path / "run.ambar"
    run.mkdir()
    for number in (1, 2):
        write_output(run, replace(FULL, number=number, specials=False))
    ambar.convert(run, store, durability="none", error_bound={"density": "1e-2 of range"})
    with pytest.raises(ambar.InvalidError, match="series of 2 outputs: say which one"):
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
    found, count = measures.ssim(a.reshape(-1), b.reshape(-1), window, value_range, 2)
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
    assert measures.ssim(a.reshape(-1)[few], b.reshape(-1)[few], window[few], 1.0, 2)[1] == 0


def test_the_power_of_a_wave_lies_at_its_number() -> None:
    x = (np.arange(32) + 0.5) / 32 * 2.0
    grid = 3 * (1 + 0.1 * np.cos(2 * np.pi * 4 * x / 2.0))[:, None, None] * np.ones((1, 16, 16))
    k, power, modes = measures.power_spectrum(grid, [2 / 32] * 3)
    peak = int(np.argmax(power))
    # The box is 1 wide in y, so shells are 2 pi apart; the wave has 4 / 2 of them.
    assert k[peak] == pytest.approx(2 * np.pi * 2, rel=0.2)
    # Its variance over the volume of 2, shared by the shell's modes.
    assert (power * modes).sum() / 2 == pytest.approx(0.1**2 / 2)
    assert power.sum() == pytest.approx(power[peak])


def test_the_command_prints_draws_and_exits(pair: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = map(str, pair)
    told = CliRunner().invoke(app, ["compare", a, b])
    assert told.exit_code == 0, told.output
    assert told.output.count("yes") == 2
    assert CliRunner().invoke(app, ["compare", a, b, "--bound", "1e-6 of range"]).exit_code == 1
    printed = CliRunner().invoke(app, ["compare", a, b, "--json", "-f", "Temp"])
    values = json.loads(printed.stdout)
    assert [one["field"] for one in values["fields"]] == ["Temp"]
    assert values["fields"][0]["held"] is True
    pytest.importorskip("matplotlib")
    target = tmp_path / "x.png"
    # The coarse level fills its box in this plotfile.
    drawn = CliRunner().invoke(
        app, ["compare", a, b, "--plot", str(target), "--spectrum", "density", "--axis", "y"]
    )
    assert drawn.exit_code == 0, drawn.output
    assert "spectrum of density" in drawn.output
    assert target.read_bytes()[:4] == b"\x89PNG"


def test_cells_in_two_dimensions_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from ambar.comparison_plot import draw_comparison

    boxes = [[((0, 0), (31, 15))], [((8, 8), (23, 23))]]
    plotfile = write_plotfile(tmp_path / "plt", boxes, FIELDS, domain=(32, 16))
    store = tmp_path / "x.ambar"
    ambar.convert(plotfile, store, error_bound="1e-2 of range", durability="none")
    found = ambar.compare(plotfile, store)
    assert found.held
    draw_comparison(found, plotfile, store).savefig(tmp_path / "x.png")


def test_bars_show_every_count() -> None:
    assert bars_of([0, 1, 1000, 500]) == " ▁█▄"

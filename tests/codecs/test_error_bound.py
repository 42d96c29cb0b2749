"""Error bounds: asked for in Python and on the command line, held for every value."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.cli import main
from tests.helpers.sample_outputs import output

OUTPUT = output("gravpart")


@pytest.fixture(scope="module")
def exact() -> Any:
    return ambar.open_snapshot(OUTPUT).load()


def off(a: Any, b: Any) -> Any:
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return float(np.where(same, 0.0, np.abs(a - b)).max())


def test_one_bound_for_all_fields_of_cells(tmp_path: Path, exact: Any) -> None:
    done = ambar.convert(OUTPUT, tmp_path / "x.ambar", error_bound="1e-3 of range")
    lossless = ambar.convert(OUTPUT, tmp_path / "y.ambar")
    assert done.stored_bytes < 0.7 * lossless.stored_bytes
    run = ambar.open_snapshot(tmp_path / "x.ambar")
    fields = [name for name in run.amr.fields if name != "domain"]
    want, got = exact.amr.read(fields), run.amr.read(fields)
    for name in fields:
        span = float(want[name].max() - want[name].min())
        assert 0 < off(want[name], got[name]) <= 1e-3 * span, name
    # Particles have no bound unless they are named.
    columns = ["mass", "position_x", "identity"]
    order = np.argsort(exact.particles.read(["identity"])["identity"])
    want = exact.particles.read(columns)
    got = run.particles.read(columns)
    again = np.argsort(got["identity"])
    for name in columns:
        assert np.array_equal(want[name][order], got[name][again])


def test_bounds_by_field_alias_and_column(tmp_path: Path, exact: Any) -> None:
    target = tmp_path / "x.ambar"
    ambar.convert(OUTPUT, target, error_bound={"rho": 0.25, "position_x": "1e-6 of range"})
    run = ambar.open_snapshot(target)
    want, got = exact.amr.read(["density", "pressure"]), run.amr.read(["density", "pressure"])
    assert 0 < off(want["density"], got["density"]) <= 0.25
    assert np.array_equal(want["pressure"], got["pressure"])
    order = np.argsort(exact.particles.read(["identity"])["identity"])
    want = exact.particles.read(["position_x"])["position_x"][order]
    rows = run.particles.read(["identity", "position_x"])
    got_x = rows["position_x"][np.argsort(rows["identity"])]
    assert 0 < off(want, got_x) <= 1e-6 * float(want.max() - want.min())


def test_where_finds_every_row_near_the_border_of_a_chunks_range(tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    ambar.convert(OUTPUT, target, error_bound={"density": "1e-2 of range"})
    cells = ambar.open_snapshot(target).amr
    density = cells.read(["density"])["density"]
    for value in np.quantile(density, [0.01, 0.5, 0.99]):
        found = cells.read(["density"], where=f"density <= {float(value)!r}")["density"]
        assert len(found) == np.count_nonzero(density <= value)


def test_any_array_takes_a_bound(tmp_path: Path) -> None:
    values = np.sin(np.linspace(0, 20, 60_000)).reshape(30, 40, 50).astype(np.float32)
    values[3, 4, 5] = np.nan
    bound: Any = np.float32(0.01)
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_array("x", values, error_bound="1e-3 of range")
        writer.create_array("y", values, error_bound=bound)
        writer.commit()
    store = ambar.open(tmp_path / "x.ambar")
    assert isinstance(store, ambar.Store)
    span = float(np.nanmax(values) - np.nanmin(values))
    assert 0 < off(values, store["x"][...]) <= 1e-3 * span
    assert 0 < off(values, store["y"][...]) <= 0.01


@pytest.mark.parametrize("bound", ["1e-3 of range", "60 dB", "1e-3 relative", 1e-3])
@pytest.mark.parametrize(
    "values", [np.array([1j, 2]), np.array([True, False]), np.array(["a", "b"])], ids=str
)
def test_only_floats_take_a_bound(tmp_path: Path, values: Any, bound: Any) -> None:
    path, message = tmp_path / "x.ambar", "bounds apply to float32 and float64 values, not to"
    with ambar.create(path) as writer, pytest.raises(ValueError, match=f"a: error {message}"):
        writer.create_array("a", values, error_bound=bound)
    with ambar.create(path, "w") as writer:
        writer.create_array("a", values, error_bound="lossless")
        writer.create_array("b", np.sin(np.arange(100.0)))
    with pytest.raises(ValueError, match=message):
        ambar.convert(path, tmp_path / "y.ambar", error_bound={"a": bound})
    # A pattern applies to the floats.
    ambar.convert(path, tmp_path / "y.ambar", error_bound={"*": bound})
    copy = ambar.open_store(tmp_path / "y.ambar")
    assert copy["a"].error_bound is None
    assert copy["b"].error_bound
    xr = pytest.importorskip("xarray")
    data = xr.Dataset({"a": ("x", values)})
    for dataset in (data, data.chunk(x=1)):
        with pytest.raises(ValueError, match=message):
            dataset.ambar.write(tmp_path / "z.ambar", encoding={"a": {"error_bound": bound}})


@pytest.mark.parametrize(
    "bound", ["", "1e-3 of", "-1", float("nan"), True, {"density": "x"}, {"nothing": 1.0}]
)
def test_invalid_bounds_are_errors(tmp_path: Path, bound: Any) -> None:
    with pytest.raises((ValueError, KeyError)):
        ambar.convert(OUTPUT, tmp_path / "x.ambar", error_bound=bound)
    assert not (tmp_path / "x.ambar").exists()


def run(*arguments: Any) -> Any:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code in (0, None)


def test_the_command_line_takes_bounds_by_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "x.ambar")
    args = ["convert", str(OUTPUT), target, "--json", "--no-progress"]
    run(*args, "--error-bound", "density=0.5, pressure=1e-2 of range")
    assert json.loads(capsys.readouterr().out)["ratio"] > 1
    run("info", target)
    assert "ambar 0.5" in capsys.readouterr().out


def test_codecs_and_bounds_are_printed_with_equal_digits_and_rounded_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds: dict[str, float | str] = {"density": 7.6372e-4, "pressure": "1.00001e-3 relative"}
    ambar.convert(OUTPUT, tmp_path / "x.ambar", error_bound=bounds, fsync=False)
    run("info", str(tmp_path / "x.ambar"))
    printed = " ".join(capsys.readouterr().out.split())
    for field, bound in (("density", "0.0007638"), ("pressure", "0.001001 relative")):
        assert f"amr/{field} {bound} " in printed
        assert f"ambar {bound}, crc32c" in printed


def test_zarr_reads_what_is_within_a_bound(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    target = tmp_path / "x.ambar"
    ambar.convert(OUTPUT, target, error_bound={"density": 0.1})
    group = zarr.open_group(zarr.storage.ZipStore(target, mode="r"), mode="r")
    ours = ambar.open_snapshot(target).amr.read(["density"])["density"]
    assert np.array_equal(group["amr/density"][...], ours)

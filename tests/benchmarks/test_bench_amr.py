"""The study of plotfiles counts every cell once, holds bounds, and leaves out what is missing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar.comparison import error_metrics as measures
from ambar_bench.amr import amric, cutting, large, peers, report, study
from ambar_bench.amr.hierarchy import Box, load_levels
from ambar_bench.cli import app
from tests.helpers.amrex_plotfiles import smooth, steep, write_plotfile
from tests.helpers.sample_outputs import amrex_sample

OWN = [
    "amrex-1d",
    "amric-lr",
    "amric-linear",
    "amric-clustered",
    "ambar-8",
    "ambar",
    "ambar-fast",
    "ambar-small",
]


@pytest.fixture(scope="module")
def plotfile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plotfile(tmp_path_factory.mktemp("amr") / "plt00001")


@pytest.fixture(scope="module")
def found(plotfile: Path) -> study.Study:
    return study.run_study(plotfile, bounds=[1e-2, 1e-4], keys=OWN, rounds=1)


@pytest.mark.parametrize("scheme", amric.SCHEMES)
def test_the_schemes_of_amric_hold_the_bound(scheme: str) -> None:
    noise = np.random.default_rng(3).normal(size=(27, 8, 8, 8)) / 50
    for dtype in ("float32", "float64"):
        blocks = (np.sin(np.arange(27 * 512) / 90).reshape(noise.shape) + noise).astype(dtype)
        stream = amric.encode(scheme, blocks, 1e-3)
        assert len(stream) < blocks.nbytes / 2
        decoded = amric.decode(scheme, stream, dtype, blocks.shape)
        assert decoded.dtype == dtype
        assert np.abs(decoded.astype("f8") - blocks).max() <= 1e-3
    with pytest.raises(ValueError, match="stream|body"):
        amric.decode(scheme, stream[:-1], dtype, blocks.shape)
    with pytest.raises(ValueError, match="bound"):
        amric.encode(scheme, blocks, -1.0)


def test_generated_plotfiles_are_plotfiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(large, "SIDE", 32)
    path = large.write(tmp_path / "plt00000", refined=True)
    coarse, fine = load_levels(path).levels
    assert sum(box.values["density"].size for box in coarse.boxes) == 32**3
    assert sum(box.values["density"].size for box in fine.boxes) == 64**3 // 4
    read = ambar.open_snapshot(path).amr.read(["density", "level"])
    assert (read["level"] == read["level"].max()).sum() == 64**3 // 4
    assert read["density"].min() > 0


@pytest.mark.parametrize("dtype", ["<f8", ">f4"])
def test_a_plotfile_is_read_with_its_covered_cells(dtype: str, tmp_path: Path) -> None:
    hierarchy = load_levels(write_plotfile(tmp_path / "plt", dtype=dtype))
    # The fine boxes cover 8^3 and 8 x 4 x 8 coarse cells.
    coarse, fine = 2 * 16**3, 16**3 + 16 * 8 * 16
    assert hierarchy.cells() == (coarse + fine, coarse - 8**3 - 8 * 4 * 8 + fine)
    assert hierarchy.raw_bytes("Temp") == (coarse + fine) * np.dtype(dtype).itemsize
    box = hierarchy.levels[1].boxes[1]
    assert box.lo.tolist() == [8, 8, 24]
    x, y, z = np.array([(24 + 3 + 0.5) / 64, (8 + 2 + 0.5) / 32, (8 + 1 + 0.5) / 32])
    assert box.values["Temp"][1, 2, 3] == pytest.approx(smooth(x, y, z), rel=1e-6)
    assert box.values["density"][1, 2, 3] == pytest.approx(steep(x, y, z), rel=1e-6)
    assert not hierarchy.levels[0].boxes[0].uncovered[4:12, 4:12, 4:12].any()


def test_every_uncovered_cell_is_counted_once(plotfile: Path) -> None:
    hierarchy = load_levels(plotfile)
    _, uncovered = hierarchy.cells()
    expected = np.sort(
        np.concatenate([box.values["density"][box.uncovered] for box in hierarchy.boxes()])
    )
    for kind in study.METHODS:
        if kind.whole:
            continue
        for variant in kind().variants(hierarchy, "density"):
            pieces = variant.pieces
            assert sum(np.count_nonzero(piece.counted) for piece in pieces) == uncovered
            values = np.sort(np.concatenate([p.values[p.counted] for p in pieces]))
            np.testing.assert_array_equal(values, expected, err_msg=kind.name)


def test_unit_blocks_lie_along_the_curve_and_hold_what_is_kept(plotfile: Path) -> None:
    level = load_levels(plotfile).levels[0]
    blocks = cutting.Aligned(level, 4, 3)
    # 2 x 16^3 cells are 128 blocks, of which 8 + 4 are covered.
    assert len(blocks.origins) == 128 - 12
    assert blocks.origins[:3].tolist() == [[0, 0, 0], [0, 0, 4], [0, 4, 0]]
    assert blocks.counted.all()
    assert blocks.fits
    values = blocks.values("Temp")
    block = blocks.origins.tolist().index([12, 8, 20])
    np.testing.assert_array_equal(values[block], level.boxes[1].values["Temp"][12:16, 8:12, 4:8])
    of_sixteen = cutting.Aligned(level, 16, 3)
    assert not of_sixteen.fits
    assert np.isnan(of_sixteen.values("Temp")[~of_sixteen.counted]).all()


def test_rows_hold_their_bounds(found: study.Study) -> None:
    assert [row.key for row in found.at(1e-2)] == OWN
    assert found.bounds == [1e-2, 1e-4]
    for row in found.rows:
        assert 0.3 < row.worst <= 1.0
        assert [result.name for result in row.fields] == ["density", "Temp"]
        # Errors that fill the bound evenly have a PSNR of 20 log10(sqrt(3) / bound).
        even = 20 * math.log10(math.sqrt(3) / row.bound)
        assert even - 3 < row.psnr < even + 12
        packed = sum(result.packed_bytes for result in row.fields)
        assert row.ratio == found.raw_bytes / packed > 2
        assert row.compress_speed > 0
        assert row.decompress_speed > 0
    loose, tight = ({row.key: row.ratio for row in found.at(b)} for b in (1e-2, 1e-4))
    assert all(loose[key] > tight[key] for key in OWN)


def test_bounds_of_local_ranges_are_tighter(plotfile: Path, found: study.Study) -> None:
    local = study.run_study(
        plotfile, bounds=[1e-4], keys=["amrex-1d"], fields=["density"], local_range=True, rounds=1
    )
    ours = next(row for row in found.at(1e-4) if row.key == "amrex-1d").fields[0]
    (row,) = local.rows
    assert row.fields[0].raw_bytes == ours.raw_bytes
    assert row.worst <= 1
    assert row.psnr > ours.psnr
    assert row.fields[0].packed_bytes > ours.packed_bytes
    assert "each rank's own range" in report.title(local, 1e-4)


def test_lost_values_are_reported() -> None:
    errors, psnr = measures.errors, measures.psnr
    values = np.array([1.0, np.nan, np.inf, -0.0])
    assert errors(values, values.copy()).tolist() == [0, 0, 0, 0]
    found = errors(values, np.array([1.5, 0.0, 5.0, 0.0])).tolist()
    assert found == [0.5, math.inf, math.inf, 0]
    assert errors(np.array([1.0]), np.array([np.nan])).tolist() == [math.inf]
    assert report._worst(1.02).endswith("!")
    assert psnr(10.0, 0.0) == math.inf
    assert psnr(10.0, 0.01) == pytest.approx(40)
    assert math.isnan(psnr(0.0, 0.01))


def test_plotfiles_of_two_dimensions_are_measured(tmp_path: Path) -> None:
    boxes = [[((0, 0), (31, 15))], [((8, 8), (23, 23))]]
    path = write_plotfile(tmp_path / "plt", boxes, domain=(32, 16))
    found = study.run_study(path, bounds=[1e-3], keys=OWN, rounds=1)
    assert [row.key for row in found.rows] == [
        "amrex-1d",
        "ambar-8",
        "ambar",
        "ambar-fast",
        "ambar-small",
    ]
    assert all(row.worst <= 1 for row in found.rows)
    assert found.left_out["AMRIC SZ_L/R, unit SLE (own)"] == "not for 2 dimensions"


def test_stores_are_rows_too(plotfile: Path, found: study.Study) -> None:
    rows = study.run_study(plotfile, bounds=[1e-4], keys=["store", "store-drop"], rounds=1).rows
    codec = next(row for row in found.at(1e-4) if row.key == "ambar")
    for row in rows:
        assert row.worst <= 1
        # Its chunks have other settings.
        assert 0.3 < row.ratio / codec.ratio < 1.2
    local = study.run_study(plotfile, bounds=[1e-4], keys=["store"], local_range=True, rounds=1)
    assert local.left_out == {"ambar store": "it has one bound a field"}


def test_a_plotfile_in_hdf5_is_the_native_one() -> None:
    pytest.importorskip("h5py")
    names = ("advection_plt00006", "advection_mdset.h5")
    native, hdf5 = (load_levels(amrex_sample(name)) for name in names)
    assert hdf5.cells() == native.cells()
    # The boxes stand in another order.
    for ours_of, theirs_of in zip(hdf5.levels, native.levels, strict=True):
        places = {tuple(box.lo): box for box in theirs_of.boxes}
        pairs = [(box, places.pop(tuple(box.lo))) for box in ours_of.boxes]
        assert not places
        check_same(pairs)


def check_same(pairs: list[tuple[Box, Box]]) -> None:
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours.uncovered, theirs.uncovered)
        for name, values in ours.values.items():
            np.testing.assert_array_equal(values, theirs.values[name])


def test_a_constant_field_and_nan_do_no_harm(tmp_path: Path) -> None:
    def holes(*places: np.ndarray) -> np.ndarray:
        values = smooth(*places)
        values[0, 0] = np.nan
        return values

    fields = {"one": lambda *places: np.ones_like(places[0]), "holes": holes}
    path = write_plotfile(tmp_path / "plt", fields=fields)
    found = study.run_study(path, bounds=[1e-3], keys=OWN, rounds=1)
    assert all(row.worst <= 1 for row in found.rows)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["rows"]


def test_peers_are_measured_where_they_are_installed(plotfile: Path) -> None:
    kinds = (peers.Zfp, peers.Sz3, peers.Sz3MergedBest, peers.Sz3Hdf5)
    found = study.run_study(
        plotfile, bounds=[1e-3], fields=["Temp"], keys=[kind.key for kind in kinds], rounds=1
    )
    for kind in kinds:
        if kind.lacking():
            assert "not installed" in found.left_out[kind.name]
        else:
            row = next(row for row in found.rows if row.key == kind.key)
            assert row.worst <= 1
            assert row.ratio > 1


def test_invalid_arguments_are_reported(plotfile: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no field 'gas'; available: density, Temp"):
        study.run_study(plotfile, fields=["gas"])
    with pytest.raises(KeyError, match="no method 'zip'; available: amrex-1d, "):
        study.run_study(plotfile, keys=["zip"])
    with pytest.raises(ValueError, match="not a native AMReX plotfile"):
        study.run_study(tmp_path)
    cut = write_plotfile(tmp_path / "cut")
    file = cut / "Level_0" / "Cell_D_00000"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ambar.CorruptError, match="Cell_D_00000: box 0: .* is truncated"):
        study.run_study(cut)


def test_the_command_prints_tables_and_writes_results(plotfile: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    options = ["--bounds", "1e-2,1e-3", "--rounds", "1", "--methods", "amric-lr,ambar"]
    call = ["amr", str(plotfile), *options]
    told = CliRunner().invoke(app, [*call, "-o", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert told.output.count("AMRIC SZ_L/R, unit SLE (own)") == 2
    values = json.loads((tmp_path / "plt00001.json").read_text())
    assert [row["key"] for row in values["rows"]] == ["amric-lr", "amric-lr", "ambar", "ambar"]
    text = (tmp_path / "plt00001.md").read_text()
    assert text.count("\n| ambar |") == 4
    for name in ("rate", "speed"):
        assert (tmp_path / f"plt00001_{name}.png").read_bytes()[:4] == b"\x89PNG"
    printed = CliRunner().invoke(app, [*call, "--json"])
    assert json.loads(printed.stdout)["rows"][0]["worst"] <= 1
    wrong = CliRunner().invoke(app, ["amr", str(plotfile), "--bounds", "2"])
    assert wrong.exit_code == 2

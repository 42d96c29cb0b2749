"""The study of meshes measures every row, finds out what reads other values, and leaves out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ambar_bench.cli import app
from ambar_bench.mesh import charts, meshes, report, study
from ambar_bench.mesh.contents import contents, differences, raw_bytes, retyped
from ambar_bench.mesh.plan import Plan, Setting, thread_counts
from ambar_bench.mesh.results import Row, Study
from ambar_bench.mesh.rows import WAYS
from ambar_bench.mesh.ways import Way
from ambar_bench.mesh.worker import Server

pytest.importorskip("pyvista")

import pyvista as pv

KEYS = ["vtk-zlib", "pv-shuffle", "ambar", "ambar-reorder"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a small study of one format of VTK, the best peer and ambar, as far as installed."""
    scratch = tmp_path_factory.mktemp("study")
    made = study.run_study(
        scratch,
        n=8,
        points=300,
        data=["random"],
        levels=[3, -5],
        keys=KEYS,
        only=["Delaunay shuffled", "example ant"],
        steps=3,
        rounds=2,
        threads=2,
    )
    assert list(scratch.iterdir()) == []
    return made


def _installed() -> list[str]:
    """Return the ways of the study of whole meshes."""
    return [key for key in KEYS if not WAYS[key].lacking() and not WAYS[key].box_only]


def test_every_row_whose_library_is_there_is_measured(found: Study) -> None:
    keys = _installed()
    assert {"vtk-zlib", "ambar"} <= set(keys)
    grid = found.grids[0]
    assert [row.way for row in found.formats(grid)] == keys
    for key in keys:
        levels = [-5, 3] if WAYS[key].leveled else []
        assert [row.level for row in found.at_levels(grid, key)] == levels
    assert [row.threads for row in found.at_threads(grid, "ambar")] == [1, 2]
    assert [row.way for row in found.arrays] == keys
    assert [row.way for row in found.series] == [key for key in keys if key != "vtk-zlib"]
    for mesh in ("Delaunay shuffled", "example ant"):
        assert [row.way for row in found.of(mesh) if row.level != 19] == keys
    assert [row.way for row in found.boxes] == [*keys, "ambar-reorder"]
    missing = {WAYS[key].name for key in KEYS if WAYS[key].lacking()}
    assert set(found.left_out) == missing
    assert all(why.endswith("not installed") for why in found.left_out.values())


def test_rows_hold_what_was_measured(found: Study) -> None:
    for row in found.rows:
        assert len(row.write) == len(row.read) == 2
        assert min(row.write + row.read) > 0
        assert row.files == 1
        assert row.raw_bytes / 50 < row.bytes < row.raw_bytes
    # 512 points of 20 bytes, 1715 cells of 49, and an offset more
    assert {row.raw_bytes for row in found.of(found.grids[0])} == {512 * 20 + 1715 * 49 + 8}
    assert {row.type for row in found.of("example ant")} == {"PolyData"}
    assert {row.files for row in found.series if row.ours} == {1}
    assert {row.files for row in found.series if not row.ours} <= {3}
    assert len({row.raw_bytes for row in found.boxes}) == 1
    assert all(row.asked == row.bytes for row in found.boxes if not row.ours)
    assert min(row.asked for row in found.boxes) > 1000
    for array in found.arrays:
        assert array.raw_bytes == 512 * 8
        # no double of random bits is packed to less than six bytes
        assert array.asked > 512 * 6


def test_the_random_grid_is_that_of_the_original() -> None:
    made = meshes.grid("random", 5)
    generator = np.random.default_rng(42)
    assert made.array_names == ["pdata", "cdata"]
    np.testing.assert_array_equal(made["pdata"], generator.random(125))
    np.testing.assert_array_equal(made["cdata"], generator.random(5 * 64))
    assert set(made.celltypes) == {pv.CellType.TETRA}
    smooth = meshes.grid("smooth", 20)["pdata"].reshape(20, 20, 20)
    neighbours = smooth[..., :-1].ravel(), smooth[..., 1:].ravel()
    assert np.corrcoef(*neighbours)[0, 1] > 0.9


def test_clusters_lie_along_a_morton_curve(tmp_path: Path) -> None:
    places = meshes.clusters(3000)
    lattice = ((places - places.min(axis=0)) / np.ptp(places, axis=0) * (2**21 - 1)).astype(int)
    bits = [(bit, axis) for bit in range(21) for axis in range(3)]
    numbers = [
        sum((int(cell[axis]) >> bit & 1) << (3 * bit + axis) for bit, axis in bits)
        for cell in lattice
    ]
    assert numbers == sorted(numbers)
    sizes = meshes.Sizes(2, 300, str(tmp_path))
    meshes.prepare(sizes)
    ordered, shuffled = (meshes.make(name, sizes) for name in meshes.DELAUNAY)
    meshes.forget(sizes)
    assert list(tmp_path.iterdir()) == []
    assert ordered.n_cells == shuffled.n_cells > 300
    volumes = [mesh.compute_cell_sizes()["Volume"] for mesh in (ordered, shuffled)]
    np.testing.assert_allclose(np.sort(abs(volumes[0])), np.sort(abs(volumes[1])), rtol=1e-9)
    assert not np.array_equal(ordered.points, shuffled.points)
    assert {"pressure", "velocity", "region"} == set(shuffled.array_names)


def test_meshes_of_other_kinds_are_made() -> None:
    sizes = meshes.Sizes(2, 5, "")
    for name in ("wavelet", "smooth field"):
        mesh = meshes.make(name, sizes)
        assert mesh.dimensions == (128, 128, 128)
        assert mesh[mesh.array_names[0]].dtype == np.float32
    assert "example ant" in meshes.real()
    assert meshes.make("example ant", sizes).n_points == 486
    with pytest.raises(KeyError, match="no mesh 'sponge'; available: grid, random"):
        meshes.make("sponge", sizes)


def _blocks() -> Any:
    made = pv.MultiBlock([pv.Sphere(), None, pv.ImageData(dimensions=(2, 2, 2))])
    made[2].point_data["values"] = np.array([np.nan, -0.0, 0, 1, 2, 3, 4, 5])
    made.field_data["names"] = ["a", "b"]
    return made


def test_contents_are_all_arrays_of_all_blocks() -> None:
    arrays = contents(_blocks())
    assert {"0/points", "0/polys/connectivity", "2/origin", "2/point_data/values"} <= set(arrays)
    assert arrays["field_data/names"].tolist() == ["a", "b"]
    assert raw_bytes({"a": arrays["2/point_data/values"]}) == 64
    assert contents(arrays) == arrays
    for mesh in (
        pv.ExplicitStructuredGrid(pv.StructuredGrid(*np.mgrid[0:2, 0:3, 0:2].astype(float))),
        pv.RectilinearGrid([0, 1.0], [0, 2.0], [0, 3.0]),
    ):
        assert "extent" in contents(mesh)


def test_other_values_are_found_out() -> None:
    truth = contents(_blocks())
    assert differences(truth, contents(_blocks())) == []
    other = _blocks()
    other[2].point_data["values"][1] = 0.0  # not -0
    assert differences(truth, contents(other)) == ["2/point_data/values"]
    narrow = dict(truth)
    narrow["0/polys/connectivity"] = truth["0/polys/connectivity"].astype(np.int32)
    assert differences(truth, narrow) == []
    assert retyped(truth, narrow) == ["0/polys/connectivity int64 as int32"]
    del narrow["field_data/names"]
    assert differences(truth, narrow) == ["field_data/names"]
    narrow["field_data/names"] = truth["field_data/names"][:1]
    assert differences(truth, narrow) == ["field_data/names"]


class Forgetful(Way):
    """A way that loses the values of cells."""

    key = "forgetful"
    name = "forgetful"
    library = "forgetful"

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        mesh.save(folder / "mesh.vtu")

    def read(self, folder: Path, threads: int) -> Any:  # noqa: ARG002
        found = pv.read(folder / "mesh.vtu")
        found.cell_data.clear()
        return found


def test_what_fails_is_answered_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WAYS, "forgetful", Forgetful)
    sizes = meshes.Sizes(3, 5, str(tmp_path))
    server = Server({"folder": str(tmp_path / "x"), "sizes": sizes.to_dict()})

    def answer(do: str, mesh: str) -> str:
        request = {"do": do, "mesh": mesh, "way": "forgetful", "level": None, "threads": 1}
        error: str = server.answer(json.dumps(request))["error"]
        return error

    grid = meshes.GRIDS["smooth"]
    assert (
        answer("mesh", grid)
        == "CorruptError: expected equal values, found others in cell_data/cdata"
    )
    assert answer("array", grid).endswith("does not read single arrays")
    assert answer("mesh", "sponge").startswith("NotFoundError: no mesh 'sponge'")
    assert not (tmp_path / "x").exists()


def test_large_meshes_are_measured_library_by_library(
    found: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[list[str]] = []
    monkeypatch.setattr(
        "ambar_bench.mesh.plan.take_turns", lambda group, *_: turns.append(list(group))
    )
    ways = [WAYS[key] for key in ("pv", "pv-shuffle", "ambar")]
    made = replace(found, parts=["formats"], rows=[], left_out={})
    with Plan(made, meshes.Sizes(8, 5, ""), ways, tmp_path, print) as plan:
        assert plan.write_and_read(made.grids[0], 2 << 30) == []
        assert plan.workers == {}
        assert [len(group) for group in turns] == [2, 1]
        plan.write_and_read(made.grids[0], 1000)
        assert len(turns[2]) == 3
    assert Setting("pv", 19, 1).name == "pyvista-zstd, level 19"


def test_threads_are_all_up_to_eight_and_few_above() -> None:
    assert thread_counts(2) == [1, 2]
    assert thread_counts(20) == [*range(1, 9), 16, 20]


def test_invalid_requests_are_refused(tmp_path: Path) -> None:
    unknown: list[tuple[dict[str, Any], str]] = [
        ({"parts": ["size"]}, "no part 'size'; available: formats"),
        ({"data": ["rough"]}, "no data 'rough'; available: random"),
        ({"keys": ["zip"]}, "no way 'zip'; available: vtk-zlib"),
        ({"only": ["sponge"], "parts": ["meshes"]}, "no mesh 'sponge'; available: wavelet"),
    ]
    for options, match in unknown:
        with pytest.raises(KeyError, match=match):
            study.run_study(tmp_path, **options)
    for wrong in ({"n": 1}, {"points": 4}, {"levels": [23]}, {"steps": 0}):
        options = dict(wrong)
        with pytest.raises(ValueError, match="expected"):
            study.run_study(tmp_path, **options)


def test_peers_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WAYS["zvtk"], "modules", ("zvtk_that_is_not_there",))
    made = study.run_study(tmp_path, n=3, keys=["zvtk"])
    assert made.rows == []
    assert made.left_out == {"zvtk": "zvtk_that_is_not_there not installed"}
    assert "left out: zvtk: zvtk_that_is_not_there not installed." in report.markdown(made)


def _row(found: Study, way: str, **changed: Any) -> Row:
    base = found.rows[0]
    own = {"way": way, "name": WAYS[way].name, "ours": WAYS[way].ours, "level": WAYS[way].level}
    return replace(base, **{**own, "threads": 2, "retyped": [], **changed})


def test_reports_say_how_rows_compare(found: Study, tmp_path: Path) -> None:
    rows = [
        _row(found, "zvtk", write=[4.0], read=[3.0], bytes=400, raw_bytes=1000),
        _row(found, "pv", write=[2.0], read=[2.0], bytes=250, retyped=["ids int64 as int32"]),
        _row(found, "pv", level=9, write=[9.0], read=[1.0], bytes=200),
        _row(found, "pv", level=19, write=[9.0], read=[1.5], bytes=100),
        _row(found, "ambar", write=[0.5, 0.7], read=[0.3, 0.5], bytes=180, raw_bytes=900),
    ]
    made = replace(found, rows=rows, arrays=[], parts=["formats"], left_out={"x": "y"})
    made.series = [rows[0], replace(rows[4], bytes=20)]
    text = report.markdown(made)
    assert (
        "ambar: reads 2.50 and writes 3.33 times as fast as the fastest setting of zvtk and "
        "pyvista-zstd; has 0.900 of the bytes of their smallest at a level up to 9, "
        "0.450 of zvtk's."
    ) in text
    assert "pyvista-zstd, grid, random values: reads ids int64 as int32." in text
    assert "| ambar | 0.600 | 0.400 | 0 | 0 | 0.00 | 5.00 |" in text
    assert "| zvtk | 4.000 * | 3.000 * |" in text
    assert "left out: x: y." in text
    assert "time steps: ambar: 1/20.0 of the smallest peer's bytes." in text
    real = [replace(row, mesh="wavelet") for row in (rows[0], rows[1], rows[3], rows[4])]
    text = report.markdown(replace(made, rows=real))
    assert "| wavelet | 1.0 | - | 0.4 | 0.2 | 0.1 | - | 0.2 | - | 0.720 |" in text
    times = "4,000.0 / 3,000.0 | 2,000.0 / 2,000.0 | - | - | 600.0 / 400.0 | - |"
    assert f"| wavelet | {times}" in text
    values = json.loads(report.write(made, tmp_path)[0].read_text())
    assert values["rows"][4]["read_seconds"] == 0.4
    assert values["rows"][4]["ratio"] == 5


def test_four_charts_are_drawn(found: Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    written = report.write(found, tmp_path)
    assert [path.name for path in written] == [
        "mesh_8.json",
        "mesh_8.md",
        "mesh_8_levels.png",
        "mesh_8_levels_speed.png",
        "mesh_8_threads.png",
        "mesh_8_threads_speed.png",
    ]
    for path in written[2:]:
        assert path.read_bytes().startswith(b"\x89PNG")
    charts.levels(replace(found, rows=[]), tmp_path / "empty.png")


def test_the_command_measures_and_prints(tmp_path: Path) -> None:
    command = ["mesh", "--n", "4", "--parts", "formats", "--data", "smooth"]
    command += ["--rows", "ambar", "--rounds", "1", "--scratch", str(tmp_path / "new")]
    done = CliRunner().invoke(app, [*command, "--json", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert [(row["way"], row["mesh"]) for row in values["rows"]] == [
        ("ambar", "grid, smooth values")
    ]
    assert list((tmp_path / "new").iterdir()) == []
    assert "grid, smooth values: 4^3 points" in (tmp_path / "out" / "mesh_4.md").read_text()


@pytest.mark.parametrize("wrong", ["", "high", "3,x", "5:1"])
def test_the_command_refuses_what_is_no_list_of_levels(wrong: str) -> None:
    done = CliRunner().invoke(app, ["mesh", "--levels", wrong])
    assert done.exit_code == 2


def test_the_command_takes_ranges_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def run(_: Path, **options: Any) -> Study:
        given.update(options)
        raise KeyError("enough")

    monkeypatch.setattr(study, "run_study", run)
    CliRunner().invoke(app, ["mesh", "--levels", "-3:-1,7"])
    assert given["levels"] == [-3, -2, -1, 7]

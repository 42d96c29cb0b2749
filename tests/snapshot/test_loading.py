"""Snapshots in memory equal what is read from the files, and can be pickled."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.ramses_outputs.variants import FULL, SYNTHETIC
from tests.helpers.sample_outputs import CASES, output


def assert_equal(found: ambar.Table, expected: ambar.Table) -> None:
    assert found.columns == expected.columns
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def in_any_order(rows: ambar.Table) -> ambar.Table:
    order = np.argsort(rows["identity"])
    return ambar.Table({name: column[order] for name, column in rows.items()})


REGIONS = {
    "all": None,
    "box": ambar.Box((0.1, 0.2, 0.3), (0.5, 0.6, 0.45)),
    "corner": ambar.Sphere((0.0, 0.0, 0.0), 0.3),
    "shell": ambar.SphericalShell("bc", 0.2, 0.4),
}


@pytest.mark.parametrize("levels", [None, (5, 5), (4, 5)])
@pytest.mark.parametrize("name", REGIONS)
def test_loading_equals_reading_from_outputs_and_stores(
    name: str, levels: tuple[int, int] | None, stores: dict[str, Path]
) -> None:
    region = REGIONS[name]
    for path in (output("gravpart"), stores["gravpart"]):
        opened = ambar.open_snapshot(path)
        loaded = opened.load(region=region, levels=levels)
        again = loaded.load(["rho", "potential"])
        fields = ["level", "x", "iz", "density", "potential"]
        expected = opened.amr.read(fields, region=region, levels=levels)
        assert len(loaded.amr) == len(expected)
        assert_equal(loaded.amr.read(fields), expected)
        assert_equal(again.amr.read(fields), expected)
        assert again.components == {"hydro": ["density"], "gravity": ["potential"]}
        some: dict[str, Any] = {"region": ambar.Box((0.2,) * 3, (0.5,) * 3), "where": "density > 1"}
        chosen = expected["density"] > 1
        place = [loaded.amr.read([axis])[axis] for axis in "xyz"]
        for values in place:
            chosen &= (values >= 0.2) & (values < 0.5)
        np.testing.assert_array_equal(
            loaded.amr.read("density", **some)["density"], expected["density"][chosen]
        )
        rows = loaded.particles.read()
        assert_equal(in_any_order(rows), in_any_order(opened.particles.read(region=region)))
        assert loaded.info == opened.info


@pytest.mark.parametrize("kind", ["everything_1d", "everything_2d", "walls", "box_3x2"])
def test_loading_parts_of_stores_of_every_shape(kind: str, tmp_path: Path) -> None:
    truth = write_output(tmp_path / "output", SYNTHETIC[kind])
    ambar.convert(truth.folder, tmp_path / "x.ambar", fsync=False)
    stored, direct = (ambar.open_snapshot(p) for p in (tmp_path / "x.ambar", truth.folder))
    ndim = stored.info.ndim
    for region in (None, ambar.Sphere((0.9,) * ndim, 0.3), ambar.Box((0.3,) * ndim, (1.1,) * ndim)):
        for levels in (None, (2, 3), (9, 9)):
            loaded = stored.load(region=region, levels=levels)
            expected = direct.load(region=region, levels=levels)
            assert_equal(loaded.amr.read(), expected.amr.read())
            assert_equal(loaded.amr.read(), stored.amr.read(region=region, levels=levels))
            if len(loaded.amr):
                found, wanted = (one.amr.grid("density", level=2) for one in (loaded, expected))
                np.testing.assert_array_equal(found, wanted)


def test_fields_and_components_by_every_name(stores: dict[str, Path]) -> None:
    for path in (output("gravpart"), stores["gravpart"]):
        opened = ambar.open_snapshot(path)
        everything = opened.components
        for fields, expected in {
            None: everything,
            "particles": {"particles": everything["particles"]},
            "cells": {name: everything[name] for name in ("hydro", "gravity")},
            ("hydro", "particles/mass"): {"hydro": everything["hydro"], "particles": ["mass"]},
            ("p", "rho"): {"hydro": ["density", "pressure"]},
            ("hydro/rho", "epot", "particles/id"): {
                "hydro": ["density"],
                "gravity": ["potential"],
                "particles": ["identity"],
            },
        }.items():
            loaded = opened.load(fields)
            assert loaded.components == expected
            if "particles" in expected:
                assert loaded.particles.fields == expected["particles"]
            with pytest.raises(KeyError, match="no component or field 'densty'; did you mean 'den"):
                loaded.load("densty") if "cells" in str(fields) else opened.load("densty")
        with pytest.raises(KeyError, match="no cells"):
            _ = opened.load("particles").amr
        with pytest.raises(KeyError, match="rt"):
            opened.load("rt")
        only_mass = opened.load("particles/mass").particles
        with pytest.raises(ValueError, match="no positions"):
            only_mass.read(region=ambar.Sphere("bc", 0.1))


def test_regions_of_particles_need_no_positions_among_the_fields(stores: dict[str, Path]) -> None:
    region = ambar.Sphere("bc", 0.3)
    for path in (output("gravpart"), stores["gravpart"]):
        opened = ambar.open_snapshot(path)
        found = opened.load("particles/identity", region=region).particles.read()["identity"]
        expected = opened.particles.read("identity", region=region)["identity"]
        np.testing.assert_array_equal(np.sort(found), np.sort(expected))


def test_max_level_needs_values_of_refined_cells(stores: dict[str, Path]) -> None:
    stored = ambar.open_snapshot(stores["gravpart"])
    with pytest.raises(ambar.UnsupportedError, match="convert it with max_level=5"):
        stored.load(max_level=5)
    assert len(stored.load(max_level=6).amr) == len(stored.amr)
    direct = ambar.open_snapshot(output("gravpart")).load(max_level=5)
    assert direct.amr.levels == (4, 5)
    for arguments in ({"levels": (5, 4)}, {"levels": (-1, 3)}, {"max_level": -1}):
        with pytest.raises(ValueError, match="level"):
            stored.load(**arguments)


def test_sinks_and_clumps_are_loaded(tmp_path: Path) -> None:
    truth = write_output(tmp_path / "output", FULL)
    ambar.convert(truth.folder, tmp_path / "x.ambar", fsync=False)
    for path in (truth.folder, tmp_path / "x.ambar"):
        opened = ambar.open_snapshot(path)
        loaded = opened.load(["sinks", "clumps"])
        assert_equal(loaded.sinks.read(), opened.sinks.read())
        assert_equal(loaded.clumps.read(), opened.clumps.read())
        first = opened.sinks.fields[1]
        assert opened.load(f"sinks/{first}").sinks.fields == [first]
        rows = opened.sinks.read(["id", f"sinks/{first}"], where=f"`sinks/{first}` >= 0")
        assert len(rows) == (opened.sinks.read()[first] >= 0).sum()


def test_regions_select_sinks_and_clumps(tmp_path: Path) -> None:
    truth = write_output(tmp_path / "output", FULL)
    ambar.convert(truth.folder, tmp_path / "x.ambar", fsync=False)
    box = ambar.Box((0, 0, 0), (0.5, 0.9, 1))
    for path in (truth.folder, tmp_path / "x.ambar"):
        opened = ambar.open_snapshot(path)
        highest = [part * opened.info.boxlen for part in (0.5, 0.9, 1)]
        loaded = opened.load(region=box)
        for component, start in (("sinks", ""), ("clumps", "peak_")):
            rows, part = getattr(opened, component), getattr(loaded, component)
            every = rows.read()
            inside = np.logical_and.reduce(
                [
                    (every[f"{start}{axis}"] >= 0) & (every[f"{start}{axis}"] < high)
                    for axis, high in zip("xyz", highest, strict=True)
                ]
            )
            assert component == "sinks" or 0 < inside.sum() < len(inside)
            expected = ambar.Table({name: column[inside] for name, column in every.items()})
            assert_equal(rows.read(region=box), expected)
            assert_equal(part.read(), expected)
        with pytest.raises(ValueError, match="the rows have no positions"):
            opened.load("sinks/id", region=None).sinks.read(region=box)


def test_loading_needs_no_files_any_more(tmp_path: Path) -> None:
    truth = write_output(tmp_path / "output", FULL)
    ambar.convert(truth.folder, tmp_path / "x.ambar", fsync=False)
    plotfiles.write(tmp_path / "plt")
    for path in (truth.folder, tmp_path / "x.ambar", tmp_path / "plt"):
        opened = ambar.open_snapshot(path)
        expected = ambar.open_snapshot(path).amr.read()
        loaded = opened.load()
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        for file in files:
            file.write_bytes(b"")
        assert_equal(loaded.amr.read(), expected)


@pytest.fixture(params=["plotfile", "auto", "drop"])
def patches(request: pytest.FixtureRequest, tmp_path: Path) -> ambar.Snapshot:
    plotfiles.write(tmp_path / "plt")
    if request.param == "plotfile":
        return ambar.open_snapshot(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "plt.ambar", covered=request.param, fsync=False)
    return ambar.open_snapshot(tmp_path / "plt.ambar")


def test_patches_down_to_a_level(patches: ambar.Snapshot) -> None:
    coarse = patches.load("density", max_level=0)
    assert coarse.amr.fields == ["density"]
    assert coarse.amr.levels == (0, 0)
    assert len(coarse.amr) == np.prod(plotfiles.SHAPE)
    info, whole = coarse.info, patches.info
    assert isinstance(info, ambar.AmrexInfo)
    assert isinstance(whole, ambar.AmrexInfo)
    assert [level.ratio for level in info.levels] == [(1, 1, 1)]
    assert info.steps == whole.steps[:1]
    np.testing.assert_allclose(
        coarse.amr.grid("density", level=0), patches.amr.grid("density", level=0), rtol=1e-14
    )
    with pytest.raises(ambar.UnsupportedError, match="use max_level"):
        patches.load(levels=(0, 0))
    assert_equal(patches.load().amr.read(), patches.amr.read())
    assert patches.load().info == patches.info


def test_patches_in_a_region_are_rounded_outward(patches: ambar.Snapshot) -> None:
    # In code length; cells of level 0 have the side 1/8.
    region = ambar.Box((-0.6, 0.30, 2.1), (0.30, 0.74, 2.6), unit="code")
    part = patches.load(region=region)
    lo, hi = np.array([-0.625, 0.25, 2.0]), np.array([0.375, 0.75, 2.625])
    every = patches.amr.read()
    place = np.stack([every[axis] for axis in "xyz"], axis=1)
    inside = ((place > lo) & (place < hi)).all(axis=1)
    found, expected = part.amr.read(), {name: every[name][inside] for name in every}
    orders = [np.lexsort([columns[axis] for axis in "xyz"]) for columns in (found, expected)]
    for name in every:
        np.testing.assert_array_equal(found[name][orders[0]], expected[name][orders[1]], name)
    boxes = part.amr.boxes(0)
    assert isinstance(part.info, ambar.AmrexInfo)
    assert part.info.levels[0].boxes == len(boxes)
    assert (boxes.min(axis=(0, 1)).tolist(), boxes.max(axis=(0, 1)).tolist()) == (
        [3, 2, 0],
        [11, 6, 5],
    )
    # A part of a part.
    again = part.load(["Temp"], region=ambar.Box((0.0, 0.3, 2.1), (0.1, 0.4, 2.2), unit="code"))
    assert again.amr.fields == ["Temp"]
    assert 0 < len(again.amr) < len(part.amr)


def everything(snapshot: ambar.Snapshot) -> dict[str, float]:
    """Return sums of all columns; in another process too."""
    tables = {"amr": snapshot.amr.read()}
    if "particles" in snapshot.components:
        tables["particles"] = snapshot.particles.read()
    return {
        f"{kind}/{name}": float(column.astype(float).sum())
        for kind, table in tables.items()
        for name, column in table.items()
    }


def test_snapshots_cells_particles_and_series_pickle(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    plotfiles.write(tmp_path / "plt")
    ambar.convert(output("sedov").parent, tmp_path / "run.ambar", fsync=False)
    series = ambar.open_series(tmp_path / "run.ambar")
    opened = [ambar.open_snapshot(path) for path in (output("gravpart"), stores["gravpart"])]
    snapshots = [*opened, ambar.open_snapshot(tmp_path / "plt"), series[1]]
    snapshots += [snapshot.load(["density"]) for snapshot in snapshots]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for snapshot in snapshots:
            assert pool.submit(everything, snapshot).result(timeout=60) == everything(snapshot)
    for snapshot in snapshots:
        cells = pickle.loads(pickle.dumps(snapshot.amr))
        assert_equal(cells.read(), snapshot.amr.read())
    particles = pickle.loads(pickle.dumps(opened[1].particles))
    assert_equal(particles.read(), opened[1].particles.read())
    again = pickle.loads(pickle.dumps(series))
    assert (again.outputs, again.times.tolist()) == (series.outputs, series.times.tolist())
    assert_equal(again[0].amr.read(), series[0].amr.read())


def test_data_in_stores_become_dask_arrays(
    stores: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    da = pytest.importorskip("dask.array")
    from ambar.snapshot.interop import lazy_columns

    monkeypatch.setattr(lazy_columns, "BLOCK_ROWS", 1000)
    plotfiles.write(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "plt.ambar", fsync=False)
    spec = Spec(ndim=3, domains=2, level_min=6, level_max=6, hydro=("density",))
    big = write_output(tmp_path / "big", spec).folder
    ambar.convert(big, tmp_path / "big.ambar", fsync=False)
    for path in (stores["gravpart"], tmp_path / "plt.ambar", tmp_path / "big.ambar"):
        snapshot = ambar.open_snapshot(path)
        cells = snapshot.amr.to_xarray()
        expected = snapshot.amr.read()
        assert list(cells.coords) == ["level", "x", "y", "z"]
        assert all(isinstance(cells[name].data, da.Array) for name in cells.variables)
        assert len(cells["density"].chunksizes["cell"]) <= snapshot.amr.chunk_count
        for name in expected:
            np.testing.assert_array_equal(cells[name], expected[name], err_msg=name)
        part = pickle.loads(pickle.dumps(cells["density"][5:-5])).compute()
        np.testing.assert_array_equal(part, expected["density"][5:-5])
    assert len(cells["density"].chunksizes["cell"]) == snapshot.amr.chunk_count > 3
    tree = ambar.open_snapshot(stores["gravpart"]).to_xarray()
    assert isinstance(tree["particles/mass"].data, da.Array)
    rows = ambar.open_snapshot(stores["gravpart"]).particles.read()
    for name in rows:
        np.testing.assert_array_equal(tree[f"particles/{name}"], rows[name], err_msg=name)
    for snapshot in (ambar.open_snapshot(big), ambar.open_snapshot(big).load()):
        assert isinstance(snapshot.amr.to_xarray()["density"].data, np.ndarray)


def test_one_field_as_a_string(stores: dict[str, Path]) -> None:
    for snapshot in (ambar.open_snapshot(stores["gravpart"]), ambar.open_snapshot(output("sedov"))):
        found = snapshot.amr.to_xarray("density")
        assert list(found) == ["density"]
        assert found.identical(snapshot.amr.to_xarray(["density"]))


def test_derived_columns_are_not_loaded(stores: dict[str, Path], tmp_path: Path) -> None:
    snapshot = ambar.open_snapshot(stores["gravpart"])
    with pytest.raises(
        ValueError, match="'x' is a derived column of cells.*or write 'particles/x'"
    ):
        snapshot.load(["x", "rho"])
    for name in ("level", "cells/x", "hydro/dx", "cx"):
        with pytest.raises(KeyError, match=f"'{name}' is a derived column of cells.*leave it out"):
            snapshot.load([name, "rho"])
    chosen = {"hydro": ["density"], "particles": ["position_x"]}
    assert snapshot.load(["particles/x", "rho"]).components == chosen
    assert snapshot.load(["x", "mass"]).components == {"particles": ["position_x", "mass"]}
    plotfiles.write(tmp_path / "plt")
    with pytest.raises(KeyError, match="'level' is a derived column of cells"):
        ambar.open_snapshot(tmp_path / "plt").load(["level", "density"])


def test_a_large_field_is_several_dask_chunks() -> None:
    from ambar.snapshot.interop.lazy_columns import _blocks

    rows = [32_704] * 256  # 64 MiB of float64, in chunks as large trees have them
    blocks = _blocks(rows)
    assert len(blocks) == 4
    assert sum(size for *_, size in blocks) == sum(rows)
    assert [start for start, *_ in blocks] == [0, *(stop for _, stop, _ in blocks[:-1])]
    assert _blocks([]) == [(0, 0, 0)]


@pytest.mark.parametrize("case", CASES)
def test_representations(case: str, stores: dict[str, Path], tmp_path: Path) -> None:
    for path in (output(case), stores[case]):
        snapshot = ambar.open_snapshot(path)
        is_stored = path == stores[case]
        for one in (snapshot, snapshot.load()):
            text, page = repr(one), one._repr_html_()
            assert text.startswith(f"<ambar.Snapshot> {path}\n")
            assert "density, velocity_x" in text
            assert ("Size:" in text) == (is_stored and one is snapshot)
            assert "<details" in page
            assert "density" in page
            text, page = repr(one.amr), one.amr._repr_html_()
            assert f"{len(one.amr):,}" in text
            assert "3-D" in text
            assert len(text.splitlines()) > len(one.amr.fields)
            assert ("codecs" in page) == (is_stored and one is snapshot)
    if "particles" in snapshot.components:
        assert "mass" in repr(snapshot.particles)
        assert f"{len(snapshot.particles):,}" in snapshot.particles._repr_html_()
        assert "float64" in repr(snapshot.particles)
    ambar.convert(output(case).parent, tmp_path / "run.ambar", fsync=False)
    series = ambar.open_series(tmp_path / "run.ambar")
    assert "output_00002" in repr(series)
    assert "output_00002" in series._repr_html_()


def test_representations_escape_html() -> None:
    table = ambar.Table({"<b>": np.arange(20)})
    assert "&lt;b&gt;" in table._repr_html_()
    assert "<b>" not in table._repr_html_()
    assert table._repr_html_().count("<tr>") == 2 + 5 + 1 + 5


COUNT_BYTES_READ = """
import sys
from pathlib import Path
import ambar

def bytes_read():
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])

def open_and_read(path):
    start = bytes_read()
    snapshot = ambar.open_snapshot(path)
    opened = bytes_read()
    side = 0.01 ** (1 / 3)
    cells = snapshot.amr.read(["density"], region=ambar.Box((0.4,) * 3, (0.4 + side,) * 3))
    return opened - start, bytes_read() - opened, len(cells)

open_and_read(sys.argv[1])  # imports modules
print(*open_and_read(sys.argv[2]))
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="/proc/self/io is of Linux")
def test_opening_reads_headers_and_a_region_reads_its_domains(tmp_path: Path) -> None:
    spec = replace(FULL, domains=24, level_min=5, level_max=5, root=(), walls=(), number=2)
    folder = write_output(tmp_path, spec).folder
    sizes: dict[str, int] = {}
    for file in folder.iterdir():
        kind = file.name.split("_")[0]
        sizes[kind] = sizes.get(kind, 0) + file.stat().st_size
    assert {"amr", "hydro", "grav", "rt", "part"} <= set(sizes)
    arguments = [sys.executable, "-c", COUNT_BYTES_READ, str(output("sedov")), str(folder)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    opened, read, cells = map(int, done.stdout.split())
    assert cells > 0
    assert opened < 0.03 * sum(sizes.values())
    # All fields of hydro of all domains are several times as much; other components even more.
    assert read < 0.2 * (sizes["amr"] + sizes["hydro"])

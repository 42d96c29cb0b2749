"""Copies of parts of cells in patches: levels and regions, equal to the source and to yt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.copies import patch_values
from tests.helpers import plotfiles
from tests.helpers.command_line import run
from tests.helpers.sample_outputs import amrex_sample, by_place
from tests.helpers.store_chunks import chunks

yt = pytest.importorskip("yt")
yt.set_log_level(40)


def yt_dataset(path: Path) -> Any:
    """Open a plotfile with yt's reader of particles, which yt chooses for known codes only."""
    from yt.frontends.amrex.api import AMReXDataset

    return AMReXDataset(str(path))


REGIONS = [
    ambar.Box((0.3, 0.25, 0.3), (0.7, 0.6, 0.75)),
    ambar.Box((None, None, 0.5), (None, None, 0.501)),
    ambar.Sphere((0.4, 0.5, 0.6), 0.2),
    ambar.SphericalShell("bc", 0.2, 0.25),
    ambar.Cylinder("bc", 0.1, 0.5, axis=(1, 1, 0)),
    ambar.CylindricalShell("bc", 0.1, 0.15, 0.2),
    ambar.OrientedBox("bc", (0.5, 0.1, 0.1), axis=(1, 1, 1)),
    ~ambar.Sphere("bc", 0.3),
    ambar.Box((0.1,) * 3, (0.2,) * 3) | ambar.Sphere((0.8, 0.7, 0.5), 0.1),
    ambar.Box((0.2,) * 3, (0.9,) * 3) & ambar.Sphere("bc", 0.3),
]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("patches")
    found = {}
    for name in ("advection_plt00006", "nyx64_plt00040"):
        found[name] = folder / f"{name}.ambar"
        ambar.convert(amrex_sample(name), found[name], fsync=False)
    return found


@pytest.fixture
def advection(stores: dict[str, Path]) -> Path:
    return stores["advection_plt00006"]


def copy(source: Path, target: Path, **options: Any) -> ambar.Snapshot:
    ambar.convert(source, target, mode="w", fsync=False, **options)
    ambar.open_store(target).verify()
    return ambar.open_snapshot(target)


def levels_of(part: ambar.Snapshot) -> tuple[Any, ...]:
    info = part.info
    assert isinstance(info, ambar.AmrexInfo | ambar.CodeInfo)
    return info.levels


def assert_same(found: ambar.Table, expected: ambar.Table) -> None:
    """Assert that two tables of cells are equal, in any order."""
    ours, theirs = by_place(found), by_place(expected)
    for name in expected:
        np.testing.assert_array_equal(
            np.asarray(found[name])[ours], np.asarray(expected[name])[theirs], name
        )


def assert_same_cells(part: ambar.Snapshot, source: Path, **selection: Any) -> None:
    names = [*part.amr.fields, "level", "ix", "iy", "iz"]
    region = {key: value for key, value in selection.items() if key != "levels"}
    assert_same(
        part.amr.read(names, **region), ambar.open_snapshot(source).amr.read(names, **selection)
    )


@pytest.mark.parametrize("name", ["advection_plt00006", "nyx64_plt00040"])
def test_levels_are_those_of_yt(name: str, stores: dict[str, Path], tmp_path: Path) -> None:
    finest = len(levels_of(ambar.open_snapshot(stores[name]))) - 1
    original = yt_dataset(amrex_sample(name))
    for highest in range(finest):
        part = copy(stores[name], tmp_path / "part.ambar", levels=(0, highest))
        levels = levels_of(part)
        assert [level.boxes for level in levels] == [
            int((original.index.grid_levels == level).sum()) for level in range(highest + 1)
        ]
        assert levels[-1].ratio == (1, 1, 1)
        ambar.export(tmp_path / "part.ambar", tmp_path / f"plt{highest}")
        exported = yt_dataset(tmp_path / f"plt{highest}")
        grids = [grid for grid in original.index.grids if grid.Level <= highest]
        assert len(exported.index.grids) == len(grids)
        # The values of cells that became leaves are the plotfile's own, not averages.
        for ours, theirs in zip(exported.index.grids, grids, strict=True):
            np.testing.assert_array_equal(ours.LeftEdge, theirs.LeftEdge)
            for field in part.amr.fields:
                np.testing.assert_array_equal(ours["boxlib", field], theirs["boxlib", field])
        shape = original.domain_dimensions * 2**highest
        for field in part.amr.fields[:2]:
            grid = original.covering_grid(highest, original.domain_left_edge, shape)
            found = part.amr.grid(field, level=highest).values
            np.testing.assert_array_equal(found, grid["boxlib", field].astype(found.dtype))
        species = next(iter(part.species))
        rows = [
            np.sort(dataset.all_data()[species, "particle_id"]) for dataset in (exported, original)
        ]
        np.testing.assert_array_equal(rows[0], rows[1])


def test_unchanged_levels_are_copied_verbatim(advection: Path, tmp_path: Path) -> None:
    target = tmp_path / "part.ambar"
    part = copy(advection, target, levels=(0, 1))
    for group in ("amr/level_0/", "particles/particles/position", "particles/particles/id"):
        assert chunks(target, group) == chunks(advection, group) != {}
    # Without the field that leaves out covered cells, so is the finest level.
    kept = copy(advection, target, levels=(0, 1), fields=["gradx", "gradz"])
    assert kept.amr.fields == ["gradx", "gradz"]
    for level in (0, 1):
        group = f"amr/level_{level}/grad"
        expected = chunks(advection, f"amr/level_{level}/gradx")
        assert chunks(target, f"{group}x") == expected != {}
    assert_same(
        kept.amr.read(["gradz", "level", "ix", "iy", "iz"]),
        part.amr.read(["gradz", "level", "ix", "iy", "iz"]),
    )
    # All levels, and all of space: nothing is encoded again.
    copy(advection, target, levels=(0, 5), region=ambar.Box((0, 0, None), (None, 1, 1)))
    assert chunks(target, "amr/") == chunks(advection, "amr/")


def test_a_lowest_level(advection: Path, tmp_path: Path) -> None:
    part = copy(advection, tmp_path / "part.ambar", levels=(1, 2))
    assert part.amr.levels == (1, 2)
    assert_same_cells(part, advection, levels=(1, 2))
    ambar.export(tmp_path / "part.ambar", tmp_path / "plt")
    data = yt_dataset(tmp_path / "plt").all_data()
    assert data["index", "grid_level"].min() == 1
    assert data["boxlib", "phi"].size == len(part.amr)
    source = ambar.open_snapshot(advection)
    sphere = ambar.Sphere("bc", 0.1)
    middle = copy(advection, tmp_path / "part.ambar", levels=(1, 1), region=sphere)
    names = ["phi", "level", "ix", "iy", "iz"]
    loaded = source.load(["phi"], max_level=1).amr
    assert_same(
        middle.amr.read(names, region=sphere), loaded.read(names, region=sphere, levels=(1, 1))
    )


@pytest.mark.parametrize("whole_bytes", [None, 0])
def test_cells_in_regions(
    whole_bytes: int | None, advection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whole_bytes is not None:  # all boxes are read in parts
        monkeypatch.setattr(patch_values, "_WHOLE_BYTES", whole_bytes)
    source = ambar.open_snapshot(advection)
    for region in REGIONS if whole_bytes is None else REGIONS[2:4]:
        part = copy(advection, tmp_path / "part.ambar", region=region)
        assert len(part.amr) <= len(source.amr)
        for cut in ("center", "whole"):
            assert_same_cells(part, advection, region=region, cut=cut)
        # Leaf cells are leaf cells of the source: no cell lacks the boxes that cover it.
        cells = part.amr.read(["phi", "level", "ix", "iy", "iz"])
        every = source.amr.read(["phi", "level", "ix", "iy", "iz"])
        rows = zip(*(every[name].tolist() for name in ("level", "ix", "iy", "iz")), strict=True)
        places = dict(zip(rows, every["phi"].tolist(), strict=True))
        found = zip(*(cells[name].tolist() for name in ("level", "ix", "iy", "iz")), strict=True)
        assert [places[row] for row in found] == cells["phi"].tolist()
        ids = np.sort(part.species["particles"].read(["id"])["id"])
        kept = np.sort(source.species["particles"].read(["id"], region=region)["id"])
        np.testing.assert_array_equal(ids, kept)


def test_a_region_without_boxes_is_an_error(advection: Path, tmp_path: Path) -> None:
    part, target = tmp_path / "part.ambar", tmp_path / "none.ambar"
    copy(advection, part, region=ambar.Box((0.1,) * 3, (0.3,) * 3))
    with pytest.raises(ValueError, match="no cell is selected"):
        ambar.convert(part, target, region=ambar.Box((0.8,) * 3, (0.9,) * 3))
    assert not target.exists()
    # The middle of the domain is outside of the boxes: the picture shows the middle of these.
    image = ambar.open_snapshot(part).plot().images[0]
    assert np.isfinite(np.ma.filled(image.get_array(), np.nan)).any()


def test_a_region_is_exported_and_read_by_yt(stores: dict[str, Path], tmp_path: Path) -> None:
    name = "nyx64_plt00040"
    source = amrex_sample(name)
    part = copy(stores[name], tmp_path / "part.ambar", region=ambar.Sphere("bc", 0.2))
    ambar.export(tmp_path / "part.ambar", tmp_path / "plt")
    datasets = [yt_dataset(path) for path in (source, tmp_path / "plt")]
    spheres = []
    for dataset in datasets:
        radius = 0.2 * float(dataset.domain_width[0])
        spheres.append(dataset.sphere(dataset.domain_center, dataset.quan(radius, "code_length")))
    theirs, ours = spheres
    for field in ("density", "Temp"):
        np.testing.assert_array_equal(
            np.sort(ours["boxlib", field]), np.sort(theirs["boxlib", field])
        )
    ids = [np.sort(sphere["DM", "particle_id"]) for sphere in spheres]
    np.testing.assert_array_equal(ids[0], ids[1])
    # Each particle belongs to the finest box that contains it.
    again = ambar.open_snapshot(tmp_path / "plt")
    rows = again.species["DM"].read(["position_x", "position_y", "position_z", "level", "grid"])
    positions = np.stack([rows[f"position_{axis}"] for axis in "xyz"], axis=1)
    expected = np.full((len(rows), 2), -1)
    for level, size in enumerate(np.array([part.amr.cell_size(0), part.amr.cell_size(1)])):
        boxes = part.amr._core.boxes(level)
        for number, (lo, hi) in enumerate(boxes):
            inside = ((positions >= lo * size) & (positions < hi * size)).all(axis=1)
            expected[inside] = level, number
    np.testing.assert_array_equal(np.stack([rows["level"], rows["grid"]], axis=1), expected)
    assert len(rows) == len(part.species["DM"]) > 1000


@pytest.mark.filterwarnings("ignore:.*is stored without further loss")
def test_error_bounds_of_parts(advection: Path, tmp_path: Path) -> None:
    once, part = tmp_path / "once.ambar", tmp_path / "part.ambar"
    copy(advection, once, error_bound={"phi": 1e-3, "gradx": "1e-3 relative"})
    region = ambar.Sphere("bc", 0.2)
    # A part of bounded values is stored without further loss, and states the bound.
    assert_same_cells(copy(once, part, region=region), once, region=region)
    stated = ambar.open_store(part)["amr"].attrs["ambar"]["error_bounds"]
    assert stated == {"phi": 1e-3, "gradx": "1e-3 relative"}
    copy(once, part, levels=(0, 1))
    assert ambar.open_store(part)["amr"].attrs["ambar"]["error_bounds"] == stated
    for options in ({"region": region}, {"levels": (0, 1)}):
        copy(once, part, error_bound={"phi": 2e-3, "particles/real_comp0": 1e-3}, **options)
        found = ambar.open_store(part)["amr"].attrs["ambar"]["error_bounds"]
        assert found == {**stated, "phi": pytest.approx(3e-3)}
        copy(advection, tmp_path / "exact.ambar", **options)
        errors = {one.field: one for one in ambar.compare(tmp_path / "exact.ambar", part).fields}
        assert 0 < errors["phi"].all.max_error <= 3e-3
    with pytest.raises(ValueError, match="gradx has the error bound"):
        copy(once, part, error_bound={"gradx": 1e-3}, region=region)


def test_damage_is_named_and_leaves_nothing(advection: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.ambar"
    chunk = ambar.open_store(advection)["amr/level_1/gradx"]._core.chunk_ranges()[0]
    content = bytearray(advection.read_bytes())
    content[chunk.offset + chunk.length // 2] ^= 0xFF
    damaged.write_bytes(content)
    for options in ({"region": ambar.Sphere("bc", 0.2)}, {"levels": (0, 1)}):
        with pytest.raises(
            ambar.CorruptError, match=r"^\S*damaged\.ambar: /amr/level_1/gradx, chunk"
        ):
            ambar.convert(damaged, tmp_path / "none.ambar", **options)
    assert list(tmp_path.iterdir()) == [damaged]


def test_blocks_of_a_dataset_of_yt(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    grids: list[dict[Any, Any]] = []
    for level, lo, hi in (
        (0, (0, 0, 0), (8, 8, 8)),
        (1, (4, 4, 4), (12, 12, 12)),
        (2, (10, 10, 10), (12, 12, 12)),
    ):
        size = 0.125 / 2**level
        edges = {"left_edge": np.multiply(lo, size), "right_edge": np.multiply(hi, size)}
        cells = np.subtract(hi, lo)
        values = {"density": (random.random(cells), "g/cm**3")}
        grids.append({**edges, **values, "level": level, "dimensions": cells})
    own = [grid["density"][0] for grid in grids]
    dataset = yt.load_amr_grids(grids, [8] * 3, periodicity=(True,) * 3)
    source = tmp_path / "source.ambar"
    ambar.convert(dataset, source, fsync=False)
    for highest in (0, 1):
        part = copy(source, tmp_path / "part.ambar", levels=(0, highest))
        finest = own[highest]
        cells = part.amr.read(["density"], levels=(highest, highest))
        np.testing.assert_array_equal(np.sort(cells["density"]), np.sort(finest.ravel()))
        assert [level.cells for level in levels_of(part)] == [512, 512][: highest + 1]
    # Across periodic faces, boxes are cut in two.
    sphere = ambar.Sphere((0.0, 0.5, 0.5), 0.13)
    part = copy(source, tmp_path / "part.ambar", region=sphere)
    assert levels_of(part)[0].boxes == 2
    assert_same_cells(part, source, region=sphere, cut="whole")
    with pytest.raises(
        ambar.UnsupportedError, match=r"whole cells of level 0, found one .* level 1"
    ):
        copy(source, tmp_path / "none.ambar", levels=(2, 2))
    with pytest.raises(ValueError, match="no cell is selected"):
        copy(source, tmp_path / "none.ambar", levels=(3, 4))
    with pytest.raises(ValueError, match="no cell is selected"):
        copy(source, tmp_path / "none.ambar", levels=(1, 1), region=ambar.Sphere((0.1,) * 3, 0.05))
    with pytest.raises(ValueError, match="the lowest first"):
        copy(source, tmp_path / "none.ambar", levels=(1, 0))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["part.ambar", "source.ambar"]


def test_a_series_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in (0, 1):
        plotfiles.write(tmp_path / f"plt{number:05d}")
    source, target = tmp_path / "run.ambar", tmp_path / "part.ambar"
    ambar.convert([tmp_path / "plt00000", tmp_path / "plt00001"], source, fsync=False)
    options = ["--levels", "0:0", "--region", "0.1:0.6,0.2:0.5,0.3:0.6"]
    assert run(capsys, "convert", source, target, *options)[0] == 0
    series = ambar.open_series(target)
    assert len(series) == 2
    region = ambar.Box((0.1, 0.2, 0.3), (0.6, 0.5, 0.6))
    for step, original in zip(series, ambar.open_series(source), strict=True):
        names = ["density", "Temp", "level", "ix", "iy", "iz"]
        loaded = original.load(["density", "Temp"], max_level=0)
        assert_same(step.amr.read(names, region=region), loaded.amr.read(names, region=region))
    ambar.export(target, tmp_path / "plotfiles")
    assert len(yt_dataset(tmp_path / "plotfiles" / "plt00001").index.grids) == 1

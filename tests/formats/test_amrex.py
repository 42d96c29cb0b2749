"""AMReX plotfiles, native, in HDF5 and in stores: equal to what yt reads, and written again."""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfile_writer, plotfiles
from tests.helpers.amrex_plotfiles import BOXES_3D, smooth, steep, write_plotfile
from tests.helpers.command_line import run
from tests.helpers.sample_outputs import amrex_sample

yt = pytest.importorskip("yt")
yt.set_log_level(40)

SAMPLES = ["small", "advection_plt00006", "nyx64_plt00040", "lwfa_f32"]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("amrex") / "small"
    plotfiles.write(path)
    return path


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of plotfiles, by name; made when first asked for."""
    return {"": tmp_path_factory.mktemp("stores")}


@pytest.fixture(params=SAMPLES)
def plotfile(request: pytest.FixtureRequest, small: Path) -> Path:
    return small if request.param == "small" else amrex_sample(request.param)


def store_of(plotfile: Path, converted: dict[str, Path]) -> Path:
    if plotfile.name not in converted:
        target = converted[""] / f"{plotfile.name}.ambar"
        done = ambar.convert(plotfile, target, fsync=False)
        assert done.converted == [plotfile.name]
        files = (path for path in plotfile.rglob("*") if path.is_file())
        assert done.source_bytes == sum(path.stat().st_size for path in files)
        assert done.stored_bytes == target.stat().st_size
        converted[plotfile.name] = target
    return converted[plotfile.name]


@pytest.fixture(params=["native", "store"])
def snapshot(
    request: pytest.FixtureRequest, plotfile: Path, converted: dict[str, Path]
) -> ambar.Snapshot:
    if request.param == "native":
        return ambar.open_snapshot(plotfile)
    opened = ambar.open(store_of(plotfile, converted))
    assert isinstance(opened, ambar.Snapshot)
    return opened


def yt_dataset(path: Path) -> Any:
    return yt.load(str(path))


def in_order(columns: Mapping[str, np.ndarray] | ambar.Table) -> np.ndarray:
    """Return the order of cells by level and place."""
    return np.lexsort((columns["iz"], columns["iy"], columns["ix"], columns["level"]))


def test_cells_equal_yts(snapshot: ambar.Snapshot, plotfile: Path) -> None:
    dataset = yt_dataset(plotfile)
    data = dataset.all_data()
    amr = snapshot.amr
    names = amr.fields
    derived = ["level", "x", "y", "z", "dx", "ix", "iy", "iz"]
    cells = amr.read([*derived, *names])
    left = dataset.domain_left_edge.d
    level = data["index", "grid_level"].d.astype(int)
    place = {}
    for axis, start, size in zip("xyz", left, np.array(amr.cell_size(0)), strict=True):
        centre = data["index", axis].d
        # yt has cells of no more than the ratio 2 from level to level here.
        place[f"i{axis}"] = np.floor((centre - start) / (size / 2.0**level)).astype(int)
    theirs = in_order({"level": level, **place})
    ours = in_order(cells)
    assert len(cells) == level.size == len(amr)
    np.testing.assert_array_equal(cells["level"][ours], level[theirs])
    for axis in "xyz":
        np.testing.assert_array_equal(cells[f"i{axis}"][ours], place[f"i{axis}"][theirs])
        np.testing.assert_allclose(cells[axis][ours], data["index", axis].d[theirs], rtol=1e-12)
    np.testing.assert_allclose(cells["dx"][ours], data["index", "dx"].d[theirs], rtol=1e-12)
    for name in names:
        values = data["boxlib", name].d[theirs]
        np.testing.assert_array_equal(cells[name][ours], values.astype(amr.dtype(name)), name)


def test_the_covering_grid_equals_yts(snapshot: ambar.Snapshot, plotfile: Path) -> None:
    dataset = yt_dataset(plotfile)
    amr = snapshot.amr
    finest = amr.levels[1]
    name = amr.fields[0]
    shape = np.array(dataset.domain_dimensions) * 2**finest
    theirs = dataset.covering_grid(finest, dataset.domain_left_edge, shape)["boxlib", name].d
    ours = amr.grid(name, level=finest)
    np.testing.assert_array_equal(ours.to_numpy(), theirs)
    left, right = dataset.domain_left_edge.d, dataset.domain_right_edge.d
    for number, axis in enumerate("xyz"):
        step = (right[number] - left[number]) / shape[number]
        np.testing.assert_allclose(
            ours[axis], left[number] + (np.arange(shape[number]) + 0.5) * step
        )
    # Averages of the finest grid are the coarser one.
    coarse = amr.grid(name, level=0).to_numpy()
    parts = theirs.reshape([k for n in coarse.shape for k in (n, 2**finest)])
    np.testing.assert_allclose(coarse, parts.mean((1, 3, 5)), rtol=1e-6, atol=1e-9 * np.ptp(theirs))
    # Slices and projections are those of the finest grid.
    cut = amr.slice(name, axis="y", at=0.3, level=finest).to_numpy()
    np.testing.assert_array_equal(cut, theirs[:, int(0.3 * shape[1])].T)
    summed = amr.project(name, axis="z", level=finest).to_numpy()
    depth = (right[2] - left[2]) / shape[2]
    tolerance = 1e-9 * np.ptp(theirs) * (right[2] - left[2])
    np.testing.assert_allclose(summed, theirs.sum(2).T * depth, rtol=1e-6, atol=tolerance)


def test_selections_are_those_of_all_cells(snapshot: ambar.Snapshot) -> None:
    amr = snapshot.amr
    name = amr.fields[0]
    every = amr.read(["x", "y", "z", "level", name])
    info = snapshot.info
    middle = float(np.median(every[name]))
    ends = (0.1, 0.2, 0.0), (0.6, 0.5, 0.4)
    box = ambar.Box(*ends)
    lo, hi = (
        [start + part * info.boxlen for start, part in zip(info.lower, end, strict=True)]
        for end in ends
    )
    inside = np.ones(len(every), bool)
    for axis, a, b in zip("xyz", lo, hi, strict=True):
        inside &= (a <= every[axis]) & (every[axis] < b)
    found = amr.read([name, "x"], region=box)
    np.testing.assert_array_equal(found[name], every[name][inside])
    assert 0 < amr.chunks_touched(region=box) <= amr.chunk_count
    wanted = (every["level"] == 1) & (every[name] > middle)
    found = amr.read([name], levels=(1, 1), where=f"{name} > {middle!r}")
    np.testing.assert_array_equal(found[name], every[name][wanted])


def test_the_same_cells_in_the_same_order(plotfile: Path, converted: dict[str, Path]) -> None:
    native = ambar.open_snapshot(plotfile).amr.read()
    stored = ambar.open_snapshot(store_of(plotfile, converted)).amr.read()
    assert native.columns == stored.columns
    for name in native.columns:
        np.testing.assert_array_equal(native[name], stored[name], name)


def same_files(one: Path, other: Path) -> None:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    _, different, errors = filecmp.cmpfiles(one, other, map(str, files), shallow=False)
    assert not different
    assert not errors


def test_export_writes_the_same_files(
    plotfile: Path, converted: dict[str, Path], tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    store = store_of(plotfile, converted)
    ambar.export(store, tmp_path / "plt", progress=lambda *done: seen.append(done))
    same_files(plotfile, tmp_path / "plt")
    assert seen[-1][0] == seen[-1][1] > 0
    with pytest.raises(FileExistsError):
        ambar.export(store, tmp_path / "plt")


def test_only_extrema_that_differ_from_the_values_are_stored(small: Path, tmp_path: Path) -> None:
    plotfile = shutil.copytree(small, tmp_path / "plt00000")
    header = plotfile / "Level_1" / "Cell_H"
    lines = header.read_text().split("\n")
    row = next(i for i, line in enumerate(lines) if line.count(",") == 1 and "(" not in line) + 1
    mantissa, _, rest = lines[row].partition("e")
    lines[row] = f"{mantissa[:-4]}{(int(mantissa[-4]) + 1) % 10}{mantissa[-3:]}e{rest}"
    header.write_text("\n".join(lines))
    ambar.convert(plotfile, tmp_path / "x.ambar", fsync=False)
    layout = json.loads(ambar.open_store(tmp_path / "x.ambar")["source/layout"][:][0])
    assert [level["extrema"] is None for level in layout["levels"]] == [True, False]
    ambar.export(tmp_path / "x.ambar", tmp_path / "again")
    same_files(plotfile, tmp_path / "again")


@pytest.mark.parametrize("covered", ["auto", "keep", "drop"])
def test_covered_cells(covered: str, small: Path, tmp_path: Path) -> None:
    levels = plotfiles.write(tmp_path / "plt")
    target = tmp_path / "run.ambar"
    ambar.convert(small, target, covered=covered)
    store = ambar.Store._open(target)
    dropped = store._ambar_attributes("amr")["levels"][0]["dropped"]
    assert dropped == {"auto": ["density"], "keep": [], "drop": ["density", "Temp"]}[covered]
    ambar.export(target, tmp_path / "again")
    again = yt_dataset(tmp_path / "again").index.grids
    covered_cells = plotfiles.covered()
    for grid in again:
        level = int(grid.Level)
        box = tuple(
            slice(start, start + count)
            for start, count in zip(
                grid.get_global_startindex(), grid.ActiveDimensions, strict=True
            )
        )
        for number, name in enumerate(plotfiles.FIELDS):
            expected = levels[level][number][box].copy()
            if level == 0 and covered == "drop" and name == "Temp":
                means = levels[1][number].reshape(16, 2, 8, 2, 8, 2).mean((1, 3, 5))[box]
                expected = np.where(covered_cells[box], means, expected)
                np.testing.assert_allclose(grid["boxlib", name].d, expected, rtol=1e-14)
            else:
                np.testing.assert_array_equal(grid["boxlib", name].d, expected)


@pytest.mark.parametrize("bound", [1e-2, 1e-4])
def test_an_error_bound_holds_in_every_box(bound: float, plotfile: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    done = ambar.convert(
        plotfile, target, components=["cells"], error_bound=f"{bound} of range", fsync=False
    )
    assert done.source_bytes > (1 if plotfile.name == "small" else 2) * done.stored_bytes
    cells, exact = ambar.open_snapshot(target).amr, ambar.open_snapshot(plotfile).amr
    spans = {}
    for name in exact.fields:
        want, got = exact.read([name])[name], cells.read([name])[name]
        spans[name] = float(want.max()) - float(want.min())
        assert len(want) == len(got)
    # What covered cells give is seen in the plotfile that is written again.
    ambar.export(target, tmp_path / "plt")
    ours, theirs = yt_dataset(tmp_path / "plt"), yt_dataset(plotfile)
    for grid, original in zip(ours.index.grids, theirs.index.grids, strict=True):
        for name in exact.fields:
            off = np.abs(grid["boxlib", name].d - original["boxlib", name].d)
            assert off.max() <= bound * spans[name], name


def test_bounds_of_particles(tmp_path: Path) -> None:
    plotfile = amrex_sample("nyx64_plt00040")
    target = tmp_path / "x.ambar"
    bounds = {"DM/position_x": 1e-6, "Temp": 1.0}
    ambar.convert(plotfile, target, error_bound=bounds, fsync=False)
    names = ["id", "cpu", "position_x", "position_y"]
    tables = [ambar.open_snapshot(path).species["DM"].read(names) for path in (target, plotfile)]
    got, want = (
        {name: rows[name][np.lexsort((rows["id"], rows["cpu"]))] for name in rows}
        for rows in tables
    )
    assert 0 < np.abs(got["position_x"] - want["position_x"]).max() <= 1e-6
    assert np.array_equal(got["position_y"], want["position_y"])
    with pytest.raises(KeyError, match="gas"):
        ambar.convert(plotfile, tmp_path / "y.ambar", error_bound={"gas/mass": 1.0})


def test_parts_of_a_plotfile(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    ambar.convert(small, target, fields=["Temp"], components="cells")
    snapshot = ambar.open_snapshot(target)
    assert snapshot.components == {"cells": ["Temp"]}
    expected = ambar.open_snapshot(small).load(fields=["Temp"]).amr.read(["Temp"])
    np.testing.assert_array_equal(snapshot.amr.read(["Temp"])["Temp"], expected["Temp"])
    ambar.export(target, tmp_path / "plt")
    again = ambar.open_snapshot(tmp_path / "plt").amr
    assert again.fields == ["Temp"]
    np.testing.assert_array_equal(again.read(["Temp"])["Temp"], expected["Temp"])


@pytest.mark.parametrize("name", ["advection_none.h5", "advection_mdset.h5"])
def test_hdf5_is_the_native_plotfile(name: str, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    native = ambar.open_snapshot(amrex_sample("advection_plt00006")).load("cells")
    opened = ambar.open_snapshot(amrex_sample(name))
    assert opened.info.time == native.info.time
    assert isinstance(opened.info, ambar.AmrexInfo)
    assert isinstance(native.info, ambar.AmrexInfo)
    assert opened.info.levels == native.info.levels
    expected = native.amr.read()
    target = tmp_path / "run.ambar"
    ambar.convert(amrex_sample(name), target)
    for found in (opened, ambar.open_snapshot(target)):
        cells = found.amr.read()
        for column in expected.columns:
            np.testing.assert_array_equal(cells[column], expected[column], column)
    ambar.export(target, tmp_path / "plt")
    again = ambar.open_snapshot(tmp_path / "plt")
    assert again.info.time == native.info.time
    assert isinstance(again.info, ambar.AmrexInfo)
    assert again.info.steps == native.info.steps
    np.testing.assert_array_equal(again.amr.read()["phi"], expected["phi"])
    for level in range(3):
        # The grids of the two files come in different orders.
        ours, theirs = (
            np.sort(amr.boxes(level).reshape(-1, 6), 0) for amr in (again.amr, native.amr)
        )
        np.testing.assert_array_equal(ours, theirs)


def test_run_information(small: Path, converted: dict[str, Path]) -> None:
    for snapshot in (ambar.open_snapshot(small), ambar.open_snapshot(store_of(small, converted))):
        info = snapshot.info
        assert isinstance(info, ambar.AmrexInfo)
        assert (info.ndim, info.time, info.steps) == (3, 0.25, (5, 10))
        assert (info.lower, info.upper) == (plotfiles.LOWER, plotfiles.UPPER)
        assert (info.boxlen, info.box_size) == (2.0, (2.0, 1.0, 1.0))
        assert [level.boxes for level in info.levels] == [2, 3]
        assert info.levels[0].ratio == (2, 2, 2)
        assert info.text_files == ("job_info",)
        assert snapshot.amr.levels == (0, 1)
        assert snapshot.amr.cells_per_level[0] == 16 * 8 * 8 - plotfiles.covered().sum()
        boxes = np.array(plotfiles.BOXES[1])
        boxes[:, 1] += 1  # a plotfile has the last cells
        np.testing.assert_array_equal(snapshot.amr.boxes(1), boxes)
        assert [level.hi for level in info.levels] == [(16, 8, 8), (32, 16, 16)]
        assert "cells" in repr(snapshot)
        assert "3-D" in repr(snapshot.amr)
        with pytest.raises(ambar.UnsupportedError, match="units"):
            snapshot.amr.read(region=ambar.Sphere("bc", 1.0, unit="kpc"))
        with pytest.raises(ambar.UnsupportedError, match="units"):
            snapshot.amr.slice("density", unit="g/cm3")
        assert snapshot.amr.slice("density", axis="z").attrs["at"] == 2.5
        assert snapshot.to_xarray()["amr"]["density"].size == len(snapshot.amr)


@pytest.mark.parametrize("header", [None, b"", b"3\nVersion"])
def test_particles_without_a_header_are_not_left_out(
    header: bytes | None, tmp_path: Path, small: Path
) -> None:
    path = tmp_path / "plt"
    shutil.copytree(small, path)
    (path / "tracers" / "Level_0").mkdir(parents=True)
    (path / "tracers" / "Level_0" / "Particle_H").write_text("(0 0\n)\n")
    if header is not None:
        (path / "tracers" / "Header").write_bytes(header)
    with pytest.raises(ambar.AmbarError, match="tracers/Header.*name the components"):
        ambar.convert(path, tmp_path / "x.ambar")
    assert len(ambar.open_snapshot(path).amr.read()) > 0
    done = ambar.convert(path, tmp_path / "x.ambar", components=["cells"])
    assert done.left_out == {}


def write_species(folder: Path, counts: list[list[int]]) -> None:
    """Write particles with the components mass and q; `counts` by level and box of `BOXES_3D`."""
    random, number = np.random.default_rng(3), 0
    lines = ["Version_Two_Dot_One_double", "3", "1", "mass", "1", "q", "1"]
    lines += [str(sum(map(sum, counts))), "100", str(len(counts) - 1)]
    lines += [str(len(grids)) for grids in counts]
    for level, grids in enumerate(counts):
        place = folder / f"Level_{level}"
        place.mkdir(parents=True)
        corners = [
            " ".join(f"({','.join(map(str, one))})" for one in box) for box in BOXES_3D[level]
        ]
        boxes = "".join(f"({corner} (0,0,0))\n" for corner in corners)
        (place / "Particle_H").write_text(f"({len(grids)} 0\n{boxes})\n")
        for file, count in enumerate(grids):
            lines.append(f"{file} {count} 0")
            numbers = np.arange(number, number + count, dtype=np.uint64) + 1
            number += count
            # The highest bit is that of valid particles; the id and 24 bits of the process follow.
            packed = np.uint64(1 << 63) | (numbers << np.uint64(24))
            parts = [packed >> np.uint64(32), packed & np.uint64(2**32 - 1), numbers]
            ints = np.column_stack([part.astype("<u4") for part in parts])
            if count:
                reals = random.random((count, 4))
                (place / f"DATA_{file:05d}").write_bytes(ints.tobytes() + reals.tobytes())
    (folder / "Header").write_text("\n".join(lines) + "\n")


def test_species_on_fewer_levels_than_the_cells(tmp_path: Path) -> None:
    folder = write_plotfile(tmp_path / "plt00000")
    write_species(folder / "dust", [[5, 2]])
    ambar.convert(folder, tmp_path / "x.ambar", fsync=False)
    ambar.export(tmp_path / "x.ambar", tmp_path / "again")
    same_files(folder, tmp_path / "again")


def test_copies_of_some_columns_of_particles_are_exported(tmp_path: Path) -> None:
    folder = write_plotfile(tmp_path / "plt00000")
    write_species(folder / "dust", [[5, 2], [3, 0]])
    ambar.convert(folder, tmp_path / "x.ambar", fsync=False)
    fields = ["density", "dust/mass"]
    ambar.convert(tmp_path / "x.ambar", tmp_path / "y.ambar", fields=fields, fsync=False)
    copy = ambar.open_snapshot(tmp_path / "y.ambar")
    stored = set(copy.species["dust"].fields)
    assert stored - set(copy.components["particles/dust"]) == {"file_row"}
    ambar.export(tmp_path / "y.ambar", tmp_path / "again")
    again = ambar.open_snapshot(tmp_path / "again").species["dust"].read()
    assert "q" not in again.columns
    expected = ambar.open_snapshot(folder).species["dust"].read(list(again.columns))
    for name in expected.columns:
        np.testing.assert_array_equal(again[name], expected[name])


def test_omitted_parts_are_reported(
    tmp_path: Path, small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plt"
    shutil.copytree(small, path)
    (path / "notes").mkdir()
    (path / "picture.png").write_bytes(b"\x89PNG")
    left = {"notes": "a folder without particles", "picture.png": "a file that is not UTF-8 text"}
    assert ambar.convert(path, tmp_path / "x.ambar").left_out == left
    code, out, _ = run(capsys, "convert", path, tmp_path / "y.ambar")
    assert code == 0
    assert all(f"left out: {name}, {why}" in out for name, why in left.items())


@pytest.mark.parametrize(
    ("name", "species"), [("advection_plt00006", "particles"), ("nyx64_plt00040", "DM")]
)
def test_particles(name: str, species: str, converted: dict[str, Path]) -> None:
    native = ambar.open_snapshot(amrex_sample(name))
    stored = ambar.open_snapshot(store_of(amrex_sample(name), converted))
    assert list(native.species) == list(stored.species) == [species]
    assert len(native.particles) == len(stored.particles) > 0
    theirs, ours = native.particles.read(), stored.particles.read()
    assert theirs.columns == ours.columns
    by_id = [np.lexsort((table["cpu"], table["id"])) for table in (theirs, ours)]
    for column in theirs.columns:
        np.testing.assert_array_equal(theirs[column][by_id[0]], ours[column][by_id[1]], column)
    box = ambar.Box((0.2, 0.2, 0.2), (0.5, 0.6, 0.5))
    few = [snapshot.particles.read(["id"], region=box) for snapshot in (native, stored)]
    assert 0 < len(few[0]) < len(theirs)
    np.testing.assert_array_equal(np.sort(few[0]["id"]), np.sort(few[1]["id"]))


def test_invalid_requests_are_refused(small: Path, tmp_path: Path, stores: dict[str, Path]) -> None:
    target = tmp_path / "run.ambar"
    with pytest.raises(ValueError, match="levels"):
        ambar.convert(small, target, levels=(0, 1))
    with pytest.raises(ValueError, match="covered"):
        ambar.convert(small, target, covered="perhaps")
    with pytest.raises(KeyError, match="density, Temp"):
        ambar.convert(small, target, fields=["rho"])
    with pytest.raises(KeyError, match="cells"):
        ambar.convert(small, target, components=["DM"])
    with pytest.raises(KeyError, match="density, Temp"):
        ambar.open_snapshot(small).load(fields=["entropy"])
    with pytest.raises(KeyError, match="rho"):
        ambar.convert(small, target, error_bound={"rho": 1e-3})
    assert not target.exists()
    with pytest.raises(ambar.UnsupportedError, match=r"for a plotfile.*\.vtkhdf"):
        ambar.export(stores["sedov"], tmp_path / "plt")
    with pytest.raises(ValueError, match="boxes"):
        ambar.open_snapshot(stores["sedov"]).amr.boxes(3)
    amr = ambar.open_snapshot(small).amr
    with pytest.raises(ValueError, match="level"):
        amr.grid("density", level=2)
    with pytest.raises(ValueError, match="level"):
        amr.boxes(2)
    with pytest.raises(ValueError, match=f"no boxes of level {2**70}: expected 0 to 255"):
        amr.boxes(2**70)


def test_damage_is_noticed(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    ambar.convert(small, target)
    content = bytearray(target.read_bytes())
    place = content.find(b"amr/level_1/density/c/0") + 200
    content[place] ^= 1
    target.write_bytes(content)
    with pytest.raises(ambar.CorruptError, match="level_1/density"):
        ambar.open_snapshot(target).amr.read(["density"])
    with pytest.raises(ambar.CorruptError, match="level_1/density"):
        ambar.export(target, tmp_path / "plt")
    assert not (tmp_path / "plt").exists()
    (small_copy := tmp_path / "cut").mkdir()
    plotfiles.write(small_copy / "plt")
    fabs = small_copy / "plt" / "Level_1" / "Cell_D_00000"
    fabs.write_bytes(fabs.read_bytes()[:-8])
    with pytest.raises(ambar.CorruptError, match="Cell_D_00000"):
        ambar.convert(small_copy / "plt", tmp_path / "cut.ambar")


@pytest.mark.parametrize(("line", "text"), [(0, None), (0, ""), (1, "-5"), (1, None)])
def test_damaged_headers_are_not_checkpoints(line: int, text: str | None, tmp_path: Path) -> None:
    """Such plotfiles were stored as checkpoints, without fields."""
    plotfiles.write(tmp_path / "plt")
    header = tmp_path / "plt" / "Header"
    lines = header.read_text().split("\n")
    lines[line : line + 1] = [] if text is None else [text]
    header.write_text("\n".join(lines))
    with pytest.raises(ambar.CorruptError, match=r"Header: line \d: expected"):
        ambar.convert(tmp_path / "plt", tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


@pytest.mark.parametrize("time", ["nan", "-nan", "inf", "-inf"])
def test_times_that_are_not_finite(
    time: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands info and compare failed with an internal TypeError."""
    number = plotfile_writer._number
    monkeypatch.setattr(
        plotfile_writer, "_number", lambda value: time if value == 0.12345 else number(value)
    )
    monkeypatch.setattr(plotfile_writer, "TIME", 0.12345)
    plotfile, store = tmp_path / "plt", tmp_path / "plt.ambar"
    plotfiles.write(plotfile)
    header = plotfile / "Header"
    assert header.read_text().count(f"{time}\n") == 3  # of the run, and of two levels
    ambar.convert(plotfile, store)
    for path in (plotfile, store):
        found = ambar.open_snapshot(path).info.time
        assert str(found).lstrip("-") == time.lstrip("-")
        assert np.signbit(found) == time.startswith("-")
        assert run(capsys, "info", path)[0] == 0
        code, printed, _ = run(capsys, "info", "--json", path)
        assert code == 0
        json.loads(printed, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert ambar.compare(plotfile, store).held
    ambar.export(store, tmp_path / "again")
    same_files(plotfile, tmp_path / "again")
    # Other programs write other text files, which are kept.
    header.write_text(header.read_text().replace("HyperCLaw-V1.1\n2\n", "HyperCLaw-V1.1\n 2\n"))
    ambar.convert(plotfile, store, mode="w")
    ambar.export(store, tmp_path / "again", mode="w")
    same_files(plotfile, tmp_path / "again")


def test_fields_named_as_derived_columns_are_converted(tmp_path: Path) -> None:
    """They were refused; a field has to be asked for by another name than the column."""

    def linear(*places: np.ndarray) -> np.ndarray:
        return places[0] + 2 * places[1]

    names = ["level", "x", "dx", "iz", "level_field", "density"]
    plotfile, store = tmp_path / "plt", tmp_path / "plt.ambar"
    write_plotfile(plotfile, fields=dict.fromkeys(names, linear))
    ambar.convert(plotfile, store, error_bound={"dx_field": 0.1})
    stored = ["level_field_", "x_field", "dx_field", "iz_field", "level_field", "density"]
    for path in (plotfile, store):
        amr = ambar.open_snapshot(path).amr
        assert amr.fields == stored
        cells = amr.read(["level", "x", "y", "dx", *stored])
        assert set(cells["level"].tolist()) == {0, 1}
        expected = cells["density"]
        np.testing.assert_allclose(cells["x"] + 2 * cells["y"], expected)
        for name in stored:
            np.testing.assert_allclose(cells[name], expected, atol=0.1 * (name == "dx_field"))
    exact = tmp_path / "exact.ambar"
    ambar.convert(plotfile, exact)
    assert ambar.compare(plotfile, exact).held
    ambar.export(exact, tmp_path / "again")
    same_files(plotfile, tmp_path / "again")
    part = tmp_path / "part.ambar"
    ambar.convert(plotfile, part, fields=["x_field"])
    ambar.export(part, tmp_path / "part")
    assert (tmp_path / "part" / "Header").read_text().startswith("HyperCLaw-V1.1\n1\nx\n3\n")
    with pytest.raises(ValueError, match="expected unique names of fields"):
        ambar.convert(plotfile, part, fields=["density", "density"], mode="w")
    expected_error = "'x' is a derived column of .*; leave it out, or give 'x_field'"
    with pytest.raises(KeyError, match=expected_error):
        ambar.convert(exact, part, fields=["x"], mode="w")
    with pytest.raises(KeyError, match=expected_error):
        ambar.open_snapshot(plotfile).load(["x"])


def test_fields_whose_names_contain_a_slash(tmp_path: Path) -> None:
    """Their arrays have other names, so that the fields were not found."""
    plotfile, store, part = tmp_path / "plt", tmp_path / "plt.ambar", tmp_path / "part.ambar"
    write_plotfile(plotfile, fields=dict.fromkeys(["u/c", "density"], lambda *x: x[0]))
    ambar.convert(plotfile, store)
    ratios = [field.ratio for field in ambar.compare(plotfile, store).fields]
    assert ratios[0] == ratios[1] > 1
    lines = repr(ambar.open_snapshot(store).amr).splitlines()[-2:]
    sizes = [line.split("code")[1] for line in lines]
    assert sizes[0] == sizes[1]
    ambar.convert(store, part, fields=["u/c"])
    assert ambar.open_snapshot(part).amr.fields == ["u/c"]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_fields_without_a_finite_value_take_little_room(tmp_path: Path, value: float) -> None:
    """Within an absolute bound infinities took eight bytes a cell, within a relative one none."""
    plotfile, store = tmp_path / "plt", tmp_path / "plt.ambar"
    write_plotfile(plotfile, fields={"a": lambda *places: np.full(places[0].shape, value)})
    bytes_ = {}
    for bound in (0.5, "1e-3 of range", "1e-3   of  range"):
        ambar.convert(plotfile, store, error_bound=bound, mode="w")
        assert ambar.compare(plotfile, store).held
        opened = ambar.open_store(store)
        bytes_[bound] = sum(opened[path].stored_bytes for path in opened if path.endswith("/a"))
    assert len(set(bytes_.values())) == 1
    assert bytes_[0.5] < 10_000


def test_the_command_line(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "plt.ambar"
    code, out, _ = run(capsys, "convert", small, target, "--covered", "keep", "--no-progress")
    assert code == 0
    assert "larger" in out
    for place, kind in ((target, "snapshot"), (small, "plotfile of AMReX")):
        code, out, _ = run(capsys, "info", place)
        assert code == 0
        assert kind in out
        assert "-1 to 1 x 0 to 1 x 2 to 3" in out
        code, out, _ = run(capsys, "info", place, "--json")
        assert code == 0
        assert "cell_size" in out
    code, out, _ = run(capsys, "plot", target, tmp_path / "a.png", "--axis", "y")
    assert code == 0
    assert (tmp_path / "a.png").stat().st_size > 10_000
    code, _, _ = run(capsys, "export", target, tmp_path / "plt", "--no-progress")
    assert code == 0
    same_files(small, tmp_path / "plt")
    code, _, err = run(capsys, "export", target, tmp_path / "plt")
    assert code == 4
    assert "exists" in err
    code, out, _ = run(capsys, "verify", target)
    assert code == 0


def test_ghost_cells_are_reported(tmp_path: Path) -> None:
    folder = write_plotfile(
        tmp_path / "plt00000",
        [[((0, 0), (31, 15))]],
        {"density": lambda x, y: 1 + x + y},
        domain=(32, 16),
    )
    inner = ambar.open_snapshot(folder).amr.grid("density", level=0).to_numpy()
    (data,) = (folder / "Level_0").glob("Cell_D*")
    fab, _, values = data.read_bytes().partition(b"\n")
    padded = np.pad(np.frombuffer(values).reshape(16, 32), 1)
    wider = fab.replace(b"((0,0) (31,15)", b"((-1,-1) (32,16)")
    assert wider != fab
    data.write_bytes(wider + b"\n" + padded.tobytes())
    header = folder / "Level_0" / "Cell_H"
    lines = header.read_text().split("\n")
    header.write_text("\n".join([*lines[:3], "1", *lines[4:]]))
    report = ambar.convert(folder, tmp_path / "x.ambar", fsync=False)
    assert report.left_out == {"ghost cells": "values around the boxes are not stored"}
    stored = ambar.open_snapshot(tmp_path / "x.ambar").amr.grid("density", level=0)
    np.testing.assert_array_equal(stored.to_numpy(), inner)


def test_cylindrical_plotfiles_have_no_volumes(tmp_path: Path) -> None:
    folder = write_plotfile(
        tmp_path / "plt00000",
        [[((0, 0), (31, 15))]],
        {"density": lambda x, y: 1 + x + y},
        domain=(32, 16),
    )
    header = (folder / "Header").read_text()
    (folder / "Header").write_text(header.replace("\n0\n0\n", "\n1\n0\n", 1))
    amr = ambar.open_snapshot(folder).amr
    message = "not known in cylindrical coordinates; give weight=None, or a field"
    for read in (lambda: amr.mean("density"), lambda: amr.read("volume")):
        with pytest.raises(ambar.NotFoundError, match=message):
            read()
    assert amr.mean("density", weight=None) == pytest.approx(2.0)
    # Distances from Cartesian formulas would be wrong.
    assert not {"radius", "cylindrical_radius", "spherical_radius"}.intersection(amr.derived_fields)
    with pytest.raises(ambar.NotFoundError, match="'radius' is not defined for these data"):
        amr.profile("radius", "density", weight=None)


def test_fields_named_mass_and_volume_are_not_the_default_weights(tmp_path: Path) -> None:
    def results(name: str, **more: Callable[..., np.ndarray]) -> list[float]:
        velocities = {f"{axis}_velocity": smooth for axis in "xyz"}
        fields = {"density": steep, **velocities, **more}
        amr = ambar.open_snapshot(write_plotfile(tmp_path / name, fields=fields)).amr
        return [
            *(amr.mean("density"), amr.std("density"), amr.mean("density", weight="mass")),
            *(amr.quantile("density", 0.3), amr.sum("kinetic_energy")),
            *(*amr.center_of_mass(), *amr.bulk_velocity(), *amr.find_center("com")),
            *(*amr.angular_momentum(), amr.velocity_dispersion()[0, 0]),
            *(float(amr.phase("density", "x_velocity").sum()), float(amr.histogram("density")[5])),
            *(float(amr.profile("x", "density", bins=4)["density"][2]),),
        ]

    assert results("plt00001", mass=smooth, volume=smooth) == results("plt00000")
    amr = ambar.open_snapshot(tmp_path / "plt00001").amr
    assert amr.sum("mass") != amr.sum("cell_mass")
    assert amr.statistics(["density"], weight="mass").weight == "cell_mass"


def test_errors_write_boxes_as_cell_h_does(tmp_path: Path) -> None:
    boxes = [[((0, 0), (31, 15)), ((16, 0), (31, 7))]]
    fields = {"density": lambda x, y: 1 + x + y}
    folder = write_plotfile(tmp_path / "plt00000", boxes, fields, domain=(32, 16))
    with pytest.raises(ValueError, match=r"\(\(0,0\) \(31,15\) \(0,0\)\) overlaps another box"):
        ambar.open_snapshot(folder).amr.read("density")


def test_a_field_that_occurs_twice_is_named(tmp_path: Path) -> None:
    folder = write_plotfile(tmp_path / "plt00000")
    header = (folder / "Header").read_text()
    first, second = header.split("\n")[2:4]
    (folder / "Header").write_text(header.replace(f"\n{second}\n", f"\n{first}\n", 1))
    with pytest.raises(ambar.CorruptError, match=f'found "{first}" twice; rename one'):
        ambar.open_snapshot(folder).amr.read("density")


def test_bins_of_lengths_are_linear_without_units(small: Path) -> None:
    amr = ambar.open_snapshot(small).amr
    beside_a_cell = (-0.9376, 0.0625, 2.0625)
    found = amr.profile("radius", "density", bins=4, center=beside_a_cell, length_unit="code")
    assert found["radius"].attrs["scale"] == "linear"

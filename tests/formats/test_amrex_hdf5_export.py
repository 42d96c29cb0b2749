"""Stores of plotfiles as AMReX's HDF5 plotfiles: cell by cell what the native ones hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import ambar
from ambar import _core, hdf5
from ambar.cli import main
from ambar.formats.amrex import hdf5_export as amrex_hdf5_export
from ambar.formats.amrex.hdf5 import read_hdf5
from tests.helpers import plotfile_writer
from tests.helpers.amrex_plotfiles import BOXES_3D, smooth, write_plotfile
from tests.helpers.sample_outputs import amrex_sample

pytestmark = pytest.mark.skipif(
    not hdf5.is_available(), reason="no plugin beside the package: `make build` makes it"
)


def differences(native: Path, file: Path) -> dict[str, tuple[float, float]]:
    """Return each field's largest difference and its value range, over all cells of all boxes."""
    core = _core.Amrex(str(native))
    levels = core.levels
    found = {}
    with read_hdf5(file) as plotfile:
        assert plotfile.names == core.info["fields"]
        assert not plotfile.single or len(plotfile.names) == 1
        assert len(plotfile.levels) == len(levels)
        for name in plotfile.names:
            worst, low, high = 0.0, np.inf, -np.inf
            for number, (level, of) in enumerate(zip(levels, plotfile.levels, strict=True)):
                corners = [(*lo, *(n - 1 for n in hi)) for lo, hi in level["boxes"]]
                assert sorted(corners) == sorted(tuple(box.ravel()) for box in of.boxes)
                for place, box in enumerate(of.boxes):
                    true = core.read_box(number, corners.index(tuple(box.ravel())), name)
                    values = plotfile.read(number, place, name).ravel("F")
                    assert values.dtype == true.dtype
                    worst = max(worst, float(np.abs(values - true).max()))
                    low, high = min(low, float(true.min())), max(high, float(true.max()))
            found[name] = (worst, high - low)
    return found


def converted(native: Path, folder: Path) -> Path:
    store = folder / "plt.ambar"
    ambar.convert(native, store)
    return store


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["<f8", ">f4"])
def test_every_cell_comes_back(tmp_path: Path, ndim: int, dtype: str) -> None:
    boxes = [[(a[:ndim], b[:ndim]) for a, b in level] for level in BOXES_3D]
    if ndim < 3:
        boxes[1][1] = ((24, 8)[:ndim], (39, 23)[:ndim])
    fields = None if ndim == 3 else {"Temp": smooth, "again": smooth}
    native = write_plotfile(tmp_path / "plt", boxes, fields, dtype, (32, 16, 16)[:ndim])
    store = converted(native, tmp_path)
    ambar.export(store, tmp_path / "exact.h5", amrex_hdf5=True)
    ambar.export(store, tmp_path / "near.h5", amrex_hdf5=True, error_bound="1e-3 of range")
    for worst, _ in differences(native, tmp_path / "exact.h5").values():
        assert worst == 0
    for worst, extent in differences(native, tmp_path / "near.h5").values():
        # So few cells in a row are as small without loss.
        assert ndim == 1 or worst > 0
        assert worst <= 1e-3 * extent * (1 + 1e-6)
    snapshot, again = ambar.open_snapshot(tmp_path / "exact.h5"), ambar.open_snapshot(store)
    info, expected = snapshot.info, again.info
    assert isinstance(info, ambar.AmrexInfo)
    assert isinstance(expected, ambar.AmrexInfo)
    assert (info.levels, info.time, info.steps) == (expected.levels, expected.time, expected.steps)


def test_the_command_line_and_bounds_by_field(tmp_path: Path) -> None:
    native = write_plotfile(tmp_path / "plt")
    store, file = converted(native, tmp_path), tmp_path / "plt.h5"
    command = ["export", str(store), str(file), "--amrex-hdf5", "--no-progress", "--error-bound"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "density=0.5"])
    assert ended.value.code == 0
    found = differences(native, file)
    assert 0 < found["density"][0] <= 0.5
    assert found["Temp"][0] == 0
    with pytest.raises(FileExistsError, match="the target already exists"):
        ambar.export(store, file, amrex_hdf5=True)
    with pytest.raises(KeyError, match="such a field does not exist"):
        ambar.export(store, tmp_path / "x.h5", amrex_hdf5=True, error_bound={"rho": 1.0})
    with pytest.raises(ValueError, match="amrex_hdf5=True"):
        ambar.export(store, tmp_path / "x", error_bound=1.0)
    with pytest.raises(ValueError, match="format does not apply"):
        ambar.export(store, tmp_path / "x.h5", amrex_hdf5=True, format="zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plt", "plt.ambar", "plt.h5"]


def test_only_plotfiles_become_plotfiles(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_array("x", np.arange(5.0))
    with pytest.raises(ambar.UnsupportedError, match="expected cells.*found the kind 'arrays'"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "x.h5", amrex_hdf5=True)
    assert not (tmp_path / "x.h5").exists()


def test_the_plugin_alone_reads_it(tmp_path: Path) -> None:
    """A box is one read of h5py's, without ambar."""
    native = write_plotfile(tmp_path / "plt")
    store, file = converted(native, tmp_path), tmp_path / "plt.h5"
    ambar.export(store, file, amrex_hdf5=True, error_bound=1e-3)
    code = """
import h5py, sys
level = h5py.File(sys.argv[1])["level_1"]
start, end = level["data:offsets=0"][:2]
print(repr(float(level["data:datatype=1"][start:start + 4096].sum())))
assert "ambar" not in sys.modules
"""
    found = subprocess.run(
        [sys.executable, "-c", code, file],
        env=os.environ | {"HDF5_PLUGIN_PATH": hdf5.PLUGIN_PATH},
        capture_output=True,
        text=True,
        check=True,
    )
    with read_hdf5(file) as plotfile:
        assert float(found.stdout) == plotfile.read(1, 0, "Temp").ravel("F").sum()


def test_no_box_lies_in_two_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [[((x, 0, 0), (x + 3, 15, 15)) for x in range(0, 32, 4)], BOXES_3D[1]]
    native = write_plotfile(tmp_path / "plt", boxes)
    store = converted(native, tmp_path)
    source: Any = ambar.open_snapshot(store)._source
    _, ranks = amrex_hdf5_export._source_layout(source.store)
    assert ranks == {0: list(range(8)), 1: [0, 1]}
    for most, chunk in [(1 << 26, 1024), (8 * 1024, 1024), (1, 1024)]:
        monkeypatch.setattr(amrex_hdf5_export, "CHUNK_BYTES", most)
        file = tmp_path / f"{most}.h5"
        ambar.export(store, file, amrex_hdf5=True, error_bound=0.1)
        with h5py.File(file) as opened:
            level = opened["level_0"]
            assert level["data:datatype=0"].chunks == (chunk,)
            starts = level["data:offsets=0"][:-1]
            assert (starts // chunk == (starts + 1023) // chunk).all()
            assert opened["level_1/data:datatype=0"].chunks == (4096,)
        assert all(worst <= 0.1 for worst, _ in differences(native, file).values())


def test_ranks_share_chunks_where_they_wrote_little() -> None:
    corners = [[[0, 0], [8, 8 * n]] for n in (1, 1, 6, 5, 1)]
    placed = amrex_hdf5_export._level_layout(np.array(corners), [1, 1, 0, 2, 2], 10_000)
    np.testing.assert_array_equal(placed.numbers, [2, 0, 1, 3, 4])
    assert placed.chunk == 384
    assert [(start, boxes) for start, boxes in placed.chunks()] == [
        (0, slice(0, 1)),
        (384, slice(1, 3)),
        (768, slice(3, 5)),
    ]


def test_particles_are_refused_or_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were left out without a word."""
    store = tmp_path / "nyx.ambar"
    ambar.convert(amrex_sample("nyx64_plt00040"), store, fields=["Temp"], fsync=False)
    target = tmp_path / "nyx.h5"
    with pytest.raises(ambar.UnsupportedError, match="found DM; leave them out with without_part"):
        ambar.export(store, target, amrex_hdf5=True)
    assert not target.exists()
    with pytest.raises(SystemExit) as done:
        main(["export", str(store), str(target), "--amrex-hdf5", "--without-particles"])
    assert not done.value.code
    capsys.readouterr()
    with read_hdf5(target) as plotfile:
        assert plotfile.names == ["Temp"]
    with pytest.raises(ValueError, match="amrex_hdf5=True"):
        ambar.export(store, tmp_path / "plt", without_particles=True)
    cells = tmp_path / "cells.ambar"
    ambar.convert(amrex_sample("nyx64_plt00040"), cells, components=["cells"], fields=["Temp"])
    ambar.export(cells, target, amrex_hdf5=True, mode="w")


def test_fields_keep_their_names_and_times_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field named as a derived column was refused; a time of NaN was none in JSON."""
    monkeypatch.setattr(plotfile_writer, "TIME", float("nan"))
    native = write_plotfile(tmp_path / "plt", fields={"level": smooth, "Temp": smooth})
    ambar.export(converted(native, tmp_path), tmp_path / "plt.h5", amrex_hdf5=True)
    with read_hdf5(tmp_path / "plt.h5") as plotfile:
        assert plotfile.names == ["level", "Temp"]
        assert np.isnan(plotfile.time)
    again = tmp_path / "again.ambar"
    ambar.convert(tmp_path / "plt.h5", again)
    for source in (tmp_path / "plt.h5", again):
        opened = ambar.open_snapshot(source)
        assert opened.amr.fields == ["level_field", "Temp"]
        assert np.isnan(opened.info.time)
        cells = opened.amr.read(["level", "level_field", "Temp"])
        assert set(cells["level"].tolist()) == {0, 1}
        np.testing.assert_array_equal(cells["level_field"], cells["Temp"])
    ambar.export(again, tmp_path / "again")
    assert (tmp_path / "again" / "Header").read_text() == (native / "Header").read_text()


def test_a_real_plotfile(tmp_path: Path) -> None:
    native = amrex_sample("advection_plt00006")
    store, file = converted(native, tmp_path), tmp_path / "plt.h5"
    ambar.export(store, file, amrex_hdf5=True, error_bound="1e-3 of range", without_particles=True)
    for worst, extent in differences(native, file).values():
        assert 0 < worst <= 1e-3 * extent * (1 + 1e-6)
    with h5py.File(file) as opened, h5py.File(amrex_sample("advection_mdset.h5")) as other:
        for node in ("/", "level_0", "level_2", "Chombo_global"):
            mine, theirs = opened[node], other[node]
            assert set(mine) == set(theirs)
            assert set(mine.attrs) == set(theirs.attrs)
            for name in theirs.attrs:
                a, b = mine.attrs[name], theirs.attrs[name]
                assert np.shape(a) == np.shape(b), name
                assert np.asarray(a).dtype == np.asarray(b).dtype, name
                if np.asarray(a).dtype.kind in "if":
                    np.testing.assert_allclose(a, b, rtol=1e-14, err_msg=name)
                else:
                    assert a == b, name

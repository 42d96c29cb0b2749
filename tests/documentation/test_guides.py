"""The guides on profiles, bounds, performance and sites: their programs and tables."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ambar
import ambar.codecs
import ambar.samples
from tests.helpers.pages import blocks, read_page, run_blocks
from tests.helpers.paths import RAMSES, ROOT, outside_data
from tests.helpers.sample_outputs import amrex_sample

pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT / "examples"))

import error_bounds


def test_the_page_on_profiles_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "output_00002").symlink_to(RAMSES / "gravpart_small" / "output_00002")
    monkeypatch.chdir(tmp_path)
    run_blocks(read_page("docs/howto/profiles"))
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _, _ in printed] == ["fast", "balanced", "small"]
    fast, balanced, small = (int(size) for _, size, _ in printed)
    assert small <= balanced < fast
    values = [ambar.open_snapshot(f"{name}.ambar").amr.sum("mass") for name, _, _ in printed]
    assert len(set(values)) == 1


def test_arrays_in_standard_codecs_are_as_many_as_the_page_says(tmp_path: Path) -> None:
    output = outside_data() / "ramses" / "bench48" / "output_00002"
    if not output.exists():
        pytest.skip("no sample bench48: set AMBAR_TEST_DATA")
    found = []
    for profile in ("fast", "balanced"):
        for source in (output, amrex_sample("nyx64_plt00040")):
            target = tmp_path / f"{profile}_{source.name}.ambar"
            ambar.convert(source, target, profile=profile, fsync=False)
            codecs = codecs_of_arrays(target)
            plain = [names for names in codecs if not re.search("ambar|pcodec", names)]
            found.append((len(plain), len(codecs)))
    page = " ".join(read_page("docs/howto/profiles").split())
    (ramses, of_ramses), (plotfile, of_plotfile), *balanced = found
    assert plotfile == of_plotfile
    assert (
        f"reads {ramses} of {of_ramses} arrays of the RAMSES output and all {plotfile} of" in page
    )
    assert f"in `fast`, but {balanced[0][0]} and {balanced[1][0]} in `balanced`" in page


def codecs_of_arrays(path: Path) -> list[str]:
    """Return the codecs of each array of a store as JSON, as a reader of ZIP files finds them."""
    with zipfile.ZipFile(path) as file:
        documents = [json.loads(file.read(name)) for name in file.namelist() if "zarr.json" in name]
    return [json.dumps(one["codecs"]) for one in documents if one["node_type"] == "array"]


def test_the_table_of_derived_quantities_is_that_of_the_script() -> None:
    page = read_page("docs/howto/error-bounds")
    table = page[page.index("| bound | ratio |") :].partition("\n\n")[0]
    assert table.splitlines() == list(error_bounds.table())
    for name in ("kinds", "decades", "parts"):
        assert f"(../images/bounds/{name}.png)" in page
        assert 10_000 < (error_bounds.PICTURES / f"{name}.png").stat().st_size < 260_000


@pytest.mark.parametrize("case", [error_bounds.KINDS[4], *error_bounds.DECADES[1:2]])
def test_pictures_are_drawn(case: error_bounds.Case, tmp_path: Path) -> None:
    target = tmp_path / "picture.png"
    error_bounds.draw(target, [case], dpi=40)
    assert target.read_bytes().startswith(b"\x89PNG")


def test_the_page_on_performance_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ambar.convert(RAMSES / "gravpart_small" / "output_00002", tmp_path / "run.ambar")
    monkeypatch.chdir(tmp_path)
    for block in blocks(read_page("docs/howto/performance"), "python"):
        exec(block, {})  # noqa: S102
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["True", "False"]


def test_the_page_on_reading_without_ambar_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zarr")
    ambar.convert(RAMSES / "gravpart_small" / "output_00002", tmp_path / "run.ambar")
    monkeypatch.chdir(tmp_path)
    page = read_page("docs/howto/without-ambar").partition("## Positions of cells")[0]
    found = run_blocks(page)
    assert found["group"].attrs["ambar"]["info"]["boxlen"] == 1
    amr = ambar.open_snapshot("run.ambar").amr
    assert found["group"]["amr/density"].shape == (len(amr),)


@pytest.mark.parametrize("source", ["amrex", "nyx64_plt00040", "advection_plt00006"])
def test_cells_of_plotfiles_are_read_without_ambar(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    plotfile = ambar.samples.copy("amrex", tmp_path) if source == "amrex" else amrex_sample(source)
    field = {"amrex": "rho", "nyx64_plt00040": "Temp", "advection_plt00006": "phi"}[source]
    ambar.convert(plotfile, "plt.ambar", components=["cells"], profile="fast", fsync=False)
    section = read_page("docs/howto/without-ambar").partition("## Positions of cells")[2]
    found = run_blocks(section.replace('node["rho"]', f'node["{field}"]'))
    cells = ambar.open_snapshot(plotfile).amr.read(["x", "y", "z", field])
    expected = np.stack([cells[name] for name in ("x", "y", "z", field)], axis=1)
    values = np.concatenate(found["values"])
    result = np.column_stack([np.concatenate(found["positions"]), values])
    assert result.shape == expected.shape
    order, expected_order = (
        np.lexsort(np.round(one[:, :3].T / span(one), 9)) for one in (result, expected)
    )
    np.testing.assert_allclose(result[order], expected[expected_order], rtol=1e-12)


def span(cells: np.ndarray) -> np.ndarray:
    """Return the sides of the box around the centres of cells."""
    sides: np.ndarray = np.ptp(cells[:, :3], axis=0)[:, None]
    return sides


def test_the_page_on_the_codec_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numcodecs")
    zarr = pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    page = read_page("docs/howto/codec")
    found = run_blocks(page)
    values, extent = found["values"], found["extent"]
    for name in ("decoded", "restored"):
        assert (abs(found[name] - values) <= 1e-3 * abs(values)).all()
    assert np.array_equal(found["flat"], found["restored"].ravel())
    of_range, decibel = (
        ambar.codecs.decode(found[name], values.dtype, values.shape) - values
        for name in ("of_range", "decibel")
    )
    assert abs(of_range).max() <= 1e-3 * extent
    assert np.sqrt(np.square(decibel).mean()) <= 1e-4 * extent
    stored = zarr.open_array("fields.zarr", path="rho", mode="r")
    assert abs(stored[:] - values).max() <= 1e-3
    assert [type(codec).__name__ for codec in stored.metadata.codecs] == ["AmbarCodec"]


@pytest.mark.parametrize("bound", ["1e-3 of range", "80 dB"])
def test_the_codec_alone_refuses_bounds_that_need_the_range(bound: str) -> None:
    with pytest.raises(ambar.InvalidError, match="value range of the whole array"):
        ambar.codecs.encode(np.arange(8.0), bound)


def test_the_table_of_inputs_of_the_codec_holds() -> None:
    numcodecs_api = pytest.importorskip("ambar.codecs.numcodecs_api")
    codec = numcodecs_api.AmbarCodec(0)
    values = np.random.default_rng(1).normal(size=(4, 5, 6))
    big = values.astype(">f8")
    decoded = ambar.codecs.decode(ambar.codecs.encode(big, 0), big.dtype, big.shape)
    assert decoded.dtype == big.dtype
    assert np.array_equal(decoded, values)
    with pytest.raises(ambar.InvalidError, match="byte order"):
        codec.encode(big)
    fortran = np.asfortranarray(values)
    stream = ambar.codecs.encode(fortran, 0)
    assert np.array_equal(ambar.codecs.decode(stream, values.dtype, values.shape), values)
    assert np.array_equal(codec.decode(codec.encode(fortran)), values.ravel("F"))
    assert np.array_equal(codec.decode(codec.encode(fortran), np.empty_like(fortran)), values)
    masked = np.ma.masked_greater(values, 0)
    stream = ambar.codecs.encode(masked, 0)
    assert np.array_equal(ambar.codecs.decode(stream, values.dtype, values.shape), values)
    stream = ambar.codecs.encode(masked.filled(np.nan), 0)
    kept = np.ma.masked_invalid(ambar.codecs.decode(stream, values.dtype, values.shape))
    assert np.array_equal(kept.mask, masked.mask)


def test_the_section_on_ragged_collections_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    page = read_page("docs/howto/collections")
    section = page[page.index("## Ragged") : page.index("## Missing strings")]
    monkeypatch.chdir(tmp_path)
    found = run_blocks(section)
    frame = found["frame"]
    assert frame.columns.tolist() == ["dataset", "obs", "oxygen"]
    assert frame.groupby("dataset").size().to_dict() == {"cast0": 120, "cast2": 45}
    assert frame.obs[120:].tolist() == list(range(45))
    attrs = found["casts"].attrs_table().to_pandas()
    assert len(frame.merge(attrs, on="dataset")) == 165


def test_the_jobs_of_the_page_on_sites_run(tmp_path: Path) -> None:
    (tmp_path / "run42").symlink_to(RAMSES / "sedov3d_small")
    (tmp_path / "results").mkdir()
    program = tmp_path / "ambar"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ambar "$@"\n')
    program.chmod(0o755)
    found = blocks(read_page("docs/howto/hpc-sites"), "text")
    jobs = [block for block in found if block.startswith("#!/bin/sh")]
    assert len(jobs) == 2
    path, python = f"{tmp_path}:{os.environ['PATH']}", f"{ROOT / 'python'}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": python, "TMPDIR": str(tmp_path)}
    for job in jobs:
        (tmp_path / "run42.ambar").unlink(missing_ok=True)
        subprocess.run(["sh", "-c", job], cwd=tmp_path, env=environment, check=True, timeout=60)
    assert ambar.open_series(tmp_path / "results" / "run42.ambar").outputs == [1, 2]

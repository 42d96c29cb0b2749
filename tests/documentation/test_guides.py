"""The guides on profiles, bounds, performance and sites: their programs and tables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ambar
from tests.helpers.pages import blocks, read_page, run_blocks
from tests.helpers.paths import RAMSES, ROOT

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
    found = run_blocks(read_page("docs/howto/without-ambar"))
    assert found["group"].attrs["ambar"]["info"]["boxlen"] == 1
    amr = ambar.open_snapshot("run.ambar").amr
    assert found["group"]["amr/density"].shape == (len(amr),)


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

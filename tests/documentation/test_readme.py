"""The README is short, and its commands and programs run as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.mpi_programs import Mpi, each_mpi, python_run
from tests.helpers.pages import blocks, read_page, run_ambar

pytest.importorskip("netCDF4")
pytest.importorskip("pyvista")
pytest.importorskip("xarray")
pytest.importorskip("matplotlib")
pytest.importorskip("polars")

README = read_page("README")


def test_the_readme_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert README.count("\n") <= 110
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks(README, "sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("ambar ")]
    assert len(commands) == 6
    for command in commands:
        run_ambar(command)
    programs = [program for program in blocks(README, "python") if "mpi" not in program]
    assert len(programs) == 3
    names: dict[str, object] = {}
    for program in programs:
        exec(program, names)  # noqa: S102 - the README's own
    assert names["one"].sizes["depth"] > 0  # type: ignore[attr-defined]


@each_mpi
def test_ranks_write_as_in_the_readme(
    mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ambar

    (program,) = (program for program in blocks(README, "python") if "mpi" in program)
    (tmp_path / "wave.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    python_run(mpi, 2, tmp_path, "wave.py")
    wave = ambar.open_store("wave.ambar")["wave"][:]
    assert wave.tolist() == [0] * 100 + [1] * 100

"""The commands and programs of the README run as written, on small data of the kinds they name."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ambar.cli import app
from tests.helpers.paths import ROOT

pytest.importorskip("netCDF4")
pytest.importorskip("pyvista")
xr = pytest.importorskip("xarray")
pytest.importorskip("dask")
pytest.importorskip("polars")

from tests.helpers import example_files  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_readme_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example_files.make_inputs(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("ambar ")]
    assert len(commands) == 8
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command)[1:])
        assert result.exit_code == 0, f"{command}\n{result.output}{result.exception}"
    programs = blocks("python")
    assert len(programs) == 2
    names: dict[str, object] = {}
    for program in programs:
        exec(program, names)  # noqa: S102 - the README's own
    assert xr.open_dataset("one.ambar", engine="ambar").sizes["depth"] == 30

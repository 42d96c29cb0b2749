"""The study of rate and distortion measures all methods, and writes what it found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar_bench.cli import app
from ambar_bench.rate.study import METHODS, TARGETS, run_study


def test_the_study_writes_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin", reason="hdf5plugin not installed")
    x = np.linspace(0, 6, 160)
    np.save(tmp_path / "waves.npy", np.sin(x) * np.cos(x[:, None]))
    options = [str(tmp_path / "waves.npy"), "--no-synthetic", "--output", str(tmp_path / "found")]
    done = CliRunner().invoke(app, ["rate", *options])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "found" / "rate.json").read_text())
    assert found["targets"] == list(TARGETS)
    [field] = found["fields"]
    assert (field["name"], field["shape"], field["dtype"]) == ("waves", [160, 160], "float64")
    for found_by_method in (field["bytes"], field["encode"], field["decode"]):
        assert found_by_method.keys() == METHODS.keys()
    text = (tmp_path / "found" / "rate.md").read_text()
    assert "| waves, float64 160x160: balanced / small |" in text
    assert "| ambar balanced: decode |" in text
    assert "1 field" in done.output


def test_a_study_without_fields_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "constant.npy", np.ones((200, 200)))
    with pytest.raises(ambar.InvalidError, match="at least 16,384 values that are not all equal"):
        run_study([tmp_path / "constant.npy"], with_synthetic=False)

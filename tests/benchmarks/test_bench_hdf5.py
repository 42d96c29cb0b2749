"""The study of the HDF5 filter measures both directions, and writes what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ambar import hdf5
from ambar_bench.cli import app
from ambar_bench.hdf5.study import Direction, run_study

pytestmark = pytest.mark.skipif(
    not hdf5.is_available(), reason="no plugin beside the package: `make build` makes it"
)


def test_overheads_are_over_the_codec() -> None:
    way = Direction(codec=2.0, filtered=2.5, plain=0.4)
    assert way.overhead == pytest.approx(0.05)
    assert way.overhead_with_hdf5 == pytest.approx(0.25)


def test_the_study_writes_its_tables(tmp_path: Path) -> None:
    options = ["--side", "32", "--chunks", "16,32", "--rounds", "2", "--output", str(tmp_path)]
    done = CliRunner().invoke(app, ["hdf5", *options])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "results.json").read_text())
    rows = found["rows"]
    assert [(row["dtype"], row["side"], row["bound"]) for row in rows] == [
        (dtype, side, bound)
        for dtype in ("float32", "float64")
        for side in (16, 32)
        for bound in (0.0, 1e-3)
    ]
    for row in rows:
        assert 0 < row["stored_bytes"] < row["raw_bytes"]
        assert min(row["write"]["codec"], row["read"]["filtered"]) > 0
    assert "| float64, 32³, 0.001 of range |" in (tmp_path / "results.md").read_text()


def test_chunks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected chunks that divide"):
        run_study(tmp_path, side=32, sides=[20])

"""The study of the viewer measures a store in the browser, and writes what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ambar
from tests.helpers.sample_outputs import output


def test_the_study_writes_its_table(tmp_path: Path) -> None:
    path = tmp_path / "run.ambar"
    ambar.convert(output("sedov"), path, fsync=False)
    options = ["--visits", "1", "--steps", "3", "--output", str(tmp_path / "results")]
    code = f"from ambar_bench.cli import main; main({['view', str(path), *options]})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # Another process, because Playwright runs once in each.
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    [row] = json.loads((tmp_path / "results" / "results.json").read_text())["rows"]
    assert 0 < row["first_picture"] < 60_000
    assert [(step["name"], step["count"]) for step in row["steps"]] == [("zoom", 3), ("pan", 3)]
    assert all(0 < step["moved"] < 5000 for step in row["steps"])
    assert (tmp_path / "results" / "run.png").stat().st_size > 10_000

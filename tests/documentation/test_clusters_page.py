"""The programs of the page on clusters run as written, with a replacement of `sbatch`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.pages import blocks, read_page
from tests.helpers.paths import ROOT

pytest.importorskip("distributed")
pytest.importorskip("xarray")

PAGE = read_page("docs/howto/clusters")
SBATCH = f"""#!/bin/sh
for number in $(echo ${{2#--array=}} | tr , ' '); do
    if [ $number = 2 ] && mkdir failed 2>/dev/null; then continue; fi
    SLURM_ARRAY_TASK_ID=$number PATH='{Path(sys.executable).parent}':$PATH sh $3 $4 || exit 1
done
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs of the page, by the names in their first lines."""
    for code in blocks(PAGE, "python"):
        if name := re.match(r"# (\w+\.py)\n", code):
            tmp_path.joinpath(name[1]).write_text(code)
    (job,) = (block for block in blocks(PAGE, "text") if block.startswith("#!"))
    tmp_path.joinpath("job.sh").write_text(job)
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(SBATCH)
    sbatch.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize(
    ("program", "rows"),
    [
        ("density", [0, 16, 32, 48]),
        ("futures", [0, 16, 32, 48]),
        ("coordinator", [0, 1, 2, 3]),
        ("dataset", None),
    ],
)
def test_programs_run_as_written(folder: Path, program: str, rows: list[int] | None) -> None:
    path = f"{folder}:{os.environ['PATH']}"
    python = f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}"
    subprocess.run(
        [sys.executable, f"{program}.py"],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": python},
        check=True,
        capture_output=True,
        timeout=120,
    )
    (store,) = folder.glob("*.ambar")
    opened = ambar.open_store(store)
    if rows is None:
        assert opened["temperature"].error_bound == 0.01
        assert 279 < opened["temperature"][:].mean() < 281
    else:
        expected = np.broadcast_to(
            np.repeat(np.array(rows, "f8"), 16)[:, None, None], (64, 256, 256)
        )
        np.testing.assert_array_equal(opened["density"][:], expected)

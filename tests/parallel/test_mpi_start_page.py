"""The page of docs/start on MPI runs as written: its programs are compiled and run on ranks."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.c_programs import installed
from tests.helpers.mpi_programs import MPIS, variables
from tests.helpers.pages import BLOCK, INSTALLATIONS, blocks, read_page

PAGE = read_page("docs/start/mpi")


def test_the_page_on_mpi_runs_as_written(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    pytest.importorskip("matplotlib")
    if not MPIS:
        pytest.skip("no mpicc and mpirun here")
    mpi = MPIS[0]
    (tmp_path / ".local").symlink_to(installed())
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "mpicc").symlink_to(str(shutil.which(mpi.command("mpicc"))))
    launcher = shlex.join(mpi.mpirun(0)).replace(" -n 0", "")
    scripts = {
        "mpirun": f"exec {launcher}",
        "python": f"exec {sys.executable}",
        "ambar": f"exec {sys.executable} -m ambar",
    }
    for command, script in scripts.items():
        (commands / command).write_text(f'#!/bin/sh\n{script} "$@"\n')
        (commands / command).chmod(0o755)
    environment = variables(mpi.for_mpi4py(tmp_path)) | {"HOME": str(tmp_path)}
    environment["PATH"] = f"{commands}{os.pathsep}{environment['PATH']}"
    lines = ["set -eu"]
    for language, code in BLOCK.findall(PAGE):
        if language == "sh":
            lines += [line for line in code.splitlines() if not line.startswith(INSTALLATIONS)]
        elif language != "text":
            (file,) = re.findall(r"\w+\.(?:c|py)\b", code.splitlines()[0])
            (tmp_path / file).write_text(code)
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    (shown,) = blocks(PAGE, "text")
    assert shown in done.stdout
    assert "step_000004/height" in done.stdout  # of `ambar info`

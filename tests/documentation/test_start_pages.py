"""The pages of docs/start run as written, from the first block to the last, with their pictures.

That on MPI is in tests/parallel, beside the other programs.

python -m tests.documentation.test_start_pages    draws docs/images/start again
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.helpers.pages import BLOCK, INSTALLATIONS, read_page, run_ambar
from tests.helpers.paths import ROOT
from tests.helpers.rendering import skip_without_rendering

PICTURES = ROOT / "docs" / "images" / "start"


def text(name: str) -> str:
    return read_page(f"docs/start/{name}")


def run_page(name: str) -> None:
    """Run the commands and programs of a page in the working directory."""
    for folder in ("tests", "examples"):
        Path(folder).symlink_to(ROOT / folder)
    names: dict[str, object] = {}
    for language, code in BLOCK.findall(text(name)):
        if language == "python":
            exec(code, names)  # noqa: S102 - the page's own
        elif language == "sh":
            for line in code.replace("\\\n", "").splitlines():
                run_command(line)


def run_command(line: str) -> None:
    if line.startswith(INSTALLATIONS):
        return
    if line.startswith("ambar "):
        run_ambar(line)
    else:
        words = shlex.split(line, comments=True)
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), f"{line}\n{done.stdout}{done.stderr}"


def pictures(name: str) -> list[str]:
    """Return the pictures of a page, which its commands or programs make."""
    return re.findall(r"\]\(\.\./images/start/(\w+\.png)\)", text(name))


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("ramses", ["matplotlib", "dask", "polars", "yt"]),
        ("amrex", ["matplotlib", "yt"]),
        ("datasets", ["netCDF4", "dask", "matplotlib"]),
        ("meshes", ["pyvista", "matplotlib"]),
    ],
)
def test_pages_run_as_written(
    name: str, needs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in needs:
        pytest.importorskip(module)
    if name == "meshes":
        skip_without_rendering()
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    assert 60 <= text(name).count("\n") <= 135
    run_page(name)
    assert pictures(name)
    for picture in pictures(name):
        assert (tmp_path / picture).exists()
        assert 10_000 < (PICTURES / picture).stat().st_size < 300_000


def main() -> None:
    """Run the pages that have pictures, and copy these."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in ("ramses", "amrex", "datasets", "meshes"):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            run_page(name)
            for picture in pictures(name):
                shutil.copy(picture, PICTURES)


if __name__ == "__main__":
    main()

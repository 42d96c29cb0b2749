"""The wheel has the package, its types and licences, and nothing of tests and benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

PACKAGE = ROOT / "python" / "ambar"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "lib_core.so"
MATURIN = Path(sys.executable).with_name("maturin")


@pytest.mark.skipif(not (BUILT.exists() and MATURIN.exists()), reason="no extension was built here")
def test_the_wheel_has_the_package_and_nothing_else(tmp_path: Path) -> None:
    options = ["--release", "--locked", "--offline", "--compatibility", "linux"]
    command: list[str | Path] = [
        MATURIN,
        "build",
        *options,
        "--interpreter",
        sys.executable,
        "--out",
        tmp_path,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    sources = {
        f"ambar/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".so" and path.parent.name != "__pycache__"
    }
    assert {"ambar/py.typed", "ambar/_core.pyi"} <= sources
    libraries = {"ambar/_core.abi3.so", "ambar/plugins/libh5z_ambar.so"}
    about = {name.partition("/")[2] for name in names if ".dist-info/" in name}
    assert {name for name in names if ".dist-info/" not in name} == sources | libraries
    assert {"METADATA", "entry_points.txt"} <= about
    assert {"licenses/LICENSE-APACHE", "licenses/LICENSE-MIT"} <= about

"""Programs that are built for the baseline processor have other instructions where they may."""

import os
import platform
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.paths import ROOT
from tests.helpers.scripts import load

BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/deps"
# Programs of unit tests have symbols, unlike the libraries.
PROGRAMS = sorted(
    (path for path in BUILT.glob("ambar_capi-*") if not path.suffix and os.access(path, os.X_OK)),
    key=lambda path: path.stat().st_mtime,
)


@pytest.fixture(scope="module")
def instructions() -> ModuleType:
    return load("instructions")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is missing")
@pytest.mark.skipif(not PROGRAMS, reason="no program of unit tests was built")
def test_other_instructions_are_in_dispatched_functions(instructions: ModuleType) -> None:
    assert instructions.problems(instructions.find(PROGRAMS[-1])) == []


def test_functions_that_are_not_dispatched_are_found(instructions: ModuleType) -> None:
    ours = "ambar_codec::predict::interpolate::span::avx2"
    assert instructions.problems({ours: {"vaddpd"}}) == []
    (problem,) = instructions.problems({ours: {"vaddpd"}, "ambar_codec::encode": {"vaddpd"}})
    assert problem == "ambar_codec::encode has vaddpd, but is not dispatched"
    (problem,) = instructions.problems({})
    assert "needs symbols" in problem
    for line, is_beyond in {
        " 1:\tvaddpd %ymm0,%ymm1,%ymm2": True,
        " 1:\tshlx %eax,%ebx,%ecx": True,
        " 1:\tmovss %xmm0,%xmm1": False,
        " 1:\tverr %ax": False,
    }.items():
        assert bool(instructions.BEYOND.search(line)) == is_beyond

"""Continuous integration fails if a test was skipped for a reason that is not expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers.paths import ROOT

TESTS = """
import pytest

def test_library():
    pytest.importorskip("no_such_library")

def test_outputs():
    pytest.skip("no outputs: set AMBAR_TEST_DATA")

def test_need():
    pytest.skip("needs x")

def test_known():
    pytest.xfail("known")

def test_that_passes():
    pass
"""
CONFTEST = """
from tests.helpers.skips import RequireAll

def pytest_configure(config):
    config.pluginmanager.register(RequireAll())
"""


def test_an_unexpected_skip_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--import-mode=importlib", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed, 1 passed, 1 skipped, 1 xfailed" in done.stdout
    for name in ("test_library", "test_need"):
        assert f"FAILED test_it.py::{name}" in done.stdout
    # Old versions of pytest leave the reason out of the summary.
    assert done.stdout.count("skipped, but required by AMBAR_REQUI") >= 2

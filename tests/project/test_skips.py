"""Continuous integration fails if a test was skipped for a reason that is not expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

TESTS = """
import pytest

def test_that_is_skipped():
    {body}
"""
CONFTEST = """
from tests.helpers.skips import RequireAll

def pytest_configure(config):
    config.pluginmanager.register(RequireAll())
"""


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("pytest.importorskip('no_such_library')", 1),
        ("pytest.skip('no outputs: set AMBAR_TEST_DATA')", 0),
        ("pytest.skip('needs x')", 1),
        ("pytest.xfail('known')", 0),
        ("pass", 0),
    ],
)
def test_an_unexpected_skip_fails_the_run(tmp_path: Path, body: str, code: int) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS.format(body=body))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--import-mode=importlib",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("required by AMBAR_REQUIRE_ALL" in done.stdout) is bool(code)

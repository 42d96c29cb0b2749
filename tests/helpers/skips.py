"""Fails a run in which a test was skipped that should have run.

Continuous integration sets AMBAR_REQUIRE_ALL: there, a missing library or program is an error. The
skips in `tests/expected_skips.toml` are allowed.
"""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

EXPECTED = Path(__file__).parent.parent / "expected_skips.toml"


class RequireAll:
    """A plugin of pytest that collects skips whose reasons are not expected."""

    def __init__(self, expected: Path = EXPECTED) -> None:
        self._expected: dict[str, list[str]] = tomllib.loads(expected.read_text(encoding="utf-8"))
        self._unexpected: list[str] = []

    def is_expected(self, test: str, reason: str) -> bool:
        """Return whether the list has this reason for tests of this module."""
        return any(
            fnmatch(test.partition("::")[0], modules) and re.search(pattern, reason)
            for modules, patterns in self._expected.items()
            for pattern in patterns
        )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Look at modules that were skipped as a whole."""
        self._look_at(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at single tests; expected failures are no skips."""
        if not hasattr(report, "wasxfail"):
            self._look_at(report)

    def _look_at(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if not report.skipped:
            return
        place = report.longrepr
        reason = str(place[2] if isinstance(place, tuple) else place).removeprefix("Skipped: ")
        if not self.is_expected(report.nodeid, reason):
            self._unexpected.append(f"{report.nodeid}: {reason}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run."""
        if self._unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was skipped."""
        if not self._unexpected:
            return
        terminalreporter.section("skipped, but required by AMBAR_REQUIRE_ALL", red=True)
        for line in self._unexpected:
            terminalreporter.write_line(line)
        terminalreporter.write_line("install what is missing, or add to tests/expected_skips.toml")

"""Makes a test fail that was skipped but should have run.

Continuous integration sets AMBAR_REQUIRE_ALL: there, a missing library or program is an error. The
skips in `tests/expected_skips.toml` are allowed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

import pytest

EXPECTED = Path(__file__).parent.parent / "expected_skips.toml"
ADVICE = "install what is missing, or add the reason to tests/expected_skips.toml"
Report = TypeVar("Report", pytest.CollectReport, pytest.TestReport)


class RequireAll:
    """A plugin of pytest that turns skips into failures, unless their reasons are expected."""

    def __init__(self, expected: Path = EXPECTED) -> None:
        self._expected: dict[str, list[str]] = tomllib.loads(expected.read_text(encoding="utf-8"))

    def is_expected(self, test: str, reason: str) -> bool:
        """Return whether the list has this reason for tests of this module."""
        return any(
            fnmatch(test.partition("::")[0], modules) and re.search(pattern, reason)
            for modules, patterns in self._expected.items()
            for pattern in patterns
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Look at modules that were skipped as a whole."""
        return self._checked((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Look at single tests; expected failures are not skips."""
        report = yield
        return report if hasattr(report, "wasxfail") else self._checked(report)

    def _checked(self, report: Report) -> Report:
        if report.skipped:
            place = report.longrepr
            reason = str(place[2] if isinstance(place, tuple) else place)
            reason = reason.removeprefix("Skipped: ")
            if not self.is_expected(report.nodeid, reason):
                report.outcome = "failed"
                report.longrepr = f"skipped, but required by AMBAR_REQUIRE_ALL: {reason}; {ADVICE}"
        return report

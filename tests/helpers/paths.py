"""The folders that tests read: the repository, its test data, and larger outputs outside of it."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""
DATA = ROOT / "tests" / "data"
RAMSES = DATA / "ramses"
RAMSES_CASES = DATA / "ramses_cases"
PROGRAMS = ROOT / "tests" / "programs"
"""Programs in C, C++, Fortran and Python that tests compile and run."""
BENCHMARKS = ROOT / "benchmarks"
EXAMPLES = ROOT / "examples"


def outside_data() -> Path:
    """Return the folder of outputs that are too large for the repository; it may not exist."""
    return Path(os.environ.get("AMBAR_TEST_DATA") or ROOT.parent / "shared" / "data")

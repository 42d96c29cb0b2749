"""A short form of every campaign, with a fixed seed: no findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.__main__ import NAMES, run_campaign
from campaigns.campaign import MissingToolError

SECONDS = {"bombs": 6, "crashes": 5, "faults": 5, "exports": 1, "forks": 2}
LONG = {"memcheck"}
"""These build the tests of all crates, and take minutes."""


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LONG])
def test_a_short_campaign_finds_nothing(name: str, tmp_path: Path) -> None:
    try:
        run = run_campaign(name, seed=1, seconds=SECONDS.get(name, 4), keep=tmp_path)
    except MissingToolError as missing:
        pytest.skip(str(missing))
    assert not run.findings, run.result()

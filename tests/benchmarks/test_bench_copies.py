"""The study of stores from stores prints a table for each source."""

from __future__ import annotations

from pathlib import Path

from ambar_bench import copies
from tests.helpers.sample_outputs import output


def test_all_operations_are_measured(tmp_path: Path) -> None:
    rows = {name: numbers for name, *numbers in copies.measure(output("sedov"), tmp_path, 1)}
    assert float(rows["verbatim"][1]) == 1.0
    assert float(rows["one field"][1]) > 2
    assert float(rows["an eighth of the box"][1]) > 2
    assert all(float(seconds) >= 0 for *_, seconds in rows.values())

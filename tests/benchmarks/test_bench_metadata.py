"""The fixed cost of small stores."""

from __future__ import annotations

from pathlib import Path

from ambar_bench import metadata


def test_small_stores_are_small(tmp_path: Path) -> None:
    metadata.field(tmp_path / "field.ambar")
    assert metadata.overhead(tmp_path / "field.ambar") < 3000
    metadata.plotfile(tmp_path / "plotfile.ambar")
    assert metadata.overhead(tmp_path / "plotfile.ambar") < 8000

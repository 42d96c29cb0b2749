"""The guides on profiles and error bounds: programs run as written, tables are those of scripts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import ambar
from tests.helpers.paths import RAMSES, ROOT

pytest.importorskip("matplotlib")
sys.path.insert(0, str(ROOT / "examples"))

import error_bounds

HOWTO = ROOT / "docs" / "howto"


def test_the_page_on_profiles_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "output_00002").symlink_to(RAMSES / "gravpart_small" / "output_00002")
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    page = (HOWTO / "profiles.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        exec(block, found)  # noqa: S102 - the page's own
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [name for name, _, _ in printed] == ["fast", "balanced", "small"]
    fast, balanced, small = (int(size) for _, size, _ in printed)
    assert small <= balanced < fast
    values = [ambar.open_snapshot(f"{name}.ambar").amr.sum("mass") for name, _, _ in printed]
    assert len(set(values)) == 1


def test_the_table_of_derived_quantities_is_that_of_the_script() -> None:
    page = (HOWTO / "error-bounds.md").read_text(encoding="utf-8")
    table = page[page.index("| bound | ratio |") :].partition("\n\n")[0]
    assert table.splitlines() == list(error_bounds.table())
    for name in ("kinds", "decades", "parts"):
        assert f"(../images/bounds/{name}.png)" in page
        assert 10_000 < (error_bounds.PICTURES / f"{name}.png").stat().st_size < 260_000


@pytest.mark.parametrize("case", [error_bounds.KINDS[4], *error_bounds.DECADES[1:2]])
def test_pictures_are_drawn(case: error_bounds.Case, tmp_path: Path) -> None:
    target = tmp_path / "picture.png"
    error_bounds.draw(target, [case], dpi=40)
    assert target.read_bytes().startswith(b"\x89PNG")

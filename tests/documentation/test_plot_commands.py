"""Pictures from the command line: the page lists its commands, which draw its pictures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

pytest.importorskip("matplotlib")
pytest.importorskip("pyvista")
sys.path.insert(0, str(ROOT / "examples"))

import plot_commands

PICTURES = {picture.name: picture for picture in plot_commands.pictures()}
RENDERED = ("nut", "channels", "flow")
"""Pictures that VTK renders, which tests of meshes do, too."""


def test_the_page_is_that_of_the_script() -> None:
    assert plot_commands.PAGE.read_text() == plot_commands.page()
    for name in PICTURES:
        picture = plot_commands.PICTURES / f"{name}.png"
        assert 10_000 < picture.stat().st_size < 250_000
    assert (ROOT / "docs" / "images" / "codes.png").stat().st_size < 250_000


@pytest.mark.parametrize("name", sorted(PICTURES.keys() - {*RENDERED}))
def test_commands_draw_pictures(name: str, tmp_path: Path) -> None:
    assert PICTURES[name].make is None
    target = plot_commands.draw(PICTURES[name], tmp_path, "--dpi", 40)
    assert target.read_bytes().startswith(b"\x89PNG")

"""The gallery: its page lists its commands, which draw its pictures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

pytest.importorskip("matplotlib")
pytest.importorskip("pyvista")
sys.path.insert(0, str(ROOT / "examples"))

import gallery

PICTURES = {picture.name: picture for picture in gallery.pictures()}
RENDERED = ("nut", "channels", "flow")
"""Pictures that VTK renders, which tests of meshes do, too."""


def test_the_page_is_that_of_the_script() -> None:
    assert gallery.PAGE.read_text() == gallery.page()
    for name in PICTURES:
        picture = gallery.PICTURES / f"{name}.png"
        assert 10_000 < picture.stat().st_size < 250_000
    assert (ROOT / "docs" / "images" / "codes.png").stat().st_size < 250_000


@pytest.mark.parametrize("name", sorted(PICTURES.keys() - {*RENDERED}))
def test_commands_draw_pictures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "MADE", tmp_path)
    picture = PICTURES[name]
    if picture.make is not None:
        picture.make()
        made = tmp_path / f"{name}.ambar"
        command = picture.command.replace(f"out/gallery/{name}.ambar", str(made))
        picture = gallery.Picture(name, picture.text, command)
    target = gallery.draw(picture, tmp_path, "--dpi", 40)
    assert target.read_bytes().startswith(b"\x89PNG")

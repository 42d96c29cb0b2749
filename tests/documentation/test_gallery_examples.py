"""The examples of the gallery run and draw figures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.helpers.paths import EXAMPLES

pytest.importorskip("matplotlib")
pytest.importorskip("xarray")

from matplotlib import pyplot as plt

from tests.mesh_files.test_mesh_files import can_render

RENDERED = ("plot_mesh", "plot_paraview", "plot_steps")
"""Scripts that VTK renders for."""
SCRIPTS = sorted((EXAMPLES / "gallery").glob("*/plot_*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_examples_draw_figures(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if script.stem in RENDERED and not can_render():
        pytest.skip("VTK cannot render here: there is no OpenGL")
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    title, underline = text.removeprefix('"""').splitlines()[:2]
    assert underline == "=" * len(title)
    monkeypatch.chdir(script.parent)  # as sphinx-gallery does
    plt.switch_backend("agg")
    try:
        runpy.run_path(str(script), run_name="__main__")
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures, "no figure"
        for figure in figures:
            figure.draw_without_rendering()
            assert figure.axes
    finally:
        plt.close("all")

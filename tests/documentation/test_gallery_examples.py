"""The examples of the gallery run and draw figures."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.paths import EXAMPLES
from tests.helpers.rendering import skip_without_rendering

pytest.importorskip("matplotlib")
pytest.importorskip("xarray")

from matplotlib import pyplot as plt

RENDERED = ("plot_mesh", "plot_paraview", "plot_steps")
"""Scripts that VTK renders for."""
SCRIPTS = sorted((EXAMPLES / "gallery").glob("*/plot_*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_examples_draw_figures(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if script.stem in RENDERED:
        skip_without_rendering()
    if script.stem == "plot_mpi" and shutil.which("mpiexec") is None:
        pytest.skip("no mpiexec here")
    for name in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(f"OMPI_{name}", "1")
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 40
    title, underline = text.removeprefix('"""').splitlines()[:2]
    assert underline == "=" * len(title)
    monkeypatch.chdir(script.parent)  # as sphinx-gallery does
    plt.switch_backend("agg")
    try:
        names = runpy.run_path(str(script), run_name="__main__")
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures, "no figure"
        for figure in figures:
            figure.draw_without_rendering()
            assert figure.axes
        if script.stem == "plot_mpi":
            assert ranks_of(names["store"]) == [0, 1, 2, 3]
    finally:
        plt.close("all")


def ranks_of(store: Path) -> list[int]:
    """Return the ranks that wrote the array, which each of them raised by a tenth of its number."""
    rows, columns = np.ogrid[:240, :240]
    raised = ambar.open_store(store)["step_000000/height"][:]
    raised -= np.sin(rows / 20) * np.cos(columns / 30)
    return np.unique(np.rint(10 * raised)).astype(int).tolist()

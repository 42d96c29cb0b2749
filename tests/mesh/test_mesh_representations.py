"""Representations of meshes, their arrays and series, as text and as HTML."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")

import pyvista as pv


def cells_of(page: str) -> list[str]:
    """Return the text of all table cells; unbalanced or unescaped HTML is an error."""
    page = page.replace("<details open>", "<details>")
    root = ElementTree.fromstring(page)  # noqa: S314 - written by ambar
    assert root.find(".//script") is None
    return ["".join(cell.itertext()) for cell in root.iter() if cell.tag in ("td", "th")]


def test_a_mesh_lists_its_arrays(tmp_path: Path) -> None:
    mesh = pv.ImageData(dimensions=(5, 4, 3))
    mesh.point_data["<b>&"] = np.arange(60.0)
    blocks = pv.MultiBlock({"a": mesh, "b": pv.Sphere()})
    ambar.write_mesh(blocks, tmp_path / "x.ambar", fsync=False)
    opened = ambar.open_mesh(tmp_path / "x.ambar")
    lines = [line.split() for line in repr(opened).splitlines()]
    assert lines[0] == ["<ambar.Mesh>", str(tmp_path / "x.ambar")]
    assert ["Blocks:", "2"] in lines
    assert lines[-2][:6] == ["point", "<b>&", "(3,", "4,", "5)", "float64"]
    assert lines[-2][-2:] == ["block", "0"]
    page = opened._repr_html_()
    assert "<b>" not in page
    assert {"<b>&", "(3, 4, 5)", "block 0", "MultiBlockDataSet"} <= set(cells_of(page))
    array = opened.arrays[0]
    title, shape, *_ = repr(array).splitlines()
    assert title == "<ambar.MeshArray> point '<b>&'"
    assert shape.split() == ["Shape:", "(3,", "4,", "5)"]


def test_only_the_first_arrays_are_listed(tmp_path: Path) -> None:
    mesh = pv.PolyData(np.zeros((3, 3)))
    for number in range(50):
        mesh[f"f{number}"] = np.arange(3.0)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    opened = ambar.open_mesh(tmp_path / "x.ambar")
    assert repr(opened).splitlines()[-1] == "  ... and 10 more"
    assert "50 arrays (the first 40)" in opened._repr_html_()


def test_a_series_has_the_times_of_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_mesh_series(path, "w-", fsync=False) as series:
        assert repr(series) == "<ambar.MeshSeries> (open for writing)\n  Steps:  0"
        for time in (0.25, 2.5):
            series.add(pv.Sphere(), time)
        assert repr(series).splitlines()[1:] == ["  Steps:  2", "  Times:  0.25 to 2.5"]
    assert repr(series).startswith("<ambar.MeshSeries> (closed)")
    series = ambar.open_mesh_series(path)
    assert repr(series).splitlines() == [
        f"<ambar.MeshSeries> {path}",
        "  Steps:      2",
        "  Times:      0.25 to 2.5",
        "  Last step:  PolyData, 842 points, 1,680 cells",
        "  Arrays:     Normals",
    ]
    assert cells_of(series._repr_html_())[-4:] == ["0", "0.25", "1", "2.5"]
    with ambar.open_mesh_series(tmp_path / "y.ambar", "w-", fsync=False) as series:
        series.add(pv.Sphere())
        assert repr(series).splitlines()[2] == "  Times:  none; steps have numbers from 0"

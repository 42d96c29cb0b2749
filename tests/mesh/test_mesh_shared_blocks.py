"""Blocks that are there several times are stored once, and are one object again when read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")

import pyvista as pv

from tests.helpers.mesh.comparison import assert_same
from tests.helpers.mesh.descriptions import plain, together
from tests.helpers.mesh.samples import partitioned


def shape(seed: int = 0) -> Any:
    mesh = pv.ImageData(dimensions=(20, 20, 20)).to_tetrahedra()
    mesh.clear_data()
    rng = np.random.default_rng(seed)
    mesh["p"] = rng.random(mesh.n_points)
    mesh["on"] = rng.random(mesh.n_points) > 0.5
    mesh.cell_data["c"] = rng.random(mesh.n_cells)
    return mesh


def blocks() -> Any:
    """Return one block in four places, one of them deeper, and one that only looks the same."""
    mesh = shape()
    inner = pv.MultiBlock({"deep": mesh, "other": shape(1)})
    outer = pv.MultiBlock(
        {"a": mesh, "b": mesh, "inner": inner, "copy": mesh.copy(), "nothing": None}
    )
    outer.append(mesh, "last")
    return outer


def test_a_block_in_two_places_is_stored_once(tmp_path: Path) -> None:
    """``MultiBlock([m, m])`` took twice the room, and two objects came back."""
    mesh = shape()
    ambar.write_mesh(pv.MultiBlock([mesh]), tmp_path / "one.ambar", fsync=False)
    ambar.write_mesh(pv.MultiBlock([mesh, mesh]), tmp_path / "two.ambar", fsync=False)
    sizes = [(tmp_path / name).stat().st_size for name in ("one.ambar", "two.ambar")]
    assert sizes[1] < sizes[0] + 200
    for read in (ambar.read_mesh, pv.read):
        found = read(tmp_path / "two.ambar")
        assert found[0] is found[1]
        assert found[0] == mesh


@pytest.mark.parametrize("reorder", [False, True])
def test_blocks_keep_their_identity(reorder: bool, tmp_path: Path) -> None:
    mesh, path = blocks(), tmp_path / "x.ambar"
    ambar.write_mesh(mesh, path, fsync=False, reorder=reorder)
    if not reorder:
        assert_same(mesh, ambar.open_mesh(path).read(wrap=False))
    region = (0, 9, 0, 9, 0, 9)
    for options in ({}, {"point_data": ["on"]}, {"region": region, "original_ids": True}):
        read = ambar.read_mesh(path, **options)
        assert read.keys() == mesh.keys()
        same = [read["a"], read["b"], read["inner"]["deep"], read["last"]]
        assert all(one is same[0] for one in same)
        assert read["copy"] is not same[0]
        assert read["inner"]["other"] is not same[0]
        assert read["nothing"] is None
        assert same[0]["on"].dtype == bool
        raw = ambar.open_mesh(path).read(wrap=False, **options)
        assert raw.GetBlock(0) is raw.GetBlock(1)
    if not reorder:
        assert ambar.read_mesh(path) == mesh
        for block in ("a", "b", ["inner", "deep"], "last"):
            assert ambar.read_mesh(path, block=block) == shape()
    opened = ambar.open_mesh(path)
    assert opened.n_cells == mesh.GetNumberOfCells()
    assert [info.block for info in opened.arrays if info.name == "c"] == [
        (0,), (1,), (2, 0), (2, 1), (3,), (5,)
    ]  # fmt: skip
    values = opened.read_array("c", block="b")
    assert sorted(values) == sorted(shape().cell_data["c"])


def test_partitions_keep_their_identity(tmp_path: Path) -> None:
    mesh = partitioned()
    mesh.SetPartition(1, mesh.GetPartition(0))
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    read = ambar.open_mesh(tmp_path / "x.ambar").read(wrap=False)
    assert_same(mesh, read)
    assert read.GetPartition(0) is read.GetPartition(1)


def test_steps_of_series_keep_shared_blocks(tmp_path: Path) -> None:
    """Steps that are described as an earlier one too, where numbers of rows are counted."""

    def ball(seed: int) -> Any:
        mesh = pv.Sphere(theta_resolution=60, phi_resolution=60)
        mesh["p"] = np.random.default_rng(seed).random(mesh.n_points)
        return mesh

    with ambar.open_mesh_series(tmp_path / "run.ambar", "w-", fsync=False) as series:
        for time in range(5):
            mesh = ball(time)
            series.add(pv.MultiBlock([mesh, mesh, ball(9)]), time)
    opened = ambar.open_mesh_series(tmp_path / "run.ambar")
    assert "like" in opened.store._ambar_attributes("step_000004")
    for time, step in enumerate(opened):
        read = step.read()
        assert read[0] is read[1]
        assert read[0] == ball(time)
        assert read[2] == ball(9)


@pytest.mark.parametrize("same", ["blocks/1", "blocks/2", "blocks/7", "blocks/3", 5, ["blocks/0"]])
def test_references_to_no_earlier_block_are_damage(same: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    cube = pv.Cube()
    mesh = pv.MultiBlock([pv.Cube(), cube, cube, pv.MultiBlock([cube])])
    ambar.write_mesh(mesh, path, fsync=False)
    about, streams = plain(ambar.open_store(path))
    assert about["blocks"][2]["block"] == {"same": "blocks/1"}
    # Itself, a later one, one that is not there, one with blocks of its own, and no path.
    about["blocks"][1]["block"] = {"same": same}
    with ambar.create(path, "w") as writer:
        writer._create_group("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError, match="not described before it"):
        ambar.read_mesh(path)

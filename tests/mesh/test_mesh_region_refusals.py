"""Boxes and indices that cannot be are refused, and no description of a part crashes."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")

import pyvista as pv

from tests.helpers.mesh.descriptions import HOSTILE, changed_at, leaves, plain, together
from tests.helpers.mesh.samples import CELLS, DATASETS, blocks, table


@pytest.mark.parametrize(
    ("region", "message"),
    [
        (ambar.Sphere((0, 0, 0), 1), "invalid part of a mesh: Sphere"),
        ((0, 1, 0, 1, 0), "expected an ambar.Box, or bounds"),
        (ambar.Box((0, 0), (1, 1)), "corners of three numbers"),
        (ambar.Box((0, 0, 2), (1, 1, 1)), "expected lo <= hi"),
        (ambar.Box((0, 0, 0), (1, 1, 1), unit="kpc"), "have no unit, found unit='kpc'"),
        (ambar.Box((0, 0, 0), (1, 1, 1), center="bc"), "corners of three|numbers as the center"),
        (ambar.Box((0, 0, 0), (1, 1, 1), center=("bc", 0, 0)), "expected numbers as the center"),
        (ambar.Box((0, 0, np.nan), (1, 1, 1)), "invalid coordinate of a region: nan"),
    ],
)
def test_invalid_boxes_are_refused(region: Any, message: str, tmp_path: Path) -> None:
    ambar.write_mesh(pv.Sphere(), tmp_path / "x.ambar", fsync=False)
    with pytest.raises(ValueError, match=message):
        ambar.read_mesh(tmp_path / "x.ambar", region=region)


def test_what_has_no_parts_is_refused(tmp_path: Path) -> None:
    for name, mesh in (("t", table()), ("e", DATASETS["explicit"]())):
        ambar.write_mesh(mesh, tmp_path / f"{name}.ambar", fsync=False)
        with pytest.raises(ambar.UnsupportedError, match="does not support region= and where="):
            ambar.read_mesh(tmp_path / f"{name}.ambar", region=ambar.Box((0,) * 3, (1,) * 3))
    ambar.write_mesh(blocks(), tmp_path / "b.ambar", fsync=False)
    with pytest.raises(KeyError):
        ambar.read_mesh(tmp_path / "b.ambar", block=9, region=ambar.Box((0,) * 3, (1,) * 3))


def test_cells_that_cannot_be_are_not_reordered(tmp_path: Path) -> None:
    mesh = DATASETS["tetrahedra"]().copy()
    mesh.GetCells().GetConnectivityArray().SetValue(5, mesh.n_points)
    with pytest.raises(ValueError, match="/cells: a cell refers to point 2184 of 2184"):
        ambar.write_mesh(mesh, tmp_path / "x.ambar", reorder=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_at("index", "rows", 0), "index of cells is not described"),
        (changed_at("index", "rows", 100), "boxes of cells are .* of 4 chunks"),
        (
            changed_at("index", "cells", "start", "at", [0, 0, 1, 9]),
            "starts of cells has dtype float32",
        ),
        (changed_at("order", "cells", {"at": "nothing"}), "array 'nothing' that does not exist"),
        (changed_at("order", []), "its description is damaged"),
    ],
)
def test_indices_that_do_not_fit(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh(DATASETS["mixed"](), path, fsync=False, reorder=True)
    about, streams = plain(ambar.open_store(path))
    change(about)
    with ambar.create(path, "a", fsync=False) as writer:
        writer._create_group("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError, match=rf"x.ambar: .*({message})"):
        ambar.read_mesh(path, region=ambar.Box((0,) * 3, (1,) * 3), original_ids=True)


@pytest.mark.parametrize("name", [*CELLS, "image", "rectilinear", "structured", "point_set"])
def test_no_description_crashes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh(DATASETS[name](), path, fsync=False, reorder=True)
    store = ambar.open_store(path)
    about, streams = plain(store)
    rng = np.random.default_rng(0)
    ways = list(leaves(about))
    box = ambar.Box((0.1, 0.1, None), (0.9, 2.5, 2.5))
    refused = 0
    for way in [ways[i] for i in rng.permutation(len(ways))[:20]]:
        for value in HOSTILE:
            changed = copy.deepcopy(about)
            changed_at(*way, value)(changed)
            changed = together(changed, streams)
            monkeypatch.setattr(store, "_ambar_attributes", lambda _, a=changed: a)
            store._cache.clear()
            try:
                part = ambar.Mesh(store).read(region=box, original_ids=True, wrap=False)
            except ambar.AmbarError:
                refused += 1
                continue
            part.GetBounds()
    assert refused > 20

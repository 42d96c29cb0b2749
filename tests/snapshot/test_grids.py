"""Grids, slices and projections as dask arrays have the values that are read into memory."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.sample_outputs import output

pytest.importorskip("dask")

BOX = ambar.Box((0.1, 0.2, 0.3), (0.7, 0.9, 0.55))
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("grid", {}),
    ("grid", {"unit": "g/cm3"}),
    ("slice", {"axis": "y", "at": 0.4}),
    ("project", {"axis": "x"}),
    ("project", {"axis": "z", "weight": "density"}),
]


@pytest.mark.parametrize(("method", "options"), METHODS)
@pytest.mark.parametrize("region", [None, BOX])
def test_chunks_have_the_values_of_the_whole(
    method: str, options: dict[str, Any], region: ambar.Box | None, tmp_path: Path
) -> None:
    plotfiles.write(tmp_path / "plt")
    for path in (output("gravpart"), tmp_path / "plt"):
        amr = ambar.open_snapshot(path).amr
        if "unit" in options and not amr.info.physical:
            continue
        read = getattr(amr, method)
        for level in amr.levels:
            expected = read("density", level=level, region=region, **options)
            chunks = 3 + max(expected.shape) // 5
            lazy = read("density", level=level, region=region, chunks=chunks, **options)
            assert max(map(len, lazy.data.chunks)) > 1
            found = pickle.loads(pickle.dumps(lazy))
            np.testing.assert_allclose(found, expected, rtol=1e-13, equal_nan=True)
            assert found.coords.identical(expected.coords)
            assert (found.dims, found.attrs) == (expected.dims, expected.attrs)


def test_chunks_of_stores_are_read_when_they_are_computed(tmp_path: Path) -> None:
    path = tmp_path / "run.ambar"
    ambar.convert(output("gravpart"), path, fsync=False)
    amr = ambar.open_snapshot(path).amr
    grid = amr.grid("density", level=6, chunks=(16, 32, 64))
    assert grid.data.numblocks == (4, 2, 1)
    assert grid.dtype == np.float64
    np.testing.assert_array_equal(grid, amr.grid("density", level=6))
    assert amr.grid("density", level=9, chunks="auto").data.chunksize == (128, 128, 128)
    with pytest.raises(KeyError, match="enthalpy"):
        amr.grid("enthalpy", chunks=16)


@pytest.mark.parametrize(("method", "options"), METHODS)
def test_boxes_continue_over_periodic_faces(method: str, options: dict[str, Any]) -> None:
    """The values are those of the domain, moved by half of its sides."""
    amr = ambar.open_snapshot(output("gravpart")).amr
    assert amr.info.periodic == (True, True, True)
    read = partial(getattr(amr, method), "density", level=4, **options)
    whole = read()
    rolled = whole.roll(dict.fromkeys(whole.dims, 8))
    for region in (
        ambar.Box((-0.4, -0.25, -0.1), (0.4, 0.125, 0.3)),
        ambar.Box((-0.5, -0.5, -0.5), (0.4999, 0.4375, 0.25)),
    ):
        found = read(region=region)
        wanted = rolled
        for axis, low, high in zip("xyz", region.lo, region.hi, strict=True):
            if axis in whole.dims:
                first, last = np.floor(low * 16 + 1e-9), np.ceil(high * 16 - 1e-9)
                wanted = wanted.isel({axis: slice(int(first) + 8, int(last) + 8)})
                centres = (np.arange(first, last) + 0.5) / 16 * amr.info.boxlen
                np.testing.assert_allclose(found[axis], centres, rtol=0, atol=1e-12)
        if method != "project":
            np.testing.assert_array_equal(found, wanted)
        lazy = read(region=region, chunks=5)
        np.testing.assert_allclose(lazy, found, rtol=1e-13)


@pytest.mark.parametrize("weight", [None, "volume", "pressure"])
@pytest.mark.parametrize("axis", ["x", "z"])
def test_lines_of_sight_continue_over_periodic_faces(axis: str, weight: str | None) -> None:
    amr = ambar.open_snapshot(output("gravpart")).amr
    low, high = (-0.25, -0.125, -0.1875), (0.1875, 0.25, 0.125)
    region = ambar.Box(low, high)
    found = amr.project("density", axis=axis, weight=weight, level=5, region=region)
    grids = [
        amr.grid(name, level=5, region=region)
        for name in ("density", *([weight] if weight == "pressure" else ()))
    ]
    if weight is None:
        expected = grids[0].sum(axis) * amr.cell_size(5)[0]
    elif weight == "volume":
        expected = grids[0].mean(axis)
    else:
        # Products of means differ from means of products in cells that the grid averages.
        product = amr.grid("density * pressure", level=5, region=region)
        expected = product.sum(axis) / grids[1].sum(axis)
    np.testing.assert_allclose(found, expected.transpose(*found.dims), rtol=1e-12)


def test_boxes_as_long_as_a_periodic_domain() -> None:
    amr = ambar.open_snapshot(output("gravpart")).amr
    whole = amr.grid("density", level=4)
    longer = ambar.Box((-0.75,) * 3, (0.75,) * 3, unit="code")
    for box in (longer, ambar.Box((None,) * 3, (None,) * 3)):
        assert amr.grid("density", level=4, region=box).identical(whole)
    found = amr.grid("density", level=4, region=ambar.Box((-0.5,) * 3, (0.5,) * 3))
    np.testing.assert_array_equal(found, whole.roll(x=8, y=8, z=8))
    np.testing.assert_allclose(found["x"], whole["x"] - 0.5, rtol=0, atol=1e-12)
    beside = ambar.Box((1.25, 0, 0), (1.5, 1, 1))
    found = amr.grid("density", level=4, region=beside)
    np.testing.assert_array_equal(found, whole[4:8])
    with pytest.raises(ValueError, match="more than a side of the periodic box"):
        amr.grid("density", level=4, region=ambar.Box((2.25, 0, 0), (2.5, 1, 1)))
    with pytest.raises(ValueError, match="expected a region with a side along z"):
        amr.grid("density", level=4, region=ambar.Box((0, 0, 0.3), (1, 1, 0.3)))

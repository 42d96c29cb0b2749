"""Grids, slices and projections as dask arrays have the values that are read into memory."""

from __future__ import annotations

import pickle
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

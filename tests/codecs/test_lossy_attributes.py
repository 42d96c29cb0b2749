"""Attributes of lossy arrays state the loss, also for readers other than ambar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.amrex_plotfiles import write_plotfile

BOUND = "lossy_compression_error_bound"
STATED: dict[float | str, dict[str, Any]] = {
    0.5: {
        "lossy_compression": "ambar",
        BOUND: "5e-1",
        "lossy_compression_maximum_absolute_error": 0.5,
    },
    "1e-3 relative": {
        "lossy_compression": "ambar",
        BOUND: "1e-3 relative",
        "lossy_compression_maximum_relative_error": 1e-3,
    },
    "1e-3 relative above 0.5": {
        "lossy_compression": "ambar",
        BOUND: "1e-3 relative above 5e-1",
    },
    "12 bits": {
        "lossy_compression": "bitround",
        BOUND: "12 bits",
        "lossy_compression_nsb": 12,
    },
    "0.25 rms": {
        "lossy_compression": "ambar",
        BOUND: "2.5e-1 rms",
        "lossy_compression_root_mean_square_error": 0.25,
    },
    "lossless": {},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        for number, bound in enumerate(STATED):
            values = np.linspace(1, 9, 5000)
            own = {"units": "K", "valid_range": [0, 10]}
            writer.create_array(f"a{number}", values, dims=["x"], attrs=own, error_bound=bound)
        writer.commit()
    return path


def test_zarr_python_and_xarray_see_them(path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    xr = pytest.importorskip("xarray")
    group = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    by_zarr = xr.open_zarr(zarr.storage.ZipStore(path, mode="r"), consolidated=False)
    by_ambar = xr.open_dataset(path, engine="ambar")
    for number, (bound, stated) in enumerate(STATED.items()):
        name = f"a{number}"
        expected = {"units": "K", "valid_range": [0, 10], **stated}
        assert dict(group[name].attrs) == expected, bound
        assert by_zarr[name].attrs == expected
        assert by_ambar[name].attrs == expected


def test_the_attributes_of_the_caller_are_returned_unchanged(path: Path) -> None:
    store = ambar.open_store(path)
    for number, stated in enumerate(STATED.values()):
        array = store[f"a{number}"]
        assert array.attrs == {"units": "K", "valid_range": [0, 10]}
        assert array.lossy_attrs == stated


def test_they_follow_what_is_written_last(path: Path, tmp_path: Path) -> None:
    """Another bound replaces them; lossless copies of lossy values keep them."""
    xr = pytest.importorskip("xarray")
    pytest.importorskip("ambar.xarray")
    dataset = xr.open_dataset(path, engine="ambar")[["a0"]].load()
    again = tmp_path / "again.ambar"
    dataset.ambar.write(again, encoding={"a0": {"error_bound": "12 bits"}})
    found = dict(xr.open_dataset(again, engine="ambar")["a0"].attrs)
    found.pop("_FillValue", None)
    assert found == {"units": "K", "valid_range": [0, 10], **STATED["12 bits"]}
    exact = tmp_path / "exact.ambar"
    dataset.ambar.write(exact)
    xr.testing.assert_identical(xr.open_dataset(exact, engine="ambar"), dataset)
    assert ambar.open_store(exact)["a0"].attrs.items() >= dataset["a0"].attrs.items()
    assert ambar.open_store(exact)["a0"].lossy_attrs == {}


def test_fields_with_arrays_of_other_names_state_the_sum_of_bounds(tmp_path: Path) -> None:
    """They stated the bound of the last copy."""
    xr = pytest.importorskip("xarray")
    first, second = tmp_path / "first.ambar", tmp_path / "second.ambar"
    source = write_plotfile(
        tmp_path / "plt", fields=dict.fromkeys(["density", "box"], lambda *places: places[0])
    )
    ambar.convert(source, first, error_bound=1e-3)
    ambar.convert(first, second, error_bound=1e-2)
    found = xr.open_dataset(second, engine="ambar", group="amr/level_0")
    assert {array.attrs[BOUND] for array in (found["density"], found["field_1"])} == {"1.1e-2"}

"""Files of NetCDF and Zarr stores that tests write, and how they are compared."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

needs_netcdf4 = pytest.mark.skipif(
    find_spec("netCDF4") is None, reason="files of NetCDF-4 need netCDF4: pip install netCDF4"
)
QUICK: dict[str, Any] = {"fsync": False, "processes": 1}


def profile(number: int, depth: int = 6) -> xr.Dataset:
    rng = np.random.default_rng(number)
    hours = np.arange(4) * np.timedelta64(1, "h")
    return xr.Dataset(
        {
            "temperature": (("depth", "time"), rng.normal(10, 4, (depth, 4)).astype("f4")),
            "count": ("time", rng.integers(0, 99, 4).astype("i2"), {"long_name": "samples"}),
            "station": ((), f"s{number}"),
        },
        {
            "depth": ("depth", np.linspace(0, 500, depth).astype("f4"), {"units": "m"}),
            "time": np.datetime64("2020-01-01", "ns") + hours,
            "lat": ((), 0.5 * number),
        },
        {"id": f"p{number}", "platform": "argo" if number % 2 else "ship"},
    )


def write(dataset: xr.Dataset, path: Path) -> Path:
    """Write a file as its suffix says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".zarr":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that others may not read consolidated metadata
            dataset.to_zarr(path, zarr_format=2 if "v2" in path.stem else 3)
    elif path.suffix == ".cdf":
        dataset.to_netcdf(path, engine="scipy")
    else:
        dataset.to_netcdf(path, engine="netcdf4")
    return path


def same(found: xr.Dataset, path: Path) -> None:
    """Assert that a dataset is what xarray reads from a file: names, values, attributes, types."""
    expected = xr.load_dataset(path)
    xr.testing.assert_identical(found.load(), expected)
    for name, variable in expected.variables.items():
        if variable.dtype.kind not in "OUST":
            assert found.variables[name].dtype == variable.dtype

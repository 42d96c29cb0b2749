"""Fixtures: the RAMSES outputs in the repository, their true values, and stores of them."""

from __future__ import annotations

import asyncio
import inspect
import os
from pathlib import Path

import numpy as np
import pytest

import ambar

# Processes that studies start import the benchmarks, too, which need not be installed.
_PATHS = [str(Path(__file__).parents[1] / "benchmarks" / "src"), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))

DATA = Path(__file__).parent / "data" / "ramses"
CASES = {"sedov": "sedov3d_small", "gravpart": "gravpart_small"}
# The truth files call gravity's fields by other names.
TRUE_NAMES = {
    "phi": "potential",
    "gx": "acceleration_x",
    "gy": "acceleration_y",
    "gz": "acceleration_z",
}


# Marks of xarray's own tests, which test_xarray_suite.py runs.
MARKS = (
    "asyncio",
    "flaky",
    "network",
    "skip_if_param",
    "skip_with_dask_array",
    "slow",
    "xfail_with_dask_array",
)


def pytest_configure(config: pytest.Config) -> None:
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: of xarray's own tests")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


def amrex_sample(name: str) -> Path:
    """Return a real plotfile, which is too large for the repository; skip the test without it."""
    places = [Path(__file__).parents[2] / "shared" / "data" / "amrex"]
    if given := os.environ.get("AMBAR_TEST_DATA"):
        places += [Path(given), Path(given) / "amrex"]
    for place in places:
        if (place / name).exists():
            return place / name
    pytest.skip(f"no sample {name} in ../shared/data/amrex or $AMBAR_TEST_DATA")


def output(case: str) -> Path:
    return DATA / CASES[case] / "output_00002"


def truth(case: str, kind: str = "leaf") -> dict[str, np.ndarray]:
    """Return the true columns of a case, by the names of the descriptors."""
    with np.load(DATA / CASES[case] / f"truth_{kind}_00002.npz") as columns:
        return {TRUE_NAMES.get(name, name): columns[name] for name in columns.files}


def by_place(columns: dict[str, np.ndarray]) -> np.ndarray:
    """Return the order of cells by level and place."""
    return np.lexsort((columns["iz"], columns["iy"], columns["ix"], columns["level"]))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of all cases, converted once."""
    folder = tmp_path_factory.mktemp("stores")
    for case in CASES:
        ambar.convert(output(case), folder / f"{case}.ambar", durability="none")
    return {case: folder / f"{case}.ambar" for case in CASES}


@pytest.fixture(params=["store", "ramses"])
def gravpart(request: pytest.FixtureRequest, stores: dict[str, Path]) -> ambar.Snapshot:
    """The case with gravity and particles, from a store and from RAMSES' files."""
    if request.param == "ramses":
        return ambar.read_ramses(output("gravpart"))
    opened = ambar.open(stores["gravpart"])
    assert isinstance(opened, ambar.Snapshot)
    return opened

"""Fixtures: stores of the RAMSES outputs in the repository."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

import ambar
from tests.helpers.paths import BENCHMARKS
from tests.helpers.sample_outputs import CASES, output
from tests.helpers.skips import RequireAll
from tests.helpers.workers_here import WorkersHere

# Processes that studies start import the benchmarks, too, which need not be installed.
_PATHS = [str(BENCHMARKS / "src"), os.environ.get("PYTHONPATH", "")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))

# Set in the processes of pytest-xdist; the command line would wrap what it prints.
os.environ.pop("COLUMNS", None)

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

# The same examples in every run; `HYPOTHESIS_PROFILE=campaign pytest -k stateful` tries other ones.
hypothesis.settings.register_profile(
    "ci", derandomize=True, deadline=None, database=None, max_examples=150, stateful_step_count=30
)
hypothesis.settings.register_profile(
    "campaign", deadline=None, database=None, max_examples=5000, stateful_step_count=50
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("AMBAR_REQUIRE_ALL"):
        config.pluginmanager.register(RequireAll())
    for mark in MARKS:
        config.addinivalue_line("markers", f"{mark}: of xarray's own tests")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Disable the collection of garbage while a test is reported.

    To show a traceback, sources are parsed. If a finalizer parses, too, Python before 3.12 raises
    SystemError ("AST constructor recursion depth mismatch"), which ends the run.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True)
def workers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let collections be converted and exported without processes, whose start takes seconds.

    Tests marked with `processes` start them.
    """
    if "processes" not in request.keywords:
        for module in ("ingest", "export"):
            monkeypatch.setattr(f"ambar.collection.files.{module}.Workers", WorkersHere)


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stores of all cases, converted once."""
    folder = tmp_path_factory.mktemp("stores")
    for case in CASES:
        ambar.convert(output(case), folder / f"{case}.ambar", fsync=False)
    return {case: folder / f"{case}.ambar" for case in CASES}


@pytest.fixture(params=["store", "ramses"])
def gravpart(request: pytest.FixtureRequest, stores: dict[str, Path]) -> ambar.Snapshot:
    """The case with gravity and particles, from a store and from RAMSES' files."""
    if request.param == "ramses":
        return ambar.open_snapshot(output("gravpart")).load()
    opened = ambar.open(stores["gravpart"])
    assert isinstance(opened, ambar.Snapshot)
    return opened

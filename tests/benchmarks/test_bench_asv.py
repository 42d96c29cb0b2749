"""The suite of airspeed velocity: every benchmark runs once, and its configuration names it."""

from __future__ import annotations

import inspect
import json
import runpy
from typing import Any

import pytest

from tests.helpers.paths import BENCHMARKS

pytest.importorskip("pyvista")

FOLDER = BENCHMARKS / "asv"
CONFIGURATION = json.loads((FOLDER / "asv.conf.json").read_text())
SUITE = runpy.run_path(str(FOLDER / CONFIGURATION["benchmark_dir"] / "speeds.py"))
CASES = [
    (case, name)
    for case in SUITE.values()
    if inspect.isclass(case)
    for name in vars(case)
    if name.startswith(("time_", "track_"))
]


def test_the_main_speeds_have_benchmarks() -> None:
    names = {f"{case.__name__}.{name}" for case, name in CASES}
    assert {
        "Ramses.time_convert",
        "Ramses.time_load_store",
        "Collection.time_read_slice",
        "Mesh.time_write",
        "Mesh.time_read",
        "BoundedArray.time_write",
        "BoundedArray.time_read",
    } <= names


@pytest.mark.parametrize(
    ("case", "name"), CASES, ids=[f"{case.__name__}.{name}" for case, name in CASES]
)
def test_each_benchmark_runs(case: type[Any], name: str) -> None:
    benchmark = case()
    benchmark.setup()
    try:
        answer = getattr(benchmark, name)()
    finally:
        benchmark.teardown()
    assert name.startswith("time_") or answer > 0
    assert not benchmark.folder.exists()


def test_the_configuration_refers_to_the_repository() -> None:
    root = (FOLDER / CONFIGURATION["repo"]).resolve()
    assert (root / "pyproject.toml").is_file()
    for folder in ("env_dir", "results_dir", "html_dir"):
        assert root / "target" in (FOLDER / CONFIGURATION[folder]).resolve().parents

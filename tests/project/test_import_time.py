"""`import ambar` is quick, loads nothing that is not used, and offers what it says."""

from __future__ import annotations

import subprocess
import sys

import ambar

HEAVY = ("numpy", "typer", "rich", "xarray", "pandas", "matplotlib", "yt", "zarr", "dask")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_takes_under_100_ms_of_cpu_time() -> None:
    code = "import time; t = time.process_time(); import ambar; print(time.process_time() - t)"
    assert min(float(python(code)) for _ in range(3)) < 0.1


def test_import_loads_nothing_heavy() -> None:
    loaded = python("import sys, ambar; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)
    opened = python("import sys, ambar; ambar.open, ambar.Snapshot; print(*sys.modules)").split()
    assert not set(HEAVY[1:]) & set(opened)


def test_every_name_it_offers_is_there() -> None:
    for name in ambar.__all__:
        assert getattr(ambar, name) is not None, name
    assert set(ambar.__all__) <= set(dir(ambar))

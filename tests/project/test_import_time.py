"""`import ambar` is quick, loads nothing that is not used, and offers what it says."""

from __future__ import annotations

import subprocess
import sys

import ambar

SLOW = ("argparse", "asyncio", "dataclasses", "email", "inspect", "json", "logging", "pathlib",
        "subprocess", "urllib", "zipfile")  # fmt: skip
"""Modules of the standard library that take milliseconds."""
HEAVY = ("numpy", "typer", "rich", "xarray", "pandas", "matplotlib", "yt", "zarr", "dask")


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_import_loads_no_other_module_of_ambar_and_no_slow_one() -> None:
    """What an import costs is what it loads; the time itself depends on the machine."""
    code = "import sys; old = {*sys.modules}; import ambar; print(*{*sys.modules} - old)"
    loaded = set(python(code).split())
    others = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {"ambar"}
    assert not loaded & set(SLOW)


def test_import_loads_nothing_heavy() -> None:
    loaded = python("import sys, ambar; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)
    opened = python("import sys, ambar; ambar.open, ambar.Snapshot; print(*sys.modules)").split()
    assert not set(HEAVY[1:]) & set(opened)


def test_every_name_it_offers_is_there() -> None:
    for name in ambar.__all__:
        assert getattr(ambar, name) is not None, name
    assert set(ambar.__all__) <= set(dir(ambar))

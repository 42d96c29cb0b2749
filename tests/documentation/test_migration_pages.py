"""The pages for users of other tools: both columns of their tables run, with equal results."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES, ROOT
from tests.helpers.sample_outputs import amrex_sample

pytest.importorskip("matplotlib").use("Agg")
pytest.importorskip("xarray")

HOWTO = ROOT / "docs" / "howto"
PART = re.compile(r"^```python\n(.*?)^```|^\| `([^`\n]+)` \| `([^`\n]+)` \|$", re.M | re.S)
"""A block of Python, or a row of a table with code alone."""
NOT_PYTHON = ("ambar ", "ambar_", "ambar::")
PAGES = {
    "osyris": ("osyris", 11),
    "hdf5-netcdf": ("netCDF4", 12),
    "zarr": ("zarr", 6),
    "pyvista-zstd": ("pyvista_zstd", 7),
    "atlas": ("atlas", 7),
    "adios2": ("adios2", 4),
}
"""The package that a page needs, and how many results it compares."""


@pytest.mark.filterwarnings("ignore")  # of the other tools
@pytest.mark.parametrize("tool", PAGES)
def test_both_columns_return_the_same(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, count = PAGES[tool]
    pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    if tool == "osyris":
        (tmp_path / "output_00002").symlink_to(RAMSES / "gravpart_small" / "output_00002")
        ambar.convert("output_00002", "run.ambar", fsync=False)
    found: dict[str, Any] = {}
    compared = 0
    for block, theirs, ours in PART.findall((HOWTO / f"from-{tool}.md").read_text("utf-8")):
        if block:
            exec(block, found)  # noqa: S102 - the page's own
        elif not ours.startswith(NOT_PYTHON):
            expected, result = run(theirs, found), run(ours, found)
            if is_numeric(expected) and is_numeric(result):
                compared += 1
                result, expected = np.asarray(result, "f8"), np.asarray(expected, "f8")
                assert result.shape == expected.shape, ours
                if tool == "osyris":  # which returns cells in another order
                    result, expected = np.sort(result, axis=None), np.sort(expected, axis=None)
                np.testing.assert_allclose(result, expected, 1e-6, err_msg=ours)
    assert compared == count
    pytest.importorskip("matplotlib.pyplot").close("all")


def run(code: str, names: dict[str, Any]) -> Any:
    """Return the value of an expression, or None after statements."""
    try:
        compiled = compile(code, "page", "eval")
    except SyntaxError:
        exec(code, names)  # noqa: S102
        return None
    return eval(compiled, names)  # noqa: S307


def is_numeric(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.ndarray, np.generic))


@pytest.mark.parametrize("name", ["SZ", "SZ3", "Zfp"])
def test_plotfiles_with_filters_are_converted(name: str, tmp_path: Path) -> None:
    h5py, filters = pytest.importorskip("h5py"), pytest.importorskip("hdf5plugin")
    source, target = amrex_sample("advection_none.h5"), tmp_path / "plt00010.h5"
    shutil.copy(source, target)
    bound = {"accuracy": 1e-3} if name == "Zfp" else {"absolute": 1e-3}
    with h5py.File(target, "a") as file:
        for level in (file[f"level_{number}"] for number in range(3)):
            data = level["data:datatype=0"]
            values, attributes = data[:], dict(data.attrs)
            del level["data:datatype=0"]
            data = level.create_dataset(
                "data:datatype=0", data=values, chunks=(4096,), **getattr(filters, name)(**bound)
            )
            data.attrs.update(attributes)
    ambar.convert(target, tmp_path / "plt.ambar", fsync=False)
    run = ambar.open_snapshot(tmp_path / "plt.ambar")
    with h5py.File(source) as file:
        assert run.info.time == pytest.approx(file.attrs["time"][0], rel=1e-6)
        assert len(run.amr.cells_per_level) == file.attrs["num_levels"][0]
    expected = ambar.open_snapshot(source).amr.read("phi")["phi"]
    error = np.abs(run.amr.read("phi")["phi"] - expected).max()
    assert 0 < error <= 1e-3

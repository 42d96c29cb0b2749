"""RAMSES outputs in the repository, their true values, and plotfiles outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES, outside_data

CASES = {"sedov": "sedov3d_small", "gravpart": "gravpart_small"}
# The truth files call gravity's fields by other names.
TRUE_NAMES = {
    "phi": "potential",
    "gx": "acceleration_x",
    "gy": "acceleration_y",
    "gz": "acceleration_z",
}


def amrex_sample(name: str) -> Path:
    """Return a real plotfile, which is too large for the repository; skip the test without it."""
    for folder in (outside_data() / "amrex", outside_data()):
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"no sample {name}: set AMBAR_TEST_DATA")


def output(case: str) -> Path:
    return RAMSES / CASES[case] / "output_00002"


def truth(case: str, kind: str = "leaf") -> dict[str, np.ndarray]:
    """Return the true columns of a case, by the names of the descriptors."""
    with np.load(RAMSES / CASES[case] / f"truth_{kind}_00002.npz") as columns:
        return {TRUE_NAMES.get(name, name): columns[name] for name in columns.files}


def by_place(columns: Mapping[str, np.ndarray] | ambar.Table) -> np.ndarray:
    """Return the order of cells by level and place."""
    return np.lexsort((columns["iz"], columns["iy"], columns["ix"], columns["level"]))

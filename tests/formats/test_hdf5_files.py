"""Errors of files of HDF5, and of other code while one is open."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar._util.hdf5_files import open_hdf5

h5py = pytest.importorskip("h5py")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file with one dataset."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.arange(3)
    return tmp_path / "a.h5"


def test_errors_of_h5py_are_damage_of_the_file(path: Path) -> None:
    error = pytest.raises(ambar.CorruptError, match=r"a\.h5: .*'b'.*; restore it")
    with error, open_hdf5(path) as file:
        file["b"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ambar.CorruptError, match=r"a\.h5: .*truncated"), open_hdf5(path):
        pass


@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError, OSError])
def test_errors_of_other_code_are_raised_unchanged(path: Path, error: type[Exception]) -> None:
    raised = error("of a defect")
    with pytest.raises(error) as found, open_hdf5(path):
        raise raised
    assert found.value is raised


def test_errors_of_the_system_name_the_file(tmp_path: Path) -> None:
    missing = tmp_path / "missing.h5"
    with pytest.raises(FileNotFoundError, match="No such file") as found, open_hdf5(missing):
        pass
    assert found.value.filename == str(missing)

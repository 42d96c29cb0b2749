"""Cells of outputs, compared with a reader in NumPy that has no code of ambar."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.paths import EXAMPLES, RAMSES


@pytest.mark.parametrize("case", ["implosion2d/output_00004", "gravpart_small/output_00002"])
def test_cells_are_those_of_a_reader_in_numpy(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The implosion has two dimensions and reflecting boundaries."""
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    from plain_ramses import read_cells

    expected = read_cells(RAMSES / case)
    ambar.convert(RAMSES / case, tmp_path / "x.ambar", fsync=False)
    for path in (RAMSES / case, tmp_path / "x.ambar"):
        cells = ambar.open_snapshot(path).amr.read()
        assert set(cells) == set(expected)
        axes = sorted(set(cells) & set("xyz"))
        order, wanted = (
            np.lexsort([np.asarray(table[axis]) for axis in axes]) for table in (cells, expected)
        )
        for name, values in expected.items():
            np.testing.assert_array_equal(cells[name][order], values[wanted], err_msg=name)

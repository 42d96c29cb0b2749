"""Plotfiles are converted in bounded memory, and the peak memory of commands is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar_bench import memory
from tests.helpers.peak_memory import conversion_memory


def test_conversion_of_a_plotfile_needs_memory_for_one_window(tmp_path: Path) -> None:
    source = memory.plotfile(tmp_path, 560).path
    target = tmp_path / "converted.ambar"
    used = conversion_memory(source, target)
    assert sum(file.stat().st_size for file in source.rglob("*")) > 520e6
    # A window of 64 MB, its encoded bytes, the buffers of two threads; a field has twice 134 MB.
    assert used < 220e6
    columns = ["density", "Temp", "level", "x"]
    found = ambar.open_snapshot(target).amr.read(columns)
    expected = ambar.open_snapshot(source).amr.read(columns)
    for name in columns:
        assert np.array_equal(found[name], expected[name])


@pytest.mark.parametrize("name", ["plotfile", "netcdf", "files"])
def test_the_peak_of_each_command_is_printed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name != "plotfile":
        pytest.importorskip("netCDF4")
    memory.measure(name, tmp_path, 17, "1")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[3] for line in lines] == ["convert", "info", "verify", "compact", "export"]
    assert all(float(line.split()[-2]) > 20 for line in lines)

"""Synthetic RAMSES outputs are read like real ones, and converted in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar_bench.ramses.synthetic import (
    GRAVITY,
    HYDRO,
    PARTICLES,
    SyntheticOutput,
    write_output,
)
from tests.helpers.peak_memory import conversion_memory


def test_synthetic_outputs_are_complete(tmp_path: Path) -> None:
    spec = SyntheticOutput(megabytes=5, domains=5, level_min=3, level_max=6)
    path = write_output(tmp_path, spec)
    size = sum(file.stat().st_size for file in path.iterdir())
    assert 4e6 < size < 7e6
    snapshot = ambar.open_snapshot(path)
    assert not set(snapshot.missing) & {"hydro", "gravity", "particles"}
    cells = snapshot.amr.read([*HYDRO, *GRAVITY, "x", "level", "dx"])
    assert np.sum(np.asarray(cells["dx"]) ** 3) == pytest.approx(1)
    assert set(np.unique(cells["level"])) <= set(range(3, 7))
    assert all(np.isfinite(cells[name]).all() for name in (*HYDRO, *GRAVITY))
    domains = {int(file.name[-5:]) for file in path.glob("hydro_0*")}
    assert domains == set(range(1, 6))
    particles = snapshot.particles.read([name for name, _ in PARTICLES])
    assert np.array_equal(np.sort(particles["identity"]), np.arange(1, len(particles["mass"]) + 1))


def test_conversion_needs_memory_for_the_tree_and_one_window(tmp_path: Path) -> None:
    spec = SyntheticOutput(megabytes=400, domains=24, level_min=6, level_max=9)
    path = write_output(tmp_path, spec)
    target = tmp_path / "converted.ambar"
    used = conversion_memory(path, target)
    snapshot, source = ambar.open_snapshot(target), ambar.open_snapshot(path)
    cells = snapshot.amr.read(["density", "acceleration_z", "domain"])
    expected = source.amr.read(["density", "acceleration_z"])
    columns = len(cells["density"]) * (8 * (len(HYDRO) + len(GRAVITY)) + 4)
    assert columns > 250e6
    # A window of 64 MB, its encoded bytes, the tree and the buffers of two threads.
    assert used < 220e6
    for name in ("density", "acceleration_z"):
        assert np.array_equal(cells[name], expected[name])

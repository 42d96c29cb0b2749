"""Following a store while another process writes it."""

import itertools
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ambar

WRITER = """
import sys, time
import numpy as np, pyvista, ambar
time.sleep(0.3)
with ambar.open_mesh_series(sys.argv[1], "w-", fsync=False) as series:
    for step in range(12):
        series.add(pyvista.Sphere(radius=1 + step), float(step))
        time.sleep(0.05)
"""


def test_steps_of_another_process_are_yielded_once(tmp_path: Path) -> None:
    pytest.importorskip("pyvista")
    path = tmp_path / "run.ambar"
    with subprocess.Popen([sys.executable, "-c", WRITER, path]) as writer:
        steps = ambar.follow(path, interval=0.02, timeout=60)
        meshes = list(itertools.islice(steps, 12))
    assert writer.returncode == 0
    radii = [mesh.read().bounds[1] for mesh in meshes]
    assert np.allclose(radii, range(1, 13), rtol=0.05)


def test_commits_of_other_stores_are_yielded(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("x", np.zeros(3))
        writer.commit()
        found = ambar.follow(path, interval=0.01, timeout=0.3)
        assert (next(found)["x"].read() == 0).all()
        writer.create_array("x", np.ones(3))
        writer.commit()
        assert (next(found)["x"].read() == 1).all()
        assert list(found) == []


def test_existing_steps_are_left_out_on_request(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("x", np.zeros(3))
    assert list(ambar.follow(path, existing=False, interval=0.01, timeout=0.1)) == []


def test_a_store_that_never_appears_ends_the_iteration(tmp_path: Path) -> None:
    start = time.monotonic()
    assert list(ambar.follow(tmp_path / "x.ambar", interval=0.01, timeout=0.1)) == []
    assert time.monotonic() - start < 5

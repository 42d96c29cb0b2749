"""Following a store while another process writes it."""

import itertools
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.range_server import RangeServer

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


def test_commits_of_a_store_that_appears_later_are_all_new(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"

    def write() -> None:
        with ambar.create(path, fsync=False) as writer:
            writer.create_array("x", np.zeros(3))

    timer = threading.Timer(0.2, write)
    timer.start()
    [found] = ambar.follow(path, existing=False, interval=0.01, timeout=2)
    timer.join()
    assert (found["x"].read() == 0).all()


def test_steps_of_a_store_that_replaces_another_are_yielded(tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    path = tmp_path / "x.ambar"
    for radius in (1, 2):
        with ambar.open_mesh_series(path, "w", fsync=False) as series:
            for step in range(3 - radius):
                series.add(pyvista.Sphere(radius=radius), float(step))
        if radius == 1:
            found = ambar.follow(path, interval=0.01, timeout=5)
            assert len([next(found), next(found)]) == 2
    assert next(found).read().bounds[1] == pytest.approx(2, rel=0.05)


def test_a_store_that_never_appears_ends_the_iteration(tmp_path: Path) -> None:
    start = time.monotonic()
    assert list(ambar.follow(tmp_path / "x.ambar", interval=0.01, timeout=0.1)) == []
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "times", [{"timeout": float("nan")}, {"timeout": -1}, {"interval": float("inf")}]
)
def test_invalid_times_are_refused(times: dict[str, float], tmp_path: Path) -> None:
    """A timeout of NaN never ended, and an infinite interval was an OverflowError."""
    with pytest.raises(ValueError, match="expected an interval from 0 to 1,000,000 seconds and a"):
        next(ambar.follow(tmp_path / "x.ambar", **times))  # type: ignore[arg-type]


def test_changes_are_noticed_before_the_interval_ends(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux reports changes of files")
    path = tmp_path / "run.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("x", np.zeros(3))
        writer.commit()
        found = ambar.follow(path, interval=30)
        next(found)
        timer = threading.Timer(0.2, _commit_ones, [writer])
        timer.start()
        start = time.monotonic()
        assert (next(found)["x"].read() == 1).all()
        timer.join()
    assert time.monotonic() - start < 15


def _commit_ones(writer: ambar.Writer) -> None:
    writer.create_array("x", np.ones(3))
    writer.commit()


def test_opened_stores_and_series_are_refreshed(tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("x", np.zeros(3))
    store = ambar.open_store(path)
    group, old = store.groups, store["x"]
    assert not store.refresh()
    with ambar.create(path, "a") as writer:
        writer.create_array("x", np.ones(3))
        writer.create_array("run/y", np.ones(3))
    assert store.refresh()
    assert (store["x"].read() == 1).all()
    assert (old.read() == 0).all()
    assert (group, store.groups) == ([""], ["", "run"])

    path = tmp_path / "y.ambar"
    with ambar.open_mesh_series(path, "w-") as series:
        series.add(pyvista.Sphere(), 0.0)
        opened = ambar.open_mesh_series(path)
        series.add(pyvista.Sphere(), 1.0)
        assert opened.times == [0.0]
        assert opened.refresh()
        assert opened.times == [0.0, 1.0]
        with pytest.raises(ValueError, match="open for writing"):
            series.refresh()


def test_commits_are_followed_over_http(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with (
        RangeServer(tmp_path) as server,
        ambar.create(path, fsync=False) as writer,
        ThreadPoolExecutor(1) as pool,
    ):
        found = ambar.follow(f"{server.url}/x.ambar", interval=0.01, timeout=60)
        for value in range(3):
            waiting = pool.submit(next, found)
            writer.create_array("x", np.full(3, value))
            writer.commit()
            assert (waiting.result()["x"].read() == value).all()

"""Earlier commits: listed, opened, named, restored, compared and kept by compaction."""

import json
import multiprocessing
import os
import pickle
import signal
import zipfile
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import ambar
from tests.helpers.command_line import run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of 40 commits; commit n has x = n, and the array yn."""
    path = tmp_path / "run.ambar"
    with ambar.create(path, fsync=False) as writer:
        for n in range(1, 41):
            writer.create_array("x", np.full(100, n))
            writer.create_array(f"group/y{n}", np.arange(n))
            writer.attrs["n"] = n
            writer.commit(f"step {n}")
    return path


def test_commits_are_listed(path: Path) -> None:
    commits = ambar.log(path)
    assert [commit.number for commit in commits] == list(range(40, 0, -1))
    assert [commit.message for commit in commits] == [f"step {n}" for n in range(40, 0, -1)]
    assert all(abs(commit.time - datetime.now(UTC)) < timedelta(minutes=5) for commit in commits)
    assert [commit.time for commit in commits] == sorted(
        (commit.time for commit in commits), reverse=True
    )
    assert sum(commit.bytes for commit in commits) <= path.stat().st_size
    assert all(commit.written >= 3 for commit in commits)


def test_every_commit_is_what_it_was(path: Path) -> None:
    for n in (1, 2, 7, 8, 23, 39, 40):
        store = ambar.open_store(path, commit=n)
        assert (store["x"].read() == n).all()
        assert store.attrs["n"] == n
        names = {f"group/y{m}" for m in range(1, n + 1)}
        assert set(store) == {"x"} | names
        for name in names:
            assert len(store[name].read()) == int(name.removeprefix("group/y"))
        assert store.verify()["chunks"] > 0
    absent: list[int | str] = [0, 41, -1, 1 << 64, "41"]
    for unknown in absent:
        with pytest.raises(KeyError, match="ambar log"):
            ambar.open_store(path, commit=unknown)


def test_other_readers_find_the_last_commit(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
    group: Any = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    assert (group["x"][:] == 40).all()
    assert len(list(group["group"].array_keys())) == 40


def test_commits_are_found_by_time(path: Path) -> None:
    commits = {commit.number: commit for commit in ambar.log(path)}
    store = ambar.open_store(path, commit=commits[18].time)
    assert store.attrs["n"] == 17
    text = f"before {commits[18].time.isoformat()}"
    assert ambar.open_store(path, commit=text).attrs["n"] == 17
    assert ambar.open_store(path, commit="before 2100-01-01").attrs["n"] == 40
    with pytest.raises(KeyError, match="no commit is older"):
        ambar.open_store(path, commit="before 2001-01-01")
    with pytest.raises(ValueError, match="expected a date"):
        ambar.open_store(path, commit="before yesterday")
    with pytest.raises(TypeError, match="found float"):
        ambar.open_store(path, commit=1.5)  # type: ignore[arg-type]


def test_tagged_commits_survive_compaction(path: Path) -> None:
    ambar.tag(path, "paper", 5)
    ambar.tag(path, "referee", "before 2100-01-01")
    before = path.stat().st_size
    assert ambar.log(path)[0].message == "tag referee"
    ambar.compact(path)
    assert path.stat().st_size < 0.6 * before
    assert [commit.number for commit in ambar.log(path)] == [43, 41, 5]
    assert [commit.tags for commit in ambar.log(path)] == [(), ("referee",), ("paper",)]
    store = ambar.open_store(path, commit="paper")
    assert (store["x"].read() == 5).all()
    assert len(store) == 6
    assert (ambar.open_store(path)["x"].read() == 40).all()
    store.verify()
    with pytest.raises(KeyError, match="no commit has the tag 'draft'; tags: paper, referee"):
        ambar.open_store(path, commit="draft")
    for name in ("", "7", "two words", "x" * 256):
        with pytest.raises(ValueError, match="invalid tag"):
            ambar.tag(path, name)
    with ambar.create(path, "a") as writer:
        writer.create_array("z", np.zeros(3))
    assert ambar.open_store(path, commit="paper").attrs["n"] == 5


def test_an_earlier_commit_is_restored(path: Path) -> None:
    before = path.stat().st_size
    ambar.restore(path, 7)
    store = ambar.open_store(path)
    assert (store["x"].read() == 7).all()
    assert len(store) == 8
    assert ambar.log(path)[0].message == "restored commit 7"
    assert path.stat().st_size < before + 5_000
    store.verify()
    with ambar.create(path, "a") as writer:
        writer.create_array("z", np.zeros(3))
    assert len(ambar.open_store(path)) == 9
    assert len(ambar.open_store(path, commit=40)) == 41
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None


def test_a_thousand_commits_remain_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    random = np.random.default_rng(7)
    arrays: dict[str, np.ndarray] = {}
    written = []
    with ambar.create(path, fsync=False) as writer:
        for number in range(1000):
            name = f"g{random.integers(5)}/a{random.integers(8)}"
            if name in arrays and random.random() < 0.2:
                writer.remove(name)
                del arrays[name]
            else:
                arrays[name] = random.random(random.integers(1, 50))
                writer.create_array(name, arrays[name])
            writer.create_array("number", np.array([number]))
            writer.commit()
            written.append(dict(arrays))
    store = ambar.open_store(path)
    for number in [*range(0, 1000, 37), 999]:
        old = store._at(number + 1)
        assert old["number"].read().tolist() == [number]
        assert set(old) == {"number", *written[number]}
        for name, values in written[number].items():
            np.testing.assert_array_equal(old[name].read(), values)


def test_differences_are_listed(path: Path) -> None:
    old, new = ambar.open_store(path, commit=7), ambar.open_store(path, commit=9)
    found = ambar.diff(old, new)
    assert found == ambar.Difference(
        added=("group/y8", "group/y9"), removed=(), values=("x",), metadata=("",)
    )
    assert ambar.diff(new, old).removed == ("group/y8", "group/y9")
    assert ambar.diff(path, path) == ambar.Difference((), (), (), ())


def test_a_directory_has_its_last_commit_only(tmp_path: Path) -> None:
    path = tmp_path / "run.ambar"
    with ambar.create(path, directory=True) as writer:
        writer.create_array("x", np.zeros(3))
    for refused in (
        lambda: ambar.log(path),
        lambda: ambar.open_store(path, commit=1),
        lambda: ambar.restore(path, 1),
        lambda: ambar.tag(path, "paper"),
    ):
        with pytest.raises(ambar.UnsupportedError, match="single file"):
            refused()


def test_a_pickled_store_is_opened_at_its_commit(path: Path) -> None:
    store = ambar.open_store(path)
    pickled = pickle.dumps(store)
    with ambar.create(path, "a") as writer:
        writer.create_array("x", np.zeros(3))
    assert (pickle.loads(pickled)["x"].read() == 40).all()
    ambar.compact(path)
    with pytest.raises(ValueError, match="the store was changed"):
        pickle.loads(pickled)


def test_times_of_compacted_commits_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        for month in (1, 2, 3):
            seconds = datetime(2026, month, 1, tzinfo=UTC).timestamp()
            monkeypatch.setenv("SOURCE_DATE_EPOCH", f"{seconds:.0f}")
            writer.create_array("x", np.full(3, month))
            writer.commit()
    assert (ambar.open_store(path, commit="before 2026-02-15")["x"].read() == 2).all()
    ambar.tag(path, "first", 1)
    ambar.compact(path)
    with pytest.raises(KeyError, match="2 to 4, which `ambar compact` removed"):
        ambar.open_store(path, commit="before 2026-02-15")
    assert (ambar.open_store(path, commit="first")["x"].read() == 1).all()


def test_bytes_are_reproducible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("a", "b"):
        with ambar.create(tmp_path / name) as writer:
            writer.create_array("x", np.arange(100))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert ambar.log(tmp_path / "a")[0].time == datetime.fromtimestamp(1700000000, UTC)


def test_a_chosen_commit_stays(path: Path) -> None:
    store = ambar.open_store(path, commit=40)
    copy = pickle.loads(pickle.dumps(store))
    in_memory = ambar.open_store(path.read_bytes(), commit=7)
    last = pickle.dumps(ambar.open_store(path))
    with ambar.create(path, "a") as writer:
        writer.create_array("x", np.zeros(3))
    for chosen in (store, copy, in_memory, pickle.loads(pickle.dumps(in_memory))):
        with pytest.raises(ValueError, match=r"opened at commit (40|7), .* without commit="):
            chosen.refresh()
    assert (copy["x"].read() == 40).all()
    followed = pickle.loads(last)
    assert (followed["x"].read() == 40).all()
    assert followed.refresh()
    assert (followed["x"].read() == 0).all()


def test_lazy_datasets_are_read_at_their_commit(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    path = tmp_path / "x.ambar"
    for value in (1, 2):
        with ambar.create(path, "a") as writer:
            writer.create_array("x", np.full(100, value), dims=("t",), chunks=(10,))
    dataset = xr.open_dataset(path, engine="ambar", chunks={})
    collection = tmp_path / "y.ambar"
    for value in (1, 2, 3):
        with ambar.open_collection(collection, "w-" if value == 1 else "a") as datasets:
            datasets.add(f"n{value}", {"x": np.arange(value)})
            if value > 1:
                datasets.replace("n1", {"x": np.array([value])})
    pairs = [
        (dataset.x, 2),
        (ambar.open_collection(collection, commit=1)["n1"].x, 0),
        (ambar.open_collection(collection, commit=2)["n1"].x, 2),
    ]
    with ambar.create(path, "a") as writer:
        writer.create_array("x", np.full(100, 3), dims=("t",))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for values, expected in pairs:
            assert pool.submit(_largest, values).result() == expected
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        # The threads of dask do not survive a fork.
        assert [pool.submit(_largest, values).result() for values, _ in pairs[1:]] == [0, 2]
    ambar.compact(path)
    with (
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool,
        pytest.raises(ValueError, match="it has commit 4, the dataset was opened at commit 2"),
    ):
        pool.submit(_largest, dataset.x).result()


def _largest(values: Any) -> int:
    return int(values.max())


def test_tags_are_listed(path: Path) -> None:
    assert ambar.tags(path) == {}
    ambar.tag(path, "paper", 5)
    ambar.tag(path, "draft")
    assert ambar.tags(path) == {"draft": 41, "paper": 5}
    ambar.untag(path, "draft")
    assert ambar.tags(path) == {"paper": 5}
    with pytest.raises(KeyError, match='"draft" does not exist'):
        ambar.untag(path, "draft")
    for name in ("", "5", "2026-01-01", "a b", "a\x1b[0m"):
        with pytest.raises(ValueError, match="invalid tag"):
            ambar.tag(path, name)


def test_a_store_with_a_writer_at_work_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("x", np.arange(10.0))
        writer.commit()
        writer.create_array("y", np.arange(10.0))
        writer.commit()
        # Its bytes overwrite the end of the last commit.
        writer.create_array("z", np.random.default_rng(0).normal(size=1 << 20))
        assert ambar.open_store(path).verify()["chunks"] > 0
    assert ambar.open_store(path).verify()["chunks"] > 0


def test_datasets_of_collections_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-") as collection:
        for number in range(5):
            values = np.where(np.arange(3) == number, np.nan, 1.0)
            names = np.array(["a", None], object)
            collection.add(f"n{number}", {"x": ("t", values, {"unit": "K"}), "name": names})
        collection.commit()
        collection.add("new", {"x": ("t", np.ones(3), {"unit": "K"})})
        collection.remove("n0")
        collection.replace("n1", {"x": ("t", np.zeros(3), {"unit": "K"})})
    found = ambar.diff(ambar.open_store(path, commit=1), path)
    assert found == ambar.Difference(("new",), ("n0",), ("n1",), ())
    with ambar.open_collection(path, "a") as collection:
        dataset = collection["n3"].load()
        dataset.x.attrs["unit"] = "C"
        collection.replace("n3", dataset)
    found = ambar.diff(ambar.open_store(path, commit=2), path)
    assert found == ambar.Difference((), (), (), ("n3",))
    other = tmp_path / "y.ambar"
    with ambar.open_collection(other, "w-", profile="raw") as copy:
        for name in ("n4", "new"):
            copy.add(name, ambar.open_collection(path).load(name))
    found = ambar.diff(path, other)
    assert (found.added, found.removed) == ((), ("n1", "n2", "n3"))
    assert (found.values, found.metadata) == ((), ())
    assert ambar.diff(other, other) == ambar.Difference((), (), (), ())


def test_arrays_of_meshes_are_compared_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Values of small arrays are in the description, whose change was listed as that of a group."""
    pyvista = pytest.importorskip("pyvista")
    plane = pyvista.Plane(i_resolution=80, j_resolution=80)
    plane["pressure"] = np.sin(plane.points[:, 0].astype("f8"))
    block = pyvista.MultiBlock([plane.copy(), pyvista.Sphere()])
    stores = {}
    for name, mesh, options in (
        ("exact", plane, {}),
        ("small", plane, {"profile": "small"}),
        ("bounded", plane, {"error_bound": "1e-3 of range"}),
        ("noted", plane, {"user_dict": {"note": 1}}),
        ("blocks", block, {}),
    ):
        ambar.write_mesh(mesh, tmp_path / f"{name}.ambar", **options)
        stores[name] = tmp_path / f"{name}.ambar"
    plane["pressure"][3] += 1e-3
    plane["new"] = np.zeros(len(plane["pressure"]))
    block[0].points[7] += 1
    block[1]["Normals"][0] *= 2
    plane.save(tmp_path / "changed.ambar")
    ambar.write_mesh(block, tmp_path / "moved.ambar")
    found = ambar.diff(stores["exact"], tmp_path / "changed.ambar")
    assert found == ambar.Difference(("point/new",), (), ("point/pressure",), ())
    assert ambar.diff(tmp_path / "changed.ambar", stores["exact"]).removed == ("point/new",)
    assert ambar.diff(stores["exact"], stores["small"]) == ambar.Difference((), (), (), ())
    found = ambar.diff(stores["exact"], stores["noted"])
    assert found == ambar.Difference((), (), (), ("",))
    found = ambar.diff(stores["exact"], stores["bounded"])
    assert (found.added, found.removed, found.metadata) == ((), (), ())
    assert found.values == ("point/TextureCoordinates", "point/pressure")
    found = ambar.diff(stores["blocks"], tmp_path / "moved.ambar")
    names = ("block 0/geometry/points", "block 1/point/Normals")
    assert found == ambar.Difference((), (), names, ())
    rows = json.loads(run(capsys, "ls", stores["blocks"], "--json")[1])
    assert set(names) <= {row["path"] for row in rows}


def test_arrays_of_steps_of_meshes_are_compared_by_name(tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    sphere = pyvista.Sphere()
    paths = [tmp_path / "a.ambar", tmp_path / "b.ambar"]
    for path in paths:
        with ambar.open_mesh_series(path, "w") as series:
            for step in range(3):
                sphere["p"] = np.full(sphere.n_points, step + 10.0 * (path == paths[1] and step))
                series.add(sphere, step)
    found = ambar.diff(*paths)
    assert found == ambar.Difference((), (), ("step_000001/point/p", "step_000002/point/p"), ())
    last = ambar.open_store(paths[0])
    assert "step_000002" in ambar.diff(ambar.open_store(paths[0], commit=2), last).added


def test_a_restored_row_that_is_written_again_differs(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    for value in range(3):
        with ambar.open_collection(path, "a") as collection:
            collection.add(f"n{value}", {"x": np.array([value])})
    ambar.restore(path, 2)
    with ambar.open_collection(path, "a") as collection:
        collection.add("n2", {"x": np.array([7])})
    found = ambar.diff(ambar.open_store(path, commit=3), path)
    assert found == ambar.Difference((), (), ("n2",), ())


def test_collections_and_series_are_opened_at_a_commit(tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    path = tmp_path / "x.ambar"
    for value in range(3):
        with ambar.open_collection(path, "a") as writer:
            writer.add(f"n{value}", {"x": np.array([value])})
    collection = ambar.open_collection(path, commit=2)
    assert collection.names == ["n0", "n1"]
    with pytest.raises(ValueError, match="opened at commit 2"):
        collection.refresh()
    steps = tmp_path / "y.ambar"
    with ambar.open_mesh_series(steps, "w-") as series:
        for step in range(3):
            series.add(pyvista.Sphere(), float(step))
    assert ambar.open_mesh_series(steps, commit=2).times == [0.0, 1.0]
    for call in (ambar.open_collection, ambar.open_mesh_series):
        with pytest.raises(ValueError, match="only the last commit can be changed"):
            call(path, "a", commit=2)


def test_collections_are_refreshed(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-") as writer:
        writer.add("a", {"x": np.arange(3)})
        writer.commit()
        collection = ambar.open_collection(path, threads=1)
        before = collection["a"]
        assert not collection.refresh()
        writer.replace("a", {"x": np.arange(4), "y": ("u", np.arange(2))})
        writer.add("b", {"x": np.arange(5)})
        writer.commit()
        with pytest.raises(ValueError, match="open for writing"):
            writer.refresh()
        assert collection.names == ["a"]
        assert collection.refresh()
    assert collection.names == ["a", "b"]
    assert collection.variables == ["x", "y"]
    assert collection["a"].x.values.tolist() == [0, 1, 2, 3]
    assert before.x.values.tolist() == [0, 1, 2]
    assert collection._threads == 1


def _killed(path: Path) -> None:
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("first", np.arange(10))
        writer.commit()
        writer.create_array("second", np.random.default_rng(1).random(300_000))
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_bytes_of_a_killed_writer_are_no_damage(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was damage until the next writer: an interrupted conversion seemed to break a store."""
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    size = path.stat().st_size
    code, out, _ = run(capsys, "verify", path, "--no-progress")
    assert code == 0
    assert "unfinished write: 2.1 MB after the last commit, of a killed writer" in out
    found = ambar.open_store(path).verify()
    assert 2_000_000 < found["unfinished"] < size
    assert ambar.open_store(path, commit=3).verify()["unfinished"] == 0
    with ambar.create(path, "a", fsync=False):
        assert ambar.open_store(path).verify()["unfinished"] == 0  # a writer is at work
    ambar.repair(path)
    assert ambar.open_store(path).verify()["unfinished"] == 0
    data = bytearray(path.read_bytes())
    data[-30] ^= 1  # of the trailer
    path.write_bytes(data)
    with pytest.raises(ambar.CorruptError, match="end of central directory is damaged"):
        ambar.open_store(path).verify()

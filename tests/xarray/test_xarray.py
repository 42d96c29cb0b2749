"""The xarray engine: lazy, picklable, with dask in the stored chunks."""

from __future__ import annotations

import pickle
import shutil
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.xarray
from ambar.store import cache as cached

xr = pytest.importorskip("xarray")
LIMIT = 300
"""Seconds after which a process that should have ended is a failure."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_group("", {"title": "a run"})
        writer.create_array(
            "temperature",
            np.arange(600, dtype="f4").reshape(20, 30),
            dims=("time", "x"),
            chunks=(5, 30),
            attrs={"units": "K"},
        )
        writer.create_array(
            "time", np.arange(20), dims=("time",), attrs={"units": "days since 2024-01-01"}
        )
        writer.create_array("when", np.arange(20).astype("M8[ns]"), dims=("time",))
        writer.create_array("name", np.array(["a", "bc"] * 10, dtype=object), dims=("time",))
        writer.create_array("code", np.array(["x", "yz"] * 10), dims=("time",))
        writer.create_array(
            "packed",
            np.arange(20, dtype="i2"),
            dims=("time",),
            attrs={"scale_factor": 0.5, "_FillValue": 3},
        )
        writer.create_array("child/nameless", np.zeros((2, 3)))
    return path


def test_a_dataset(path: Path) -> None:
    with xr.open_dataset(path) as dataset:  # the engine is guessed from the name
        assert dataset.attrs["title"] == "a run"
        assert dataset["temperature"].dims == ("time", "x")
        assert dataset["temperature"].attrs["units"] == "K"
        assert dataset["time"].dtype.kind == "M"
        assert str(dataset["time"].values[1])[:10] == "2024-01-02"
        np.testing.assert_array_equal(dataset["when"], np.arange(20).astype("M8[ns]"))
        assert dataset["name"].values.tolist() == ["a", "bc"] * 10
        assert dataset["code"].values.tolist() == ["x", "yz"] * 10
        assert np.isnan(dataset["packed"].values[3])
        assert float(dataset["packed"][4]) == 2.0
        expected = np.arange(600, dtype="f4").reshape(20, 30)
        np.testing.assert_array_equal(
            dataset["temperature"].isel(time=[3, 1], x=slice(None, None, -2)),
            expected[[3, 1]][:, ::-2],
        )
        assert float(dataset["temperature"][4, 5]) == expected[4, 5]


def test_decoding_can_be_turned_off(path: Path) -> None:
    dataset = xr.open_dataset(path, engine="ambar", decode_times=False, drop_variables=["name"])
    assert dataset["time"].dtype.kind == "i"
    assert "name" not in dataset
    raw = xr.open_dataset(path, engine="ambar", mask_and_scale=False)
    assert raw["packed"].dtype == np.int16


def test_values_are_read_only_when_asked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = ambar.Array.read

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        reads.append(self.path)
        return read(self, *args, **kwargs)

    monkeypatch.setattr(ambar.Array, "read", counted)
    dataset = xr.open_dataset(path, engine="ambar", decode_times=False)
    # An index is in memory; of objects xarray looks at the first, if it knows cftime.
    assert {name.strip("/") for name in reads} <= {"time", "name"}
    reads.clear()
    _ = dataset["temperature"][0].values
    assert [name.strip("/") for name in reads] == ["temperature"]


def test_groups_and_trees(path: Path) -> None:
    child = xr.open_dataset(path, engine="ambar", group="child")
    assert child["nameless"].dims == ("nameless_dim_0", "nameless_dim_1")
    tree = xr.open_datatree(path, engine="ambar")
    assert set(tree.groups) == {"/", "/child"}
    assert tree["/child/nameless"].shape == (2, 3)
    with pytest.raises(KeyError, match="child"):
        xr.open_dataset(path, engine="ambar", group="nothing")
    with pytest.raises(KeyError, match="nothing"):
        xr.open_datatree(path, engine="ambar", group="nothing")
    assert set(xr.open_groups(path, engine="ambar", chunks={})) == {"/", "/child"}
    with pytest.raises(FileNotFoundError):
        xr.open_datatree(path.with_name("no.ambar"), engine="ambar")
    below = xr.open_datatree(path, engine="ambar", group="child")
    assert list(below.groups) == ["/"]


def test_dask_takes_the_stored_shards(path: Path) -> None:
    pytest.importorskip("dask")
    with ambar.create(path, "a") as writer:
        values = np.arange(600, dtype="f4").reshape(20, 30)
        writer.create_array(
            "temperature", values, dims=("time", "x"), chunks=(1, 30), shards=(5, 30)
        )
    dataset = xr.open_dataset(path, engine="ambar", chunks={})
    assert dataset["temperature"].chunks == ((5, 5, 5, 5), (30,))
    assert float(dataset["temperature"].sum()) == sum(range(600))


def total(dataset: Any) -> float:
    return float(dataset["temperature"].sum())


def test_datasets_can_be_pickled_to_other_processes(path: Path) -> None:
    dataset = xr.open_dataset(path, engine="ambar")
    assert total(pickle.loads(pickle.dumps(dataset))) == sum(range(600))
    for method in ("spawn", "fork"):
        with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
            assert pool.submit(total, dataset).result(timeout=LIMIT) == sum(range(600))


def commit(path: Path, number: int) -> None:
    """Make every value of two variables `number`."""
    with ambar.create(path, "a") as writer:
        for name in ("a", "b"):
            writer.create_array(
                name, np.full((40, 50), float(number)), dims=("y", "x"), chunks=(10, 50)
            )


@pytest.fixture(params=[False, True], ids=["file", "folder"])
def changing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "changing.ambar"
    with ambar.create(path, directory=request.param) as writer:
        writer.create_group("", {})
    commit(path, 1)
    return path


def test_a_dataset_stays_with_its_commit(changing: Path) -> None:
    """Variables of one dataset came from different commits, whichever was the last by then."""
    dataset = xr.open_dataset(changing, engine="ambar")
    assert dataset["a"].values.max() == 1
    commit(changing, 2)
    if changing.is_dir():  # where the old files are no more
        with pytest.raises(ambar.BusyError, match="open it again"):
            dataset["b"].load()
    else:
        assert (dataset["b"].values == 1).all()
        ambar.compact(changing)
        assert (dataset["a"].values == 1).all()
    assert (xr.open_dataset(changing, engine="ambar")["b"].values == 2).all()


def test_an_earlier_commit(tmp_path: Path) -> None:
    path = tmp_path / "two.ambar"
    commit(path, 1)
    commit(path, 2)
    ambar.tag(path, "first", 1)
    dataset = xr.open_dataset(path, engine="ambar", commit="first")
    again = pickle.loads(pickle.dumps(dataset))
    for opened in (dataset, again):
        assert (opened["a"].values == 1).all()
    second = xr.open_datatree(path, engine="ambar", commit=2)
    assert (second["a"].values == 2).all()
    with pytest.raises(KeyError, match="no commit"):
        xr.open_dataset(path, engine="ambar", commit="second")


def test_arrays_elsewhere_are_of_the_same_commit_or_refused(changing: Path) -> None:
    """A pickled array read from whatever commit was the last."""
    dataset = xr.open_dataset(changing, engine="ambar")
    pickled = pickle.dumps(dataset)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(everything, pickled).result(timeout=LIMIT) == {1.0}
        commit(changing, 2)
        if not changing.is_dir():
            assert everything(pickled) == {1.0}  # here it is open still
            # The other process has it open, too.
            assert pool.submit(everything, pickled).result(timeout=LIMIT) == {1.0}
    if not changing.is_dir():
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            assert pool.submit(everything, pickled).result(timeout=LIMIT) == {1.0}
        ambar.compact(changing)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(ValueError, match="it has commit [34].* at commit 2; open it"):
            pool.submit(everything, pickled).result(timeout=LIMIT)
        again = pickle.dumps(xr.open_dataset(changing, engine="ambar"))
        assert pool.submit(everything, again).result(timeout=LIMIT) == {2.0}


def test_a_store_in_the_place_of_another_is_noticed(tmp_path: Path) -> None:
    """Of the same number of commits, so that only the contents tell them apart."""
    path = tmp_path / "x.ambar"
    for number in (1, 2):
        with ambar.create(path, "w") as writer:
            for name in ("a", "b"):
                writer.create_array(name, np.full(9, float(number)))
        if number == 1:
            dataset = xr.open_dataset(path, engine="ambar")
            pickled = pickle.dumps(dataset)
    assert everything(pickled) == {1.0}
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(ValueError, match="replaced it, of commit 1.*open it again"),
    ):
        pool.submit(everything, pickled).result(timeout=LIMIT)


def test_a_changed_store_of_zarr_is_noticed(tmp_path: Path) -> None:
    """Stores that zarr-python wrote have no commits."""
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.zip"
    pickles = []
    for number in (1.0, 2.0):
        path.unlink(missing_ok=True)
        with zarr.storage.ZipStore(path, mode="w") as store:
            group = zarr.create_group(store, zarr_format=3)
            for name in ("a", "b"):
                group.create_array(name, data=np.full(9, number), dimension_names=["x"])
        dataset = xr.open_dataset(path, engine="ambar")
        pickles.append(pickle.dumps(dataset))
        assert everything(pickles[-1]) == {number}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(ValueError, match="another program.*open it again"):
            pool.submit(everything, pickles[0]).result(timeout=LIMIT)
        assert pool.submit(everything, pickles[1]).result(timeout=LIMIT) == {2.0}


def everything(pickled: bytes) -> set[float]:
    dataset = pickle.loads(pickled)
    return {float(value) for name in ("a", "b") for value in np.unique(dataset[name].values)}


@pytest.mark.parametrize("chunks", [None, {}], ids=["plain", "dask"])
def test_no_result_mixes_commits(tmp_path: Path, chunks: dict[str, int] | None) -> None:
    """Results of compute() beside a writer had values of two commits."""
    if chunks is not None:
        pytest.importorskip("dask")
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_group("", {})
    commit(path, 1)
    done, failures = threading.Event(), []

    def write() -> None:
        number = 1
        try:
            while not done.is_set():
                number += 1
                values = np.full((40, 50), float(number))
                xr.Dataset(dict.fromkeys(("a", "b"), (("y", "x"), values))).ambar.write(
                    path, mode="r+", fsync=False
                )
        except Exception as error:  # a thread's error is lost otherwise
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    seen: set[Any] = set()
    try:
        while len(seen) < 12 and not failures:
            dataset = xr.open_dataset(path, engine="ambar", chunks=chunks)
            first = float(dataset["a"][0, 0])
            result = dataset.compute()
            assert {float(value) for v in ("a", "b") for value in np.unique(result[v])} == {first}
            seen.add(first)
    finally:
        done.set()
        thread.join()
    assert not failures
    assert len(seen) == 12


def test_many_datasets_leave_room_for_other_files(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Datasets that are open for longest open their store again, at their commit."""
    monkeypatch.setattr(cached, "_MAX_OPEN", 3)
    paths = [shutil.copy(path, path.with_name(f"{number}.ambar")) for number in range(5)]
    datasets = [xr.open_dataset(copy, engine="ambar") for copy in paths]
    assert total(datasets[1]) == sum(range(600))
    with ambar.create(paths[0], "a") as writer:
        writer.create_array("temperature", np.zeros((20, 30), "f4"), dims=("time", "x"))
    assert total(datasets[0]) == sum(range(600))
    assert total(datasets[-1]) == sum(range(600))


def test_a_snapshot_as_a_tree(stores: dict[str, Path]) -> None:
    snapshot = ambar.open_snapshot(stores["gravpart"])
    tree = xr.open_datatree(stores["gravpart"], engine="ambar")
    cells = snapshot.amr.read(["density"])
    np.testing.assert_array_equal(tree["/amr/density"], cells["density"])
    assert tree["/amr/density"].dims == ("cell",)
    loaded = snapshot.to_xarray()
    assert set(loaded.children) == {"amr", "particles"}
    assert loaded["amr"].dataset.sizes == {"cell": len(snapshot.amr)}
    assert "x" in loaded["amr"].dataset.coords
    np.testing.assert_array_equal(loaded["particles/mass"], snapshot.particles.read()["mass"])


def test_images_carry_coordinates_and_units(gravpart: ambar.Snapshot) -> None:
    image = gravpart.amr.project("density", axis="z", level=5, unit="g/cm2")
    assert image.dims == ("y", "x")
    np.testing.assert_allclose(image["x"], (np.arange(32) + 0.5) / 32)
    assert image["x"].attrs["units"] == "code_length"
    assert image.attrs["units"] == "g/cm**2"
    assert image.attrs["level"] == 5
    with pytest.raises(ValueError, match="ambar.Box"):
        gravpart.amr.grid("density", level=4, region=ambar.Sphere("bc", 0.1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="more than a side of the periodic box away"):
        gravpart.amr.grid("density", level=4, region=ambar.Box((3, 3, 3), (4, 4, 4)))


def test_kinds_whose_root_has_no_variables(tmp_path: Path, stores: dict[str, Path]) -> None:
    path = tmp_path / "x.ambar"

    def refused(path: Path) -> str:
        with pytest.raises(ValueError, match="expected a store with variables in its") as error:
            xr.open_dataset(path)
        return str(error.value)

    assert "is a snapshot" in refused(stores["gravpart"])
    assert "xarray.open_datatree(path), or one group: group='amr'" in refused(stores["gravpart"])
    with ambar.open_collection(path, "w") as collection:
        collection.add("a", {"t": ("x", np.arange(3.0))})
    assert f"{path} is a collection" in refused(path)
    assert "use ambar.open_collection(path)['name']" in refused(path)
    with ambar.create(path, "w") as writer:  # as programs write steps with MPI
        about = {"version": 1, "kind": "series", "of": "arrays", "times": [0.5]}
        writer._create_group("", {"ambar": about})
        writer.create_array("step_000000/h", np.zeros(3))
    assert "is a step series" in refused(path)
    assert "group='step_000000'" in refused(path)
    assert xr.open_dataset(path, group="step_000000")["h"].size == 3
    vtk = pytest.importorskip("pyvista")
    ambar.write_mesh(vtk.Sphere(), path, mode="w")
    assert "use ambar.read_mesh(path)" in refused(path)
    with ambar.create(path, "w") as writer:
        writer.create_group("", {"title": "empty"})
    assert xr.open_dataset(path).attrs == {"title": "empty"}

"""The xarray engine: lazy, picklable, with dask in the stored chunks."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import ambar

xr = pytest.importorskip("xarray")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.group("", {"title": "a run"})
        writer.array(
            "temperature",
            np.arange(600, dtype="f4").reshape(20, 30),
            dims=("time", "x"),
            chunks=(5, 30),
            attributes={"units": "K"},
        )
        writer.array(
            "time", np.arange(20), dims=("time",), attributes={"units": "days since 2024-01-01"}
        )
        writer.array("when", np.arange(20).astype("M8[ns]"), dims=("time",))
        writer.array("name", np.array(["a", "bc"] * 10, dtype=object), dims=("time",))
        writer.array("code", np.array(["x", "yz"] * 10), dims=("time",))
        writer.array(
            "packed",
            np.arange(20, dtype="i2"),
            dims=("time",),
            attributes={"scale_factor": 0.5, "_FillValue": 3},
        )
        writer.array("child/nameless", np.zeros((2, 3)))
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

    def counted(self, *args, **kwargs):
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
    with pytest.raises(ambar.NotFoundError, match="child"):
        xr.open_dataset(path, engine="ambar", group="nothing")
    with pytest.raises(ambar.NotFoundError, match="nothing"):
        xr.open_datatree(path, engine="ambar", group="nothing")
    assert set(xr.open_groups(path, engine="ambar", chunks={})) == {"/", "/child"}
    with pytest.raises(FileNotFoundError):
        xr.open_datatree(path.with_name("no.ambar"), engine="ambar")
    below = xr.open_datatree(path, engine="ambar", group="child")
    assert list(below.groups) == ["/"]


def test_dask_takes_the_stored_shards(path: Path) -> None:
    pytest.importorskip("dask")
    with ambar.append(path) as writer:
        values = np.arange(600, dtype="f4").reshape(20, 30)
        writer.array("temperature", values, dims=("time", "x"), chunks=(1, 30), shards=(5, 30))
    dataset = xr.open_dataset(path, engine="ambar", chunks={})
    assert dataset["temperature"].chunks == ((5, 5, 5, 5), (30,))
    assert float(dataset["temperature"].sum()) == sum(range(600))


def total(dataset) -> float:
    return float(dataset["temperature"].sum())


def test_datasets_can_be_pickled_to_other_processes(path: Path) -> None:
    dataset = xr.open_dataset(path, engine="ambar")
    assert total(pickle.loads(pickle.dumps(dataset))) == sum(range(600))
    for method in ("spawn", "fork"):
        with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
            assert pool.submit(total, dataset).result(timeout=60) == sum(range(600))


def test_a_store_that_changed_is_noticed(path: Path) -> None:
    dataset = xr.open_dataset(path, engine="ambar")
    with ambar.append(path) as writer:
        writer.array("temperature", np.zeros((2, 2)), dims=("time", "x"))
    with pytest.raises(ambar.InvalidError, match="open the store again"):
        dataset["temperature"].load()


def test_a_snapshot_as_a_tree(stores: dict[str, Path]) -> None:
    snapshot = ambar.open(stores["gravpart"])
    tree = xr.open_datatree(stores["gravpart"], engine="ambar")
    cells = snapshot.amr.cells(["density"])
    np.testing.assert_array_equal(tree["/amr/density"], cells["density"])
    assert tree["/amr/density"].dims == ("cell",)
    loaded = snapshot.to_xarray()
    assert set(loaded.children) == {"amr", "particles"}
    assert loaded["amr"].dataset.sizes == {"cell": len(snapshot.amr)}
    assert "x" in loaded["amr"].dataset.coords
    np.testing.assert_array_equal(loaded["particles/mass"], snapshot.particles.read()["mass"])


def test_images_carry_coordinates_and_units(gravpart: ambar.Snapshot) -> None:
    image = gravpart.amr.project("density", axis="z", level=5, unit="g/cm2")
    assert image.dims == ("x", "y")
    np.testing.assert_allclose(image["x"], (np.arange(32) + 0.5) / 32)
    assert image["x"].attrs["units"] == "code_length"
    assert image.attrs["units"] == "g/cm2"
    assert image.attrs["level"] == 5
    with pytest.raises(ambar.InvalidError, match="ambar.Box"):
        gravpart.amr.grid("density", 4, ambar.Sphere("bc", 0.1))
    with pytest.raises(ambar.InvalidError, match="no part in common"):
        gravpart.amr.grid("density", 4, ambar.Box((2, 2, 2), (3, 3, 3)))

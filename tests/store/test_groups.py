"""Groups of stores, attributes, and pickling of stores, groups and arrays."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_group("/", {"title": "a run"})
        writer.create_group("run", {"code": "solver"})
        writer.create_array("run/gas/density", np.arange(6.0), attrs={"units": ["g", {"cm": -3}]})
        writer.create_array("run/time", np.float64(0.5))
        writer.create_array("runs", np.zeros(3))
        writer.create_group("run/empty")
    return path


def test_a_group_maps_relative_paths_to_arrays_and_groups(path: Path) -> None:
    store = ambar.open_store(path)
    assert isinstance(store, ambar.Group)
    assert list(store) == ["run/gas/density", "run/time", "runs"]
    assert store.groups == ["", "run", "run/gas", "run/empty"]
    run = store["run"]
    assert type(run) is ambar.Group
    assert run.path == "run"
    assert list(run) == ["gas/density", "time"]
    assert len(run) == 2
    assert run.groups == ["", "gas", "empty"]
    assert list(run["gas"]) == ["density"]
    assert list(run["empty"]) == []
    assert run["empty"].groups == [""]
    density = run["gas/density"]
    assert density.path == "run/gas/density"
    assert density[:].tolist() == run["/gas/"]["density"][:].tolist() == [0, 1, 2, 3, 4, 5]
    assert [name in run for name in ("gas", "gas/density", "runs", "x", 3)] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert run.get("x") is None
    assert run.read_together(["time"])["time"] == 0.5
    assert {name: array.shape for name, array in run.items()} == {"gas/density": (6,), "time": ()}
    for missing in ("x", "gas/x", "time/x"):
        with pytest.raises(KeyError):
            run[missing]
    with pytest.raises(KeyError):
        store["x"]


def test_attributes_are_a_mapping_for_reading(path: Path) -> None:
    store = ambar.open_store(path)
    assert store.attrs == store[""].attrs == {"title": "a run", "ambar": {"version": 1}}
    assert dict(store["run"].attrs) == {"code": "solver"}
    attrs = store["run/gas/density"].attrs
    assert attrs == {"units": ["g", {"cm": -3}]}
    assert repr(attrs) == "{'units': ['g', {'cm': -3}]}"
    assert store["runs"].attrs == {}
    with pytest.raises(TypeError):
        attrs["units"] = "m"
    with pytest.raises(ambar.NotFoundError, match="attribute 'x' does not exist"):
        attrs["x"]


def test_stores_groups_and_arrays_pickle_as_their_commit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    store = ambar.open_store(path.name)
    pickled = [pickle.dumps(item) for item in (store, store["run"], store["run/gas/density"])]
    monkeypatch.chdir("/")
    same, group, array = (pickle.loads(data) for data in pickled)
    assert type(same) is ambar.Store
    assert list(same) == list(store)
    assert group["time"][()] == 0.5
    assert array.attrs == store["run/gas/density"].attrs
    assert array[-1] == 5
    assert pickle.loads(pickle.dumps(array.attrs)) == array.attrs
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("more", np.zeros(1))
    assert "more" not in pickle.loads(pickled[0])
    ambar.compact(path)
    for data in pickled:
        with pytest.raises(ValueError, match="open it again"):
            pickle.loads(data)
    memory = ambar.open_store(path.read_bytes())
    again: Any = pickle.loads(pickle.dumps(memory["run"]))
    assert list(again) == ["gas/density", "time"]

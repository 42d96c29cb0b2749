"""Stores whose documents are too long for the root's document to repeat them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ambar

TEXT = "x" * 20_000
"""An attribute of each group; 300 of them exceed 4 MiB."""


def write(path: Path, count: int) -> None:
    with ambar.create(path, fsync=False) as writer:
        for number in range(count):
            writer.create_group(f"step_{number:03}", {"number": number, "text": TEXT})
            writer.create_array(f"step_{number:03}/x", np.full(3, float(number)))
        writer.create_array("step_000-more/y", np.ones(2))


def root_of(path: Path) -> dict[str, object]:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        assert names == sorted(names)
        found: dict[str, object] = json.loads(archive.read("zarr.json"))
    return found


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.ambar"
    write(path, 300)
    return path


def test_documents_are_read_on_demand(many: Path) -> None:
    assert "consolidated_metadata" not in root_of(many)
    store = ambar.open_store(many)
    steps = [f"step_{number:03}" for number in range(300)]
    assert store._subgroups == [*steps[:1], "step_000-more", *steps[1:]]
    assert store["step_123"].attrs["number"] == 123
    assert store["step_123/x"].read().tolist() == [123.0] * 3
    assert store["step_000"]._subgroups == []
    assert list(store["step_007"]) == ["x"]
    assert set(store.groups) == {"", "step_000-more", *steps}
    assert len(store) == 301
    assert "step_300" not in store
    with pytest.raises(KeyError, match="step_30"):
        store["step_30"]
    assert store.verify()["entries"] == 3 * 301 + 1


def test_other_readers_find_all_nodes(many: Path) -> None:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(many, mode="r") as zipped:
        root = zarr.open_group(zipped, mode="r")
        assert len(list(root.group_keys())) == 301
        assert root["step_299/x"][:].tolist() == [299.0] * 3
        assert root["step_299"].attrs["number"] == 299


def test_such_a_store_grows_and_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    write(path, 300)
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("step_300/x", np.full(3, 300.0))
        writer.create_group("step_001", {"number": -1})
    store = ambar.open_store(path)
    assert "consolidated_metadata" not in root_of(path)
    assert store["step_300/x"].read().tolist() == [300.0] * 3
    assert store["step_001"].attrs == {"number": -1}
    with ambar.create(path, "a", fsync=False) as writer:
        for number in range(200):
            writer.remove(f"step_{number:03}")
    assert "consolidated_metadata" in root_of(path)
    assert store["step_000/x"].read().tolist() == [0.0] * 3
    left = ambar.open_store(path)
    assert left._subgroups[:2] == ["step_000-more", "step_200"]
    assert ambar.open_store(path, commit=2)["step_001"].attrs == {"number": -1}

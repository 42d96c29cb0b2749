"""Collections of many datasets: opening, reading one and appending one touch few bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.collection.storage import catalogue, name_index
from ambar.collection.write import family_writer
from tests.helpers.range_server import RangeServer

DATASETS = 30_000


def dataset(number: int) -> dict[str, Any]:
    return {"v": ("x", np.arange(8.0) * number)}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "x.ambar"
    with ambar.open_collection(path, "w", fsync=False) as collection:
        collection.add_many((f"d{number}", dataset(number)) for number in range(DATASETS))
    return path


def written_bytes() -> int:
    """Return the bytes that this process has passed to the system."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"])


def test_opening_and_reading_one_take_few_requests(large: Path) -> None:
    with RangeServer(large.parent) as server:
        collection = ambar.open_collection(f"{server.url}/x.ambar")
        assert len(collection) == DATASETS
        assert len(server.take()) <= 3
        assert collection.load("d17017").v.values[1] == 17017
        assert len(server.take()) <= 10
        assert collection.load("d17018").v.values[1] == 17018
        assert len(server.take()) <= 2
        assert "d30000" not in collection


def test_appends_of_one_dataset_write_few_bytes(large: Path) -> None:
    before = DATASETS
    numbers = range(before, before + 40)
    sizes = []
    with ambar.open_collection(large, "a", fsync=False) as collection:
        for number in numbers:
            collection.add(f"d{number}", dataset(number))
            start = written_bytes()
            collection.commit()
            sizes.append(written_bytes() - start)
    assert max(sizes) < 100_000
    found = ambar.open_collection(large)
    assert len(found) == before + len(numbers)
    assert found.names[-1] == f"d{numbers[-1]}"
    for number in (0, before - 1, *numbers):
        assert found.load(f"d{number}").v.values[1] == number
        assert found[f"d{number}"].v[1] == number
    found.verify()


@pytest.fixture
def short_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family_writer, "MAX_BYTES", 2000)
    monkeypatch.setattr(catalogue, "MAX_TAIL", 8)
    monkeypatch.setattr(name_index, "CHUNK", 4)
    monkeypatch.setattr(name_index, "SHARD", 16)


def grown(path: Path, datasets: dict[str, Any], first: int, **options: Any) -> ambar.Collection:
    """Write a collection: `first` datasets, and one more with each commit."""
    names = list(datasets)
    with ambar.open_collection(path, "w-", fsync=False, **options) as collection:
        collection.add_many({name: datasets[name] for name in names[:first]})
    for name in names[first:]:
        with ambar.open_collection(path, "a", fsync=False) as collection:
            collection.add(name, datasets[name])
    found = ambar.open_collection(path)
    found.verify()
    return found


def mixed(number: int) -> xr.Dataset:
    length = number % 5
    variables = {
        "v": ("z", np.arange(length) * 1.5),
        "s": ("z", np.array([f"text {n}" if n else None for n in range(length)], object)),
        "b": ((), np.array(b"\0" * number, object)),
        "w": (("x",), np.full(50, number, "f4"), {"units": "K"}),
    }
    return xr.Dataset(variables, attrs={"id": number, "project": "deep"})


@pytest.mark.usefixtures("short_tails")
def test_tails_are_read_as_the_rows_before_them(tmp_path: Path) -> None:
    datasets = {f"d{number}": mixed(number) for number in range(60)}
    found = grown(tmp_path / "x.ambar", datasets, 30, ragged=["z"])
    assert "tail/f0/w" in found.store
    assert "tail/datasets/name" in found.store
    for name, wanted in datasets.items():
        xr.testing.assert_identical(found[name].load(), found.load(name))
        assert found.load(name).attrs == wanted.attrs
        np.testing.assert_array_equal(found.load(name).w, wanted.w)
    expected = np.stack([each.w.values for each in datasets.values()])
    out = np.empty_like(expected)
    np.testing.assert_array_equal(found.read("w", out=out)["w"], expected)
    for chosen in (slice(None, None, -7), [59, 3, 58, 0], slice(20, 60, 3), [59], slice(55, 60)):
        np.testing.assert_array_equal(found.read("w", chosen)["w"], expected[chosen])
    lengths = [len(values) for values in found.read("v")["v"]]
    assert lengths == [number % 5 for number in range(60)]
    assert found.attrs["id"].tolist() == list(range(60))
    assert found.stats("w").to_pandas()["max"].tolist() == list(range(60))
    assert found.choose("id >= 58") == ["d58", "d59"]
    assert found.to_xarray().w.shape == (60, 50)


@pytest.mark.usefixtures("short_tails")
def test_lazy_datasets_of_a_regular_family_with_a_tail(tmp_path: Path) -> None:
    datasets = {f"d{n}": {"w": ("x", np.full(50, n))} for n in range(40)}
    found = grown(tmp_path / "x.ambar", datasets, 35)
    whole = found.to_xarray()
    assert whole.w[::-1, 3].values.tolist() == list(range(39, -1, -1))
    assert whole.w[[39, 0, 38], 3].values.tolist() == [39, 0, 38]


@pytest.mark.usefixtures("short_tails")
def test_what_changes_all_rows_ends_a_tail(tmp_path: Path) -> None:
    """A coordinate that was equal, or a new attribute, concerns the rows before the tail."""
    path = tmp_path / "x.ambar"
    datasets = {
        f"d{n}": xr.Dataset({"w": ("x", np.full(50, n))}, {"x": np.arange(50)}) for n in range(40)
    }
    grown(path, datasets, 35)
    datasets["other"] = datasets["d0"].assign_coords(x=np.arange(50) + 1)
    datasets["more"] = datasets["d0"].assign_attrs(station="a")
    for name in ("other", "more"):
        with ambar.open_collection(path, "a", fsync=False) as collection:
            collection.add(name, datasets[name])
    found = ambar.open_collection(path)
    assert list(found) == list(datasets)
    for name, expected in datasets.items():
        xr.testing.assert_identical(found.load(name), expected)


@pytest.mark.usefixtures("short_tails")
def test_values_of_a_tail_change_once_by_an_error_bound(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(60, 50))
    datasets = {f"d{n}": {"w": ("x", row)} for n, row in enumerate(values)}
    found = grown(tmp_path / "x.ambar", datasets, 30, encoding={"w": {"error_bound": 0.01}})
    assert np.abs(found.read("w")["w"] - values).max() <= 0.01


@pytest.mark.usefixtures("short_tails")
def test_changes_of_datasets_in_arrays_and_tails(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    model = {f"d{n}": n for n in range(40)}
    grown(path, {name: {"w": ("x", np.full(50, n))} for name, n in model.items()}, 35)
    with ambar.open_collection(path, "a", fsync=False) as collection:
        collection.rename("d3", "first")
        collection.rename("d38", "last")
        collection.replace("d2", {"w": ("x", np.full(50, 100))})
        collection.remove(["d1", "d39"])
        collection.commit()
        collection.add("d1", {"w": ("x", np.full(50, 101))})
    names = ["first" if n == 3 else "last" if n == 38 else f"d{n}" for n in range(39) if n != 1]
    found = ambar.open_collection(path)
    assert found.names == [*names, "d1"]
    values = {"d2": 100, "first": 3, "last": 38, "d1": 101}
    for name in found:
        assert found.load(name).w[0] == values.get(name, int(name[1:] if name[1:].isdigit() else 0))
    assert "d3" not in found
    assert "d39" not in found
    found.verify()


@pytest.mark.usefixtures("short_tails")
def test_names_of_equal_hashes(tmp_path: Path) -> None:
    names = ["plumless", *(f"d{n}" for n in range(60)), "buckeroo"]
    assert name_index.hash_of(names[0]) == name_index.hash_of(names[-1])
    found = grown(tmp_path / "x.ambar", {n: {"v": [at]} for at, n in enumerate(names)}, 50)
    with ambar.open_collection(tmp_path / "x.ambar", "a", fsync=False) as collection:
        for number in range(9):  # they end the tail
            collection.add(f"e{number}", {"v": [0]})
    found = ambar.open_collection(tmp_path / "x.ambar")
    found.verify()
    assert [found.load(name).v.item() for name in names] == list(range(len(names)))


def test_a_tail_of_another_type_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    grown(path, {"a": {"v": [1]}}, 1)
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("tail/f0/v", np.array([[1.5]]))
    with pytest.raises(ambar.CorruptError, match="/tail/f0/v is float64"):
        ambar.open_collection(path).load("a")

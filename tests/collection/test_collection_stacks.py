"""Consecutive equal datasets, which `add_many` writes together, are as those that `add` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.collection.write import dataset_stack

Pairs = list[tuple[str, dict[str, Any]]]


def casts(count: int, first: int = 0, length: int = 5, **changes: Any) -> Pairs:
    """Return datasets of equal schema."""
    depth = np.arange(length) * 2.0
    return [
        (
            f"d{number}",
            {
                "t": ("depth", np.full(length, number, "f4"), {"units": "K"}),
                "n": np.array([number, -number]),
                "s": ((), np.array(number / 3)),
                "depth": ("depth", depth),
                **changes,
            },
        )
        for number in range(first, first + count)
    ]


def mixed() -> Pairs:
    """Return stacks and datasets that end them, each in another way."""
    found = casts(50)
    first = 50
    for changes in (
        {"t": ("depth", np.zeros(5, "f4"), {"units": "C"})},
        {"t": ("depth", np.zeros(5, "f4"), {"units": "K", "more": 1})},
        {"t": ("depth", np.zeros(5, "f4"))},
        {"t": ("z", np.zeros(5, "f4"), {"units": "K"})},
        {"t": (["depth"], np.zeros(5, "f4"), {"units": "K"})},
        {"t": ("depth", np.zeros(5, "f8"), {"units": "K"})},
        {"t": ("depth", np.zeros(5, ">f4"), {"units": "K"})},
        {"t": ("depth", [0.0] * 5, {"units": np.arange(2)})},
        {"n": [1, 2]},
        {"n": np.array(["a", "b"])},
        {"n": np.array([3, 4]).view("m8[s]")},
        {"s": ((), 4.0)},
        {"depth": ("depth", np.arange(5) + 0.5)},
        {"more": np.arange(2)},
    ):
        found += casts(20, first, **changes) + casts(3, first + 20)
        first += 23
    found += casts(30, first, 7)
    # The order of the variables, and values that are not consecutive in memory.
    found += [(f"r{n}", dict(reversed(data.items()))) for n, (_, data) in enumerate(casts(20))]
    found += casts(20, first + 30, n=np.arange(4)[::-2])
    return found


def written(path: Path, datasets: Pairs, *, many: bool, **options: Any) -> ambar.Collection:
    with ambar.open_collection(path, "w-", fsync=False, **options) as collection:
        if many:
            collection.add_many(datasets)
        else:
            for name, dataset in datasets:
                collection.add(name, dataset)
    return ambar.open_collection(path)


@pytest.mark.parametrize("ragged", [(), ("depth",)])
@pytest.mark.parametrize("size", [4 << 20, 1 << 10])
def test_stacks_are_as_single_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragged: tuple[str, ...], size: int
) -> None:
    monkeypatch.setattr(dataset_stack, "BYTES", size)
    monkeypatch.setattr(dataset_stack, "LEAST", 1)
    datasets = mixed()
    single = written(tmp_path / "one.ambar", datasets, many=False, ragged=ragged)
    stacked = written(tmp_path / "many.ambar", datasets, many=True, ragged=ragged)
    assert stacked.names == single.names == [name for name, _ in datasets]
    assert stacked.families == single.families
    for name in single.names:
        found = stacked.load(name)
        xr.testing.assert_identical(found, single.load(name))
    for variable in single.variables:
        expected = single.stats(variable).to_pandas()
        assert stacked.stats(variable).to_pandas().equals(expected)
    stacked.verify()


def test_values_are_copied_when_they_are_taken(tmp_path: Path) -> None:
    buffer, attributes = np.zeros(4), {"units": "0"}

    def reusing() -> Iterator[tuple[str, dict[str, Any]]]:
        for number in range(100):
            buffer[:] = number
            attributes["units"] = str(number // 40)
            yield f"d{number}", {"x": ("t", buffer, attributes)}

    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as collection:
        collection.add_many(reusing())
    collection = ambar.open_collection(tmp_path / "x.ambar")
    for number in range(100):
        found = collection.load(f"d{number}").x
        assert (found.values.tolist(), found.attrs["units"]) == ([number] * 4, str(number // 40))


@pytest.mark.parametrize("wrong", ["d3", "", "\ud800", "old", 7])
@pytest.mark.parametrize("at", [5, 60])
def test_an_invalid_name_in_a_stack(tmp_path: Path, wrong: Any, at: int) -> None:
    """The datasets before it are added."""
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        collection.add("old", casts(1)[0][1])
    datasets = casts(100)
    datasets[at] = (wrong, datasets[at][1])
    with ambar.open_collection(path, "a", fsync=False) as collection:
        with pytest.raises(ambar.InvalidError, match=r"exists already|name must be"):
            collection.add_many(datasets)
        collection.add_many(casts(30, 200))
    names = ambar.open_collection(path).names
    assert names == ["old", *(f"d{n}" for n in range(at)), *(f"d{n}" for n in range(200, 230))]


def test_an_exception_of_the_iterable(tmp_path: Path) -> None:
    """The datasets before it are added."""

    def failing() -> Iterator[tuple[str, dict[str, Any]]]:
        yield from casts(40)
        raise LookupError("no more")

    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as collection:
        with pytest.raises(LookupError):
            collection.add_many(failing())
        assert len(collection) == 40
    assert len(ambar.open_collection(tmp_path / "x.ambar")) == 40


def test_stacks_of_a_dtype_that_is_cast(tmp_path: Path) -> None:
    datasets = casts(1) + casts(40, 1, s=((), np.array(0.1, "f4")))
    found = written(tmp_path / "x.ambar", datasets, many=True, on_mismatch="cast")
    assert len(found.families) == 1
    assert found.load("d40").s.dtype == np.float64
    with (
        ambar.open_collection(tmp_path / "y.ambar", "w-", on_mismatch="raise") as collection,
        pytest.raises(ambar.InvalidError, match=r"d1.*dtype float32"),
    ):
        collection.add_many(datasets)

"""Any sequence of writes, from memory or dask, leaves what NumPy would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.xarray

xr = pytest.importorskip("xarray")
da = pytest.importorskip("dask.array")

BOUND = 0.01


class Sequence:
    """An array in a store and in memory, changed alike at random."""

    def __init__(self, random: np.random.Generator, path: Path, directory: bool) -> None:
        self.random = random
        self.path = path
        self.kind = str(random.choice(["f4", "i8", "S3", "U2", "bool", "O", "bounded"]))
        ndim = int(random.integers(1, 4))
        self.dims = tuple("xyz"[:ndim])
        self.values = self.some(tuple(int(n) for n in random.integers(1, 14, ndim)))
        self.encoding = self.division(ndim)
        options: dict[str, Any] = {"mode": "w", "directory": directory}
        self.write(self.values, encoding={"a": self.encoding}, **options)

    def some(self, shape: tuple[int, ...]) -> np.ndarray:
        numbers = self.random.integers(0, 100, shape)
        if self.kind == "bounded":
            return numbers + 0.25
        if self.kind == "O":
            texts = [f"t{n}" * (n % 3) for n in numbers.ravel()]
            return np.array(texts, dtype=object).reshape(shape)
        return numbers > 50 if self.kind == "bool" else numbers.astype(self.kind)

    def division(self, ndim: int) -> dict[str, Any]:
        encoding: dict[str, Any] = {"error_bound": BOUND} if self.kind == "bounded" else {}
        if self.random.random() < 0.6:
            chunks = self.random.integers(1, 6, ndim)
            encoding["chunks"] = tuple(map(int, chunks))
            if self.random.random() < 0.5:
                encoding["shards"] = tuple(map(int, chunks * self.random.integers(1, 4, ndim)))
        return encoding

    def write(self, values: Any, **options: Any) -> None:
        if self.random.random() < 0.6 and self.kind != "O":
            values = da.from_array(values, tuple(map(self.cut, values.shape)))
        dataset = xr.Dataset({"a": (self.dims, values)})
        dataset.ambar.write(self.path, fsync=False, **options)

    def cut(self, length: int) -> tuple[int, ...]:
        inside = self.random.integers(0, length + 1, self.random.integers(0, 4))
        return tuple(map(int, np.diff(sorted({0, length, *map(int, inside)}))))

    def append(self) -> None:
        axis = int(self.random.integers(len(self.dims)))
        shape = list(self.values.shape)
        shape[axis] = int(self.random.integers(1, 6))
        more = self.some(tuple(shape))
        self.write(more, append_dim=self.dims[axis])
        self.values = np.concatenate([self.values, more], axis)

    def region(self) -> None:
        firsts = [int(self.random.integers(0, n)) for n in self.values.shape]
        ends = [
            int(self.random.integers(i + 1, n + 1))
            for i, n in zip(firsts, self.values.shape, strict=True)
        ]
        part = tuple(map(slice, firsts, ends))
        values = self.some(tuple(end - first for first, end in zip(firsts, ends, strict=True)))
        self.write(values, region=dict(zip(self.dims, part, strict=True)))
        self.values = self.values.copy()
        self.values[part] = values

    def replace(self) -> None:
        self.values = self.some(self.values.shape)
        self.write(self.values, mode="a")

    def check(self) -> None:
        options: list[dict[str, int] | None] = [None, {}]
        for chunks in options:
            found = xr.open_dataset(self.path, engine="ambar", chunks=chunks)["a"].values
            if self.kind == "bounded":
                assert np.abs(found - self.values).max() <= BOUND
            else:
                np.testing.assert_array_equal(found, self.values)


@pytest.mark.parametrize("directory", [False, True], ids=["file", "folder"])
@pytest.mark.parametrize(
    "count", [40, pytest.param(3000, marks=pytest.mark.campaign)], ids=["some", "many"]
)
def test_sequences_of_writes(tmp_path: Path, directory: bool, count: int) -> None:
    for seed in range(count):
        random = np.random.default_rng(seed)
        sequence = Sequence(random, tmp_path / "x.ambar", directory)
        done = [sequence.kind, sequence.values.shape, sequence.encoding]
        for _ in range(random.integers(0, 6)):
            change = random.choice(["append", "region", "replace"])
            done.append(change)
            getattr(sequence, change)()
        try:
            sequence.check()
        except AssertionError as error:
            error.add_note(f"seed {seed}: {done}")
            raise
    assert set(ambar.open_store(tmp_path / "x.ambar")) == {"a"}

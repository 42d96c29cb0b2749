"""Chunks at the end of arrays with an error bound, whose padding is not the array's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import ambar
from ambar.store.error_bounds import is_kept, range_of, resolved
from ambar.store.writer import Profile

BOUNDS = ["1e-3 of range", "1e-3 relative above 0.1", "10 bits", "60 dB", "lossless"]


def waves(shape: tuple[int, ...], dtype: str = "f4") -> np.ndarray:
    """Return smooth values."""
    grids = np.meshgrid(*(np.linspace(0, 5, n) for n in shape), indexing="ij")
    field = sum(np.sin((1 + 0.3 * d) * grid) for d, grid in enumerate(grids))
    return np.asarray(field, dtype)


def with_gaps(values: np.ndarray, kind: str) -> np.ndarray:
    """Return values of which a part is missing, in the middle and at the end of each dimension."""
    values, flat = values.copy(), values.size // 7
    gap: Any = {"NaN": np.nan, "number": -9999.0, "infinity": np.inf}[kind]
    values.reshape(-1)[flat : 2 * flat] = gap
    for axis in range(values.ndim):
        np.moveaxis(values, axis, 0)[-1] = gap
    return values


def check(bound: str, values: np.ndarray, found: np.ndarray) -> None:
    np.testing.assert_array_equal(found[~np.isfinite(values)], values[~np.isfinite(values)])
    errors = np.where(np.isfinite(values), found.astype("f8") - values.astype("f8"), 0.0)
    assert is_kept(resolved(bound, range_of(values)), values.ravel(), errors.ravel())


@pytest.mark.parametrize("gaps", [None, "NaN", "number", "infinity"])
@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_bound_holds_whatever_the_chunks(
    bound: str, profile: Profile, gaps: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.ambar"
    cases: list[tuple[np.ndarray, tuple[int, ...]]] = [
        (waves((1001,)), (100,)),
        (waves((99,)), (96,)),
        (waves((49, 130)), (48, 128)),
        (waves((41, 63), "f8"), (20, 32)),
        (waves((17, 21, 33)), (16, 16, 16)),
        (waves((5, 9, 20, 21)), (4, 8, 16, 16)),
        (waves((40, 30, 3), "f8"), (24, 24, 2)),
        (waves((2, 3, 4, 9, 10)), (2, 2, 4, 8, 8)),
    ]
    if gaps:
        cases = [(with_gaps(values, gaps), chunks) for values, chunks in cases]
    with ambar.create(path, directory=True) as writer:
        for number, (values, chunks) in enumerate(cases):
            writer.create_array(
                str(number), values, chunks=chunks, profile=profile, error_bound=bound
            )
    store = ambar.open_store(path)
    group: Any = zarr.open_group(path, mode="r")
    for number, (values, _) in enumerate(cases):
        found = store[str(number)][...]
        check(bound, values, found)
        np.testing.assert_array_equal(group[str(number)][...], found)


@pytest.mark.parametrize("bound", ["1e-3 of range", "60 dB"])
def test_padding_takes_few_bytes(bound: str, tmp_path: Path) -> None:
    def size(length: int) -> int:
        values = waves((96, 96))[:length, :length]
        path = tmp_path / f"{length}.ambar"
        with ambar.create(path) as writer:
            writer.create_array("a", values, chunks=(48, 48), error_bound=bound)
        store = ambar.open_store(path)
        return int(store["a"].stored_bytes)

    assert size(95) < 1.1 * size(96)


def test_rows_that_follow_padding_are_their_own_values(tmp_path: Path) -> None:
    values = waves((30, 40))
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", values[:13], chunks=(8, 16), error_bound=1e-3)
    with ambar.create(path, "a") as writer:
        writer.append("a", values[13:])
    store = ambar.open_store(path)
    check("0.001", values, store["a"][...])

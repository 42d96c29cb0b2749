"""Transposed chunks and differences: chosen for meshes, and read by zarr-python without ambar."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

zarr = pytest.importorskip("zarr")
pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")

RANDOM = np.random.default_rng(7)
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]


def lattice(cells: int, corners: int) -> np.ndarray:
    """Return corners of cells in a row."""
    return np.arange(cells)[:, None] + RANDOM.integers(0, 5000, corners)


def written(path: Path, values: np.ndarray, **options: Any) -> list[str]:
    """Write an array and return the names of its chunks' codecs."""
    with ambar.create(path, "w", fsync=False) as writer:
        writer.create_array("a", values, **options)
    codecs = zarr.open_array(zarr.storage.ZipStore(path, mode="r"), path="a").metadata.to_dict()
    chain = codecs["codecs"]
    if chain[0]["name"] == "sharding_indexed":
        chain = chain[0]["configuration"]["codecs"]
    return [codec["name"] for codec in chain]


def check(path: Path, values: np.ndarray) -> None:
    """Compare what ambar and zarr-python read, whole and in parts."""
    array = ambar.open_store(path)["a"]
    other = zarr.open_array(zarr.storage.ZipStore(path, mode="r"), path="a")
    rows = len(values)
    for part in (slice(None), slice(rows // 3, rows // 3 + 7), slice(rows - 2, rows)):
        np.testing.assert_array_equal(array[part], values[part])
        np.testing.assert_array_equal(other[part], values[part])
    last = (slice(None, None, 3), *[slice(1, 2)] * (values.ndim - 1))
    np.testing.assert_array_equal(array[last], values[last])
    np.testing.assert_array_equal(other[last], values[last])


@pytest.mark.parametrize("corners", [2, 3, 4, 8, 20])
def test_cells_are_stored_as_differences(corners: int, tmp_path: Path) -> None:
    values = lattice(40_000, corners)
    path = tmp_path / "x.ambar"
    codecs = written(path, values)
    assert "numcodecs.delta" in codecs
    assert codecs[-1] == "crc32c"
    assert path.stat().st_size < values.nbytes / 100 + 4000  # what any store has
    check(path, values)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("profile", ["balanced", "small"])
def test_differences_wrap_around(dtype: np.dtype[Any], profile: str, tmp_path: Path) -> None:
    info = np.iinfo(dtype)
    steps = (np.arange(3000)[:, None] * 3 + np.array([0, 7, 100, 90])).astype("u8")
    with np.errstate(over="ignore"):
        values = (steps + np.uint64((info.max - 500) % 2**64)).astype(dtype)
    for name, shaped in {"rows": values, "flat": values.reshape(-1)}.items():
        path = tmp_path / f"{name}.ambar"
        written(path, shaped, profile=profile, chunks=(1000, 4)[: shaped.ndim])
        check(path, shaped)


def test_fast_finds_repeated_corners_of_unordered_cells(tmp_path: Path) -> None:
    # Consecutive cells share a face, and points are numbered at random, as in Delaunay meshes.
    points = np.random.default_rng(0).integers(0, 1 << 20, 30_000)
    cells = np.lib.stride_tricks.sliding_window_view(points, 4)
    path = tmp_path / "x.ambar"
    assert written(path, cells, profile="fast")[:2] == ["bytes", "zstd"]
    assert path.stat().st_size < cells.nbytes / 4
    check(path, cells)


def test_points_are_stored_by_column(tmp_path: Path) -> None:
    x, y, z = np.meshgrid(*[np.arange(40) * 0.25] * 3, indexing="ij")
    values = np.stack([z, y, x], -1).reshape(-1, 3)
    path = tmp_path / "x.ambar"
    assert written(path, values)[0] == "transpose"
    check(path, values)


def test_parts_are_written_and_merged(tmp_path: Path) -> None:
    values = lattice(5000, 4)
    path = tmp_path / "x.ambar"
    assert "numcodecs.delta" in written(path, values, chunks=(700, 4))
    with ambar.create(path, "a") as writer:
        writer.write_region("a", values[:10] * 2, (695, 0))
        writer.append("a", values[:33])
    values = np.concatenate([values, values[:33]])
    values[695:705] = values[:10] * 2
    check(path, values)


@pytest.mark.parametrize("shards", [None, (20, 8, 10)], ids=["plain", "sharded"])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)], ids=str)
def test_ambar_reads_any_order_that_zarr_python_writes(
    shards: tuple[int, ...] | None, order: tuple[int, ...], tmp_path: Path
) -> None:
    from zarr.codecs import BloscCodec, Crc32cCodec, TransposeCodec

    values = RANDOM.integers(-9, 9, (33, 17, 21))
    for dtype in ("i8", "f4", "c16", "M8[s]", "S5"):
        array = zarr.create_array(
            tmp_path / dtype[0],
            shape=values.shape,
            dtype=dtype,
            chunks=(10, 8, 5),
            shards=shards,
            filters=[TransposeCodec(order=order)],
            compressors=[BloscCodec(), Crc32cCodec()],
        )
        array[:] = values.astype(dtype)
        found = ambar.open_store(tmp_path / dtype[0])["/"]
        np.testing.assert_array_equal(found[:], values.astype(dtype))
        np.testing.assert_array_equal(found[4:30, 3, 2:20:3], values.astype(dtype)[4:30, 3, 2:20:3])


def test_ambar_reads_differences_that_zarr_python_writes(tmp_path: Path) -> None:
    from zarr.codecs import numcodecs

    values = RANDOM.integers(-(2**31), 2**31, (50, 6)).astype("i4")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "not in the Zarr version 3 specification"
        delta = numcodecs.Delta(dtype="<i4")
        array = zarr.create_array(
            tmp_path / "x", shape=values.shape, dtype="i4", chunks=(20, 4), filters=[delta]
        )
        array[:] = values
    # Its default compressor is a codec that ambar reads.
    np.testing.assert_array_equal(ambar.open_store(tmp_path / "x")["/"][:], values)


@pytest.mark.parametrize(
    ("codec", "error"),
    [
        ({"name": "transpose", "configuration": {"order": [0]}}, ambar.CorruptError),
        ({"name": "transpose", "configuration": {"order": [1, 1]}}, ambar.CorruptError),
        ({"name": "transpose", "configuration": {}}, ambar.CorruptError),
        ({"name": "numcodecs.delta", "configuration": {}}, ambar.CorruptError),
        (
            {"name": "numcodecs.delta", "configuration": {"dtype": "<i8", "astype": "<i4"}},
            ambar.UnsupportedError,
        ),
        ({"name": "numcodecs.delta", "configuration": {"dtype": "<f8"}}, ambar.UnsupportedError),
    ],
    ids=str,
)
def test_invalid_configurations_are_refused(
    codec: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    zarr.create_array(path, data=np.arange(20).reshape(5, 4), chunks=(5, 4))
    document = json.loads((path / "zarr.json").read_text())
    document["codecs"].insert(0, codec)
    (path / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(error, match=codec["name"]):
        ambar.open_store(path)["/"]


def field(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return a smooth field."""
    z, y, x = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    return (np.sin(5 * x) * np.cos(3 * y) * np.exp(-z)).astype(dtype)


@pytest.mark.parametrize("profile", ["balanced", "small"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fields_on_grids_are_predicted_where_allowed(
    profile: str, dtype: str, tmp_path: Path
) -> None:
    scalars = field((40, 50, 60), dtype)
    vectors = np.stack([scalars, scalars**2, 1 - scalars], -1)
    for values in (scalars, vectors):
        path = tmp_path / "x.ambar"
        assert "ambar" not in written(path, values, profile=profile)
        usual = path.stat().st_size
        codecs = written(path, values, profile=profile, layout="grid")
        assert path.stat().st_size <= usual
        if dtype == "float32":
            assert "ambar" in codecs
        check(path, values)
    assert "ambar" not in written(path, scalars, profile="fast", layout="grid")
    assert "ambar" not in written(path, np.arange(2000).reshape(40, 50), layout="grid")

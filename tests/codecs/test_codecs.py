"""zarr-python and numcodecs write and read ambar's codecs, and refuse what these cannot hold."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from ambar.codecs import decode, decode_corners, encode, encode_corners

SHAPES = [(), (1,), (1000,), (30, 41), (9, 10, 11), (3, 8, 9, 10), (2, 3, 4, 5, 6), (0, 4)]


def field(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return a smooth field, with noise and odd values."""
    places = np.indices(shape).astype(float) if shape else np.zeros((0,))
    values = np.asarray(sum(np.sin(place / (3 + i)) for i, place in enumerate(places)), float)
    values = values.reshape(shape) + np.random.default_rng(1).normal(0, 1e-3, shape)
    if values.size > 100:
        values.reshape(-1)[[3, 40, 77]] = np.nan, np.inf, -1e30
    return values.astype(dtype)


def check(found: np.ndarray, expected: np.ndarray, bound: float) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    errors = np.abs(found[finite].astype(float) - expected[finite])
    assert not errors.size or errors.max() <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_of_any_shape_come_back(shape: tuple[int, ...], dtype: str) -> None:
    values = field(shape, dtype)
    for bound in (1e-2, 1e-6, 0.0):
        check(decode(encode(values, bound), values.dtype, shape), values, bound)


def test_invalid_bounds_and_types_are_refused() -> None:
    from ambar.codecs.zarr_python import AmbarCodec

    for bound in (-1.0, float("nan"), float("inf"), "1e-3 of range", None, True):
        with pytest.raises(ValueError, match="error.bound"):
            AmbarCodec(error_bound=bound)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="error.bound"):
            encode(np.arange(3.0), bound)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="int32"):
        encode(np.arange(3, dtype="i4"), 0.0)
    with pytest.raises(TypeError, match="fast='small': expected True or False"):
        encode(np.arange(3.0), 0.0, fast="small")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no level"):
        AmbarCodec.from_dict({"name": "ambar", "configuration": {"error_bound": 1, "level": 3}})


def test_numbers_arrays_and_dtypes_of_any_type_are_accepted() -> None:
    from ambar.codecs.numcodecs_api import AmbarCodec

    values = [0.0, 0.5, 1.0]
    bounds: list[Any] = [np.float32(0.25), np.int64(1), Fraction(1, 4)]
    for bound in bounds:
        assert AmbarCodec(bound).error_bound == float(bound)
        assert encode(values, bound) == encode(np.array(values), float(bound))
    for dtype in ("f8", float, ">f8", np.dtype("f8")):
        found = decode(encode(values, 0), dtype, (3,))
        assert found.tolist() == values
        assert found.dtype == dtype
    with pytest.raises(ValueError, match="holds float32 and float64, not int32"):
        decode(encode(values, 0), "i4", (3,))


def test_damaged_streams_and_other_shapes_are_errors() -> None:
    values = field((20, 30), "float64")
    stream = encode(values, 1e-3)
    with pytest.raises(ambar.CorruptError):
        decode(stream[:-1], values.dtype, values.shape)
    with pytest.raises(ambar.CorruptError):
        decode(stream[:50] + bytes([stream[50] ^ 1]) + stream[51:], values.dtype, values.shape)
    with pytest.raises(ambar.CorruptError, match="600 values of 8 bytes"):
        decode(stream, values.dtype, (20, 31))
    with pytest.raises(ambar.CorruptError, match="float32"):
        decode(stream, np.dtype("float32"), values.shape)
    assert decode(stream, values.dtype, values.size).shape == (600,)
    for shape in (-1, (20, -1), (2**63,), None, "x"):
        with pytest.raises(ValueError, match="invalid shape"):
            decode(stream, values.dtype, shape)  # type: ignore[arg-type]


@pytest.mark.parametrize("shards", [None, (32, 64)], ids=["plain", "sharded"])
@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8"])
def test_zarr_python_writes_and_reads(shards: tuple[int, int] | None, dtype: str) -> None:
    zarr = pytest.importorskip("zarr")
    from zarr.codecs import Crc32cCodec

    from ambar.codecs.zarr_python import AmbarCodec

    values = field((70, 90), dtype)
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(
        store,
        shape=values.shape,
        dtype=dtype,
        chunks=(16, 32),
        shards=shards,
        serializer=AmbarCodec(error_bound=1e-3),
        compressors=Crc32cCodec(),
    )
    array[:] = values
    opened = zarr.open_array(store, mode="r")
    check(opened[:].astype(values.dtype), values, 1e-3)
    check(opened[33:60:3, 5:9].astype(values.dtype), values[33:60:3, 5:9], 1e-3)
    assert opened.nbytes_stored() < values.nbytes


@pytest.mark.parametrize("bound", [0.0, 1e-3])
def test_zarr_python_writes_and_reads_packed_streams(bound: float) -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.zarr_python import AmbarCodec

    values = np.random.default_rng(4).random((70, 90))
    store = zarr.storage.MemoryStore()
    array = zarr.create_array(
        store,
        shape=values.shape,
        dtype="f8",
        chunks=(70, 90),
        serializer=AmbarCodec(error_bound=bound, fast=True),
        compressors=None,
    )
    array[:] = values
    opened = zarr.open_array(store, mode="r")
    check(opened[:], values, bound)
    assert opened.metadata.codecs[0] == AmbarCodec(error_bound=bound, fast=True)
    packed = encode(values, bound, fast=True)
    assert (packed[0], packed[3]) == (1, 0), "version, and the mode of bit-packed streams"
    check(decode(packed, values.dtype, values.shape), values, bound)
    with pytest.raises(ValueError, match="fast or not"):
        AmbarCodec.from_dict({"name": "ambar", "configuration": {"error_bound": 1, "fast": 3}})


def test_a_document_alone_finds_the_codec(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.zarr_python import AmbarCodec

    values = field((40, 50), "float64")
    array = zarr.create_array(
        tmp_path / "x",
        shape=values.shape,
        dtype="f8",
        chunks=(40, 50),
        serializer=AmbarCodec(error_bound=0.0),
        compressors=None,
    )
    array[:] = values
    # A process that has imported nothing of ambar.
    code = "import sys, zarr; a = zarr.open_array(sys.argv[1])[:]; print(a.tobytes().hex())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "x")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert bytes.fromhex(done.stdout.strip()) == values.tobytes()


def test_zarr_python_refuses_other_types() -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.zarr_python import AmbarCodec

    with pytest.raises(ValueError, match="float32 and float64, not int32"):
        zarr.create_array(
            zarr.storage.MemoryStore(),
            shape=(10,),
            dtype="i4",
            chunks=(5,),
            serializer=AmbarCodec(error_bound=1e-3),
            compressors=None,
        )


def test_numcodecs_finds_and_uses_the_codec() -> None:
    numcodecs = pytest.importorskip("numcodecs")
    values = field((12, 30, 20), "float64")
    codec = numcodecs.get_codec({"id": "ambar", "error_bound": 1e-4})
    assert codec.get_config() == {"id": "ambar", "error_bound": 1e-4}
    check(codec.decode(codec.encode(values)).reshape(values.shape), values, 1e-4)
    fortran = np.asfortranarray(values)
    packed = encode(values, 0.0, fast=True)
    assert (packed[0], packed[3]) == (1, 0), "version, and the mode of bit-packed streams"
    check(codec.decode(packed).reshape(values.shape), values, 0.0)
    found = codec.decode(codec.encode(fortran)).reshape(values.shape, order="F")
    check(found, values, 1e-4)
    out = np.empty_like(values)
    codec.decode(codec.encode(values), out=out)
    check(out, values, 1e-4)
    with pytest.raises(ValueError, match="uint8"):
        codec.encode(b"bytes")
    with pytest.raises(ValueError, match="byte order"):
        codec.encode(values.astype(">f8"))


LEVELS = """
import hashlib
import numpy as np
from ambar.codecs import decode, encode
values = np.sin(np.arange(36000.0).reshape(30, 40, 30) ** 1.5 * 1e-4)
values[3:9, 5, 7:] = np.nan
sum = hashlib.sha256()
for bound, fast in [(0.0, False), (1e-4, False), (1e-2, True), (0.0, True)]:
    for given in (values, values.astype("float32")):
        stream = encode(given, bound, fast=fast)
        sum.update(stream)
        sum.update(decode(stream, given.dtype, given.shape))
print(sum.hexdigest())
"""


def test_all_levels_of_instructions_give_the_same_streams_and_values() -> None:
    run = partial(subprocess.run, [sys.executable, "-c", LEVELS], capture_output=True, check=True)
    levels = ["baseline", "avx2", ""]
    found = {run(env={**os.environ, "AMBAR_SIMD": level}).stdout for level in levels}
    assert len(found) == 1


def test_zarr_v2_uses_the_codec_of_numcodecs() -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.numcodecs_api import AmbarCodec

    for order in ("C", "F"):
        values = field((33, 20), "float32")
        store = zarr.storage.MemoryStore()
        array = zarr.create_array(
            store,
            shape=values.shape,
            dtype="f4",
            chunks=(10, 20),
            order=order,
            compressors=AmbarCodec(error_bound=1e-2),
            zarr_format=2,
        )
        array[:] = values
        check(zarr.open_array(store, mode="r")[:], values, 1e-2)


def test_unit_blocks_come_back() -> None:
    blocks = np.random.default_rng(2).normal(size=(3, 4, 4, 4))
    origins = np.array([[0, 0, 0], [0, 0, 4], [4, 4, 4]])
    stream = _core.codec_encode(blocks, origins, 1e-2)
    info = _core.codec_inspect(stream)
    assert (info.dtype, info.values, info.error_bound) == ("float64", 192, 1e-2)
    check(_core.codec_decode(stream, "float64", blocks.shape), blocks, 1e-2)
    plan = _core.codec_tune(blocks, origins, 1e-2)
    planned = _core.codec_encode(blocks, origins, 1e-2, plan)
    check(_core.codec_decode(planned, "float64", blocks.shape), blocks, 1e-2)
    with pytest.raises(ValueError, match="for 3 origins, found"):
        _core.codec_encode(blocks[:2], origins, 1e-2)
    with pytest.raises(ValueError, match="Morton"):
        _core.codec_encode(blocks, origins[::-1].copy(), 1e-2)


def corners(cells: int, width: int, dtype: str) -> np.ndarray:
    """Return rows of a mesh of sorts (cells, width), the last ones of any points."""
    rows = np.arange(cells)[:, None] // 2 + np.array([0, 1, 7, 20])[:width]
    rows[-9:] = np.random.default_rng(2).integers(0, 2**31 - 1, (9, width))
    return rows.astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", ">i4"])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_corners_of_cells_come_back(width: int, dtype: str) -> None:
    values = corners(500, width, dtype)
    stream = encode_corners(values)
    found = decode_corners(stream, values.dtype, values.shape)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    for damaged in (stream[:-1], stream[:30] + bytes([stream[30] ^ 1]) + stream[31:]):
        with pytest.raises(ambar.CorruptError):
            decode_corners(damaged, values.dtype, values.shape)
    with pytest.raises(ambar.CorruptError, match=r"500 cells of . corners"):
        decode_corners(stream, values.dtype, (499, width))
    with pytest.raises(ValueError, match="rows of 2, 3 or 4"):
        decode_corners(stream, np.dtype("f8"), values.shape)
    with pytest.raises(ValueError, match="rows of 2, 3 or 4"):
        encode_corners(values.ravel())


def lattice(side: int) -> np.ndarray:
    """Return the corners of six tetrahedra a cube of a lattice of side^3 points."""
    strides = (1, side, side**2)
    steps = np.array([[0, i, i + j, sum(strides)] for i, j in permutations(strides, 2)])
    cubes = np.arange(side**3).reshape((side,) * 3)[:-1, :-1, :-1].reshape(-1, 1, 1)
    return (cubes + steps).reshape(-1, 4)


def unordered(values: np.ndarray) -> np.ndarray:
    """Return a mesh whose cells and points come in any order."""
    generator = np.random.default_rng(4)
    return generator.permutation(values.max() + 1)[generator.permutation(values)]


@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
def test_meshes_are_cut_for_the_codec_where_it_saves(tmp_path: Path, profile: str) -> None:
    ordered = lattice(40)
    shuffled = unordered(ordered)
    # Cells near each other in one part, in any order within it.
    near = np.concatenate(
        [unordered(part) + part.min() for part in np.split(ordered[:145_000], 10)]
    )
    arrays = {"ordered": ordered, "shuffled": shuffled, "near": near, "bits": near.astype("i2")}
    with ambar.create(tmp_path / "x.ambar", profile=profile) as store:  # type: ignore[arg-type]
        for name, values in arrays.items():
            store.create_array(name, values, chunks=(1 << 14, 4), layout="simplices")
    opened = ambar.open_store(tmp_path / "x.ambar")
    for name, values in arrays.items():
        np.testing.assert_array_equal(opened[name][:], values)
        used = profile == "small" and name in {"shuffled", "near"}
        assert ("simplices" in opened[name].codecs) == used, (name, opened[name].codecs)
        if used:
            rows = len(values) if name == "shuffled" else 72_500
            assert opened[name].chunks == (rows, 4)
            assert opened[name].stored_bytes < len(values) * 4.5


def test_zarr_python_reads_the_corners_that_ambar_writes(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    values = unordered(lattice(13))
    with ambar.create(tmp_path / "x.ambar", profile="small") as store:
        store.create_array("corners", values, layout="simplices")
        store.create_array("plain", values, layout="whole")
    code = "import sys, zarr; a = zarr.open_group(zarr.storage.ZipStore(sys.argv[1]), mode='r')"
    code += "; print([c.to_dict()['name'] for c in a['corners'].metadata.codecs])"
    code += "; print(a['corners'][:].tobytes().hex())"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "x.ambar")],
        capture_output=True,
        text=True,
        check=True,
    )
    names, found = done.stdout.split("\n")[:2]
    assert "ambar.simplices" in names
    assert bytes.fromhex(found) == values.tobytes()
    opened = ambar.open_store(tmp_path / "x.ambar")
    np.testing.assert_array_equal(opened["corners"][700:1500], values[700:1500])
    assert opened["corners"].codecs == "simplices, crc32c"
    assert "simplices" not in opened["plain"].codecs


def test_zarr_python_writes_corners() -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.zarr_python import SimplicesCodec

    values = corners(900, 3, "int32")
    store = zarr.storage.MemoryStore()
    about = {"shape": values.shape, "dtype": "i4", "serializer": SimplicesCodec()}
    array = zarr.create_array(store, chunks=(400, 3), compressors=None, **about)
    array[:] = values
    opened = zarr.open_array(store, mode="r")
    np.testing.assert_array_equal(opened[:], values)
    np.testing.assert_array_equal(opened[350:420, 1], values[350:420, 1])
    with pytest.raises(ValueError, match="no level"):
        SimplicesCodec.from_dict({"name": "ambar.simplices", "configuration": {"level": 3}})
    with pytest.raises(ValueError, match="rows of 2, 3 or 4"):
        about |= {"dtype": "f4"}
        zarr.create_array(zarr.storage.MemoryStore(), chunks=(400, 3), compressors=None, **about)

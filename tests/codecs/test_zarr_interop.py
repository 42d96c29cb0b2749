"""What ambar writes opens in zarr-python, zipfile and unzip; what zarr-python writes, in ambar."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.store.writer import Profile
from tests.helpers.array_samples import samples
from tests.helpers.sample_outputs import output

zarr = pytest.importorskip("zarr")

SAMPLES = samples()


def zarr_group(path: Path) -> Any:
    store = (
        zarr.storage.LocalStore(path, read_only=True)
        if path.is_dir()
        else zarr.storage.ZipStore(path, mode="r")
    )
    return zarr.open_group(store, mode="r")


@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
def test_zarr_python_reads_every_type(profile: Profile, directory: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, profile=profile, directory=directory, fsync=False) as writer:
        writer.create_group("deep/er", {"note": "hello"})
        for name, values in SAMPLES.items():
            writer.create_array(f"deep/{name}", values)
    group = zarr_group(path)
    assert group["deep/er"].attrs["note"] == "hello"
    for name, expected in SAMPLES.items():
        found = group[f"deep/{name}"][...]
        if expected.dtype.kind == "O":
            assert np.asarray(found, dtype=object).tolist() == expected.tolist(), name
        else:
            np.testing.assert_array_equal(found, expected, err_msg=name)


def test_groups_that_were_written_by_turns_are_complete(tmp_path: Path) -> None:
    """zarr-python forgets arrays of a group if those of other groups stand between them."""
    path = tmp_path / "x.ambar"
    for name in ("a/x", "b/deep/y", "a/z", "b/deep/w"):
        with ambar.create(path, "a", fsync=False) as writer:
            writer.create_array(name, np.arange(3))
    group = zarr_group(path)
    assert list(group["a"].array_keys()) == ["x", "z"]
    assert list(group["b/deep"].array_keys()) == ["y", "w"]
    assert list(ambar.open_store(path)["b/deep"]) == ["y", "w"]


def test_the_groups_of_a_snapshot_are_complete(tmp_path: Path) -> None:
    ambar.convert(output("gravpart"), tmp_path / "x.ambar", fsync=False)
    group, store = zarr_group(tmp_path / "x.ambar"), ambar.open_store(tmp_path / "x.ambar")
    for name in ("amr", "particles"):
        assert {*group[name].keys()} == {key.partition("/")[0] for key in store[name]}


def test_documents_are_deflated(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        for number in range(50):
            writer.create_array(f"x{number}", np.arange(3))
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        methods = {info.filename: info.compress_type for info in archive.infolist()}
        root = archive.getinfo("zarr.json")
    assert root.compress_size * 8 < root.file_size
    assert all((method == zipfile.ZIP_DEFLATED) is (name.endswith("zarr.json"))
               for name, method in methods.items())  # fmt: skip
    assert zarr_group(path)["x49"][...].tolist() == [0, 1, 2]


def test_zarr_python_reads_parts_of_sharded_arrays(tmp_path: Path) -> None:
    values = np.cumsum(np.random.default_rng(3).normal(size=2_000_000))
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", values)
    assert ambar.open_store(path)["a"].shards is not None
    array = zarr_group(path)["a"]
    np.testing.assert_array_equal(array[1_000_000:1_000_100], values[1_000_000:1_000_100])
    np.testing.assert_array_equal(array[-3:], values[-3:])


def test_zarr_python_reads_a_snapshot(stores: dict[str, Path]) -> None:
    group = zarr_group(stores["gravpart"])
    cells = ambar.open_snapshot(stores["gravpart"]).amr.read()
    for name in cells.columns[4:]:
        np.testing.assert_array_equal(group[f"amr/{name}"][:], cells[name], err_msg=name)
    assert group.attrs["ambar"]["kind"] == "snapshot"


def test_zarr_python_reads_after_appending(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    for number in range(3):
        with ambar.create(path, "a") if number else ambar.create(path) as writer:
            writer.create_array("a", np.full(10, number))
            writer.create_array(f"b{number}", np.arange(number + 1))
    group = zarr_group(path)
    np.testing.assert_array_equal(group["a"][:], np.full(10, 2))
    assert sorted(group.array_keys()) == ["a", "b0", "b1", "b2"]


def test_zarr_python_without_ambars_codecs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = vars(zarr.registry)["__codec_registries"]
    for name in ("ambar", "ambar.simplices"):
        monkeypatch.delitem(registry, name)
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("run/lossy", np.linspace(0, 1, 10_000), error_bound=1e-3)
        writer.create_array("run/mask", np.arange(100) % 2 == 0)
    store = zarr.storage.ZipStore(path, mode="r")
    group = zarr.open_group(store, mode="r", use_consolidated=False)
    assert group["run/mask"][:3].tolist() == [True, False, True]
    assert zarr.open_array(store, path="run/mask", mode="r")[:2].tolist() == [True, False]


def test_zip_tools_find_nothing_wrong(stores: dict[str, Path]) -> None:
    for path in stores.values():
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
        subprocess.run([sys.executable, "-m", "zipfile", "-t", path], check=True)
        unzip = shutil.which("unzip")
        assert unzip, "unzip is needed for this test: apt-get install unzip"
        done = subprocess.run([unzip, "-t", path], capture_output=True, text=True, check=True)
        assert "No errors" in done.stdout


@pytest.mark.parametrize("shards", [None, (200,)], ids=["plain", "sharded"])
def test_ambar_reads_what_zarr_python_wrote(shards: Any, tmp_path: Path) -> None:
    from zarr import codecs

    values = np.cumsum(np.random.default_rng(5).normal(size=1000)).round(3)
    compressors = {
        "none": None,
        "zstd": codecs.ZstdCodec(level=3),
        "blosc": codecs.BloscCodec(cname="lz4", shuffle="shuffle"),
        "bitshuffle": codecs.BloscCodec(cname="zstd", shuffle="bitshuffle"),
        "checked": [codecs.ZstdCodec(), codecs.Crc32cCodec()],
    }
    path = tmp_path / "x.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.create_group(path)
        for name, compressor in compressors.items():
            array = root.create_array(
                name, shape=1000, dtype="f8", chunks=(50,), shards=shards, compressors=compressor
            )
            array[:] = values
        partly = root.create_array("partly", shape=1000, dtype="f8", chunks=(50,), fill_value=7.5)
        partly[100:120] = 1
        big = root.create_array(
            "big",
            shape=1000,
            dtype="f8",
            chunks=(1000,),
            serializer=codecs.BytesCodec(endian="big"),
            compressors=None,
        )
        big[:] = values
        root.create_array("gzip", shape=10, dtype="f8", compressors=codecs.GzipCodec())
        deep = root.create_group("deep", attributes={"note": "hello"})
        deep.create_array("scalar", shape=(), dtype="i4")[...] = 5
    store = ambar.open(path)
    assert isinstance(store, ambar.Store)
    for name in (*compressors, "big"):
        np.testing.assert_array_equal(store[name][:], values, err_msg=name)
        np.testing.assert_array_equal(store[name][333:777:7], values[333:777:7], err_msg=name)
    np.testing.assert_array_equal(store["partly"][:], root["partly"][:])
    with pytest.raises(ambar.UnsupportedError, match="gzip"):
        store["gzip"]
    assert "gzip" in repr(store)
    assert store["deep/scalar"][()] == 5
    assert store["deep"].attrs == {"note": "hello"}


def test_ambar_reads_a_zip_that_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    values = np.arange(100).reshape(10, 10)
    with zarr.storage.ZipStore(path, mode="w") as store:
        zarr.create_array(store, name="a", data=values, chunks=(3, 4))
    np.testing.assert_array_equal(ambar.open_store(path)["a"][:], values)

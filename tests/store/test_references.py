"""References to chunks where they lie: read by fsspec, zarr-python, xarray and VirtualiZarr."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

zarr = pytest.importorskip("zarr")
fsspec = pytest.importorskip("fsspec")
xr = pytest.importorskip("xarray")


def values() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        "cube": random.normal(size=(30, 40, 50)).astype("f4"),
        "run/column": np.arange(300_000),
        "run/deep/scalar": np.array(7.5),
        "run/empty": np.zeros((0, 3)),
        "run/smooth": np.cumsum(random.normal(size=200_000)),
    }


@pytest.fixture(params=[False, True], ids=["file", "folder"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "x.ambar"
    with ambar.create(path, directory=request.param, profile="fast") as writer:
        writer.create_group("run", {"code": "mine"})
        for name, data in values().items():
            dims = tuple(f"{name[-4:]}_{axis}" for axis in range(data.ndim))
            small: dict[str, Any] = {}
            if name == "cube":
                small = {"chunks": (8, 9, 11), "shards": (16, 18, 22)}
            bound = 0.25 if name == "run/smooth" else None
            writer.create_array(name, data, dims=dims, error_bound=bound, **small)
        writer.create_array(
            "sparse", shape=(10, 10), dtype="f8", chunks=(5, 5), shards=(10, 5), dims=("a", "b")
        )
        writer.write_region("sparse", np.ones((5, 5)), (5, 0))
    with ambar.create(
        path, "a"
    ) as writer:  # the first bytes of the file are not those of the commit
        writer.create_array("run/column", values()["run/column"] * 2, dims=("olumn_0",))
    return path


def opened(refs: dict[str, Any]) -> Any:
    """Open references as zarr-python does."""
    filesystem = fsspec.filesystem(
        "reference",
        fo=refs,
        remote_protocol="file",
        asynchronous=True,
        remote_options={"asynchronous": True},
    )
    return zarr.storage.FsspecStore(filesystem, read_only=True)


def check(read: Any) -> None:
    expected = values() | {"run/column": values()["run/column"] * 2}
    for name, data in expected.items():
        if name == "run/smooth":
            assert 0 < np.abs(read(name) - data).max() <= 0.25
        else:
            np.testing.assert_array_equal(read(name), data, err_msg=name)
    sparse = np.zeros((10, 10))
    sparse[5:, :5] = 1
    np.testing.assert_array_equal(read("sparse"), sparse)


def test_zarr_python_reads_through_fsspec(path: Path) -> None:
    refs = json.loads(json.dumps(ambar.references(path)))
    group = zarr.open_group(opened(refs), mode="r")
    assert group["run"].attrs["code"] == "mine"
    assert group["cube"].shards is None
    assert group["cube"].chunks == (8, 9, 11)
    check(lambda name: group[name][...])


def test_every_chunk_is_a_range_of_bytes_of_its_own(path: Path) -> None:
    refs = ambar.references(path)["refs"]
    chunks = {key: ref for key, ref in refs.items() if key.startswith("cube/c/")}
    assert set(chunks) == {
        f"cube/c/{i}/{j}/{k}" for i in range(4) for j in range(5) for k in range(5)
    }
    assert [key for key in refs if key.startswith("sparse/c")] == ["sparse/c/1/0"]
    assert "run/deep/scalar/c" in refs
    ranges = sorted((url, start, length) for url, start, length in chunks.values())
    for (url, start, length), (later_url, later, _) in itertools.pairwise(ranges):
        assert url != later_url or start + length <= later
    single = path.is_file()
    assert all(Path(url).is_file() and (url == str(path)) == single for url, _, _ in ranges)


def test_xarray_reads_a_group(path: Path) -> None:
    refs = ambar.references(path, group="run")
    assert "cube/zarr.json" not in refs["refs"]
    dataset = xr.open_zarr(opened(refs), chunks=None)
    assert dataset.attrs["code"] == "mine"
    np.testing.assert_array_equal(dataset["column"], values()["run/column"] * 2)
    with pytest.raises(KeyError, match="nothing"):
        ambar.references(path, group="nothing")


def test_the_url_is_the_users(path: Path) -> None:
    refs = ambar.references(path, "s3://bucket/x.ambar")["refs"]
    url, _, _ = refs["cube/c/0/0/0"]
    assert url == ("s3://bucket/x.ambar" if path.is_file() else "s3://bucket/x.ambar/cube/c/0/0/0")


def test_the_command_prints_json(path: Path) -> None:
    command = [sys.executable, "-m", "ambar", "references", str(path), "--group", "run"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(done.stdout) == ambar.references(path, group="run")


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", np.arange(100_000))
    refs = ambar.references(path)["refs"]
    end = max(start + length for _, start, length in (refs[k] for k in refs if "/c" in k))
    data = bytearray(path.read_bytes())
    data[end + 3] ^= 1  # in the index, which follows the last chunk
    path.write_bytes(data)
    with pytest.raises(ambar.CorruptError, match="/a"):
        ambar.references(path)


def test_virtualizarr(path: Path) -> None:
    pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    from ambar.virtualizarr import AmbarParser

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    manifests = AmbarParser()(str(path), registry)
    group = zarr.open_group(manifests, mode="r")
    check(lambda name: group[name][...])
    with pytest.raises(ValueError, match="local path"):
        AmbarParser()("s3://bucket/x.ambar", registry)


def test_icechunk_refers_to_the_chunks(path: Path) -> None:
    virtualizarr = pytest.importorskip("virtualizarr")
    icechunk = pytest.importorskip("icechunk")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    from ambar.virtualizarr import AmbarParser

    place = f"{path.parent.as_uri()}/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(place, icechunk.local_filesystem_store(str(path.parent)))
    )
    repository = icechunk.Repository.create(
        icechunk.in_memory_storage(), config, icechunk.containers_credentials({place: None})
    )
    session = repository.writable_session("main")
    with virtualizarr.open_virtual_dataset(
        path.as_uri(),
        registry=ObjectStoreRegistry({"file://": LocalStore()}),
        parser=AmbarParser("run", ["empty"]),
        loadable_variables=[],
    ) as dataset:
        assert set(dataset.variables) == {"column", "smooth"}
        dataset.vz.to_icechunk(session.store)
    read = xr.open_zarr(session.store, consolidated=False, chunks=None)
    np.testing.assert_array_equal(read["column"], values()["run/column"] * 2)
    assert 0 < np.abs(read["smooth"] - values()["run/smooth"]).max() <= 0.25

"""Stores that processes without a connection to each other write together, and dask's clusters."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.distributed
import ambar.xarray
from ambar.distributed import ArrayRegion, Invitation
from ambar.parallel.cluster import scratch_in
from ambar.parallel.division import divide
from tests.helpers.netcdf_files import profile, same, write
from tests.helpers.paths import RAMSES
from tests.helpers.s3_server import BUCKET, client_of, options_of, s3_server
from tests.helpers.store_contents import ambars, assert_same

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
xr = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

SHAPE = (6, 40, 30)
ARRAYS: dict[str, Any] = {
    "run/density": {"shape": SHAPE, "dtype": "f8", "blocks": (2, 40, 30), "dims": ["t", "y", "x"]}
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.ambar"


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two processes, whose dead workers are replaced."""
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def storage() -> Iterator[dict[str, str]]:
    """The storage options of a server with a bucket."""
    with s3_server() as endpoint:
        client_of(endpoint).create_bucket(Bucket=BUCKET)
        yield options_of(endpoint)


def values_of(region: ArrayRegion) -> np.ndarray:
    return np.arange(float(np.prod(SHAPE))).reshape(SHAPE)[region.slices]


def write_region_of(invitation: Invitation, region: ArrayRegion, factor: float = 1.0) -> bytes:
    with invitation.writer() as writer:
        writer.write_region(region.path, factor * values_of(region), region.start)
        return writer.receipt()


def read_by_zarr(path: Path, name: str) -> Any:
    with zarr.storage.ZipStore(path, mode="r") as files:
        return zarr.open_group(files, mode="r")[name][:]


@pytest.mark.parametrize("error_bound", [None, 1e-3])
@pytest.mark.parametrize("shape", [(1 << 18,), (64, 64, 64)])
def test_chunks_of_parts_are_those_of_whole_arrays(
    shape: tuple[int, ...], error_bound: float | None, tmp_path: Path
) -> None:
    """Limits of chunks are in Rust, for arrays that are written whole, and in Python."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", np.random.default_rng(0).random(shape), error_bound=error_bound)
    array = ambar.open_store(tmp_path / "x.ambar")["x"]
    found = divide(8, [[side] for side in shape], has_bound=error_bound is not None)
    assert (found.chunks, found.shards) == (array.chunks, array.shards)


def test_processes_write_one_file(path: Path) -> None:
    with ambar.distributed.open(path, arrays=ARRAYS) as commit:
        commit.attrs["title"] = "a run"
        commit.create_array("run/time", np.arange(6.0), attrs={"units": "s"})
        commit.create_array(
            "run/lossy",
            shape=SHAPE,
            dtype="f4",
            blocks=(3, 20, 30),
            error_bound="1e-3 of range",
            value_range=(0, 7200),
            sample=np.linspace(0, 7200, 7200, dtype="f4").reshape(SHAPE),
        )
        child = multiprocessing.get_context("fork").Process(target=commit.close)
        child.start()
        child.join()
        regions = commit.regions("run/density")
        assert [region.start for region in regions] == [(0, 0, 0), (2, 0, 0), (4, 0, 0)]
        with multiprocessing.get_context("fork").Pool(2) as pool:
            receipts = pool.starmap(
                write_region_of, [(commit.invitation, region) for region in regions]
            )
        for region in commit.regions("run/lossy"):
            with pickle.loads(pickle.dumps(commit.invitation)).writer() as writer:
                writer.write_region(region.path, values_of(region).astype("f4"), region.start)
                receipts.append(writer.receipt())
        assert not path.exists()
        commit.finish(receipts, message="of tasks")
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]
    expected = values_of(ArrayRegion("", (0, 0, 0), SHAPE))
    np.testing.assert_array_equal(read_by_zarr(path, "run/density"), expected)
    store = ambar.open_store(path)
    assert np.abs(store["run/lossy"][:] - expected).max() <= 7.2
    assert store["run/density"].dims == ("t", "y", "x")
    assert store.attrs["title"] == "a run"
    assert ambar.log(path)[0].message == "of tasks"


def test_the_last_receipt_wins_and_lost_tasks_are_named(path: Path) -> None:
    with ambar.distributed.open(path, arrays=ARRAYS) as commit:
        first, second, third = commit.regions()
        lost = write_region_of(commit.invitation, first, 7.0)
        assert len(lost) < 500
        receipts = [write_region_of(commit.invitation, region, 5.0) for region in (first, second)]
        receipts += [write_region_of(commit.invitation, first)]
        with pytest.raises(ValueError, match=r"none of 1 region: run/density at \(4, 0, 0\)"):
            commit.finish(receipts)
        assert commit.missing(receipts) == [third]
        receipts += [write_region_of(commit.invitation, region) for region in (second, third)]
        commit.finish(receipts)
    store = ambar.open_store(path)
    np.testing.assert_array_equal(
        store["run/density"][:], values_of(ArrayRegion("", (0, 0, 0), SHAPE))
    )
    attempts = [json.loads(one)["entries"][0][1]["len"] for one in (lost, *receipts[:2])]
    assert store.usage()["dead"] >= sum(attempts)
    ambar.compact(path)
    assert ambar.open_store(path).usage()["dead"] == 0
    np.testing.assert_array_equal(
        store["run/density"][:], values_of(ArrayRegion("", (0, 0, 0), SHAPE))
    )


def test_nothing_is_committed_without_finish(path: Path) -> None:
    with ambar.create(path) as writer:
        writer.create_array("x", np.arange(8.0), chunks=(4,), shards=(4,))
    before = path.read_bytes()
    commit = ambar.distributed.open(path, "a")
    commit.update_array("x")
    with commit.invitation.writer() as writer:
        writer.write_region("x", np.zeros(4), (4,))
        receipt = writer.receipt()
        commit.cancel()
        with pytest.raises(ValueError, match="the commit has ended"):
            writer.write_region("x", np.zeros(4), (0,))
        with pytest.raises(ValueError, match="the commit has ended"):
            writer.receipt()
    assert path.read_bytes() == before
    with (
        pytest.raises(ValueError, match=r"regions begin and end at multiples of \[4\]"),
        ambar.distributed.open(path, "a") as commit,
    ):
        commit.update_array("x", (4,), (4,))
        commit.update_array("x", (2,), (2,))
        commit.regions()
    with pytest.raises(ValueError, match="nothing is committed"), ambar.distributed.open(path, "a"):
        pass
    with (
        pytest.raises(ValueError, match="receipt 0 is of another commit"),
        ambar.distributed.open(path, "a") as commit,
    ):
        commit.finish([receipt])
    assert path.read_bytes() == before
    # The next commit, which begins after the claimed bytes, removes the claims.
    with ambar.create(path, "a") as store:
        store.create_array("y", np.arange(8.0))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_wrong_regions_and_values_are_refused(path: Path) -> None:
    with ambar.distributed.open(path, arrays=ARRAYS) as commit:
        with commit.invitation.writer() as writer:
            with pytest.raises(ValueError, match=r"multiples of \[2, 40, 30\]"):
                writer.write_region("run/density", np.zeros((1, 40, 30)), (0, 0, 0))
            with pytest.raises(ValueError, match="expected values of float64, found .* float32"):
                writer.write_region("run/density", np.zeros((2, 40, 30), "f4"), (0, 0, 0))
            with pytest.raises(KeyError, match="did you mean run/density"):
                writer.write_region("run/densty", np.zeros((2, 40, 30)), (0, 0, 0))
        with pytest.raises(ValueError, match="invited already"):
            commit.create_group("late")
        with pytest.raises(ValueError, match="expected the bytes of an invitation"):
            Invitation(b"{}").writer()
        with pytest.raises(ValueError, match="not a valid receipt"):
            commit.finish([b"{}"])
        with pytest.raises(ValueError, match=r"outside of the array of \[6, 40, 30\]"):
            commit.invitation.writer().write_region("run/density", np.zeros((2, 40)), (0, 0))
        (folder := path.parent / "receipts").mkdir()
        with commit.invitation.writer() as writer:
            writer.save_receipt(folder / "0.receipt")
        (folder / "1.receipt").write_bytes(b"{}")
        with pytest.raises(ValueError, match=r"receipts/1\.receipt: .*not a valid receipt"):
            commit.finish(folder)
        with pytest.raises(NotADirectoryError, match="a folder with files"):
            commit.finish(path / "none", partial=True)
        commit.cancel()


def test_a_killed_coordinator_leaves_nothing_that_tasks_can_write(path: Path) -> None:
    with ambar.create(path) as writer:
        writer.create_array("x", np.arange(8.0), chunks=(4,), shards=(4,))
    invitation = path.with_name("invitation")
    program = f"""
        import os, signal, ambar.distributed
        commit = ambar.distributed.open({str(path)!r}, "a")
        commit.update_array("x")
        commit.invitation.save({str(invitation)!r})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False)
    assert done.returncode == -signal.SIGKILL
    with Invitation.load(invitation).writer() as task:
        task.write_region("x", np.zeros(4), (0,))
        with ambar.create(path, "a") as writer:
            writer.create_array("y", np.arange(8.0))
            with pytest.raises(ValueError, match="the commit has ended"):
                task.write_region("x", np.zeros(4), (4,))
    np.testing.assert_array_equal(ambar.open_store(path)["x"][:], np.arange(8.0))
    np.testing.assert_array_equal(ambar.open_store(path)["y"][:], np.arange(8.0))


def fatal(values: np.ndarray, place: Path) -> np.ndarray:
    """Kill the worker that computes a block for the first time."""
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return values
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
    return values


def test_workers_of_a_cluster_write_and_may_die(
    path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(1).normal(size=(60, 100)).cumsum(0)
    data = da.from_array(values, (10, 50))
    deadly = da.map_blocks(
        lambda block, block_id=None: (
            fatal(block, path.with_name("died")) if block_id == (4, 1) else block
        ),
        data,
        dtype=data.dtype,
    )
    scalar = da.from_array(np.float64(7.5))
    dataset = xr.Dataset(
        {"a": (("t", "x"), deadly), "b": ("t", np.arange(60.0)), "k": ((), scalar)}
    )
    received: list[str] = []
    region = ambar.Writer.write_region

    def write_region(writer: ambar.Writer, name: str, *rest: Any) -> None:
        received.append(name)
        region(writer, name, *rest)

    monkeypatch.setattr(ambar.Writer, "write_region", write_region)
    with client.as_current():
        dataset.ambar.write(path)
        assert path.with_name("died").exists()
        np.testing.assert_array_equal(read_by_zarr(path, "a"), values)
        assert xr.open_dataset(path, engine="ambar")["k"].item() == 7.5
        # Workers write other rows, of chunks of the store.
        xr.Dataset({"a": (("t", "x"), data * 2), "b": ("t", np.ones(60))}).ambar.write(
            path, append_dim="t"
        )
        assert received == []
        # Of a region that begins and ends within chunks, the ends come to this process.
        part = xr.Dataset({"a": (("t", "x"), data[:40] * 3)})
        part.ambar.write(path, region={"t": slice(15, 55), "x": slice(0, 100)})
    assert set(received) == {"a"}
    expected = np.concatenate([values, values * 2])
    expected[15:55] = values[:40] * 3
    np.testing.assert_array_equal(read_by_zarr(path, "a"), expected)
    np.testing.assert_array_equal(ambar.open_store(path)["b"][60:], np.ones(60))


def objects_of(storage: dict[str, str], name: str) -> dict[str, bytes]:
    """The objects of a store, read by boto3, without those below `.ambar`."""
    service = client_of(storage["endpoint"])
    found = service.list_objects_v2(Bucket=BUCKET, Prefix=f"{name}/")["Contents"]
    keys = [entry["Key"] for entry in found if "/.ambar/" not in entry["Key"]]
    return {key: service.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}


def test_processes_put_objects_of_one_store(storage: dict[str, str]) -> None:
    url, expected = f"s3://{BUCKET}/tasks/", values_of(ArrayRegion("", (0, 0, 0), SHAPE))
    with ambar.distributed.open(url, arrays=ARRAYS, storage_options=storage) as commit:
        commit.create_array("run/time", np.arange(6.0))
        regions = commit.regions()
        lost = write_region_of(commit.invitation, regions[0], 7.0)
        with multiprocessing.get_context("spawn").Pool(2) as pool:
            tasks = [(commit.invitation, region) for region in regions]
            receipts = pool.starmap(write_region_of, tasks)
        with pytest.raises(FileNotFoundError):
            ambar.open_store(url, storage_options=storage)
        commit.finish([lost, *receipts])
    store = ambar.open_store(url, storage_options=storage)
    np.testing.assert_array_equal(store["run/density"][:], expected)
    found = zarr.open_group(zarr.storage.MemoryStore(as_zarr(objects_of(storage, "tasks"))))
    np.testing.assert_array_equal(found["run/density"][:], expected)

    # Of a cancelled commit, and of two that begin together, one is visible.
    first, second, cancelled = (
        ambar.distributed.open(url, "a", storage_options=storage) for _ in range(3)
    )
    again: list[list[bytes]] = []
    for factor, commit in enumerate((first, second, cancelled), 2):
        commit.update_array("run/density", (2, 0, 0), (2, 40, 30))
        again.append([write_region_of(commit.invitation, regions[1], factor)])
    with cancelled.invitation.writer() as writer:
        cancelled.cancel()
        with pytest.raises(ValueError, match="the commit has ended"):
            writer.write_region("run/density", values_of(regions[1]), (2, 0, 0))
    with pytest.raises(ValueError, match="receipt 0 is of another commit"):
        first.finish(again[2])
    second.finish(again[1])
    with pytest.raises(ambar.BusyError, match="open it again and repeat"):
        first.finish(again[0])
    expected[2:4] *= 3
    store = ambar.open_store(url, storage_options=storage)
    np.testing.assert_array_equal(store["run/density"][:], expected)
    found = zarr.open_group(zarr.storage.MemoryStore(as_zarr(objects_of(storage, "tasks"))))
    np.testing.assert_array_equal(found["run/density"][:], expected)
    with pytest.raises(ambar.UnsupportedError, match="end the URL with '/'"):
        ambar.distributed.open(f"s3://{BUCKET}/x.ambar", storage_options=storage)


def as_zarr(objects: dict[str, bytes]) -> dict[str, Any]:
    from zarr.core.buffer import default_buffer_prototype

    buffer = default_buffer_prototype().buffer
    return {key.split("/", 1)[1]: buffer.from_bytes(value) for key, value in objects.items()}


def test_workers_of_a_cluster_put_objects_and_may_die(
    tmp_path: Path, client: Any, storage: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = np.random.default_rng(1).normal(size=(60, 100)).cumsum(0)
    data = da.from_array(values, (10, 50))
    deadly = da.map_blocks(
        lambda block, block_id=None: (
            fatal(block, tmp_path / "died") if block_id == (3, 1) else block
        ),
        data,
        dtype=data.dtype,
    )
    url = f"s3://{BUCKET}/cluster/"
    written: list[str] = []
    monkeypatch.setattr(ambar.Writer, "write_region", lambda _, name, *__: written.append(name))
    with client.as_current():
        xr.Dataset({"a": (("t", "x"), deadly)}).ambar.write(url, storage_options=storage)
        assert (tmp_path / "died").exists()
        more = xr.Dataset({"a": (("t", "x"), data * 2)})
        broken = xr.Dataset({"a": (("t", "x"), da.map_blocks(refused, data, dtype="f8"))})
        with pytest.raises(RuntimeError, match="on purpose"):
            broken.ambar.write(url, append_dim="t", storage_options=storage)
        more.ambar.write(url, append_dim="t", storage_options=storage)
        assert written == []
        monkeypatch.undo()
        with pytest.warns(UserWarning, match="go through the client: .*one process writes"):
            more.ambar.write(tmp_path / "folder.ambar", directory=True)
    np.testing.assert_array_equal(ambar.open_store(tmp_path / "folder.ambar")["a"][:], values * 2)
    found = ambar.open_store(url, storage_options=storage)
    np.testing.assert_array_equal(found["a"][:], np.concatenate([values, values * 2]))
    assert not [key for key in objects_of(storage, "cluster") if "task-" in key]


def refused(block: np.ndarray) -> np.ndarray:
    if block.shape[0]:
        raise RuntimeError("on purpose")
    return block


def test_workers_of_a_cluster_convert(tmp_path: Path, client: Any) -> None:
    run = RAMSES / "sedov3d_small"
    alone, shared = tmp_path / "alone.ambar", tmp_path / "shared.ambar"
    ambar.convert(run, alone, error_bound="1e-3 relative")
    steps: list[tuple[int, int]] = []
    done = ambar.convert(
        run,
        shared,
        error_bound="1e-3 relative",
        scheduler=client,
        progress=lambda *step: steps.append(step),
    )
    assert done.converted == ["output_00001", "output_00002"]
    assert (steps[:2], steps[-1]) == ([(1, 4), (2, 4)], (4, 4))
    assert_same(ambars(shared), ambars(alone))
    again = ambar.convert(run, shared, error_bound="1e-3 relative", mode="a")
    assert again.skipped == done.converted
    with pytest.raises(ValueError, match="expected a run of several outputs"):
        ambar.convert(run / "output_00002", tmp_path / "one.ambar", scheduler=client)

    damaged = tmp_path / "run"
    shutil.copytree(run, damaged, ignore=shutil.ignore_patterns("*.npz", "*.nml"))
    changed = damaged / "output_00001" / "info_00001.txt"
    shared.unlink()
    one, two = ["output_00001"], ["output_00002"]
    none: list[str] = []
    for expected in (one, none), (two, none), (none, one), (none, none):
        first = expected == (one, none)
        other = (damaged / "output_00002").rename(tmp_path / "other") if first else None
        if expected[1]:
            os.utime(changed, (1e9, 1e9))
        more: dict[str, Any] = {"mode": "a", "scheduler": client, "error_bound": "1e-3 relative"}
        done = ambar.convert(damaged, shared, **more)
        assert (done.converted, done.replaced) == expected
        assert len(done.skipped) == (1 if first else 2) - len(expected[0]) - len(expected[1])
        if other is not None:
            other.rename(damaged / "output_00002")
    ambar.convert(damaged, alone, mode="w", error_bound="1e-3 relative")
    assert_same(ambars(shared), ambars(alone))
    with pytest.raises(
        ValueError, match=r"shared.ambar: expected error_bound=.*as for the outputs"
    ):
        ambar.convert(damaged, shared, mode="a", scheduler=client)
    file = damaged / "output_00002" / "hydro_00002.out00001"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ambar.CorruptError, match=f"{damaged}/output_00002"):
        ambar.convert(damaged, tmp_path / "part.ambar", scheduler=client)
    part = ambar.convert(damaged, tmp_path / "part.ambar", scheduler=client, on_error="skip")
    assert (part.converted, list(part.failed)) == (["output_00001"], ["output_00002"])
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "alone.ambar",
        "part.ambar",
        "run",
        "shared.ambar",
    ]


def test_tasks_that_still_run_leave_no_folder(tmp_path: Path) -> None:
    """After an error of one task, the stores of others are removed while these write."""

    def create_files(folder: Path) -> None:
        with contextlib.suppress(OSError):
            for number in range(100_000):
                (folder / str(number)).touch()

    for _ in range(20):
        with scratch_in(tmp_path) as scratch:
            task = threading.Thread(target=create_files, args=(scratch,))
            task.start()
            time.sleep(0.01)
        task.join()
    assert not list(tmp_path.iterdir())


def test_workers_of_a_cluster_convert_to_objects(
    tmp_path: Path, client: Any, storage: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run, url = RAMSES / "sedov3d_small", f"s3://{BUCKET}/run/"
    more: dict[str, Any] = {"scheduler": client, "storage_options": storage}
    assert len(ambar.convert(run, url, **more).converted) == 2
    again = ambar.convert(run, url, mode="a", **more)
    assert (again.converted, len(again.skipped)) == ([], 2)
    ambar.convert(run, "alone.ambar")
    found, expected = (
        ambar.open_store(url, storage_options=storage),
        ambar.open_store("alone.ambar"),
    )
    assert sorted(found) == sorted(expected)
    for name in expected:
        np.testing.assert_array_equal(found[name][:], expected[name][:])
    files = [write(profile(number), tmp_path / f"p{number}.zarr") for number in range(3)]
    ambar.ingest(files, f"s3://{BUCKET}/profiles.ambar", **more)
    profiles = ambar.open_collection(f"s3://{BUCKET}/profiles.ambar", storage_options=storage)
    same(profiles["p2"], files[2])
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".ambar", *[".zarr"] * 3]


def test_workers_of_a_cluster_ingest(tmp_path: Path, client: Any) -> None:
    folder = tmp_path / "files"
    files = [write(profile(number), folder / f"p{number}.zarr") for number in range(7)]
    target = tmp_path / "x.ambar"
    ambar.ingest(files[:5], target, error_bound={"temperature": 0.01})
    broken = folder / "p9.zarr"
    broken.mkdir()
    broken.joinpath("zarr.json").write_text("{")
    address = client.scheduler.address
    done = ambar.convert(folder, target, mode="a", on_error="skip", scheduler=address)
    assert (done.converted, list(done.failed)) == (["p5", "p6"], [str(broken)])
    assert len(done.skipped) == 5
    datasets = ambar.open_collection(target)
    assert datasets.names == [f"p{number}" for number in range(7)]
    xr.testing.assert_allclose(datasets["p6"].load(), xr.load_dataset(files[6]), atol=0.01)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["files", "x.ambar"]


def test_workers_of_a_cluster_add_datasets(tmp_path: Path, client: Any) -> None:
    files = [write(profile(number), tmp_path / f"p{number}.zarr") for number in range(4)]
    lazy = {file.stem: xr.open_dataset(file, engine="zarr", chunks={}) for file in files}
    with ambar.open_collection(tmp_path / "x.ambar", "w-", profile="small") as collection:
        collection.add("first", {"oxygen": ("depth", [210.0, 195.5])})
        collection.add_many(lazy, scheduler=client)
        with pytest.raises(ValueError, match="a dataset 'p1' exists already"):
            collection.add_many({"p1": lazy["p1"]}, scheduler=client)
    found = ambar.open_collection(tmp_path / "x.ambar")
    assert found.names == ["first", "p0", "p1", "p2", "p3"]
    same(found["p3"], files[3])
    # All batches of the workers are one family, and no store of theirs is open.
    alone = ambar.open_collection(tmp_path / "alone.ambar", "w-")
    alone.add_many(lazy)
    assert len(found.families) == 1 + len(alone.families)
    alone.close()
    if sys.platform == "linux":
        end = time.monotonic() + 5
        # On a busy machine, a store is closed some time after its last use.
        while open_parts() and time.monotonic() < end:
            gc.collect()
            time.sleep(0.05)
        assert not open_parts()


def open_parts() -> list[str]:
    """Return the stores of tasks that this process has open."""
    descriptors = Path("/proc/self/fd").iterdir()
    links = [str(link.readlink()) for link in descriptors if link.is_symlink()]
    return [link for link in links if ".parts-" in link]

"""Stores of many objects on S3: they grow, have several writers, and Zarr readers read them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.s3_server import BUCKET
from tests.helpers.sample_outputs import output


def url(name: str) -> str:
    return f"s3://{BUCKET}/{name}/"


def as_zarr(name: str, options: dict[str, str]) -> Any:
    """Open a store with zarr-python, over the objects of another library."""
    zarr = pytest.importorskip("zarr")
    obstore = pytest.importorskip("obstore.store")
    store = obstore.S3Store(
        BUCKET,
        prefix=name,
        config={**options, "virtual_hosted_style_request": "false"},
        client_options={"allow_http": True},
    )
    return zarr.open_group(zarr.storage.ObjectStore(store, read_only=True), mode="r")


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 500))


def write(name: str, options: dict[str, str], mode: Any = "w-") -> ambar.Writer:
    return ambar.create(url(name), mode, profile="raw", storage_options=options)


def test_a_store_grows_and_zarr_reads_it(options: dict[str, str]) -> None:
    with write("steps", options) as writer:
        writer.create_array("run/x", rows(25), dims=["t", "x"], chunks=(10, 500))
        writer.create_array("old", np.arange(5))
    reader = ambar.open_store(url("steps"), storage_options=options)
    expected = rows(25)
    for step in range(1, 4):
        with write("steps", options, "a") as writer:
            writer.append("run/x", rows(7, step))
            writer.write_region("run/x", rows(10, 10 + step), start=[0, 0])
            writer.attrs["step"] = step
            if step == 2:
                writer.remove("old")
        expected = np.concatenate([expected, rows(7, step)])
        expected[:10] = rows(10, 10 + step)
        store = ambar.open_store(url("steps"), storage_options=options)
        np.testing.assert_array_equal(store["run/x"][...], expected)
        assert store.attrs["step"] == step
        assert store.verify()["unfinished"] == 0
        there = as_zarr("steps", options)
        np.testing.assert_array_equal(there["run/x"][...], expected)
        assert there.attrs["step"] == step
        assert ("old" in there) == (step < 2)
    # A reader of the first commit learns that the chunks have been replaced.
    with pytest.raises(ambar.BusyError, match="open it again"):
        reader["run/x"][:10]
    assert reader.refresh()
    np.testing.assert_array_equal(reader["run/x"][...], expected)


def test_opening_takes_two_requests(
    options: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with write("few", options) as writer:
        writer.create_array("x", rows(30), chunks=(10, 500))
    with caplog.at_level(logging.INFO, logger="werkzeug"):
        caplog.clear()
        store = ambar.open_store(url("few"), storage_options=options)
        assert store["x"].shape == (30, 500)
        requests = [record.getMessage() for record in caplog.records]
    assert len(requests) == 2, requests


def test_of_two_writers_the_second_one_repeats(options: dict[str, str]) -> None:
    with write("shared", options) as writer:
        writer.create_array("x", np.arange(3))
    first, second = write("shared", options, "a"), write("shared", options, "a")
    for number, writer in enumerate((first, second)):
        writer.create_array("x", np.arange(3) + number)
        writer.create_array(f"of/{number}", np.arange(number, 5))
    second.commit()
    second.close()
    with pytest.raises(ambar.BusyError, match="open it again and repeat"):
        first.commit()
    first.close()
    store = ambar.open_store(url("shared"), storage_options=options)
    assert sorted(store) == ["of/1", "x"]
    np.testing.assert_array_equal(store["x"][:], [1, 2, 3])
    with write("shared", options, "a") as writer:
        writer.create_array("of/0", np.arange(5))
    store = ambar.open_store(url("shared"), storage_options=options)
    assert sorted(store) == ["of/0", "of/1", "x"]
    np.testing.assert_array_equal(as_zarr("shared", options)["of/0"][:], np.arange(5))
    with pytest.raises(FileExistsError):
        write("shared", options)


def test_an_error_changes_nothing(options: dict[str, str], client: Any) -> None:
    with write("kept", options) as writer:
        writer.create_array("x", np.arange(3))

    def change() -> None:
        with write("kept", options, "a") as writer:
            writer.create_array("x", np.arange(9))
            writer.create_array("y", rows(30))
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        change()
    assert list(ambar.open_store(url("kept"), storage_options=options)) == ["x"]
    np.testing.assert_array_equal(as_zarr("kept", options)["x"][:], np.arange(3))
    # Objects of the interrupted writer do not disturb the next one.
    with write("kept", options, "a") as writer:
        writer.create_array("y", rows(20))
    store = ambar.open_store(url("kept"), storage_options=options)
    np.testing.assert_array_equal(store["y"][...], rows(20))
    np.testing.assert_array_equal(as_zarr("kept", options)["y"][...], rows(20))
    # Zarr stores of other programs are not replaced.
    client.put_object(Bucket=BUCKET, Key="foreign/y/zarr.json", Body=b"{}")
    for mode in ("w-", "w"):
        with pytest.raises(FileExistsError, match="other objects are below the URL"):
            write("foreign", options, mode)
    assert client.get_object(Bucket=BUCKET, Key="foreign/y/zarr.json")["Body"].read() == b"{}"


def test_runs_series_and_collections_grow(options: dict[str, str], tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    run = tmp_path / "run"
    run.mkdir()
    for number in (1, 2):
        source = output("sedov").parent / f"output_{number:05}"
        (run / source.name).symlink_to(source)
        done = ambar.convert(run, url("sedov"), mode="a", storage_options=options)
        assert done.converted == [source.name]
        assert len(done.skipped) == number - 1
    series = ambar.open(url("sedov"), storage_options=options)
    assert isinstance(series, ambar.Series)
    assert series.outputs == [1, 2]
    with pytest.raises(FileExistsError, match="already exists"):
        ambar.convert(run, url("sedov"), storage_options=options)
    # As one object, and as a local folder.
    one = f"s3://{BUCKET}/sedov.ambar"
    ambar.convert(url("sedov"), one, storage_options=options)
    found = ambar.open_store(one, storage_options=options)
    stored = ambar.open_store(url("sedov"), storage_options=options)
    assert list(found) == list(stored)
    for name in found:
        np.testing.assert_array_equal(found[name][...], stored[name][...])
    sphere = pyvista.Sphere()
    for time in range(3):
        mode: Any = "a" if time else "w-"
        with ambar.open_mesh_series(url("motion"), mode, storage_options=options) as motion:
            sphere["height"] = sphere.points[:, 2] + time
            motion.add(sphere, float(time))
        with ambar.open_collection(url("casts"), mode, storage_options=options) as casts:
            casts.add(f"cast{time}", {"oxygen": ("depth", np.arange(3.0 + time))})
            casts.commit()
            casts.add(f"more{time}", {"oxygen": ("depth", np.arange(2.0))})
    motion = ambar.open_mesh_series(url("motion"), storage_options=options)
    assert motion.times == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(motion[2].read()["height"], sphere["height"])
    casts = ambar.open_collection(url("casts"), storage_options=options)
    assert casts.names == ["cast0", "more0", "cast1", "more1", "cast2", "more2"]
    assert casts["cast2"]["oxygen"].values.tolist() == [0, 1, 2, 3, 4]


def test_a_downloaded_directory_is_a_folder(
    options: dict[str, str], client: Any, tmp_path: Path
) -> None:
    with write("copied", options) as writer:
        writer.create_array("x", rows(20), chunks=(10, 500))
    with write("copied", options, "a") as writer:
        writer.write_region("x", rows(10, 1), start=[10, 0])
    expected = np.concatenate([rows(20)[:10], rows(10, 1)])
    here = tmp_path / "copied"
    for item in client.list_objects_v2(Bucket=BUCKET, Prefix="copied/")["Contents"]:
        target = tmp_path / item["Key"]
        target.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(BUCKET, item["Key"], str(target))
    np.testing.assert_array_equal(ambar.open_store(here)["x"][...], expected)
    with ambar.create(here, "a", fsync=False) as writer:
        writer.create_array("y", np.arange(3))
    store = ambar.open_store(here)
    np.testing.assert_array_equal(store["x"][...], expected)
    assert store.verify()["unfinished"] == 0

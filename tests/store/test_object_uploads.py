"""Stores written to S3: as one object, with the content of a file, or nothing at all."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.xarray
from tests.helpers.command_line import run
from tests.helpers.s3_server import BUCKET, KEYS
from tests.helpers.sample_outputs import output

xr = pytest.importorskip("xarray")


def url(name: str) -> str:
    return f"s3://{BUCKET}/{name}"


def keys(client: Any, prefix: str = "") -> list[str]:
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
    return [item["Key"] for item in found.get("Contents", [])]


def uploads(client: Any) -> list[Any]:
    found: list[Any] = client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return found


def messages(place: str, options: dict[str, str]) -> list[str]:
    return [commit.message for commit in ambar.log(place, storage_options=options)]


def large() -> np.ndarray:
    """More than two parts of an upload, in bytes that do not compress."""
    return np.random.default_rng(3).random((5, 1 << 20))


def test_an_object_has_the_content_of_a_file(
    options: dict[str, str], client: Any, tmp_path: Path
) -> None:
    local = str(tmp_path / "large.ambar")
    for place, given in [(url("large.ambar"), options), (local, None)]:
        with ambar.create(place, profile="raw", fsync=False, storage_options=given) as writer:
            writer.create_array("small", np.arange(1000))
            writer.commit("one")
            writer.create_array("large", large())
            writer.create_array("rows", shape=(0,), dtype="f8", chunks=(100,))
            for row in range(5):
                writer.append("rows", [float(row)])
            writer.attrs["title"] = "a run"
            writer.commit("two")
            assert not given or keys(client, "large.ambar") == []
    here, there = (
        ambar.open_store(local),
        ambar.open_store(url("large.ambar"), storage_options=options),
    )
    assert list(there) == list(here) == ["small", "large", "rows"]
    for name in here:
        np.testing.assert_array_equal(there[name][...], here[name][...])
    assert there.attrs["title"] == "a run"
    assert there.usage() == here.usage()
    assert there.verify()["unfinished"] == 0
    assert messages(url("large.ambar"), options) == ["two", "one"]
    # Another reader of ZIP files finds no damage.
    body = client.get_object(Bucket=BUCKET, Key="large.ambar")["Body"].read()
    assert zipfile.ZipFile(io.BytesIO(body)).testzip() is None
    assert uploads(client) == []


def test_an_error_leaves_nothing(options: dict[str, str], client: Any) -> None:
    def write() -> None:
        with ambar.create(url("failed.ambar"), profile="raw", storage_options=options) as writer:
            writer.create_array("x", large())
            writer.commit()
            assert len(uploads(client)) == 1
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        write()
    assert uploads(client) == []
    # Without a commit.
    writer = ambar.create(url("failed.ambar"), profile="raw", storage_options=options)
    writer.create_array("x", large())
    writer.close()
    assert uploads(client) == []
    assert keys(client, "failed") == []


@pytest.mark.parametrize("is_large", [False, True])
def test_existing_objects_are_kept(options: dict[str, str], client: Any, is_large: bool) -> None:
    place = url("taken.ambar")
    writer = ambar.create(place, profile="raw", storage_options=options)
    writer.create_array("x", large() if is_large else np.arange(3))
    writer.commit()
    client.put_object(Bucket=BUCKET, Key="taken.ambar", Body=b"of others")
    with pytest.raises(FileExistsError, match="taken.ambar") as error:
        writer.close()
    assert KEYS["secret_access_key"] not in str(error.value)
    with pytest.raises(FileExistsError, match='mode="w"'):
        ambar.create(place, storage_options=options)
    with pytest.raises(FileExistsError, match="another file"):
        ambar.convert(output("sedov"), place, mode="w", storage_options=options)
    assert client.get_object(Bucket=BUCKET, Key="taken.ambar")["Body"].read() == b"of others"
    with ambar.create(place, "w", storage_options=options) as writer:
        writer.create_array("x", np.arange(3))
    assert list(ambar.open_store(place, storage_options=options)) == ["x"]
    assert uploads(client) == []
    client.delete_object(Bucket=BUCKET, Key="taken.ambar")


def test_what_objects_cannot_do(options: dict[str, str], tmp_path: Path) -> None:
    place = url("once.ambar")
    with pytest.raises(ambar.UnsupportedError, match='ends with "/"'):
        ambar.create(place, "a", storage_options=options)
    with pytest.raises(ambar.UnsupportedError, match="s3://BUCKET/KEY"):
        ambar.create("http://127.0.0.1:1/x.ambar")
    with pytest.raises(ValueError, match="as a string"):
        ambar.create(Path(place), storage_options=options)
    with pytest.raises(ValueError, match="not for paths"):
        ambar.create(tmp_path / "x.ambar", storage_options=options)
    with (
        pytest.raises(FileNotFoundError, match="bucket"),
        ambar.create("s3://absent/x.ambar", storage_options=options) as writer,
    ):
        writer.create_array("x", np.arange(3))
    with (
        pytest.raises(ambar.UnsupportedError, match="whole chunks"),
        ambar.create(place, profile="raw", storage_options=options) as writer,
    ):
        writer.create_array("x", shape=(10_000_000,), dtype="f8", chunks=(5_000_000,))
        writer.write_region("x", np.zeros(5_000_000), start=[0])
        writer.write_region("x", np.ones(3), start=[0])


def test_every_kind_is_converted(
    options: dict[str, str],
    tmp_path: Path,
) -> None:
    pyvista = pytest.importorskip("pyvista")
    # A run of two outputs, with a commit for each, is one upload.
    series = ambar.convert(output("sedov").parent, url("sedov.ambar"), storage_options=options)
    assert series.converted == ["output_00001", "output_00002"]
    found = ambar.open_store(url("sedov.ambar"), storage_options=options)
    assert messages(url("sedov.ambar"), options) == ["output_00002", "output_00001"]
    assert series.stored_bytes == found.usage()["total"]
    # A store from a store, and stores in one.
    one = ambar.convert(url("sedov.ambar"), url("last.ambar"), steps=-1, storage_options=options)
    assert one.converted == ["output_00002"]
    ambar.convert(url("sedov.ambar"), tmp_path / "first.ambar", steps=0, storage_options=options)
    ambar.merge(
        [tmp_path / "first.ambar", url("last.ambar")], url("both.ambar"), storage_options=options
    )
    merged = ambar.open(url("both.ambar"), storage_options=options)
    assert isinstance(merged, ambar.Series)
    density = [snapshot.amr.read("density")["density"] for snapshot in merged]
    for number, there in enumerate(density, 1):
        here = ambar.open_snapshot(output("sedov").parent / f"output_{number:05}")
        np.testing.assert_array_equal(np.sort(here.amr.read("density")["density"]), np.sort(there))
    # Meshes.
    sphere = pyvista.Sphere()
    with ambar.open_mesh_series(url("motion.ambar"), "w-", storage_options=options) as motion:
        for time in range(3):
            sphere["height"] = sphere.points[:, 2] + time
            motion.add(sphere, float(time))
    motion = ambar.open_mesh_series(url("motion.ambar"), storage_options=options)
    assert motion.times == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(motion[2].read()["height"], sphere["height"])
    # Collections commit often.
    with ambar.open_collection(url("casts.ambar"), "w-", storage_options=options) as casts:
        for number in range(3):
            casts.add(f"cast{number}", {"oxygen": ("depth", np.arange(3.0 + number))})
            casts.commit()
    casts = ambar.open_collection(url("casts.ambar"), storage_options=options)
    assert casts.names == ["cast0", "cast1", "cast2"]
    # xarray.
    dataset = xr.Dataset({"a": (("x", "y"), large()[:, :1000])}).chunk({"x": 2})
    dataset.ambar.write(url("data.ambar"), storage_options=options)
    back = xr.open_dataset(url("data.ambar"), engine="ambar", storage_options=options)
    xr.testing.assert_identical(back.load(), dataset.compute())
    with pytest.raises(FileExistsError):
        dataset.ambar.write(url("data.ambar"), storage_options=options)
    with pytest.raises(ambar.UnsupportedError, match='mode="a"'):
        dataset.ambar.write(url("data.ambar"), append_dim="x", storage_options=options)


def test_the_command_line_writes_to_urls(
    endpoint: str,
    options: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS["access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS["secret_access_key"])
    code, printed, errors = run(capsys, "convert", output("sedov"), url("cli.ambar"))
    assert (code, errors) == (0, "")
    assert printed.startswith("s3://ambar/cli.ambar: ")
    assert "density" in ambar.open_snapshot(url("cli.ambar"), storage_options=options).amr.fields
    code, _, errors = run(capsys, "convert", output("sedov"), url("cli.ambar"))
    assert code == 4
    assert "--overwrite" in errors
    code, _, errors = run(capsys, "convert", output("sedov"), url("cli.ambar"), "--resume")
    assert code == 4
    assert 'ends with "/"' in errors

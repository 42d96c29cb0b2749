"""Stores on S3 and HTTP servers: read like files, with few requests, in bounded time."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.store.cache import place_of
from tests.helpers.range_server import RangeServer

boto3 = pytest.importorskip("boto3")
moto = pytest.importorskip("moto.server")
xr = pytest.importorskip("xarray")

KEYS = {"access_key_id": "ours", "secret_access_key": "secret"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """An S3 server on loopback."""
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test depends on the settings of the user."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.fixture
def options(endpoint: str) -> dict[str, str]:
    return {"endpoint": endpoint, "region": "us-east-1", **KEYS}


def values() -> np.ndarray:
    return np.random.default_rng(7).random((300, 2000))


@pytest.fixture(scope="module")
def stores_here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same store as a file and as a folder."""
    folder = tmp_path_factory.mktemp("stores")
    for name, directory in [("one.ambar", False), ("folder.ambar", True)]:
        with ambar.create(folder / name, directory=directory, fsync=False) as writer:
            writer.create_group("", {"title": "a run"})
            writer.create_array("cube", values(), dims=("time", "x"), chunks=(10, 500))
            for number in range(3):
                writer.create_array(
                    f"catalogue/{number}", np.arange(number, 5000), dims=(f"n{number}",)
                )
            writer.create_array("name", np.array(["a", "žluť"] * 150, dtype=object), dims=("time",))
    return folder


@pytest.fixture(scope="module")
def bucket(endpoint: str, stores_here: Path, stores: dict[str, Path]) -> str:
    """A bucket that holds those, and a snapshot."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )
    client.create_bucket(Bucket="data")
    for path in stores_here.rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "data", f"some/{path.relative_to(stores_here)}")
    client.upload_file(str(stores["gravpart"]), "data", "run.ambar")
    public = {"ACL": "public-read"}
    client.upload_file(str(stores_here / "one.ambar"), "data", "public.ambar", ExtraArgs=public)
    return "s3://data"


@pytest.mark.parametrize("name", ["one.ambar", "folder.ambar/", "folder.ambar"])
def test_a_store_on_s3(bucket: str, options: dict[str, str], name: str) -> None:
    store = ambar.open(f"{bucket}/some/{name}", storage_options=options)
    assert isinstance(store, ambar.Store)
    assert store.attrs["title"] == "a run"
    assert list(store) == ["cube", "catalogue/0", "catalogue/1", "catalogue/2", "name"]
    np.testing.assert_array_equal(store["cube"][7:280:3, ::-2], values()[7:280:3, ::-2])
    assert store["name"].read(slice(None)).tolist() == ["a", "žluť"] * 150
    assert store.verify()["chunks"] > 100
    assert store.location in repr(store)
    assert store.usage()["entries"] > 5


@pytest.mark.processes
def test_a_collection_on_s3_is_exported(
    bucket: str, options: dict[str, str], tmp_path: Path
) -> None:
    """The processes that write the files had no storage_options."""
    pytest.importorskip("netCDF4")
    with ambar.open_collection(tmp_path / "casts.ambar", "w-", fsync=False) as casts:
        casts.add("cast1", {"oxygen": ("depth", np.arange(3.0))})
    client = boto3.client(
        "s3",
        endpoint_url=options["endpoint"],
        region_name=options["region"],
        aws_access_key_id=options["access_key_id"],
        aws_secret_access_key=options["secret_access_key"],
    )
    client.upload_file(str(tmp_path / "casts.ambar"), "data", "casts.ambar")
    target = tmp_path / "files"
    done = ambar.export(f"{bucket}/casts.ambar", target, storage_options=options, processes=1)
    assert (done.exported, done.failed) == (["cast1"], {})
    with xr.open_dataset(target / "cast1.nc") as found:
        assert found.oxygen.values.tolist() == [0, 1, 2]


def test_a_snapshot_on_s3(bucket: str, options: dict[str, str], stores: dict[str, Path]) -> None:
    here, there = (
        ambar.open(stores["gravpart"]),
        ambar.open(f"{bucket}/run.ambar", storage_options=options),
    )
    assert isinstance(here, ambar.Snapshot)
    assert isinstance(there, ambar.Snapshot)
    assert there.info == here.info
    box = ambar.Box((0.2, 0.2, 0.2), (0.7, 0.6, 0.5))
    expected = here.amr.read(["density", "velocity_x"], region=box)
    found = there.amr.read(["density", "velocity_x"], region=box)
    assert len(found) == len(expected) > 0
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_array_equal(
        there.particles.read(["mass"])["mass"], here.particles.read(["mass"])["mass"]
    )


def test_settings_come_from_the_environment(
    bucket: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ours")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert len(ambar.open_store(f"{bucket}/some/one.ambar")) == 5
    assert len(ambar.open_store(f"{bucket}/public.ambar", storage_options={"anonymous": True})) == 5
    with pytest.raises(ambar.AmbarError, match="anonymous access is denied"):
        ambar.open_store(f"{bucket}/some/one.ambar", storage_options={"anonymous": True})


def test_profiles(
    bucket: str,
    options: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "config").write_text(
        f"[profile site]\nregion = us-east-1\nendpoint_url = {options['endpoint']}\n"
        "[profile login]\nsso_session = x\n"
    )
    keys = f"aws_access_key_id = {KEYS['access_key_id']}\naws_secret_access_key = secret\n"
    (tmp_path / "credentials").write_text(f"[site]\n{keys}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    url = f"{bucket}/some/one.ambar"
    assert ambar.open_store(url, storage_options={"profile": "site"}).attrs["title"] == "a run"
    monkeypatch.setenv("AWS_PROFILE", "site")
    assert ambar.open_store(url).attrs["title"] == "a run"
    with pytest.raises(ValueError, match="available: login, site"):
        ambar.open_store(url, storage_options={"profile": "other"})
    with pytest.raises(ambar.UnsupportedError, match="export-credentials --profile login"):
        ambar.open_store(url, storage_options={"profile": "login"})


def test_the_page_lists_all_options() -> None:
    page = (Path(__file__).parents[2] / "docs/howto/object-stores.md").read_text()
    for url in ("s3://bucket/x", "gs://bucket/x", "az://bucket/x", "https://host/x"):
        with pytest.raises(ValueError, match="available: ") as error:
            ambar.open(url, storage_options={"colour": "red"})
        for name in str(error.value).split("available: ")[1].split(", "):
            assert f"`{name}`" in page


def read_elsewhere(pickled: bytes) -> float:
    return float(pickle.loads(pickled).cube[3:5].sum())


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_xarray(bucket: str, options: dict[str, str], start: str) -> None:
    url = f"{bucket}/some/one.ambar"
    dataset = xr.open_dataset(url, engine="ambar", storage_options=options, chunks={})
    assert dataset.attrs["title"] == "a run"
    assert dataset.encoding["source"] == url
    np.testing.assert_array_equal(dataset.cube[:, 40].compute(), values()[:, 40])
    tree = xr.open_datatree(url, engine="ambar", storage_options=options)
    np.testing.assert_array_equal(tree["catalogue/1"], np.arange(1, 5000))
    # Without dask: a forked child has none of the threads of dask's pool.
    lazy = pickle.dumps(xr.open_dataset(url, engine="ambar", storage_options=options))
    with ProcessPoolExecutor(1, get_context(start)) as pool:
        total = pool.submit(read_elsewhere, lazy).result(timeout=120)
    assert total == pytest.approx(values()[3:5].sum())


def test_what_is_not_there(bucket: str, options: dict[str, str]) -> None:
    for url in [f"{bucket}/some/other.ambar", f"{bucket}/other/", "s3://other/one.ambar"]:
        with pytest.raises(FileNotFoundError, match=url.rstrip("/")):
            ambar.open(url, storage_options=options)


def test_invalid_options_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match='"endpiont".*endpoint, profile, region'):
        ambar.open("s3://data/x.ambar", storage_options={**options, "endpiont": "x"})
    with pytest.raises(ValueError, match="expected a URL"):
        ambar.open(tmp_path / "x.ambar", storage_options=options)
    with pytest.raises(ValueError, match="for URLs"):
        xr.open_dataset(tmp_path / "x.ambar", engine="ambar", storage_options=options)
    with pytest.raises(ValueError, match="storage options"):
        ambar.open("s3://data/x.ambar", storage_options={"access_key_id": "half"})
    with pytest.raises(ambar.UnsupportedError, match="s3://, gs://, az://, http://"):
        ambar.open("ftp://data/x.ambar")
    with pytest.raises(ValueError, match="s3://BUCKET/KEY"):
        ambar.open("s3://")


def test_few_requests(stores_here: Path) -> None:
    with RangeServer(stores_here) as server:
        store = ambar.open_store(f"{server.url}/one.ambar")
        assert server.take() == ["bytes=-524288"]
        together = store.read_together(f"catalogue/{number}" for number in range(3))
        assert len(server.take()) <= 1
        for number in range(3):
            np.testing.assert_array_equal(together[f"catalogue/{number}"], np.arange(number, 5000))
        np.testing.assert_array_equal(store["cube"][:, 700], values()[:, 700])
        # The index, and 30 chunks that lie close to each other, some megabytes in all.
        assert len(server.take()) <= 8


def test_columns_are_fetched_together(tmp_path: Path) -> None:
    columns = {name: np.random.default_rng(3).random(400_000) for name in "abcde"}
    with ambar.create(tmp_path / "t.ambar", fsync=False) as writer:
        writer._create_group(
            "t", {"ambar": {"kind": "table", "version": 1, "columns": list(columns)}}
        )
        for name, values in columns.items():
            writer.create_array(f"t/{name}", values, dims=("row",))
    with RangeServer(tmp_path) as server:
        store = ambar.open_store(f"{server.url}/t.ambar")
        server.take()
        found = store._core.table("/t").read(list(columns))
        assert len(server.take()) <= 22  # 5 indices, and 60 chunks of 16 MB in all
        for name, values in columns.items():
            np.testing.assert_array_equal(found[name], values)


def test_servers_that_know_no_ranges_from_the_end(stores_here: Path) -> None:
    with RangeServer(stores_here, suffixes=False, tags=False) as server:
        store = ambar.open_store(f"{server.url}/one.ambar?signature=secret")
        assert "secret" not in store.location
        assert [what.split("=")[0] for what in server.take()] == ["bytes", "HEAD", "bytes"]
        np.testing.assert_array_equal(store["cube"][299], values()[299])


def test_folders_over_http(stores_here: Path) -> None:
    with RangeServer(stores_here) as server:
        store = ambar.open_store(f"{server.url}/folder.ambar/")
        np.testing.assert_array_equal(store["cube"][299], values()[299])


def test_stores_of_other_programs(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(tmp_path / "theirs.zip", mode="w") as zipped:
        zarr.create_group(zipped).create_array("x", data=np.arange(100))
    zarr.create_group(tmp_path / "theirs").create_array("x", data=np.arange(100))
    with RangeServer(tmp_path) as server:
        there = ambar.open_store(f"{server.url}/theirs.zip")
        np.testing.assert_array_equal(there["x"][:], np.arange(100))
        # Without a list of the folder's files, its nodes are not known.
        with pytest.raises(ambar.AmbarError, match="theirs"):
            list(ambar.open_store(f"{server.url}/theirs/"))


def test_refusals(stores_here: Path) -> None:
    with RangeServer(stores_here, refuse=403) as server:
        options = {"endpoint": server.url, **KEYS}
        with pytest.raises(ambar.AmbarError, match="check the credentials"):
            ambar.open("s3://data/one.ambar", storage_options=options)
        with pytest.raises(ambar.AmbarError, match="denies access"):
            ambar.open(f"{server.url}/one.ambar")
    with (
        RangeServer(stores_here, ranges=False) as server,
        pytest.raises(ambar.UnsupportedError, match="parts of files"),
    ):
        ambar.open(f"{server.url}/one.ambar")


def test_passwords_are_in_no_message_and_no_repr(stores_here: Path) -> None:
    """Errors and reprs went to logs with the user, the password and the signature of a URL."""
    with RangeServer(stores_here) as server:
        place = server.url.replace("://", "://us-er:pass-word@")
        store = ambar.open_store(f"{place}/one.ambar?signature=sig-nature#frag-ment")
        kept = place_of(f"{place}/one.ambar?signature=sig-nature", {"secret_access_key": "k-ey"})
        shown = [repr(store), store.location, str(kept), repr(kept)]
        for url in (f"{place}/none.ambar?signature=sig-nature", f"{place}/none.ambar"):
            with pytest.raises(FileNotFoundError) as raised:
                ambar.open_store(url)
            shown += [str(raised.value), repr(raised.value)]
    with pytest.raises(ambar.AmbarError) as refused:
        ambar.open_store(
            f"{place}/one.ambar?signature=sig-nature", storage_options={"timeout": "1 s"}
        )
    shown += [str(refused.value)]
    with pytest.raises(ambar.AmbarError) as refused:
        ambar.open_store("ftp://us-er:pass-word@host/x")
    shown += [str(refused.value)]
    for text in shown:
        assert not any(secret in text for secret in ("pass-word", "sig-nature", "us-er", "k-ey"))


def test_passing_failures_are_passed_over(stores_here: Path) -> None:
    with RangeServer(stores_here, failures=2) as server:
        assert len(ambar.open_store(f"{server.url}/one.ambar")) == 5
        assert len(server.take()) == 3


def test_nothing_waits_for_ever(stores_here: Path) -> None:
    """A server that never answers is asked a few times; each request ends after `timeout`."""
    with (
        RangeServer(stores_here, silent=True) as server,
        pytest.raises(ambar.AmbarError, match="check the address"),
    ):
        ambar.open(f"{server.url}/one.ambar", storage_options={"timeout": "0.2 seconds"})
    assert len(server.take()) <= 8, "two requests, each with three retries"
    # The server is gone now.
    with pytest.raises(ambar.AmbarError, match="check the address"):
        ambar.open(f"{server.url}/one.ambar")


def test_damaged_objects(stores_here: Path, tmp_path: Path) -> None:
    sound = (stores_here / "one.ambar").read_bytes()
    with RangeServer(tmp_path) as server:
        for damaged in [b"", b"PK", sound[: len(sound) // 2], sound[:-1]]:
            (tmp_path / "x.ambar").write_bytes(damaged)
            with pytest.raises(ambar.CorruptError, match=r"x\.ambar"):
                ambar.open_store(f"{server.url}/x.ambar")
        changed = bytearray(sound)
        changed[len(sound) // 4] ^= 1
        (tmp_path / "x.ambar").write_bytes(changed)
        store = ambar.open_store(f"{server.url}/x.ambar")
        with pytest.raises(ambar.CorruptError, match="cube"):
            store["cube"][:]
        with pytest.raises(ambar.CorruptError, match="cube"):
            store.verify()


@pytest.mark.parametrize("tags", [True, False])
def test_replaced_objects(stores_here: Path, tmp_path: Path, tags: bool) -> None:
    shutil.copy(stores_here / "one.ambar", tmp_path)
    with RangeServer(tmp_path, tags=tags) as server:
        url = f"{server.url}/one.ambar"
        store, dataset = ambar.open_store(url), xr.open_dataset(url, engine="ambar")
        with ambar.create(tmp_path / "one.ambar", "a") as writer:
            writer.create_array("more", np.arange(9))
        with pytest.raises(ambar.BusyError, match="open it again"):
            store["cube"][3]
        with pytest.raises(ambar.BusyError, match="open it again"):
            dataset.cube[3].load()
        assert len(ambar.open_store(url)) == 6
        again = xr.open_dataset(url, engine="ambar")
        np.testing.assert_array_equal(again.cube[3], values()[3])

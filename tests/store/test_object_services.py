"""Stores on every kind of object store: S3, Google Cloud Storage and Azure Blob Storage."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.distributed
from tests.helpers.command_line import run
from tests.helpers.fault_proxy import fault_proxy
from tests.helpers.netcdf_files import profile, write
from tests.helpers.object_services import SERVICES, Service, service
from tests.helpers.sample_outputs import output


@pytest.fixture(scope="module", params=SERVICES)
def server(request: pytest.FixtureRequest) -> Iterator[Service]:
    with service(request.param) as found:
        yield found


def large() -> np.ndarray:
    """More than a part of an upload, in bytes that do not compress."""
    return np.random.default_rng(3).random((5, 1 << 19))


def create(server: Service, name: str, mode: Any = "w-") -> ambar.Writer:
    return ambar.create(server.url(name), mode, profile="raw", storage_options=server.options)


def opened(server: Service, name: str) -> ambar.Store:
    return ambar.open_store(server.url(name), storage_options=server.options)


@pytest.mark.parametrize("is_large", [False, True])
def test_an_object_appears_when_it_is_complete(server: Service, is_large: bool) -> None:
    name = f"one-{is_large}.ambar"
    values = large() if is_large else np.arange(1000.0)
    with create(server, name) as writer:
        writer.create_array("x", values)
        writer.commit("one")
        assert server.keys(name) == []
    np.testing.assert_array_equal(opened(server, name)["x"][...], values)
    assert opened(server, name).verify()["unfinished"] == 0
    assert server.uploads() == 0
    with pytest.raises(FileExistsError):
        create(server, name)
    # An object that another program has created meanwhile remains.
    other = f"other-{is_large}.ambar"
    writer = create(server, other)
    writer.create_array("x", values)
    writer.commit()
    server.put(other, b"of another program")
    with pytest.raises(FileExistsError, match=other):
        writer.close()
    assert server.get(other) == b"of another program"
    with create(server, other, "w") as writer:
        writer.create_array("x", values)
    np.testing.assert_array_equal(opened(server, other)["x"][...], values)
    writer = create(server, "failed.ambar")
    writer.create_array("x", values)
    writer.close()
    assert server.keys("failed.ambar") == []
    assert server.uploads() == 0


def test_a_directory_grows_and_has_several_writers(server: Service, tmp_path: Path) -> None:
    rows = np.random.default_rng(5).random((40, 100))
    with create(server, "run/") as writer:
        writer.create_array("x", rows[:25], chunks=(10, 100))
    first, second = create(server, "run/", "a"), create(server, "run/", "a")
    first.append("x", rows[25:])
    second.append("x", rows[:3])
    first.commit()
    with pytest.raises(ambar.BusyError, match="open it again and repeat"):
        second.commit()
    first.close()
    second.close()
    np.testing.assert_array_equal(opened(server, "run/")["x"][...], rows)
    with pytest.raises(FileExistsError):
        create(server, "run/")
    with create(server, "run/", "a") as writer:
        writer.write_region("x", rows[:10] + 1, start=[0, 0])
        writer.create_array("y", np.arange(3))
    expected = np.concatenate([rows[:10] + 1, rows[10:]])
    store = opened(server, "run/")
    np.testing.assert_array_equal(store["x"][...], expected)
    assert store.verify()["unfinished"] == 0
    # The directory as one object, and as a file.
    for target in (server.url("run.ambar"), str(tmp_path / "run.ambar")):
        ambar.compact(server.url("run/"), target, storage_options=server.options)
        options = server.options if target.startswith(server.scheme) else None
        copy = ambar.open_store(target, storage_options=options)
        np.testing.assert_array_equal(copy["x"][...], expected)
        assert list(copy) == ["x", "y"]
    found = ambar.compare(
        server.url("run/"), tmp_path / "run.ambar", storage_options=server.options
    )
    assert found.held
    refs = ambar.references(server.url("run.ambar"), storage_options=server.options)["refs"]
    assert refs["y/c/0"][0] == server.url("run.ambar")


def test_readers_send_few_requests_and_notice_replaced_objects(server: Service) -> None:
    rows = np.random.default_rng(5).random((40, 10_000))
    for name in ("few.ambar", "few/"):
        with create(server, name) as writer:
            writer.create_array("x", rows, chunks=(10, 10_000))
        with fault_proxy(server.endpoint) as (endpoint, proxy):
            store = opened(server.at(endpoint), name)
            assert store["x"].shape == rows.shape
            assert proxy.count <= 2
            proxy.restart()
            np.testing.assert_array_equal(store["x"][12:15], rows[12:15])
            # The index of the shard, and the chunk; the list of a commit of the same second.
            assert proxy.count <= (3 if name.endswith("/") else 2)
            assert sum(answered for _, _, answered in proxy.log) < 1_500_000
            with create(server, name, "w") as writer:
                writer.create_array("x", rows + 1, chunks=(10, 10_000))
            with pytest.raises(ambar.BusyError, match="open it again"):
                store["x"][25:35]


def test_tasks_put_objects_of_one_commit(server: Service) -> None:
    arrays = {"x": {"shape": (4, 50), "dtype": "f8", "blocks": (2, 50)}}
    values = np.random.default_rng(7).random((4, 50))

    def put(commit: ambar.distributed.SharedCommit, start: int, factor: float) -> bytes:
        with commit.invitation.writer() as task:
            task.write_region("x", factor * values[start : start + 2], (start, 0))
            return task.receipt()

    where: dict[str, Any] = {"storage_options": server.options}
    with ambar.distributed.open(server.url("tasks/"), arrays=arrays, **where) as commit:
        receipts = [put(commit, 0, 9.0), put(commit, 0, 1.0), put(commit, 2, 1.0)]
        commit.finish(receipts)
    np.testing.assert_array_equal(opened(server, "tasks/")["x"][...], values)
    first, second = (ambar.distributed.open(server.url("tasks/"), "a", **where) for _ in range(2))
    for commit in (first, second):
        commit.update_array("x", (2, 0), (2, 50))
    again = put(second, 2, 3.0)
    first.finish([put(first, 2, 2.0)])
    with pytest.raises(ambar.BusyError, match="open it again and repeat"):
        second.finish([again])
    store = opened(server, "tasks/")
    np.testing.assert_array_equal(store["x"][2:], 2.0 * values[2:])
    assert store.verify()["unfinished"] == 0
    assert not [key for key in server.keys("tasks/") if "/.ambar/task-" in key]


def test_errors_are_short_and_early(server: Service) -> None:
    for name in ("x.ambar", "x/"):
        for mode in ("w-", "w"):
            with pytest.raises(FileNotFoundError, match="bucket does not exist"):
                ambar.create(server.url(name, "absent"), mode, storage_options=server.options)
    nowhere = server.at("http://127.0.0.1:1")
    with pytest.raises(
        ambar.AmbarError, match="no connection to http://127.0.0.1:1.*refused"
    ) as error:
        opened(nowhere, "x.ambar")
    assert len(str(error.value)) < 250
    secret = {"s3": "secret_access_key", "gs": "bearer_token", "az": "account_key"}[server.scheme]
    wrong = {**server.options, secret: "d3Jvbmc="}
    if server.name != "moto":  # which does not check signatures
        with pytest.raises(ambar.AmbarError, match="denies access; check the credentials") as error:
            ambar.create(server.url("x.ambar"), storage_options=wrong)
        assert len(str(error.value)) < 250
        assert "d3Jvbmc=" not in str(error.value)
    without = {"endpoint": server.options["endpoint"], "anonymous": True}
    if server.scheme == "az":
        without["account_name"] = server.options["account_name"]
    with pytest.raises(
        (ambar.AmbarError, FileNotFoundError), match="anonymous access|does not exist"
    ):
        ambar.open(server.url("x.ambar"), storage_options=without)


def test_what_urls_cannot_do(server: Service, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("tag", "v1"), ("restore", "1")):
        code, _, errors = run(capsys, command[0], server.url("x.ambar"), *command[1:])
        assert code == 4
        assert "an object is written as a whole" in errors
    code, _, errors = run(capsys, "repair", server.url("x.ambar"))
    assert code == 4
    assert "nothing to repair" in errors
    with pytest.raises(ambar.UnsupportedError, match="give a target"):
        ambar.compact(server.url("x/"))


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("name", ["casts.ambar", "casts/"])
def test_files_and_outputs_are_converted_straight_to_objects(
    server: Service, tmp_path: Path, name: str, count: int
) -> None:
    xr = pytest.importorskip("xarray")
    folder = tmp_path / "casts"
    for number in range(count):
        write(profile(number), folder / f"cast{number:04}.nc")
    name = f"{count}-{name}"
    ambar.convert(folder, server.url(name), storage_options=server.options)
    casts = ambar.open_collection(server.url(name), storage_options=server.options)
    assert len(casts.names) == count
    for number in range(0, count, max(count // 50, 1)):
        expected = xr.open_dataset(folder / f"cast{number:04}.nc")
        xr.testing.assert_identical(casts[f"cast{number:04}"].load(), expected.load())
    run_name = f"{count}-sedov-{name}"
    source = output("sedov")
    ambar.convert(source, server.url(run_name), storage_options=server.options)
    found = ambar.compare(source, server.url(run_name), storage_options=server.options)
    assert found.held
    assert server.uploads() == 0


MEMORY = """
import sys
import numpy as np
import ambar

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

url, *pairs = sys.argv[1:]
options = dict(pair.split("=", 1) for pair in pairs)
rows = np.random.default_rng(1).random((16, 1 << 16))
with ambar.create(url, profile="raw", storage_options=options) as writer:
    writer.create_array("x", shape=(0, 1 << 16), dtype="f8", chunks=(16, 1 << 16))
    before = peak()
    for _ in range(150):
        writer.append("x", rows)
print(peak() - before)
"""


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["memory.ambar", "memory/"])
def test_writing_needs_bounded_memory(server: Service, name: str) -> None:
    options = [f"{key}={value}" for key, value in server.options.items()]
    command = [sys.executable, "-c", MEMORY, server.url(name), *options]
    used = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    # The store has 1.26 GB.
    assert used < 300e6

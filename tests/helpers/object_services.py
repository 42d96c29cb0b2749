"""Servers of object stores on loopback, each with an empty bucket of the name "ambar".

That of moto and that of Google's interface run in the process of the tests. The others are
independent implementations, which `make servers` builds: MinIO, the Versity gateway and Azurite.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.gcs_server import TOKEN, gcs_server
from tests.helpers.s3_server import BUCKET, KEYS, client_of, options_of, s3_server

BUILT = Path(__file__).parents[2] / "target/servers"
"""The programs that `make servers` builds."""

SERVICES = [
    "moto",
    "google",
    pytest.param("minio", marks=pytest.mark.campaign),
    pytest.param("versity", marks=pytest.mark.campaign),
    pytest.param("azurite", marks=pytest.mark.campaign),
]
"""Parameters of tests on each server."""

_ACCOUNT, _ACCOUNT_KEY = "ours", base64.b64encode(b"a key of the tests").decode()
_SECONDS = 30
"""The time that a server has to start."""


@dataclass(frozen=True)
class Service:
    """A server, and how to reach it."""

    name: str
    scheme: str
    endpoint: str
    options: Mapping[str, str]
    client: Any
    """An independent client: that of boto3 or obstore, or the objects of the server."""

    def url(self, name: str, bucket: str = BUCKET) -> str:
        """Return the URL of an object."""
        return f"{self.scheme}://{bucket}/{name}"

    def at(self, endpoint: str) -> Service:
        """Return the server behind another endpoint."""
        path = self.options["endpoint"].removeprefix(self.endpoint)
        options = {**self.options, "endpoint": endpoint + path}
        return replace(self, endpoint=endpoint, options=options)

    def keys(self, prefix: str = "") -> list[str]:
        """Return the names of the objects."""
        if self.scheme == "s3":
            found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
            return [item["Key"] for item in found.get("Contents", [])]
        if self.scheme == "gs":
            return sorted(key for key in self.client.blobs if key.startswith(prefix))
        names = [item["path"] for items in self.client.list() for item in items]
        return sorted(name for name in names if name.startswith(prefix))

    def put(self, key: str, data: bytes) -> None:
        """Store an object as another program does."""
        if self.scheme == "s3":
            self.client.put_object(Bucket=BUCKET, Key=key, Body=data)
        else:
            self.client.put(key, data)

    def get(self, key: str) -> bytes:
        """Return an object."""
        if self.scheme == "s3":
            body: bytes = self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            return body
        if self.scheme == "gs":
            data: bytes = self.client.blobs[key].data
            return data
        return bytes(self.client.get(key).bytes())

    def uploads(self) -> int:
        """Return the number of uploads that are neither complete nor aborted."""
        if self.scheme == "s3":
            return len(self.client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))
        return len(self.client.uploads) if self.scheme == "gs" else 0


@contextmanager
def service(name: str) -> Iterator[Service]:
    """Run the server `name`. The test is skipped if `make servers` has not built it."""
    with {
        "moto": _moto,
        "google": _google,
        "minio": _minio,
        "versity": _versity,
        "azurite": _azurite,
    }[name]() as found:
        yield found


@contextmanager
def _moto() -> Iterator[Service]:
    with s3_server() as endpoint:
        yield _s3("moto", endpoint, options_of(endpoint))


def _s3(name: str, endpoint: str, options: Mapping[str, str]) -> Service:
    client = client_of(endpoint)
    client.create_bucket(Bucket=BUCKET)
    return Service(name, "s3", endpoint, options, client)


@contextmanager
def _google() -> Iterator[Service]:
    with gcs_server(BUCKET) as (endpoint, bucket):
        options = {"endpoint": endpoint, "bearer_token": TOKEN}
        yield Service("google", "gs", endpoint, options, bucket)


@contextmanager
def _minio() -> Iterator[Service]:
    def command(port: int, folder: str) -> list[str]:
        other = f"127.0.0.1:{_free_port()}"
        address = ["--address", f"127.0.0.1:{port}", "--console-address", other]
        return [str(BUILT / "bin/minio"), "server", folder, "--quiet", *address]

    environment = {
        "MINIO_ROOT_USER": KEYS["access_key_id"],
        "MINIO_ROOT_PASSWORD": KEYS["secret_access_key"],
    }
    with _program(BUILT / "bin/minio", command, environment) as endpoint:
        yield _s3("minio", endpoint, options_of(endpoint))


@contextmanager
def _versity() -> Iterator[Service]:
    def command(port: int, folder: str) -> list[str]:
        address = ["--port", f"127.0.0.1:{port}", "--quiet"]
        return [str(BUILT / "bin/versitygw"), *address, "posix", folder]

    environment = {
        "ROOT_ACCESS_KEY": KEYS["access_key_id"],
        "ROOT_SECRET_KEY": KEYS["secret_access_key"],
    }
    with _program(BUILT / "bin/versitygw", command, environment) as endpoint:
        yield _s3("versity", endpoint, options_of(endpoint))


@contextmanager
def _azurite() -> Iterator[Service]:
    azurite = BUILT / "azurite/node_modules/.bin/azurite-blob"

    def command(port: int, folder: str) -> list[str]:
        address = ["--blobHost", "127.0.0.1", "--blobPort", str(port)]
        rest = ["--skipApiVersionCheck", "--silent", "--location", folder]
        return [str(azurite), *address, *rest]

    accounts = {"AZURITE_ACCOUNTS": f"{_ACCOUNT}:{_ACCOUNT_KEY}"}
    with _program(azurite, command, accounts) as endpoint:
        given = {
            "endpoint": f"{endpoint}/{_ACCOUNT}",
            "account_name": _ACCOUNT,
            "account_key": _ACCOUNT_KEY,
        }
        obstore = pytest.importorskip("obstore.store")
        client = obstore.AzureStore(
            BUCKET, config={**given, "allow_http": "true"}, client_options={"allow_http": True}
        )
        _create_container(endpoint)
        yield Service("azurite", "az", endpoint, given, client)


def _create_container(endpoint: str) -> None:
    """Create the container of the tests, with a signed request."""
    date, version = formatdate(usegmt=True), "2021-08-06"
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{BUCKET}\nrestype:container"
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{date}\nx-ms-version:{version}\n{resource}"
    digest = hmac.digest(base64.b64decode(_ACCOUNT_KEY), signed.encode(), hashlib.sha256)
    request = urllib.request.Request(  # noqa: S310 - of a server of the test
        f"{endpoint}/{_ACCOUNT}/{BUCKET}?restype=container",
        method="PUT",
        headers={
            "x-ms-date": date,
            "x-ms-version": version,
            "Content-Length": "0",
            "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}",
        },
    )
    urllib.request.urlopen(request).close()  # noqa: S310


@contextmanager
def _program(
    program: Path, command: Callable[[int, str], list[str]], environment: Mapping[str, str]
) -> Iterator[str]:
    """Run a server of a folder, and yield its endpoint."""
    if not program.exists():
        pytest.skip(f"{program.name} is not built: make servers")
    port = _free_port()
    folder = tempfile.mkdtemp(prefix="ambar-server-")
    process = subprocess.Popen(
        command(port, folder),
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server answers a request."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"the server at port {port} does not start")

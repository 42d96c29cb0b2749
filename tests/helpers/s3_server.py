"""An S3 server on loopback: that of moto, which keeps objects in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

BUCKET = "ambar"
"""The bucket of the tests."""
KEYS = {"access_key_id": "ours", "secret_access_key": "secret-of-the-tests"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Run a server, and yield its endpoint."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        # All servers of a process have the same objects.
        backends = pytest.importorskip("moto.backends")
        backends.get_backend("s3").reset()


def options_of(endpoint: str) -> dict[str, str]:
    """Return the storage options of a server."""
    return {"endpoint": endpoint, "region": "us-east-1", **KEYS}


def client_of(endpoint: str) -> Any:
    """Return boto3's client of a server."""
    return pytest.importorskip("boto3").client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEYS["access_key_id"],
        aws_secret_access_key=KEYS["secret_access_key"],
    )

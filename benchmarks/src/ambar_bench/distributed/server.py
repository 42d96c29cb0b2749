"""A server of S3 on this machine: that of moto, in a process of its own, which keeps objects."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

BUCKET = "ambar"
_SECONDS = 60


@contextmanager
def s3_environment() -> Iterator[dict[str, str]]:
    """Run a server with a bucket, and yield the environment of its clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _create_bucket(server, port)
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "ours",
            "AWS_SECRET_ACCESS_KEY": "secret",
        }
    finally:
        server.terminate()
        server.wait()


def _create_bucket(server: subprocess.Popen[bytes], port: int) -> None:
    """Create the bucket, as soon as the server answers."""
    end = time.monotonic() + _SECONDS
    while server.poll() is None and time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
        try:
            connection.request("PUT", f"/{BUCKET}")
            connection.getresponse().read()
        except OSError:
            time.sleep(0.2)
        else:
            return
        finally:
            connection.close()
    raise SystemExit("the server of S3 does not start: pip install 'moto[s3]' flask flask-cors")

"""A server of S3, its storage options, and its client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers.s3_server import BUCKET, client_of, options_of, s3_server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Run a server with a bucket."""
    with s3_server() as endpoint:
        client_of(endpoint).create_bucket(Bucket=BUCKET)
        yield endpoint


@pytest.fixture
def options(endpoint: str) -> dict[str, str]:
    """Return the storage options of the server."""
    return options_of(endpoint)


@pytest.fixture
def client(endpoint: str) -> Any:
    """Return boto3's client of the server."""
    return client_of(endpoint)

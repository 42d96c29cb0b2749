"""What stores hold according to ambar and to the independent reader, and pieces of forged ones."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.independent_reader import Commit, Store, crc32c

PROFILES = ("fast", "balanced", "small")
REFUSALS = (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError,
            TypeError, ValueError, struct.error)  # fmt: skip
Document = dict[str, Any]
Contents = dict[str, tuple[Document, np.ndarray | None]]


def write(path: Path, arrays: dict[str, np.ndarray], **options: Any) -> Path:
    """Write a store whose groups and arrays have attributes."""
    with ambar.create(path, fsync=False, **options) as writer:
        writer.create_group(
            "group", {"note": "☃ crc32c:0123abcd", "deep": {"list": [1, None, 2.5]}}
        )
        for name, values in arrays.items():
            writer.create_array(f"group/{name}", values, attrs={"name": name})
    return path


def mine(path: Path, commit: int | None = None) -> Contents:
    """Return attributes and values of all nodes, as the page says."""
    store = Store(path, commit)
    return {
        path: (node.get("attributes", {}), store.array(path) if "shape" in node else None)
        for path, node in store.nodes.items()
    }


def ambars(path: Path, commit: int | None = None) -> Contents:
    """Return attributes and values of all nodes, as ambar has them."""
    store = ambar.open_store(path, commit=commit)
    groups: Contents = {node: (dict(store[node].attrs), None) for node in store.groups}
    return groups | {node: (dict(store[node].attrs), store[node].read()) for node in store}


def bits(values: np.ndarray | None) -> object:
    """Return what makes two arrays the same."""
    if values is None:
        return None
    content = values.tolist() if values.dtype.kind == "O" else values.tobytes()
    return values.dtype.str, values.shape, content


def assert_same(found: Contents, expected: Contents) -> None:
    assert sorted(found) == sorted(expected)
    for node, (attributes, values) in expected.items():
        assert found[node][0] == attributes, node
        assert bits(found[node][1]) == bits(values), node


def sealed(content: bytes) -> bytes:
    return content + struct.pack("<I", crc32c(content))


def slot(commit: Commit) -> bytes:
    return sealed(struct.pack("<8s2I6QI", b"ambarcmt", 1, *commit))


def full_record(commit: Commit) -> bytes:
    """Return the record of a full commit that is the first of its file."""
    numbers = (commit.record, commit.number, *[0] * 6, commit.offset, commit.length, commit.entries)
    body = struct.pack("<11Q4I", *numbers, commit.checksum, 0, 0, 0)
    return struct.pack("<8s2I", b"ambarlog", 120, crc32c(body)) + body


def trailer(commit: Commit) -> bytes:
    """Return the trailer of a commit, which ends it."""
    entries, size, offset = commit.entries, commit.length, commit.offset
    record = (b"PK\6\6", 44, 0x32D, 45, 0, 0, entries, entries, size, offset)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, offset + size, 1)
    count, size, offset = min(entries, 0xFFFF), min(size, 2**32 - 1), min(offset, 2**32 - 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, offset, 118)
    comment = f"ambar 001 commit {commit.number:020} record {commit.record:020} "
    comment += f"tail {commit.tail:020} {commit.flags} "
    comment += f"crc32c {commit.checksum:08x} {crc32c(slot(commit)[:68]):08x}"
    return struct.pack("<4sQ2H2I4Q", *record) + locator + end + comment.encode()


def extracted(path: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(path.with_suffix(".files"))
    return path.with_suffix(".files")


def assert_refused(path: Path, *, mine_too: bool = True) -> None:
    """Assert that ambar refuses a store, and that the reader of this page does."""
    if mine_too:
        with pytest.raises(REFUSALS):
            mine(path)
    with pytest.raises(ambar.AmbarError):
        ambars(path)

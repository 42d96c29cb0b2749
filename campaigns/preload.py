"""The preloaded library preload.c: compiles it, reads its records, and arms its faults."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from campaigns.campaign import MissingToolError

_HEAD = struct.Struct("<c3Q2HI")


@dataclass(frozen=True)
class Operation:
    """One recorded operation; preload.c explains the kinds."""

    kind: str
    inode: int
    offset: int
    length: int
    path: str
    to: str
    data: bytes


def compiled(folder: Path) -> Path:
    """Compile the library and return its path; raise MissingToolError without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise MissingToolError("cc is not installed; install a C compiler to build preload.c")
    library = folder / "preload.so"
    source = Path(__file__).with_suffix(".c")
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        str(library),
        str(source),
        "-lpthread",
        "-ldl",
    ]
    subprocess.run(command, check=True)
    return library


def operations(log: Path) -> Iterator[Operation]:
    """Yield the operations of a log."""
    data, at = log.read_bytes(), 0
    while at < len(data):
        kind, inode, offset, length, one, two, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        path, to = data[at : at + one].decode(), data[at + one : at + one + two].decode()
        at += one + two
        yield Operation(kind.decode(), inode, offset, length, path, to, data[at : at + size])
        at += size


def note(text: str) -> None:
    """Record a note among the operations; needs the preloaded library."""
    ctypes.CDLL(None).campaign_note(text.encode())


def arm(operation: int, error: int = 0, stays: bool = False) -> None:
    """Make the operation of this number fail, counted from now on from 1; 0 for none.

    If `stays`, all later writes and new files fail too, as on a full disk.
    """
    ctypes.CDLL(None).campaign_arm(ctypes.c_long(operation), error, int(stays))


def failed() -> str:
    """Return the kind of the operation that failed since `arm`, or "" if none did."""
    kind = int(ctypes.CDLL(None).campaign_failed())
    return chr(kind) if kind else ""

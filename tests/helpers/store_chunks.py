"""The stored bytes of stores, by which copies are compared."""

from __future__ import annotations

import zipfile
from pathlib import Path

import ambar


def chunks(path: Path, prefix: str = "") -> dict[str, bytes]:
    """Return the stored bytes of all chunks below a group, by their keys: any ZIP reader's."""
    with zipfile.ZipFile(path) as file:
        return {
            name.removeprefix(prefix): file.read(name)
            for name in file.namelist()
            if name.startswith(prefix) and not name.endswith("zarr.json")
        }


def damage(path: Path, key: str) -> None:
    """Change a bit of the largest stored chunk of a node, or of the nodes below it."""
    with zipfile.ZipFile(path) as file:
        entries = [entry for entry in file.infolist() if entry.filename.startswith(f"{key}/")]
    entry = max(entries, key=lambda entry: entry.compress_size)
    damaged = bytearray(path.read_bytes())
    damaged[entry.header_offset + entry.compress_size // 2] ^= 4
    path.write_bytes(damaged)


def are_equal(a: Path, b: Path) -> bool:
    """Whether two stores have the same nodes, documents and chunks."""
    found = ambar.diff(a, b)
    return not (found.added or found.removed or found.values or found.metadata)

"""What a store takes of a disk."""

from __future__ import annotations

from pathlib import Path


def size_and_files(folder: Path) -> tuple[int, int]:
    """Return the bytes of all files in a folder and beneath, and how many there are."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(sizes), len(sizes)


def size_on_disk(folder: Path) -> int:
    """Return the bytes that all files in a folder and beneath take, without the holes in them."""
    found = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(min(one.st_size, 512 * one.st_blocks) for one in found)

"""Locations of stores: paths, URLs, bytes in memory."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, TypeAlias
from urllib.parse import urlsplit

from ambar import _core
from ambar.store.commit import Commit, CommitName
from ambar.store.store import Store
from ambar.store.urls import core_options, is_url, refuse_empty

Bytes: TypeAlias = bytes | bytearray | memoryview
Place: TypeAlias = str | os.PathLike[str] | Bytes | BinaryIO
"""A path, a URL, the bytes of a store's file, or a binary file object that has them."""

# A store's file begins with the local header of a ZIP entry of this name (docs/format.md).
_ZIP, _MARKER = b"PK\x03\x04", b"ambar"
_NAME_LENGTH, _NAME = 26, 30


class InMemoryStore:
    """The bytes of a store's file, in memory."""

    def __init__(self, data: Bytes, name: str = "<bytes in memory>") -> None:
        if isinstance(data, memoryview) and not data.c_contiguous:
            raise _core.InvalidError(
                f"{name}: expected a C-contiguous memoryview; pass bytes(view)"
            )
        self._data = data
        self._name = name
        self._opened: tuple[int, Store] | None = None

    def __reduce__(self) -> tuple[type[InMemoryStore], tuple[bytes, str]]:
        # Views of memory cannot be pickled.
        return InMemoryStore, (bytes(self._data), self._name)

    def __str__(self) -> str:
        return self._name

    def open(self) -> Store:
        """Return the store, opened once per process.

        Raises CorruptError if the bytes are not a store, or are damaged.
        """
        if self._opened is None or self._opened[0] != os.getpid():
            commit = Commit(self._name, data=self._data)
            self._opened = os.getpid(), Store(commit)
        return self._opened[1]


def normalize_location(place: Place | InMemoryStore) -> str | os.PathLike[str] | InMemoryStore:
    """Return paths and URLs unchanged, bytes and the contents of binary files as `InMemoryStore`.

    Raises ValueError for a file object that was opened for text, and for an invalid location.
    """
    if isinstance(place, (str, os.PathLike, InMemoryStore)):
        refuse_empty("path", place)
        return place
    if isinstance(place, (bytes, bytearray, memoryview)):
        return InMemoryStore(place)
    if not hasattr(place, "read"):
        raise _core.InvalidError(
            f"invalid location of a store: {place!r:.80}; expected a path, a URL, bytes or a "
            "binary file"
        )
    if place.seekable():
        place.seek(0)
    data = place.read()
    name = getattr(place, "name", None)
    name = name if isinstance(name, str) else f"<{type(place).__name__}>"
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise _core.InvalidError(
            f"{name}: expected bytes, found {type(data).__name__}; open the file as 'rb'"
        )
    return InMemoryStore(data, name)


def is_store_or_damaged(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a store that ambar wrote, or has the suffix of one."""
    return is_store(path) or (Path(path).suffix == ".ambar" and Path(path).exists())


def refuse_store(path: str | os.PathLike[str]) -> None:
    """Raise ValueError if `path`, a file to ingest, is a store; CorruptError if it is damaged."""
    if is_store_or_damaged(path):
        if not is_url(path):
            Store._open(path)  # raises if it is damaged
        raise _core.InvalidError(
            f"{os.fspath(path)} is a store of ambar already, found among files to ingest; "
            "ambar.convert and ambar.merge write stores from stores"
        )


def store_at(
    place: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None
) -> Store | None:
    """Open the store at a path or URL; None if there is nothing."""
    if not is_url(place) and not Path(place).exists():
        return None
    try:
        return Store._open(place, core_options(storage_options))
    except FileNotFoundError:
        return None


def refuse_overwrite(
    path: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None
) -> None:
    """Raise FileExistsError if the file `path`, which is to be replaced, is not a store or empty.

    Writers of stores refuse folders.
    """
    if is_url(path):
        with contextlib.suppress(_core.CorruptError):
            store_at(path, storage_options)
            return
    else:
        place = Path(path)
        if not place.is_file() or place.stat().st_size == 0 or is_store_or_damaged(place):
            return
    what = "expected a store of ambar to replace, found another file; remove it, or rename it"
    raise FileExistsError(errno.EEXIST, what, os.fspath(path))


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a store that ambar wrote: a file, a folder, or a copy of its group."""
    if is_url(path):
        return urlsplit(os.fspath(path)).path.rstrip("/").endswith(".ambar")
    place = Path(path)
    if place.is_dir():
        return (place / ".ambar").is_dir() or _has_kind(place / "zarr.json")
    if not place.is_file():  # opening a FIFO waits for its writer
        return False
    try:
        with place.open("rb") as file:
            head = file.read(_NAME + len(_MARKER))
    except OSError:
        return False
    length = int.from_bytes(head[_NAME_LENGTH : _NAME_LENGTH + 2], "little")
    return head.startswith(_ZIP) and length == len(_MARKER) and head.endswith(_MARKER)


def _has_kind(document: Path) -> bool:
    """Whether the metadata of a group have the kind of a store of ambar."""
    try:
        attributes = json.loads(document.read_bytes())["attributes"]
        return "kind" in attributes["ambar"]
    except (OSError, ValueError, LookupError, TypeError):
        return False


def open_store(
    place: Place | InMemoryStore,
    storage_options: Mapping[str, object] | None = None,
    commit: CommitName | None = None,
) -> Store:
    """Open a commit of the store at a path or URL, or in memory; no data are read yet.

    Raises
    ------
    FileNotFoundError
        If the path or the URL does not exist.
    CorruptError
        If it is not a store, or is damaged.
    ValueError
        If there are storage options for a path.
    """
    found = normalize_location(place)
    if not isinstance(found, InMemoryStore):
        options = core_options(storage_options) if storage_options else None
        return Store._open(found, options)._at(commit)
    if storage_options:
        raise _core.InvalidError(
            f"{found}: storage_options are for URLs (s3://..., https://...), not for bytes"
        )
    return found.open()._at(commit)

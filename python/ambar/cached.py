"""Stores opened once for each state of the file: what lazy arrays read from."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ambar import _core
from ambar.places import Held, Place, taken
from ambar.store import Store
from ambar.urls import core_options, is_url

_OPEN_STORES = 16


@dataclass(frozen=True)
class Remote:
    """The URL of a store, with the options of its service."""

    url: str
    options: tuple[tuple[str, str], ...]
    opened: int
    """When it was opened: opening it again asks for what is there then."""

    def __str__(self) -> str:
        return self.url


Kept: TypeAlias = str | Remote | Held
"""What lazy arrays keep of the place of a store."""


def place_of(place: Place | Held, storage_options: Mapping[str, object] | None = None) -> Kept:
    """Return an absolute path, a URL with its options, or bytes, as lazy arrays keep them.

    Raises
    ------
    InvalidError
        If there are options, but for a path.
    """
    options = core_options(storage_options) or {}
    if isinstance(place, str) and is_url(place):
        return Remote(place, tuple(sorted(options.items())), time.time_ns())
    found = taken(place)
    if options:
        raise _core.InvalidError(
            f"{found}: storage_options are for URLs (s3://..., https://...), not for paths"
        )
    return found if isinstance(found, Held) else str(Path(found).expanduser().absolute())


def open_cached(place: Kept) -> Store:
    """Return the store at `place`, opened once per state of the file and process.

    That an object has been replaced is noticed when it is read from.
    """
    if isinstance(place, Remote):
        return _opened_remote(place, os.getpid())
    if isinstance(place, Held):
        return place.open()
    # A folder's own time tells nothing: each commit renames its list.
    listed = Path(place) / ".ambar" / "commit"
    status = (listed if listed.exists() else Path(place)).stat()
    stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
    return _opened(place, stamp, os.getpid())


@functools.lru_cache(maxsize=_OPEN_STORES)
def _opened(path: str, stamp: tuple[int, int, int], process: int) -> Store:  # noqa: ARG001 - the key
    return Store(_core.Store(path))


@functools.lru_cache(maxsize=_OPEN_STORES)
def _opened_remote(place: Remote, process: int) -> Store:  # noqa: ARG001 - the key
    return Store(_core.Store(place.url, dict(place.options)))

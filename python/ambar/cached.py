"""Stores opened by path once for each state of the file: what lazy arrays read from."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from ambar import _core
from ambar.store import Store

_OPEN_STORES = 16


def open_cached(path: str) -> Store:
    """Return the store at `path`, opened once per state of the file and process."""
    status = Path(path).stat()
    stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
    return _opened(path, stamp, os.getpid())


@functools.lru_cache(maxsize=_OPEN_STORES)
def _opened(path: str, stamp: tuple[int, int, int], process: int) -> Store:  # noqa: ARG001 - the key
    return Store(_core.Store(path))

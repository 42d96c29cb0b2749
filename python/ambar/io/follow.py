"""Following a store that another process writes."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ambar import _core
from ambar.kinds.registry import open_path
from ambar.store.locations import open_store
from ambar.store.urls import is_url

Identity = tuple[int, int] | None


def follow(
    path: str | os.PathLike[str],
    *,
    existing: bool = True,
    interval: float = 0.2,
    timeout: float | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[Any]:
    """Yield the steps of a store as another process commits them.

    Of a series, new snapshots or meshes are yielded; of any other store, the opened store after
    each commit. What was yielded remains valid: it is of its commit.

    Parameters
    ----------
    path : path or URL
        A store, which need not exist yet.
    existing : bool, default True
        Whether the steps that exist at the beginning are yielded, too.
    interval : float, default 0.2
        Seconds between two looks at the file or URL.
    timeout : float, optional
        Seconds without a new step after which the iteration ends; it does not end by default.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Yields
    ------
    Snapshot, Mesh, or what `ambar.open` returns
        The steps, in their order.

    Raises
    ------
    CorruptError
        If the store is damaged.
    AmbarError
        If the server cannot be reached, or refuses.

    Examples
    --------
    >>> _ = ambar.convert("sedov", "sedov.ambar")
    >>> for snapshot in ambar.follow("sedov.ambar", timeout=0.5):
    ...     print(snapshot.info.output)
    1
    2
    """
    last_step = time.monotonic()
    known: Identity = None
    steps = 0
    is_first = True
    for current in _commits(path, interval, storage_options):
        found = None
        if current != known:
            known = current
            _, found = open_path(path, storage_options)
        if isinstance(found, Sequence):
            new = list(found[steps:]) if existing or not is_first else []
            steps = len(found)
        else:
            new = [found] if found is not None and (existing or not is_first) else []
        is_first = is_first and found is None
        yield from new
        if new:
            last_step = time.monotonic()
        if time.monotonic() - last_step >= (math.inf if timeout is None else timeout):
            return


def _commits(
    path: str | os.PathLike[str], interval: float, storage_options: Mapping[str, object] | None
) -> Iterator[Identity]:
    """Yield the identity of the last commit again and again; None if the store does not exist."""
    identity: Identity = None
    state: tuple[int, ...] | None = None
    while True:
        before, state = state, None if is_url(path) else _state(path)
        if state is None or state != before:
            with contextlib.suppress(FileNotFoundError, _core.NotFoundError):
                identity = open_store(path, storage_options)._core.commit_id
        yield identity
        time.sleep(interval)


def _state(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Return what changes with each commit of a local store; None if it does not exist."""
    place = Path(path)
    try:
        found = (place / ".ambar" / "commit" if place.is_dir() else place).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

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
from ambar._util.file_events import wait_for_change
from ambar.kinds.registry import locate
from ambar.store.store import Store
from ambar.store.urls import is_url

_SHORTEST_PAUSE = 0.01
"""Seconds between two openings of a store."""
_LONGEST_INTERVAL = 1_000_000
"""Seconds between two checks, at most."""
_COARSEST_CLOCK = 2_000_000_000
"""Nanoseconds between two times that a file system distinguishes, at most."""


def follow(
    path: str | os.PathLike[str],
    *,
    existing: bool = True,
    interval: float = 0.2,
    timeout: float | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[Any]:
    """Yield the steps of a store as another process commits them.

    Of a series, new snapshots, meshes or groups are yielded; of any other store, the opened store
    after each commit. What was yielded remains valid: it is of its commit.

    Parameters
    ----------
    path : path or URL
        A store, which need not exist yet.
    existing : bool, default True
        Whether the steps that exist at the beginning are yielded, too.
    interval : float, default 0.2
        Seconds after which the file or URL is checked again. On Linux, changes of local files by
        processes of the same machine are noticed immediately.
    timeout : float, optional
        Seconds without a new step after which the iteration ends; it does not end by default.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Yields
    ------
    Snapshot, Mesh, Group, or what `ambar.open` returns
        The steps, in their order. Groups are the steps that ranks write with ``ambar.mpi`` or the C
        library.

    Raises
    ------
    ValueError
        If `interval` or `timeout` is negative or NaN, or `interval` exceeds 1,000,000.
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
    # The system does not wait longer in one call. Comparisons with NaN are false.
    if not 0 <= interval <= _LONGEST_INTERVAL or not (timeout is None or timeout >= 0):
        raise _core.InvalidError(
            f"expected an interval from 0 to {_LONGEST_INTERVAL:,} seconds and a timeout of at "
            f"least 0 seconds, found {interval} and {timeout}"
        )
    last_step = time.monotonic()
    number, steps = 0, 0
    is_beginning = True
    for commit in _commits(path, interval, storage_options):
        new: Sequence[Any] = []
        if commit is not None:
            before, (number, found) = number, commit
            series = _steps(found)
            if series is None:
                new = [found]
            else:
                # Another store may have replaced the first one.
                is_replaced = number < before or len(series) < steps
                new, steps = series[0 if is_replaced else steps :], len(series)
        if existing or not is_beginning:
            yield from new
        is_beginning = False
        if new:
            last_step = time.monotonic()
        if time.monotonic() - last_step >= (math.inf if timeout is None else timeout):
            return


def _steps(found: Any) -> Sequence[Any] | None:
    """Return the steps of a series; None for anything else."""
    if isinstance(found, Sequence):
        return found
    about = found._ambar_attributes() if isinstance(found, Store) else {}
    if (about.get("kind"), about.get("of")) != ("series", "arrays"):
        return None
    return [found[f"step_{number:06}"] for number in range(len(about.get("times", ())))]


def _commits(
    path: str | os.PathLike[str], interval: float, storage_options: Mapping[str, object] | None
) -> Iterator[tuple[int, Any] | None]:
    """Yield the number and the opened store of each new commit; None if there is no new one."""
    known: tuple[int, int] | None = None
    state: tuple[int, ...] | None = None
    while True:
        before, state = state, None if is_url(path) else _state(path)
        begin = time.monotonic()
        found = None
        if state is None or state != before or _is_recent(state):
            with contextlib.suppress(FileNotFoundError, _core.NotFoundError):
                kind, resource = locate(path, storage_options)
                identity = resource.store._core.commit_id
                if kind.open is not None and identity is not None and identity != known:
                    known, found = identity, (identity[0], kind.open(resource))
        opening = time.monotonic() - begin
        yield found
        if state is None:
            time.sleep(interval)
            continue
        wait_for_change(_changed_place(path), interval)
        # A writer changes the file many times before it commits.
        time.sleep(min(max(_SHORTEST_PAUSE, 10 * opening), interval))


def _is_recent(state: tuple[int, ...]) -> bool:
    """Return whether a later change of the file could have the same time."""
    return abs(time.time_ns() - state[-1]) < _COARSEST_CLOCK


def _changed_place(path: str | os.PathLike[str]) -> Path:
    """Return the file or folder of a local store that each commit changes."""
    place = Path(path)
    return place / ".ambar" if place.is_dir() else place


def _state(path: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Return what changes with each commit of a local store; None if it does not exist."""
    try:
        found = _changed_place(path).stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns

"""Opened stores that lazy arrays share: all arrays of a dataset read from one commit."""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ambar import _core
from ambar.store.locations import InMemoryStore, Place, normalize_location, open_store
from ambar.store.store import Store
from ambar.store.urls import core_options, is_url, without_secrets

# Stores that a process keeps open for arrays that came to it by pickle.
_REOPENED = 16
# Stores that a process holds open for the datasets it opened: fewer than the files it may open.
_MAX_OPEN = 512

CommitId: TypeAlias = tuple[int, ...]
"""A commit's number and checksum; of a file of another program its time, length and inode."""


@dataclass(frozen=True)
class Remote:
    """The URL of a store, with the options of its service."""

    url: str = field(repr=False)
    options: tuple[tuple[str, str], ...] = field(repr=False)

    def __str__(self) -> str:
        return without_secrets(self.url)


StoreKey: TypeAlias = str | Remote | InMemoryStore
"""The location of a store, as lazy arrays keep it."""


def place_of(
    place: Place | InMemoryStore, storage_options: Mapping[str, object] | None = None
) -> StoreKey:
    """Return an absolute path, a URL with its options, or bytes, as lazy arrays keep them.

    Raises
    ------
    ValueError
        If there are options for a path.
    """
    options = core_options(storage_options) or {}
    if isinstance(place, str) and is_url(place):
        return Remote(place, tuple(sorted(options.items())))
    found = normalize_location(place)
    if options:
        raise _core.InvalidError(
            f"{found}: storage_options are for URLs (s3://..., https://...), not for paths"
        )
    return found if isinstance(found, InMemoryStore) else str(Path(found).expanduser().absolute())


def open_last(place: StoreKey) -> Store:
    """Open the last commit of the store at `place`."""
    if isinstance(place, Remote):
        return Store._open(place.url, dict(place.options))
    return open_store(place)


class OpenedStore:
    """One commit of a store, held open.

    Later commits, and another file at its place, do not change what it reads. It pickles as the
    location of the store and the identity of the commit. Another process opens the store again at
    this commit, and so does a process that holds more than 512 stores open: then reading raises
    ValueError if the store does not have the commit any more.
    """

    def __init__(self, place: StoreKey, commit: CommitId | None) -> None:
        self.place = place
        self._commit = commit
        self._held: tuple[int, Store] | None = None

    @classmethod
    def of(cls, place: StoreKey, store: Store) -> OpenedStore:
        """Return the object that holds a store open, one per commit; it was opened at `place`."""
        commit = _identity(place, store)
        opened = cls(place, commit)
        # Commits without an identity cannot be distinguished from later ones, and are not shared.
        known = commit is not None
        found = _known.setdefault((place, commit, os.getpid()), opened) if known else opened
        if found._held is None:
            found._held = os.getpid(), store
            _hold(found)
        return found

    @classmethod
    def holding(cls, store: Store) -> OpenedStore:
        """Return an object of a store that is open, which is not shared and does not pickle."""
        opened = cls(store.location, store._core.commit_id)
        opened._held = os.getpid(), store
        return opened

    def __reduce__(self) -> tuple[object, tuple[StoreKey, CommitId | None]]:
        return _of_commit, (self.place, self._commit)

    def __str__(self) -> str:
        return str(self.place)

    @property
    def store(self) -> Store:
        """The store, as of the commit."""
        held = self._held
        # A forked child cannot share what its parent has opened.
        if held is not None and held[0] == os.getpid():
            return held[1]
        return _reopened(self.place, self._commit, os.getpid())

    def release(self) -> None:
        """Close the store until it is read from again."""
        self._held = None


def _identity(place: StoreKey, store: Store) -> CommitId | None:
    """Return the identity of a commit; None for an object in an object store by another program."""
    if store._core.commit_id is not None or not isinstance(place, str):
        return store._core.commit_id
    status = Path(place).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


_known: weakref.WeakValueDictionary[tuple[StoreKey, CommitId | None, int], OpenedStore] = (
    weakref.WeakValueDictionary()
)
_holding: list[weakref.ref[OpenedStore]] = []
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - the fork has no other way to it
    _lock = threading.Lock()


# A thread of the parent may hold the lock that a child inherits.
os.register_at_fork(after_in_child=_renew_lock)


def _hold(opened: OpenedStore) -> None:
    """Hold a store open; release those that have been open for longest if there are too many."""
    with _lock:
        _holding.append(weakref.ref(opened))
        if len(_holding) <= _MAX_OPEN:
            return
        _holding[:] = [held for held in _holding if held() is not None]
        for held in _holding[:-_MAX_OPEN]:
            if (oldest := held()) is not None:
                oldest.release()
        del _holding[:-_MAX_OPEN]


def _of_commit(place: StoreKey, commit: CommitId | None) -> OpenedStore:
    """Return the commit, which this process opens on the first read if it is not open."""
    return _known.setdefault((place, commit, os.getpid()), OpenedStore(place, commit))


@functools.lru_cache(maxsize=_REOPENED)
def _reopened(place: StoreKey, commit: CommitId | None, process: int) -> Store:  # noqa: ARG001 - the key
    store = open_last(place)
    store = Store(store._commit.with_id(commit))
    found = _identity(place, store)
    if found == commit:
        return store
    if (
        store._core.commit_id is None
        or found is None
        or commit is None
        or len(commit) != len(found)
    ):
        what = "another program has written it, or another store has replaced it"
    elif found[0] == commit[0]:
        what = f"another store has replaced it, of commit {found[0]}, too"
    else:
        what = f"it has commit {found[0]}, the dataset was opened at commit {commit[0]}"
    raise _core.InvalidError(f"{place}: the store was changed: {what}; open it again")

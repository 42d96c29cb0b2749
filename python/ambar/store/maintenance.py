"""Maintenance of stores: removes dead bytes, and the remains of killed writers."""

from __future__ import annotations

import os

from ambar import _core
from ambar.store.urls import refuse_url


def compact(path: str | os.PathLike[str]) -> None:
    """Rewrite a store without the dead bytes of replaced and removed arrays.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    BusyError
        If a writer has the store open.
    CorruptError
        If the store is damaged; it is not rewritten then.
    UnsupportedError
        If `path` is a URL.
    """
    refuse_url(path)
    _core.compact(path)


def repair(path: str | os.PathLike[str]) -> None:
    """Remove the remains of a killed writer, so that any ZIP reader finds the last commit.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    BusyError
        If a writer has the store open.
    CorruptError
        If the store has no complete commit.
    UnsupportedError
        If `path` is a URL.
    """
    refuse_url(path)
    _core.repair(path)

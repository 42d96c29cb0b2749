"""Rewriting stores without dead bytes, and in a form that every reader of ZIP files knows."""

from __future__ import annotations

import os

from ambar import _core
from ambar.urls import refuse_url


def compact(path: str | os.PathLike[str]) -> None:
    """Rewrite a store without the dead bytes that replaced and removed arrays left.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    BusyError
        If a writer is at it.
    CorruptError
        If it is damaged; it is as before then.
    UnsupportedError
        If `path` is a URL.
    """
    refuse_url(path)
    _core.compact(path)


def repair(path: str | os.PathLike[str]) -> None:
    """Cut off what a killed writer left behind the last commit, so that any ZIP reader finds it.

    Raises
    ------
    FileNotFoundError
        If there is nothing at `path`.
    BusyError
        If a writer is at it.
    CorruptError
        If it has no whole commit.
    UnsupportedError
        If `path` is a URL.
    """
    refuse_url(path)
    _core.repair(path)

"""Maintenance of stores: dead bytes and remains of killed writers."""

from __future__ import annotations

import os

from ambar import _core
from ambar.store.urls import refuse_url


def compact(path: str | os.PathLike[str]) -> None:
    """Rewrite a store without the dead bytes of replaced and removed arrays.

    Readers that have the store open continue to read the old file.

    Parameters
    ----------
    path : path
        The store.

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

    Examples
    --------
    >>> with ambar.create("x.ambar") as writer:
    ...     array = writer.create_array("a", np.random.default_rng(1).random(10_000))
    >>> with ambar.create("x.ambar", "a") as writer:
    ...     writer.remove("a")
    >>> ambar.open_store("x.ambar").usage()["dead"] > 60_000
    True
    >>> ambar.compact("x.ambar")
    >>> ambar.open_store("x.ambar").usage()["dead"]
    0
    """
    refuse_url(path)
    _core.compact(path)


def repair(path: str | os.PathLike[str]) -> None:
    """Remove the remains of a killed writer, so that any ZIP reader finds the last commit.

    ambar reads such a store without a repair.

    Parameters
    ----------
    path : path
        The store.

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

    Examples
    --------
    >>> with open("run.ambar", "ab") as file:
    ...     count = file.write(b"bytes of a killed writer")
    >>> ambar.repair("run.ambar")
    >>> import zipfile
    >>> zipfile.ZipFile("run.ambar").testzip() is None
    True
    """
    refuse_url(path)
    _core.repair(path)

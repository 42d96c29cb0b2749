"""Opening collections: to read them, to change them, or to create them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from ambar import _core
from ambar._util.arguments import OpenMode, check_mode, names_of
from ambar.collection.collection import Collection
from ambar.collection.storage.settings import checked_settings, settings_of
from ambar.store.cache import StoreKey, open_last, place_of
from ambar.store.commit import CommitName, refuse_commit
from ambar.store.locations import store_at
from ambar.store.store import Store
from ambar.store.urls import core_options
from ambar.store.writer import Profile, create


def open_collection(
    path: str | os.PathLike[str],
    mode: OpenMode = "r",
    *,
    ragged: Iterable[str] | None = None,
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    on_mismatch: Literal["family", "cast", "raise"] | None = None,
    directory: bool = False,
    fsync: bool = True,
    profile: Profile = "balanced",
    threads: int | None = None,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Collection:
    """Open a collection to read it, to add to it, or to create it.

    A collection that is open for writing is a context manager. It commits at the end of the block,
    but not after an exception. A new collection appears at `path` with its first commit.

    Parameters
    ----------
    path : str or path-like
        The store. Collections are also read from URLs.
    mode : {"r", "w-", "w", "a"}, default "r"
        "r" reads an existing collection. "w-" creates a new one, and "w" also replaces an existing
        store at the first commit. "a" opens an existing collection to change it, or creates one.
    ragged : str or iterable of str, optional
        Dimensions whose lengths differ between datasets; none by default. Their values are stored
        end to end from the first dataset on. Other dimensions become ragged when a dataset has
        another length. A variable has at most one ragged dimension, and the dimensions before it
        have length 1. Datasets of other shapes are refused if `ragged` lists the dimension, and
        become families by shape otherwise.
    encoding : mapping of str to mapping, optional
        Options of variables by name: ``{"chunks": (50, 168)}``, the part of one dataset that a
        chunk contains; ``{"profile": "small"}``; ``{"error_bound": 0.01}``, an absolute bound, or
        ``{"error_bound": "1e-3 relative"}``.
    on_mismatch : {"family", "cast", "raise"}, default "family"
        What happens to a variable whose dtype differs from that of the first dataset that has the
        variable: "family" stores the dataset in another family, "cast" converts the values to the
        first dtype (floats are rounded) and raises ValueError for values that it cannot
        represent, "raise" raises ValueError.
    directory : bool, default False
        Write a new store as a folder of files instead of a single file.
    fsync : bool, default True
        Whether commits survive a power failure. False is for temporary files.
    profile : {"fast", "balanced", "small", "raw"}, default "balanced"
        How codecs are chosen; "raw" does not compress.
    threads : int, optional
        The number of threads that read and encode; all cores by default.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`; with mode "r".
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Collection

    Raises
    ------
    FileNotFoundError
        If `path` does not exist, with mode "r".
    KeyError
        If the commit does not exist.
    FileExistsError
        If `path` exists, with mode "w-".
    ValueError
        If the store is not a collection, an option is invalid, or `ragged`, `encoding` or
        `on_mismatch` differs from that of the existing collection.
    UnsupportedError
        If a newer version of ambar wrote the store, or `path` is the URL of an object and `mode` is
        "a".
    BusyError
        If another writer has the store open.

    Examples
    --------
    >>> import numpy as np
    >>> with ambar.open_collection("casts.ambar", "w-") as casts:
    ...     casts.add("cast1", {"oxygen": ("depth", np.array([210.0, 195.5]))})
    >>> with ambar.open_collection("casts.ambar", "a") as casts:
    ...     casts.add("cast2", {"oxygen": ("depth", np.array([208.0, 190.0]))})
    >>> casts = ambar.open_collection("casts.ambar")
    >>> casts.names
    ['cast1', 'cast2']
    >>> casts.read("oxygen")["oxygen"].shape
    (2, 2)
    """
    check_mode(mode, OpenMode)
    _core.check_threads(threads)
    given: dict[str, Any] = {
        "ragged": None if ragged is None else names_of("ragged", ragged),
        "encoding": encoding,
        "on_mismatch": on_mismatch,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = checked_settings(**given)
    if mode == "r" and (given or directory):
        names = ", ".join([*given, *(["directory"] if directory else [])])
        raise _core.InvalidError(
            f"mode='r' reads a collection, and {names} applies to new ones; leave it out"
        )
    refuse_commit(mode, commit)
    place = place_of(path, storage_options)  # refuses options of a path before anything is written
    writer = None
    if mode != "r":
        writer = create(
            path,
            mode,
            directory=directory,
            fsync=fsync,
            profile=profile,
            threads=threads,
            storage_options=storage_options,
        )
        # A new store has no path before its first commit.
        if mode != "a" or (store_at(path, storage_options) is None):
            return Collection(place, None, writer, settings, threads)
    try:
        store = Store._open(path, core_options(storage_options))._at(commit)
        found = settings_of(store, mode)
        _check_same({name: settings[name] for name in given}, found, path)
        return Collection(place, store, writer, found, threads)
    except BaseException:
        if writer is not None:
            writer.close()
        raise


def collection_at(
    key: StoreKey, store: Store | None = None, threads: int | None = None
) -> Collection:
    """Open a collection to read it: `store`, opened at `key`, or its last commit."""
    store = store or open_last(key)
    return Collection(key, store, None, settings_of(store), threads)


def _check_same(
    given: Mapping[str, Any], found: Mapping[str, Any], path: str | os.PathLike[str]
) -> None:
    for name, value in given.items():
        if value != found[name]:
            raise _core.InvalidError(
                f"{os.fspath(path)} was created with {name}={found[name]!r}, but {name}={value!r} "
                f"was given; leave {name}{_conversion_argument(name, value)} out to add to it"
            )


def _conversion_argument(name: str, value: Any) -> str:
    """Return the argument of `ambar.convert` that sets `encoding`, in parentheses, or ""."""
    has_only_bounds = name == "encoding" and all(
        each.keys() == {"error_bound"} for each in value.values()
    )
    return " (error_bound)" if value and has_only_bounds else ""

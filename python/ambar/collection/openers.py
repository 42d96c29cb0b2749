"""Opening collections, to read them or to change them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from ambar import _core
from ambar.collection.collection import Collection
from ambar.collection.write.pending_changes import VERSION
from ambar.store.cache import place_of
from ambar.store.group_description import Description
from ambar.store.store import Store
from ambar.store.urls import core_options
from ambar.store.writer import Profile, open_existing


def open_collection(
    path: str | os.PathLike[str],
    mode: Literal["r", "a"] = "r",
    *,
    fsync: bool = True,
    profile: Profile = "balanced",
    threads: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Collection:
    """Open a collection to read it, or (``"a"``) to change it too.

    Parameters
    ----------
    path
        A store of a collection; to read it also a URL.
    mode
        "r", or "a" to add, replace and remove datasets.
    fsync, profile, threads
        As for `ambar.create`; `threads` for reading too.
    storage_options
        For URLs, as for `ambar.open`.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    ValueError
        If it is no collection.
    UnsupportedError
        If a newer version wrote it.
    BusyError
        If another writer has it open.
    """
    if mode not in ("r", "a"):
        raise _core.InvalidError(
            f"mode is 'r' or 'a', not {mode!r}; Collection.create makes new ones"
        )
    writer = None
    if mode == "a":
        writer = open_existing(path, profile=profile, threads=threads, fsync=fsync)
    try:
        place = place_of(path, storage_options)
        store = Store(_core.Store(os.fspath(path), core_options(storage_options)))
        return Collection(place, store, writer, settings_of(store), threads)
    except BaseException:
        if writer is not None:
            writer.close()
        raise


def settings_of(store: Store) -> dict[str, Any]:
    """Return the settings of a collection, or raise an error if the store is none."""
    about = store.ambar_attributes()
    if about.get("kind") != "collection":
        kind = about.get("kind", "a plain store")
        raise _core.InvalidError(f"{store.location} is no collection, but {kind}: use ambar.open")
    said = Description(about, f"{store.location}: /")
    said.check_version(VERSION, "collections")
    encoding = said.object("encoding")
    return {
        "ragged": list(said.texts("ragged")),
        "encoding": {name: encoding.mapping(name) for name in encoding},
        "on_mismatch": said.text("on_mismatch"),
    }

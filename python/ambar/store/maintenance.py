"""Maintenance of stores: dead bytes and remains of killed writers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ambar import _core
from ambar._util.arguments import check_mode
from ambar._util.foreign_files import refuse_foreign
from ambar._util.output_files import check_folder_of
from ambar.store.copies.copier import Copier
from ambar.store.locations import open_store, refuse_overwrite
from ambar.store.urls import is_url, refuse_empty, refuse_url, without_secrets
from ambar.store.writer import create

TARGET_ADVICE = "give a target, to which the last commit is copied"
"""What to do about a URL that is to be compacted in place."""


def compact(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    mode: Literal["w-", "w"] = "w-",
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Rewrite a store without the dead bytes of replaced and removed arrays.

    Readers that have the store open continue to read the old file.

    With a target, the store is not changed: its last commit is copied to the target, each chunk
    verbatim. So a store of many objects, at a URL that ends with "/", becomes one object or file.

    Parameters
    ----------
    path : path or URL
        The store. A URL needs a target.
    target : path or URL, optional
        Where the store is written to; by default it is rewritten in place.
    mode : {"w-", "w"}, default "w-"
        Whether an existing target is an error, or is replaced.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    FileExistsError
        If the target exists, with mode "w-"; if it is another file, with mode "w".
    BusyError
        If a writer has the store open.
    CorruptError
        If the store is damaged; it is not rewritten then.
    UnsupportedError
        If `path` is a URL, and there is no target.

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
    >>> ambar.compact("fields.ambar", "copy.ambar")
    """
    if target is None:
        refuse_url(path, TARGET_ADVICE)
        _core.compact(path)
        return
    check_mode(mode, Literal["w-", "w"])
    refuse_empty("target", target)
    source_options, target_options = (
        storage_options if is_url(place) else None for place in (path, target)
    )
    source = open_store(path, source_options)
    if mode == "w":
        refuse_overwrite(target, target_options)
    if not is_url(target):
        check_folder_of(Path(target))
    name = without_secrets(os.fspath(path)) if is_url(path) else path
    with create(target, mode, storage_options=target_options) as writer:
        copier = Copier(source, writer)
        copier.add("/")
        copier.finish()
        writer.commit(f"compacted {Path(name).name}")


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
    refuse_url(path, "writers of URLs leave nothing to repair")
    try:
        _core.repair(path)
    except _core.CorruptError:
        refuse_foreign(path)
        raise

"""Merges of stores of one kind into one store."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping, Sequence
from typing import get_args

from ambar import _core
from ambar._util.arguments import WriteMode, check_mode
from ambar._util.output_files import refuse_source
from ambar._util.progress import Progress
from ambar.kinds.registry import kind_of_store
from ambar.kinds.request import Conversion, Merge, MergeRequest
from ambar.kinds.request import Path as AnyPath
from ambar.kinds.targets import check_target
from ambar.store.copies.merging import OnConflict
from ambar.store.locations import open_store
from ambar.store.urls import check_url, is_url, refuse_empty


def merge(
    sources: Sequence[AnyPath],
    target: AnyPath,
    *,
    mode: WriteMode = "w-",
    on_conflict: OnConflict = "error",
    threads: int | None = None,
    progress: Progress | bool | None = None,
    fsync: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Conversion:
    """Write several stores of one kind as one store.

    Chunks are copied verbatim, after their checksums are verified: no value changes. The target
    appears, or changes, when it is complete. See docs/howto/stores-from-stores.md.

    Parameters
    ----------
    sources : sequence of paths
        The stores, or their URLs:

        - series of outputs, and single outputs of RAMSES: the target is a series of all outputs;
        - series of meshes, or of steps of arrays: the steps of all stores, in the order of the
          stores. Times must increase;
        - collections: all datasets, in the order of the stores;
        - stores of arrays: all groups and arrays.
    target : path
        The store to write.
    mode : {"w-", "w", "a"}, default "w-"
        "w-" creates a new store. "w" replaces the store at `target`. "a" adds to the store at
        `target`, or creates it.
    on_conflict : {"error", "skip", "replace"}, default "error"
        What happens if several stores have an output, a dataset, an array or an attribute of the
        same name. "error" raises an error that lists all of them, before anything is written.
        "skip" keeps the first one, "replace" the last one.
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable or bool, optional
        A function called with the work done and all work, or True for a bar on the terminal.
    fsync : bool, default True
        Whether the store survives a power failure. False is faster, for temporary files.
    storage_options : mapping, optional
        Options of the URLs of sources and the target, as for `ambar.open`.

    Returns
    -------
    Conversion
        Sizes and time, and the names that several stores have: those of which the first one is
        kept (`skipped`), or the last one (`replaced`).

    Raises
    ------
    FileNotFoundError
        If a source does not exist.
    FileExistsError
        If `target` exists, with mode "w-"; if it is not a store, with mode "w".
    ValueError
        If the kinds of the stores, the codes or the runs differ; if several stores have the same
        name, with ``on_conflict="error"``; if times do not increase; if a source is the target.
    UnsupportedError
        If stores of this kind cannot be merged, such as single meshes; if `target` is the URL of an
        object, with mode "a".
    CorruptError
        If a source is damaged; the message names the chunk.
    BusyError
        If another writer has `target` open.

    Examples
    --------
    >>> _ = ambar.convert("sedov/output_00002", "second.ambar")
    >>> _ = ambar.convert("sedov", "sedov.ambar")
    >>> _ = ambar.convert("sedov.ambar", "first.ambar", steps=0)
    >>> _ = ambar.merge(["first.ambar", "second.ambar"], "both.ambar")
    >>> ambar.open("both.ambar").outputs
    [1, 2]
    """
    start = time.perf_counter()
    check_mode(mode)
    if on_conflict not in get_args(OnConflict):
        raise _core.InvalidError(
            f"invalid on_conflict {on_conflict!r}: must be 'error', 'skip' or 'replace'"
        )
    refuse_empty("target", target)
    check_url(target, mode)
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    refuse_empty("sources", *paths)
    if not paths:
        raise _core.InvalidError("expected at least one store to merge, found an empty list")
    options = [storage_options if is_url(path) else None for path in (*paths, target)]
    if storage_options and not any(options):
        raise _core.InvalidError(
            "storage_options are for URLs (s3://..., https://...), found paths; leave them out"
        )
    stores = list(map(open_store, paths, options))
    refuse_source(paths, target)
    kinds = [kind_of_store(store) for store in stores]
    merge_to = kinds[0].merge
    for kind, store in zip(kinds, stores, strict=True):
        if kind.merge is not merge_to:
            raise _core.InvalidError(
                f"{store.location}: expected a store of the kind {kinds[0].name!r}, as "
                f"{stores[0].location} is, found the kind {kind.name!r}; merge stores of one kind"
            )
    if merge_to is None:
        raise _core.UnsupportedError(
            f"{stores[0].location}: expected series, collections or stores of arrays to merge, "
            f"found the kind {kinds[0].name!r}; keep each in a store of its own"
        )
    request = MergeRequest(
        stores=stores,
        target=target,
        mode=mode,
        on_conflict=on_conflict,
        threads=threads,
        progress=progress,
        fsync=fsync,
        storage_options=options[-1],
    )
    check_target(target, mode, storage_options)
    done = merge_to(request)
    if done is None or not done.target:
        done = dataclasses.replace(
            done or Merge("", 0, 0, 0.0),
            target=os.fspath(target),
            source_bytes=sum(store.usage()["total"] for store in stores),
            stored_bytes=request.stored_bytes(),
            seconds=time.perf_counter() - start,
        )
    return done

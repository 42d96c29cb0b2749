"""The targets of copies and merges of stores: written as a whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ambar._util.arguments import WriteMode
from ambar._util.output_files import check_folder_of, target_exists
from ambar._util.progress import Progress, progress_function
from ambar._util.text import plural
from ambar.kinds.request import CopyRequest, Merge, MergeRequest
from ambar.kinds.request import Path as AnyPath
from ambar.store.copies.merging import Owners
from ambar.store.locations import refuse_overwrite, store_at
from ambar.store.urls import check_url, is_url, without_secrets
from ambar.store.writer import Writer

_LISTED = 10
"""Stores of a merge that the message of the commit names."""


def check_target(
    target: AnyPath, mode: WriteMode, storage_options: Mapping[str, object] | None
) -> None:
    """Check the target of a conversion or merge.

    Raises
    ------
    FileNotFoundError
        If the folder of the target does not exist.
    FileExistsError
        If the target exists, with mode "w-"; if it is not a store, with mode "w".
    UnsupportedError
        If the target is the URL of an object, with mode "a".
    """
    check_url(target, mode)
    if not is_url(target):
        check_folder_of(Path(target))
        if mode == "w-" and Path(target).exists():
            raise target_exists(Path(target))
    elif mode == "w-" and store_at(target, storage_options) is not None:
        raise target_exists(target)
    if mode == "w":
        refuse_overwrite(target, storage_options)


@contextmanager
def copying(request: CopyRequest) -> Iterator[tuple[Writer, Progress | None]]:
    """Yield the writer of the target of a copy, and the function that progress is reported to.

    The target is committed at the end of the block, unless an exception leaves it.
    """
    with (
        request.create() as writer,
        progress_function(request.progress, f"copying {_name(request.paths[0])}") as report,
    ):
        yield writer, report
        writer.commit(copy_message(request))


@contextmanager
def merging(request: MergeRequest) -> Iterator[tuple[Writer, Progress | None]]:
    """Yield the writer of the target of a merge, as `copying` does."""
    title = f"merging {plural(len(request.stores), 'store')}"
    with (
        request.create() as writer,
        progress_function(request.progress, title) as report,
    ):
        yield writer, report
        writer.commit(merge_message(request))


def copy_message(request: CopyRequest) -> str:
    """Return the message of the commit of a copy, for `ambar.log`."""
    return f"copied from {_name(request.paths[0])}"


def merge_message(request: MergeRequest) -> str:
    """Return the message of the commit of a merge, for `ambar.log`."""
    names = [_name(store.location) for store in request.stores]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"merged {', '.join(names[:_LISTED])}{more}"


def merged(owners: Owners) -> Merge:
    """Return the report of a merge; `ambar.merge` adds the target, the sizes and the time."""
    names = [name for name, number in owners.numbers.items() if number >= 0]
    return Merge("", 0, 0, 0.0, converted=names, skipped=owners.skipped, replaced=owners.superseded)


def _name(path: str | os.PathLike[str]) -> str:
    """Return the name of a store; the query of a URL can have a signature."""
    return Path(without_secrets(os.fspath(path)) if is_url(path) else path).name

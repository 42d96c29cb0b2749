"""The targets of copies and merges of stores: written as a whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ambar._util.progress import Progress, progress_function
from ambar._util.text import plural
from ambar.kinds.request import ConvertRequest, CopyRequest, Merge, MergeRequest
from ambar.store.copies.merging import Owners
from ambar.store.store import Store
from ambar.store.writer import Writer, create

_LISTED = 10
"""Stores of a merge that the message of the commit names."""


def open_existing(request: ConvertRequest | MergeRequest) -> Store | None:
    """Return the store at the target, to which mode "a" adds; None if there is none."""
    if request.mode != "a" or not Path(request.target).exists():
        return None
    return Store._open(request.target)


@contextmanager
def copying(request: CopyRequest) -> Iterator[tuple[Writer, Progress | None]]:
    """Yield the writer of the target of a copy, and the function that progress is reported to.

    The target is committed at the end of the block, unless an exception leaves it.
    """
    with (
        create(
            request.target,
            request.mode,
            profile=request.profile,
            threads=request.threads,
            fsync=request.fsync,
        ) as writer,
        progress_function(request.progress, f"copying {_name(request.paths[0])}") as report,
    ):
        yield writer, report
        writer.commit(copy_message(request))


@contextmanager
def merging(request: MergeRequest) -> Iterator[tuple[Writer, Progress | None]]:
    """Yield the writer of the target of a merge, as `copying` does."""
    title = f"merging {plural(len(request.stores), 'store')}"
    with (
        create(
            request.target, request.mode, threads=request.threads, fsync=request.fsync
        ) as writer,
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
    return Path(path).name

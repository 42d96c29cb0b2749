"""Earlier commits of a store: listed, named and restored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ambar._core import CorruptError
from ambar._util.arguments import check_unicode
from ambar._util.foreign_files import refuse_foreign
from ambar.store.commit import EPOCH, CommitName, find_commit, open_core
from ambar.store.urls import is_url, refuse_url

if TYPE_CHECKING:
    from ambar.store.writer import Writer


_MAX_TIME = 10**17
"""The largest distance of a commit's time from 1970, in microseconds: 3,000 years."""


@dataclass(frozen=True)
class CommitInfo:
    """A commit of a store.

    Examples
    --------
    >>> ambar.log("fields.ambar")[0].number
    1
    """

    number: int
    """The number of the commit, counted from 1."""
    time: datetime
    """The time of the commit, in UTC."""
    message: str
    """The message that was given to the commit."""
    tags: tuple[str, ...]
    """Names of the commit."""
    written: int
    """The number of entries of the container that it wrote: chunks, shards and documents."""
    removed: int
    """The number of entries that it removed."""
    bytes: int
    """The bytes that it added to the file."""


def log(
    path: str | os.PathLike[str], *, storage_options: Mapping[str, object] | None = None
) -> list[CommitInfo]:
    """Return the commits of a store, the newest first.

    Parameters
    ----------
    path : path or URL
        A store in a single file.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    list of CommitInfo
        One for each commit.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    UnsupportedError
        If the store is a directory, which has its last commit only, or if another program wrote it.
    CorruptError
        If the store is damaged.

    Examples
    --------
    >>> with ambar.create("logged.ambar") as writer:
    ...     writer.create_array("x", np.zeros(3))
    ...     writer.commit("first step")
    ...     writer.create_array("y", np.ones(3))
    >>> [(commit.number, commit.message) for commit in ambar.log("logged.ambar")]
    [(2, ''), (1, 'first step')]
    """
    try:
        core = open_core(path, storage_options)
    except CorruptError:
        if not is_url(path):
            refuse_foreign(path)
        raise
    commits = core.commits()
    if any(abs(commit["time"]) > _MAX_TIME for commit in commits):
        raise CorruptError(
            f"{path}: the time of a commit is invalid; restore the store from a copy"
        )
    names: dict[int, list[str]] = {}
    for name, number in core.tags().items():
        names.setdefault(number, []).append(name)
    starts = [commit["end"] for commit in commits[1:]] + [0]
    return [
        CommitInfo(
            number=commit["number"],
            time=EPOCH + timedelta(microseconds=commit["time"]),
            message=commit["message"],
            tags=tuple(names.get(commit["number"], ())),
            written=commit["written"],
            removed=commit["removed"],
            bytes=commit["end"] - start,
        )
        for commit, start in zip(commits, starts, strict=True)
    ]


def tag(path: str | os.PathLike[str], name: str, commit: CommitName | None = None) -> None:
    """Name a commit of a store. `ambar.compact` keeps commits that have a name.

    Parameters
    ----------
    path : path
        A store in a single file.
    name : str
        The name. If another commit has it, the name moves.
    commit : int, str or datetime, optional
        The commit, as for `ambar.open`; the last one by default.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    KeyError
        If the commit does not exist.
    BusyError
        If a writer has the store open.
    ValueError
        If the name does not begin with a letter, contains spaces or control characters, or is
        longer than 255 bytes.
    UnsupportedError
        If the store is a directory or a URL.

    Examples
    --------
    >>> ambar.tag("fields.ambar", "paper-v1")
    >>> ambar.open_store("fields.ambar", commit="paper-v1")["density"].shape
    (16, 24, 32)
    """
    check_unicode("tag", name)
    number = _number(path, commit)
    with _writer(path) as writer:
        writer._core.tag(name, number)
        writer.commit(f"tag {name}")


def untag(path: str | os.PathLike[str], name: str) -> None:
    """Remove the name of a commit; the commit remains until `ambar.compact`.

    Parameters
    ----------
    path : path
        A store in a single file.
    name : str
        The name.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    KeyError
        If no commit has the name.
    BusyError
        If a writer has the store open.
    UnsupportedError
        If the store is a directory or a URL.

    Examples
    --------
    >>> ambar.tag("fields.ambar", "draft")
    >>> ambar.untag("fields.ambar", "draft")
    >>> "draft" in ambar.tags("fields.ambar")
    False
    """
    refuse_url(path, _ONE_COMMIT)
    check_unicode("tag", name)
    with _writer(path) as writer:
        writer._core.tag(name, None)
        writer.commit(f"removed the tag {name}")


def tags(
    path: str | os.PathLike[str], *, storage_options: Mapping[str, object] | None = None
) -> dict[str, int]:
    """Return the names of commits of a store, which `ambar.tag` gave.

    Parameters
    ----------
    path : path or URL
        A store.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    dict of str to int
        The numbers of the commits by name, in the order of the names.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    CorruptError
        If the store is damaged.

    Examples
    --------
    >>> ambar.tag("fields.ambar", "paper-v1")
    >>> ambar.tags("fields.ambar")
    {'paper-v1': 1}
    """
    return open_core(path, storage_options).tags()


def restore(
    path: str | os.PathLike[str], commit: CommitName, *, message: str | None = None
) -> None:
    """Make an earlier commit the newest one: a new commit with the same contents.

    No values are copied. The commits in between remain.

    Parameters
    ----------
    path : path
        A store in a single file.
    commit : int, str or datetime
        The commit, as for `ambar.open`.
    message : str, optional
        The message of the new commit; "restored commit N" by default.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist.
    KeyError
        If the commit does not exist.
    BusyError
        If a writer has the store open.
    UnsupportedError
        If the store is a directory or a URL.

    Examples
    --------
    >>> with ambar.create("fields.ambar", "a") as writer:
    ...     writer.remove("density")
    >>> ambar.restore("fields.ambar", 1)
    >>> "density" in ambar.open_store("fields.ambar")
    True
    """
    number = _number(path, commit)
    with _writer(path) as writer:
        writer._core.restore(number)
        writer.commit(f"restored commit {number}" if message is None else message)


_ONE_COMMIT = (
    "an object is written as a whole, and a directory of objects has its last commit only; "
    "download the object, change the file, and upload it"
)


def _number(path: str | os.PathLike[str], commit: CommitName | None) -> int:
    refuse_url(path, _ONE_COMMIT)
    core = open_core(path)
    if commit is not None:
        return find_commit(core, commit)
    return core.commits()[0]["number"]


def _writer(path: str | os.PathLike[str]) -> Writer:
    from ambar.store.writer import create

    return create(path, "a")

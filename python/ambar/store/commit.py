"""Commits of a store: one that is open for reading, and how others are found."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from ambar import _core
from ambar._util.properties import cached_property
from ambar.store.urls import core_options, refuse_empty

CommitName: TypeAlias = int | str | datetime
"""The number of a commit, its tag, "before 2026-11-01", or the same as a time."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEFORE = "before "


class Commit:
    """One commit of a store, open for reading.

    It pickles as the location and the identity of the commit. The process that unpickles it opens
    the store again.

    Parameters
    ----------
    location : str
        A path or a URL, or the name of a store in memory.
    options : mapping, optional
        Options of the service of a URL, as the extension module expects them.
    data : bytes-like, optional
        The bytes of a store in memory.
    number : int, optional
        The number of a commit, which remains open; by default the last one, which `last` replaces.
    """

    def __init__(
        self,
        location: str,
        options: Mapping[str, str] | None = None,
        data: Any = None,
        number: int | None = None,
    ) -> None:
        self._location = location
        self._options = options
        self._data = data
        self._is_pinned = number is not None
        if data is None:
            self.core = _core.Store(location, options)
        else:
            self.core = _core.Store.of_bytes(data, location)
        if number is not None:
            self.core = self.core.at_commit(number)

    def at(self, number: int) -> Commit:
        """Return an earlier commit of the same store; raises KeyError if it does not exist."""
        return Commit(self._location, self._options, self._data, number)

    def with_id(self, commit_id: tuple[int, ...] | None) -> Commit:
        """Return the commit of the same store with this identity; itself if there is none."""
        last = self.core.commit_id
        if commit_id and last and len(commit_id) == len(last) and last[0] > commit_id[0]:
            with contextlib.suppress(_core.NotFoundError, _core.UnsupportedError):
                earlier = self.at(commit_id[0])
                if earlier.core.commit_id == commit_id:
                    return earlier
        return self

    def last(self) -> Commit:
        """Return the last commit of the same store; raises ValueError if a commit was chosen."""
        if self._is_pinned:
            number = self.core.commit_id and self.core.commit_id[0]
            raise _core.InvalidError(
                f"{self.core.location}: opened at commit {number}, which refresh() does not "
                "change; open the store without commit= to see later commits"
            )
        return Commit(self._location, self._options, self._data)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if self._data is not None:
            number = self.core.commit_id[0] if self._is_pinned and self.core.commit_id else None
            return Commit, (self._location, None, bytes(self._data), number)
        location = self._location
        if os.path.lexists(location):  # not a URL; another process may have another directory
            location = os.path.abspath(location)  # noqa: PTH100 - symbolic links stay
        return _reopen, (location, self._options, self.core.commit_id, self._is_pinned)

    @cached_property
    def groups(self) -> list[str]:
        """Paths of all groups; the root is ""."""
        return [path for path, kind in self._nodes if kind == "group"]

    @cached_property
    def arrays(self) -> list[str]:
        """Paths of all arrays."""
        return [path for path, kind in self._nodes if kind == "array"]

    @cached_property
    def _nodes(self) -> list[tuple[str, str]]:
        return [(path.strip("/"), kind) for path, kind in self.core.nodes()]


def _reopen(
    location: str,
    options: Mapping[str, str] | None,
    commit_id: tuple[int, int] | None,
    is_pinned: bool,
) -> Commit:
    """Open a store that another process had open, at the same commit.

    Raises ValueError if the store does not have the commit any more.
    """
    commit = Commit(location, options).with_id(commit_id)
    commit._is_pinned = is_pinned
    if commit.core.commit_id != commit_id:
        raise _core.InvalidError(
            f"{commit.core.location}: expected commit {commit_id}, found "
            f"{commit.core.commit_id}: the store was changed; open it again"
        )
    return commit


def open_core(
    path: str | os.PathLike[str], storage_options: Mapping[str, object] | None = None
) -> _core.Store:
    """Open a store of the extension module."""
    refuse_empty("path", path)
    return _core.Store(os.fspath(path), core_options(storage_options))


def refuse_commit(mode: str, commit: CommitName | None) -> None:
    """Raise ValueError for a commit to open for writing."""
    if commit is not None and mode != "r":
        raise _core.InvalidError(
            f"expected mode 'r' with commit={commit!r}, found {mode!r}: only the last commit can "
            "be changed; ambar.restore makes an earlier one the last"
        )


def find_commit(core: _core.Store, commit: CommitName) -> int:
    """Return the number of a commit.

    Raises KeyError if no commit has this name, or none is older than this time, ValueError for
    invalid text.
    """
    if isinstance(commit, bool) or not isinstance(commit, int | str | datetime):
        raise TypeError(
            f"expected the number, tag or time of a commit, found {type(commit).__name__}"
        )
    if isinstance(commit, int):
        if not 0 < commit < 1 << 64:
            raise _core.NotFoundError(
                f"{core.location}: no commit has the number {commit}; `ambar log` lists the commits"
            )
        return commit
    if isinstance(commit, str) and not commit.startswith(_BEFORE):
        tags = core.tags()
        if commit in tags:
            return tags[commit]
        if commit.isdecimal():
            return find_commit(core, int(commit))
        raise _core.NotFoundError(
            f"{core.location}: no commit has the tag {commit!r}; tags: "
            f"{', '.join(tags) or 'none'}; or give a number or 'before DATE'"
        )
    latest = _time(commit.removeprefix(_BEFORE)) if isinstance(commit, str) else commit
    return _last_before(core, latest if latest.tzinfo else latest.astimezone())


def _last_before(core: _core.Store, latest: datetime) -> int:
    """Return the number of the last commit before a time; raises KeyError if it is unknown."""
    end = (latest - EPOCH) // timedelta(microseconds=1)
    newer = None
    for found in core.commits():
        number = found["number"]
        if found["time"] < end:
            if newer is not None and newer > number + 1:
                raise _core.NotFoundError(
                    f"{core.location}: the last commit before {latest.isoformat()} may be one of "
                    f"{number + 1} to {newer - 1}, which `ambar compact` removed; give the number "
                    "or tag of a commit that `ambar log` lists"
                )
            return number
        newer = number
    raise _core.NotFoundError(f"{core.location}: no commit is older than {latest.isoformat()}")


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise _core.InvalidError(
            f"invalid time: {text!r}; expected a date such as 2026-11-01 or 2026-11-01T12:00"
        ) from None

"""One commit of a store, open for reading, which the objects of the store share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from ambar import _core
from ambar._util.properties import cached_property


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
        The number of an earlier commit; the last commit by default.
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
        if data is None:
            self.core = _core.Store(location, options)
        else:
            self.core = _core.Store.of_bytes(data, location)
        if number is not None:
            self.core = self.core.at_commit(number)

    def at(self, number: int) -> Commit:
        """Return an earlier commit of the same store; raises KeyError if it does not exist."""
        return Commit(self._location, self._options, self._data, number)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if self._data is not None:
            number = self.core.commit_id[0] if self.core.commit_id else None
            return Commit, (self._location, None, bytes(self._data), number)
        location = self._location
        if os.path.lexists(location):  # not a URL; another process may have another directory
            location = os.path.abspath(location)  # noqa: PTH100 - symbolic links stay
        return _reopen, (location, self._options, self.core.commit_id)

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
    location: str, options: Mapping[str, str] | None, commit_id: tuple[int, int] | None
) -> Commit:
    """Open a store that another process had open, at the same commit.

    Raises ValueError if the store does not have the commit any more.
    """
    commit = Commit(location, options)
    if commit_id and commit.core.commit_id and commit.core.commit_id[0] > commit_id[0]:
        with contextlib.suppress(_core.NotFoundError, _core.UnsupportedError):
            commit = commit.at(commit_id[0])
    if commit.core.commit_id != commit_id:
        raise _core.InvalidError(
            f"{commit.core.location}: expected commit {commit_id}, found "
            f"{commit.core.commit_id}: the store was changed; open it again"
        )
    return commit

"""``with`` blocks of writers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class CommitContext(ABC):
    """Base of writers: the end of a ``with`` block commits and closes, an exception only closes."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; uncommitted changes are lost."""

    def _succeeded(self) -> None:  # noqa: B027 - optional
        """Commit, before `close`, at the end of a block that did not raise."""

    def _abort(self) -> None:
        """Close after an error; an upload that is not complete leaves nothing."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._abort()
            return
        try:
            self._succeeded()
        except BaseException:
            self._abort()
            raise
        self.close()

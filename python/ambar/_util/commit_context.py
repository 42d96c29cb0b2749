"""`with` blocks of what is written: closed at their end, whatever happened in them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """What is closed at the end of its ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file; what was not committed is lost."""

    def _succeeded(self) -> None:  # noqa: B027 - few need to
        """Do what is to be done before, at the end of a block that raised nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._succeeded()
        finally:
            self.close()

"""Sources that a conversion could not convert: an error, or a list."""

from __future__ import annotations

from ambar import _core
from ambar.kinds.request import OnError


class Failures:
    """The sources that could not be converted.

    Parameters
    ----------
    on_error
        Whether `add` raises the error ("stop"), or lists it ("skip").
    """

    def __init__(self, on_error: OnError) -> None:
        if on_error not in ("stop", "skip"):
            raise _core.InvalidError(f"invalid on_error {on_error!r}; must be 'stop' or 'skip'")
        self._is_skipped = on_error == "skip"
        self.messages: dict[str, str] = {}
        self.first: Exception | None = None

    def add(self, name: str, error: Exception) -> None:
        """Keep an error; raise it unless failures are skipped."""
        if not self._is_skipped:
            raise error
        self.messages[name] = str(error)
        self.first = self.first or error

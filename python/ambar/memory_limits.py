"""How much memory one read may take: set for the process, or for a ``with`` block."""

from __future__ import annotations

import operator
from types import TracebackType

from ambar import _core


class _Limits:
    """Limits that have been set; leaving its ``with`` block restores those before."""

    def __init__(self, memory: int | None) -> None:
        self._before = _core.set_memory_limit(memory)

    def __enter__(self) -> None:
        """Return nothing: the limits are set already."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _core.set_memory_limit(self._before)

    def __repr__(self) -> str:
        """Return the limits that hold now."""
        return f"<ambar.limits: memory={_core.memory_limit()}>"


def limits(*, memory: int | None) -> _Limits:
    """Set how many bytes one read may take, for all threads of the process.

    The limit holds for every allocation whose size a file decides: the values that a read returns,
    fill values included, indices and metadata. A read that needs more raises LimitError before it
    allocates anything. The default is the memory of the machine, or less where the container (its
    control group) or ``ulimit -v`` allows less.

    The limit holds from the call on. As a context manager it is restored at the end of the block.

    Parameters
    ----------
    memory
        Bytes, at least 1; None for the default.

    Raises
    ------
    InvalidError
        If `memory` is less than 1.

    Examples
    --------
    >>> import ambar
    >>> with ambar.limits(memory=8 << 30):
    ...     print(ambar.get_limits()["memory"])
    8589934592
    """
    if memory is not None and not 1 <= (memory := operator.index(memory)) < 1 << 64:
        raise _core.InvalidError(f"memory={memory} is not a number of bytes from 1 to 2^64 - 1")
    return _Limits(memory)


def get_limits() -> dict[str, int]:
    """Return the limits that hold now, by the names that `limits` gives them."""
    return {"memory": _core.memory_limit()}

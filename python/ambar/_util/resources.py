"""What reads and writes may use: cores, and the memory of a read."""

from __future__ import annotations

import operator
import os
import sys

from ambar import _core


class _Limits:
    """The result of `limits`; leaving its ``with`` block restores the previous limit."""

    def __init__(self, memory: int | None) -> None:
        self._before = _core.set_memory_limit(memory)

    def __enter__(self) -> None:
        """Do nothing: the limit is already set."""

    def __exit__(self, *_: object) -> None:
        _core.set_memory_limit(self._before)

    def __repr__(self) -> str:
        """Return the current limit as text."""
        return f"<ambar.limits: memory={_core.memory_limit()}>"


def limits(*, memory: int | None) -> _Limits:
    """Set how many bytes one read may take, for all threads of the process.

    The limit applies to each allocation whose size a file determines: the values that a read
    returns, including fill values, indices and metadata. A read that needs a larger allocation
    raises LimitError before it allocates. The default is the memory of the machine, or the limit
    of the container (its control group) or of ``ulimit -v``, if that is lower.

    The limit applies from the call on. As a context manager, the previous limit is restored at the
    end of the block.

    Parameters
    ----------
    memory : int or None
        Bytes, at least 1; None for the default.

    Returns
    -------
    context manager
        Its ``with`` block ends with the previous limit.

    Raises
    ------
    ValueError
        If `memory` is not in the range from 1 to 2^64 - 1.

    Examples
    --------
    >>> with ambar.limits(memory=8 << 30):
    ...     print(ambar.get_limits()["memory"])
    8589934592
    """
    if memory is not None and not 1 <= (memory := operator.index(memory)) < 1 << 64:
        raise _core.InvalidError(
            f"invalid memory={memory}; expected a number of bytes from 1 to 2^64 - 1, or None"
        )
    return _Limits(memory)


def get_limits() -> dict[str, int]:
    """Return the current limits, by the names of the parameters of `limits`.

    Returns
    -------
    dict of str to int
        "memory": bytes.

    Examples
    --------
    >>> ambar.get_limits()["memory"] > 1 << 20
    True
    """
    return {"memory": _core.memory_limit()}


def usable_cores() -> int:
    """Return the number of cores that this process may use.

    Linux restricts processes to some cores, as batch systems do; elsewhere it is the number of
    cores of the machine.
    """
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

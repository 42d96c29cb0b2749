"""The number of cores that this process may use."""

from __future__ import annotations

import os
import sys


def usable_cores() -> int:
    """Return the number of cores that this process may use.

    Linux restricts processes to some cores, as batch systems do; elsewhere it is the number of
    cores of the machine.
    """
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

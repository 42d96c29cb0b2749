"""Waiting for changes of a file."""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time
from pathlib import Path

# Constants of inotify(7): writes into a file, and files that are moved into a folder.
_MODIFY, _MOVED_TO = 0x2, 0x80


def wait_for_change(path: Path, seconds: float) -> None:
    """Return after a process of this machine changes a file, or after this time.

    Only inotify of Linux reports changes; elsewhere, and where the system has no watch left, the
    whole time is waited.

    Parameters
    ----------
    path : Path
        A file that is written in place, or a folder into which files are moved.
    seconds : float
        The longest time to wait.
    """
    if sys.platform != "linux":
        time.sleep(seconds)
        return
    libc = ctypes.CDLL(None)
    descriptor = libc.inotify_init1(os.O_CLOEXEC)
    try:
        watch = libc.inotify_add_watch(descriptor, os.fsencode(path), _MODIFY | _MOVED_TO)
        if watch < 0:
            time.sleep(seconds)
        else:
            poll = select.poll()  # select() is limited to 1024 descriptors
            poll.register(descriptor, select.POLLIN)
            poll.poll(1000 * seconds)
    finally:
        if descriptor >= 0:
            os.close(descriptor)

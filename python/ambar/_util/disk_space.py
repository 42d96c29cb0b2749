"""Free space of disks, and errors that name the file and say what to do when a disk is full."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

_ADVICE = "free some, or choose another disk"


def check_free_space(needed: int, place: Path) -> None:
    """Raise OSError (ENOSPC) if the disk of the file `place` has fewer than `needed` free bytes."""
    folder = next(parent for parent in place.absolute().parents if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise OSError(
            errno.ENOSPC,
            f"expected {needed:,} bytes of free space for the export, found {free:,}; {_ADVICE}",
            os.fspath(place),
        )


def write_error(error: OSError, place: Path) -> OSError:
    """Return an error of writing a file with the path that the user gave, and advice."""
    what = error.strerror or str(error)
    if error.errno == errno.ENOSPC and _ADVICE not in what:
        what = f"no space left on the disk; {_ADVICE}"
    return OSError(error.errno or errno.EIO, what, os.fspath(place))

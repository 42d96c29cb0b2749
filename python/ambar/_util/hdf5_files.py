"""Files of HDF5: their signature, and opening them for reading."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.optional import require

SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""The first bytes of files of HDF5."""


def is_hdf5(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a file with the signature of HDF5."""
    place = Path(path)
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


@contextmanager
def open_hdf5(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield a file of HDF5 that is open for reading in h5py.

    h5py raises errors of many types for damaged metadata, also in the block. Errors of other code
    in the block are raised unchanged.

    Raises
    ------
    CorruptError
        If the file is damaged.
    OSError
        If the operating system refuses, or another program has locked the file.
    """
    h5py = require("h5py", purpose="reading HDF5", install="ambar[hdf5]")
    try:
        with h5py.File(path) as file:
            yield file
    except (OSError, KeyError, RuntimeError, TypeError, ValueError) as error:
        if not _was_raised_in_h5py(error):
            raise
        if isinstance(error, OSError) and error.errno:  # not found, or locked
            text = error.strerror or os.strerror(error.errno)
            raise OSError(error.errno, text, os.fspath(path)) from error
        text = " ".join(str(error).strip("'\"").split())
        raise _core.CorruptError(f"{path}: {text}; restore it from a copy") from error


def _was_raised_in_h5py(error: BaseException) -> bool:
    """Return whether an error was raised in a call of h5py."""
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_globals.get("__name__", "").partition(".")[0] == "h5py":
            return True
        frame = frame.tb_next
    return False

"""HDF5 files whose disk may become full while they are written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ambar._util.disk_space import write_error


class _Output(io.FileIO):
    """A file whose writes never fail: they do nothing after the first error.

    libhdf5 keeps what it could not write, tries again at the end of the program, and crashes.
    """

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write all bytes."""
        rest = memoryview(data)
        try:
            while self.error is None and rest:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the size of the file."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


@contextmanager
def hdf5_file(h5py: Any, path: Path, **options: Any) -> Iterator[Any]:
    """Yield a new file of h5py at `path`.

    Parameters
    ----------
    h5py
        The module.
    path
        The file to write.
    **options
        Options of ``h5py.File``.

    Raises
    ------
    OSError
        If the file system reports an error.
    """
    with _Output(path, "w+b") as output:
        try:
            with h5py.File(output, "w", **options) as file:
                yield file
        except Exception:
            # Another error may follow from values that are not in the file.
            if output.error is None:
                raise
        if output.error is not None:
            raise write_error(output.error, path) from output.error

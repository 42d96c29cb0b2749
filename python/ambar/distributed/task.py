"""The side of the tasks: invitations, and the writers that they open."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import lengths_of
from ambar.store.dtypes import as_unmasked_array, to_core
from ambar.store.error_bounds import check_range
from ambar.store.nodes import relative


class ArrayRegion(NamedTuple):
    """A part of an array, which one task can write.

    Examples
    --------
    >>> region = ambar.distributed.ArrayRegion("density", (100, 0), (50, 200))
    >>> region.slices
    (slice(100, 150, None), slice(0, 200, None))
    """

    path: str
    """The path of the array."""
    start: tuple[int, ...]
    """The first index in each dimension."""
    shape: tuple[int, ...]
    """The length of each dimension."""

    @property
    def slices(self) -> tuple[slice, ...]:
        """The region as an index of arrays."""
        lengths = zip(self.start, self.shape, strict=True)
        return tuple(slice(start, start + length) for start, length in lengths)


class Invitation:
    """Lets tasks write arrays of a commit, until the commit ends.

    `SharedCommit.invitation` is one. It can be pickled, and travels as bytes or as a file.

    Parameters
    ----------
    data : bytes
        The result of ``bytes(invitation)``.

    Examples
    --------
    >>> arrays = {"x": {"shape": (4,), "dtype": "f8", "blocks": (2,)}}
    >>> with ambar.distributed.open("invited.ambar", arrays=arrays) as commit:
    ...     invitation = ambar.distributed.Invitation(bytes(commit.invitation))
    ...     with invitation.writer() as writer:
    ...         writer.write_region("x", np.ones(4), (0,))
    ...         receipt = writer.receipt()
    ...     commit.finish([receipt])
    >>> ambar.open_store("invited.ambar")["x"][:]
    array([1., 1., 1., 1.])
    """

    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)

    @classmethod
    def _of(cls, core: bytes, limits: Mapping[str, tuple[float, float]]) -> Self:
        """Return the invitation of the extension module with the value ranges of arrays."""
        return cls(json.dumps({"invitation": core.decode(), "limits": limits}).encode())

    def __bytes__(self) -> bytes:
        return self._data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the invitation to a file, for tasks that another program starts.

        Other users cannot read the file, because it has the storage options of a URL.

        Parameters
        ----------
        path : str or path-like
            The file to write; it is replaced if it exists.

        Raises
        ------
        OSError
            If the file system reports an error.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("saved.ambar", arrays=arrays) as commit:
        ...     commit.invitation.save("invitation")
        ...     with ambar.distributed.Invitation.load("invitation").writer() as writer:
        ...         writer.write_region("x", np.ones(4), (0,))
        ...         writer.save_receipt("0.receipt")
        ...     commit.finish(".")
        """
        write_whole(Path(path), self._data, mode=0o600)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an invitation from a file that `save` has written.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        Invitation
            The invitation.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("loaded.ambar", arrays=arrays) as commit:
        ...     commit.invitation.save("invitation")
        ...     loaded = ambar.distributed.Invitation.load("invitation")
        ...     commit.cancel()
        >>> loaded.writer()
        Traceback (most recent call last):
        ...
        ambar.InvalidError: ... the commit has ended or was cancelled, ...
        """
        return cls(Path(path).read_bytes())

    def writer(self, threads: int | None = 1) -> TaskWriter:
        """Open the store for writing regions.

        Parameters
        ----------
        threads : int or None, default 1
            The number of threads that encode; None for all cores.

        Returns
        -------
        TaskWriter
            A context manager. It belongs to this process, and to one thread at a time.

        Raises
        ------
        ValueError
            If the commit has ended, this machine does not see its files, or another version of
            ambar made the invitation.
        OSError
            If the file system reports an error.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("task.ambar", arrays=arrays) as commit:
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", np.arange(4.0), (0,))
        ...         commit.finish([writer.receipt()])
        """
        try:
            content = json.loads(self._data)
            core, limits = content["invitation"].encode(), content["limits"]
        except (ValueError, KeyError, TypeError):
            raise _core.InvalidError(
                f"expected the bytes of an invitation, found {self._data[:40]!r}; pass "
                "bytes(commit.invitation) unchanged"
            ) from None
        return TaskWriter(_core.RegionWriter(core, threads), limits)


class TaskWriter:
    """Writes regions of arrays in one task. `Invitation.writer` returns it.

    Examples
    --------
    >>> def write(invitation, region):
    ...     with invitation.writer() as writer:
    ...         writer.write_region(region.path, np.full(region.shape, 2.5), region.start)
    ...         return writer.receipt()
    >>> arrays = {"x": {"shape": (4, 6), "dtype": "f8", "blocks": (2, 6)}}
    >>> with ambar.distributed.open("tasks.ambar", arrays=arrays) as commit:
    ...     commit.finish(write(commit.invitation, region) for region in commit.regions())
    >>> float(ambar.open_store("tasks.ambar")["x"][:].sum())
    60.0
    """

    def __init__(self, core: _core.RegionWriter, limits: Mapping[str, tuple[float, float]]) -> None:
        self._core = core
        self._limits = limits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write_region(self, path: str, data: npt.ArrayLike, start: Sequence[int]) -> None:
        """Write `data` into a region of an array.

        The region begins and ends at borders of the array's shards (of its chunks, if it has no
        shards), or at the end of the array. If tasks write a region twice, the values of the last
        receipt are valid.

        Parameters
        ----------
        path : str
            An array that the commit has created, or updates.
        data : array_like
            Values of the array's dtype.
        start : sequence of int
            The first index of the region in each dimension.

        Raises
        ------
        KeyError
            If tasks do not write this array.
        ValueError
            If the region has parts of shards (the message has the right borders), data do not fit,
            values are outside the `value_range` of the array, or the commit has ended.
        OSError
            If the file system reports an error, such as a full disk.

        Examples
        --------
        >>> arrays = {"x": {"shape": (100,), "dtype": "f8", "blocks": (50,)}}
        >>> with ambar.distributed.open("regions.ambar", arrays=arrays) as commit:
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", np.ones(30), (0,))
        Traceback (most recent call last):
        ...
        ambar.InvalidError: ... regions begin and end at multiples of [50], ...
        """
        path = relative(path)
        values = as_unmasked_array(path, data)
        dtype, native = to_core(path, values)
        if isinstance(native, list):
            raise _core.UnsupportedError(
                f"{path}: expected values of fixed size, found {dtype}; write them in the "
                "coordinator, with SharedCommit.create_array"
            )
        check_range(path, values, self._limits.get(path))
        begin = lengths_of(path, "start", start)
        self._core.write(path, native, dtype, list(begin), list(values.shape))

    def receipt(self) -> bytes:
        """Make all written values durable, and return the receipt for `SharedCommit.finish`.

        Returns
        -------
        bytes
            What was written: about 150 bytes for each shard.

        Raises
        ------
        ValueError
            If the commit has ended.
        OSError
            If the file system reports an error.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("receipt.ambar", arrays=arrays) as commit:
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", np.arange(4.0), (0,))
        ...         receipt = writer.receipt()
        ...     commit.finish([receipt])
        """
        return self._core.receipt()

    def save_receipt(self, path: str | os.PathLike[str]) -> None:
        """Write the receipt to a file, which appears when it is complete.

        Parameters
        ----------
        path : str or path-like
            The file; `SharedCommit.finish` reads those of a folder that end in ``.receipt``.

        Raises
        ------
        ValueError, OSError
            As for `receipt`.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("files.ambar", arrays=arrays) as commit:
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", np.arange(4.0), (0,))
        ...         writer.save_receipt("task_0.receipt")
        ...     commit.finish(".")
        """
        write_whole(Path(path), self.receipt())

    def close(self) -> None:
        """Close the file. Values without a receipt are lost. The ``with`` block calls it.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8"}}
        >>> with ambar.distributed.open("closing.ambar", arrays=arrays) as commit:
        ...     writer = commit.invitation.writer()
        ...     writer.write_region("x", np.arange(4.0), (0,))
        ...     receipt = writer.receipt()
        ...     writer.close()
        ...     commit.finish([receipt])
        """
        self._core.close()


def write_whole(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file that other processes see only as a whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    temporary.replace(path)

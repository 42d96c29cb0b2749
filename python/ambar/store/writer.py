"""Writing a store: groups and arrays, which become visible together with a commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar.store.commit_context import Closing
from ambar.store.dtypes import describe, to_bytes, to_zarr
from ambar.store.error_bounds import as_text, resolved
from ambar.store.node_paths import absolute, to_json
from ambar.store.urls import refuse_url

Profile: TypeAlias = Literal["fast", "balanced", "small"]
Durability: TypeAlias = Literal["full", "none"]


class Writer(Closing):
    """Writes groups and arrays. Leaving its ``with`` block commits; an exception there does not.

    What was put since the last commit is invisible to readers until the next one, and all of it
    visible then, whenever the writer is killed.

    Threads may share a writer: each method is one step, which others wait for. A commit has what
    the methods did that returned before it. Data must not change while a method has them.
    """

    def __init__(self, core: _core.Writer) -> None:
        self._core = core

    @property
    def core(self) -> _core.Writer:
        """The writer of the extension module."""
        return self._core

    def group(self, path: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Make a group, and those it lies in, and set its attributes (anything JSON can hold)."""
        self._core.group(absolute(path), to_json(attributes))

    def set_attributes(self, path: str, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes of a group or an array; raises KeyError if it does not exist."""
        self._core.set_attributes(absolute(path), to_json(attributes))

    def array(
        self,
        path: str,
        data: npt.ArrayLike,
        *,
        dims: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        predict: bool = False,
        whole: bool = False,
        cells: bool = False,
    ) -> None:
        """Write an array, in place of the one that was there.

        Parameters
        ----------
        path
            Its path; groups on the way are made.
        data
            Numbers, bools, complex numbers, datetimes, durations, strings or bytes of fixed or
            any length, of any shape, 0-dimensional and empty ones too.
        dims
            A name per dimension.
        attributes
            Anything JSON can hold.
        fill_value
            What the array has where nothing was written; zero by default.
        chunks
            Shape of a chunk, the unit of decoding; by default one of about 256 KiB.
        shards
            Shape of a shard, the unit of writing, a multiple of a chunk's.
        profile
            "fast", "balanced" or "small", in place of the store's.
        error_bound
            How far values of float32 or float64 may be off: a number, or a part of the value range
            such as ``"1e-3 of range"``; by default not at all. NaN and infinities stay.
        predict
            Whether the dimensions are those of a grid along which values change smoothly: then the
            codec ambar is tried without an error bound too, and readers may need ambar. Components
            of vectors come last. Profile "fast" and types other than float32 and float64 take no
            notice.
        whole
            Whether it is mostly read as a whole: chunks may then be up to 4 MiB long, where its
            values repeat themselves far away.
        cells
            Whether its rows (cells, 2 to 4), integers of 32 or 64 bits, are the corners of lines,
            triangles or tetrahedra that touch. Then the codec ambar.simplices is tried, for which
            readers need ambar, in chunks of 4 MiB, or 256 MiB where cells that touch lie far from
            each other, whatever `chunks` says. Profile "fast" takes no notice.

        Raises
        ------
        ValueError
            If the arguments do not fit together.
        UnsupportedError
            If the dtype cannot be stored.
        """
        values = np.asarray(data)
        dtype, native = to_zarr(values)
        about = (
            dtype,
            list(values.shape),
            None if dims is None else list(dims),
            to_json(attributes),
            None if fill_value is None else to_bytes(fill_value, values.dtype),
            None if chunks is None else list(chunks),
            None if shards is None else list(shards),
            profile,
        )
        bound = None if error_bound is None else as_text(error_bound)
        self._core.array(absolute(path), native, about, bound, predict, whole, cells)

    def declare(
        self,
        path: str,
        dtype: npt.DTypeLike,
        shape: Sequence[int],
        *,
        dims: Sequence[str | None] | None = None,
        attributes: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        value_range: Sequence[float] | None = None,
    ) -> None:
        """Make an array that has its fill value everywhere, to be written in parts.

        Arguments are as for `array`; `dtype` may be ``str`` or ``bytes`` for strings of any length.
        An `error_bound` that depends on the value range (``"1e-3 of range"``, ``"80 dB"``) needs
        `value_range`: the lowest and the highest finite value of the whole array. The codecs are
        chosen with the first part that is written before the next commit.

        Raises
        ------
        ValueError
            If the arguments do not fit together.
        UnsupportedError
            If the dtype cannot be stored.
        """
        name, kind = describe(dtype)
        about = (
            name,
            list(shape),
            None if dims is None else list(dims),
            to_json(attributes),
            None if fill_value is None else to_bytes(fill_value, kind),
            None if chunks is None else list(chunks),
            None if shards is None else list(shards),
            profile,
        )
        bound = None if error_bound is None else resolved(error_bound, value_range)
        self._core.declare(absolute(path), about, bound)

    def write_region(self, path: str, data: npt.ArrayLike, start: Sequence[int]) -> None:
        """Write `data` into an array of its dtype, from the index `start` on.

        Chunks that it covers in part are read, merged and written again, and so are shards. Raises
        KeyError if the array does not exist, ValueError if the region is not in it.
        """
        values = np.asarray(data)
        dtype, native = to_zarr(values)
        self._core.write_region(absolute(path), native, dtype, list(start), list(values.shape))

    def append(self, path: str, *data: npt.ArrayLike) -> None:
        """Write rows behind the last of an array, along its first dimension.

        Each of `data` has the array's dtype, and its shape but for the number of rows. Raises
        KeyError if the array does not exist, ValueError if data do not fit.
        """
        pieces = [np.asarray(piece) for piece in data]
        if not pieces:
            return
        rows = sum(len(piece) for piece in pieces)
        if pieces[0].dtype.kind in "OT":
            pieces = [np.concatenate(pieces)]
        native = [to_zarr(piece) for piece in pieces]
        if len({dtype for dtype, _ in native}) > 1:
            found = ", ".join(sorted({str(piece.dtype) for piece in pieces}))
            raise _core.InvalidError(f"{path}: rows of one dtype are appended, not of {found}")
        dtype, values = native[0]
        parts = values if isinstance(values, list) else [part for _, part in native]
        self._core.append(absolute(path), parts, dtype, rows)

    def remove(self, path: str) -> None:
        """Remove a group with all in it, or an array; raises KeyError if it does not exist."""
        self._core.remove(absolute(path))

    def commit(self) -> None:
        """Make everything done so far visible to readers, all at once, and durable."""
        self._core.commit()

    def close(self) -> None:
        """Give up what was not committed, and let other writers in."""
        self._core.close()

    def _succeeded(self) -> None:
        self.commit()


def create(
    path: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    directory: bool = False,
    durability: Durability = "full",
    profile: Profile = "balanced",
    threads: int | None = None,
) -> Writer:
    """Return a writer of a new store, which appears under its name with the first commit.

    Parameters
    ----------
    path
        Where to write it.
    overwrite
        Replace what is there, at the first commit; by default that is an error.
    directory
        Write a folder of files in place of a single file.
    durability
        "full": commits survive a power cut. "none" leaves out the fsyncs, for scratch files.
    profile
        How to choose codecs: "fast" to read, "balanced", or "small".
    threads
        Threads to encode with; all cores by default.

    Raises
    ------
    FileExistsError
        If `path` exists, without `overwrite`.
    BusyError
        If another writer has it open.
    UnsupportedError
        If `path` is a URL.
    OSError
        If the file system refuses.
    """
    refuse_url(path)
    mode: Literal["create", "overwrite"] = "overwrite" if overwrite else "create"
    return Writer(_core.Writer(os.fspath(path), mode, directory, durability, profile, threads))


def append(
    path: str | os.PathLike[str],
    *,
    durability: Durability = "full",
    profile: Profile = "balanced",
    threads: int | None = None,
) -> Writer:
    """Return a writer that adds to the store at `path`, or replaces parts of it.

    Arguments are as for `create`. What is replaced or removed leaves dead bytes, which
    `ambar.compact` takes out. Raises KeyError if the store does not exist, BusyError if another
    writer is at it.
    """
    refuse_url(path)
    return Writer(_core.Writer(os.fspath(path), "append", False, durability, profile, threads))

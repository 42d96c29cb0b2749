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
    """Writes groups and arrays of a store.

    `create` and `append` return one. The end of its ``with`` block commits; if the block raises,
    changes since the last commit are discarded. A commit is atomic: readers see all of its changes
    or none, even if the process is killed.

    Threads may share a writer: methods run one after the other. A commit contains the changes of
    all methods that returned before it. Do not change data while a method writes them.

    Examples
    --------
    >>> import ambar
    >>> import numpy as np
    >>> with ambar.create("new.ambar") as writer:
    ...     writer.group("run", {"code": "solver"})
    ...     writer.array("run/density", np.ones((64, 64)), dims=["y", "x"], error_bound=1e-3)
    """

    def __init__(self, core: _core.Writer) -> None:
        self._core = core

    @property
    def core(self) -> _core.Writer:
        """The writer of the extension module."""
        return self._core

    def group(self, path: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Create a group and its parents.

        Parameters
        ----------
        path
            The path of the group.
        attributes
            Attributes of the group: names and JSON values; none by default. Those of an existing
            group are replaced.

        Raises
        ------
        ValueError
            If the path is invalid or an array, or JSON cannot represent the attributes.
        """
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
        """Write an array; an array of the same path is replaced.

        Parameters
        ----------
        path
            The path of the array; missing groups are created.
        data
            An array of any shape, also 0-dimensional or empty: numbers, bools, complex numbers,
            datetimes, durations, strings or bytes.
        dims
            A name, or None, for each dimension.
        attributes
            Attributes of the array: names and JSON values.
        fill_value
            The value of elements that were never written; zero by default.
        chunks
            The shape of a chunk, the unit of decoding. By default a chunk has about 256 KiB in 1-D
            arrays and short rows, 64 KiB in other arrays, and 512 KiB with an error bound.
        shards
            The shape of a shard, the unit of writing: a multiple of `chunks`.
        profile
            "fast", "balanced" or "small"; by default that of the writer.
        error_bound
            How far values of float32 or float64 may differ from `data`: a number, or a string such
            as ``"1e-3 of range"`` or ``"1e-3 relative"`` (docs/howto/error-bounds.md). Lossless by
            default. NaN and infinities do not change.
        predict
            Whether values change smoothly along the dimensions of a grid. The codec ``ambar`` is
            then tried for lossless arrays too; if it is chosen, readers need ambar. The last
            dimension may be the components of vectors. Ignored by the profile "fast" and by types
            other than float32 and float64.
        whole
            Whether readers usually read the whole array. Default chunks are then longer: up to
            4 MiB if values repeat at long distances. Ignored if `chunks` or `error_bound` is given.
        cells
            Whether `data` is the connectivity of lines, triangles or tetrahedra: integers of 32 or
            64 bits, shape (cells, 2 to 4). The codec ``ambar.simplices`` is tried with chunks of
            4 MiB, or of 256 MiB if neighbouring cells are in distant rows. If it is chosen,
            `chunks` and `shards` are ignored, and readers need ambar. Ignored by the profile
            "fast".

        Raises
        ------
        ValueError
            If an argument is invalid, or arguments contradict each other.
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
        """Create an array filled with its fill value, for `write_region` and `append`.

        The first region that is written determines the codecs. If a commit comes first, the array
        keeps the default codecs of its profile.

        Parameters
        ----------
        path, dims, attributes, fill_value, chunks, shards, profile, error_bound
            As for `array`.
        dtype
            The dtype; ``str`` or ``bytes`` for strings of any length.
        shape
            The shape.
        value_range
            The lowest and the highest finite value of the whole array. Bounds that depend on it
            (``"1e-3 of range"``, ``"80 dB"``) are computed from it; values outside it are not
            detected.

        Raises
        ------
        ValueError
            If an argument is invalid, or arguments contradict each other.
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
        """Write `data` into a region of an array of the same dtype.

        Chunks and shards that the region covers partly are read, merged and written again. In an
        array with an error bound, merged chunks are stored without loss, so that no value changes
        twice: choose chunks that the regions cover completely.

        Parameters
        ----------
        path
            The path of the array.
        data
            Values of the region.
        start
            The first index of the region in each dimension.

        Raises
        ------
        KeyError
            If the array does not exist.
        ValueError
            If the region is not inside the array, or the dtype differs from that of the array.
        """
        values = np.asarray(data)
        dtype, native = to_zarr(values)
        self._core.write_region(absolute(path), native, dtype, list(start), list(values.shape))

    def append(self, path: str, *data: npt.ArrayLike) -> None:
        """Append rows to an array, along its first dimension.

        Parameters
        ----------
        path
            The path of the array.
        *data
            Arrays of the array's dtype and shape, except for the first dimension.

        Raises
        ------
        KeyError
            If the array does not exist.
        ValueError
            If the dtype or the shape of a row differs from that of the array.
        """
        pieces = [np.asarray(piece) for piece in data]
        if not pieces:
            return
        rows = {piece.shape[1:] if piece.ndim else None for piece in pieces}
        if None in rows or len(rows) > 1:
            found = ", ".join(sorted(str(piece.shape) for piece in pieces))
            raise _core.InvalidError(f"{path}: expected rows of one shape, found arrays of {found}")
        shape = [sum(len(piece) for piece in pieces), *pieces[0].shape[1:]]
        if pieces[0].dtype.kind in "OT":
            pieces = [np.concatenate(pieces)]
        native = [to_zarr(piece) for piece in pieces]
        if len({dtype for dtype, _ in native}) > 1:
            found = ", ".join(sorted({str(piece.dtype) for piece in pieces}))
            raise _core.InvalidError(f"{path}: rows of one dtype are appended, not of {found}")
        dtype, values = native[0]
        parts = values if isinstance(values, list) else [part for _, part in native]
        self._core.append(absolute(path), parts, dtype, shape)

    def remove(self, path: str) -> None:
        """Remove an array, or a group with its members; raises KeyError if it does not exist."""
        self._core.remove(absolute(path))

    def commit(self) -> None:
        """Make all changes since the last commit visible to readers.

        With durability "full" they also survive a power failure.
        """
        self._core.commit()

    def close(self) -> None:
        """Discard changes that were not committed, and release the lock of the store."""
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
    """Return a writer of a new store. The store appears at its path with the first commit.

    Parameters
    ----------
    path
        The path of the store; URLs are not supported.
    overwrite
        Replace an existing file at the first commit, or with `directory` an existing directory
        store.
    directory
        Write a folder of files instead of a single file.
    durability
        "full": commits survive a power failure. "none" omits fsync, for temporary files.
    profile
        How codecs are chosen: "fast", "balanced" or "small".
    threads
        The number of threads that encode; all cores by default.

    Returns
    -------
    Writer
        A context manager that commits at the end of its block.

    Raises
    ------
    FileExistsError
        If `path` exists, without `overwrite`.
    BusyError
        If another writer has it open.
    ValueError
        If `profile` or `durability` is invalid, or a directory would replace a file or the reverse.
    UnsupportedError
        If `path` is a URL.
    OSError
        If the file system reports an error.
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
    """Return a writer that changes the store at `path`.

    Replaced and removed arrays leave dead bytes in the file, which `ambar.compact` removes.

    Parameters
    ----------
    path
        The path of the store; URLs are not supported.
    durability, profile, threads
        As for `create`.

    Returns
    -------
    Writer
        A context manager that commits at the end of its block.

    Raises
    ------
    FileNotFoundError
        If the store does not exist.
    BusyError
        If another writer has it open.
    CorruptError
        If the file is not a ZIP, or is damaged.
    KeyError
        If it contains no Zarr hierarchy.
    UnsupportedError
        If another program wrote the store: copy its arrays into a new one. If `path` is a URL.
    ValueError
        If `profile` or `durability` is invalid.
    """
    refuse_url(path)
    return Writer(_core.Writer(os.fspath(path), "append", False, durability, profile, threads))

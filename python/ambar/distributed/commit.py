"""The side of the coordinator: a commit whose arrays tasks write."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import WriteMode, check_bytes, lengths_of
from ambar._util.commit_context import CommitContext
from ambar._util.text import plural
from ambar.distributed.task import ArrayRegion, Invitation
from ambar.parallel.division import divide
from ambar.store.dtypes import to_core
from ambar.store.nodes import WriterAttributes, check_reserved, relative
from ambar.store.urls import is_object, is_url, without_secrets
from ambar.store.writer import (
    ArrayOptions,
    Profile,
    Writer,
    check_dims,
    check_layout,
    create,
)

_LISTED = 5
"""Missing regions that an error message lists."""


class SharedCommit(CommitContext):
    """One commit of a store, whose arrays tasks in other processes write.

    `open` returns it. First it creates groups and arrays; then tasks write regions with its
    `invitation`, in any processes; last, `finish` commits what their receipts list. Without
    `finish`, or after an exception, nothing is committed, and the store is unchanged.

    Examples
    --------
    >>> def write(invitation, region):  # a task, in any process that sees the file system
    ...     with invitation.writer() as writer:
    ...         writer.write_region(region.path, np.full(region.shape, 1.5), region.start)
    ...         return writer.receipt()
    >>> with ambar.distributed.open("x.ambar") as commit:
    ...     commit.create_array("density", shape=(100, 200), dtype="f8", blocks=(50, 200))
    ...     receipts = [write(commit.invitation, region) for region in commit.regions()]
    ...     commit.finish(receipts)
    >>> ambar.open_store("x.ambar")["density"].shape
    (100, 200)
    """

    def __init__(self, writer: Writer, location: str, alignment: int = 4096) -> None:
        self._writer = writer
        self._location = location
        self._alignment = alignment
        self._expected: dict[str, list[ArrayRegion]] = {}
        self._shared: _core.SharedCommit | None = None
        self._invitation: Invitation | None = None
        self._is_over = False

    @property
    def attrs(self) -> WriterAttributes:
        """The attributes of the root, as of `ambar.Writer`. `finish` commits them."""
        self._check_open()
        return self._writer.attrs

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Create a group and its parents, as `ambar.Writer.create_group` does.

        Parameters
        ----------
        path : str
            The path of the group.
        attrs : mapping, optional
            Attributes of the group: names and JSON values.

        Raises
        ------
        ValueError
            If the path is invalid, or tasks were invited already.

        Examples
        --------
        >>> with ambar.distributed.open("grouped.ambar") as commit:
        ...     commit.create_group("run", {"code": "solver"})
        ...     commit.finish([])
        """
        self._check_unshared()
        self._writer.create_group(path, attrs)

    def create_array(
        self,
        path: str,
        data: npt.ArrayLike | None = None,
        *,
        shape: Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        blocks: Sequence[int] | None = None,
        sample: npt.ArrayLike | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        value_range: Sequence[float] | None = None,
        layout: Literal["grid"] | None = None,
    ) -> None:
        """Create an array that tasks write; with `data`, write a small one in the coordinator.

        In mode "a", it replaces an array of this path.

        Parameters
        ----------
        path : str
            The path of the array; missing groups are created.
        data : array_like, optional
            Values of an array that no task writes, such as coordinates.
        shape, dtype : optional
            The shape, and a dtype of fixed size, of an array that tasks write.
        blocks : sequence of int, optional
            The shape of the regions that tasks write, at multiples of it. Chunks and shards are
            chosen so that each region has whole ones. Without `blocks`, `chunks` and `shards`,
            `regions` has the regions.
        sample : array_like, optional
            Values that resemble those of the array, of any shape with as many dimensions, to choose
            the codecs. By default the codecs are those of the profile.
        chunks, shards : sequence of int, optional
            The shapes of chunks and shards, instead of `blocks`. With `chunks` alone, a shard is
            one chunk; `shards` need `chunks`.
        dims, attrs, fill_value : optional
            As for `ambar.Writer.create_array`.
        profile, error_bound, value_range, layout : optional
            As for `ambar.Writer.create_array`. Bounds that depend on the range of values need
            `value_range`.

        Raises
        ------
        ValueError
            If arguments are invalid or contradict each other, or tasks were invited already.
        UnsupportedError
            If the dtype has no fixed size.

        Examples
        --------
        >>> with ambar.distributed.open("created.ambar") as commit:
        ...     commit.create_array("time", [0.0, 0.5])
        ...     commit.create_array(
        ...         "density", shape=(2, 500), dtype="f8", blocks=(1, 500), error_bound=1e-3
        ...     )
        ...     [region.start for region in commit.regions()]
        ...     commit.cancel()
        [(0, 0), (1, 0)]
        """
        self._check_unshared()
        path = relative(path)
        common: dict[str, Any] = {
            "dims": dims,
            "attrs": attrs,
            "fill_value": fill_value,
            "chunks": chunks,
            "shards": shards,
            "profile": profile,
            "error_bound": error_bound,
            "value_range": value_range,
        }
        if data is not None:
            if not (shape is dtype is blocks is sample is None):
                raise _core.InvalidError(
                    f"{path}: expected no shape, dtype, blocks and sample of an array with data; "
                    "leave them out"
                )
            self._writer.create_array(path, data, layout=layout, **common)
            return
        if shape is None or dtype is None:
            raise _core.InvalidError(
                f"{path}: expected data, or shape and dtype, found shape={shape!r} and "
                f"dtype={dtype!r}; give both"
            )
        check_layout(path, layout, ("grid",))
        check_dims(path, dims)
        check_reserved(attrs)
        if shards is not None and chunks is None:
            raise _core.InvalidError(
                f"{path}: expected chunks with shards, found shards={shards!r} alone; give both, "
                "or blocks"
            )
        common["shards"] = shards or chunks
        shape = lengths_of(path, "shape", shape)
        if blocks is not None:
            blocks = lengths_of(path, "blocks", blocks)
            if chunks is not None or shards is not None:
                raise _core.InvalidError(
                    f"{path}: expected blocks, or chunks and shards, found both; leave one out"
                )
            dtype = np.dtype(dtype)
            common |= _divided(path, shape, blocks, dtype, has_bound=error_bound is not None)
        options = ArrayOptions(**common)
        spec = options.declared(path, dtype, shape, is_grid=layout == "grid")
        self._writer._core.declare(path, spec)
        self._writer._limit(path, options.limits)
        if sample is not None:
            choose_codecs(self._writer, path, np.asarray(sample, dtype))
        self._expected[path] = [ArrayRegion(path, (0,) * len(shape), shape)]

    def update_array(
        self, path: str, start: Sequence[int] | None = None, shape: Sequence[int] | None = None
    ) -> None:
        """Let tasks write regions of an existing array.

        Parameters
        ----------
        path : str
            The path of the array.
        start, shape : sequence of int, optional
            A region that the tasks write together: `regions` divides it, and `finish` checks that
            no shard of it is missing. Further calls add regions of the same array. By default they
            may write any regions, and nothing is expected.

        Raises
        ------
        KeyError
            If the array does not exist (raised by `invitation`).
        ValueError
            If tasks were invited already; if the region does not begin and end at borders of shards
            (raised by `regions`, `missing` and `finish`).

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8", "chunks": (2,)}}
        >>> with ambar.distributed.open("updated.ambar", arrays=arrays) as commit:
        ...     commit.finish([], partial=True)
        >>> with ambar.distributed.open("updated.ambar", "a") as commit:
        ...     commit.update_array("x", (2,), (2,))
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", [5.0, 6.0], (2,))
        ...         commit.finish([writer.receipt()])
        >>> ambar.open_store("updated.ambar")["x"][:]
        array([0., 0., 5., 6.])
        """
        self._check_unshared()
        path = relative(path)
        if (start is None) != (shape is None):
            raise _core.InvalidError(f"{path}: expected start and shape, found one; give both")
        regions = self._expected.setdefault(path, [])
        if start is not None and shape is not None:
            start, shape = lengths_of(path, "start", start), lengths_of(path, "shape", shape)
            regions.append(ArrayRegion(path, start, shape))

    @property
    def invitation(self) -> Invitation:
        """The invitation for tasks. After the first access, arrays and groups are final.

        It is valid until the commit ends; then `Invitation.writer` raises ValueError.
        """
        self._check_open()
        if self._invitation is None:
            core = self._sharing().invitation()
            self._invitation = Invitation._of(core, self._writer._limits)
        return self._invitation

    def regions(self, path: str | None = None) -> list[ArrayRegion]:
        """Return the regions that tasks are expected to write, shard by shard.

        After the first call, arrays and groups are final, as for `invitation`.

        Parameters
        ----------
        path : str, optional
            An array; all arrays by default.

        Returns
        -------
        list of ArrayRegion
            Path, start and shape of each region; ``region.slices`` is an index of arrays.

        Raises
        ------
        KeyError
            If tasks do not write this array.

        Examples
        --------
        >>> arrays = {"x": {"shape": (5,), "dtype": "f8", "blocks": (2,)}}
        >>> with ambar.distributed.open("regions.ambar", arrays=arrays) as commit:
        ...     [region.slices for region in commit.regions("x")]
        ...     commit.cancel()
        [(slice(0, 2, None),), (slice(2, 4, None),), (slice(4, 5, None),)]
        """
        missing = self.missing([])
        if path is None:
            return missing
        path = path.strip("/")
        if path not in self._expected:
            raise _core.NotFoundError(
                f"array {path!r} is not written by tasks; available: {', '.join(self._expected)}"
            )
        return [region for region in missing if region.path == path]

    def missing(self, receipts: Iterable[bytes] | str | os.PathLike[str]) -> list[ArrayRegion]:
        """Return the expected regions that no receipt has, to run their tasks again.

        After the first call, arrays and groups are final, as for `invitation`.

        Parameters
        ----------
        receipts : iterable of bytes, or path
            As for `finish`.

        Returns
        -------
        list of ArrayRegion
            Path, start and shape of each region.

        Raises
        ------
        ValueError
            If a receipt is damaged or of another commit.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8", "blocks": (2,)}}
        >>> with ambar.distributed.open("missing.ambar", arrays=arrays) as commit:
        ...     with commit.invitation.writer() as writer:
        ...         writer.write_region("x", [1.0, 2.0], (0,))
        ...         receipts = [writer.receipt()]
        ...     commit.missing(receipts)
        ...     commit.cancel()
        [ArrayRegion(path='x', start=(2,), shape=(2,))]
        """
        return self._missing(_read_receipts(receipts))

    def _missing(self, receipts: list[_Receipt]) -> list[ArrayRegion]:
        shared = self._sharing()
        expected = [
            (path, list(region.start), list(region.shape))
            for path, regions in self._expected.items()
            for region in regions
            if 0 not in region.shape
        ]
        try:
            missing = shared.missing([receipt.content for receipt in receipts], expected)
        except _core.InvalidError as error:
            invalid = _find_invalid(shared, receipts)
            if invalid is None:
                raise
            raise _core.InvalidError(f"{invalid}: {error}") from None
        return [ArrayRegion(path, tuple(start), tuple(shape)) for path, start, shape in missing]

    def finish(
        self,
        receipts: Iterable[bytes] | str | os.PathLike[str],
        *,
        partial: bool = False,
        message: str = "",
    ) -> None:
        """Commit the regions of the receipts, with all groups, attributes and arrays.

        If several receipts have the same chunk, the last one is valid. Values without a receipt
        stay in the file as dead bytes: `ambar.Store.usage` counts them, and `ambar.compact` removes
        them. Receipts of tasks that still run are refused. In a file they cannot write; on an
        object store their objects are not used.

        Parameters
        ----------
        receipts : iterable of bytes, or path
            The receipts of the tasks, in any order, or the folder with their files, those that end
            in ``.receipt``, in the order of their times of modification, then of their names.
        partial : bool, default False
            Whether regions may be missing. They have the fill value, or, of an existing array,
            their earlier values.
        message : str, optional
            A message for `ambar.log`.

        Raises
        ------
        ValueError
            If expected regions are missing: the message lists them. Nothing is committed, and the
            commit stays open: run their tasks again (see `missing`), or cancel. Also if a receipt
            is damaged, or of another commit.
        NotADirectoryError
            If the folder of receipts does not exist.
        OSError
            If the file system reports an error.

        Examples
        --------
        >>> arrays = {"x": {"shape": (4,), "dtype": "f8", "blocks": (2,)}}
        >>> with ambar.distributed.open("finished.ambar", arrays=arrays) as commit:
        ...     commit.finish([])
        Traceback (most recent call last):
        ...
        ambar.InvalidError: finished.ambar: expected receipts of all regions, found none of 2 ...
        """
        read = _read_receipts(receipts)
        missing = self._missing(read)
        if missing and not partial:
            raise self._incomplete(missing)
        self._adopt([receipt.content for receipt in read])
        self._writer.commit(message)
        self.close()

    def _adopt(self, receipts: list[bytes]) -> None:
        """End the tasks, and let the writer adopt their entries, for its next commit."""
        self._writer._core.adopt(self._sharing(), receipts)
        self._end()

    def cancel(self) -> None:
        """Commit nothing, and close the store, which is unchanged. Tasks cannot write any more.

        Examples
        --------
        >>> commit = ambar.distributed.open("cancelled.ambar", arrays={"x": {"data": [1.0]}})
        >>> commit.cancel()
        >>> ambar.open_store("cancelled.ambar")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
        """
        self.close()

    def close(self) -> None:
        """Close the store, as `cancel` unless `finish` was called. The ``with`` block calls it.

        Examples
        --------
        >>> commit = ambar.distributed.open("closed.ambar")
        >>> commit.finish([])
        >>> commit.close()
        """
        self._end()
        self._writer.close()

    def _end(self) -> None:
        self._is_over = True
        if self._shared is not None:
            self._shared.close()

    def _succeeded(self) -> None:
        if not self._is_over:
            raise _core.InvalidError(
                f"{self._location}: expected finish(receipts) or cancel() before the end of the "
                "block, found neither; nothing is committed"
            )

    def _sharing(self) -> _core.SharedCommit:
        """Return the commit of the extension module, which tasks can join."""
        self._check_open()
        if self._shared is None:
            self._shared = self._writer._core.share(list(self._expected), self._alignment)
        return self._shared

    def _check_open(self) -> None:
        if self._is_over:
            raise _core.InvalidError(
                f"{self._location}: this commit has ended; open another one with "
                "ambar.distributed.open"
            )

    def _check_unshared(self) -> None:
        self._check_open()
        if self._shared is not None:
            raise _core.InvalidError(
                f"{self._location}: tasks were invited already, so groups and arrays are final; "
                "create them before the first use of invitation, regions or missing"
            )

    def _incomplete(self, missing: list[ArrayRegion]) -> _core.InvalidError:
        listed = [f"{region.path} at {region.start}" for region in missing[:_LISTED]]
        more = [f"{len(missing) - _LISTED} more"] if len(missing) > _LISTED else []
        return _core.InvalidError(
            f"{self._location}: expected receipts of all regions, found none of "
            f"{plural(len(missing), 'region')}: {', '.join(listed + more)}; nothing is committed; "
            "run the tasks of SharedCommit.missing again, or use partial=True"
        )


def open(  # noqa: A001 - as `ambar.open`
    path: str | os.PathLike[str],
    mode: WriteMode = "w-",
    *,
    arrays: Mapping[str, Mapping[str, Any]] | None = None,
    profile: Profile = "balanced",
    alignment: int = 4096,
    fsync: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> SharedCommit:
    """Open a store for one commit that tasks in any processes write together.

    All tasks see the file at the same path, on a file system of one machine or of a cluster, which
    supports symbolic links; or they put objects of a store on S3. The process that calls it holds
    the lock of a file until the commit ends. If it is killed, nothing is committed.

    Parameters
    ----------
    path : str or path-like
        The path of the store, a single file, or its URL, which ends with ``/``: tasks put objects.
    mode : {"w-", "w", "a"}, default "w-"
        As for `ambar.create`: create a store, replace one, or change one.
    arrays : mapping of mappings, optional
        The arguments of `SharedCommit.create_array` by the path of each array.
    profile : {"fast", "balanced", "small", "raw"}, default "balanced"
        How codecs are chosen; "raw" does not compress.
    alignment : int, default 4096
        Tasks write at multiples of it, in bytes: the block size of the file system, or the stripe
        size.
    fsync : bool, default True
        Whether receipts and the commit survive a power failure.
    storage_options : mapping, optional
        Options of the URL, as for `ambar.open`. They are part of the invitation, with their keys.
        Without keys, tasks need those of their environment.

    Returns
    -------
    SharedCommit
        A context manager. The block calls `SharedCommit.finish`, or nothing is committed.

    Raises
    ------
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the file open; of a URL, if another one has committed in the meantime
        (raised by `SharedCommit.finish`).
    UnsupportedError
        If the store is a folder (raised by `SharedCommit.invitation`), or `path` is the URL of one
        object.
    ValueError
        If an argument is invalid.
    OSError
        If the file system reports an error.

    Examples
    --------
    >>> def write(invitation, region):  # with any library that runs functions in processes
    ...     with invitation.writer() as writer:
    ...         values = np.full(region.shape, region.start[0])
    ...         writer.write_region(region.path, values, region.start)
    ...         return writer.receipt()
    >>> arrays = {"density": {"shape": (4, 300), "dtype": "i8", "blocks": (1, 300)}}
    >>> with ambar.distributed.open("density.ambar", arrays=arrays) as commit:
    ...     commit.finish(write(commit.invitation, region) for region in commit.regions())
    >>> ambar.open_store("density.ambar")["density"][:, 0]
    array([0, 1, 2, 3])
    """
    if is_object(path):
        raise _core.UnsupportedError(
            f"{without_secrets(os.fspath(path))}: tasks write a file, or a store of many objects, "
            "found the URL of one object; end the URL with '/'"
        )
    check_bytes("alignment", alignment, least=1)
    writer = create(path, mode, profile=profile, fsync=fsync, storage_options=storage_options)
    location = os.fspath(path)
    commit = SharedCommit(
        writer, without_secrets(location) if is_url(path) else location, alignment
    )
    try:
        for name, options in (arrays or {}).items():
            commit.create_array(name, **options)
    except BaseException:
        commit.close()
        raise
    return commit


def choose_codecs(writer: Writer, path: str, sample: npt.NDArray[Any]) -> None:
    """Choose the codecs of an array without values by a sample of as many dimensions."""
    native = to_core(path, sample)[1]
    if not isinstance(native, list):
        writer._core.choose_codecs(path, native, list(sample.shape))


def _divided(
    path: str,
    shape: tuple[int, ...],
    blocks: Sequence[int],
    dtype: np.dtype[Any],
    *,
    has_bound: bool,
) -> dict[str, tuple[int, ...]]:
    """Return the chunks and shards of an array whose regions of the shape `blocks` are whole."""
    if len(blocks) != len(shape) or min(blocks, default=1) < 1:
        raise _core.InvalidError(
            f"{path}: expected blocks of {len(shape)} positive lengths, as the shape {shape}, "
            f"found {tuple(blocks)}"
        )
    lengths = [min(block, max(size, 1)) for block, size in zip(blocks, shape, strict=True)]
    chunks = divide(dtype.itemsize, [[length] for length in lengths], has_bound=has_bound).chunks
    # A chunk that does not divide its block would reach into the next one.
    fitting = tuple(
        chunk if length % chunk == 0 else length
        for chunk, length in zip(chunks, lengths, strict=True)
    )
    division = divide(dtype.itemsize, [[length] for length in lengths], chunks=fitting)
    return {"chunks": division.chunks, "shards": division.shards}


class _Receipt(NamedTuple):
    """A receipt, with its file in a folder of receipts."""

    content: bytes
    file: Path | None = None


def _read_receipts(receipts: Iterable[bytes] | str | os.PathLike[str]) -> list[_Receipt]:
    """Return receipts, those of a folder in the order of their files."""
    if isinstance(receipts, bytes):
        raise TypeError("expected several receipts, found one; give a list of receipts")
    if not isinstance(receipts, (str, os.PathLike)):
        return [_Receipt(receipt) for receipt in receipts]
    if not Path(receipts).is_dir():
        raise NotADirectoryError(
            f"{os.fspath(receipts)}: expected a folder with files *.receipt; check the path"
        )
    files = Path(receipts).glob("*.receipt")
    ordered = sorted(files, key=lambda file: (file.stat().st_mtime, file.name))
    return [_Receipt(file.read_bytes(), file) for file in ordered]


def _find_invalid(shared: _core.SharedCommit, receipts: list[_Receipt]) -> Path | None:
    """Return the file of the first receipt that `shared` refuses."""
    for receipt in receipts:
        try:
            shared.missing([receipt.content], [])
        except _core.InvalidError:
            return receipt.file
    return None

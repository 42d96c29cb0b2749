"""Writes stores: groups and arrays, which become visible together with a commit."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import (
    WriteMode,
    check_choice,
    check_mode,
    check_unicode,
    is_unicode,
    lengths_of,
)
from ambar._util.commit_context import CommitContext
from ambar._util.output_files import name_target_on_full_disk
from ambar.store.dtypes import as_unmasked_array, convert_exactly, describe, to_bytes, to_core
from ambar.store.error_bounds import (
    as_text,
    bound_of_limits,
    check_bounded_dtype,
    check_range,
    limits_of,
    range_of,
    resolved,
)
from ambar.store.locations import store_at
from ambar.store.nodes import WriterAttributes, WriterNode, absolute, check_reserved, relative
from ambar.store.urls import check_url, core_options, is_object, is_url

Profile: TypeAlias = Literal["fast", "balanced", "small", "raw"]
Layout: TypeAlias = Literal["grid", "whole", "simplices"]


class Hints(TypedDict, total=False):
    """Properties of the values of an array; False by default."""

    is_grid: bool
    is_read_whole: bool
    has_corners: bool


_HINTS: dict[Layout, Hints] = {
    "grid": {"is_grid": True},
    "whole": {"is_read_whole": True},
    "simplices": {"is_read_whole": True, "has_corners": True},
}


def check_layout(path: str, layout: Layout | None, accepted: Sequence[str]) -> None:
    """Raise ValueError if a layout does not exist, or does not apply to an array."""
    if layout is None:
        return
    check_choice("layout", layout, _HINTS)
    if layout not in accepted:
        raise _core.InvalidError(
            f"{path}: layout={layout!r} applies to arrays with data; leave it out"
        )


def check_dims(path: str, dims: Sequence[str | None] | None) -> None:
    """Raise ValueError for names that are not Unicode, and for a repeated dimension.

    xarray and collections do not support repeated dimensions.
    """
    if dims is None:
        return
    if isinstance(dims, str):
        raise _core.InvalidError(
            f"{path}: expected a name for each dimension in dims, found a string; give "
            f"dims=({dims!r},)"
        )
    dims = tuple(dims)
    check_unicode(f"dims of {path!r}", dims)
    names = [dim for dim in dims if dim is not None]
    if len(set(names)) < len(names):
        raise _core.InvalidError(
            f"{path}: repeated dimension in dims={dims!r:.80}; give each dimension another name, "
            "or None"
        )


class ArrayOptions(NamedTuple):
    """Arguments of arrays with and without data, and of arrays that MPI ranks write."""

    dims: Sequence[str | None] | None = None
    attrs: Mapping[str, Any] | None = None
    fill_value: Any = None
    chunks: Sequence[int] | None = None
    shards: Sequence[int] | None = None
    profile: Profile | None = None
    error_bound: float | str | None = None
    value_range: Sequence[float] | None = None

    @property
    def limits(self) -> tuple[float, float] | None:
        """The range of the values, if the error bound is computed from it."""
        return limits_of(self.error_bound, self.value_range)

    def declared(
        self, path: str, dtype: npt.DTypeLike, shape: Sequence[int], **hints: Unpack[Hints]
    ) -> _core.ArraySpec:
        """Return the description, for the extension module, of an array without data."""
        name, kind = describe(path, dtype)
        bound = None
        if self.error_bound is not None:
            check_bounded_dtype(path, name, as_text(self.error_bound))
            bound = resolved(self.error_bound, self.value_range)
        return self.spec(path, name, shape, kind, bound, **hints)

    def spec(
        self,
        path: str,
        name: str,
        shape: Sequence[int],
        kind: np.dtype[Any],
        error_bound: float | str | None,
        **hints: Unpack[Hints],
    ) -> _core.ArraySpec:
        """Return the description of an array with the dtype `name`, and fill values of `kind`."""
        fill = None if self.fill_value is None else to_bytes(path, self.fill_value, kind)
        return _core.ArraySpec(
            name,
            shape,
            dims=self.dims,
            attrs=self.attrs,
            fill_value=fill,
            chunks=self.chunks,
            shards=self.shards,
            profile=self.profile,
            error_bound=error_bound,
            **hints,
        )


class Writer(CommitContext):
    """Writes groups and arrays of a store.

    `create` returns one. ``writer[path]`` is a group or an array, with its `path` and `attrs`,
    which can be changed. The end of its ``with`` block commits; if the block raises, changes since
    the last commit are discarded. A commit is atomic: readers see all of its changes or none, even
    if the process is killed.

    Threads may share a writer: methods run one after the other. A commit contains the changes of
    all methods that returned before it. Do not change data while a method writes them.

    Examples
    --------
    >>> with ambar.create("new.ambar") as writer:
    ...     writer.create_group("run", {"code": "solver"})
    ...     writer.create_array("run/density", np.ones((64, 64)), dims=["y", "x"])
    >>> ambar.open_store("new.ambar")["run/density"].shape
    (64, 64)
    """

    def __init__(self, core: _core.Writer, profile: Profile = "balanced") -> None:
        self._core = core
        self._profile = profile
        self._limits: dict[str, tuple[float, float]] = {}

    @property
    def attrs(self) -> WriterAttributes:
        """The attributes of the root: a mutable mapping. Assignment replaces all attributes.

        ``writer[path].attrs`` are those of another group or array.

        Examples
        --------
        >>> with ambar.create("attrs.ambar") as writer:
        ...     writer.attrs["title"] = "a run"
        ...     writer.create_group("run", {"code": "solver", "draft": True})
        ...     del writer["run"].attrs["draft"]
        >>> store = ambar.open_store("attrs.ambar")
        >>> store.attrs["title"], store["run"].attrs
        ('a run', {'code': 'solver'})
        """
        return self["/"].attrs

    @attrs.setter
    def attrs(self, attrs: Mapping[str, Any]) -> None:
        self["/"].attrs = attrs

    def __getitem__(self, path: str) -> WriterNode:
        """Return a group or an array; raises KeyError if it does not exist."""
        return WriterNode(self._core, absolute(path))

    __iter__ = None
    """A writer does not list its members; `open_store` does, after a commit."""

    def __contains__(self, path: object) -> bool:
        try:
            return isinstance(path, str) and is_unicode(path) and bool(self[path])
        except KeyError:
            return False

    def create_group(self, path: str, attrs: Mapping[str, Any] | None = None) -> None:
        """Create a group and its parents.

        Parameters
        ----------
        path : str
            The path of the group; ``"/"`` is the root.
        attrs : mapping, optional
            Attributes of the group: names and JSON values. Those of an existing group are
            replaced. None by default.

        Raises
        ------
        ValueError
            If the path is invalid or an array, or JSON cannot represent the attributes.

        Examples
        --------
        >>> with ambar.create("groups.ambar") as writer:
        ...     writer.create_group("run/step", {"number": 3})
        >>> ambar.open_store("groups.ambar").groups
        ['', 'run', 'run/step']
        """
        check_reserved(attrs)
        self._create_group(path, attrs or {})

    def _create_group(self, path: str, attrs: Mapping[str, Any]) -> None:
        """Create a group of any kind, or replace its attributes."""
        self._core.group(absolute(path), attrs)

    def create_array(
        self,
        path: str,
        data: npt.ArrayLike | None = None,
        *,
        shape: Sequence[int] | None = None,
        dtype: npt.DTypeLike | None = None,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: Any = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: Profile | None = None,
        error_bound: float | str | None = None,
        value_range: Sequence[float] | None = None,
        layout: Layout | None = None,
    ) -> None:
        """Write an array, or create one without data for `write_region` and `append`.

        The first region that is written to an array without data determines its codecs. If a
        commit comes first, the array keeps the default codecs of its profile.

        Parameters
        ----------
        path : str
            The path of the array; missing groups are created. An array of the same path is
            replaced, also one that this writer created; ``path in writer`` tests for it.
        data : array_like, optional
            Values of any shape, also 0-dimensional or empty: numbers, bools, complex numbers,
            datetimes, durations, strings or bytes. They determine `shape` and `dtype`.
        shape : sequence of int, optional
            The shape of an array without data.
        dtype : dtype_like, optional
            The dtype of an array without data; ``str`` or ``bytes`` for strings of any length.
        dims : sequence of str or None, optional
            A name, or None, for each dimension. Names are not repeated.
        attrs : mapping, optional
            Attributes of the array: names and JSON values.
        fill_value : scalar, optional
            The value of elements that were never written; zero by default.
        chunks : sequence of int, optional
            The shape of a chunk, the unit of decoding. By default a chunk has about 256 KiB in 1-D
            arrays and short rows, 64 KiB in other arrays, and 512 KiB with an error bound.
        shards : sequence of int, optional
            The shape of a shard, the unit of writing: a multiple of `chunks`.
        profile : {"fast", "balanced", "small", "raw"}, optional
            How codecs are chosen; "raw" does not compress. By default as for the writer.
        error_bound : float or str, optional
            How far values of float32 or float64 may differ from `data`: a number, or a string such
            as ``"1e-3 of range"`` or ``"1e-3 relative"`` (docs/howto/error-bounds.md). Lossless by
            default. NaN and infinities do not change.
        value_range : (float, float), optional
            The lowest and the highest finite value of the whole array, for bounds that depend on
            it (``"1e-3 of range"``, ``"80 dB"``). By default the range of `data`; required for an
            array without values. Ignored by bounds that do not depend on it. The writer that
            creates the array refuses values outside the range. Give it for an array that grows: the
            bound does not change later.
        layout : {"grid", "whole", "simplices"}, optional
            What `data` is, so that the codecs use it. Readers of "grid" and "simplices" may need
            ambar.

            - "grid": values of float32 or float64 that change smoothly along the dimensions of a
              grid, of which the last may be the components of vectors. The codec ``ambar`` is also
              tried without an error bound, except by the profile "fast".
            - "whole": an array that readers usually read as a whole. Default chunks are longer, up
              to 4 MiB, if values repeat at long distances. Ignored if `chunks` or `error_bound` is
              given.
            - "simplices": the connectivity of lines, triangles or tetrahedra: integers of 32 or 64
              bits, shape (cells, 2 to 4). The codec ``ambar.simplices`` is tried, except by the
              profile "fast", with chunks of 4 MiB, or of 256 MiB if neighbouring cells are in
              distant rows; if it is chosen, `chunks` and `shards` are ignored. Otherwise as
              "whole".

        Raises
        ------
        ValueError
            If an argument is invalid, arguments contradict each other, values are masked, or an
            error bound is given for values that are not float32 or float64.
        UnsupportedError
            If the dtype cannot be stored.

        Examples
        --------
        >>> with ambar.create("arrays.ambar") as writer:
        ...     writer.create_array("x", np.linspace(0, 1, 1000), error_bound=1e-6)
        ...     writer.create_array("t", shape=(0,), dtype="f8", dims=["step"], chunks=(100,))
        ...     writer.append("t", [0.0, 0.5])
        >>> ambar.open_store("arrays.ambar")["t"][:]
        array([0. , 0.5])
        """
        options = ArrayOptions(
            dims, attrs, fill_value, chunks, shards, profile, error_bound, value_range
        )
        path = relative(path)
        check_layout(path, layout, () if data is None else tuple(_HINTS))
        check_dims(path, dims)
        check_reserved(attrs)
        for name, lengths in (("chunks", chunks), ("shards", shards)):
            if lengths is not None:
                lengths_of(path, name, lengths)
        if data is not None:
            if shape is not None or dtype is not None:
                raise _core.InvalidError(
                    f"{path}: expected no shape and dtype, as data determine them, found "
                    f"shape={shape!r} and dtype={dtype!r}; leave them out"
                )
            hints = Hints() if layout is None else _HINTS[layout]
            write_array(self, path, as_unmasked_array(path, data), options, can_grow=True, **hints)
        elif shape is None or dtype is None:
            raise _core.InvalidError(
                f"{path}: expected data, or shape and dtype, found shape={shape!r} and "
                f"dtype={dtype!r}; give both"
            )
        else:
            shape = lengths_of(path, "shape", (shape,) if isinstance(shape, Integral) else shape)
            self._core.declare(path, options.declared(path, dtype, shape))
            self._limit(path, options.limits)

    def _limit(self, path: str, limits: tuple[float, float] | None) -> None:
        """Remember the value range that the error bound of an array was computed from."""
        self._limits.pop(path, None)
        if limits is not None:
            self._limits[path] = limits

    def write_region(self, path: str, data: npt.ArrayLike, start: Sequence[int]) -> None:
        """Write `data` into a region of an array of the same dtype.

        Python numbers and lists have no dtype: they are converted if the array's dtype has their
        values. Floats are rounded.

        Chunks and shards that the region covers partly are read, merged and written again. In an
        array with an error bound, merged chunks are stored without loss, so that no value changes
        twice: choose chunks that the regions cover completely.

        Parameters
        ----------
        path : str
            The path of the array.
        data : array_like
            Values of the region.
        start : sequence of int
            The first index of the region in each dimension.

        Raises
        ------
        KeyError
            If the array does not exist.
        ValueError
            If the region is not inside the array, the dtype differs from that of the array, or this
            writer created the array and values are outside its `value_range`.

        Examples
        --------
        >>> with ambar.create("parts.ambar") as writer:
        ...     writer.create_array("x", shape=(2, 4), dtype="f8")
        ...     writer.write_region("x", [[1.0, 2.0], [3.0, 4.0]], start=(0, 2))
        >>> ambar.open_store("parts.ambar")["x"][:]
        array([[0., 0., 1., 2.],
               [0., 0., 3., 4.]])
        """
        path = relative(path)
        values = self._as_array(path, data)
        dtype, native = to_core(path, values)
        check_range(path, values, self._limits.get(path))
        first = lengths_of(path, "start", start)
        self._core.write_region(path, native, dtype, first, list(values.shape))

    def append(self, path: str, *data: npt.ArrayLike) -> None:
        """Append rows to an array, along its first dimension.

        As with `write_region`, a chunk that gets more rows later is stored without loss, whatever
        the error bound: append multiples of the chunk's rows where the size matters.

        Parameters
        ----------
        path : str
            The path of the array.
        *data : array_like
            Arrays of the array's dtype and shape, except for the first dimension; or lists, which
            are converted as in `write_region`.

        Raises
        ------
        KeyError
            If the array does not exist.
        ValueError
            If the dtype or the shape of a row differs from that of the array, or this writer
            created the array and values are outside its `value_range`.

        Examples
        --------
        >>> with ambar.create("fields.ambar", "a") as writer:
        ...     writer.append("run/time", np.array([10.0, 11.0]))
        >>> ambar.open_store("fields.ambar")["run/time"].shape
        (12,)
        """
        path = relative(path)
        pieces = [self._as_array(path, piece) for piece in data]
        if not pieces:
            return
        for piece in pieces:
            check_range(path, piece, self._limits.get(path))
        rows = {piece.shape[1:] if piece.ndim else None for piece in pieces}
        if None in rows or len(rows) > 1:
            found = ", ".join(sorted(str(piece.shape) for piece in pieces))
            raise _core.InvalidError(f"{path}: expected rows of one shape, found arrays of {found}")
        shape = [sum(len(piece) for piece in pieces), *pieces[0].shape[1:]]
        if pieces[0].dtype.kind in "OT":
            pieces = [np.concatenate(pieces)]
        native = [to_core(path, piece) for piece in pieces]
        if len({dtype for dtype, _ in native}) > 1:
            found = ", ".join(sorted({str(piece.dtype) for piece in pieces}))
            raise _core.InvalidError(f"{path}: expected rows of one dtype, found {found}")
        dtype, values = native[0]
        arrays = [part for _, part in native if not isinstance(part, list)]
        parts = values if isinstance(values, list) else arrays
        self._core.append(path, parts, dtype, shape)

    def _as_array(self, path: str, data: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return data for the array at `path`: Python objects in its dtype, if that keeps them."""
        values = as_unmasked_array(path, data)
        if not isinstance(data, list | tuple | bool | int | float | complex | str | bytes):
            return values
        dtype = self._core.dtype(path)
        if dtype in ("string", "bytes"):
            return np.asarray(data, dtype=object)
        converted = convert_exactly(values, dtype)
        return values if converted is None else converted

    def remove(self, path: str) -> None:
        """Remove an array, or a group with its members.

        Parameters
        ----------
        path : str
            The path of the array or group.

        Raises
        ------
        KeyError
            If it does not exist.

        Examples
        --------
        >>> with ambar.create("fields.ambar", "a") as writer:
        ...     writer.remove("run/names")
        >>> list(ambar.open_store("fields.ambar"))
        ['density', 'run/time']
        """
        path = relative(path)
        self._core.remove(path)
        for known in list(self._limits):
            if known == path or known.startswith(f"{path}/"):
                del self._limits[known]

    def commit(self, message: str = "") -> None:
        """Make all changes since the last commit visible to readers.

        With ``fsync=True`` they also survive a power failure.

        Parameters
        ----------
        message : str, optional
            A message for `ambar.log`, of at most 4096 bytes.

        Raises
        ------
        ValueError
            If the message is too long.
        OSError
            If the file system reports an error, such as a full disk.

        Examples
        --------
        >>> with ambar.create("steps.ambar", "w") as writer:
        ...     writer.create_array("x", np.zeros(3))
        ...     writer.commit()
        ...     list(ambar.open_store("steps.ambar"))
        ['x']
        """
        check_unicode("message", message)
        self._core.commit(message)

    def close(self) -> None:
        """Discard changes that were not committed, and release the lock of the store.

        A store at the URL of an object appears now, with the last commit. If a ``with`` block
        raises, it does not appear.

        Examples
        --------
        >>> writer = ambar.create("fields.ambar", "a")
        >>> writer.remove("density")
        >>> writer.close()
        >>> "density" in ambar.open_store("fields.ambar")
        True
        """
        self._core.close()

    def _succeeded(self) -> None:
        self.commit()

    def _abort(self) -> None:
        self._core.abort()


def write_array(
    writer: Writer,
    path: str,
    values: npt.NDArray[Any],
    options: ArrayOptions,
    *,
    can_grow: bool = False,
    **hints: Unpack[Hints],
) -> None:
    """Write an array as `Writer.create_array` does, with any combination of hints."""
    path = relative(path)
    name, native = to_core(path, values)
    bound: float | str | None = None
    if options.error_bound is not None:
        bound = as_text(options.error_bound)
        check_bounded_dtype(path, name, bound)
        check_range(path, values, options.limits)
        if options.value_range is not None or not values.size:
            bound = resolved(bound, options.value_range)
        elif _core.bound_needs_range(bound):
            can_grow = can_grow and values.ndim > 0
            bound = bound_of_limits(path, bound, range_of(values), can_grow=can_grow)
    spec = options.spec(path, name, values.shape, values.dtype, bound, **hints)
    writer._core.array(path, native, spec)
    writer._limit(path, options.limits)


def create(
    path: str | os.PathLike[str],
    mode: WriteMode = "w-",
    *,
    directory: bool = False,
    profile: Profile = "balanced",
    threads: int | None = None,
    fsync: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> Writer:
    """Open a store for writing. A new store appears at its path with the first commit.

    Parameters
    ----------
    path : str or path-like
        The path of the store, or a URL: ``"s3://bucket/run.ambar"`` is one object, which appears
        when the writer is closed; ``"s3://bucket/run/"`` is a store of many objects, which can be
        changed later (docs/howto/object-stores.md).
    mode : {"w-", "w", "a"}, default "w-"
        "w-": create a store; raise FileExistsError if `path` exists. "w": replace an existing
        store at the first commit. "a": change an existing store, or create one. Replaced and
        removed arrays leave dead bytes in the file, which `ambar.compact` removes.
    directory : bool, default False
        Whether a new store is a folder of files instead of a single file.
    profile : {"balanced", "fast", "small", "raw"}, default "balanced"
        How codecs are chosen. "fast" is for fast reading; "raw" does not compress.
    threads : int, optional
        The number of threads that encode; all cores by default.
    fsync : bool, default True
        Whether commits survive a power failure. False is faster, for temporary files.
    storage_options : mapping, optional
        Options of the URL, as for `ambar.open`.

    Returns
    -------
    Writer
        A context manager that commits at the end of its block.

    Raises
    ------
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the store open; at a URL, only a commit raises it.
    CorruptError
        If an existing file is damaged or not a store, in mode "a".
    KeyError
        If an existing folder is not a store, in mode "a".
    UnsupportedError
        If another program wrote the store, in mode "a": copy its arrays into a new one. If `path`
        is the URL of an object, in mode "a"; if nothing can be written to the URL.
    ValueError
        If `mode` or `profile` is invalid, or a directory would replace a file or the reverse.
    OSError
        If the file system or the server reports an error.

    Examples
    --------
    >>> with ambar.create("new.ambar") as writer:
    ...     writer.create_array("x", np.arange(3))
    >>> with ambar.create("new.ambar", "a") as writer:
    ...     writer.create_array("y", np.arange(4))
    >>> list(ambar.open_store("new.ambar"))
    ['x', 'y']
    """
    check_mode(mode)
    if directory and is_object(path):
        path = f"{os.fspath(path)}/"
    check_url(path, mode, storage_options)
    how = core_mode(path, mode, storage_options)
    try:
        with name_target_on_full_disk(path):
            core = _core.Writer(
                os.fspath(path),
                how,
                directory=directory and how != "append",
                durability=durability(fsync),
                profile=profile,
                threads=threads,
                storage_options=core_options(storage_options) or {},
            )
    except FileExistsError as error:
        if mode == "a" and store_at(path, storage_options):  # another process created it since
            return create(
                path,
                mode,
                profile=profile,
                threads=threads,
                fsync=fsync,
                storage_options=storage_options,
            )
        if is_url(path):
            raise
        advice = 'the path exists; choose another one, or replace it with mode="w"'
        raise FileExistsError(errno.EEXIST, advice, error.filename) from None
    return Writer(core, profile)


def core_mode(
    path: str | os.PathLike[str],
    mode: WriteMode,
    storage_options: Mapping[str, object] | None = None,
) -> Literal["create", "overwrite", "append"]:
    """Return the mode of the extension module; mode "a" depends on whether `path` exists."""
    if mode == "a":
        exists = store_at(path, storage_options) if is_url(path) else Path(path).exists()
        return "append" if exists else "create"
    return "overwrite" if mode == "w" else "create"


def durability(fsync: bool) -> Literal["full", "none"]:
    """Return the durability of the extension module."""
    return "full" if fsync else "none"

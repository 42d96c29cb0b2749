"""Writes the arrays of a mesh: large ones as arrays of the store, small ones into packs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.storage.packs import PACKED_BELOW, dtype_name, encode_pack
from ambar.mesh.storage.temporal_deltas import Deduplicator
from ambar.store.error_bounds import targets_of
from ambar.store.writer import ArrayOptions, Writer, write_array

_ALONE_BELOW = 1 << 16
"""Bytes below which an array of a small mesh can be a pack of its own."""
_ALONE_FROM = 2048
"""Bytes from which on it is: smaller arrays compress better together."""
_ALONE_FROM_ON_GRID = 512
"""The same for fields on grids, whose codecs need the shape of the grid."""
_ALONE_BYTES = 1 << 18
"""Bytes of all these packs of a mesh: readers read them even if they do not need the arrays."""
_STRINGS_BELOW = 1 << 15
"""Bytes of strings below which the description contains them."""
_MAX_COMPONENTS = 32
"""The largest number of components that are stored separately."""
_CONNECTIVITY_CHUNK = 1 << 19
"""Bytes of a chunk of connectivity: with 512 KiB its patterns take a fifth of the space that they
take with 40 KiB."""


@dataclass
class _Pack:
    """Small arrays of one dtype end to end; or a single array in its shape."""

    arrays: list[np.ndarray] = field(default_factory=list)
    length: int = 0
    columns: int = 0
    predict: bool = False

    def join(self) -> np.ndarray:
        """Return all values in the shape in which they are encoded."""
        if len(self.arrays) == 1:
            return self.arrays[0] if self.arrays[0].ndim else self.arrays[0].reshape(1)
        values = np.concatenate([array.reshape(-1) for array in self.arrays])
        return values.reshape(-1, self.columns) if self.columns else values


class ArrayWriter:
    """Writes the arrays of one mesh, and returns the references for its description.

    Parameters
    ----------
    writer : Writer
        The writer of the store.
    base : str
        The group of the mesh.
    error_bounds : mapping, optional
        Error bounds by the name of an array, or a pattern such as "velocity_*"; of patterns, the
        most specific one applies. "*" is all arrays of float32 and float64.
    deduplicator : Deduplicator, optional
        The arrays that the store has already.
    reorder : bool, default False
        Whether to sort cells along a curve.
    """

    def __init__(
        self,
        writer: Writer,
        base: str,
        error_bounds: Mapping[str, float | str] | None = None,
        deduplicator: Deduplicator | None = None,
        *,
        reorder: bool = False,
    ) -> None:
        self._writer = writer
        self._base = base.strip("/")
        self._bounds = dict(error_bounds or {})
        self._unused_bounds = set(self._bounds) - {"*"}
        self._names: dict[str, None] = {}
        self._packs: list[_Pack] = []
        self._pack_numbers: dict[tuple[str, str, int], int] = {}
        self._alone_bytes_left = _ALONE_BYTES if deduplicator is None else PACKED_BELOW
        self._deduplicator = deduplicator
        self.reorder = reorder
        self._block_paths: dict[str, str] = {}
        self._chunk_rows: int | None = None

    def first_path(self, block: Any, path: str) -> str:
        """Return the path of the first description of a block: `path`, if this is the first.

        Blocks are identified by their addresses: the mesh that is written keeps them alive.
        """
        return self._block_paths.setdefault(block.__this__, path)

    @contextmanager
    def chunk_rows(self, rows: int) -> Iterator[None]:
        """Divide arrays of numbers into chunks of `rows` rows within the block."""
        before, self._chunk_rows = self._chunk_rows, rows
        try:
            yield
        finally:
            self._chunk_rows = before

    def put(
        self,
        path: str,
        values: np.ndarray,
        *,
        role: str = "values",
        dims: Sequence[str | None] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Write an array, and return the reference to it.

        Parameters
        ----------
        path
            The path below the group of the mesh.
        values
            The values: numbers, bools, or objects (str or bytes).
        role
            What the values are, such as "points": each pack has arrays of one role.
        dims
            The names of the dimensions; ("z", "y", "x") for values on a grid.
        name
            The name by which error bounds refer to the array; None if it is always lossless.
        """
        bound = self._bound(name, values.dtype)
        size = _size_of(values)
        is_on_grid = dims is not None and tuple(dims[:3]) == ("z", "y", "x")
        if self._is_alone(values, size, is_on_grid) and (bound is None or size < PACKED_BELOW):
            self._alone_bytes_left -= size
            self._packs.append(_Pack([values], values.size, predict=is_on_grid))
            return {"at": [len(self._packs) - 1, 0, *values.shape]}
        if size < PACKED_BELOW:
            return {"at": self._put_into_pack(values, role)}
        if self._deduplicator is not None:
            digest, known = self._deduplicator.find(values, bound)
            if known is None and bound is None and not is_on_grid:
                known = self._deduplicator.append_row(self._writer, path, values, digest)
            if known is not None:
                return dict(known)
            if digest is not None:
                self._deduplicator.add(digest, self._base, path)
        chunks, is_read_whole = _chunks(values, role, self._chunk_rows), self._chunk_rows is None
        has_corners = role == "corners" and values.ndim == 2 and is_read_whole
        write_array(
            self._writer,
            f"{self._base}/{path}",
            values,
            ArrayOptions(dims, chunks=chunks, error_bound=bound),
            is_grid=is_on_grid,
            is_read_whole=is_read_whole,
            has_corners=has_corners,
        )
        return {"at": path}

    def put_field(
        self,
        path: str,
        values: np.ndarray,
        dims: Sequence[str | None] | None,
        name: str,
        *,
        is_complex: bool = False,
    ) -> dict[str, Any]:
        """Write an array on points, cells, rows or in field data, as `put` does.

        Complex numbers, whose `values` are pairs, are lossless.

        With an error bound, large components are arrays of their own, each with a bound relative to
        its own range. Together they would take up to 16 times the space, and small ones would
        vanish.
        """
        if is_complex:
            self._bound(name, values.dtype, is_real=False)
            return self.put(path, values, dims=dims)
        components = values.shape[-1] if values.ndim in (2, 4) else 1
        is_large = _size_of(values) // max(components, 1) >= PACKED_BELOW
        if not (1 < components <= _MAX_COMPONENTS and is_large and self._bound(name, values.dtype)):
            return self.put(path, values, dims=dims, name=name)
        dims = None if dims is None else dims[:-1]
        return {
            "components_at": [
                self.put(f"{path}/{number}", np.ascontiguousarray(values), dims=dims, name=name)
                for number, values in enumerate(np.moveaxis(values, -1, 0))
            ]
        }

    def finish(self) -> tuple[list[Any], list[bytes]]:
        """Return the description's key `packed`, and the bytes of the packs.

        Large packs are written as arrays. Raises KeyError if the mesh has no array with the name
        of an error bound.
        """
        for name in sorted(self._unused_bounds):
            _core.refuse_bound_of("such an array", name, list(self._names))
        packs: list[Any] = []
        streams: list[bytes] = []
        for number, pack in enumerate(self._packs):
            values = pack.join()
            size = _size_of(values)
            if dtype_name(values) == "string" and size < _STRINGS_BELOW:
                packs.append({"values": values.ravel().tolist()})
            elif values.dtype.kind == "O" or size > _ALONE_BYTES:
                path = f"packed/{number}"
                self._writer.create_array(
                    f"{self._base}/{path}", values.reshape(-1), layout="whole"
                )
                packs.append(path)
            else:
                about, stream = encode_pack(values, predict=pack.predict)
                packs.append(about)
                streams.append(stream)
        return packs, streams

    def _bound(
        self, name: str | None, dtype: np.dtype[Any], *, is_real: bool = True
    ) -> float | str | None:
        """Return the error bound of an array; None for lossless."""
        if name is None:
            return None
        self._names[name] = None
        targets = targets_of(name, self._bounds)
        self._unused_bounds.difference_update(targets)
        if dtype.kind == "f" and is_real:
            return self._bounds[targets[0]] if targets else None
        if name in self._bounds:
            values = f"values of {dtype}" if is_real else "complex numbers"
            raise _core.InvalidError(
                f"error_bound: array {name!r} has {values}; only float32 and float64 can be stored "
                "within an error bound"
            )
        return None

    def _is_alone(self, values: np.ndarray, size: int, is_on_grid: bool) -> bool:
        """Whether an array is a pack of its own."""
        least = _ALONE_FROM_ON_GRID if is_on_grid else _ALONE_FROM
        fits = least <= size < _ALONE_BELOW and size <= self._alone_bytes_left
        return fits and values.dtype.kind != "O"

    def _put_into_pack(self, values: np.ndarray, role: str) -> list[int]:
        """Add a small array to the pack of its dtype, role and number of components."""
        is_table = values.ndim == 2 and values.shape[1] <= _MAX_COMPONENTS
        columns = values.shape[1] if is_table else 0
        key = (dtype_name(values), role, columns)
        number = self._pack_numbers.setdefault(key, len(self._packs))
        if number == len(self._packs):
            self._packs.append(_Pack(columns=columns))
        pack = self._packs[number]
        start = pack.length
        pack.arrays.append(values)
        pack.length += values.size
        return [number, start, *values.shape]


def _chunks(values: np.ndarray, role: str, rows: int | None) -> tuple[int, ...] | None:
    """Return the shape of a chunk; None if the writer of the store chooses it."""
    if rows is not None and values.ndim in (1, 2) and values.dtype.kind != "O" and values.size:
        return (min(rows, len(values)), *values.shape[1:])
    if role != "corners" or values.ndim != 2 or not 0 < values.shape[1] <= 64:
        return None
    rows = max(1, _CONNECTIVITY_CHUNK // (values.itemsize * values.shape[1]))
    return (min(rows, len(values)), values.shape[1])


def _size_of(values: np.ndarray) -> int:
    """Return the bytes of an array; of strings with four bytes for each length."""
    if values.dtype.kind != "O":
        return values.nbytes
    return sum(4 + len(value) for value in values.ravel())

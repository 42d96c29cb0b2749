"""Where the arrays of a mesh go: each to a node of its own, small ones packed together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.storage.deduplication import Shared
from ambar.mesh.storage.packs import PACKED_BELOW, dtype_name, encoded_pack
from ambar.store.writer import ArrayOptions, Hints, Writer

_ALONE_BELOW = 1 << 16
"""Bytes below which an array of a small mesh is a pack of its own."""
_ALONE_FROM = 2048
"""Bytes from which on it is: fewer are better off with others."""
_PREDICTED_FROM = 512
"""The same of fields on grids, which others would tear apart."""
_ALONE_BYTES = 1 << 18
"""Bytes of all these together: what lies in packs is read even if it is not wanted."""
_TEXTS_BELOW = 1 << 15
"""Bytes of texts below which they lie in the description itself."""
_MOST_COLUMNS = 32
"""Components at most that a pack keeps apart."""


@dataclass
class _Pack:
    """Small arrays of one dtype, one behind the other; or one alone, in its shape."""

    parts: list[np.ndarray] = field(default_factory=list)
    length: int = 0
    columns: int = 0
    predict: bool = False

    def whole(self) -> np.ndarray:
        """Return all of it in the shape in which it is encoded."""
        if len(self.parts) == 1:
            return self.parts[0] if self.parts[0].ndim else self.parts[0].reshape(1)
        whole = np.concatenate([part.reshape(-1) for part in self.parts])
        return whole.reshape(-1, self.columns) if self.columns else whole


class Sink:
    """Writes the arrays of one mesh below `base`, and says how its description refers to them.

    Parameters
    ----------
    writer
        The store's writer.
    base
        The mesh's group.
    error_bounds
        By name of an array how far its values may be off; "*" for all of float32 and float64.
    shared
        The arrays that the store has already, not to be written again.
    reorder
        Whether cells are to be sorted along a curve.
    """

    def __init__(
        self,
        writer: Writer,
        base: str,
        error_bounds: Mapping[str, float | str] | None = None,
        shared: Shared | None = None,
        *,
        reorder: bool = False,
    ) -> None:
        self._writer = writer
        self._base = base.strip("/")
        self._bounds = dict(error_bounds or {})
        self._unused = set(self._bounds) - {"*"}
        self._packs: list[_Pack] = []
        self._pack_of: dict[tuple[str, str, int], int] = {}
        self._room = _ALONE_BYTES if shared is None else PACKED_BELOW
        self._shared = shared
        self.reorder = reorder
        self._blocks: dict[str, str] = {}
        self._rows: int | None = None

    def block_at(self, block: Any, path: str) -> str:
        """Return the path at which a block was described first: `path`, if it was not before.

        Blocks are told apart by their addresses: the mesh that is written keeps them alive.
        """
        return self._blocks.setdefault(block.__this__, path)

    @contextmanager
    def chunks_of(self, rows: int) -> Iterator[None]:
        """Have arrays of numbers cut into chunks of so many rows meanwhile."""
        before, self._rows = self._rows, rows
        try:
            yield
        finally:
            self._rows = before

    def put(
        self,
        path: str,
        values: np.ndarray,
        *,
        role: str = "values",
        dims: Sequence[str | None] | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Take an array, to be at `path` below the mesh, and return how to refer to it.

        Packs hold arrays of one `role`, so that like lies beside like. `name` is that under which
        error bounds know it; arrays without one are kept to the bit.
        """
        bound = self._bound(name, values)
        size = _bytes_of(values)
        predict = dims is not None and tuple(dims[:3]) == ("z", "y", "x")
        least = _PREDICTED_FROM if predict else _ALONE_FROM
        alone = least <= size < _ALONE_BELOW and size <= self._room and not _is_text(values)
        if alone and (bound is None or size < PACKED_BELOW):
            self._room -= size
            self._packs.append(_Pack([values], values.size, predict=predict))
            return {"at": [len(self._packs) - 1, 0, *values.shape]}
        if size < PACKED_BELOW:
            return {"at": self._packed(values, role)}
        if self._shared is not None:
            digest, known = self._shared.find(values, bound)
            if known is None and bound is None and not predict:
                known = self._shared.changed(self._writer, path, values, digest)
            if known is not None:
                return dict(known)
            if digest is not None:
                self._shared.add(digest, self._base, path)
        full = f"{self._base}/{path}"
        is_read_whole = self._rows is None
        has_corners = role == "corners" and values.ndim == 2 and is_read_whole
        self._writer._write(
            full,
            values,
            ArrayOptions(dims=dims, chunks=_chunks(values, role, self._rows)),
            bound,
            hints=Hints(predict, is_read_whole, has_corners),
        )
        return {"at": path}

    def put_field(
        self, path: str, values: np.ndarray, dims: Sequence[str | None] | None, name: str
    ) -> dict[str, Any]:
        """Take an array on points, cells, rows or the whole, as `put` does.

        Within an error bound each component is an array of its own, of which a part of the range
        is meant: together they take up to 16 times the room, and the smallest ones are lost.
        """
        components = values.shape[-1] if values.ndim in (2, 4) else 1
        large = _bytes_of(values) // max(components, 1) >= PACKED_BELOW
        if not (1 < components <= _MOST_COLUMNS and large and self._bound(name, values)):
            return self.put(path, values, dims=dims, name=name)
        axes = None if dims is None else dims[:-1]
        return {
            "components_at": [
                self.put(f"{path}/{number}", np.ascontiguousarray(part), dims=axes, name=name)
                for number, part in enumerate(np.moveaxis(values, -1, 0))
            ]
        }

    def _bound(self, name: str | None, values: np.ndarray) -> float | str | None:
        if name is None:
            return None
        exact = name in self._bounds
        self._unused.discard(name)
        if values.dtype.kind != "f":
            if exact:
                raise _core.InvalidError(
                    f"error_bound: array {name!r} has values of {values.dtype}; only float32 and "
                    "float64 can be stored within an error bound"
                )
            return None
        return self._bounds.get(name, self._bounds.get("*"))

    def _packed(self, values: np.ndarray, role: str) -> list[int]:
        columns = values.shape[1] if values.ndim == 2 and values.shape[1] <= _MOST_COLUMNS else 0
        key = (dtype_name(values), role, columns)
        number = self._pack_of.setdefault(key, len(self._packs))
        if number == len(self._packs):
            self._packs.append(_Pack(columns=columns))
        pack = self._packs[number]
        start = pack.length
        pack.parts.append(values)
        pack.length += values.size
        return [number, start, *values.shape]

    def finish(self) -> tuple[list[Any], list[bytes]]:
        """Return where each pack is, for the description's key `packed`, and bytes to keep with it.

        Long packs are written. Raises ValueError if there was no array of a name that an error
        bound was given for.
        """
        if self._unused:
            raise _core.InvalidError(
                f"error_bound: the mesh has no array named {', '.join(sorted(self._unused))}"
            )
        packs: list[Any] = []
        streams: list[bytes] = []
        for number, pack in enumerate(self._packs):
            whole = pack.whole()
            kind, size = dtype_name(whole), _bytes_of(whole)
            if kind == "string" and size < _TEXTS_BELOW:
                packs.append({"values": whole.ravel().tolist()})
            elif _is_text(whole) or size > _ALONE_BYTES:
                self._writer.create_array(
                    f"{self._base}/packed/{number}", whole.reshape(-1), layout="whole"
                )
                packs.append(f"packed/{number}")
            else:
                about, stream = encoded_pack(whole, predict=pack.predict)
                packs.append(about)
                streams.append(stream)
        return packs, streams


def _is_text(values: np.ndarray) -> bool:
    return values.dtype.kind == "O"


def _chunks(values: np.ndarray, role: str, rows: int | None) -> tuple[int, ...] | None:
    """Return the shape of a chunk: of `rows`, or of corners of cells; None for the writer's choice.

    They repeat each other's pattern: at 512 KiB they take a fifth of what 40 do.
    """
    if rows is not None and values.ndim in (1, 2) and values.dtype.kind != "O" and values.size:
        return (min(rows, len(values)), *values.shape[1:])
    if role != "corners" or values.ndim != 2 or not 0 < values.shape[1] <= 64:
        return None
    rows = max(1, (1 << 19) // (values.itemsize * values.shape[1]))
    return (min(rows, len(values)), values.shape[1])


def _bytes_of(values: np.ndarray) -> int:
    if values.dtype.kind != "O":
        return values.nbytes
    return sum(4 + len(value) for value in values.ravel())

"""Where the arrays of a mesh go: each to a node of its own, small ones packed together."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.shared import Shared
from ambar.writer import Writer

PACKED_BELOW = 8192
"""Bytes below which an array is packed with others: a node of its own takes 1.3 KB and 0.2 ms."""
NUMBERS = frozenset(
    ["bool", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))]
)
"""The dtypes of values that VTK knows, strings aside."""
_NAMES = {np.dtype(name): name for name in NUMBERS}
_LAGS = (0, 1, 2, 3, 4, 6, 8)
"""How far apart the whole numbers lie that are subtracted from each other: the sizes of cells."""
_INLINE_BELOW = 2048
"""Bytes of a pack, deflated, below which it lies in the description itself."""


@dataclass
class _Pack:
    """Small arrays of one dtype, one behind the other."""

    parts: list[np.ndarray] = field(default_factory=list)
    length: int = 0


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
        self._pack_of: dict[tuple[str, str], int] = {}
        self._shared = shared
        self.reorder = reorder
        self._rows: int | None = None

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
        if size < PACKED_BELOW:
            return {"at": self._packed(values, role)}
        if self._shared is not None:
            digest, known = self._shared.find(values, bound)
            if known is not None:
                return {"at": known}
            if digest is not None:
                self._shared.add(digest, self._base, path)
        full = f"{self._base}/{path}"
        self._writer.array(
            full,
            values,
            dims=dims,
            error_bound=bound,
            chunks=_chunks(values, role, self._rows),
            predict=dims is not None and tuple(dims[:3]) == ("z", "y", "x"),
        )
        return {"at": path}

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
        kind = dtype_name(values)
        number = self._pack_of.setdefault((kind, role), len(self._packs))
        if number == len(self._packs):
            self._packs.append(_Pack())
        pack = self._packs[number]
        start = pack.length
        pack.parts.append(values.reshape(-1))
        pack.length += values.size
        return [number, start, *values.shape]

    def finish(self) -> list[Any]:
        """Write the packs, and return where each is, for the description's key `packed`.

        Raises InvalidError if there was no array of a name that an error bound was given for.
        """
        if self._unused:
            raise _core.InvalidError(
                f"error_bound: the mesh has no array named {', '.join(sorted(self._unused))}"
            )
        packs: list[Any] = []
        for number, pack in enumerate(self._packs):
            whole = np.concatenate(pack.parts)
            inline = _inline(whole)
            if inline is None:
                self._writer.array(f"{self._base}/packed/{number}", whole)
            packs.append(inline or f"packed/{number}")
        return packs


def _chunks(values: np.ndarray, role: str, rows: int | None) -> tuple[int, ...] | None:
    """Return the shape of a chunk of rows of few values, None for the writer's own choice.

    Corners of cells repeat each other's pattern: at 512 KiB they take a fifth of what 40 do.
    """
    if rows is not None and values.ndim in (1, 2) and values.dtype.kind != "O" and values.size:
        return (min(rows, len(values)), *values.shape[1:])
    if values.ndim != 2 or values.dtype.kind == "O" or not 0 < values.shape[1] <= 64:
        return None
    size = (1 << 19) if role == "corners" else (1 << 18)
    rows = max(1, size // (values.itemsize * values.shape[1]))
    return (min(rows, len(values)), values.shape[1])


def dtype_name(values: np.ndarray) -> str:
    """Return the name of a dtype; "string" and "bytes" for objects."""
    if values.dtype.kind != "O":
        return _NAMES[values.dtype]
    is_bytes = any(isinstance(value, bytes) for value in values.ravel())
    return "bytes" if is_bytes else "string"


def _bytes_of(values: np.ndarray) -> int:
    if values.dtype.kind != "O":
        return values.nbytes
    return sum(4 + len(value) for value in values.ravel())


def _inline(values: np.ndarray) -> dict[str, Any] | None:
    """Return a pack as JSON can hold it, None if that takes too much."""
    kind = dtype_name(values)
    if kind == "string":
        texts = values.tolist()
        return {"values": texts} if _bytes_of(values) < _INLINE_BELOW else None
    if kind == "bytes" or values.nbytes > 4 * PACKED_BELOW:
        return None
    lags = [n for n in _LAGS if n <= len(values)] if values.dtype.kind in "iu" else [0]
    candidates = [(zlib.compress(_shuffled(_less(values, lag)), 9), lag) for lag in lags]
    deflated, lag = min(candidates, key=lambda each: len(each[0]))
    if len(deflated) > _INLINE_BELOW:
        return None
    pack = {"dtype": kind, "deflate": base64.b64encode(deflated).decode()}
    return pack | {"lag": lag} if lag else pack


def _less(values: np.ndarray, lag: int) -> np.ndarray:
    """Return whole numbers less those `lag` places before; they wrap around."""
    if lag == 0:
        return values
    before = np.zeros_like(values)
    before[lag:] = values[: len(values) - lag]
    less: np.ndarray = values - before
    return less


def _sums(values: np.ndarray, lag: int) -> np.ndarray:
    """Undo `_less`."""
    rows = -(-len(values) // lag)
    padded = np.zeros(rows * lag, values.dtype)
    padded[: len(values)] = values
    np.cumsum(padded.reshape(rows, lag), axis=0, dtype=values.dtype, out=padded.reshape(rows, lag))
    return padded[: len(values)]


def _shuffled(values: np.ndarray) -> bytes:
    """Return the first bytes of all values, then the second ones, and so on; little-endian."""
    raw = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
    return np.frombuffer(raw, np.uint8).reshape(-1, values.itemsize).T.tobytes()


def inline_values(pack: Mapping[str, Any], where: str) -> np.ndarray:
    """Return the values of a pack that lies in the description.

    Raises CorruptError if it is not as `Sink` writes it, or decodes to more than it may.
    """
    try:
        values = _text_values(pack) if "values" in pack else _deflated_values(pack)
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise _core.CorruptError(
            f"{where}: a pack of small arrays in the description is damaged ({error}); restore "
            "the store from a copy"
        ) from error
    return values


def _text_values(pack: Mapping[str, Any]) -> np.ndarray:
    texts = np.empty(len(pack["values"]), dtype=object)
    texts[:] = pack["values"]
    if any(not isinstance(text, str) for text in texts):
        raise ValueError("a text is no string")
    return texts


def _deflated_values(pack: Mapping[str, Any]) -> np.ndarray:
    if pack["dtype"] not in NUMBERS:
        raise ValueError(f"dtype {pack['dtype']!r}")
    dtype = np.dtype(pack["dtype"])
    decoder = zlib.decompressobj()
    raw = decoder.decompress(base64.b64decode(pack["deflate"], validate=True), 4 * PACKED_BELOW)
    if not decoder.eof or decoder.unused_data or len(raw) % dtype.itemsize:
        raise ValueError("not as long as it says")
    columns = np.frombuffer(raw, np.uint8).reshape(dtype.itemsize, -1)
    flat = np.frombuffer(columns.T.tobytes(), dtype.newbyteorder("<"))
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a bool is neither 0 nor 1")
    values = flat.astype(dtype.newbyteorder("="))
    lag = pack.get("lag", 0)
    if type(lag) is not int or not 0 <= lag <= max(_LAGS) or (lag and dtype.kind not in "iu"):
        raise ValueError(f"a lag of {lag!r:.80}")
    return _sums(values, lag) if lag else values

"""Writes tables and particles of a snapshot, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.morton import morton_keys
from ambar.snapshot.regions import AXES
from ambar.store.error_bounds import (
    PartBound,
    median_magnitude,
    range_of,
    resolved,
    select_bounds,
)
from ambar.store.writer import Writer

POSITIONS = tuple(f"position_{axis}" for axis in AXES)
"""The columns of positions in three dimensions."""
_CHUNK_ROWS = 32768
"""The usual number of rows of a chunk."""
_BITS = 21
"""Bits of each coordinate of the lattice on which particles are sorted."""
_BLOCK = 1 << 16
"""Rows whose keys are computed together."""


def upper_faces(lower: Sequence[float], upper: Sequence[float]) -> list[float]:
    """Return faces of a domain a little above `upper`: no particle is on one, and no side is 0."""
    side = max(np.subtract(upper, lower).max(), np.abs(upper).max() * 1e-9, 1e-9)
    return [
        float(end + side * 1e-9 if end > start else end + side)
        for start, end in zip(lower, upper, strict=True)
    ]


class TableWriter:
    """Writes a group of kind ``particles`` whose columns come one after the other.

    Parameters
    ----------
    writer
        The open store.
    path
        The path of the group.
    rows
        The number of rows of all columns.
    bounds
        Pairs of target and error bound, as `ambar.store.error_bounds.listed_bounds` returns them.
        Only targets with a species, such as "gas/Density" or "gas/*", apply.
    """

    def __init__(
        self, writer: Writer, path: str, rows: int, bounds: Sequence[tuple[str, str]]
    ) -> None:
        self._writer, self._path, self._rows = writer, path, rows
        # A name or pattern without a species is that of cells.
        self._bounds = [rule for rule in bounds if names_species(rule[0])]
        self._chunk = _chunk_rows(rows)
        self._ranges: dict[str, np.ndarray] = {}
        self._lossy: dict[str, dict[str, Any]] = {}

    @property
    def chunk_rows(self) -> int:
        """The number of rows of a chunk."""
        return self._chunk

    @property
    def columns(self) -> list[str]:
        """The names of the written columns, in order."""
        return list(self._ranges)

    def write(self, name: str, values: np.ndarray) -> None:
        """Write a column.

        Raises
        ------
        ValueError
            If the name is that of another column or of the index, or the error bound is that of a
            part of the column.
        """
        self._check(name)
        bound = self._bound(name, values)
        self._writer.create_array(
            f"{self._path}/{name}",
            values,
            dims=["particle"],
            chunks=(self._chunk,),
            error_bound=None if bound == 0.0 else bound,
        )
        self._ranges[name] = _ranges(values, self._chunk, bound)

    def write_parts(self, name: str, dtype: np.dtype[Any], parts: Iterable[np.ndarray]) -> None:
        """Write a column in consecutive parts, of which one is in memory at a time.

        A column with an error bound is held in memory. Each part but the last has a multiple of
        `chunk_rows` rows. Raises the errors of `write`.
        """
        if self._parts_of_bound(name, dtype):
            self.write(name, np.concatenate([np.empty(0, dtype), *parts]))
            return
        self._check(name)
        path, ranges, start = f"{self._path}/{name}", [np.empty((0, 2))], 0
        self._writer.create_array(
            path, shape=(self._rows,), dtype=dtype, dims=["particle"], chunks=(self._chunk,)
        )
        for part in parts:
            self._writer.write_region(path, part, [start])
            ranges.append(_ranges(part, self._chunk, 0.0))
            start += len(part)
        self._ranges[name] = np.concatenate(ranges)

    def _check(self, name: str) -> None:
        if name == "index" or name in self._ranges:
            raise _core.InvalidError(
                f"{self._path}: expected unique names of columns, and none with the name 'index', "
                f"found {name!r}; rename it"
            )

    def finish(self, ndim: int, boxlen: float) -> None:
        """Write the attributes and the index, after the last column."""
        about: dict[str, Any] = {
            "version": 1,
            "kind": "particles",
            "ndim": ndim,
            "boxlen": boxlen,
            "positions": list(POSITIONS[:ndim]),
            "columns": self.columns,
            **self._lossy,
        }
        self._writer._create_group(self._path, {"ambar": about})
        if self._rows > self._chunk:
            self._writer.create_array(
                f"{self._path}/index/range",
                np.stack(list(self._ranges.values())),
                dims=["column", "chunk", "bound"],
            )

    def _bound(self, name: str, values: np.ndarray) -> float | str:
        """Return the error bound of a column: 0 without loss, a number if it is absolute."""
        parts = self._parts_of_bound(name, values.dtype)
        if not parts:
            return 0.0
        component = self._path.strip("/")
        if len(parts) > 1 or parts[0].levels is not None or parts[0].region is not None:
            raise _core.InvalidError(
                f"{component}/{name}: expected one error bound for the column, found that of a "
                f"part, {parts[0].target!r}; leave out the part"
            )
        lowest, highest = range_of(values)
        if lowest > highest:
            return 0.0
        bound = resolved(parts[0].bound, (lowest, highest))
        if bound != 0.0:
            self._lossy.setdefault("error_bounds", {})[name] = bound
            self._lossy.setdefault("requested_bounds", {})[name] = parts[0].bound
            if _core.bound_needs_range(parts[0].bound):
                self._lossy.setdefault("medians", {})[name] = median_magnitude(values)
        return bound

    def _parts_of_bound(self, name: str, dtype: np.dtype[Any]) -> list[PartBound]:
        """Return the error bounds of a column and its parts; empty for none."""
        if dtype not in (np.float32, np.float64):
            return []
        component = self._path.strip("/")
        names = [f"{component}/{name}", f"{component.rpartition('/')[2]}/{name}"]
        return select_bounds(self._bounds, names) or []


def names_species(target: str) -> bool:
    """Return whether the target of an error bound names a species, as "gas/Density" does."""
    return "/" in target.partition("@")[0]


def _chunk_rows(rows: int) -> int:
    """Return the rows of a chunk: an even division, of several chunks a multiple of 64."""
    chunks = max((rows + _CHUNK_ROWS // 2) // _CHUNK_ROWS, 1)
    even = max(-(-rows // chunks), 1)
    return even if chunks == 1 else -(-even // 64) * 64


def _ranges(values: np.ndarray, chunk: int, bound: float | str) -> np.ndarray:
    """Return the smallest and largest value of each chunk, of shape (chunks, 2).

    Limits are rounded outwards to float64, and widened by the error bound.
    """
    starts = np.arange(0, len(values), chunk)
    if values.dtype.kind not in "iuf" or not len(values):
        return np.tile([-np.inf, np.inf], (len(starts), 1))
    limits = []
    for reduce, outwards in ((np.fmin, -np.inf), (np.fmax, np.inf)):
        exact = reduce.reduceat(values, starts)
        rounded = exact.astype(np.float64)
        if values.dtype.kind != "f":
            inside = [
                (own > int(value)) if outwards > 0 else (own < int(value))
                for own, value in zip(exact.tolist(), rounded, strict=True)
            ]
            rounded = np.where(inside, np.nextafter(rounded, outwards), rounded)
        margin = _margins(rounded, chunk, bound)
        widened = np.nextafter(rounded + np.copysign(margin, outwards), outwards)
        limits.append(np.where(margin > 0, widened, rounded))
    low, high = limits
    none = np.isnan(low)
    return np.stack([np.where(none, np.inf, low), np.where(none, -np.inf, high)], axis=1)


def _margins(limits: np.ndarray, chunk: int, bound: float | str) -> np.ndarray:
    """Return how far decoded values may be outside of limits."""
    kind, numbers = _core.bound_parts(bound)
    magnitudes = np.abs(limits)
    if kind == "relative":
        margin = numbers[0] * np.maximum(magnitudes, numbers[1])
    elif kind == "bits":
        least = float(np.finfo(np.float32).tiny)
        margin = 0.5 ** (numbers[0] + 1) * np.maximum(magnitudes, least)
    elif kind == "rms":
        margin = np.full(limits.shape, numbers[0] * chunk**0.5)
    else:
        margin = np.full(limits.shape, numbers[0] if numbers else 0.0)
    return np.where(np.isfinite(limits), margin * (1 + 1e-15), 0.0)


def morton_order(positions: np.ndarray, lower: Sequence[float], side: float) -> np.ndarray:
    """Return the permutation that sorts rows along the Morton curve through a cube.

    Parameters
    ----------
    positions
        Of shape (rows, dimensions).
    lower, side
        The lower corner and the side of the cube. Positions outside are moved to its faces.

    Returns
    -------
    numpy.ndarray
        uint32, or int64 for 2^32 or more rows. Rows of equal keys keep their order.
    """
    keys = np.empty(len(positions), dtype=np.int64)
    start = np.asarray(lower)
    for row in range(0, len(positions), _BLOCK):
        block = np.nan_to_num(positions[row : row + _BLOCK].astype(np.float64) - start)
        lattice = np.floor(block * (2.0**_BITS / side)).clip(0, 2**_BITS - 1)
        keys[row : row + _BLOCK] = morton_keys(lattice.astype(np.int64).T)
    order = np.argsort(keys, kind="stable")
    return order.astype(np.uint32) if len(order) < 2**32 else order


def write_sorted(
    table: TableWriter,
    positions: np.ndarray,
    lower: Sequence[float],
    side: float,
    columns: Iterable[tuple[str, np.ndarray]],
) -> None:
    """Write positions and other columns of a table, with rows sorted along the Morton curve.

    Parameters
    ----------
    table
        The table, without columns.
    positions
        Of shape (rows, dimensions).
    lower, side
        The lower corner and the side of the domain, as for `morton_order`.
    columns
        Names and values of the other columns. One is in memory at a time.
    """
    order = morton_order(positions, lower, side)
    for number in range(positions.shape[1]):
        table.write(POSITIONS[number], positions[:, number][order])
    del positions
    for name, values in columns:
        table.write(name, values[order])
        del values

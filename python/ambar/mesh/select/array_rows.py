"""Some rows of one array of a mesh, read without its geometry and without its other rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar.mesh.storage.array_references import Key, part_of
from ambar.mesh.storage.description import ASSOCIATIONS, Association
from ambar.mesh.storage.entries import checked_entries
from ambar.mesh.storage.source import Source

Rows: TypeAlias = slice | Sequence[int] | np.ndarray


def rows_of_array(
    described: Any, source: Source, name: str, association: Association | None, rows: Rows | None
) -> np.ndarray:
    """Return rows of an array of a described object; arguments as for `Mesh.read_array`."""
    entry, where = _found(described, source, name, association)
    shape = source.shape_of(entry)
    grid = shape[:3] if len(shape) > 2 else shape[:1]
    wanted = _checked(rows, math.prod(grid), where)
    if len(grid) == 1:
        values = source.get(part_of(entry, grid, (wanted,), source), where)
    else:
        values = _rows_on_grid(entry, source, where, grid, wanted)
    return _as_pyvista(np.ascontiguousarray(values), entry)


def _found(
    described: Any, source: Source, name: str, association: Association | None
) -> tuple[dict[str, Any], str]:
    """Return the description of the array, and what to call it."""
    if association is not None and association not in ASSOCIATIONS.values():
        raise _core.InvalidError(
            f"invalid association {association!r}: must be one of "
            f"{', '.join(map(repr, ASSOCIATIONS.values()))}"
        )
    described = described if isinstance(described, dict) else {}
    found, known = [], []
    for key, of in ASSOCIATIONS.items():
        for entry in checked_entries(described.get(key), source, key.replace("_", " ")):
            known.append(f"{of} {entry['name']!r}")
            if entry["name"] == name and association in (None, of):
                found.append((entry, f"{of} array {name!r}"))
    if not found:
        on = "" if association is None else f"{association} "
        raise _core.NotFoundError(
            f"{source.where}: no {on}array {name!r}; available: {', '.join(known) or 'none'}; "
            "give block= for the array of a block"
        )
    if len(found) > 1:
        raise _core.InvalidError(
            f"{source.where}: {' and '.join(what for _, what in found)} have the same name; give "
            "association="
        )
    return found[0]


def _checked(rows: Rows | None, count: int, where: str) -> slice | np.ndarray:
    """Return rows as a slice, or as int64 from 0 to `count`."""
    if rows is None:
        return slice(None)
    if isinstance(rows, slice):
        return rows
    numbers = np.asarray(rows)
    if numbers.dtype == bool and numbers.shape == (count,):
        return np.flatnonzero(numbers)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise _core.InvalidError(
            f"rows of the {where} are a slice, a list of whole numbers, or {count} bools, not "
            f"{rows!r:.80}"
        )
    bad = (numbers < -count) | (numbers >= count)
    if bad.any():
        raise IndexError(f"the {where} has no row {numbers[bad][0]}; it has {count}")
    return np.where(numbers < 0, numbers + count, numbers).astype(np.int64)


def _rows_on_grid(
    entry: dict[str, Any],
    source: Source,
    where: str,
    grid: tuple[int, ...],
    rows: slice | np.ndarray,
) -> np.ndarray:
    """Return rows of an array whose tuples lie (z, y, x): the layers, or lines, around them."""
    _, height, width = grid
    numbers = range(*rows.indices(math.prod(grid))) if isinstance(rows, slice) else rows
    if len(numbers) == 0:
        first = stop = 0
    elif isinstance(numbers, range):
        first, stop = min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1]) + 1
    else:
        first, stop = int(numbers.min()), int(numbers.max()) + 1
    layer = height * width
    key: Key = (slice(first // layer, -(-stop // layer)), slice(None), slice(None))
    start = first // layer * layer
    if stop - start <= layer and stop > first:
        lines = slice((first - start) // width, -(-(stop - start) // width))
        key = (key[0], lines, slice(None))
        start += lines.start * width
    values = source.get(part_of(entry, grid, key, source), where)
    if isinstance(numbers, range):
        backwards = numbers.step < 0
        upward = numbers[::-1] if backwards else numbers
        picked = values[upward.start - start : max(upward.stop - start, 0) : upward.step]
        return picked[::-1] if backwards else picked
    found: np.ndarray = values[numbers - start]
    return found


def _as_pyvista(values: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    """Return bools and complex numbers, where PyVista has such, in place of what VTK has."""
    kind, dtype = entry.get("pyvista"), values.dtype
    if kind == "bitarray" and dtype.itemsize == 1:
        return values.view(bool)
    if kind == "complex" and dtype.kind == "f" and values.shape[1:] == (2,):
        return values.view(f"c{2 * dtype.itemsize}").reshape(-1)
    return values

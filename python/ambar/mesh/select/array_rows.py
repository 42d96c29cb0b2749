"""Rows of one array of a mesh, read without other rows and without the geometry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.arguments import check_choice
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import ASSOCIATIONS, Association
from ambar.mesh.storage.references import Key, select_rows
from ambar.store.array import Selection

Rows: TypeAlias = slice | Sequence[int] | np.ndarray


def read_array_rows(
    described: Any,
    reader: ArrayReader,
    name: str,
    association: Association | None,
    rows: Rows | None,
) -> np.ndarray:
    """Return rows of an array of a described object; arguments as for `Mesh.read_array`."""
    with reader.damage_as_errors():
        entry, where = _find_array(described, reader, name, association)
        shape = reader.shape_of(entry)
    grid = shape[:3] if len(shape) > 2 else shape[:1]
    key: Any = slice(None) if rows is None else rows
    if not isinstance(key, slice) and np.ndim(key := np.asarray(key)) != 1:
        raise _core.InvalidError(
            f"invalid rows of {name!r}: {rows!r:.80}; expected a slice, integers or bools"
        )
    [part] = Selection.of(key, (math.prod(grid),)).parts
    wanted: slice | np.ndarray
    if isinstance(part, range):
        stop = part.stop if part.stop >= 0 else None
        wanted = slice(part.start, stop, part.step) if part else slice(0)
    else:
        wanted = part.view(np.int64)
    if len(grid) == 1:
        values = reader.get(select_rows(entry, grid, (wanted,), reader), where)
    else:
        values = _rows_on_grid(entry, reader, where, grid, wanted)
    return _to_pyvista_dtype(np.ascontiguousarray(values), entry)


def _find_array(
    described: Any, reader: ArrayReader, name: str, association: Association | None
) -> tuple[dict[str, Any], str]:
    """Return the description of the array, and its name for messages."""
    if association is not None:
        check_choice("association", association, ASSOCIATIONS.values())
    lists = {of: (described or {}).get(key) or () for key, of in ASSOCIATIONS.items()}
    known = [(of, entry) for of, entries in lists.items() for entry in entries]
    matches = [(of, entry) for of, entry in known if entry["name"] == name]
    matches = [(of, entry) for of, entry in matches if association in (None, of)]
    if not matches:
        on = "" if association is None else f"{association} "
        names = ", ".join(f"{of} {entry['name']!r}" for of, entry in known)
        raise _core.NotFoundError(
            f"{reader.where}: no {on}array {name!r}; available: {names or 'none'}; give block= for "
            "the array of a block"
        )
    if len(matches) > 1:
        found = " and ".join(f"{of} array {name!r}" for of, _ in matches)
        raise _core.InvalidError(f"{reader.where}: {found} have the same name; give association=")
    [(of, entry)] = matches
    return entry, f"{of} array {name!r}"


def _rows_on_grid(
    entry: dict[str, Any],
    reader: ArrayReader,
    where: str,
    grid: tuple[int, ...],
    rows: slice | np.ndarray,
) -> np.ndarray:
    """Return rows of an array on a grid (z, y, x), read from the layers with these rows."""
    layer = grid[1] * grid[2]
    numbers = np.arange(*rows.indices(math.prod(grid))) if isinstance(rows, slice) else rows
    first = int(numbers.min()) // layer if len(numbers) else 0
    stop = int(numbers.max()) // layer + 1 if len(numbers) else 0
    key: Key = (slice(first, stop), slice(None), slice(None))
    values = reader.get(select_rows(entry, grid, key, reader), where)
    found: np.ndarray = values[numbers - first * layer]
    return found


def _to_pyvista_dtype(values: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    """Return bools and complex numbers for arrays that have these in PyVista."""
    kind, dtype = entry.get("pyvista"), values.dtype
    if kind == "bitarray" and dtype.itemsize == 1:
        return values.view(bool)
    if kind == "complex" and dtype.kind == "f" and values.shape[1:] == (2,):
        return values.view(f"c{2 * dtype.itemsize}").reshape(-1)
    return values

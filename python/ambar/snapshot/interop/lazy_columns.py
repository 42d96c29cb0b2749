"""Columns of cells and particles in stores as dask arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ambar._util.optional import require

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows, Request

BLOCK_ROWS = 1 << 21
"""Rows of a dask chunk, rounded up to whole chunks of the store: 16 MiB of float64."""


def lazy_columns(rows: FieldRows, request: Request) -> dict[str, Any]:
    """Return columns as dask arrays of equal chunks; a task reads one chunk of one column.

    Parameters
    ----------
    rows
        Cells or particles in a store.
    request
        The requested columns, without a condition.

    Raises
    ------
    ModuleNotFoundError
        If dask is not installed.
    """
    require("dask", purpose="to_xarray of data in a store", install="ambar[dask]")
    import dask.array as da
    from dask.base import tokenize

    blocks = _blocks(rows._core.chunk_lengths)
    sizes = (tuple(size for _, _, size in blocks),)
    arrays = {}
    for name, column in request.columns.items():
        one = request.only(name)
        key = f"ambar-{column}-{tokenize(rows, one)}"
        graph = {
            (key, number): (_read_block, rows, one, start, stop)
            for number, (start, stop, _) in enumerate(blocks)
        }
        dtype = one.dtype(name, rows._core)
        arrays[name] = da.Array(graph, key, chunks=sizes, dtype=dtype)
    return arrays


def _blocks(lengths: list[int]) -> list[tuple[int, int, int]]:
    """Return (first chunk, chunk after the last, rows) of each dask chunk."""
    blocks, first, size = [], 0, 0
    for number, length in enumerate(lengths, start=1):
        size += length
        if size >= BLOCK_ROWS:
            blocks.append((first, number, size))
            first, size = number, 0
    if size or not blocks:
        blocks.append((first, len(lengths), size))
    return blocks


def _read_block(rows: FieldRows, request: Request, start: int, stop: int) -> np.ndarray:
    (values,) = rows._read_request(request, chunks=(start, stop)).values()
    return values

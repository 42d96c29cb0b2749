"""Passes over rows: batches of chunks are read with all threads while others are reduced.

Batches and their blocks depend on the data alone and results arrive in their order, so that results
do not depend on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ambar._core import InvalidError, check_threads, default_threads
from ambar._util.arguments import check_choice
from ambar.snapshot.regions import CUTS, Cut, Levels, Region, checked_levels

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows, Request

BATCH_BYTES = 16 << 20
"""Maximum bytes of the columns of a batch, rounded up to whole chunks."""
MAP_BYTES = 128 << 20
"""Maximum bytes of the columns of a batch that is drawn: each batch has images of its own."""
BLOCK_ROWS = 1 << 15
"""Rows that are reduced in one call: their columns fit into the processor's caches."""
_MAX_REDUCERS = 4
"""Maximum number of threads that reduce, each a block."""

FRACTION = "region_fraction"
"""The column of the fraction of each cell that is in the region of a selection."""

Arrays = dict[str, np.ndarray]
Result = TypeVar("Result")


class BlockLocation(NamedTuple):
    """Where a block is: the chunks of its batch, and its first row among those selected."""

    chunks: tuple[int, int]
    start: int


@dataclass(frozen=True)
class Selection:
    """The rows of a pass: the arguments of `read`."""

    region: Region | None = None
    levels: Levels | None = None
    where: str | None = None
    threads: int | None = None
    cut: Cut = "center"

    @property
    def is_by_volume(self) -> bool:
        """Whether all cells that share volume with the region are selected."""
        return self.region is not None and self.cut != "center"

    def __post_init__(self) -> None:
        """Check the number of threads and the choice of cells."""
        check_choice("cut", self.cut, CUTS)
        check_threads(self.threads)


def read_batch(
    rows: FieldRows, names: Sequence[str], selection: Selection, chunks: tuple[int, int]
) -> Arrays:
    """Return columns of the selected rows in the chunks of a batch."""
    return _read(rows, rows._request(names, selection.where), selection, chunks)


def _read(
    rows: FieldRows, request: Request, selection: Selection, chunks: tuple[int, int]
) -> Arrays:
    if selection.levels is not None and not is_cells(rows):
        raise InvalidError(f"levels={selection.levels} does not apply to particles; leave it out")
    return rows._read_request(
        request,
        region=selection.region,
        is_by_volume=selection.is_by_volume,
        levels=checked_levels(selection.levels),
        threads=selection.threads,
        chunks=chunks,
    )


def with_fraction(
    rows: FieldRows, names: Sequence[str], selection: Selection
) -> tuple[FieldRows, Sequence[str]]:
    """Return rows and columns, with the column `FRACTION` if cells count by it."""
    if selection.region is None or selection.cut != "fraction" or not is_cells(rows):
        return rows, names
    return rows._with_fraction_of(selection.region), [*names, FRACTION]


def weights_of(arrays: Arrays, weight: str | None) -> np.ndarray | None:
    """Return the weight of each row, times the fraction of a cell that counts; None for 1."""
    fraction = arrays.get(FRACTION)
    if weight is None:
        return fraction
    return arrays[weight] if fraction is None else arrays[weight] * fraction


def each_batch(
    rows: FieldRows, names: Sequence[str], selection: Selection, nbytes: int | None = None
) -> Iterator[tuple[tuple[int, int], Arrays]]:
    """Yield the chunks and the columns of each batch of selected rows, of at most `nbytes`.

    The column `FRACTION` is added if cells count by the fraction of their volume in the region.
    """
    rows, names = with_fraction(rows, names, selection)
    request = rows._request(names, selection.where)
    for chunks in batch_ranges(rows, len(names), nbytes or BATCH_BYTES):
        # Not kept here, so that the caller can release a batch before the next one is read.
        yield chunks, _read(rows, request, selection, chunks)


def each_block(
    rows: FieldRows,
    names: Sequence[str],
    selection: Selection,
    reduce: Callable[[Arrays], Result],
    block_rows: int = BLOCK_ROWS,
) -> Iterator[tuple[BlockLocation, Result]]:
    """Yield the location and the result of each block of selected rows, in order.

    Parameters
    ----------
    rows
        Cells or particles.
    names
        The columns to read.
    selection
        The rows.
    reduce
        Called with the columns of a block as float64, in several threads.
    block_rows
        Maximum number of rows of a block.
    """
    threads = selection.threads or default_threads()
    if threads == 1:
        for chunks, arrays in each_batch(rows, names, selection):
            for start, block in _blocks(arrays, block_rows):
                yield BlockLocation(chunks, start), _reduced(reduce, block)
        return
    reducers = min(threads, _MAX_REDUCERS)
    pending: deque[tuple[BlockLocation, Future[Result]]] = deque()
    with ThreadPoolExecutor(reducers) as pool:
        for chunks, arrays in each_batch(rows, names, selection):
            blocks = list(_blocks(arrays, block_rows))
            for start, block in blocks:
                pending.append((BlockLocation(chunks, start), pool.submit(_reduced, reduce, block)))
            # The next batch is read while this one is reduced.
            while len(pending) > len(blocks):
                location, future = pending.popleft()
                yield location, future.result()
            del arrays, blocks
        while pending:
            location, future = pending.popleft()
            yield location, future.result()


def is_cells(rows: FieldRows) -> bool:
    """Return whether rows are cells, not particles."""
    return rows._component == "amr"


def _blocks(arrays: Arrays, block_rows: int) -> Iterator[tuple[int, Arrays]]:
    """Yield the first row and the columns of each block of a batch."""
    for start in range(0, len(next(iter(arrays.values()))), block_rows):
        rows = slice(start, start + block_rows)
        yield start, {name: values[rows] for name, values in arrays.items()}


def _reduced(reduce: Callable[[Arrays], Result], block: Arrays) -> Result:
    """Return the result of a block, whose columns become float64."""
    return reduce({name: np.asarray(values, np.float64) for name, values in block.items()})


def batch_ranges(rows: FieldRows, columns: int, nbytes: int) -> list[tuple[int, int]]:
    """Return the half-open ranges of chunks of all batches of at most `nbytes`."""
    row_bytes = 8 * max(columns, 1)
    lengths = rows._core.chunk_lengths
    ranges, first, size = [], 0, 0
    for number, length in enumerate(lengths, start=1):
        size += length * row_bytes
        if size >= nbytes:
            ranges.append((first, number))
            first, size = number, 0
    if size:
        ranges.append((first, len(lengths)))
    return ranges

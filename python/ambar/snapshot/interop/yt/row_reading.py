"""Columns at given rows: only the chunks that have some of them are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ambar.snapshot.field_rows import FieldRows


def read_rows(source: FieldRows, names: Sequence[str], rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns at rows, as float64; NaN at negative rows."""
    ends = np.cumsum(source._core.chunk_lengths)
    chunk_of = np.where(rows < 0, len(ends), ends.searchsorted(rows, side="right"))
    needed = np.flatnonzero(np.bincount(chunk_of, minlength=len(ends))[: len(ends)])
    found = {name: np.full(len(rows), np.nan) for name in names}
    for run in np.split(needed, np.flatnonzero(np.diff(needed) > 1) + 1) if len(needed) else ():
        first, after = int(run[0]), int(run[-1]) + 1
        chosen = (chunk_of >= first) & (chunk_of < after)
        start = int(ends[first - 1]) if first else 0
        for name, values in source._read_arrays(names, chunks=(first, after)).items():
            found[name][chosen] = values[rows[chosen] - start]
    return found

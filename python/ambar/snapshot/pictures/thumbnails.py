"""Thumbnails of snapshots in notebooks: of local stores, where few bytes are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.figures.thumbnails import MAX_BYTES, SIDE, thumbnail
from ambar.snapshot.loading import has_cells
from ambar.snapshot.pictures.defaults import default_field
from ambar.snapshot.regions import AXES, Box
from ambar.store.urls import is_url

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.snapshot import Snapshot

_MAX_CELLS = 2_000_000


def thumbnail_of(snapshot: Snapshot) -> str:
    """Return a slice of the usual field as HTML, or "" if it is not cheap, or damaged.

    That is a slice through the middle of cells in a local store, for which at most 4 MiB of values
    are decoded.
    """
    stored = snapshot._stored_at
    if stored is None or is_url(stored[0].location) or not has_cells(snapshot._source.components):
        return ""
    try:
        amr = snapshot.amr
        if amr.ndim == 1 or not 0 < len(amr) <= _MAX_CELLS:
            return ""
        field = default_field(amr)
        middle = None
        if amr.ndim == 3:
            middle = Box((None, None, 0.5), (None, None, 0.5 + 1e-9))
        touched = amr.chunks_touched(region=middle)
        if touched * len(amr) * 8 > MAX_BYTES * amr.chunk_count:
            return ""
        values = _plane(amr, field)
    except (_core.AmbarError, OSError):
        return ""
    plane = "" if amr.ndim == 2 else f" at {AXES[2]} = 0.5 of the box"
    return thumbnail(values, field + plane)


def _plane(amr: Amr, field: str) -> np.ndarray:
    """Return the middle plane of the box; as `Amr.slice`, but without xarray."""
    lower, upper = amr._core.lower, amr._core.upper
    options: dict[str, Any] = {
        "field": field,
        "level": _level_of(amr),
        "lo": list(lower),
        "hi": list(upper),
    }
    options |= {"computed": None, "threads": None}
    if amr.ndim == 2:
        values, _ = amr._core.grid(preview=True, **options)
    else:
        values, _ = amr._core.slice(axis=2, at=(lower[2] + upper[2]) / 2, **options)
    return np.asarray(values).T


def _level_of(amr: Amr) -> int:
    """Return the finest level whose plane is not larger than a thumbnail."""
    low, high = amr.levels
    for level in range(high, low, -1):
        sides = zip(amr.info.box_size[:2], amr.cell_size(level), strict=False)
        if max(side / cell for side, cell in sides) <= SIDE * (1 + 1e-9):
            return level
    return low

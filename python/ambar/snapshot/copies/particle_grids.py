"""The boxes that particles of AMReX belong to, in copies with other boxes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.copies.patch_part import PatchPart
from ambar.snapshot.copies.stored_group import StoredGroup
from ambar.snapshot.run_info import RunInfo
from ambar.store.copies.copier import Copier

_GRIDS = ("level", "grid")
"""The columns with the level and the box of each particle, for exports of plotfiles."""
_IDS = ("id", "cpu")
"""Those with its number and the process that created it."""
_ROWS = 1 << 20
"""Rows that are read together, unless a chunk has more."""


def columns_of_files(info: RunInfo, columns: Collection[str]) -> set[str]:
    """Return those columns of particles without which a plotfile cannot be written."""
    return {*_GRIDS, *_IDS}.intersection(columns) if has_grids(info, columns) else set()


def has_grids(info: RunInfo, columns: Collection[str]) -> bool:
    """Whether columns of particles have the boxes that they belong to."""
    return isinstance(info, AmrexInfo) and set(_GRIDS).issubset(columns)


def write_with_grids(
    group: StoredGroup, columns: Sequence[str], part: PatchPart, copier: Copier, to: str
) -> None:
    """Copy particles to the group `to`, with the boxes of a part of the hierarchy.

    Columns except "level" and "grid" are copied by the copier, when it finishes.
    """
    store, writer = group.store, copier.writer
    others = [name for name in columns if name not in _GRIDS]
    for name in others:
        copier.add(f"{group.path}/{name}", f"{to}/{name}")
    arrays = {name: store._array(f"{group.path}/{name}") for name in _GRIDS}
    for name, array in arrays.items():
        writer.create_array(
            f"{to}/{name}",
            shape=array.shape,
            dtype=array.dtype,
            dims=array.dims,
            chunks=array.chunks,
            profile=copier.profile,
        )
    table = store._core.table(f"/{group.path}")
    lengths = table.chunk_lengths
    step = max(_ROWS // max([*lengths, 1]), 1)
    limits: list[np.ndarray] = []
    row = 0
    for first in range(0, len(lengths), step):
        chunks = lengths[first : first + step]
        read = table.read(group.own["positions"], chunks=(first, first + len(chunks)))
        found = part.locate([read[name] for name in group.own["positions"]])
        for name, values in zip(_GRIDS, found, strict=True):
            writer.write_region(f"{to}/{name}", values, [row])
        starts = np.cumsum([0, *chunks[:-1]])
        limits.append(_limits(found, starts))
        row += sum(chunks)
    for path in group.ranges:
        array = store._array(path)
        known = dict(zip(group.fields, array[:], strict=True))
        known |= dict(zip(_GRIDS, np.concatenate(limits, axis=1), strict=True))
        ranges = np.array([known[name] for name in columns])
        writer.create_array(to + path.removeprefix(group.path), ranges, dims=array.dims)
    attributes = store._attributes(group.path)
    copier.set_attributes(to, {**attributes, "ambar": group.attributes_of(list(columns))})


def _limits(columns: Sequence[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Return the smallest and largest value of each chunk, of shape (columns, chunks, 2)."""
    if not len(columns[0]):
        return np.empty((len(columns), 0, 2))
    both = [
        np.stack([np.minimum.reduceat(one, starts), np.maximum.reduceat(one, starts)], axis=1)
        for one in columns
    ]
    return np.array(both, float)

"""Particles of yt datasets as tables, column by column along the Morton curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ambar.formats.particle_tables import TableWriter, write_sorted
from ambar.formats.yt.source import YtField, component_of, reading
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.regions import AXES
from ambar.store.writer import Writer


def write_species(
    writer: Writer,
    dataset: Any,
    species: str,
    columns: Sequence[YtField],
    info: CodeInfo,
    bounds: Sequence[tuple[str, str]],
    advance: Callable[[int], None],
) -> int:
    """Write a species, one column in memory at a time besides the order of the rows.

    Returns the number of particles. `advance` is called with the number of columns written.
    """
    data = dataset.all_data()

    def read(column: YtField) -> np.ndarray:
        with reading(dataset, f"{species}/{column.name}"):
            values = data[column.key]
        if column.is_position:
            values = values.to("code_length")
        found = np.asarray(values)
        data.clear_data()
        found = found if column.part is None else found[:, column.part]
        if column.name == "id" and found.dtype.kind == "f":
            whole = found.astype(np.int64)
            found = whole if np.array_equal(whole, found) else found
        return found

    by_name = {column.name: column for column in columns}
    positions = [by_name[f"position_{axis}"] for axis in AXES[: info.ndim]]
    points = np.stack([read(column) for column in positions], axis=1)
    table = TableWriter(writer, component_of(species), rows := len(points), bounds)

    def others() -> Iterator[tuple[str, np.ndarray]]:
        for column in columns:
            if column not in positions:
                advance(1)
                yield column.name, read(column)

    write_sorted(table, points, info.lower, max(info.box_size), others())
    table.finish(info.ndim, info.boxlen)
    return rows


def particles_outside(dataset: Any, species: str, rows: int) -> int:
    """Return how many particles of the files yt left out, because they are outside the domain."""
    files = getattr(dataset.index, "data_files", ())
    return max(sum(int(file.total_particles.get(species, 0)) for file in files) - rows, 0)

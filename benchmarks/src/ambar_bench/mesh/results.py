"""What the study of meshes found: rows, and which of them belong together."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from ambar_bench.mesh.meshes import GRIDS
from ambar_bench.mesh.rows import WAYS


@dataclass
class Row:
    """A mesh in one setting, and what it cost."""

    mesh: str
    type: str
    way: str
    name: str
    ours: bool
    level: int | None
    threads: int
    raw_bytes: int
    """Of all arrays of the mesh, the whole connectivity and offsets included."""
    bytes: int
    """Of all files."""
    files: int
    write: list[float]
    """Seconds of each round."""
    read: list[float]
    retyped: list[str]
    """Arrays that came back with the same values in another dtype."""

    @property
    def write_seconds(self) -> float:
        """The median."""
        return statistics.median(self.write)

    @property
    def read_seconds(self) -> float:
        """The median."""
        return statistics.median(self.read)

    @property
    def ratio(self) -> float:
        """How many times smaller the files are than the arrays."""
        return self.raw_bytes / self.bytes


@dataclass
class ArrayRow:
    """What reading one array of a mesh took, or the cells in a box."""

    mesh: str
    way: str
    name: str
    ours: bool
    seconds: list[float]
    asked: int
    """Bytes that read calls returned, and those of mapped files that were touched."""
    bytes: int
    """Of all files."""
    raw_bytes: int
    """Of what was read."""

    @property
    def read_seconds(self) -> float:
        """The median."""
        return statistics.median(self.seconds)


@dataclass
class Study:
    """All rows, and what they were measured on."""

    n: int
    points: int
    data: list[str]
    parts: list[str]
    levels: list[int]
    threads: int
    rounds: int
    patience: float
    steps: int
    machine: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    arrays: list[ArrayRow] = field(default_factory=list)
    boxes: list[ArrayRow] = field(default_factory=list)
    """Of the cells in a box."""
    series: list[Row] = field(default_factory=list)
    """Of all time steps together."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What was not measured, and why."""

    @property
    def grids(self) -> list[str]:
        """The names of the grids of tetrahedra."""
        return [GRIDS[values] for values in self.data]

    def of(self, mesh: str) -> list[Row]:
        """Return the rows of a mesh."""
        return [row for row in self.rows if row.mesh == mesh]

    def formats(self, mesh: str) -> list[Row]:
        """Return the rows of every way with its own level and all threads."""
        return [
            row
            for row in self.of(mesh)
            if row.level == WAYS[row.way].level and row.threads == self.threads
        ]

    def at_levels(self, mesh: str, way: str) -> list[Row]:
        """Return the rows of a way by its levels, with all threads."""
        rows = [r for r in self.of(mesh) if r.way == way and r.threads == self.threads]
        return sorted((row for row in rows if row.level is not None), key=_level)

    def at_threads(self, mesh: str, way: str) -> list[Row]:
        """Return the rows of a way by the number of threads, at its own level."""
        rows = [row for row in self.of(mesh) if row.way == way and row.level == WAYS[way].level]
        return sorted(rows, key=lambda row: row.threads)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, with each row's medians."""
        values = asdict(self)
        entries = values["rows"] + values["series"]
        for row, entry in zip(self.rows + self.series, entries, strict=True):
            entry["write_seconds"] = row.write_seconds
            entry["read_seconds"] = row.read_seconds
            entry["ratio"] = row.ratio
        parts = values["arrays"] + values["boxes"]
        for array, entry in zip(self.arrays + self.boxes, parts, strict=True):
            entry["read_seconds"] = array.read_seconds
        return values


def _level(row: Row) -> int:
    return row.level or 0

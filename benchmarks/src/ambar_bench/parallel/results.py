"""What the study of many ranks found: rows of writing and reading, and reads by other ranks."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from ambar_bench.parallel.versions import VERSIONS, Kind, Version


@dataclass
class Row:
    """A version with one kind of data on some ranks, and what it cost in each round."""

    version: str
    data: str
    ranks: int
    doubles: int
    bytes: int
    """That all files take of the disk."""
    length: int
    """Of all files, holes included."""
    files: int
    write: list[float]
    """Seconds of the slowest rank, to files that are closed and on the disk."""
    write_cpu: list[float]
    """Seconds of all ranks together."""
    cold: list[float]
    """Seconds of reading what the system no longer keeps in memory."""
    warm: list[float]
    read_cpu: list[float]
    """Of the cold reads."""
    error: float
    """The largest difference of what was read from what was written."""

    @property
    def made_by(self) -> Version:
        """The version."""
        return VERSIONS[self.version]

    @property
    def raw_bytes(self) -> int:
        """Of the doubles in memory."""
        return 8 * self.doubles

    @property
    def ratio(self) -> float:
        """How many times smaller the files are than the doubles."""
        return self.raw_bytes / self.bytes

    def median(self, what: str) -> float:
        """Return the median of "write", "write_cpu", "cold", "warm" or "read_cpu"."""
        times: list[float] = getattr(self, what)
        return statistics.median(times)


@dataclass
class Back:
    """What one number of ranks wrote, read by another."""

    version: str
    data: str
    writers: int
    readers: int
    seconds: float
    differing: int
    """Doubles with other bits than were written."""
    error: float
    """The largest difference."""


@dataclass
class Study:
    """All rows, and what they were measured on."""

    doubles: int
    asked: int
    """Doubles that were asked for; more than `doubles` where these do not fit."""
    text_doubles: int
    """Of the versions that write text."""
    bound: float
    data: list[str]
    ranks: list[int]
    readers: list[int]
    bandwidths: list[float]
    """Of the model's file systems, in GB/s."""
    rounds: int
    patience: float
    machine: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    backs: list[Back] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """What was not measured, and why."""

    def of(self, data: str, ranks: int) -> list[Row]:
        """Return the rows of a kind of data on some ranks."""
        return [row for row in self.rows if row.data == data and row.ranks == ranks]

    def row(self, version: str, data: str, ranks: int) -> Row | None:
        """Return a version's row."""
        rows = self.of(data, ranks)
        return next((row for row in rows if row.version == version), None)

    def along(self, version: str, data: str) -> list[Row]:
        """Return the rows of a version by the number of ranks."""
        rows = [row for row in self.rows if row.version == version and row.data == data]
        return sorted(rows, key=lambda row: row.ranks)

    def uncompressed(self, data: str, ranks: int) -> list[Row]:
        """Return the rows of all versions that write unencoded doubles."""
        return [row for row in self.of(data, ranks) if row.made_by.kind is Kind.RAW]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it, with each row's medians."""
        values = asdict(self)
        for row, entry in zip(self.rows, values["rows"], strict=True):
            for what in ("write", "write_cpu", "cold", "warm", "read_cpu"):
                entry[f"median_{what}"] = row.median(what)
            entry["ratio"] = row.ratio
        return values

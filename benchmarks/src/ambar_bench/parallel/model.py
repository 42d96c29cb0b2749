"""A model, not a measurement: the study's versions on up to 64 nodes, by a file system's speed."""

from __future__ import annotations

from typing import NamedTuple

from ambar_bench.parallel.results import Row, Study

RANKS_PER_NODE = 48
NODES = (1, 2, 4, 8, 16, 32, 64)
DOUBLES = 480_000_000
"""Of the array that the model writes, whatever was measured."""


class Line(NamedTuple):
    """The seconds of a version by the number of nodes."""

    row: Row
    seconds: list[float]


def seconds(row: Row, nodes: int, bandwidth: float) -> float:
    """Return the modelled seconds of a write.

    Ranks encode their own parts at the speed that was measured, in CPU seconds a double, and then
    all bytes go through the file system. What ranks wait for each other, and what a file system
    makes of many files or many writers, is not in it.

    Parameters
    ----------
    row
        What was measured, on the fewest ranks.
    nodes
        Of `RANKS_PER_NODE` ranks each.
    bandwidth
        Of the file system, in GB/s.
    """
    workers = 1 if row.made_by.serial else nodes * RANKS_PER_NODE
    scale = DOUBLES / row.doubles
    encode = row.median("write_cpu") * scale / workers
    return encode + row.bytes * scale / (bandwidth * 1e9)


def lines(study: Study, data: str, bandwidth: float) -> list[Line]:
    """Return the modelled lines of all versions that were measured on the fewest ranks."""
    rows = study.of(data, min(study.ranks))
    return [Line(row, [seconds(row, nodes, bandwidth) for nodes in NODES]) for row in rows]

"""Example of a package that adds a kind: records of a probe, as text files and as stores.

The package declares the kind as an entry point. Then ambar opens, converts and summarizes it:

    [project.entry-points."ambar.kinds"]
    probe = "probe_kind:PROBE"

docs/howto/add-a-kind.md explains the example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar.kinds import ConvertRequest, Kind, Resource

HEADER = "# probe: time pressure"


@dataclass(frozen=True)
class Probe:
    """The record of a probe; `ambar.open` returns it for this kind."""

    times: np.ndarray
    pressure: np.ndarray


def match_source(paths: Sequence[str | PathLike[str]]) -> bool:
    """Recognize a single text file by its first line."""
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return False
    with Path(paths[0]).open("rb") as file:
        return file.read(len(HEADER)) == HEADER.encode()


def open_probe(resource: Resource) -> Probe:
    """Read a text file, or a store."""
    if resource.opened is None:
        return Probe(*np.loadtxt(resource.location, ndmin=2).T)
    return Probe(resource.store["time"].read(), resource.store["pressure"].read())


def convert_probe(request: ConvertRequest) -> None:
    """Convert a text file to a store."""
    probe = open_probe(Resource(request.paths[0]))
    with ambar.create(request.target, request.mode) as writer:
        writer.create_group("", {"ambar": {"kind": "probe", "version": 1}})
        writer.create_array("time", probe.times, dims=["time"])
        writer.create_array("pressure", probe.pressure, dims=["time"])


def summarize_probe(resource: Resource) -> dict[str, Any]:
    """Return the summary that `ambar info` prints."""
    return {"samples": len(open_probe(resource).times)}


PROBE = Kind(
    name="probe",
    match_source=match_source,
    open=open_probe,
    summarize=summarize_probe,
    convert=convert_probe,
)

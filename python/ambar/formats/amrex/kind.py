"""The kind of AMReX plotfiles: opened, converted and summarized."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ambar import _core
from ambar.formats.amrex.source import AmrexSource, is_amrex, source_of
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ConvertRequest, listed, shown
from ambar.snapshot.kind import (
    CellsPlot,
    compare_cells,
    plot_cells,
    steps_of_snapshot,
    summarize_run,
    warn_of_loose_bounds,
)
from ambar.snapshot.snapshot import Snapshot
from ambar.store.error_bounds import listed_bounds
from ambar.store.writer import durability


@dataclass(frozen=True, kw_only=True)
class AmrexRequest(ConvertRequest):
    """The options of `ambar.convert` for plotfiles of AMReX."""

    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    covered: Literal["auto", "drop", "keep"] = "auto"


def _open(resource: Resource) -> Snapshot:
    return Snapshot(AmrexSource(resource.location))


def _summarize(resource: Resource) -> dict[str, Any]:
    return summarize_run(_open(resource), "amrex", files_of(Path(resource.location)))


def files_of(path: Path) -> dict[str, dict[str, int]]:
    """Return number and bytes of the files of a plotfile by folder; others count as "texts"."""
    found: dict[str, dict[str, int]] = {}
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            inside = file.relative_to(path).parts if path.is_dir() else ()
            kind = "HDF5" if path.is_file() else inside[0] if len(inside) > 1 else "texts"
            entry = found.setdefault(kind, {"files": 0, "bytes": 0})
            entry["files"] += 1
            entry["bytes"] += file.stat().st_size
    return found


def _convert(request: AmrexRequest) -> Conversion:
    request.refuse_append()
    bounds = listed_bounds(request.error_bound)
    (path,) = request.paths
    with shown(request.progress, f"converting {Path(path).name}") as report:
        text = _core.convert_amrex(
            source_of(path),
            os.fspath(request.target),
            listed(request.components),
            listed(request.fields),
            request.covered,
            (request.profile, bounds),
            durability(request.fsync),
            request.mode == "w",
            request.threads,
            report,
        )
    warn_of_loose_bounds(request.target, bounds)
    return Conversion(target=os.fspath(request.target), **json.loads(text))


AMREX = Kind(
    name="AMReX plotfile",
    match_source=lambda paths: len(paths) == 1 and is_amrex(paths[0]),
    open=_open,
    summarize=_summarize,
    convert=_convert,
    convert_request=AmrexRequest,
    steps=lambda resource: steps_of_snapshot(_open(resource)),
    compare=lambda resource, _, threads: compare_cells(_open(resource), threads),
    plot=lambda resource, request: plot_cells(_open(resource), request),
    plot_request=CellsPlot,
)

"""The kind of AMReX plotfiles: opened, converted and summarized."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ambar import _core
from ambar._util.progress import progress_function
from ambar.formats.amrex.source import AmrexSource, is_amrex, source_of
from ambar.kinds.registry import Resource
from ambar.kinds.request import Conversion, ConvertRequest, as_list
from ambar.snapshot.kind import count_files, kind_of_snapshots, summarize_run, warn_of_loose_bounds
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
    path = Path(resource.location)

    def file_kind(file: Path) -> str:
        folders = file.relative_to(path).parts[:-1]
        return "HDF5" if file == path else folders[0] if folders else "other"

    return summarize_run(_open(resource), "amrex", count_files(path, file_kind))


def _convert(request: AmrexRequest) -> Conversion:
    request.refuse_append()
    bounds = listed_bounds(request.error_bound)
    (path,) = request.paths
    with progress_function(request.progress, f"converting {Path(path).name}") as progress:
        report = _core.convert_amrex(
            source_of(path),
            os.fspath(request.target),
            components=as_list(request.components),
            fields=as_list(request.fields),
            covered=request.covered,
            profile=request.profile,
            error_bounds=bounds,
            durability=durability(request.fsync),
            overwrite=request.mode == "w",
            threads=request.threads,
            progress=progress,
        )
    warn_of_loose_bounds(request.target, bounds)
    return Conversion(target=os.fspath(request.target), **report)


AMREX = kind_of_snapshots(
    _open,
    name="AMReX plotfile",
    match_source=lambda paths: len(paths) == 1 and is_amrex(paths[0]),
    summarize=_summarize,
    convert=_convert,
    convert_request=AmrexRequest,
)

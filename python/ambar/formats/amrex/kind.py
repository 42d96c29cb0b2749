"""The kind of AMReX plotfiles: opened, converted and summarized."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ambar import _core
from ambar._util.progress import progress_function
from ambar._util.text import plural
from ambar._util.user_warnings import warn
from ambar.formats.amrex.run import PlotfileRun, has_plotfiles, run_of
from ambar.formats.amrex.source import AmrexSource, is_amrex, open_plotfile
from ambar.kinds.conversion_options import check_options, stored_options
from ambar.kinds.registry import Resource
from ambar.kinds.request import Conversion, ConvertRequest, OnError, as_list
from ambar.kinds.request import Path as AnyPath
from ambar.parallel.cluster import Scheduler
from ambar.snapshot.amrex_info import AmrexInfo, PatchDomain
from ambar.snapshot.kind import (
    check_series,
    count_files,
    is_series,
    kind_of_snapshots,
    series_options,
    summarize_run,
    warn_of_loose_bounds,
)
from ambar.snapshot.pictures.run_folder import RunFolder
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot
from ambar.store.error_bounds import listed_bounds


@dataclass(frozen=True, kw_only=True)
class AmrexRequest(ConvertRequest):
    """The options of `ambar.convert` for plotfiles of AMReX."""

    store_options = ("levels", "region", "steps")

    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    covered: Literal["auto", "drop", "keep"] = "auto"
    on_error: OnError = "stop"
    scheduler: Scheduler | None = None


def _match(paths: Sequence[AnyPath]) -> bool:
    return (len(paths) == 1 and is_amrex(paths[0])) or has_plotfiles(paths)


def _open(resource: Resource) -> Snapshot:
    path = resource.location
    if not is_amrex(path):
        found = run_of([path]).paths
        raise _core.InvalidError(
            f"{path} has {plural(len(found), 'plotfile')} of AMReX: use one, for example "
            f"{str(found[0])!r}, or convert all to a series: ambar.convert({path!r}, 'run.ambar')"
        )
    return Snapshot(AmrexSource(resource.location))


def _open_run(resource: Resource) -> RunFolder | None:
    path = resource.location
    if is_amrex(path):
        return None
    paths = run_of([path]).paths
    return RunFolder(path, paths, lambda plotfile: Snapshot(AmrexSource(str(plotfile))))


def _outputs(paths: Sequence[AnyPath]) -> list[Path]:
    is_one = len(paths) == 1 and is_amrex(paths[0])
    return [] if is_one else [Path(path) for path in run_of(paths).paths]


def _summarize(resource: Resource) -> dict[str, Any]:
    path = Path(resource.location)

    def file_kind(file: Path) -> str:
        folders = file.relative_to(path).parts[:-1]
        return "HDF5" if file == path else folders[0] if folders else "other"

    return summarize_run(_open(resource), "amrex", count_files(path, file_kind))


def _convert(request: AmrexRequest) -> Conversion:
    bounds = listed_bounds(request.error_bound)
    run, is_series = _sources(request)
    components, fields = as_list(request.components), as_list(request.fields)
    settings = stored_options(
        request, bounds, components=components, fields=fields, covered=request.covered
    )
    if is_series:
        check_options(request, settings)
    with progress_function(request.progress, f"converting {request.name}") as progress:
        report = _core.convert_amrex(
            [os.fspath(path) for path in run.paths],
            os.fspath(request.target),
            is_series=is_series,
            open_file=_patches,
            options={
                "components": components,
                "fields": fields,
                "covered": request.covered,
                "profile": request.profile,
                "error_bounds": bounds,
            },
            store=series_options(request, request.on_error, settings),
            threads=request.threads,
            progress=progress,
        )
    warn_of_loose_bounds(request, bounds)
    report["left_out"] = run.left_out | report["left_out"]
    return Conversion(target=os.fspath(request.target), **report)


def _sources(request: AmrexRequest) -> tuple[PlotfileRun, bool]:
    """Return the plotfiles to convert, and whether they become a series."""
    path = request.paths[0]
    is_one = len(request.paths) == 1 and is_amrex(path)
    if is_one and not is_series(request.existing):
        request.refuse_append()
        return PlotfileRun([Path(path)]), False
    run = run_of(request.paths)
    check_series(request, "amrex", None if run.header is None else run.header.ndim)
    _check_domain(request, run)
    if run.differing:
        (like, expected), (name, found), *_ = run.differing.items()
        warn(
            f"{name} has the fields {', '.join(found)}, {like} has {', '.join(expected)}: each "
            "output of the series has its own fields; choose common ones with fields=[...]"
        )
    return run, True


def _check_domain(request: AmrexRequest, run: PlotfileRun) -> None:
    """Raise ValueError if plotfiles have another domain than the series that they are added to."""
    store = request.existing
    if store is None or run.header is None or not len(series := Series(store)):
        return
    info = series[-1].info
    if isinstance(info, AmrexInfo) and (
        found := PatchDomain.of(info).difference(run.header.domain)
    ):
        raise _core.InvalidError(
            f"{run.paths[0]}: expected {found[0]} like the outputs in {os.fspath(request.target)}, "
            f"found {found[1]}; convert plotfiles of another run to a store of its own"
        )


def _patches(path: AnyPath) -> _core.Patches:
    """Open a plotfile that is a file of HDF5."""
    core = open_plotfile(path).core
    if not isinstance(core, _core.Patches):
        raise _core.InvalidError(f"{path}: expected a file of HDF5, found a folder")
    return core


AMREX = kind_of_snapshots(
    _open,
    name="AMReX plotfile",
    match_source=_match,
    open_run=_open_run,
    summarize=_summarize,
    convert=_convert,
    convert_request=AmrexRequest,
    outputs=_outputs,
)

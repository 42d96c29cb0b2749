"""The kinds "mesh" and "mesh series", in stores and in files of other programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.optional import require
from ambar._util.progress import progress_function
from ambar.kinds.registry import Kind
from ambar.kinds.request import (
    CopyRequest,
    Export,
    ExportRequest,
    MergeRequest,
    ViewRequest,
    as_list,
)
from ambar.kinds.targets import copying, merging
from ambar.mesh.arrays import stored_once
from ambar.mesh.copies import copy_mesh, copy_series, merge_series
from ambar.mesh.drawing import MeshPlot, MeshSeriesPlot, write_picture
from ambar.mesh.files.convert import MeshRequest, convert_mesh, convert_steps, is_timed
from ambar.mesh.files.formats import is_mesh_file
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.mesh.steps import Steps
from ambar.store.copies.selection import Positions


def _export_mesh(request: ExportRequest) -> Export:
    from ambar.mesh.files.export import export_mesh

    with progress_function(request.progress, f"exporting {Path(request.store).name}"):
        return export_mesh(request)


def _export_series(request: ExportRequest) -> None:
    from ambar.mesh.files.export import export_steps

    with progress_function(request.progress, f"exporting {Path(request.store).name}") as report:
        export_steps(request, _steps_of_series(MeshSeries(request.opened)).times, report)


def _steps_of_series(series: MeshSeries) -> Steps:
    times = [time for time in series.times if time is not None]
    # Numbers beside times would be ambiguous.
    is_timed = len(times) == len(series)
    return Steps(series, times if is_timed else [float(number) for number in range(len(series))])


def _compare_mesh(mesh: Mesh, _: int | None, threads: int | None) -> Any:
    from ambar.comparison.operands import MeshArrays

    return MeshArrays(mesh, threads)


def _compare_series(series: MeshSeries, output: int | None, threads: int | None) -> Any:
    if output is None or output not in range(len(series)):
        raise _core.InvalidError(
            f"{series.location} is a series of {len(series)} meshes; choose one, for example "
            "output=0"
        )
    return _compare_mesh(series[output], None, threads)


@dataclass(frozen=True, kw_only=True)
class MeshCopy(CopyRequest):
    """The options of `ambar.convert` for a store of a mesh."""

    fields: Iterable[str] | None = None


@dataclass(frozen=True, kw_only=True)
class MeshSeriesCopy(MeshCopy):
    """The options of `ambar.convert` for a store of a series of meshes."""

    steps: Positions = None


def _copy_mesh(request: MeshCopy) -> None:
    request.refuse_append()
    _refuse_bound(request)
    with copying(request) as (writer, report):
        copy_mesh(
            request.opened,
            writer,
            fields=as_list(request.fields),
            profile=request.new_profile,
            report=report,
        )


def _copy_series(request: MeshSeriesCopy) -> None:
    request.refuse_append()
    _refuse_bound(request)
    with copying(request) as (writer, report):
        copy_series(
            request.opened,
            writer,
            steps=request.steps,
            fields=as_list(request.fields),
            profile=request.new_profile,
            report=report,
        )


def _refuse_bound(request: CopyRequest) -> None:
    if request.error_bound is not None:
        raise _core.UnsupportedError(
            f"{request.name}: expected no error bound for a store of meshes, found "
            f"{request.error_bound!r}; convert the original file with the bound, or in Python "
            "ambar.write_mesh(ambar.read_mesh(...), path, error_bound=...)"
        )


def _merge(request: MergeRequest) -> None:
    existing = request.existing
    if existing is not None:
        about = existing._ambar_attributes()
        if about.get("kind") != "series" or about.get("of") != "mesh":
            raise _core.InvalidError(
                f"{existing.location}: expected a series of meshes to add to, found a store of the "
                f"kind {about.get('kind', 'arrays')!r}; choose another name"
            )
    with merging(request) as (writer, report):
        merge_series(request.stores, writer, existing, report)


def _view(opened: Mesh | MeshSeries, request: ViewRequest) -> Any:
    require("pyvista", purpose="the page of meshes", install="ambar[mesh,view]")
    from ambar.viewer.pages.mesh import page

    return page(opened, request)


MESH = Kind(
    name="mesh",
    match_source=lambda paths: len(paths) == 1 and is_mesh_file(paths[0]),
    open=lambda resource: Mesh(resource.store),
    summarize=lambda resource: overview_of(Mesh(resource.store)),
    convert=convert_mesh,
    convert_request=MeshRequest,
    copy=_copy_mesh,
    copy_request=MeshCopy,
    export=_export_mesh,
    steps=lambda mesh: Steps([mesh], []),
    compare=_compare_mesh,
    plot=write_picture,
    plot_request=MeshPlot,
    view=_view,
)
MESH_SERIES = Kind(
    name="mesh series",
    match_source=is_timed,
    open=lambda resource: MeshSeries(resource.store),
    summarize=lambda resource: overview_of_series(MeshSeries(resource.store)),
    convert=convert_steps,
    convert_request=MeshRequest,
    copy=_copy_series,
    copy_request=MeshSeriesCopy,
    merge=_merge,
    export=_export_series,
    steps=_steps_of_series,
    compare=_compare_series,
    plot=write_picture,
    plot_request=MeshSeriesPlot,
    view=_view,
)


def overview_of(mesh: Mesh) -> dict[str, Any]:
    """Return the summary of a mesh; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `type`, `points` and `cells` (their numbers),
    `bounds` (x0, x1, y0, y1, z0, z1, or None), `blocks` (names), `user_dict`, and `arrays` and
    `geometry` (entries are those of `MeshArray.to_dict`).
    """
    usage = mesh.store.usage()
    return {
        "path": mesh.location,
        "kind": "mesh",
        "bytes": usage["total"],
        "usage": usage,
        **_sizes_of(mesh),
        "blocks": mesh.blocks,
        "user_dict": mesh.user_dict,
        "arrays": [array.to_dict() for array in mesh.arrays],
        "geometry": [array.to_dict() for array in mesh.geometry],
    }


def _sizes_of(mesh: Mesh) -> dict[str, Any]:
    sizes = {"type": mesh.type, "points": mesh.n_points, "cells": mesh.n_cells}
    return {**sizes, "bounds": mesh.bounds}


def overview_of_series(series: MeshSeries) -> dict[str, Any]:
    """Return the summary of a series of meshes; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `steps` (number, time, type, points, cells, bounds,
    and the names of the arrays), and `arrays`: the arrays of all steps, those that several steps
    share once (entries are those of `MeshArray.to_dict`, and `step`).
    """
    usage = series.store.usage()
    meshes = list(series)
    arrays = stored_once([*mesh.arrays, *mesh.geometry] for mesh in meshes)
    return {
        "path": series.location,
        "kind": "mesh series",
        "bytes": usage["total"],
        "usage": usage,
        "steps": [
            {
                "number": number,
                "time": time,
                **_sizes_of(mesh),
                "arrays": list(dict.fromkeys(str(array.name) for array in mesh.arrays)),
            }
            for number, (time, mesh) in enumerate(zip(series.times, meshes, strict=True))
        ],
        "arrays": [{"step": number, **array.to_dict()} for number, array in arrays],
    }

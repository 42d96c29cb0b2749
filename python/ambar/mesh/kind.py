"""The kinds "mesh" and "mesh series", in stores and in files of other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.progress import progress_function
from ambar.kinds.registry import Kind
from ambar.kinds.request import ExportRequest, PlotRequest
from ambar.mesh.files.convert import MeshRequest, convert_mesh, convert_steps
from ambar.mesh.files.pyvista_readers import is_mesh_file
from ambar.mesh.files.time_steps import is_timed
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.mesh.steps import Steps
from ambar.mesh.summary import overview_of, overview_of_series


@dataclass(frozen=True, kw_only=True)
class MeshPlot(PlotRequest):
    """The options of ``ambar plot`` for a mesh."""

    colors: str = "inferno"
    log: bool = False
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class MeshSeriesPlot(MeshPlot):
    """The options of ``ambar plot`` for a series of meshes."""

    output: int | None = None


def _export_mesh(request: ExportRequest) -> None:
    from ambar.mesh.files.export import export_mesh

    with progress_function(request.progress, f"exporting {Path(request.store).name}"):
        export_mesh(request.store, request.target, request.threads)


def _export_series(request: ExportRequest) -> None:
    from ambar.mesh.files.export import VTKHDF, export_collection_of_steps, export_steps

    steps = _steps_of_series(MeshSeries(request.opened))
    with progress_function(request.progress, f"exporting {Path(request.store).name}") as report:
        if request.target.suffix.lower() == VTKHDF:
            meshes = (mesh.read(threads=request.threads) for mesh in steps.meshes)
            export_steps(meshes, steps.times, request.target, report)
        else:
            export_collection_of_steps(
                request.store, steps.times, request.target, request.threads, report
            )


def _steps_of_series(series: MeshSeries) -> Steps:
    times = [float(n) if time is None else time for n, time in enumerate(series.times)]
    return Steps(series, times)


def _compare_mesh(mesh: Mesh, _: int | None, threads: int | None) -> Any:
    from ambar.comparison.operands import MeshArrays

    return MeshArrays(mesh, threads)


def _compare_series(series: MeshSeries, output: int | None, threads: int | None) -> Any:
    if output is None or output not in range(len(series)):
        raise _core.InvalidError(
            f"{series.store.location} is a series of {len(series)} meshes; choose one, for example "
            "output=0"
        )
    return _compare_mesh(series[output], None, threads)


def _plot(mesh: Mesh, request: MeshPlot, title: str = "") -> Path:
    """Draw the surface of a mesh."""
    from ambar.mesh.drawing import draw_mesh

    target = request.target_of(*([request.field] if request.field else []))
    return draw_mesh(
        mesh,
        target,
        scalars=request.field,
        colors=request.colors,
        log=request.log,
        limits=request.limits,
        title=title if request.title else "",
        dpi=request.dpi,
        threads=request.threads,
    )


def _plot_series(series: MeshSeries, request: MeshSeriesPlot) -> Path:
    step = range(len(series))[-1 if request.output is None else request.output]
    time = series.times[step]
    title = f"step {step}" + ("" if time is None else f", time {time:g}")
    return _plot(series[step], request, title)


MESH = Kind(
    name="mesh",
    match_source=lambda paths: len(paths) == 1 and is_mesh_file(paths[0]),
    open=lambda resource: Mesh(resource.store),
    summarize=lambda resource: overview_of(Mesh(resource.store)),
    convert=convert_mesh,
    convert_request=MeshRequest,
    export=_export_mesh,
    steps=lambda mesh: Steps([mesh], []),
    compare=_compare_mesh,
    plot=_plot,
    plot_request=MeshPlot,
)
MESH_SERIES = Kind(
    name="mesh series",
    match_source=is_timed,
    open=lambda resource: MeshSeries(resource.store),
    summarize=lambda resource: overview_of_series(MeshSeries(resource.store)),
    convert=convert_steps,
    convert_request=MeshRequest,
    export=_export_series,
    steps=_steps_of_series,
    compare=_compare_series,
    plot=_plot_series,
    plot_request=MeshSeriesPlot,
)

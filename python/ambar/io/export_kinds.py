"""The kinds of stores that `ambar.export` writes: how each is known, and what writes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ambar import _core
from ambar._util.properties import cached_property
from ambar.kinds import request as converted
from ambar.kinds.request import Progress, refuse, shown
from ambar.store.error_bounds import ErrorBound
from ambar.store.store import Store

if TYPE_CHECKING:
    from ambar.collection.files.export import Export


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A call of `ambar.export`, whose arguments these are."""

    store: converted.Path
    target: converted.Path
    format: Literal["netcdf", "zarr"] | None = None
    datasets: Any = None
    processes: int | None = None
    amrex_hdf5: bool = False
    error_bound: ErrorBound | None = None
    without_particles: bool = False
    threads: int | None = None
    progress: Progress | Literal[True] | None = None

    @cached_property
    def opened(self) -> Store:
        """The store."""
        return Store(_core.Store(os.fspath(self.store)))


@dataclass(frozen=True)
class ExportKind:
    """A kind of stores."""

    name: str
    """What it is called."""
    recognises: Callable[[ExportRequest], bool]
    """Whether the store is of this kind, and the target what this kind becomes."""
    write: Callable[[ExportRequest], Export | None]
    """What writes the files."""
    refused: Mapping[str, str]
    """The options that mean nothing for it, and what is said of them; it takes all others."""

    def check(self, request: ExportRequest) -> None:
        """Raise InvalidError if an option was given that means nothing for this kind."""
        refuse(request, self.refused, os.fspath(request.store))


def export_kind_of(request: ExportRequest) -> ExportKind:
    """Return the kind of a store, the first of `KINDS` that recognises it."""
    return next(kind for kind in KINDS if kind.recognises(request))


def _is(kind: str, of: str | None = None) -> Callable[[ExportRequest], bool]:
    """Return what recognises stores by what they say of themselves."""

    def recognises(request: ExportRequest) -> bool:
        about = request.opened.ambar_attributes()
        return about.get("kind") == kind and (of is None or about.get("of") == of)

    return recognises


def _mesh_series(request: ExportRequest) -> None:
    from ambar.mesh.files.export import VTKHDF, export_collection_of_steps, export_steps
    from ambar.mesh.steps import steps_of

    steps = steps_of(request.store)
    with shown(request.progress, f"exporting {Path(request.store).name}") as report:
        if Path(request.target).suffix.lower() == VTKHDF:
            meshes = (mesh.read(threads=request.threads) for mesh in steps.meshes)
            export_steps(meshes, steps.times, request.target, report)
        else:
            export_collection_of_steps(
                request.store, steps.times, request.target, request.threads, report
            )


def _cells(request: ExportRequest) -> None:
    from ambar.mesh.files.export import export_steps
    from ambar.mesh.steps import cells_over_time

    meshes, times = cells_over_time(request.store, request.threads)
    with shown(request.progress, f"exporting {Path(request.store).name}") as report:
        export_steps(meshes, times, request.target, report)


def _becomes_vtkhdf(request: ExportRequest) -> bool:
    """Whether a store of cells is to become a file of VTK, and no plotfile."""
    about = request.opened.ambar_attributes()
    cells = about.get("kind") == "snapshot" or (about.get("kind"), about.get("of")) == (
        "series",
        None,
    )
    return cells and Path(request.target).suffix.lower() == ".vtkhdf"


def _collection(request: ExportRequest) -> Export:
    from ambar.collection.files.export import export_collection

    return export_collection(
        request.store,
        request.target,
        format=request.format or "netcdf",
        datasets=request.datasets,
        processes=request.processes,
        progress=request.progress,
    )


def _mesh(request: ExportRequest) -> None:
    from ambar.mesh.files.export import export_mesh

    export_mesh(request.store, request.target, request.threads)


def _plotfile(request: ExportRequest) -> None:
    with shown(request.progress, f"exporting {Path(request.store).name}") as report:
        _core.export_amrex(
            request.opened.core, "/", os.fspath(request.target), request.threads, report
        )


def _hdf5(request: ExportRequest) -> None:
    from ambar.formats.amrex.hdf5_export import export_hdf5

    with shown(request.progress, f"exporting {Path(request.store).name}") as report:
        export_hdf5(
            request.store,
            request.target,
            error_bound=request.error_bound,
            without_particles=request.without_particles,
            threads=request.threads,
            progress=report,
        )


_OF_DATASETS = ("format", "datasets", "processes")
_NO_DATASETS = dict.fromkeys(
    _OF_DATASETS, "{path} is no collection: format, datasets and processes are for those"
)
_EXACT = {
    option: f"{option} is for plotfiles in HDF5: give amrex_hdf5=True"
    for option in ("error_bound", "without_particles")
}
_PLAIN = _EXACT | _NO_DATASETS
KINDS = (
    ExportKind(
        "plotfile in HDF5",
        lambda request: request.amrex_hdf5,
        _hdf5,
        dict.fromkeys(_OF_DATASETS, "format, datasets and processes are for collections"),
    ),
    ExportKind("series of meshes", _is("series", "mesh"), _mesh_series, _PLAIN),
    ExportKind("collection", _is("collection"), _collection, _EXACT),
    ExportKind("mesh", _is("mesh"), _mesh, _PLAIN),
    ExportKind("cells for VTK", _becomes_vtkhdf, _cells, _PLAIN),
    # Of what is none either, the error says what it lacks.
    ExportKind("plotfile of AMReX", lambda _: True, _plotfile, _PLAIN),
)
"""All kinds, in the order in which they are asked."""

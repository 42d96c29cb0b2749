"""The kind of collections: stores, and sources in NetCDF files and Zarr stores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ambar import _core
from ambar._util.figures import save_figure
from ambar._util.foreign_files import EMPTY, is_empty_file
from ambar.collection.collection import Collection
from ambar.collection.files.sources import SUFFIXES, is_source
from ambar.collection.openers import collection_at
from ambar.collection.summary import overview_of
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import (
    Conversion,
    ConvertRequest,
    Export,
    ExportRequest,
    OnError,
    PlotRequest,
    as_list,
)
from ambar.kinds.request import Path as AnyPath
from ambar.store.cache import place_of

if TYPE_CHECKING:
    from ambar.comparison.operands import Operand


@dataclass(frozen=True, kw_only=True)
class CollectionRequest(ConvertRequest):
    """The options of `ambar.convert` for NetCDF files and Zarr stores."""

    fields: Iterable[str] | None = None
    ragged: Iterable[str] | None = None
    on_mismatch: Literal["family", "cast", "raise"] | None = None
    engine: str | None = None
    processes: int | None = None
    on_error: OnError = "stop"
    decode_times: bool = True


@dataclass(frozen=True, kw_only=True)
class CollectionExport(ExportRequest):
    """The options of `ambar.export` for a collection."""

    format: Literal["netcdf", "zarr"] = "netcdf"
    datasets: Any = None
    processes: int | None = None


def _open(resource: Resource, threads: int | None = None) -> Collection:
    key = place_of(resource.path, resource.storage_options)
    return collection_at(key, resource.store, threads)


def _check_recognized(paths: Sequence[AnyPath]) -> None:
    """Raise UnsupportedError, with the supported formats, if no reader accepts the only file.

    An empty file is a CorruptError.

    NetCDF files may have any name; xarray's engines recognize them by their first bytes.
    """
    from ambar.mesh.files.pyvista_readers import readable_suffixes

    place = Path(paths[0])
    if len(paths) != 1 or not place.is_file() or place.suffix.lower() in SUFFIXES:
        return
    if find_spec("xarray") is None:
        return  # the error then says how to install it
    if is_empty_file(place):
        raise _core.CorruptError(f"{place}: {EMPTY}")
    from xarray.backends.plugins import guess_engine

    try:
        guess_engine(place)
    except ValueError:
        with place.open("rb") as file:
            start = file.read(8)
        raise _core.UnsupportedError(
            f"{place}: no reader for the suffix {place.suffix!r} and a file that begins with "
            f"{start!r}; ambar converts outputs of RAMSES, plotfiles of AMReX, NetCDF and HDF5 "
            "files, Zarr stores, and what PyVista and meshio read: "
            f"{' '.join(sorted(readable_suffixes()))}"
        ) from None


def _convert(request: CollectionRequest) -> Conversion:
    from ambar.collection.files.ingest import ingest

    if request.engine is None:
        _check_recognized(request.paths)
    return ingest(
        request.paths,
        request.target,
        variables=as_list(request.fields),
        ragged=as_list(request.ragged),
        on_mismatch=request.on_mismatch,
        engine=request.engine,
        processes=request.processes,
        decode_times=request.decode_times,
        progress=request.progress,
        mode=request.mode,
        on_error=request.on_error,
        **request.writing,
    )


def _export(request: CollectionExport) -> Export:
    from ambar.collection.files.export import export_collection

    return export_collection(
        _open(Resource(request.store, request.opened, request.storage_options)),
        request.target,
        format=request.format,
        datasets=request.datasets,
        processes=request.processes,
        progress=request.progress,
    )


def _plot(resource: Resource, request: PlotRequest) -> Path:
    """Draw the range of a variable's values in each dataset."""
    from ambar.collection.drawing import draw_ranges, first_variable

    collection = _open(resource)
    variable = request.field or first_variable(collection)
    return save_figure(draw_ranges(collection, variable), request.target_of(variable))


def _compare(resource: Resource, output: int | None, threads: int | None) -> Operand:  # noqa: ARG001
    from ambar.comparison.collection_arrays import CollectionArrays

    return CollectionArrays(_open(resource, threads))


COLLECTION = Kind(
    name="collection",
    match_source=lambda paths: any(is_source(path) for path in paths),
    open=_open,
    summarize=lambda resource: overview_of(_open(resource)),
    convert=_convert,
    convert_request=CollectionRequest,
    export=_export,
    export_request=CollectionExport,
    compare=_compare,
    plot=_plot,
)

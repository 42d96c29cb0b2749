"""The kind of collections: stores, and sources in NetCDF files and Zarr stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ambar.collection.collection import Collection
from ambar.collection.files.sources import is_source
from ambar.collection.openers import collection_at
from ambar.collection.representation import overview_of
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import (
    Conversion,
    ConvertRequest,
    Export,
    ExportRequest,
    OnError,
    as_list,
)
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


def _open(resource: Resource) -> Collection:
    return collection_at(place_of(resource.path, resource.storage_options), resource.store)


def _convert(request: CollectionRequest) -> Conversion:
    from ambar.collection.files.ingest import ingest

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


def _compare(collection: Collection, _: int | None, threads: int | None) -> Operand:
    from ambar.comparison.collection_arrays import CollectionArrays

    return CollectionArrays(collection, threads)


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
)

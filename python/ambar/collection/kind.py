"""The kind of collections: stores, and sources in NetCDF files and Zarr stores."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ambar import _core
from ambar._util.progress import progress_function
from ambar.collection.collection import Collection
from ambar.collection.files.sources import is_source
from ambar.collection.openers import collection_at, open_collection
from ambar.collection.representation import overview_of
from ambar.collection.storage.settings import encoding_of
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import (
    Conversion,
    ConvertRequest,
    CopyRequest,
    Export,
    ExportRequest,
    Merge,
    MergeRequest,
    OnError,
    ViewRequest,
    as_list,
)
from ambar.kinds.targets import (
    copy_message,
    copying,
    merge_message,
    merged,
)
from ambar.parallel.cluster import Scheduler
from ambar.pictures.options import CollectionPlot
from ambar.store.cache import place_of
from ambar.store.copies.copier import Copier
from ambar.store.copies.merging import assign_owners, check_conflicts
from ambar.store.store import Store

if TYPE_CHECKING:
    from ambar.comparison.operands import Operand


@dataclass(frozen=True, kw_only=True)
class CollectionRequest(ConvertRequest):
    """The options of `ambar.convert` for NetCDF files and Zarr stores."""

    store_options = ("datasets",)

    fields: Iterable[str] | None = None
    ragged: Iterable[str] | None = None
    on_mismatch: Literal["family", "cast", "raise"] | None = None
    engine: str | None = None
    processes: int | None = None
    on_error: OnError = "stop"
    decode_times: bool = True
    scheduler: Scheduler | None = None


@dataclass(frozen=True, kw_only=True)
class CollectionExport(ExportRequest):
    """The options of `ambar.export` for a collection."""

    format: Literal["netcdf", "zarr"] = "netcdf"
    datasets: Any = None
    processes: int | None = None


@dataclass(frozen=True, kw_only=True)
class CollectionCopy(CopyRequest):
    """The options of `ambar.convert` for a store of a collection."""

    fields: Iterable[str] | None = None
    datasets: Any = None


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
        scheduler=request.scheduler,
        **request.writing,
    )


def _copy(request: CollectionCopy) -> Conversion | None:
    from ambar.collection.copies import copied_settings, copy_datasets

    begun = time.perf_counter()
    source = _opened(request.opened)
    existing = request.existing
    bounds = encoding_of(request.error_bound) or {}
    is_whole = request.fields is None and request.datasets is None and not bounds
    if is_whole and existing is None:
        with copying(request) as (writer, report):
            copier = Copier(request.opened, writer, request.new_profile, report)
            copier.add("/")
            copier.finish()
        return None
    known = set() if existing is None else set(_opened(existing).names)
    names = source.choose(request.datasets)
    if request.datasets is not None and not names:
        raise _core.InvalidError(
            f"{source.location}: expected datasets to copy, found none that match "
            f"{request.datasets!r:.200}; check the condition or the names"
        )
    new = [name for name in names if name not in known]
    if existing is None:
        options = copied_settings(source, bounds)
    else:  # its bounds cannot change
        options = {"encoding": bounds} if bounds else {}
    with (
        open_collection(request.target, request.mode, **options, **_writing(request)) as target,
        progress_function(request.progress, f"copying {len(new):,} datasets") as report,
    ):
        copy_datasets(
            source,
            target,
            new,
            fields=as_list(request.fields),
            bounds={name: encoding["error_bound"] for name, encoding in bounds.items()},
            profile=request.new_profile,
            report=report,
        )
        target.commit(copy_message(request))
    return Conversion(
        os.fspath(request.target),
        request.opened.usage()["total"] if new else 0,
        request.stored_bytes(),
        time.perf_counter() - begun,
        converted=new,
        skipped=[name for name in names if name in known],
    )


def _writing(request: CopyRequest) -> dict[str, Any]:
    return {name: value for name, value in request.writing.items() if name != "error_bound"}


def _opened(store: Store) -> Collection:
    return collection_at(place_of(store.location), store)


def _merge(request: MergeRequest) -> Merge:
    from ambar.collection.copies import copy_datasets, merged_settings

    sources = [_opened(store) for store in request.stores]
    existing = request.existing
    kept = [] if existing is None else _opened(existing).names
    owners = assign_owners(
        [(source.location, source.names) for source in sources], kept, request.on_conflict
    )
    check_conflicts(owners.conflicts, "names of datasets")
    options = merged_settings(sources) if existing is None else {}
    with (
        open_collection(
            request.target,
            request.mode,
            fsync=request.fsync,
            threads=request.threads,
            storage_options=request.storage_options,
            **options,
        ) as target,
        progress_function(request.progress, f"merging {len(sources)} collections") as report,
    ):
        if owners.replaced:
            target.remove(owners.replaced)
        for number, source in enumerate(sources):
            names = owners.of(number)
            copy_datasets(
                source, target, names, fields=None, bounds={}, profile=None, report=report
            )
        target.commit(merge_message(request))
    return merged(owners)


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


def _view(collection: Collection, request: ViewRequest) -> Any:
    from ambar.viewer.pages.collection import page

    return page(collection, request)


def _plot(collection: Collection, request: CollectionPlot) -> Path:
    from ambar.pictures.collection import write_picture

    return write_picture(collection, request)


COLLECTION = Kind(
    name="collection",
    match_source=lambda paths: any(is_source(path) for path in paths),
    open=_open,
    summarize=lambda resource: overview_of(_open(resource)),
    convert=_convert,
    convert_request=CollectionRequest,
    copy=_copy,
    copy_request=CollectionCopy,
    merge=_merge,
    export=_export,
    export_request=CollectionExport,
    compare=_compare,
    plot=_plot,
    plot_request=CollectionPlot,
    view=_view,
)

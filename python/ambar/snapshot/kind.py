"""The kinds of stores of outputs: one snapshot, or a series of them."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ambar import _core
from ambar._util.optional import require
from ambar._util.progress import part_of_progress, progress_function
from ambar._util.user_warnings import warn
from ambar.kinds.conversion_options import KEY as CONVERSION
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
from ambar.kinds.request import Path as AnyPath
from ambar.kinds.targets import copying, merged, merging
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.copies.series import (
    SeriesMerge,
    check_same_run,
    copy_beside_steps,
    copy_series,
    steps_in,
    steps_of_target,
)
from ambar.snapshot.copies.snapshot_copy import SnapshotSelection, copy_snapshot
from ambar.snapshot.pictures.options import CellsPlot, CellsView, SeriesPlot, with_code_units
from ambar.snapshot.regions import Levels, Region
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot, StoredSource
from ambar.store.copies.selection import Positions, select_steps
from ambar.store.error_bounds import listed_bounds, loose_bound, select_bounds
from ambar.store.kind import summarize_store
from ambar.store.store import Store
from ambar.store.urls import core_options, is_url
from ambar.store.writer import durability

if TYPE_CHECKING:
    from ambar.comparison.operands import Operand
    from ambar.mesh.steps import Steps


@dataclass(frozen=True, kw_only=True)
class SnapshotExport(ExportRequest):
    """The options of `ambar.export` for outputs, plotfiles and series of them."""

    format: Literal["openpmd"] | None = None
    """By default openPMD for what was converted from it, unless the target ends in ``.vtkhdf``."""


@dataclass(frozen=True, kw_only=True)
class SeriesExport(SnapshotExport):
    """The options of `ambar.export` for a series of outputs."""

    output: int | None = None


FileCounts: TypeAlias = dict[str, dict[str, int]]
"""The number and the bytes of files, by kind."""


def count_files(path: Path, file_kind: Callable[[Path], str]) -> FileCounts:
    """Return the number and bytes of a file, or of the files in a folder, by their kind."""
    found: FileCounts = {}
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            entry = found.setdefault(file_kind(file), {"files": 0, "bytes": 0})
            entry["files"] += 1
            entry["bytes"] += file.stat().st_size
    return found


def summarize_run(snapshot: Snapshot, kind: str, files: FileCounts) -> dict[str, Any]:
    """Return the summary of an output and its files."""
    values = dataclasses.asdict(snapshot.info)
    values.pop("namelist", None)
    return {
        "path": snapshot.location,
        "kind": kind,
        "bytes": sum(entry["bytes"] for entry in files.values()),
        "info": values,
        "components": snapshot.components,
        "missing": snapshot.missing,
        "files": files,
    }


def _steps(snapshot: Snapshot) -> Steps:
    from ambar.mesh.mesh import AmrMesh
    from ambar.mesh.steps import Steps

    return Steps([AmrMesh(snapshot)], [])


def _steps_of_series(series: Series) -> Steps:
    from ambar.mesh.mesh import AmrMesh
    from ambar.mesh.steps import Steps

    return Steps([AmrMesh(snapshot) for snapshot in series], series.times.tolist())


def _compare(snapshot: Snapshot, _: int | None, threads: int | None) -> Operand:
    from ambar.comparison.operands import Cells

    return Cells(snapshot, threads)


def _compare_series(series: Series, output: int | None, threads: int | None) -> Operand:
    if output is None and len(series) != 1:
        raise _core.InvalidError(
            f"{series.location} is a series of {len(series)} outputs; choose one, for example "
            f"output={series.outputs[0]}"
        )
    return _compare(series[0] if output is None else series.output(output), None, threads)


def _plot(opened: Snapshot | Series, request: CellsPlot) -> Path:
    """Write a picture, a movie or a FITS file; matplotlib is imported here."""
    for module in ("matplotlib", "xarray"):
        require(module, purpose="ambar plot", install="ambar[plot]")
    from ambar.snapshot.pictures.drawing import write_picture

    return write_picture(opened, request)


def _view(opened: Any, request: ViewRequest) -> Any:
    from ambar.viewer.pages.cells.page import page

    # `Snapshot.view` has a request without options.
    if isinstance(request, CellsView) and request.code_units is not None:
        opened = with_code_units(opened, request.code_units)
        if request.against is not None:
            against = with_code_units(request.against, request.code_units)
            request = dataclasses.replace(request, against=against)
    return page(opened, request)


@dataclass(frozen=True, kw_only=True)
class SnapshotRequest(CopyRequest):
    """The options of `ambar.convert` for a store of a snapshot."""

    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    levels: Levels | None = None
    region: Region | None = None

    @property
    def selection(self) -> SnapshotSelection:
        """The part to copy, and how it is encoded."""
        return SnapshotSelection(
            components=as_list(self.components),
            fields=as_list(self.fields),
            levels=self.levels,
            region=self.region,
            profile=self.new_profile,
            error_bound=self.error_bound,
        )


@dataclass(frozen=True, kw_only=True)
class SeriesRequest(SnapshotRequest):
    """The options of `ambar.convert` for a store of a series of outputs."""

    steps: Positions = None


def scratch_folder(target: AnyPath) -> Path:
    """Return the folder for temporary files: that of the target, unless it is a URL."""
    return Path(gettempdir()) if is_url(target) else Path(target).absolute().parent


def _copy_snapshot(request: SnapshotRequest) -> None:
    request.refuse_append()
    folder = scratch_folder(request.target)
    with copying(request) as (writer, report):
        copy_snapshot(request.opened, "", writer, "", request.selection, folder, report)
    warn_of_loose_bounds(request, listed_bounds(request.error_bound))


def _copy_series(request: SeriesRequest) -> Conversion:
    begun = time.perf_counter()
    store, existing = request.opened, request.existing
    steps = select_steps(steps_in(store), request.steps, store.location)
    known = set() if existing is None else set(steps_of_target(existing))
    new = [name for name in steps if name not in known]
    if existing is not None:
        check_same_run([(existing, next(iter(known), None)), (store, next(iter(steps), None))])
    folder = scratch_folder(request.target)
    with copying(request) as (writer, report):
        copy_series(store, writer, new, request.selection, folder, report)
        if existing is None:
            copy_beside_steps(store, writer)
            attributes = store._attributes("")
            if request.selection != SnapshotSelection():
                attributes["ambar"].pop(CONVERSION, None)
            writer._create_group("", attributes)
    warn_of_loose_bounds(request, listed_bounds(request.error_bound))
    return Conversion(
        os.fspath(request.target),
        store.usage()["total"] if new else 0,
        request.stored_bytes(),
        time.perf_counter() - begun,
        converted=new,
        skipped=[name for name in steps if name in known],
    )


def _merge(request: MergeRequest) -> Merge:
    existing = request.existing
    plan = SeriesMerge(request.stores, existing, request.on_conflict)
    with merging(request) as (writer, report):
        plan.write(writer, report)
    return merged(plan.owners)


def _export_snapshot(request: SnapshotExport) -> Export | None:
    return _export(request, lambda: _steps(_stored(request.opened, "/")), ["/"])


def _export_series(request: SeriesExport) -> Export | None:
    series = Series(request.opened)
    if request.output is not None:
        path = series.path_of(request.output)
        return _export(request, lambda: _steps(_stored(request.opened, path)), [path])
    return _export(request, lambda: _steps_of_series(series), series._groups, is_series=True)


def _stored(store: Store, path: str) -> Snapshot:
    return Snapshot(StoredSource(store, path))


def _export(
    request: SnapshotExport,
    steps: Callable[[], Steps],
    groups: Sequence[str],
    *,
    is_series: bool = False,
) -> Export | None:
    """Write a plotfile, a folder of them, files of openPMD, or AMR data for VTK."""
    target = request.target
    if request.format not in (None, "openpmd"):
        raise _core.InvalidError(
            f"{request.store}: invalid format {request.format!r}; must be 'openpmd', or left out"
        )
    suffix = target.suffix.lower()
    is_vtk = request.format is None and suffix == ".vtkhdf"
    if suffix.startswith(".vt") and not is_vtk:
        raise _core.UnsupportedError(
            f"{target.name}: expected the suffix .vtkhdf for VTK's AMR data, or the name of a "
            f"folder, found the suffix {suffix}; choose another name"
        )
    if request.format or (not is_vtk and _is_openpmd(request.opened, groups)):
        from ambar.formats.openpmd.export import export_openpmd

        export_openpmd(request, groups)
        return None
    with progress_function(request.progress, f"exporting {Path(request.store).name}") as report:
        if is_vtk:
            from ambar.mesh.files.export import export_amr

            export_amr(request, steps(), report)
            return None
        for group in groups:
            _check_plotfile(request.opened, group)
        places = [target]
        if is_series:
            places = [target / name for name in _plotfile_names(request.opened, groups)]
            target.mkdir()
        for done, (group, place) in enumerate(zip(groups, places, strict=True)):
            part = report and part_of_progress(report, done, len(groups))
            _core.export_amrex(request.opened._core, group, os.fspath(place), request.threads, part)
    if not any(_source_name(request.opened, group).endswith(".h5") for group in groups):
        return None
    left_out = {"the layout in HDF5": "plotfiles are written in AMReX's native format"}
    return Export("", [], 0.0, left_out=left_out)


def _check_plotfile(store: Store, path: str) -> None:
    """Raise UnsupportedError for cells in patches whose code has no plotfiles."""
    info = Snapshot(StoredSource(store, path)).info
    if isinstance(info, CodeInfo):
        raise _core.UnsupportedError(
            f"{store.location} {path}: expected an output of AMReX for a plotfile, found one of "
            f"{info.code!r}; export its cells to a file with the suffix .vtkhdf"
        )


def _source_name(store: Store, path: str) -> str:
    source = store._ambar_attributes(path).get("source")
    return str((source.get("name") if isinstance(source, dict) else None) or "")


def _plotfile_name(store: Store, path: str) -> str:
    """Return the name of the plotfile that was converted to the step at `path`."""
    name = (_source_name(store, path) or path.replace("/output_", "plt")).removesuffix(".h5")
    if name in ("", ".", "..") or Path(name).name != name or "\0" in name:
        raise _core.CorruptError(
            f"{store.location} {path}: expected the name of a folder as the name of the plotfile, "
            f"found {name!r}; restore the file from a copy"
        )
    return name


def _plotfile_names(store: Store, groups: Sequence[str]) -> list[str]:
    """Return the names of the plotfiles of a series; raises ValueError if two are equal."""
    names: dict[str, str] = {}
    for group in groups:
        name = _plotfile_name(store, group)
        if name in names:
            raise _core.InvalidError(
                f"{store.location}: expected a name for each plotfile, found {name!r} in "
                f"{names[name]} and {group}; export them one by one, with output="
            )
        names[name] = group
    return list(names)


def _is_openpmd(store: Store, groups: Sequence[str]) -> bool:
    """Whether the first of the snapshots was converted from openPMD."""
    source = store._ambar_attributes(groups[0]).get("source") if groups else None
    return isinstance(source, dict) and source.get("format") == "openpmd"


def kind_of_snapshots(open_snapshot: Callable[[Resource], Snapshot], **fields: Any) -> Kind:
    """Return a kind of stores or files that contain one output."""
    return Kind(
        open=open_snapshot,
        steps=_steps,
        compare=_compare,
        plot=_plot,
        plot_request=SeriesPlot,
        view=_view,
        view_request=CellsView,
        **fields,
    )


SNAPSHOT = kind_of_snapshots(
    lambda resource: Snapshot(StoredSource(resource.store, "/")),
    name="snapshot",
    summarize=summarize_store,
    copy=_copy_snapshot,
    copy_request=SnapshotRequest,
    merge=_merge,
    export=_export_snapshot,
    export_request=SnapshotExport,
)
SERIES = Kind(
    name="series",
    open=lambda resource: Series(resource.store),
    summarize=summarize_store,
    copy=_copy_series,
    copy_request=SeriesRequest,
    merge=_merge,
    export=_export_series,
    export_request=SeriesExport,
    steps=_steps_of_series,
    compare=_compare_series,
    plot=_plot,
    plot_request=SeriesPlot,
    view=_view,
    view_request=CellsView,
)


def warn_of_loose_bounds(request: ConvertRequest, bounds: Sequence[tuple[str, str]]) -> None:
    """Warn of bounds "of range" above the median magnitude of a field, and of boxes outside."""
    _warn_of_boxes(request, bounds)
    if not any("of range" in bound for _, bound in bounds):
        return
    store = request.written()
    found: dict[str, str] = {}
    for path in store.groups:
        own = store._ambar_attributes(path)
        for field, median in own.get("medians", {}).items():
            given, bound = own["requested_bounds"].get(field, "0"), own["error_bounds"][field]
            if message := loose_bound(field, given, bound, median):
                found.setdefault(field, message)
    for message in found.values():
        warn(message)


def _warn_of_boxes(request: ConvertRequest, bounds: Sequence[tuple[str, str]]) -> None:
    """Warn of bounds of boxes that do not overlap the domain."""
    boxes = [(target, bound) for target, bound in bounds if "[" in target]
    if not boxes:
        return
    store = request.written()
    series = Series(store) if is_series(store) else None
    info = (series[-1] if series else Snapshot(StoredSource(store, "/"))).info
    upper = tuple(start + size for start, size in zip(info.lower, info.box_size, strict=True))
    for target, bound in boxes:
        name = target.partition("@")[0].replace("*", "")
        for part in select_bounds([(target, bound)], [name]) or ():
            sides = zip(part.region or (), info.lower, upper, strict=False)
            if any(high < low or start > end for (start, high), low, end in sides):
                warn(
                    f"the box of the error bound {target!r} is outside of the domain, so that the "
                    f"bound applies to no cell; boxes of bounds are in code coordinates, here from "
                    f"{tuple(info.lower)} to {upper}"
                )


def output_name(number: int) -> str:
    """Return the name of the group of an output in a series."""
    return f"output_{number:05}"


def is_series(store: Store | None) -> bool:
    """Return whether a store exists and is a series of outputs."""
    if store is None:
        return False
    about = store._ambar_attributes()
    return about.get("kind") == "series" and "of" not in about


def check_series(request: ConvertRequest, code: str, ndim: int | None = None) -> None:
    """Check the target of a conversion with mode "a" that becomes a series of a code's outputs.

    Raises
    ------
    ValueError
        If it is a store of another kind, of another code, or of another number of dimensions.
    """
    target, store = os.fspath(request.target), request.existing
    if store is None:
        return
    if not is_series(store):
        kind = store._ambar_attributes().get("kind", "arrays")
        raise _core.InvalidError(
            f'{target}: expected a series of outputs for mode="a", found a store of the kind '
            f'{kind!r}; choose another name, or replace the store with mode="w"'
        )
    series = Series(store)
    if not len(series):
        return
    source = store._ambar_attributes(series._groups[0]).get("source")
    found = source.get("format") if isinstance(source, dict) else None
    if found != code:
        raise _core.InvalidError(
            f"{target}: expected a series of outputs of {code}, found one of {found}; choose "
            "another name"
        )
    if ndim is not None and series[0].info.ndim != ndim:
        raise _core.InvalidError(
            f"{target}: expected a series of outputs of {ndim} dimensions, found one of "
            f"{series[0].info.ndim}; choose another name"
        )


def series_options(
    request: ConvertRequest, on_error: OnError, options: Mapping[str, object]
) -> dict[str, object]:
    """Return the options of the functions of the core that write a store of outputs.

    `options` are those that a series stores, of `stored_options`.
    """
    return {
        "durability": durability(request.fsync),
        "overwrite": request.mode == "w",
        "storage_options": core_options(request.storage_options) or {},
        "on_error": on_error,
        "settings": options,
    }

"""The kind of RAMSES outputs: opened, converted and summarized."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.output_files import published
from ambar._util.progress import progress_function
from ambar._util.text import plural, suggestion
from ambar.formats.gadget.files import Reader
from ambar.formats.halos import HaloTable, RunScales, in_code_units, read_halos, write_halos
from ambar.formats.particle_tables import POSITIONS
from ambar.formats.ramses.source import RamsesSource, is_ramses, outputs
from ambar.kinds.conversion_options import check_options, stored_options
from ambar.kinds.registry import Resource
from ambar.kinds.request import Conversion, ConvertRequest, OnError, as_list, as_paths
from ambar.kinds.request import Path as AnyPath
from ambar.parallel.cluster import Scheduler
from ambar.snapshot.field_names import resolve, resolve_all
from ambar.snapshot.kind import (
    FileCounts,
    check_series,
    count_files,
    is_series,
    kind_of_snapshots,
    output_name,
    series_options,
    summarize_run,
    warn_of_loose_bounds,
)
from ambar.snapshot.loading import has_cells
from ambar.snapshot.pictures.run_folder import RunFolder
from ambar.snapshot.regions import check_max_level, checked_levels
from ambar.snapshot.run_info import run_difference
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot
from ambar.store.error_bounds import listed_bounds
from ambar.store.store import Store
from ambar.store.urls import is_url
from ambar.store.writer import create

_FILE = re.compile(r"([a-z]+)_\d+\.(?:out|txt)\d+|(sink)_\d+\.(?:csv|out)")


@dataclass(frozen=True, kw_only=True)
class RamsesRequest(ConvertRequest):
    """The options of `ambar.convert` for RAMSES outputs."""

    store_options = ("region", "steps")

    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    levels: tuple[int, int] | None = None
    max_level: int | None = None
    on_error: OnError = "stop"
    scheduler: Scheduler | None = None
    halos: AnyPath | Sequence[AnyPath] | None = None


def _match(paths: Sequence[AnyPath]) -> bool:
    return len(paths) == 1 and bool(outputs(paths[0]))


def _open(resource: Resource) -> Snapshot:
    path = resource.location
    if not is_ramses(path):
        raise _core.InvalidError(
            f"{path} is a folder of {plural(len(outputs(path)), 'RAMSES output')}: use one, for "
            f"example {str(outputs(path)[0])!r}, or convert all to a series: "
            f"ambar.convert({path!r}, 'run.ambar')"
        )
    return Snapshot(RamsesSource(path))


def _open_run(resource: Resource) -> RunFolder | None:
    path = resource.location
    if is_ramses(path):
        return None
    return RunFolder(path, outputs(path), lambda output: Snapshot(RamsesSource(str(output))))


def _outputs(paths: Sequence[AnyPath]) -> list[Path]:
    (path,) = paths
    return [] if is_ramses(path) else [Path(output) for output in outputs(path)]


def _summarize(resource: Resource) -> dict[str, Any]:
    path = Path(resource.location)
    files = files_of(path if path.is_dir() else path.parent)
    return summarize_run(_open(resource), "ramses", files)


def files_of(folder: Path) -> FileCounts:
    """Return number and bytes of the files of an output by kind (amr, hydro, ..., other)."""
    return count_files(folder, _file_kind)


def _file_kind(file: Path) -> str:
    match = _FILE.fullmatch(file.name)
    return (match[1] or match[2]) if match else "other"


def _convert(request: RamsesRequest) -> Conversion:
    bounds = listed_bounds(request.error_bound)
    (path,) = request.paths
    if is_ramses(path):
        request.refuse_append()
    else:
        check_series(request, "ramses")
        _check_run(request, path)
    _check_levels(request, path)
    left_out = {} if is_ramses(path) else _other_sources(Path(path))
    halos = _halos(request, path, left_out)
    names, known = as_list(request.fields), _known(path)
    names = None if names is None else resolve_all(names, known)
    for name in names or ():
        if known and name not in known:
            raise _core.NotFoundError(
                f"{os.fspath(path)}: field {name!r} does not exist; "
                f"{suggestion(name, dict.fromkeys(known))}"
            )
    components, levels = as_list(request.components), checked_levels(request.levels)
    bounds = [(_without_alias(target, known), bound) for target, bound in bounds]
    settings = stored_options(
        request,
        bounds,
        components=components,
        fields=names,
        levels=levels,
        max_level=request.max_level,
    )
    if not is_ramses(path):
        check_options(request, settings)
    with (
        _target(request, halos) as target,
        progress_function(request.progress, f"converting {Path(path).name}") as progress,
    ):
        report = _core.convert_ramses(
            os.fspath(path),
            os.fspath(target),
            options={
                "components": components,
                "fields": names,
                "levels": levels,
                "max_level": request.max_level,
                "profile": request.profile,
                "error_bounds": bounds,
            },
            store=series_options(request, request.on_error, settings),
            threads=request.threads,
            progress=progress,
        )
        if halos:
            _add_halos(request, Path(target), halos)
            report["stored_bytes"] = Path(target).stat().st_size
    warn_of_loose_bounds(request, bounds)
    report["left_out"] |= left_out
    report["left_out"] |= _without_cells(request, [*report["converted"], *report["replaced"]])
    return Conversion(target=os.fspath(request.target), **report)


@contextmanager
def _target(request: RamsesRequest, halos: Sequence[HaloTable]) -> Iterator[AnyPath]:
    """Yield the path to write: with halos, which are another commit, one that is moved at the end.

    Without them, the conversion publishes its target itself.
    """
    if not halos:
        yield request.target
        return
    if is_url(request.target):
        raise _core.UnsupportedError(
            f"{os.fspath(request.target)}: expected a path, as halos are added to a store that is "
            "written, found a URL; convert to a local file, and then convert the "
            "store to the URL"
        )
    with published(Path(request.target), replace=request.mode == "w") as scratch:
        yield scratch


def _halos(request: RamsesRequest, path: AnyPath, left_out: dict[str, str]) -> list[HaloTable]:
    """Return the catalogues of an output, before it is converted; adds to `left_out`."""
    paths = as_paths(request.halos)
    if not paths:
        return []
    if not is_ramses(path):
        raise _core.InvalidError(
            f"{path}: halos belong to one output, found a folder of outputs; convert the outputs "
            "to stores of their own"
        )
    info = RamsesSource(os.fspath(path)).info
    if info.ndim != len(POSITIONS):
        raise _core.UnsupportedError(
            f"{path}: halos have three dimensions, the output has {info.ndim}; leave out halos"
        )
    units = info.units
    aexp = info.aexp if units.cosmological else None
    scales = RunScales(
        time=aexp or info.time,
        aexp=aexp,
        unit_l=units.unit_l,
        unit_m=units.unit_m,
        unit_v=units.unit_v,
        boxlen=info.boxlen,
    )
    tables = read_halos(paths, scales, Reader(None, lambda _: None), left_out)
    # The run information of RAMSES has no units of single columns.
    return [in_code_units(table, scales) for table in tables]


def _add_halos(request: RamsesRequest, target: Path, halos: Sequence[HaloTable]) -> None:
    """Add catalogues to the store of an output, as another commit."""
    info = Store._open(target)._ambar_attributes()["info"]
    side = float(info["boxlen"])
    with create(
        target, "a", profile=request.profile, threads=request.threads, fsync=request.fsync
    ) as writer:
        components = write_halos(writer, halos, [0.0] * 3, [side] * 3)
        about = writer._core.attributes("/")["ambar"]
        about["components"] |= components
        writer._create_group("/", {**writer._core.attributes("/"), "ambar": about})


def _other_sources(folder: Path) -> dict[str, str]:
    """Return NetCDF files and Zarr stores in a folder of outputs, which the series lacks."""
    from ambar.collection.files.sources import SUFFIXES

    why = "it is not an output of RAMSES; convert it to a store of its own"
    names = sorted(path.name for path in folder.iterdir())
    return {name: why for name in names if Path(name).suffix.lower() in SUFFIXES}


def _check_run(request: RamsesRequest, path: AnyPath) -> None:
    """Raise ValueError if an output is of another run than the series that it is added to."""
    store = request.existing
    if store is None or not len(series := Series(store)):
        return
    expected = series[-1].info
    for output in outputs(path):
        try:
            info = RamsesSource(str(output)).info
        except (_core.AmbarError, OSError):
            continue  # the conversion reports it
        if found := run_difference(expected, info):
            raise _core.InvalidError(
                f"{output}: expected {found[0]} like the outputs in {os.fspath(request.target)}, "
                f"found {found[1]}; convert outputs of another run to a store of their own"
            )


def _check_levels(request: RamsesRequest, path: AnyPath) -> None:
    """Raise ValueError if no output has leaf cells of the levels that are to be converted."""
    levels = checked_levels(request.levels)
    check_max_level(request.max_level)
    if levels is None or is_series(request.existing):
        return
    # A task on a cluster has one output of a run.
    if not is_ramses(path) and len(outputs(path)) == 1:
        return
    found: set[int] = set()
    for output in outputs(path):
        try:
            source = RamsesSource(os.fspath(path) if is_ramses(path) else str(output))
            if not has_cells(source.components):
                return
            found |= {level for level, count in source.amr().cells_per_level if count}
        except (_core.AmbarError, OSError):
            if is_ramses(path):
                raise
            continue  # the conversion reports it
        # Refined cells of the maximum level become leaves.
        last = max(found) if request.max_level is None else request.max_level
        if any(levels[0] <= min(level, last) <= levels[1] for level in found):
            return
    if found:
        owner = "the output has" if is_ramses(path) else "the outputs have"
        raise _core.InvalidError(
            f"{os.fspath(path)}: no leaf cells of the levels {levels}; {owner} the levels "
            f"{min(found)} to {max(found)}"
        )


def _without_cells(request: RamsesRequest, names: Iterable[str]) -> dict[str, str]:
    """Return the outputs of a series that have no cells of the chosen levels, and the reason."""
    if request.levels is None or not is_series(store := request.written()):
        return {}
    series = Series(store)
    numbers = [int(name.removeprefix("output_")) for name in names]
    written = {number: series.output(number) for number in numbers}
    return {
        f"cells of {output_name(number)}": f"it has no leaf cells of the levels {request.levels}"
        for number, snapshot in written.items()
        if has_cells(snapshot.components) and not len(snapshot.amr)
    }


def _without_alias(target: str, known: Sequence[str]) -> str:
    """Return the target of an error bound with an alias such as "rho" resolved."""
    name, at, part = target.partition("@")
    owner, slash, field = name.strip().rpartition("/")
    return f"{owner}{slash}{resolve(field, known)}{at}{part}"


def _known(path: AnyPath) -> list[str]:
    """Return the field names of an output, or of the first readable output of a run."""
    for output in outputs(path):
        try:
            found = _core.Ramses(str(output)).components
        except (_core.AmbarError, OSError):
            continue  # the conversion reports it
        if names := [name for component in found for name in component["fields"]]:
            return names
    return []


RAMSES = kind_of_snapshots(
    _open,
    name="RAMSES output",
    match_source=_match,
    open_run=_open_run,
    summarize=_summarize,
    convert=_convert,
    convert_request=RamsesRequest,
    outputs=_outputs,
)

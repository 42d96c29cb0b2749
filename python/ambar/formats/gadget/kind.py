"""The kind of snapshots of particles in HDF5, of Gadget, AREPO, GIZMO and SWIFT: converted."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.progress import Progress, part_of_progress, progress_function
from ambar._util.resources import usable_cores
from ambar._util.text import suggestion
from ambar.formats.gadget.columns import names_of_columns, unit_of
from ambar.formats.gadget.files import (
    Dataset,
    Reader,
    attributes_of,
    collect_datasets,
    find_files,
    has_header,
    not_stored,
    open_hdf5_snapshot,
    other_datasets,
    own_nodes,
)
from ambar.formats.gadget.header import SNAPSHOT, Header, read_header
from ambar.formats.gadget.run import (
    RunSnapshot,
    expanded,
    fingerprint_of,
    has_snapshots,
    numbered_snapshot,
    run_of,
)
from ambar.formats.halos import SUBFIND, HaloTable, RunScales, read_halos, write_halos
from ambar.formats.particle_tables import (
    POSITIONS,
    TableWriter,
    names_species,
    upper_faces,
    write_sorted,
)
from ambar.kinds.conversion_options import KEY as OPTIONS
from ambar.kinds.conversion_options import check_options, stored_options
from ambar.kinds.failures import Failures
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ConvertRequest, OnError, as_list, as_paths
from ambar.kinds.request import Path as AnyPath
from ambar.parallel.workers import Workers
from ambar.snapshot.code_info import CodeInfo, stated_units
from ambar.snapshot.copies.series import steps_of_target
from ambar.snapshot.field_names import resolve
from ambar.snapshot.kind import check_series, is_series, output_name, warn_of_loose_bounds
from ambar.snapshot.loading import HALOS, SPECIES
from ambar.snapshot.physics.unit_expressions import Unit
from ambar.store.error_bounds import listed_bounds, select_bounds
from ambar.store.urls import is_object
from ambar.store.writer import Writer

_GADGET = ("gas", "dark_matter", "disk", "bulge", "stars", "black_holes")
_NAMES = {
    "swift": (
        "gas",
        "dark_matter",
        "dark_matter_background",
        "sinks",
        "stars",
        "black_holes",
        "neutrinos",
    ),
    "arepo": ("gas", "dark_matter", "disk", "tracers", "stars", "black_holes"),
}
"""Names of types of particles, by code; of other codes `_GADGET`."""
_COORDINATES = "Coordinates"
_MASSES = "Masses"
_OTHER = "it is not a dataset of particles"
_FIRST = ("ParticleIDs", _MASSES, "Velocities")
"""Datasets whose columns follow the positions."""


@dataclass(frozen=True, kw_only=True)
class GadgetRequest(ConvertRequest):
    """The options of `ambar.convert` for snapshots of particles."""

    store_options = ("region", "steps")

    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    halos: AnyPath | Sequence[AnyPath] | None = None
    on_error: OnError = "stop"


@dataclass(frozen=True)
class _Species:
    """A type of particles, and its datasets."""

    name: str
    rows: int
    positions: Dataset
    others: tuple[Dataset, ...]
    names: Mapping[str, Sequence[str]]
    """Names of the columns of the other datasets, by name of the dataset."""
    mass: float
    """The mass of each particle; 0 if masses are among the datasets."""

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in order."""
        own = [name for dataset in self.others for name in self.names[dataset.name]]
        return [*POSITIONS, *own, *([_MASSES] if self.mass else [])]


def _matches(paths: Sequence[AnyPath]) -> bool:
    return has_header(paths[0], SUBFIND.rows_attribute) or has_snapshots(paths)


def _convert(request: GadgetRequest) -> Conversion:
    if has_header(request.paths[0], SUBFIND.rows_attribute):
        raise _core.InvalidError(
            f"{os.fspath(request.paths[0])}: expected a snapshot, found a catalogue of halos; "
            "convert the snapshot, and give the catalogue with halos"
        )
    request = dataclasses.replace(request, paths=list[AnyPath](expanded(request.paths)))
    run = run_of(request.paths)
    if run is None and is_series(request.existing):
        run = [numbered_snapshot(request.paths)]
    return _convert_one(request) if run is None else _convert_run(request, run)


def _convert_one(request: GadgetRequest) -> Conversion:
    """Convert a snapshot to a store of its own."""
    request.refuse_append()
    start = time.perf_counter()
    conversion = _SnapshotConversion(request, find_files(request.paths, SNAPSHOT))
    with (
        progress_function(request.progress, f"converting {conversion.name}") as progress,
        request.create("w" if request.mode == "w" else "w-") as writer,
    ):
        conversion.write(writer, "", {}, progress)
    warn_of_loose_bounds(request, conversion.bounds)
    return Conversion(
        target=os.fspath(request.target),
        source_bytes=conversion.source_bytes,
        stored_bytes=request.stored_bytes(),
        seconds=time.perf_counter() - start,
        converted=[os.fspath(request.paths[0])],
        left_out=conversion.left_out,
    )


def _convert_run(request: GadgetRequest, run: Sequence[RunSnapshot]) -> Conversion:
    """Convert the snapshots of a run to a series; each is committed when it is converted."""
    start = time.perf_counter()
    if request.halos is not None:
        raise _core.InvalidError(
            f"{request.name}: halos belong to one snapshot, found a run; convert the snapshots to "
            "stores of their own"
        )
    if request.on_error == "skip" and is_object(request.target):
        raise _core.UnsupportedError(
            f'{os.fspath(request.target)}: on_error="skip" does not apply to an object, which is '
            'written in one upload; write to a URL that ends with "/", or to a local file'
        )
    failures = Failures(request.on_error)
    bounds = listed_bounds(request.error_bound)
    options = stored_options(
        request,
        bounds,
        components=as_list(request.components),
        fields=as_list(request.fields),
    )
    check_options(request, options)
    stored = _stored_sources(request)
    converted: list[str] = []
    skipped: list[str] = []
    replaced: list[str] = []
    left_out: dict[str, str] = {}
    source_bytes = 0
    with (
        _RunWriter(request) as run_writer,
        progress_function(request.progress, f"converting {request.name}") as report,
    ):
        for index, snapshot in enumerate(run):
            try:
                paths = find_files([snapshot.path], SNAPSHOT)
                source = {"name": snapshot.name, "fingerprint": fingerprint_of(paths)}
                known = stored.get(output_name(snapshot.number))
                _check_name(snapshot, known)
                if known is not None and known.get("fingerprint") == source["fingerprint"]:
                    skipped.append(snapshot.name)
                    continue
                conversion = _SnapshotConversion(request, paths, is_of_run=True)
                check_series(request, conversion.header.code)
                progress = report and part_of_progress(report, index, len(run))
                writer = run_writer.open()
                if known is not None:
                    writer.remove(output_name(snapshot.number))
                if not (stored or converted):
                    own = {"version": 1, "kind": "series", OPTIONS: options}
                    writer._create_group("/", {"ambar": own})
                conversion.write(writer, output_name(snapshot.number), source, progress)
                run_writer.commit(snapshot.name)
            except (_core.AmbarError, OSError) as error:
                run_writer.discard()
                failures.add(snapshot.name, error)
                continue
            (converted if known is None else replaced).append(snapshot.name)
            source_bytes += conversion.source_bytes
            left_out |= conversion.left_out
    if failures.first is not None and not (converted or skipped or replaced):
        raise failures.first
    warn_of_loose_bounds(request, bounds)
    return Conversion(
        os.fspath(request.target),
        source_bytes,
        request.stored_bytes(),
        time.perf_counter() - start,
        converted,
        skipped,
        replaced,
        failures.messages,
        left_out,
    )


def _check_name(snapshot: RunSnapshot, known: Mapping[str, Any] | None) -> None:
    """Raise ValueError if the output of a series with this number is of another name."""
    if known is not None and known.get("name") != snapshot.name:
        raise _core.InvalidError(
            f"{snapshot.path}: expected a snapshot of the run in the series, whose output "
            f"{snapshot.number} is {known.get('name')!r}, found {snapshot.name!r}; convert it to "
            "another store"
        )


class _RunWriter:
    """The writer of a run: after an error, the store is opened again at the last commit."""

    def __init__(self, request: GadgetRequest) -> None:
        self._request = request
        self._mode = request.mode
        self._writer: Writer | None = None

    def __enter__(self) -> _RunWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.discard()
        elif self._writer is not None:
            self._writer.close()

    def open(self) -> Writer:
        """Return the writer."""
        if self._writer is None:
            self._writer = self._request.create(self._mode)
        return self._writer

    def commit(self, message: str) -> None:
        """Commit the changes."""
        self.open().commit(message)
        self._mode = "a"

    def discard(self) -> None:
        """Discard the changes since the last commit; of an upload, everything."""
        if self._writer is not None:
            self._writer._abort()
            self._writer = None


def _stored_sources(request: GadgetRequest) -> dict[str, dict[str, Any]]:
    """Return the attribute `source` of the outputs of the target, for mode "a"."""
    store = request.existing
    if store is None:
        return {}
    return {
        group: store._ambar_attributes(group).get("source") or {}
        for group in steps_of_target(store)
    }


class _SnapshotConversion:
    """The conversion of a snapshot to a group of a store.

    Some snapshots of a run have no particles of a type, such as stars.
    """

    def __init__(
        self, request: GadgetRequest, paths: Sequence[Path], *, is_of_run: bool = False
    ) -> None:
        self._request = request
        self.name = paths[0].name
        self.bounds = listed_bounds(request.error_bound)
        self.header = read_header(paths)
        self.source_bytes = sum(path.stat().st_size for path in paths)
        types = [f"PartType{number}" for number in range(self.header.counts.shape[1])]
        self.left_out = dict.fromkeys(other_datasets(paths[0], types), _OTHER)
        self._species = _all_species(self.header, self.left_out)
        names = _NAMES.get(self.header.code, _GADGET) if is_of_run else ()
        absent = set(names).difference(one.name for one in self._species)
        self._wanted = _wanted(self._species, self.header, request, absent)
        bounds = [rule for rule in self.bounds if rule[0].split("/")[-2:][0] not in absent]
        _check_bounds(bounds, self._wanted, self.header)

    def write(
        self, writer: Writer, group: str, source: Mapping[str, str], progress: Progress | None
    ) -> None:
        """Write the snapshot as a group, the root for "".

        `source` has more keys of the attribute of this name.
        """
        header, wanted = self.header, self._wanted
        total = sum(dataset.nbytes for one in wanted for dataset in (one.positions, *one.others))
        if not header.has_domain:
            total += sum(one.positions.nbytes for one in self._species)
        with _reader(self._request.threads, total, progress) as reader:
            info = _run_info(header, self._species, reader)
            scales = RunScales(
                header.time, header.aexp, header.unit_l, header.unit_m, header.velocity, info.boxlen
            )
            # Catalogues are small beside the snapshot: they are not part of the progress.
            unmeasured = Reader(None, lambda _: None)
            paths = as_paths(self._request.halos)
            halos = read_halos(paths, scales, unmeasured, self.left_out)
            _write(writer, group, source, wanted, halos, header, info, reader, self.bounds)


@contextmanager
def _reader(threads: int | None, total: int, progress: Any) -> Iterator[Reader]:
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done = min(done + count, total)
        if progress is not None:
            progress(done, total)

    count = threads or usable_cores()
    if count < 2:
        yield Reader(None, advance)
        return
    with Workers(count) as workers:
        yield Reader(workers, advance)


def _all_species(header: Header, left_out: dict[str, str]) -> list[_Species]:
    """Return the types that have particles; notes datasets that are left out."""
    names = _NAMES.get(header.code, _GADGET)
    found = []
    for number, counts in enumerate(header.counts.T.tolist()):
        if not sum(counts):
            continue
        group = f"PartType{number}"
        datasets = {}
        for dataset in collect_datasets(header.paths, group, counts):
            if dataset.dtype.kind in "biuf":
                datasets[dataset.short] = dataset
            else:
                left_out[dataset.name] = not_stored(dataset)
        positions = datasets.pop(_COORDINATES, None)
        if positions is None or positions.shape[1:] != (3,):
            raise _core.UnsupportedError(
                f"{header.paths[0]}: expected a dataset {group}/{_COORDINATES} of shape (n, 3), "
                f"found {', '.join(datasets)}; write positions as floating-point numbers"
            )
        order = dict.fromkeys([*(name for name in _FIRST if name in datasets), *sorted(datasets)])
        others = tuple(datasets[name] for name in order)
        mass = 0.0 if _MASSES in datasets else header.masses[number]
        taken = ["index", *POSITIONS, *([_MASSES] if mass else [])]
        found.append(
            _Species(
                name=names[number] if number < len(names) else group,
                rows=sum(counts),
                positions=positions,
                others=others,
                names=names_of_columns(others, header, taken),
                mass=mass,
            )
        )
    return found


def _wanted(
    species: Sequence[_Species], header: Header, request: GadgetRequest, absent: set[str]
) -> list[_Species]:
    """Return the species and datasets that a request names; positions are always among them.

    `absent` are names of species that need not exist.
    """
    components, fields = as_list(request.components), as_list(request.fields)
    known = {one.name: one for one in species}
    for name in components or ():
        if name.removeprefix(SPECIES) not in {*known, *absent}:
            raise _core.NotFoundError(
                f"{header.paths[0]}: no component {name!r}; {suggestion(name, known)}"
            )
    if components == []:
        raise _core.InvalidError(
            f"{header.paths[0]}: expected at least one component, found none; leave out components "
            f"to convert all, or choose from: {', '.join(known)}"
        )
    chosen = [name.removeprefix(SPECIES) for name in components or known]
    wanted = [one for one in species if one.name in chosen]
    if fields is None:
        return wanted
    available: dict[str, None] = {}
    found, chosen_species = set(), []
    for one in wanted:
        columns = dict.fromkeys(one.columns)
        names = {dataset: {dataset.short, *one.names[dataset.name]} for dataset in one.others}
        available |= columns
        full = {name: resolve(name, columns) for name in fields}
        others = tuple(one for one, own in names.items() if own & {*fields, *full.values()})
        known_here = set(columns).union(*names.values(), [_COORDINATES])
        found |= {name for name in fields if {name, full[name]} & known_here}
        mass = one.mass if _MASSES in full.values() else 0.0
        chosen_species.append(dataclasses.replace(one, others=others, mass=mass))
    for name in fields:
        if name not in found:
            raise _core.NotFoundError(
                f"{header.paths[0]}: no field {name!r}; {suggestion(name, available)}"
            )
    return chosen_species


def _check_bounds(
    bounds: Sequence[tuple[str, str]], wanted: Sequence[_Species], header: Header
) -> None:
    """Raise an error if an error bound is that of no column, or names no species."""
    for rule in bounds:
        if not names_species(rule[0]):
            column = next((name for one in wanted for name in one.columns if name == rule[0]), "*")
            raise _core.InvalidError(
                f"{header.paths[0]}: expected error bounds of the columns of a species, such as "
                f"'gas/Density' or 'gas/velocity_*', found one for {rule[0]!r}; write "
                f"'{wanted[0].name}/{column}'"
            )
        names = (
            [f"{SPECIES}{one.name}/{name}", f"{one.name}/{name}"]
            for one in wanted
            for name in one.columns
        )
        if not any(select_bounds([rule], spellings) for spellings in names):
            raise _core.NotFoundError(
                f"{header.paths[0]}: an error bound is given for {rule[0]!r}, which is not a "
                "column; name a column such as 'gas/Density', or use a pattern"
            )


def _run_info(header: Header, species: Sequence[_Species], reader: Reader) -> CodeInfo:
    """Return the run information; reads positions if the files do not state the box."""
    lower, upper = [0.0] * 3, list(header.box)
    is_periodic = header.periodic is not False
    if not header.has_domain:
        low, high = _limits(species, reader)
        is_inside = min(header.box) > 0 and np.all(low >= 0) and np.all(high <= header.box)
        is_periodic = is_periodic and bool(is_inside)
        if not is_inside:
            lower = np.minimum(low, 0.0 if min(header.box) > 0 else low).tolist()
            upper = np.maximum(high, header.box if min(header.box) > 0 else high).tolist()
            upper = upper_faces(lower, upper)
    return CodeInfo(
        code=header.code,
        ndim=3,
        time=header.age,
        lower=tuple(lower),
        upper=tuple(upper),
        periodic=(is_periodic,) * 3,
        unit_l=header.unit_l,
        unit_d=header.unit_m / header.unit_l**3,
        unit_t=header.unit_t,
        aexp=header.aexp,
        H0=header.H0,
        omega_m=header.omega_m,
        omega_l=header.omega_l,
        gamma=header.gamma,
        parameters=_parameters(header.paths[0]),
    )


def _limits(species: Sequence[_Species], reader: Reader) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest coordinates of all particles."""
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for one in species:
        for rows in reader.parts(one.positions):
            low = np.fmin(low, np.fmin.reduce(rows, axis=0, initial=np.inf))
            high = np.fmax(high, np.fmax.reduce(rows, axis=0, initial=-np.inf))
    if not np.all(np.isfinite([low, high])):
        return np.zeros(3), np.ones(3)
    return low.astype(np.float64), high.astype(np.float64)


def _parameters(path: Path) -> dict[str, Any]:
    """Return the attributes of all groups but those of particles, by group."""
    with open_hdf5_snapshot(path) as file:
        groups = {name: node for name, node in own_nodes(file) if not name.startswith("PartType")}
        found = {name: _as_json(attributes_of(node)) for name, node in groups.items()}
    return {name: attributes for name, attributes in found.items() if attributes}


def _as_json(value: Any) -> Any:
    """Return a value with numbers that are not finite as text."""
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    is_plain = isinstance(value, (str, bool, int)) or (
        isinstance(value, float) and np.isfinite(value)
    )
    return value if is_plain else str(value)


def _write(
    writer: Writer,
    group: str,
    source: Mapping[str, str],
    species: Sequence[_Species],
    halos: Sequence[HaloTable],
    header: Header,
    info: CodeInfo,
    reader: Reader,
    bounds: Sequence[tuple[str, str]],
) -> None:
    """Write all tables, and the attributes of the snapshot at `group`."""
    components: dict[str, list[str]] = {}
    units: dict[str, str] = {}
    for one in species:
        component = SPECIES + one.name
        table = TableWriter(writer, f"{group}/{component}", one.rows, bounds)
        own = _write_species(table, one, header, info, reader)
        table.finish(info.ndim, info.boxlen)
        components[component] = table.columns
        units |= _named(component, stated_units(own, info))
    components |= write_halos(writer, halos, info.lower, info.box_size)
    for catalogue in halos:
        units |= _named(HALOS + catalogue.name, stated_units(catalogue.units, info))
    writer._create_group(
        group or "/",
        {
            "ambar": {
                "version": 1,
                "kind": "snapshot",
                "source": {"format": header.code, **source},
                "info": dataclasses.asdict(dataclasses.replace(info, field_units=units)),
                "components": components,
                "missing": {},
            }
        },
    )


def _named(component: str, units: Mapping[str, str]) -> dict[str, str]:
    return {f"{component}/{name}": text for name, text in units.items()}


def _write_species(
    table: TableWriter, species: _Species, header: Header, info: CodeInfo, reader: Reader
) -> dict[str, Unit | str | None]:
    """Write the columns of a species along the curve, one dataset at a time; return their units."""
    write_sorted(
        table,
        reader.read(species.positions),
        info.lower,
        max(info.box_size),
        _columns(species, reader),
    )
    units: dict[str, Unit | str | None] = dict.fromkeys(
        POSITIONS, unit_of(species.positions, header)
    )
    for dataset in species.others:
        units |= dict.fromkeys(species.names[dataset.name], unit_of(dataset, header))
    if species.mass:
        units[_MASSES] = Unit(header.unit_m, (0.0, 1.0, 0.0, 0.0))
    return units


def _columns(species: _Species, reader: Reader) -> Iterator[tuple[str, np.ndarray]]:
    """Yield names and values of all columns but positions; reads one dataset at a time."""
    for dataset in species.others:
        values = reader.read(dataset).reshape(species.rows, -1)
        for number, name in enumerate(species.names[dataset.name]):
            yield name, values[:, number]
        del values
    if species.mass:
        yield _MASSES, np.full(species.rows, species.mass)


def _summarize(resource: Resource) -> dict[str, Any]:
    """Return what the headers of a snapshot, or of the first one of a run, state."""
    run = run_of([resource.location])
    first = run[0].path if run else Path(resource.location)
    paths = find_files([first], SNAPSHOT)
    header = read_header(paths)
    names = _NAMES.get(header.code, _GADGET)
    counts = header.counts.sum(axis=0).tolist()
    particles = {
        names[number] if number < len(names) else f"PartType{number}": count
        for number, count in enumerate(counts)
        if count
    }
    about: dict[str, Any]
    if run is None:
        about = {"files": len(paths), "bytes": sum(path.stat().st_size for path in paths)}
    else:
        about = {"snapshots": [one.name for one in run]}
    return {
        **about,
        "code": header.code,
        "time": header.time,
        "aexp": header.aexp,
        "box": list(header.box),
        "particles": particles,
    }


GADGET = Kind(
    name="particle snapshot",
    match_source=_matches,
    summarize=_summarize,
    convert=_convert,
    convert_request=GadgetRequest,
)

"""The kind of datasets of yt, and of files that only yt reads: converted."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from ambar import _core
from ambar._util.progress import Progress, progress_function
from ambar._util.text import suggestion
from ambar.formats.particle_tables import names_species
from ambar.formats.yt.cells import Cells, GridCells, OctreeCells
from ambar.formats.yt.particles import particles_outside, write_species
from ambar.formats.yt.source import (
    CELLS,
    Key,
    YtField,
    chosen_cells,
    code_info,
    column_fields,
    component_of,
    is_dataset,
    is_output,
    name_of,
    open_output,
    reading,
    source_bytes,
    species_of,
    units_of_files,
)
from ambar.formats.yt.stretched import is_stretched, write_grids
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ConvertRequest
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.kind import warn_of_loose_bounds
from ambar.snapshot.loading import SPECIES
from ambar.store.error_bounds import listed_bounds, select_bounds
from ambar.store.store import Store
from ambar.store.writer import Writer

_CELL_SHARE = 0.7
"""The part of the progress of a dataset with particles that its cells are."""


@dataclass(frozen=True, kw_only=True)
class YtRequest(ConvertRequest):
    """The options of `ambar.convert` for datasets of yt."""

    store_options = ("levels", "region")

    components: Iterable[str] | None = None
    fields: Iterable[str | Key] | None = None
    covered: Literal["auto", "drop", "keep"] = "auto"


@dataclass(frozen=True)
class _Parts:
    """What is converted of a dataset."""

    cells: Cells | None
    """Cells in boxes; None without cells, and for stretched grids."""
    fields: list[YtField]
    """Fields of cells."""
    species: dict[str, list[YtField]]
    """Species of particles, and their columns."""

    @property
    def components(self) -> dict[str, list[YtField]]:
        """The fields by component."""
        named = {component_of(name): columns for name, columns in self.species.items()}
        return {CELLS: self.fields, **named} if self.fields else named

    @property
    def columns(self) -> int:
        """The number of columns of all species."""
        return sum(len(columns) for columns in self.species.values())


def _convert(request: YtRequest) -> Conversion:
    request.refuse_append()
    start = time.perf_counter()
    bounds = listed_bounds(request.error_bound)
    dataset = request.source if request.source is not None else open_output(request.paths[0])
    parts = _parts(dataset, request)
    _check_bounds(dataset, bounds, parts)
    info = code_info(dataset, () if parts.cells is None else parts.cells.info, parts.components)
    name = name_of(dataset)
    left_out: dict[str, str] = {}
    every = [field for fields in parts.components.values() for field in fields]
    with (
        units_of_files(dataset, every),
        progress_function(request.progress, f"converting {name}") as progress,
        request.create("w" if request.mode == "w" else "w-") as writer,
    ):
        components = _write(writer, dataset, parts, info, request, bounds, progress, left_out)
        about: dict[str, Any] = {"version": 1, "kind": "snapshot"}
        source = {"format": "yt", "name": name, "fields": _names_in_yt(parts)}
        about |= {"source": source, "info": asdict(info), "components": components, "missing": {}}
        writer._create_group("/", {"ambar": about} if components else {"info": asdict(info)})
    warn_of_loose_bounds(request, bounds)
    return Conversion(
        target=os.fspath(request.target),
        source_bytes=source_bytes(dataset) or _bytes_of_values(request.written()),
        stored_bytes=request.stored_bytes(),
        seconds=time.perf_counter() - start,
        converted=[name],
        left_out=left_out,
    )


def _parts(dataset: Any, request: YtRequest) -> _Parts:
    """Return what a request names of a dataset; raises KeyError for what does not exist."""
    from yt.geometry.grid_geometry_handler import GridIndex
    from yt.geometry.particle_geometry_handler import ParticleIndex
    from yt.geometry.unstructured_mesh_handler import UnstructuredIndex

    with reading(dataset, "the index"):
        index = dataset.index
    if isinstance(index, UnstructuredIndex):
        raise _core.UnsupportedError(
            f"{name_of(dataset)}: expected cells of grids or octrees, or particles, found an "
            "unstructured mesh; convert its file as a mesh, or write it with ambar.write_mesh"
        )
    species = species_of(dataset)
    has_cells = not isinstance(index, ParticleIndex)
    wanted = _names(request.components)
    known = ([CELLS] if has_cells else []) + species
    for name in wanted or ():
        if name not in known:
            raise _core.NotFoundError(
                f"{name_of(dataset)}: no component {name!r}; {suggestion(name, known)}"
            )
    chosen = known if wanted is None else wanted
    entries = None if request.fields is None else _listed(dataset, request.fields)
    columns = {
        name: _columns(column_fields(dataset, name), name, entries)
        for name in species
        if name in chosen
    }
    of_columns = {
        entry for entry in entries or () if _owner(entry) in {*species, *map(component_of, species)}
    }
    if not has_cells or CELLS not in chosen:
        return _Parts(None, [], columns)
    cell_entries = None if entries is None else [one for one in entries if one not in of_columns]
    fields = chosen_cells(dataset, cell_entries)
    if not fields:
        return _Parts(None, [], columns)
    if not isinstance(index, GridIndex):
        return _Parts(OctreeCells(dataset), fields, columns)
    cells = None if is_stretched(dataset) else GridCells(dataset)
    return _Parts(cells, fields, columns)


def _names(components: Iterable[str] | None) -> list[str] | None:
    if components is None:
        return None
    listed = [components] if isinstance(components, str) else list(components)
    return [name.removeprefix(SPECIES) for name in listed]


def _listed(dataset: Any, fields: Iterable[str | Key]) -> list[str | Key]:
    is_key = isinstance(fields, tuple) and fields in dataset.field_info
    if isinstance(fields, str) or is_key:
        return [fields]  # type: ignore[list-item]
    return list(fields)


def _owner(entry: str | Key) -> str:
    """Return the species of a column "species/column" or ("species", "column")."""
    return entry.rpartition("/")[0] if isinstance(entry, str) else entry[0]


def _columns(
    columns: list[YtField], species: str, entries: Sequence[str | Key] | None
) -> list[YtField]:
    """Return the columns of a species that are named; positions always, all if none is named."""
    own = [
        entry.rpartition("/")[2] if isinstance(entry, str) else entry[1]
        for entry in entries or ()
        if _owner(entry) in (species, component_of(species))
    ]
    if not own:
        return columns
    for name in own:
        if name not in {known for column in columns for known in (column.name, column.key[1])}:
            known_names = [column.name for column in columns]
            raise _core.NotFoundError(
                f"no column {name!r} of {species!r}; {suggestion(name, known_names)}"
            )
    return [
        column for column in columns if column.is_position or {column.name, column.key[1]} & {*own}
    ]


def _check_bounds(dataset: Any, bounds: Sequence[tuple[str, str]], parts: _Parts) -> None:
    """Raise KeyError if an error bound is that of nothing that is converted."""
    names = [[field.name] for field in parts.fields]
    for species, columns in parts.species.items():
        names += [
            [f"{component_of(species)}/{column.name}", f"{species}/{column.name}"]
            for column in columns
        ]
    for rule in bounds:
        of_species = names_species(rule[0])
        alike = [spellings for spellings in names if names_species(spellings[0]) == of_species]
        if not any(select_bounds([rule], spellings) for spellings in alike):
            raise _core.NotFoundError(
                f"{name_of(dataset)}: an error bound is given for {rule[0]!r}, which is not "
                "converted; name a field of cells, or a column such as 'io/mass'"
            )


def _write(
    writer: Writer,
    dataset: Any,
    parts: _Parts,
    info: CodeInfo,
    request: YtRequest,
    bounds: Sequence[tuple[str, str]],
    progress: Progress | None,
    left_out: dict[str, str],
) -> dict[str, list[str]]:
    """Write everything; return the components, which stretched grids are not."""
    components: dict[str, list[str]] = {}
    cell_bounds = [rule for rule in bounds if not names_species(rule[0])]
    column_bounds = [rule for rule in bounds if names_species(rule[0])]
    if parts.cells is not None and parts.cells.has_parents and request.covered == "keep":
        raise _core.InvalidError(
            f"{name_of(dataset)}: expected the default of covered, found 'keep': the output has no "
            "values of cells under finer ones"
        )
    share = _CELL_SHARE if parts.species else 1.0
    if parts.cells is not None:
        components[CELLS] = _write_cells(
            writer,
            parts.cells,
            parts.fields,
            "drop" if parts.cells.has_parents else request.covered,
            cell_bounds,
            _scaled(progress, 0.0, share),
        )
    elif parts.fields:
        total = len(parts.fields) * len(dataset.index.grids)
        with _steps(_scaled(progress, 0.0, share), total) as advance:
            write_grids(writer, dataset, parts.fields, cell_bounds, advance)
    with _steps(_scaled(progress, share, 1.0), parts.columns) as advance:
        for species, columns in parts.species.items():
            rows = write_species(writer, dataset, species, columns, info, column_bounds, advance)
            components[component_of(species)] = [column.name for column in columns]
            outside = particles_outside(dataset, species, rows)
            if outside:
                left_out[species] = f"yt leaves out {outside:,} particles outside the domain"
    return components


def _write_cells(
    writer: Writer,
    cells: Cells,
    fields: Sequence[YtField],
    covered: Literal["auto", "drop", "keep"],
    bounds: Sequence[tuple[str, str]],
    progress: Progress | None,
) -> list[str]:
    """Write the cells; return the names of their fields in the store."""
    is_single = cells.is_single
    patches = cells.patches(fields)
    try:
        writer._core.patches(
            "/amr", patches, fields=None, covered=covered, error_bounds=bounds, progress=progress
        )
    except _core.CorruptError:
        if cells.is_single == is_single:
            raise
        return _write_cells(writer, cells, fields, covered, bounds, progress)
    return patches.fields


def _scaled(progress: Progress | None, start: float, end: float) -> Progress | None:
    """Return a function that reports a part of the work, in thousandths of all."""
    if progress is None:
        return None

    def report(done: int, total: int) -> None:
        progress(round(1000 * (start + (end - start) * done / max(total, 1))), 1000)

    return report


@contextmanager
def _steps(progress: Progress | None, total: int) -> Iterator[Any]:
    """Yield a function that counts steps and reports them."""
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(min(done, total), total)

    yield advance
    if progress is not None and total:
        progress(total, total)


def _names_in_yt(parts: _Parts) -> Mapping[str, dict[str, list[str]]]:
    """Return the names of the fields in yt, by component."""
    return {
        component: {field.name: list(field.key) for field in fields}
        for component, fields in parts.components.items()
    }


def _bytes_of_values(store: Store) -> int:
    """Return the bytes of all values of a store, for datasets in memory."""
    return sum(store[path].nbytes for path in store)


def _summarize(resource: Resource) -> dict[str, Any]:
    """Return what yt reports of an output, without values."""
    dataset = open_output(resource.location)
    return {
        "bytes": source_bytes(dataset),
        "code": str(dataset.dataset_type),
        "time": float(dataset.current_time.to("code_time")),
        "dimensions": dataset.domain_dimensions.tolist(),
        "particles": species_of(dataset),
        "fields": [name for kind, name in dataset.field_list if kind not in species_of(dataset)],
    }


YT = Kind(
    name="yt dataset",
    match_source=lambda paths: len(paths) == 1 and is_output(paths[0]),
    match_object=is_dataset,
    summarize=_summarize,
    convert=_convert,
    convert_request=YtRequest,
)

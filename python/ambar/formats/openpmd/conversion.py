"""Writes an openPMD iteration to a store, as a snapshot with its description."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.progress import Progress
from ambar._util.text import suggestion
from ambar.formats.openpmd.description import (
    SCALAR,
    attributes_of_component,
    bytes_of,
    size_of_component,
    unit_of,
    value_of,
)
from ambar.formats.openpmd.grids import (
    CellLevel,
    CellMeshes,
    Corners,
    MeshComponent,
    axes_of,
    cells_of,
    written_boxes,
)
from ambar.formats.openpmd.source import SLAB_BYTES, IterationReader
from ambar.formats.particle_tables import TableWriter, upper_faces
from ambar.snapshot.amrex_info import PatchLevel
from ambar.snapshot.code_info import CELLS, CodeInfo
from ambar.snapshot.loading import SPECIES
from ambar.snapshot.regions import AXES
from ambar.store.error_bounds import select_bounds
from ambar.store.writer import Writer

DESCRIPTION = "source/openpmd"
"""The array with the description, below the group of the snapshot."""
_CHUNK_BYTES = 1 << 20
Bounds = Sequence[tuple[str, str]]
Start: TypeAlias = tuple[int, ...]
Piece: TypeAlias = tuple[Start, np.ndarray]
"""The first index of a piece of an array, and its values."""


class IterationImport:
    """Writes one iteration to the group `path` of a store.

    Parameters
    ----------
    writer, path
        The open store, and the group: "" for the root.
    reader
        The open iteration.
    bounds
        Error bounds, as `ambar.store.error_bounds.listed_bounds` returns them.
    progress
        Called with the bytes that are written, and those of the iteration.
    """

    def __init__(
        self,
        writer: Writer,
        path: str,
        reader: IterationReader,
        bounds: Bounds,
        progress: Progress | None = None,
    ) -> None:
        self._writer, self._path, self._reader = writer, path, reader
        self._bounds = [(target.removeprefix(SPECIES), bound) for target, bound in bounds]
        self._description = reader.description
        self._meshes: dict[str, Any] = self._description["meshes"]["records"]
        self._species: dict[str, Any] = self._description["particles"]["species"]
        self._components: dict[str, list[str]] = {}
        self._units: dict[str, str] = {}
        self._limits: list[np.ndarray] = []
        self._tables: dict[str, TableWriter] = {}
        self._progress, self._done = progress, 0
        self._total = max(bytes_of(self._description), 1)

    def write(self) -> None:
        """Write the snapshot; the caller commits."""
        cells = cells_of(self._meshes)
        info = self._run_info(cells)
        self._check_bounds(cells, info)
        self._writer._create_group(self._path or "/", {})
        if cells is not None:
            info = dataclasses.replace(info, levels=self._write_cells(cells, info))
        for name, mesh in self._meshes.items():
            self._write_mesh(name, mesh)
        for name, species in self._species.items():
            self._write_species(name, species, info)
        if cells is None and self._limits:
            info = self._around_particles(info)
        for component, table in self._tables.items():
            table.finish(info.ndim, info.boxlen)
            self._components[component] = table.columns
        self._writer.create_array(
            f"{self._path}/{DESCRIPTION}",
            np.array([json.dumps(self._description, allow_nan=False)], dtype=object),
        )
        values = dataclasses.asdict(dataclasses.replace(info, field_units=self._units))
        about = {
            "version": 1,
            "kind": "snapshot",
            "source": {
                "format": "openpmd",
                "file": self._reader.path.name,
                "iteration": self._reader.number,
            },
            "info": values,
            "components": self._components,
            "missing": {},
        }
        self._writer._create_group(self._path or "/", {"ambar": about})

    def _around_particles(self, info: CodeInfo) -> CodeInfo:
        """Return the run information with a domain around all particles."""
        low = np.min(self._limits, axis=0)[:, 0]
        high = np.max(self._limits, axis=0)[:, 1]
        low = np.where(np.isfinite(low), low, 0.0)
        high = np.where((high > low) & np.isfinite(high), high, low)
        upper = upper_faces(low.tolist(), high.tolist())
        return dataclasses.replace(info, lower=tuple(low.tolist()), upper=tuple(upper))

    def _check_bounds(self, cells: CellMeshes | None, info: CodeInfo) -> None:
        """Raise KeyError if an error bound is that of no column of particles, and of no field.

        Bounds of fields are checked where the cells are written.
        """
        columns = [
            f"{name}/{column}"
            for name, species in self._species.items()
            for column in [
                *_position_columns(info),
                *self._names_of_columns(name, species, info).values(),
            ]
        ]
        for rule in self._bounds:
            if "/" not in rule[0] and cells is not None:
                continue
            if not any(select_bounds([rule], [name]) for name in columns):
                raise _core.NotFoundError(
                    f"{self._reader.path}: an error bound is given for {rule[0]!r}, which is not a "
                    f"column of particles; {suggestion(rule[0], columns)}"
                )

    def _advance(self, count: int) -> None:
        """Report that `count` more bytes are written."""
        self._done += count
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def _counted(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield pieces, and report each after it is written."""
        for start, values in pieces:
            yield start, values
            self._advance(values.nbytes)

    def _run_info(self, cells: CellMeshes | None) -> CodeInfo:
        """Return the run information; of an iteration without cells with a domain of length 1."""
        attributes = self._description["iteration"]
        series = self._description["series"]
        unit = cells.coarsest.unit if cells else 1.0
        axes = self._axes(cells)
        lower, upper = [0.0] * len(axes), [1.0] * len(axes)
        parameters: dict[str, Any] = {"iteration": self._reader.number, "axes": axes}
        for name in ("software", "softwareVersion", "openPMD"):
            if name in series:
                parameters[name] = value_of(series, name)
        if cells:
            grid = cells.coarsest
            lower = [grid.offset[d] for d in grid.order]
            sides = [grid.shape[d] * grid.spacing[d] for d in grid.order]
            upper = [a + side for a, side in zip(lower, sides, strict=True)]
            parameters["positions"] = {
                field: self._position(places[0], grid.order)
                for field, places in cells.fields.items()
            }
        return CodeInfo(
            code="openpmd",
            ndim=len(axes),
            time=self._finite(attributes, "time", 0.0),
            lower=tuple(lower),
            upper=tuple(upper),
            unit_l=unit * 1e2,
            unit_d=1e-3,
            unit_t=self._finite(attributes, "timeUnitSI", 1.0),
            parameters=parameters,
        )

    def _finite(self, attributes: Mapping[str, Any], name: str, default: float) -> float:
        """Return an attribute of the iteration; CorruptError if it is infinite or NaN."""
        value = float(value_of(attributes, name, default))
        if not math.isfinite(value):
            raise _core.CorruptError(
                f"{self._reader.path}: iteration {self._reader.number}: expected a finite number "
                f"as the attribute {name!r}, found {value}; set the attribute in the file"
            )
        return value

    def _position(self, place: MeshComponent, order: Sequence[int]) -> list[float]:
        """Return the position of the values in a cell, 0 to 1 along each axis."""
        mesh = self._meshes[place.mesh]
        attributes = attributes_of_component(mesh, place.component)
        values = axes_of({"attributes": {**mesh["attributes"], **attributes}}, "position")
        return [float(values[d]) for d in order] if len(values) == len(order) else []

    def _axes(self, cells: CellMeshes | None) -> list[str]:
        """Return the names of the axes, in ambar's order."""
        if cells:
            return [cells.coarsest.axes[d] for d in cells.coarsest.order]
        for species in self._species.values():
            if "position" in species["records"]:
                names = species["records"]["position"]["components"]
                return sorted(name for name in names if name in AXES) or ["x"]
        for mesh in self._meshes.values():
            return list(reversed(axes_of(mesh, "axisLabels")))[:3] or ["x"]
        return ["x"]

    def _write_cells(self, cells: CellMeshes, info: CodeInfo) -> tuple[PatchLevel, ...]:
        """Write the group ``amr``, and return its levels."""
        names = list(cells.fields)
        parts = [
            [self._reader.mesh(*places[n]) for places in cells.fields.values()]
            for n in range(len(cells.levels))
        ]
        written = [
            written_boxes(
                level,
                own,
                [self._reader.chunks(part) for part in own],
                self._reader.load,
                is_refined=number > 0,
            )
            for number, (level, own) in enumerate(zip(cells.levels, parts, strict=True))
        ]
        boxes = [own.boxes for own in written]

        def read_cells(level: int, box: int, field: str, start: int, stop: int) -> np.ndarray:
            low, high = boxes[level][box]
            plane = int(np.prod((high - low)[:-1]))
            corners = _planes(cells.levels[level], low, high, (start // plane, stop // plane))
            values = self._reader.load(parts[level][names.index(field)], corners)
            order = cells.levels[level].grid.order
            return np.ascontiguousarray(values.transpose(order[::-1])).reshape(-1)

        levels = _levels(cells, boxes)
        patches = _core.Patches(
            {
                "ndim": info.ndim,
                "lower": list(info.lower),
                "upper": list(info.upper),
                "fields": names,
                "dtypes": [
                    self._meshes[place.mesh]["components"][place.component]["dtype"]
                    for place, *_ in cells.fields.values()
                ],
                "levels": [
                    {
                        "domain": [list(level.lo), list(level.hi)],
                        "boxes": own.tolist(),
                        "cell_size": list(level.cell_size),
                        "ratio": list(level.ratio),
                    }
                    for level, own in zip(levels, boxes, strict=True)
                ],
            },
            read_cells,
        )
        self._writer._core.patches(
            f"{self._path}/amr",
            patches,
            fields=None,
            covered="auto",
            error_bounds=[one for one in self._bounds if "/" not in one[0]],
            progress=self._part_of_cells(cells),
        )
        self._components[CELLS] = patches.fields
        for name, places in zip(patches.fields, cells.fields.values(), strict=True):
            for number, (mesh, component) in enumerate(places):
                described = self._meshes[mesh]["components"][component]
                described["cells"] = {"field": name, "level": number}
            attributes = attributes_of_component(self._meshes[places[0].mesh], places[0].component)
            self._units[f"{CELLS}/{name}"] = unit_of(attributes)
        self._description["cells"] = {
            "levels": [
                {
                    "order": level.grid.order,
                    "start": level.start,
                    "are_others_zero": own.are_others_zero,
                }
                for level, own in zip(cells.levels, written, strict=True)
            ]
        }
        return levels

    def _part_of_cells(self, cells: CellMeshes) -> Progress | None:
        """Return a function that reports the progress of the cells, which come first."""
        progress, total = self._progress, self._total
        if progress is None:
            return None
        own = sum(
            size_of_component(self._meshes[place.mesh]["components"][place.component])
            for places in cells.fields.values()
            for place in places
        )
        self._done = own
        return lambda done, all_: progress(done * own // max(all_, 1), total)

    def _write_mesh(self, name: str, mesh: Mapping[str, Any]) -> None:
        """Write the components of a mesh that are not among the cells, with coordinates."""
        parts = {
            component: part for component, part in mesh["components"].items() if "cells" not in part
        }
        group = f"{self._path}/meshes/{name}"
        labels: dict[tuple[object, ...], str] = {}
        for component, part in parts.items():
            attributes = attributes_of_component(mesh, component)
            position = axes_of({"attributes": {**mesh["attributes"], **attributes}}, "position")
            key = (*part["shape"], *position)
            short = name if component == SCALAR else f"{name}_{component}"
            suffix = labels.setdefault(key, f"_{short}" if labels else "")
            dims = self._coordinates(group, mesh, part["shape"], position, suffix)
            array = f"meshes/{name}/{short}{'_' * (short in dims)}"
            self._write_array(f"{self._path}/{array}", name, component, dims, attributes)
            part["array"] = array

    def _coordinates(
        self,
        group: str,
        mesh: Mapping[str, Any],
        shape: Sequence[int],
        position: Sequence[float],
        suffix: str,
    ) -> list[str]:
        """Write the coordinates of the axes in meters, and return the names of the dimensions."""
        axes, spacing, offset = (
            axes_of(mesh, name) for name in ("axisLabels", "gridSpacing", "gridGlobalOffset")
        )
        unit = float(value_of(mesh["attributes"], "gridUnitSI", 1.0))
        more = len(shape) - len(axes)  # the modes of thetaMode come first
        dims = [*(["mode", "mode_2", "mode_3"][:more]), *axes] if 0 <= more <= 3 else []
        dims = dims or [f"dim_{d}" for d in range(len(shape))]
        dims = [f"{dim}{suffix}" for dim in dims]
        if more < 0 or not len(axes) == len(spacing) == len(offset):
            return dims
        for d, dim in enumerate(dims[more:]):
            path = f"{group}/{dim}"
            if path not in self._writer:
                within = position[d] if d < len(position) else 0.0
                index = np.arange(shape[more + d]) + within
                values = (offset[d] + index * spacing[d]) * unit
                self._writer.create_array(path, values, dims=[dim], attrs={"units": "m"})
        return dims

    def _write_array(
        self,
        path: str,
        mesh: str,
        component: str,
        dims: Sequence[str],
        attributes: Mapping[str, Sequence[Any]],
    ) -> None:
        part = self._reader.mesh(mesh, component)
        dtype = _storable(self._reader, part, f"meshes/{mesh}")
        shape = [int(side) for side in part.shape]
        attrs = {"units": unit_of(attributes)}
        chunks = _chunks(shape, dtype.itemsize)
        if math.prod(shape) * dtype.itemsize <= SLAB_BYTES:
            values = self._reader.load(part, (tuple([0] * len(shape)), tuple(shape)))
            self._writer.create_array(path, values, dims=dims, attrs=attrs)
            self._advance(values.nbytes)
            return
        self._writer.create_array(
            path, shape=shape, dtype=dtype, dims=dims, attrs=attrs, chunks=chunks
        )
        for start, values in self._counted(self._reader.pieces(part, chunks)):
            self._writer.write_region(path, values, start)

    def _write_species(self, name: str, species: Mapping[str, Any], info: CodeInfo) -> None:
        """Write the records of a species as columns, with positions in code length."""
        records = species["records"]
        component = SPECIES + name
        names = self._names_of_columns(name, species, info)
        rows = self._rows(name, records, info.parameters["axes"])
        table = TableWriter(
            self._writer, f"{self._path}/{component}", rows, self._particle_bounds()
        )
        limits = np.tile([np.inf, -np.inf], (info.ndim, 1))
        for number, axis in enumerate(info.parameters["axes"]):
            column = _position_columns(info)[number]
            values = self._positions(name, axis, info, table.chunk_rows)
            table.write_parts(column, values.dtype, _observed(values.parts, limits[number]))
            if values.are_verbatim:
                names["position", axis] = column
        self._limits.append(limits)
        for record, described in records.items():
            for short, part in described["components"].items():
                part["column"] = names[record, short]
                if part["column"] not in table.columns:
                    self._write_column(table, part["column"], name, record, short)
                if not part["column"].startswith("position_"):
                    attributes = attributes_of_component(described, short)
                    self._units[f"{component}/{part['column']}"] = unit_of(attributes)
        self._tables[component] = table

    def _rows(self, name: str, records: Mapping[str, Any], axes: Sequence[str]) -> int:
        """Return the number of particles; checks that all have positions."""
        lengths = {
            math.prod(part["shape"])
            for record in records.values()
            for part in record["components"].values()
        }
        if len(lengths) > 1:
            raise _core.CorruptError(
                f"{self._reader.path}: particles/{name}: expected records of equal length, found "
                f"{sorted(lengths)}; restore the file from a copy"
            )
        known = records.get("position", {}).get("components", {})
        absent = [axis for axis in axes if axis not in known]
        if absent:
            raise _core.UnsupportedError(
                f"{self._reader.path}: particles/{name}: expected positions along "
                f"{', '.join(axes)}, found none along {', '.join(absent)}; ambar stores species "
                "with positions only"
            )
        return int(lengths.pop())

    def _names_of_columns(
        self, name: str, species: Mapping[str, Any], info: CodeInfo
    ) -> dict[tuple[str, str], str]:
        """Return the column of each record and component; raises the errors of `_rows`."""
        records = species["records"]
        self._rows(name, records, info.parameters["axes"])
        places = _position_columns(info)
        taken = {"index", *places}
        found = {
            ("position", axis): column
            for axis, column in zip(info.parameters["axes"], places, strict=True)
            if _is_verbatim(records, axis, info)
        }
        for record, described in records.items():
            owner = "relative_position" if record == "position" else record
            for short in described["components"]:
                if (record, short) not in found:
                    column = owner if short == SCALAR else f"{owner}_{short}"
                    while column in taken:
                        column += "_"
                    found[record, short] = column
                    taken.add(column)
        return found

    def _write_column(
        self, table: TableWriter, column: str, species: str, record: str, component: str
    ) -> None:
        part = self._reader.record(species, record, component)
        _storable(self._reader, part, f"particles/{species}/{record}")
        pieces = self._counted(self._reader.pieces(part, [table.chunk_rows]))
        table.write_parts(column, np.dtype(part.dtype), (values for _, values in pieces))

    def _particle_bounds(self) -> Bounds:
        return [one for one in self._bounds if "/" in one[0]]

    def _positions(self, species: str, axis: str, info: CodeInfo, chunk_rows: int) -> _Positions:
        """Return the positions along an axis in code length."""
        records = self._species[species]["records"]
        part = self._reader.record(species, "position", axis)
        pieces = self._counted(self._reader.pieces(part, [chunk_rows]))
        if _is_verbatim(records, axis, info):
            values = (piece for _, piece in pieces)
            return _Positions(np.dtype(part.dtype), values, are_verbatim=True)
        scale, offset = _scale(records, "position", axis, info), _has_offset(records, axis)

        def computed() -> Iterator[np.ndarray]:
            for start, piece in pieces:
                values = piece.astype(np.float64) * scale
                if offset:
                    more = self._reader.record(species, "positionOffset", axis)
                    shifts = self._reader.load(more, (start, piece.shape))
                    length = _scale(records, "positionOffset", axis, info)
                    values += shifts.astype(np.float64) * length
                yield values

        return _Positions(np.dtype("f8"), computed(), are_verbatim=False)


def _position_columns(info: CodeInfo) -> list[str]:
    return [f"position_{axis}" for axis in AXES[: info.ndim]]


def _scale(records: Mapping[str, Any], record: str, axis: str, info: CodeInfo) -> float:
    """Return the code length of one unit of positions or offsets."""
    return _unit_si(records[record], axis) / ((info.unit_l or 1e2) / 1e2)


def _has_offset(records: Mapping[str, Any], axis: str) -> bool:
    offset = records.get("positionOffset", {"components": {}})["components"]
    return axis in offset and offset[axis].get("constant") != 0


def _is_verbatim(records: Mapping[str, Any], axis: str, info: CodeInfo) -> bool:
    """Whether positions in code length are the values of the record `position`."""
    kind = np.dtype(records["position"]["components"][axis]["dtype"]).kind
    is_scaled = _scale(records, "position", axis, info) != 1.0
    return kind == "f" and not is_scaled and not _has_offset(records, axis)


class _Positions(NamedTuple):
    """Positions along an axis, in consecutive parts."""

    dtype: np.dtype[Any]
    parts: Iterator[np.ndarray]
    are_verbatim: bool
    """Whether they are the values of the record `position`."""


def _observed(parts: Iterable[np.ndarray], limits: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the parts, and keep the smallest and the largest value in `limits`."""
    for part in parts:
        limits[0] = np.fmin.reduce(part, initial=limits[0])
        limits[1] = np.fmax.reduce(part, initial=limits[1])
        yield part


def _unit_si(record: Mapping[str, Any], component: str) -> float:
    return float(value_of(attributes_of_component(record, component), "unitSI", 1.0))


def _planes(
    level: CellLevel, low: np.ndarray, high: np.ndarray, planes: tuple[int, int]
) -> Corners:
    """Return the part of the arrays of a level that planes of a box along the last axis are."""
    low, high = low.copy(), high.copy()
    low[-1], high[-1] = low[-1] + planes[0], low[-1] + planes[1]
    start, extent = [0] * len(low), [0] * len(low)
    for k, d in enumerate(level.grid.order):
        start[d] = int(low[k]) - level.start[k]
        extent[d] = int(high[k] - low[k])
    return tuple(start), tuple(extent)


def _levels(cells: CellMeshes, boxes: Sequence[np.ndarray]) -> tuple[PatchLevel, ...]:
    base = cells.coarsest
    ratios = [level.ratio for level in cells.levels[1:]] + [[1] * len(base.shape)]
    return tuple(
        PatchLevel(
            lo=(0,) * len(base.shape),
            hi=tuple(
                base.shape[d] * times for d, times in zip(base.order, level.refinement, strict=True)
            ),
            cell_size=tuple(level.grid.spacing[d] for d in level.grid.order),
            ratio=tuple(ratio),
            boxes=len(own),
            cells=int((own[:, 1] - own[:, 0]).prod(axis=1).sum()),
        )
        for level, ratio, own in zip(cells.levels, ratios, boxes, strict=True)
    )


def _storable(reader: IterationReader, part: Any, name: str) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(part.dtype)
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise _core.UnsupportedError(
            f"{reader.path}: {name}: expected numbers of at most 64 bits, found {dtype}; convert "
            "the record to another type"
        )
    return dtype


def _chunks(shape: Sequence[int], itemsize: int) -> list[int]:
    """Return the shape of chunks of about 1 MiB: the longest sides are halved."""
    chunks = list(shape)
    while math.prod(chunks) * itemsize > _CHUNK_BYTES:
        axis = chunks.index(max(chunks))
        chunks[axis] = -(-chunks[axis] // 2)
    return chunks

"""Writes stores of openPMD data as files of openPMD, in HDF5 or ADIOS2 BP."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ambar import _core
from ambar._util.progress import progress_function
from ambar._util.properties import cached_property
from ambar.formats.openpmd.conversion import DESCRIPTION
from ambar.formats.openpmd.description import (
    bytes_of,
    component_of,
    decoded,
    set_attributes,
    value_of,
)
from ambar.formats.openpmd.files import BP_SUFFIXES, openpmd_api
from ambar.formats.openpmd.grids import overlaps, tiles_of
from ambar.formats.openpmd.source import SLAB_BYTES
from ambar.kinds.request import ExportRequest
from ambar.snapshot.loading import SPECIES
from ambar.store.store import Store

_ENCODINGS = {"fileBased": "file_based", "variableBased": "variable_based"}
_OF_SERIES = (
    "openPMD",
    "basePath",
    "iterationEncoding",
    "iterationFormat",
    "meshesPath",
    "particlesPath",
)
"""Attributes of a series that openpmd_api sets from the files and the methods of the series."""


class _Step(NamedTuple):
    """An iteration in a store."""

    store: Store
    path: str
    description: Mapping[str, Any]


def export_openpmd(request: ExportRequest, groups: Sequence[str]) -> None:
    """Write snapshots, whose groups are given in the order of time, to files of openPMD.

    Raises
    ------
    UnsupportedError
        If the store was not made from openPMD data.
    ValueError
        If the suffix of the target is not that of HDF5 or ADIOS2.
    """
    openpmd_api()
    steps = [_step(request, group) for group in groups]
    place = request.target
    suffix = place.suffix.lower()
    if suffix and suffix not in (".h5", *BP_SUFFIXES):
        raise _core.InvalidError(
            f"{place.name}: expected the suffix .h5 or {', '.join(BP_SUFFIXES)}, or none for a "
            f"folder with the files, found {suffix!r}; choose another target"
        )
    total = sum(bytes_of(step.description) for step in steps)
    with progress_function(request.progress, f"exporting {Path(request.store).name}") as report:
        done = 0

        def count(values: int) -> None:
            nonlocal done
            done += values
            if report is not None:
                report(min(done, total), total)

        if suffix:
            _write_series(place, _encoding(suffix), steps, count)
            return
        place.mkdir()
        for _, group in itertools.groupby(steps, _series_key):
            own = list(group)
            series = own[0].description["series"]
            _write_series(
                place / _file_name(own[0]), value_of(series, "iterationEncoding"), own, count
            )


def _step(request: ExportRequest, group: str) -> _Step:
    path = f"{group.strip('/')}/{DESCRIPTION}".lstrip("/")
    if path not in request.opened:
        raise _core.UnsupportedError(
            f"{request.store}: expected a store that was made from openPMD files, found none of "
            "their records and attributes; convert the openPMD files, or leave out format"
        )
    return _Step(request.opened, group.strip("/"), json.loads(str(request.opened[path][0])))


def _series_key(step: _Step) -> str:
    """Return what iterations of one series have in common."""
    series = dict(step.description["series"])
    if value_of(series, "iterationEncoding") != "fileBased":
        series["file"] = [step.description["file"]]
    return json.dumps(series, sort_keys=True)


def _file_name(step: _Step) -> str:
    """Return the file of a series, of HDF5: with the pattern of the iterations' numbers."""
    series = step.description["series"]
    stem = Path(step.description["file"]).stem
    if value_of(series, "iterationEncoding") == "fileBased":
        found = Path(str(value_of(series, "iterationFormat", ""))).name
        stem = found if re.search(r"%0?\d*T", found) else f"{stem}_%T"
    return f"{stem}.h5"


def _encoding(suffix: str) -> str:
    return "variableBased" if suffix in BP_SUFFIXES else "groupBased"


def _write_series(
    path: Path, encoding: str, steps: Sequence[_Step], count: Callable[[int], None]
) -> None:
    io = openpmd_api()
    attributes = steps[0].description["series"]
    if path.suffix == ".h5" and encoding == "variableBased":
        encoding = "groupBased"
    series = io.Series(str(path), io.Access.create)
    try:
        series.set_iteration_encoding(
            getattr(io.Iteration_Encoding, _ENCODINGS.get(encoding, "group_based"))
        )
        series.set_openPMD(value_of(attributes, "openPMD", "1.1.0"))
        for name, set_path in (
            ("meshesPath", series.set_meshes_path),
            ("particlesPath", series.set_particles_path),
        ):
            if name in attributes:
                set_path(value_of(attributes, name))
        set_attributes(series, attributes, _OF_SERIES)
        for step in steps:
            _IterationExport(io, series, step, count).write()
    finally:
        series.close()


class _IterationExport:
    """Writes one iteration."""

    def __init__(self, io: Any, series: Any, step: _Step, count: Callable[[int], None]) -> None:
        self._io, self._series, self._step, self._count = io, series, step, count
        self._description = step.description
        self._is_hdf5 = series.backend == "HDF5"

    @cached_property
    def _cells(self) -> _core.Amr:
        return self._step.store._core.amr(f"/{self._step.path}/amr".replace("//", "/"))

    def write(self) -> None:
        """Write the iteration, and close it."""
        description = self._description
        set_attributes(self._series.iterations, description["iterations"])
        iteration = self._series.write_iterations()[description["number"]]
        set_attributes(iteration, description["iteration"])
        meshes, particles = description["meshes"], description["particles"]
        if meshes["attributes"]:
            set_attributes(iteration.meshes, meshes["attributes"])
        if particles["attributes"]:
            set_attributes(iteration.particles, particles["attributes"])
        for name, mesh in meshes["records"].items():
            self._write_record(iteration.meshes[name], mesh)
        for name, species in particles["species"].items():
            self._write_species(iteration.particles[name], name, species)
        iteration.close()

    def _write_species(self, node: Any, name: str, species: Mapping[str, Any]) -> None:
        set_attributes(node, species["attributes"])
        for record, described in species["records"].items():
            self._write_record(node[record], described, f"{SPECIES}{name}/")
        patches = species["patches"]
        for record, described in patches["records"].items():
            owner = node.particle_patches[record]
            for component, part in described["components"].items():
                values = np.array(decoded(part["values"], np.dtype(part["dtype"])), part["dtype"])
                own = component_of(owner, component)
                own.reset_dataset(self._io.Dataset(values.dtype, list(values.shape)))
                for number, value in enumerate(values):
                    own.store(number, value)
                set_attributes(own, part["attributes"])
            set_attributes(owner, described["attributes"])
        if patches["records"]:
            set_attributes(node.particle_patches, patches["attributes"])

    def _write_record(self, node: Any, record: Mapping[str, Any], owner: str = "") -> None:
        # Attributes come first: what is flushed cannot change its type or length.
        nodes = {name: component_of(node, name) for name in record["components"]}
        for component, part in record["components"].items():
            own, dtype = nodes[component], np.dtype(part["dtype"])
            own.reset_dataset(self._io.Dataset(dtype, part["shape"]))
            set_attributes(own, part["attributes"])
            if "constant" in part:
                own.make_constant(dtype.type(decoded(part["constant"], dtype)))
        set_attributes(node, record["attributes"])
        for component, part in record["components"].items():
            if "constant" not in part and 0 not in part["shape"]:
                self._write_values(nodes[component], part, owner)

    def _write_values(self, node: Any, part: Mapping[str, Any], owner: str) -> None:
        values = self._of_cells(part) if "cells" in part else self._of_array(part, owner)
        for start, piece in values:
            node.store_chunk(np.ascontiguousarray(piece), start, list(piece.shape))
            self._series.flush()
            self._count(piece.nbytes)

    def _of_array(
        self, part: Mapping[str, Any], owner: str
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        path = part["array"] if "array" in part else f"{owner}{part['column']}"
        array = self._step.store[f"{self._step.path}/{path}".lstrip("/")]
        shape = part["shape"]
        step = max(SLAB_BYTES // max(int(np.prod(shape[1:])) * array.dtype.itemsize, 1), 1)
        for start in range(0, shape[0], step):
            yield [start, *[0] * len(shape[1:])], np.asarray(array[start : start + step])

    def _of_cells(self, part: Mapping[str, Any]) -> Iterator[tuple[list[int], np.ndarray]]:
        """Yield the values of the boxes of a level, as start and array, and zeros elsewhere.

        Where zeros are in the file, these are tiles of its array, each written once.
        """
        field, number = part["cells"]["field"], part["cells"]["level"]
        level = self._description["cells"]["levels"][number]
        order = level["order"]
        place = [order.index(d) for d in range(len(order))]
        stored = self._cells.boxes(number)
        boxes = (stored - np.array(level["start"]))[:, :, place]

        def read(index: int) -> np.ndarray:
            values = self._cells.read_box(number, index, field)
            sides = stored[index, 1] - stored[index, 0]
            return values.reshape(sides[::-1]).transpose().transpose(place)  # x first, then theirs

        shape = part["shape"]
        covered = int((boxes[:, 1] - boxes[:, 0]).prod(axis=1).sum())
        is_partial = covered < int(np.prod(shape))
        if not (is_partial and (level["are_others_zero"] or self._is_hdf5)):
            for index, (low, _) in enumerate(boxes):
                yield low.tolist(), read(index)
            return
        side = round((SLAB_BYTES // 16) ** (1 / len(shape)))
        for start, sides in tiles_of([0] * len(shape), shape, side):
            tile = np.zeros(sides, part["dtype"])
            for index, own, theirs in overlaps(boxes, start, sides):
                tile[own] = read(index)[theirs]
            yield list(start), tile

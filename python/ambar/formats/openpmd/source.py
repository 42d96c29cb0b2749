"""Reading openPMD series: the iterations of files, their descriptions, and their values."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar.formats.openpmd.description import (
    SCALAR,
    attributes_of,
    component_of,
    components_of,
    describe_records,
    encoded,
    value_of,
)
from ambar.formats.openpmd.files import BP_SUFFIXES, openpmd_api, reading
from ambar.formats.openpmd.grids import Corners

SLAB_BYTES = 32 << 20
"""Bytes of values that are read in one call."""
_OPTIONS = {"verify_homogeneous_extents": False}
"""Options of series: meshes whose components differ in shape are not left out."""
_OF_STEPS = ("snapshot", "closed")
"""Attributes that openpmd_api adds to iterations in steps of ADIOS2."""


class IterationReader:
    """An open iteration of a file: its description, and its values.

    Parameters
    ----------
    path
        The file.
    series, number
        The open series of openpmd_api, and the number of the iteration.
    """

    def __init__(self, path: Path, series: Any, number: int) -> None:
        self.path, self.number = path, number
        self._series, self._iteration = series, series.iterations[number]
        self._lock = Lock()  # openpmd_api queues reads in the series
        with reading(path):
            self.description = self._describe()

    def _describe(self) -> dict[str, Any]:
        series, iteration = self._series, self._iteration
        own = attributes_of(series)
        # Variable-based iterations share one group, whose attributes are those of the iteration.
        is_shared = value_of(own, "iterationEncoding") == "variableBased"
        return {
            "version": 1,
            "file": self.path.name,
            "number": self.number,
            "series": own,
            "iterations": {} if is_shared else attributes_of(series.iterations, _OF_STEPS),
            "iteration": attributes_of(iteration, _OF_STEPS),
            "meshes": {
                "attributes": attributes_of(iteration.meshes),
                "records": describe_records(
                    {name: iteration.meshes[name] for name in iteration.meshes}
                ),
            },
            "particles": {
                "attributes": attributes_of(iteration.particles),
                "species": {
                    name: self._describe_species(iteration.particles[name])
                    for name in iteration.particles
                },
            },
        }

    def _describe_species(self, species: Any) -> dict[str, Any]:
        patches = species.particle_patches
        return {
            "attributes": attributes_of(species),
            "records": describe_records({name: species[name] for name in species}),
            "patches": {
                "attributes": attributes_of(patches),
                "records": {name: self._describe_patches(patches[name]) for name in patches},
            },
        }

    def _describe_patches(self, record: Any) -> dict[str, Any]:
        parts = components_of(record)
        is_scalar = SCALAR in parts
        described = {}
        for name, part in parts.items():
            values = part.load()
            self._series.flush()
            described[name] = {
                "dtype": np.dtype(part.dtype).name,
                "attributes": {} if is_scalar else attributes_of(part),
                "values": encoded(np.atleast_1d(values)),
            }
        return {"attributes": attributes_of(record), "components": described}

    def close(self) -> None:
        """Release what openpmd_api holds of the iteration."""
        self._iteration.close()

    def mesh(self, mesh: str, component: str) -> Any:
        """Return the object of a component of a mesh."""
        return component_of(self._iteration.meshes[mesh], component)

    def record(self, species: str, record: str, component: str) -> Any:
        """Return the object of a component of a record of particles."""
        return component_of(self._iteration.particles[species][record], component)

    def load(self, part: Any, corners: Corners) -> np.ndarray:
        """Return the values of a part of a component; of a constant one as many equal values.

        Raises CorruptError if the file is damaged.
        """
        start, extent = corners
        if part.constant:
            return np.full(extent, part.get_attribute("value"), np.dtype(part.dtype))
        with self._lock, reading(self.path):
            values = part.load_chunk(list(start), list(extent))
            self._series.flush()
        return np.asarray(values)

    def pieces(
        self, part: Any, chunks: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield a component in pieces of whole chunks: start and values, `SLAB_BYTES` at most."""
        shape = [int(side) for side in part.shape]
        sides = piece_sides(shape, chunks, np.dtype(part.dtype).itemsize)
        for start in itertools.product(*map(range, [0] * len(shape), shape, sides)):
            ends = zip(start, sides, shape, strict=True)
            extent = tuple(min(side, length - first) for first, side, length in ends)
            yield start, self.load(part, (start, extent))

    def chunks(self, part: Any) -> list[Corners]:
        """Return the chunks of a component in the file, as start and shape."""
        whole = (tuple([0] * len(part.shape)), tuple(map(int, part.shape)))
        if part.constant:
            return [whole]
        with self._lock, reading(self.path):
            table = [
                (tuple(map(int, one.offset)), tuple(map(int, one.extent)))
                for one in part.available_chunks()
            ]
        return table or [whole]


def piece_sides(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> list[int]:
    """Return the sides of pieces of an array that are read in one call.

    They are multiples of those of the chunks, or the whole side, of the last dimensions first.
    """
    sides = [max(min(pair), 1) for pair in zip(chunks, shape, strict=True)]
    for axis in reversed(range(len(shape))):
        times = max(SLAB_BYTES // (math.prod(sides) * itemsize), 1)
        sides[axis] = max(min(sides[axis] * times, shape[axis]), 1)
    return sides


@contextmanager
def open_series(path: Path) -> Iterator[Any]:
    """Yield the open series of a file; raises CorruptError if it is not readable as openPMD."""
    io = openpmd_api()
    with reading(path):
        series = io.Series(str(path), io.Access.read_only, json.dumps(_OPTIONS))
    try:
        yield series
    finally:
        series.close()


def iterations_of(path: Path) -> dict[int, list[str]]:
    """Return the numbers of the iterations of a file, and the names of the meshes of each.

    Raises
    ------
    CorruptError
        If the file is damaged, or has no iteration.
    """
    with open_series(path) as series, reading(path):
        found = {}
        for number in series.iterations:
            iteration = series.iterations[number]
            iteration.open()
            found[int(number)] = sorted(iteration.meshes)
            iteration.close()
    if not found:
        raise _core.CorruptError(
            f"{path}: expected at least one iteration, found none; wait until the simulation has "
            "written one"
        )
    return found


def is_file_based(path: Path) -> bool:
    """Return whether a file is one of a series with a file for each iteration."""
    with open_series(path) as series, reading(path):
        return bool(value_of(attributes_of(series), "iterationEncoding") == "fileBased")


class SeriesCheck:
    """Checks that iterations have different numbers and the same meshes.

    Parameters
    ----------
    meshes
        The number of an iteration and the names of its meshes; by default of the first.
    """

    def __init__(self, meshes: tuple[int, Sequence[str]] | None = None) -> None:
        self._first = meshes
        self._paths: dict[int, Path] = {}

    def add(self, path: Path, iterations: Mapping[int, Sequence[str]]) -> None:
        """Add the iterations of a file; raises ValueError if they do not fit."""
        for number, meshes in iterations.items():
            if number in self._paths:
                raise _core.InvalidError(
                    f"{path}: expected other iterations than in {self._paths[number]}, found "
                    f"iteration {number} in both; convert each series to a store of its own"
                )
            self._first = self._first or (number, meshes)
            first, expected = self._first
            if list(meshes) != list(expected):
                raise _core.InvalidError(
                    f"{path}: expected the meshes of iteration {first} "
                    f"({', '.join(expected) or 'none'}), found in iteration {number} "
                    f"{', '.join(meshes) or 'none'}; convert the files of each set of meshes to a "
                    "store of its own"
                )
        self._paths |= dict.fromkeys(iterations, path)


def datasets_left_out(path: Path, description: Mapping[str, Any]) -> list[str]:
    """Return the datasets of an HDF5 file, at its root or in an iteration, that are not openPMD's.

    Those of files of ADIOS2 are not known.
    """
    if path.is_dir() or path.suffix in BP_SUFFIXES:
        return []
    h5py = require("h5py", purpose="openPMD in HDF5", install="ambar[openpmd]")
    known: set[str] = set()

    def add(owner: str, records: Mapping[str, Any]) -> None:
        for name, record in records.items():
            parts = record["components"]
            known.update(f"{owner}/{name}" + f"/{part}" * (part != SCALAR) for part in parts)

    base = f"data/{description['number']}"
    series = description["series"]
    meshes = str(value_of(series, "meshesPath", "meshes/")).strip("/")
    particles = str(value_of(series, "particlesPath", "particles/")).strip("/")
    add(f"{base}/{meshes}", description["meshes"]["records"])
    for name, species in description["particles"]["species"].items():
        add(f"{base}/{particles}/{name}", species["records"])
        add(f"{base}/{particles}/{name}/particlePatches", species["patches"]["records"])
    found: list[str] = []

    def visit(_: str, node: Any) -> None:
        name = node.name.strip("/")
        if isinstance(node, h5py.Dataset) and name not in known:
            found.append(name)

    with h5py.File(path) as file:
        for name in (*(name for name in file if name != "data"), base):
            node = file[name]
            visit("", node)
            if isinstance(node, h5py.Group):
                node.visititems(visit)
    return found

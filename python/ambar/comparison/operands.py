"""Operands of a comparison: cells of a snapshot or arrays of a store, read field by field."""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar._util.text import plural
from ambar.comparison.bounds import recorded_bounds, stored_bound
from ambar.comparison.error_metrics import windows
from ambar.comparison.rows import (
    BOOKKEEPING,
    RowComparison,
    compare_rows,
    stored_attributes,
    table_components,
)
from ambar.kinds.registry import Kind, kind_of_sources, open_path
from ambar.mesh.mesh import Mesh
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import blocks_of, description_of, field_entries
from ambar.mesh.storage.extents import lattice_points
from ambar.mesh.storage.references import components_of, references_in
from ambar.snapshot.amr import Amr
from ambar.snapshot.field_names import CELL_COMPONENTS
from ambar.snapshot.regions import AXES
from ambar.snapshot.snapshot import Snapshot
from ambar.store.error_bounds import PartBound
from ambar.store.store import Store
from ambar.store.urls import is_url


class Level(NamedTuple):
    """The cells of a level."""

    level: int
    rows: np.ndarray
    """The rows of the cells."""
    window: np.ndarray
    """The window of each cell, as `error_metrics.windows` numbers them."""


class Grid(NamedTuple):
    """A field on a covering grid."""

    level: int
    values: np.ndarray
    cell_size: list[float]


class Operand(ABC):
    """One version of the data that are compared: fields as flat arrays."""

    location: str
    """The path or URL, for messages."""
    ndim: int
    """The number of dimensions of the cells."""
    fields: list[str]
    """The names of the fields."""
    tables: Sequence[str] = ()
    """Components of rows: particles, sinks, clumps."""
    datasets: Sequence[str] = ()
    """The names of the datasets of a collection."""
    not_comparable: Sequence[str] = ()
    """The names of arrays that cannot be compared."""
    is_stored: bool = True
    """Whether the values are in a store, and not in files of other programs."""

    def compare_rows(
        self,
        other: Operand,  # noqa: ARG002 - for operands that have rows
        component: str,
        bounds: Sequence[tuple[str, str]],  # noqa: ARG002
    ) -> RowComparison:
        """Compare a component of rows that both have, within bounds by target."""
        raise _core.InvalidError(f"{self.location} has no {component}")

    def named(self, name: str) -> list[str]:
        """Return the fields that a name represents."""
        return [name] if name in self.fields else []

    def names_without(self, other: Operand) -> list[str]:
        """Return the fields and components that another operand lacks."""
        others = {*other.fields, *other.tables, *other.not_comparable, *BOOKKEEPING}
        return [name for name in (*self.fields, *self.tables) if name not in others]

    @abstractmethod
    def values(self, name: str) -> np.ndarray:
        """Return a field's values, flat."""

    def pairs(self, other: Operand, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return a field's values in both operands, in parts of one dtype: at least one part."""
        return [(self.values(name), other.values(name))]

    @abstractmethod
    def bound(self, name: str) -> float | str | None:
        """Return the bound a field was written with: 0 if it is lossless, None if unknown.

        An absolute bound is a number, all others are strings.
        """

    def recorded_bounds(self, name: str) -> list[PartBound]:  # noqa: ARG002 - for subclasses
        """Return the bounds that a field was written with; an empty list if they are unknown."""
        return []

    @abstractmethod
    def bytes(self, name: str) -> int:
        """Return the bytes of a field in the store, or in memory for files of other programs."""

    @abstractmethod
    def match(self, other: Operand) -> np.ndarray | None:
        """Return the permutation that brings the other's values into this order, if they differ.

        Raises ValueError if the two cannot be compared.
        """

    def levels(self) -> Iterable[Level]:
        """Return the levels of the cells; none if values have no levels."""
        return ()

    def cell_levels(self) -> np.ndarray | None:
        """Return the level of each value; None if values have no levels."""
        return None

    def centres(self) -> Sequence[np.ndarray]:
        """Return the coordinates of all values; an empty list if values have no coordinates."""
        return ()

    def grid(self, name: str, side: int) -> Grid:  # noqa: ARG002 - for operands with cells
        """Return the finest covering grid of a field with at most `side` cells a side."""
        raise _core.InvalidError(f"{self.location} has no cells: {name} has no covering grid")

    def _different_kind(self, other: Operand, expected: str) -> _core.InvalidError:
        """Return the error for an operand of another kind."""
        return _core.InvalidError(
            f"{self.location} and {other.location} are of different kinds: expected {expected} in "
            "both"
        )


def operand_of(
    path: str | os.PathLike[str],
    output: int | None,
    threads: int | None,
    storage_options: Mapping[str, object] | None = None,
) -> Operand:
    """Return the operand of a path or URL. Raises the errors of `ambar.open`."""
    try:
        kind, opened = open_path(path, storage_options if is_url(path) else None)
    except _core.InvalidError as error:
        source = None if is_url(path) else kind_of_sources([path])
        if source is None:
            raise
        if message := _folder_of_outputs(path, source):
            raise _core.InvalidError(message) from error
        name = shlex.quote(os.fspath(path))
        raise _core.InvalidError(
            f"{path}: expected a store, a plotfile or a RAMSES output to compare, found other "
            f"files; convert them without an error bound, and compare the stores: ambar convert "
            f"{name} exact.ambar"
        ) from error
    if kind.compare is None:
        raise _core.InvalidError(f"{path}: the kind {kind.name!r} cannot be compared")
    operand: Operand = kind.compare(opened, output, threads)
    return operand


def _folder_of_outputs(path: str | os.PathLike[str], kind: Kind) -> str | None:
    """Return the message for a folder of several outputs; None for other paths."""
    outputs = [] if kind.outputs is None else kind.outputs([path])
    if not outputs:
        return None
    name = shlex.quote(os.fspath(path))
    return (
        f"{path}: expected one output to compare, found a folder with "
        f"{plural(len(outputs), 'output')} of the kind {kind.name!r}; choose one, such as "
        f"{outputs[0]}, and of a series the output of the same number: ambar compare "
        f"{shlex.quote(str(outputs[0]))} OTHER --output NUMBER. `ambar info {name}` lists them"
    )


class Cells(Operand):
    """The leaf cells of a snapshot in reading order, and its particles."""

    def __init__(self, snapshot: Snapshot, threads: int | None) -> None:
        self._snapshot = snapshot
        self.tables = table_components(snapshot)
        self._has_cells = any(name in snapshot.components for name in CELL_COMPONENTS)
        self._threads = threads
        self.location = snapshot.location
        self.is_stored = snapshot._stored_at is not None
        self.ndim = snapshot.info.ndim
        self.fields = list(self._amr.fields) if self._has_cells else []

    @cached_property
    def _amr(self) -> Amr:
        return self._snapshot.amr

    def compare_rows(
        self, other: Operand, component: str, bounds: Sequence[tuple[str, str]]
    ) -> RowComparison:
        """Compare a component of rows that both have, within bounds by target."""
        if not isinstance(other, Cells):
            return super().compare_rows(other, component, bounds)
        return compare_rows(self._snapshot, other._snapshot, component, bounds, self._threads)

    @cached_property
    def coordinates(self) -> list[np.ndarray]:
        """Each cell's level, and its indices at that level."""
        names = ["level", *(f"i{axis}" for axis in AXES[: self.ndim])]
        cells = self._amr.read(names, threads=self._threads)
        return [cells[name] for name in names]

    def values(self, name: str) -> np.ndarray:
        """Return a field's values."""
        values: np.ndarray = self._amr.read([name], threads=self._threads)[name]
        return values

    def bound(self, name: str) -> float | str | None:
        """Return the bound in the store, 0 without one; None for files of other programs."""
        return stored_bound(self._attributes, name)

    @cached_property
    def _attributes(self) -> dict[str, Any] | None:
        return stored_attributes(self._snapshot, "amr")

    def recorded_bounds(self, name: str) -> list[PartBound]:
        """Return the bounds that a field was written with."""
        return recorded_bounds(self._attributes, name)

    def cell_levels(self) -> np.ndarray:
        """Return each cell's level."""
        return self.coordinates[0]

    def centres(self) -> Sequence[np.ndarray]:
        """Return the coordinates of the cells' centres."""
        cells = self._amr.read([*AXES[: self.ndim]], threads=self._threads)
        return [cells[name] for name in AXES[: self.ndim]]

    def bytes(self, name: str) -> int:
        """Return the bytes of the arrays in the store, or of the values of all cells."""
        stored = self._amr._stored
        if stored is not None and (arrays := stored.arrays(name)):
            return sum(array.stored_bytes for array in arrays)
        return self._cells * self._amr.dtype(name).itemsize

    @cached_property
    def _cells(self) -> int:
        """The number of cells, with covered cells of patches, which a plotfile contains."""
        if self._amr.layout != "patches":
            return len(self._amr)
        boxes = [self._amr.boxes(level) for level in range(self._amr.levels[1] + 1)]
        return sum(int(np.diff(box, axis=1).prod(axis=2).sum()) for box in boxes)

    @cached_property
    def _levels(self) -> list[Level]:
        level, *indices = self.coordinates
        numbers = [(int(number), np.flatnonzero(level == number)) for number in np.unique(level)]
        return [
            Level(number, rows, windows([index[rows] for index in indices]))
            for number, rows in numbers
        ]

    def levels(self) -> Iterable[Level]:
        """Return the levels that have leaf cells."""
        return self._levels

    def match(self, other: Operand) -> np.ndarray | None:
        """Match cells by level and position."""
        if not isinstance(other, Cells) or other.ndim != self.ndim:
            raise self._different_kind(other, f"cells of {self.ndim} dimensions")
        if not (self._has_cells and other._has_cells):
            return None
        mine, theirs = self.coordinates, other.coordinates
        same_count = len(mine[0]) == len(theirs[0])
        if same_count and all(map(np.array_equal, mine, theirs)):
            return None
        order, their_order = np.lexsort(mine[::-1]), np.lexsort(theirs[::-1])
        if not same_count or not all(
            np.array_equal(a[order], b[their_order]) for a, b in zip(mine, theirs, strict=True)
        ):
            advice = (
                "; to compare a part with the whole, convert the same region or levels of the "
                "whole first, without an error bound"
            )
            raise _core.InvalidError(
                f"{self.location} and {other.location} have different cells ({len(mine[0]):,} and "
                f"{len(theirs[0]):,} leaf cells); expected two versions of the same data"
                f"{'' if same_count else advice}"
            )
        matched = np.empty_like(order)
        matched[order] = their_order
        return matched

    def grid(self, name: str, side: int) -> Grid:
        """Return the finest covering grid of the whole box with at most `side` cells a side."""
        box = np.array(self._snapshot.info.box_size[: self.ndim])
        level = self._amr.levels[1]
        while level > 0 and (box / self._amr.cell_size(level) > side * (1 + 1e-9)).any():
            level -= 1
        grid = self._amr.grid(name, level=level, threads=self._threads)
        values = grid.transpose(*AXES[: self.ndim]).to_numpy()
        return Grid(level, values, list(self._amr.cell_size(level)))


class Arrays(Operand):
    """The arrays of a store that has no cells."""

    def __init__(self, store: Store, threads: int | None) -> None:
        self._store = store
        self._threads = threads
        self.location = store.location
        self.ndim = 1
        self.fields = list(store)

    def values(self, name: str) -> np.ndarray:
        """Return an array's values, flat."""
        return self._store._array(name).read(threads=self._threads).reshape(-1)

    def bound(self, name: str) -> float | str | None:
        """Return the error bound of the array."""
        return self._store._array(name).error_bound or 0.0

    def bytes(self, name: str) -> int:
        """Return an array's stored bytes."""
        return self._store._array(name).stored_bytes

    def match(self, other: Operand) -> np.ndarray | None:
        """Check that the other operand has arrays of the same shapes."""
        if not isinstance(other, Arrays):
            raise self._different_kind(other, "arrays")
        for name in self.fields:
            shape = self.shape(name)
            if name in other.fields and other.shape(name) != shape:
                raise _core.InvalidError(
                    f"{name} has shape {shape} in {self.location} and {other.shape(name)} in "
                    f"{other.location}; expected two versions of the same data"
                )
        return None

    def shape(self, name: str) -> tuple[int, ...]:
        """Return an array's shape."""
        return self._store._array(name).shape


_POINT_KEYS = ("points", "x", "y", "z")
_CELL_KEYS = (
    *("cells", "verts", "lines", "polygons", "strips", "faces", "cell_faces"),
    "types",
)
_FRAME_KEYS = ("type", "extent", "origin", "spacing", "direction")


class MeshArrays(Arrays):
    """The arrays of a mesh by their names, its points, and the corners and types of its cells.

    An array whose name is not unique has its block and its association before the name, as far as
    needed: ``inlet/point_data/T``. Values are in the order of the mesh that was written. Cells are
    not comparable if the mesh was reordered, which changes the corners of cells.
    """

    def __init__(self, mesh: Mesh, threads: int | None) -> None:
        super().__init__(mesh.store, threads)
        about = description_of(mesh.store, mesh.path)
        self._reader = ArrayReader(mesh.store, mesh.path, about.get("packed"), threads)
        self._parts = dict(_parts_of(about))
        self._entries: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {}
        self._named: dict[str, list[str]] = {}
        found = list(field_entries(about))
        names = [_names_of(about, *one) for one in found]
        counts = Counter(name for each in names for name in dict.fromkeys(each))
        for each, one in zip(names, found, strict=True):
            full = next((name for name in each if counts[name] == 1), each[-1])
            self._entries[full] = one
            for name in dict.fromkeys(each):
                self._named.setdefault(name, []).append(full)
        self._geometry = {
            name: each
            for name, each in (("points", _POINT_KEYS), ("cells", _CELL_KEYS))
            if name not in self._entries
            and any(key in part for key in each for part in self._parts.values())
        }
        if any("order" in part for part in self._parts.values()):
            self.not_comparable = [name for name in ("cells",) if self._geometry.pop(name, None)]
        self.fields = [*self._geometry, *self._entries]

    def named(self, name: str) -> list[str]:
        """Return the array of a full name, or the arrays of a name in all blocks."""
        return [name] if name in self.fields else self._named.get(name, [])

    def values(self, name: str) -> np.ndarray:
        """Return the values of an array, or the coordinates of points, flat."""
        if name in self._geometry:
            return self._geometry_of(name)
        key, entry, block = self._entries[name]
        values = self._reader.get(entry, name, ndim=(1, 2, 3, 4))
        return self._unsorted(values, key.removesuffix("_data"), block).reshape(-1)

    def bound(self, name: str) -> float | str | None:
        """Return the error bound of the array; points, cells and small arrays are lossless."""
        if name in self._geometry:
            return 0.0
        entry = self._entries[name][1]
        # Components may have different bounds: the largest one counts.
        bounds = [self._bound_of(part) for part in components_of(entry) or [entry]]
        numbers = [bound for bound in bounds if not isinstance(bound, str)]
        others = {bound for bound in bounds if isinstance(bound, str)}
        if not others:
            return max(numbers)
        return others.pop() if len(others) == 1 and not any(numbers) else None

    def bytes(self, name: str) -> int:
        """Return the stored bytes of an array."""
        if name not in self._geometry:
            return self._bytes(self._entries[name][1])
        keys = self._geometry[name]
        parts = self._parts.values()
        return sum(
            self._bytes(each)
            for part in parts
            for key in keys
            for each in references_in(part.get(key))
        )

    def shape(self, name: str) -> tuple[int, ...]:
        """Return an array's shape; () for points and cells, of which only the number counts."""
        return () if name in self._geometry else self._reader.shape_of(self._entries[name][1])

    def match(self, other: Operand) -> np.ndarray | None:
        """Check that the other operand is a mesh of the same blocks, types, grids and shapes."""
        if isinstance(other, MeshArrays):
            mine, theirs = (
                {at: [part.get(key) for key in _FRAME_KEYS] for at, part in side._parts.items()}
                for side in (self, other)
            )
            if mine != theirs:
                raise _core.InvalidError(
                    f"{self.location} and {other.location} have different blocks, types or grids; "
                    "expected two versions of the same mesh"
                )
        return super().match(other)

    def _bound_of(self, reference: dict[str, Any]) -> float | str:
        at = self._reader.stored_at(reference)
        bound = (
            self._store._array(self._reader.path_of(at)).error_bound
            if isinstance(at, str)
            else None
        )
        return bound or 0.0

    def _bytes(self, reference: dict[str, Any]) -> int:
        if (parts := components_of(reference)) is not None:
            return sum(map(self._bytes, parts))
        return self._reader.storage_of(reference).stored_bytes

    def _geometry_of(self, name: str) -> np.ndarray:
        found = [np.zeros(0)]
        for block, part in self._parts.items():
            for key in self._geometry[name]:
                each = [
                    self._reader.get(reference, f"{name} {key}", ndim=(1, 2, 4))
                    for reference in references_in(part.get(key))
                ]
                if key == "points" and len(each) == 3:
                    each = [lattice_points(*each)]
                if key == "points" and each and each[0].ndim == 2:
                    each = [self._unsorted(each[0], "point", block)]
                found += [values.reshape(-1) for values in each]
        return np.concatenate(found)

    def _unsorted(self, values: np.ndarray, of: str, block: tuple[int, ...]) -> np.ndarray:
        """Return values on points or cells in the order before the mesh was sorted."""
        reference = (self._parts[block].get("order") or {}).get(f"{of}s")
        if reference is None:
            return values
        order = self._reader.get(reference, "order", ndim=(1,), kinds="i")
        found = np.empty_like(values)
        found[order] = values
        return found


def _parts_of(
    described: Any, block: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], dict[str, Any]]]:
    """Yield the path of numbers and the description of a mesh and of all its blocks."""
    if isinstance(described, dict):
        yield block, described
        for number, (_, inner) in enumerate(blocks_of(described)):
            yield from _parts_of(inner, (*block, number))


def _names_of(
    about: dict[str, Any], key: str, entry: dict[str, Any], block: tuple[int, ...]
) -> list[str]:
    """Return the names of an array, the shortest one first."""
    name, described, prefix = str(entry.get("name")), about, ""
    for number in block:
        known, described = blocks_of(described)[number]
        prefix += f"{number if known is None else known}/"
    return [name, f"{key}/{name}", f"{prefix}{name}", f"{prefix}{key}/{name}"]

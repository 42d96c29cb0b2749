"""The sides of a comparison: cells of a snapshot, or arrays of a store, read field by field."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ambar import _core
from ambar.amr import AXES, Amr
from ambar.collection import Collection
from ambar.measures import windows
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.opening import open as open_path
from ambar.series import Series
from ambar.snapshot import Snapshot
from ambar.store import Store

Rows = slice | np.ndarray


class Side(ABC):
    """What is compared with another: fields, as flat arrays of cells."""

    location: str
    ndim: int
    fields: list[str]

    @abstractmethod
    def values(self, name: str) -> np.ndarray:
        """Return a field's values, flat."""

    @abstractmethod
    def bound(self, name: str) -> float | None:
        """Return the absolute bound a field was written with: 0 for none, None if nobody says."""

    @abstractmethod
    def bytes(self, name: str) -> int:
        """Return the bytes a field takes."""

    @abstractmethod
    def levels(self) -> Iterator[tuple[int | None, Rows]]:
        """Yield each level and the rows of its cells."""

    @abstractmethod
    def windows(self, level: int | None) -> np.ndarray | None:
        """Return the windows of a level's cells, as `ambar.measures.windows` counts them."""

    @abstractmethod
    def match(self, other: Side) -> np.ndarray | None:
        """Return the order that puts the other's values as these are; None if they are.

        Raises InvalidError where the two cannot be compared.
        """

    @abstractmethod
    def grid(self, name: str, side: int) -> tuple[int, np.ndarray, list[float]]:
        """Return a level whose covering grid has at most `side` cells a side, the grid, a cell."""


def side_of(path: str | os.PathLike[str], output: int | None, threads: int | None) -> Side:
    """Open a side."""
    opened = open_path(path)
    if isinstance(opened, Collection):
        raise _core.InvalidError(
            f"{path} is a collection: compare what open_collection reads of it, as arrays"
        )
    if isinstance(opened, MeshSeries):
        raise _core.InvalidError(
            f"{path} is a series of meshes: compare what ambar.open(...)[number].read() returns"
        )
    if isinstance(opened, Series):
        if output is None and len(opened) != 1:
            raise _core.InvalidError(
                f"{path} is a series of {len(opened)} outputs: say which one, by its number"
            )
        opened = opened[0] if output is None else opened.output(output)
    if isinstance(opened, Snapshot):
        return Cells(opened, threads)
    return Arrays(opened.store if isinstance(opened, Mesh) else opened, threads)


class Cells(Side):
    """The leaf cells of a snapshot, in the order they are read in."""

    def __init__(self, snapshot: Snapshot, threads: int | None) -> None:
        self._amr: Amr = snapshot.amr
        self._threads = threads
        self._info = snapshot.info
        self._stored_at = snapshot.stored_at
        self.location = snapshot.location
        self.ndim = self._amr.ndim
        self.fields = list(self._amr.fields)

    @cached_property
    def places(self) -> list[np.ndarray]:
        """Each cell's level, and its indices at that level."""
        names = ["level", *(f"i{axis}" for axis in AXES[: self.ndim])]
        cells = self._amr.cells(names, threads=self._threads)
        return [cells[name] for name in names]

    def values(self, name: str) -> np.ndarray:
        """Return a field's values."""
        values: np.ndarray = self._amr.cells([name], threads=self._threads)[name]
        return values

    def bound(self, name: str) -> float | None:
        """Return what the store says; nothing differs where it says nothing."""
        if self._stored_at is None:
            return None
        store, path = self._stored_at
        own = store.ambar_attributes(f"{path.rstrip('/')}/amr")
        return float(own.get("error_bounds", {}).get(name, 0.0))

    def bytes(self, name: str) -> int:
        """Return the bytes of a store's arrays of the field; else of all cells' values."""
        if self._stored_at is not None:
            store, path = self._stored_at
            start = f"{path.strip('/')}/amr/".lstrip("/")
            arrays = [one for one in store if _is_field(one, start, name)]
            if arrays:
                return sum(store[one].stored_bytes for one in arrays)
        return self._cells * self._amr.dtype(name).itemsize

    @cached_property
    def _cells(self) -> int:
        """All cells; of patches the covered ones too, for a plotfile holds them."""
        if self._amr.layout != "patches":
            return len(self._amr)
        total, level = 0, 0
        while level <= self._amr.levels[1]:
            boxes = self._amr.boxes(level)
            total += int((boxes[:, 1] - boxes[:, 0] + 1).prod(axis=1).sum())
            level += 1
        return total

    @cached_property
    def _rows(self) -> dict[int, np.ndarray]:
        level = self.places[0]
        return {int(one): np.flatnonzero(level == one) for one in np.unique(level)}

    def levels(self) -> Iterator[tuple[int | None, Rows]]:
        """Yield each level that has leaf cells."""
        yield from self._rows.items()

    @cached_property
    def _windows(self) -> dict[int, np.ndarray]:
        return {
            level: windows([place[rows] for place in self.places[1:]])
            for level, rows in self._rows.items()
        }

    def windows(self, level: int | None) -> np.ndarray | None:
        """Return the windows of a level's cells."""
        return None if level is None else self._windows[level]

    def match(self, other: Side) -> np.ndarray | None:
        """Match cells by level and place."""
        if not isinstance(other, Cells) or other.ndim != self.ndim:
            raise _core.InvalidError(
                f"{self.location} and {other.location} are not of the same kind: one has no cells, "
                "or in other dimensions"
            )
        mine, theirs = self.places, other.places
        same_count = len(mine[0]) == len(theirs[0])
        if same_count and all(map(np.array_equal, mine, theirs)):
            return None
        order, their_order = np.lexsort(mine[::-1]), np.lexsort(theirs[::-1])
        if not same_count or not all(
            np.array_equal(a[order], b[their_order]) for a, b in zip(mine, theirs, strict=True)
        ):
            raise _core.InvalidError(
                f"{self.location} and {other.location} have other cells ({len(mine[0]):,} and "
                f"{len(theirs[0]):,} leaf cells): these are not two versions of the same data"
            )
        matched = np.empty_like(order)
        matched[order] = their_order
        return matched

    def grid(self, name: str, side: int) -> tuple[int, np.ndarray, list[float]]:
        """Return the finest grid that fits, from the box's whole extent."""
        level = self._amr.levels[1]
        while level > 0 and any(
            length / cell > side * (1 + 1e-9)
            for length, cell in zip(self._info.box_size, self._amr.cell_size(level), strict=False)
        ):
            level -= 1
        grid = self._amr.grid(name, level, threads=self._threads).to_numpy()
        return level, grid, list(self._amr.cell_size(level)[: self.ndim])


class Arrays(Side):
    """The arrays of numbers in a store that has no cells."""

    def __init__(self, store: Store, threads: int | None) -> None:
        self._store = store
        self._threads = threads
        self.location = store.location
        self.ndim = 1
        self.fields = [path for path in store if store[path].dtype.kind in "fiu"]

    def values(self, name: str) -> np.ndarray:
        """Return an array's values, flat."""
        return self._store[name].read(threads=self._threads).reshape(-1)

    def bound(self, name: str) -> float | None:
        """Return the bound that the array's codec says."""
        return self._store[name].error_bound or 0.0

    def bytes(self, name: str) -> int:
        """Return an array's stored bytes."""
        return self._store[name].stored_bytes

    def levels(self) -> Iterator[tuple[int | None, Rows]]:
        """Yield everything: arrays have no levels."""
        yield None, slice(None)

    def windows(self, level: int | None) -> np.ndarray | None:  # noqa: ARG002
        """Return nothing: similarity is a matter of places."""
        return None

    def match(self, other: Side) -> np.ndarray | None:
        """Check that the other side has arrays, of the same shapes."""
        if not isinstance(other, Arrays):
            raise _core.InvalidError(
                f"{self.location} and {other.location} are not of the same kind: one has no cells"
            )
        for name in self.fields:
            shape = self.shape(name)
            if name in other.fields and other.shape(name) != shape:
                raise _core.InvalidError(
                    f"{name} has the shape {shape} in {self.location} and {other.shape(name)} in "
                    f"{other.location}: these are not two versions of the same data"
                )
        return None

    def shape(self, name: str) -> tuple[int, ...]:
        """Return an array's shape."""
        return self._store[name].shape

    def grid(self, name: str, side: int) -> tuple[int, np.ndarray, list[float]]:  # noqa: ARG002
        """Raise: only cells make a covering grid."""
        raise _core.InvalidError(f"{self.location} has no cells: {name} has no covering grid")


def _is_field(path: str, start: str, name: str) -> bool:
    """Whether `path` is an array of the field below `start`, of a tree or a level of patches."""
    own = path.removeprefix(start).split("/")
    return path.startswith(start) and own[-1] == name and "index" not in own[:-1]

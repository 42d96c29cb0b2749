"""The catalogue: the names of the datasets in order, and their families and rows."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from difflib import get_close_matches

import numpy as np

from ambar import _core
from ambar.collection.storage import tails
from ambar.collection.storage.family import Family
from ambar.collection.storage.name_index import NameIndex
from ambar.collection.storage.records import are_names, check_name
from ambar.collection.storage.row_cache import blocks_of
from ambar.store.array import Array
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "datasets"
NAMES = f"{GROUP}/name"
PLACES = f"{GROUP}/place"

MAX_NAMES = 64
"""Maximum number of names for each stored byte: this bounds the memory of hostile shapes."""
MAX_TAIL = 1024
"""Maximum number of names in a tail; the index has all others."""

_NAME_CHUNK, _PLACE_CHUNK = 1024, 8192
_CHUNKS = 64
"""Chunks of a shard."""
_MAX_COMPARED = 10_000


class Catalogue:
    """Names of datasets, with their families and rows.

    Those of the arrays of a commit are read when they are asked for. Names that follow, in the
    tails of the arrays or without a commit, are in memory.
    """

    def __init__(
        self,
        location: str,
        families: Sequence[Family],
        reopen: Callable[[], Store],
        store: Store | None = None,
        runs: Sequence[int] = (),
    ) -> None:
        self._location = location
        self._families = families
        self._reopen = reopen
        # The last commit; None if it was not opened yet.
        self._store = store
        # The rows of the arrays of the store that are not in memory.
        self._base = 0
        # The names that follow, and their families and rows.
        self._names: list[str] = []
        self._positions: dict[str, int] = {}
        self._places = array("I")
        self._count = 0
        self._is_tail_unread = False
        # The rows of the arrays of the last commit of this writer; None if all must be rewritten.
        self._written: int | None = 0
        self._has_tail = False
        # Other places of rows of the store, and the positions of places to write again.
        self._moved: dict[int, tuple[int, int]] = {}
        self._changed: set[int] = set()
        self._all_names: list[str] | None = None
        self._index = NameIndex()
        if store is not None:
            self._open(store)
            self._index = NameIndex(store, runs, self._base)

    def _open(self, store: Store) -> None:
        """Get the numbers of rows; raises CorruptError if they are inconsistent."""
        names, places = tails.array_of(store, NAMES), tails.array_of(store, PLACES)
        shapes = names.shape, places.shape
        if (
            names.ndim != 1
            or names.type_name != "string"
            or (places.shape, places.type_name) != ((*names.shape, 2), "uint32")
            or len(names) > MAX_NAMES * names.stored_bytes
        ):
            raise _core.CorruptError(
                f"{store.location}: expected unique names and as many places, found "
                f"{names.type_name}{shapes[0]} of {names.stored_bytes} bytes in /{NAMES} and "
                f"{places.type_name}{shapes[1]} in /{PLACES}; restore the store from a copy"
            )
        self._base = self._written = len(store._array(NAMES))
        self._count = len(names)
        self._has_tail = self._is_tail_unread = self._count > self._base

    def _last(self) -> Store:
        if self._store is None:
            self._store = self._reopen()
            self._index.reopen(self._store)
        return self._store

    def committed(self) -> None:
        """Read from the new commit: it may have replaced files of a folder."""
        self._store = None

    def _array(self, path: str) -> Array:
        return tails.array_of(self._last(), path)

    def _row(self, path: str, position: int) -> np.ndarray:
        row: np.ndarray = blocks_of(self._last()).row(path, position)
        return row

    def _read_tail(self) -> None:
        """Read the tail; the index does not have its names."""
        if self._is_tail_unread:
            names = self._array(NAMES)[self._base :].tolist()
            self._set(names, self._checked(self._array(PLACES)[self._base :]))
            self._is_tail_unread = False

    def _set(self, names: list[str], places: np.ndarray) -> None:
        """Replace the names that are in memory."""
        positions = {name: at for at, name in enumerate(names, self._base)}
        if len(positions) < len(names):
            raise self._repeated()
        # Two threads may do this, with equal values.
        self._names, self._positions = names, positions
        self._places = array("I", places.astype(np.uint32).tobytes())
        self._count = self._base + len(names)

    def _repeated(self) -> _core.CorruptError:
        return _core.CorruptError(
            f"{self._location}: expected unique names, found one twice in /{NAMES}; restore the "
            "store from a copy"
        )

    def _checked(self, places: np.ndarray) -> np.ndarray:
        """Return places; raises CorruptError if one is outside of the families."""
        rows = np.array([family.rows for family in self._families], np.int64)
        family, row = places.T
        if not (family < len(rows)).all() or (row >= rows[family]).any():
            raise self._outside()
        return places

    def _outside(self) -> _core.CorruptError:
        return _core.CorruptError(
            f"{self._location}: /{PLACES} has a place outside of the {len(self._families)} "
            "families and their rows; restore the store from a copy"
        )

    def verify(self) -> None:
        """Raise CorruptError if names are not unique, places do not exist, or the index is wrong.

        The other methods check what they read.
        """
        self.places  # noqa: B018 - checks them
        names = self.names
        if self._base:
            self._index.check(names[: self._base])

    @property
    def names(self) -> list[str]:
        """The names in order; callers must not change the list."""
        self._read_tail()
        if not self._base:
            return self._names
        if self._all_names is None or len(self._all_names) != len(self):
            names = self._array(NAMES)[: self._base].tolist() + self._names
            if len(set(names)) < len(names):
                raise self._repeated()
            self._all_names = names
        return self._all_names

    def names_at(self, positions: np.ndarray) -> list[str]:
        """Return the names at some positions."""
        self._read_tail()
        if self._all_names is None and len(positions) < MAX_TAIL:
            return [self._name(position) for position in positions.tolist()]
        names = self.names
        return [names[position] for position in positions.tolist()]

    def _name(self, position: int) -> str:
        if position >= self._base:
            return self._names[position - self._base]
        name: str = self._row(NAMES, position).item()
        return name

    @property
    def places(self) -> np.ndarray:
        """The family and the row of each dataset: uint32 (datasets, 2)."""
        self._read_tail()
        following = np.array(self._places, np.uint32).reshape(-1, 2)
        if not self._base:
            return following
        places = self._checked(self._array(PLACES)[: self._base])
        for position, place in self._moved.items():
            places[position] = place
        return np.concatenate([places, following])

    def places_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the family and the row of some datasets: uint32 (positions, 2)."""
        if len(positions) >= MAX_TAIL:
            selected: np.ndarray = self.places[positions]
            return selected
        found = [self.place(position) for position in positions.tolist()]
        return np.array(found, np.uint32).reshape(-1, 2)

    def place(self, position: int) -> tuple[int, int]:
        """Return the family and the row of a dataset."""
        self._read_tail()
        if position >= self._base:
            at = 2 * (position - self._base)
            return self._places[at], self._places[at + 1]
        if position in self._moved:
            return self._moved[position]
        family, row = self._row(PLACES, position).tolist()
        if family >= len(self._families) or row >= self._families[family].rows:
            raise self._outside()
        return family, row

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return self._count

    def _find(self, name: str) -> int | None:
        self._read_tail()
        at = self._positions.get(name)
        if at is not None or not self._base:
            return at
        self._last()
        for position in self._index.positions(name):
            # Hashes of different names may be equal. Later positions are in memory.
            if position < self._base and self._name(position) == name:
                return position
        return None

    def position(self, name: str) -> int:
        """Return the position of a dataset.

        Raises KeyError if it does not exist, TypeError if the name is not a string.
        """
        if not isinstance(name, str):
            raise TypeError(
                f"{self._location}: expected the name of a dataset, found {name!r}; "
                "collection.names has the names by position, and read, to_xarray and to_dataframe "
                "accept positions and slices"
            )
        at = self._find(name)
        if at is None:
            compared = self._names
            if self._base:
                compared = self._array(NAMES)[:_MAX_COMPARED].tolist()
            raise _core.NotFoundError(
                f"{self._location}: no dataset {name!r} among {len(self):,}"
                f"{_similar(name, compared[:_MAX_COMPARED])}"
            )
        return at

    def add(self, name: str, family: int, row: int) -> None:
        """Add a dataset of a new name at the end."""
        self._read_tail()
        self._positions[name] = self._count
        self._names.append(name)
        self._places.extend((family, row))
        self._count += 1

    def count_new(self, names: Sequence[str]) -> int:
        """Return the number of leading names that are valid, new, and different."""
        self._read_tail()
        unique = set(names)
        if (
            len(unique) == len(names)
            and are_names(names)
            and not self._base
            and self._positions.keys().isdisjoint(unique)
        ):
            return len(names)
        seen: set[str] = set()
        for count, name in enumerate(names):
            if not are_names([name]) or name in seen or name in self:
                return count
            seen.add(name)
        return len(names)

    def add_many(self, names: Sequence[str], family: int, row: int) -> None:
        """Add datasets of new names at the end, with consecutive rows."""
        self._read_tail()
        self._positions.update({name: at for at, name in enumerate(names, self._count)})
        self._names.extend(names)
        places = np.empty((len(names), 2), np.uint32)
        places[:, 0], places[:, 1] = family, np.arange(row, row + len(names))
        self._places.frombytes(places.tobytes())
        self._count += len(names)

    def move(self, name: str, family: int, row: int) -> None:
        """Assign another row to a name."""
        position = self.position(name)
        if position < self._base:
            self._moved[position] = family, row
        else:
            at = 2 * (position - self._base)
            self._places[at], self._places[at + 1] = family, row
        self._changed.add(position)

    def rename(self, old: str, new: str) -> None:
        """Rename a dataset."""
        self.position(old)
        check_name(new)
        if new in self:
            raise _core.InvalidError(f"a dataset {new!r} exists already; remove it first")
        self._load()
        at = self._positions.pop(old)
        self._positions[new] = at
        self._names[at] = new

    def remove(self, names: set[str]) -> None:
        """Remove datasets."""
        self._load()
        remaining = [at for at, name in enumerate(self._names) if name not in names]
        self._set([self._names[at] for at in remaining], self.places[remaining])

    def _load(self) -> None:
        """Read all names and places into memory, to write all of them with the next commit."""
        names, places = self.names, self.places
        if self._base:
            self._base, self._all_names = 0, None
            self._moved.clear()
            self._set(names, places)
        self._written = None

    def write(self, writer: Writer) -> list[int]:
        """Write new rows, or all rows if some have changed; return the runs of the index."""
        self._read_tail()
        first = self._written or 0
        names = np.array(self._names[first - self._base :], object)
        places = np.array(self._places[2 * (first - self._base) :], np.uint32).reshape(-1, 2)
        self._write_changed(writer, first)
        if first and not len(names):
            return self._index.runs
        is_short = len(names) <= MAX_TAIL and tails.raw_bytes(names) <= tails.MAX_BYTES
        if is_short and first > MAX_TAIL:
            tails.write_tail(writer, NAMES, names, "string")
            tails.write_tail(writer, PLACES, places, "uint32")
            self._has_tail = True
            return self._index.runs
        if first:
            self._last()
        else:
            self._create(writer)
        writer.append(NAMES, names)
        writer.append(PLACES, places)
        self._index.add(writer, names.tolist(), first)
        if self._has_tail:
            writer.remove(f"{tails.GROUP}/{GROUP}")
            self._has_tail = False
        self._written = len(self)
        return self._index.runs

    def _write_changed(self, writer: Writer, rows: int) -> None:
        """Write the shards with changed places, of the rows that the array has."""
        shard = _CHUNKS * _PLACE_CHUNK
        for number in {position // shard for position in self._changed if position < rows}:
            start = number * shard
            writer.write_region(PLACES, self.places[start : min(start + shard, rows)], (start, 0))
        self._changed.clear()

    def _create(self, writer: Writer) -> None:
        self._index = NameIndex()
        writer.create_array(
            NAMES,
            shape=(0,),
            dtype=str,
            dims=("dataset",),
            chunks=(_NAME_CHUNK,),
            shards=(_CHUNKS * _NAME_CHUNK,),
        )
        writer.create_array(
            PLACES,
            shape=(0, 2),
            dtype=np.uint32,
            dims=("dataset", "family_row"),
            chunks=(_PLACE_CHUNK, 2),
            shards=(_CHUNKS * _PLACE_CHUNK, 2),
        )


def _similar(name: object, names: list[str]) -> str:
    """Return names that are like a wrong one, for an error message."""
    found = get_close_matches(str(name), names, n=3)
    return f"; similar: {', '.join(map(repr, found))}" if found else ""

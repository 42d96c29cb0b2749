"""The catalogue: the names of the datasets in order, and their families and rows."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np

from ambar import _core
from ambar.collection.storage.records import check_name
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "datasets"
NAMES = f"{GROUP}/name"
PLACES = f"{GROUP}/place"
_LEAST = 1024
_MOST_COMPARED = 10_000


class Catalogue:
    """Names of datasets, with their families and rows.

    Names and places are one chunk each, so that one read fetches them. The length of a chunk is
    1024 times a power of two, and is doubled when it becomes too short.
    """

    def __init__(
        self, location: str, names: Iterable[str] = (), places: np.ndarray | None = None
    ) -> None:
        self._location = location
        self._names = list(names)
        self._positions = {name: at for at, name in enumerate(self._names)}
        self._places = np.empty((0, 2), np.uint32) if places is None else places
        self._added: list[tuple[int, int]] = []
        self._stored = len(self._names)
        self._moved = False

    @classmethod
    def read(cls, store: Store) -> Catalogue:
        """Read the catalogue of a store; raises CorruptError if it is inconsistent."""
        for path in (NAMES, PLACES):
            array = store._array(path)
            # One chunk bounds the memory that a hostile shape can allocate.
            if not array.ndim or array.shape[0] > array.chunks[0]:
                raise _core.CorruptError(
                    f"{store.location}: /{path} has shape {array.shape} and chunks {array.chunks}, "
                    "expected one chunk; restore the store from a copy"
                )
        found = store.read_together([NAMES, PLACES])
        names, places = found[NAMES], found[PLACES]
        unique = {name for name in names.flat if isinstance(name, str)}
        if (
            names.shape != (len(unique),)
            or places.shape != (len(unique), 2)
            or places.dtype.kind != "u"
        ):
            raise _core.CorruptError(
                f"{store.location}: expected unique names and as many places, found {len(unique)} "
                f"unique strings in /{NAMES}, {names.dtype} of shape {names.shape}, and /{PLACES}, "
                f"{places.dtype} of shape {places.shape}; restore the store from a copy"
            )
        return cls(store.location, names.tolist(), places)

    def check(self, rows: list[int], location: str) -> None:
        """Raise CorruptError if a place is outside of the families; `rows` are their lengths."""
        if not len(self):
            return
        family, row = self.places.T
        known = family < len(rows)
        if not known.all() or (row >= np.array(rows)[family]).any():
            raise _core.CorruptError(
                f"{location}: /{PLACES} has a place outside of the {len(rows)} families and their "
                "rows; restore the store from a copy"
            )

    @property
    def names(self) -> list[str]:
        """The names in order; callers must not change the list."""
        return self._names

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __len__(self) -> int:
        return len(self._names)

    def position(self, name: str) -> int:
        """Return the position of a dataset; raises KeyError if it does not exist."""
        try:
            return self._positions[name]
        except KeyError:
            raise _core.NotFoundError(
                f"{self._location}: no dataset {name!r} among {len(self):,}"
                f"{_similar(name, self._names)}"
            ) from None

    @property
    def places(self) -> np.ndarray:
        """The family and the row of each dataset: uint32 (datasets, 2)."""
        if self._added:
            new = np.array(self._added, np.uint32)
            self._places = np.concatenate([self._places, new])
            self._added.clear()
        return self._places

    def add(self, name: str, family: int, row: int) -> None:
        """Add a dataset of a new name at the end."""
        self._positions[name] = len(self._names)
        self._names.append(name)
        self._added.append((family, row))

    def move(self, name: str, family: int, row: int) -> None:
        """Assign another row to a name."""
        self.places[self.position(name)] = family, row
        self._moved = True

    def rename(self, old: str, new: str) -> None:
        """Rename a dataset."""
        at = self.position(old)
        check_name(new)
        if new in self._positions:
            raise _core.InvalidError(f"a dataset {new!r} exists already; remove it first")
        del self._positions[old]
        self._positions[new] = at
        self._names[at] = new
        self._moved = True

    def remove(self, names: set[str]) -> None:
        """Remove datasets."""
        remaining = [at for at, name in enumerate(self._names) if name not in names]
        self._places = self.places[remaining]
        self._names = [self._names[at] for at in remaining]
        self._positions = {name: at for at, name in enumerate(self._names)}
        self._moved = True

    def write(self, writer: Writer) -> None:
        """Write new rows, or all rows if some have moved or the chunks are too short."""
        first = self._stored
        capacity = _capacity(first)
        if self._moved or first == 0 or len(self) > capacity:
            first, capacity = 0, _capacity(len(self))
            writer.create_array(NAMES, shape=(0,), dtype=str, dims=("dataset",), chunks=(capacity,))
            chunks = (capacity, 2)
            writer.create_array(
                PLACES, shape=(0, 2), dtype=np.uint32, dims=("dataset", "family_row"), chunks=chunks
            )
        writer.append(NAMES, np.array(self._names[first:], object))
        writer.append(PLACES, self.places[first:])
        self._stored, self._moved = len(self), False


def _similar(name: object, names: list[str]) -> str:
    """Return names that are like a wrong one, for an error message."""
    found = get_close_matches(str(name), names[:_MOST_COMPARED], n=3)
    return f"; similar: {', '.join(map(repr, found))}" if found else ""


def _capacity(rows: int) -> int:
    return _LEAST << (max(rows - 1, 0) // _LEAST).bit_length()

"""The catalogue: which datasets there are, in which order, and where each of them lies."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ambar import _core
from ambar.store.store import Store
from ambar.store.writer import Writer

GROUP = "datasets"
NAMES = f"{GROUP}/name"
PLACES = f"{GROUP}/place"
_LEAST = 1024


class Catalogue:
    """Names of datasets, and their families and rows there.

    Names and places are one chunk each, so that they are read at once; the chunks' length, a power
    of two times 1024, is doubled where they become too short.
    """

    def __init__(self, names: Iterable[str] = (), places: np.ndarray | None = None) -> None:
        self._names = list(names)
        self._positions = {name: at for at, name in enumerate(self._names)}
        self._places = np.empty((0, 2), np.uint32) if places is None else places
        self._added: list[tuple[int, int]] = []
        self._stored = len(self._names)
        self._moved = False

    @classmethod
    def read(cls, store: Store) -> Catalogue:
        """Read the catalogue of a store; raises CorruptError where it contradicts itself."""
        for path in (NAMES, PLACES):
            array = store._array(path)
            # One chunk bounds the memory that a hostile shape can ask for.
            if not array.ndim or array.shape[0] > array.chunks[0]:
                raise _core.CorruptError(
                    f"{store.location}: /{path} has shape {array.shape} and chunks {array.chunks}, "
                    "expected one chunk; restore the store from a copy"
                )
        found = store.read_together([NAMES, PLACES])
        names, places = found[NAMES].tolist(), found[PLACES]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise _core.CorruptError(
                f"{store.location}: /{NAMES} is {found[NAMES].dtype}{found[NAMES].shape}, expected "
                "a list of strings; restore the store from a copy"
            )
        catalogue = cls(names, places)
        if (
            places.shape != (len(names), 2)
            or places.dtype.kind != "u"
            or len(catalogue._positions) != len(names)
        ):
            raise _core.CorruptError(
                f"{store.location}: {len(names)} names, {len(catalogue._positions)} of them "
                f"different, and places of {places.dtype}{places.shape}; restore the store from a "
                "copy"
            )
        return catalogue

    def check(self, rows: list[int], location: str) -> None:
        """Raise CorruptError where a place is outside of the families, which have so many rows."""
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
        """The names, in the order of the datasets; not to be changed."""
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
            raise _core.NotFoundError(f"no dataset {name!r} among {len(self)}") from None

    @property
    def places(self) -> np.ndarray:
        """Return uint32 (datasets, 2): family and row."""
        if self._added:
            new = np.array(self._added, np.uint32)
            self._places = np.concatenate([self._places, new])
            self._added.clear()
        return self._places

    def add(self, name: str, family: int, row: int) -> None:
        """Add a dataset at the end; raises ValueError if the name is taken."""
        if name in self._positions:
            raise _core.InvalidError(
                f"there is a dataset {name!r} already; replace it, or choose another name"
            )
        self._positions[name] = len(self._names)
        self._names.append(name)
        self._added.append((family, row))

    def move(self, name: str, family: int, row: int) -> None:
        """Let a name stand for another row."""
        self.places[self.position(name)] = family, row
        self._moved = True

    def rename(self, old: str, new: str) -> None:
        """Give a dataset another name."""
        at = self.position(old)
        if new in self._positions:
            raise _core.InvalidError(f"there is a dataset {new!r} already; remove it first")
        if not isinstance(new, str) or not new:
            raise _core.InvalidError(f"a dataset's name is a text of at least one letter: {new!r}")
        del self._positions[old]
        self._positions[new] = at
        self._names[at] = new
        self._moved = True

    def remove(self, names: set[str]) -> None:
        """Take datasets out."""
        kept = np.array([name not in names for name in self._names], bool)
        places = self.places[kept]
        self._names = [name for name in self._names if name not in names]
        self._positions = {name: at for at, name in enumerate(self._names)}
        self._places = places
        self._moved = True

    def write(self, writer: Writer) -> None:
        """Write what is new; all of it where rows have moved or chunks are too short."""
        first = self._stored
        capacity = _capacity(first)
        if self._moved or first == 0 or len(self) > capacity:
            first, capacity = 0, _capacity(len(self))
            writer.create_array(NAMES, shape=(0,), dtype=str, dims=("dataset",), chunks=(capacity,))
            chunks = (capacity, 2)
            writer.create_array(
                PLACES, shape=(0, 2), dtype=np.uint32, dims=("dataset", "family_row"), chunks=chunks
            )
        rows = len(self) - first
        if rows:
            names = [name.encode() for name in self._names[first:]]
            places = np.ascontiguousarray(self.places[first:])
            writer._core.append(f"/{NAMES}", names, '"string"', [rows])
            writer._core.append(f"/{PLACES}", [places], '"uint32"', [rows, 2])
        self._stored, self._moved = len(self), False


def _capacity(rows: int) -> int:
    capacity = _LEAST
    while capacity < rows:
        capacity *= 2
    return capacity

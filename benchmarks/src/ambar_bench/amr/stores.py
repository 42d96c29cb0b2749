"""Whole stores as rows: what `ambar convert` makes of a field, and what reading it back costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

import ambar
from ambar_bench.amr.cutting import Piece
from ambar_bench.amr.hierarchy import Hierarchy, Values
from ambar_bench.amr.methods import Method, Variant


class StoreAuto(Method):
    """A store of the field; covered cells are left out where averages give them back."""

    name = "ambar store"
    key = "store"
    ours = True
    whole = True
    covered: ClassVar[Any] = "auto"

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="ambar-bench-")
        self._target = Path(self._folder.name) / "field.ambar"

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield the leaf cells of all levels, by level and place."""
        cells = _cells(hierarchy.path, self._places(hierarchy.ndim, name))
        values = cells[name][_order(cells)]
        piece = Piece(values, np.ones(values.shape, bool))
        piece.state |= {"path": hierarchy.path, "name": name, "ndim": hierarchy.ndim}
        yield Variant("", [piece])

    def compress(self, piece: Piece, bound: float, option: Any) -> int:  # noqa: ARG002
        """Write a store, from the plotfile's files; return the bytes of the field's arrays."""
        import ambar

        name = piece.state["name"]
        ambar.convert(
            piece.state["path"],
            self._target,
            components=["cells"],
            fields=[name],
            error_bound={name: bound},
            covered=self.covered,
            threads=1,
            mode="w",
            fsync=False,
        )
        if "order" not in piece.state:
            self._prepare_reading(piece)
        return int(piece.state["bytes"])

    def decompress(self, packed: Any, piece: Piece) -> Values:  # noqa: ARG002
        """Read the leaf cells."""
        name = piece.state["name"]
        values: Values = _cells(self._target, [name])[name][piece.state["order"]]
        return values

    def size(self, packed: Any) -> int:
        """Return the bytes of the field's arrays."""
        return int(packed)

    def _prepare_reading(self, piece: Piece) -> None:
        """Keep what does not change from round to round: the order of cells, the size."""
        name = piece.state["name"]
        store = ambar.open_store(self._target)
        arrays = [path for path in store if path.endswith(f"/{name}") and "/index/" not in path]
        piece.state["bytes"] = sum(store[path].stored_bytes for path in arrays)
        cells = _cells(self._target, self._places(piece.state["ndim"], name))
        piece.state["order"] = _order(cells)

    @staticmethod
    def _places(ndim: int, name: str) -> list[str]:
        return ["level", *("ix", "iy", "iz")[:ndim], name]


class StoreDrop(StoreAuto):
    """A store of the field without covered cells."""

    name = "ambar store, covered cells dropped"
    key = "store-drop"
    covered = "drop"


def _cells(path: str | Path, columns: list[str]) -> Any:
    """Return columns of the leaf cells of a plotfile or store."""
    import ambar

    opened: Any = ambar.open(path)
    return opened.amr.read(columns, threads=1)


def _order(cells: Any) -> np.ndarray:
    """Return the order of cells by level and place."""
    places = [cells[name] for name in ("ix", "iy", "iz") if name in cells]
    return np.lexsort((*places, cells["level"]))

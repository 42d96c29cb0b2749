"""The page of collections: a table of datasets, the map of their positions, and their lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import panel as pn

from ambar._util import text
from ambar.collection.collection import Collection
from ambar.kinds.request import ViewRequest
from ambar.pictures.positions import PositionNames, coordinate_of, position_names
from ambar.viewer.background import Background
from ambar.viewer.layout import frame
from ambar.viewer.message import Message
from ambar.viewer.pages.collection.lines import DatasetLines
from ambar.viewer.pages.collection.positions import PositionMap
from ambar.viewer.pages.collection.table import DatasetTable


class CollectionPage:
    """The table, the map and the lines, which share the selection of datasets."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._message = Message()
        self._chosen = np.empty(0, np.int64)
        self._filtered = np.arange(len(collection))
        self._coordinates: tuple[np.ndarray, np.ndarray] | None = None
        self._table = DatasetTable(collection, self._select_rows, self._filter)
        self._lines = DatasetLines(collection, self._message)
        select_all = pn.widgets.Button(label="Select all", sizing_mode="stretch_width")
        select_all.on_click(lambda _: self._choose(self._filtered))
        clear = pn.widgets.Button(label="Clear selection", sizing_mode="stretch_width")
        clear.on_click(lambda _: self._choose(np.empty(0, np.int64)))
        self._count = pn.pane.HTML("No datasets selected", margin=(0, 10))
        self.controls = [
            self._table.controls,
            pn.Row(select_all, clear, margin=0, sizing_mode="stretch_width"),
            self._count,
            self._lines.controls,
        ]
        upper = pn.Row(self._table.main, sizing_mode="stretch_both", margin=0)
        self._map: PositionMap | None = None
        names = position_names(collection)
        if names is not None:
            self._map = PositionMap((names.x, names.y), self._choose)
            upper.append(pn.pane.Bokeh(self._map.figure))
            self._background = Background(self._show_map, self._message.fail, self._message.wait)
            self._background.submit(lambda: self._read_coordinates(names))
        self.main = pn.Column(
            self._message.pane, upper, self._lines.main, sizing_mode="stretch_both", margin=0
        )
        self._table.refresh()

    def _read_coordinates(self, names: PositionNames) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        x, y = (coordinate_of(self._collection, name) for name in (names.x, names.y))
        yield x, y

    def _show_map(self, coordinates: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        """Draw the positions of the filtered datasets."""
        self._coordinates = coordinates or self._coordinates
        if self._map is not None and self._coordinates is not None:
            self._map.show(*self._coordinates, self._filtered, self._collection._catalogue.names_at)
            self._map.mark(self._chosen)

    def _filter(self, positions: np.ndarray) -> None:
        """Show the datasets of a filter; those that it excludes are not selected any more."""
        self._filtered = positions
        self._show_map()
        kept = self._chosen[np.isin(self._chosen, positions)]
        if len(kept) < len(self._chosen):
            self._choose(kept)

    def _select_rows(self, selected: np.ndarray, page: np.ndarray) -> None:
        """Select rows of a page of the table; those of other pages stay selected."""
        others = self._chosen[~np.isin(self._chosen, page)]
        self._choose(np.concatenate([others, selected]))

    def _choose(self, positions: np.ndarray) -> None:
        """Select datasets everywhere."""
        self._chosen = positions
        self._count.object = f"{text.plural(len(positions), 'dataset')} selected"
        self._table.choose(positions)
        self._lines.choose(positions)
        if self._map is not None:
            self._map.mark(positions)


def page(opened: Collection, request: ViewRequest) -> Any:
    """Return the page of a collection."""
    request.refuse_comparison()
    shown = CollectionPage(opened)
    facts = f"{text.plural(len(opened), 'dataset')} in {request.location}"
    return frame(request.title, facts, shown.controls, shown.main)

"""The table of the datasets of a collection: a page at a time, sorted and filtered."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import panel as pn

from ambar.collection.collection import Collection
from ambar.collection.storage.records import ROW
from ambar.viewer.background import Background
from ambar.viewer.layout import is_dark
from ambar.viewer.message import Message

_ROWS = 50
"""Rows of a page of the table."""
_COLUMNS = 8
"""Attributes that are shown at first."""


@dataclass(frozen=True)
class Query:
    """Which datasets the table has, and in which order."""

    condition: str = ""
    sort: str = ""
    """A column of the table, or "" for the order of the collection."""
    is_descending: bool = False


class DatasetTable:
    """The table, and the controls that filter and sort it.

    Only the attributes of the visible page are read, and those by which it is filtered or sorted.

    Parameters
    ----------
    collection : Collection
        The collection.
    selected : callable
        Called with the positions of the rows that were selected, and of all rows of the page.
    filtered : callable
        Called with the positions of the datasets that the condition selects.
    """

    def __init__(
        self,
        collection: Collection,
        selected: Callable[[np.ndarray, np.ndarray], None],
        filtered: Callable[[np.ndarray], None],
    ) -> None:
        self._collection = collection
        self._selected, self._filtered = selected, filtered
        self._query: Query | None = None
        self._positions = np.empty(0, np.int64)
        self._page = np.empty(0, np.int64)
        self._chosen = np.empty(0, np.int64)
        self._is_updating = False
        self._message = Message()
        self._background = Background(self._show, self._message.fail, self._message.wait)
        attributes = list(collection.attrs)
        statistics = [
            f"{name}.{part}" for name in collection.variables for part in ("min", "max", "count")
        ]
        # The browser interprets options and the titles of columns as HTML.
        columns = [*collection._metadata.table_columns.values(), *statistics]
        self._condition = pn.widgets.TextInput(
            label="Filter",
            placeholder='platform == "argo" and temperature.max > 20',
            sizing_mode="stretch_width",
        )
        self._columns = pn.widgets.MultiChoice(
            label="Columns",
            options={html.escape(name): name for name in (*attributes, *statistics)},
            value=attributes[:_COLUMNS],
            sizing_mode="stretch_width",
        )
        self._only = pn.widgets.Checkbox(label="Only selected datasets")
        self._number = pn.widgets.IntInput(
            label="Page", value=1, start=1, end=1, width=100, margin=(0, 10)
        )
        self._count = pn.pane.HTML(align="end", margin=(0, 10))
        self.controls = pn.Column(
            self._condition,
            self._message.pane,
            self._columns,
            self._only,
            margin=0,
            sizing_mode="stretch_width",
        )
        self._table = pn.widgets.Tabulator(
            pd.DataFrame({ROW: []}),
            titles={column: html.escape(column) for column in columns},
            show_index=False,
            disabled=True,
            selectable="checkbox",
            layout="fit_data_fill",
            sizing_mode="stretch_both",
            min_height=200,
            theme="midnight" if is_dark() else "simple",
            stylesheets=[":host .tabulator { font-size: 12px; }"],
            configuration={"rowHeight": 26},
        )
        self.main = pn.Column(
            self._table,
            pn.Row(self._number, self._count, margin=(4, 0)),
            sizing_mode="stretch_both",
            margin=0,
        )
        for widget in (self._condition, self._columns, self._only, self._number):
            widget.param.watch(lambda _: self.refresh(), "value")
        self._table.param.watch(lambda _: self.refresh(), "sorters")
        self._table.param.watch(self._select, "selection")

    def choose(self, positions: np.ndarray) -> None:
        """Show which datasets are selected."""
        self._chosen = positions
        if self._only.value:
            self.refresh()
        else:
            self._mark()

    def refresh(self) -> None:
        """Show the page that the controls describe."""
        if self._is_updating:
            return
        sorters = self._table.sorters or [{"field": "", "dir": "asc"}]
        query = Query(self._condition.value, sorters[0]["field"], sorters[0]["dir"] == "desc")
        number, columns = (self._number.value or 1) - 1, list(self._columns.value)
        chosen = self._chosen if self._only.value else None
        self._background.submit(lambda: self._read(query, number, columns, chosen))

    def _read(
        self, query: Query, number: int, columns: list[str], chosen: np.ndarray | None
    ) -> Iterator[tuple[Query, np.ndarray, np.ndarray, int, pd.DataFrame]]:
        """Yield the positions of the filtered datasets, and the page."""
        positions = self._positions
        if query != self._query:
            positions = positions_of(self._collection, query)
        shown = positions if chosen is None else positions[np.isin(positions, chosen)]
        number = min(number, max(len(shown) - 1, 0) // _ROWS)
        page = shown[number * _ROWS : (number + 1) * _ROWS]
        yield query, positions, page, len(shown), page_of(self._collection, page, columns)

    def _show(self, result: tuple[Query, np.ndarray, np.ndarray, int, pd.DataFrame]) -> None:
        query, positions, page, count, frame = result
        self._message.clear()
        has_changed = self._query is None or query.condition != self._query.condition
        self._query, self._positions, self._page = query, positions, page
        self._is_updating = True
        self._number.end = max(-(-count // _ROWS), 1)
        self._number.value = min(self._number.value or 1, self._number.end)
        first = (self._number.value - 1) * _ROWS
        self._count.object = (
            f"of {self._number.end:,}: datasets {first + bool(count):,} to "
            f"{first + len(page):,} of {count:,}"
        )
        self._table.value = frame
        self._is_updating = False
        self._mark()
        if has_changed:
            self._filtered(positions)

    def _mark(self) -> None:
        """Mark the selected rows of the page."""
        self._is_updating = True
        self._table.selection = np.flatnonzero(np.isin(self._page, self._chosen)).tolist()
        self._is_updating = False

    def _select(self, event: Any) -> None:
        if not self._is_updating:
            self._selected(self._page[event.new], self._page)


def positions_of(collection: Collection, query: Query) -> np.ndarray:
    """Return the positions of the datasets of a query, in its order."""
    metadata = collection._metadata
    positions = metadata.positions(query.condition.strip() or None)
    if query.sort in ("", "index"):
        return positions
    attributes = {column: name for name, column in metadata.table_columns.items()}
    operand = attributes.get(query.sort, query.sort)
    values = np.array(collection.names) if query.sort == ROW else metadata.operand(operand)
    found: np.ndarray = positions[order_of(values[positions], query.is_descending)]
    return found


def order_of(values: np.ndarray, is_descending: bool) -> np.ndarray:
    """Return the order of a column; missing values are last.

    Examples
    --------
    >>> order_of(np.array([2, None, 10], object), is_descending=True).tolist()
    [2, 0, 1]
    """
    if values.dtype.kind == "O":
        missing = np.array([value is None for value in values], bool)
        found = values[~missing]
        is_number = all(isinstance(value, (int, float)) for value in found)
        values = np.where(missing, 0, values) if is_number else np.where(missing, "", values)
        values = values.astype(float if is_number else str)
    else:
        missing = values != values  # noqa: PLR0124 - NaN and NaT
    order = np.argsort(values, kind="stable")
    if is_descending:
        order = order[::-1]
    return np.concatenate([order[~missing[order]], order[missing[order]]])


def page_of(collection: Collection, page: np.ndarray, columns: list[str]) -> pd.DataFrame:
    """Return names and attributes or statistics of some datasets."""
    metadata = collection._metadata
    table_columns = metadata.table_columns
    found: dict[str, Any] = {ROW: collection._catalogue.names_at(page)}
    for name in columns:
        is_attribute = name in table_columns
        values = metadata.attribute(name, page) if is_attribute else metadata.operand(name)[page]
        plain = [value if _is_plain(value) else str(value) for value in values.tolist()]
        found[table_columns.get(name, name)] = plain
    return pd.DataFrame(found)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int, float))

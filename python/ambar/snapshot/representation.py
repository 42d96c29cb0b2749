"""Rows that describe fields in representations: dtype, unit, size and codecs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from ambar._util import html, text
from ambar.snapshot.field_names import quantity_of

if TYPE_CHECKING:
    from ambar.snapshot.run_info import RunInfo
    from ambar.store.array import Array
    from ambar.store.store import Store

_UNITS = {
    "length": "cm",
    "time": "s",
    "mass": "g",
    "density": "g/cm3",
    "velocity": "cm/s",
    "acceleration": "cm/s2",
    "pressure": "erg/cm3",
    "specific_energy": "erg/g",
    "magnetic_field": "Gauss",
}
"""The unit of each quantity in representations."""
_HEADER = ("field", "dtype", "unit", "size", "codecs")
_OPEN_ROWS = 12


class StoredFields:
    """The arrays of fields in a group of a store."""

    def __init__(self, store: Store, group: str) -> None:
        self._store = store
        self._start = f"{group.strip('/')}/".lstrip("/")
        self._paths = [path for path in store if path.startswith(self._start)]

    @property
    def sizes(self) -> str:
        """Bytes of all arrays of the group, in memory and in the store."""
        return sizes(self._store[path] for path in self._paths)

    def arrays(self, field: str) -> list[Array]:
        """Return the array of a field, or one for each level."""
        paths = [path.removeprefix(self._start).split("/") for path in self._paths]
        return [
            self._store[self._start + "/".join(path)]
            for path in paths
            if path[-1] == field and "index" not in path[:-1]
        ]


def sizes(arrays: Iterable[Array]) -> str:
    """Return bytes in memory and in the store, and their ratio."""
    pairs = [(array.nbytes, array.stored_bytes) for array in arrays]
    raw, stored = (sum(values) for values in zip(*pairs, strict=True)) if pairs else (0, 0)
    return f"{text.size(raw)} as {text.size(stored)} ({text.ratio(raw, stored)})"


def field_rows(
    fields: Iterable[str],
    info: RunInfo,
    dtype: Callable[[str], np.dtype[np.generic]],
    stored: StoredFields | None,
) -> list[tuple[str, ...]]:
    """Return name, dtype, unit and, for fields in a store, size and codecs."""
    rows: list[tuple[str, ...]] = []
    for name in fields:
        row: tuple[str, ...] = (name, str(dtype(name)), code_unit(name, info))
        if stored is not None:
            arrays = stored.arrays(name)
            codecs = dict.fromkeys(array.codecs for array in arrays)
            row += (sizes(arrays), ", ".join(codecs))
        rows.append(row)
    return rows


def code_unit(field: str, info: RunInfo) -> str:
    """Return one code unit of a field in CGS units; "code" if it is not known."""
    unit = _UNITS.get(quantity_of(field) or "")
    if unit is None or not info.physical or info.units.is_conformal(field):
        return "code"
    return f"{info.units.factor(field, unit):.4g} {unit}"


def field_details(title: str, rows: list[tuple[str, ...]]) -> str:
    """Return rows of fields as a section of HTML."""
    header = _HEADER[: max(map(len, rows), default=0)]
    return html.details(title, html.table(rows, header), is_open=len(rows) <= _OPEN_ROWS)

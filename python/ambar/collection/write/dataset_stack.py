"""Stacks of equal datasets: consecutive ones of one schema are written as arrays of rows.

Checking and copying each dataset by itself takes most of the time of adding very many small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from ambar.collection.storage.records import Record

BYTES = 4 << 20
"""Bytes of a full stack."""
LEAST, LARGEST = 256, 64 << 10
"""Bytes that a dataset counts at least, and those of the largest in a stack."""


class _Layer(NamedTuple):
    """What a variable of a dataset has to be, to be in a stack."""

    name: str
    dims: Any
    """As given, or None."""
    attributes: dict[str, str] | None
    """As given: strings, whose comparison is exact; None if there are none."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class DatasetStack:
    """Copies of consecutive datasets that differ from a first one only in names and values."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._layers: list[_Layer] = []
        self._rows: list[np.ndarray] = []
        self._capacity = 0
        self._record: Record | None = None

    def start(self, record: Record, given: Any) -> None:
        """Begin an empty stack of datasets like this one, if a stack can have them.

        Parameters
        ----------
        record
            The dataset.
        given
            What the record was made from.
        """
        self.names, self._rows = [], []
        size = sum([variable.values.nbytes for variable in record.variables.values()])
        layers = _layers(given) if type(given) is dict and size <= LARGEST else None
        self._record, self._layers = record, layers or []
        self._capacity = BYTES // max(size, LEAST)

    def take(self, name: str, given: Any) -> bool:
        """Add a copy of a dataset; return False if the stack cannot have it, or is full."""
        layers, rows, at = self._layers, self._rows, len(self.names)
        if not layers or at == self._capacity or type(name) is not str or type(given) is not dict:
            return False
        if len(given) != len(layers):
            return False
        for number, (key, value) in enumerate(given.items()):
            known, dims, attributes, dtype, shape = layers[number]
            found_dims, found_attributes, values = None, None, value
            if type(value) is tuple:
                if len(value) == 2:
                    found_dims, values = value
                elif len(value) == 3:
                    found_dims, values, found_attributes = value
            if (
                key != known
                or type(values) is not np.ndarray
                or values.dtype != dtype
                or values.shape != shape
                or type(found_dims) is not type(dims)
                or found_dims != dims
                or not _are_same(found_attributes, attributes)
            ):
                return False
            if number == len(rows):
                rows.append(np.empty((self._capacity, *shape), dtype))
            rows[number][at] = values
        self.names.append(name)
        return True

    def pop(self) -> tuple[Record, list[str], dict[str, np.ndarray]]:
        """Return the first dataset, and the names and values of the others; empty the stack."""
        names, rows = self.names, self._rows
        self.names, self._rows = [], []
        stacked = (array[: len(names)] for array in rows)
        values = {layer.name: array for layer, array in zip(self._layers, stacked, strict=True)}
        return cast("Record", self._record), names, values


def _layers(given: Mapping[str, Any]) -> list[_Layer] | None:
    layers = []
    for name, value in given.items():
        dims, values, attributes = None, value, None
        if type(value) is tuple:
            dims, values, *more = value
            if more and type(more[0]) is not dict:
                return None
            attributes = dict(more[0]) if more else None
        if (
            type(name) is not str
            or type(dims) not in (str, tuple, type(None))
            or {*map(type, (attributes or {}).values())} - {str}
            or type(values) is not np.ndarray
            or values.dtype.kind not in "biufc"
            or not values.dtype.isnative
        ):
            return None
        layers.append(_Layer(name, dims, attributes, values.dtype, values.shape))
    return layers


def _are_same(found: Any, attributes: dict[str, str] | None) -> bool:
    """Whether attributes are equal to strings."""
    if found is None or attributes is None:
        return found is attributes
    try:
        return type(found) is dict and found == attributes
    except ValueError:  # arrays have no truth value
        return False

"""Statistics of a variable in a dataset: value range, numbers of values and nulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar.collection.storage.times import NOT_A_TIME


def has_range(type_name: str) -> bool:
    """Whether values of the type have an order: numbers and bools, but not complex ones."""
    return type_name not in ("string", "bytes") and np.dtype(type_name).kind in "biuf"


def measure(values: np.ndarray, times: bool) -> tuple[Any, Any, int, int]:
    """Return the smallest and the largest value, the number of values and the number of nulls.

    Nulls are NaN and NaT, which do not count in the range. Without other values the range is that
    of nulls (0 for integers).
    """
    kind, size = values.dtype.kind, values.size
    if size == 0:
        nothing = np.nan if kind == "f" else NOT_A_TIME if times else 0
        return nothing, nothing, 0, 0
    if kind in "cO":
        return None, None, size, int(np.count_nonzero(np.isnan(values))) if kind == "c" else 0
    low = values.min()
    if not (np.isnan(low) if kind == "f" else times and low == NOT_A_TIME):
        return low, values.max(), size, 0
    valid = values[~np.isnan(values)] if kind == "f" else values[values != NOT_A_TIME]
    if not valid.size:
        return low, low, size, size
    return valid.min(), valid.max(), size, size - valid.size

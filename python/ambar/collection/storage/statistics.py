"""Statistics of a variable in a dataset: value range, numbers of values and nulls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ambar.collection.storage.times import NOT_A_TIME


def has_range(type_name: str) -> bool:
    """Whether values of the type have an order: numbers and bools, but not complex ones."""
    return type_name not in ("string", "bytes") and np.dtype(type_name).kind in "biuf"


def measure(  # noqa: PLR0911 - a case each
    values: np.ndarray, times: bool
) -> tuple[Any, Any, int, int]:
    """Return the smallest and the largest value, the number of values and the number of nulls.

    Nulls are NaN and NaT, which do not count in the range. Without other values the range is that
    of nulls (0 for integers).
    """
    kind = values.dtype.kind
    if values.size == 0:
        nothing = np.nan if kind == "f" else NOT_A_TIME if times else 0
        return nothing, nothing, 0, 0
    if kind == "c":
        return None, None, values.size, int(np.count_nonzero(np.isnan(values)))
    if kind == "O":
        return None, None, values.size, 0
    low = values.min()
    if kind == "f":
        if not np.isnan(low):
            return low, values.max(), values.size, 0
        nulls = int(np.count_nonzero(np.isnan(values)))
        return np.fmin.reduce(values, None), np.fmax.reduce(values, None), values.size, nulls
    if times and low == NOT_A_TIME:
        valid = values[values != NOT_A_TIME]
        nulls = values.size - valid.size
        if valid.size:
            return valid.min(), valid.max(), values.size, nulls
        return low, low, values.size, nulls
    return low, values.max(), values.size, 0

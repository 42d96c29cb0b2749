"""Values as the browser draws them: floats and times as numbers."""

from __future__ import annotations

import numpy as np


def as_floats(values: np.ndarray) -> np.ndarray:
    """Return values as floats that the browser draws; times as milliseconds since 1970."""
    if values.dtype.kind == "c":
        return np.asarray(np.abs(values))
    if values.dtype.kind in "mM":
        numbers = values.astype(f"{values.dtype.kind}8[ns]").astype("f8") / 1e6
        return np.where(np.isnat(values), np.nan, numbers)
    is_exact = np.can_cast(values.dtype, np.float32)
    return values.astype(np.float32 if is_exact else np.float64)


def as_float32(values: np.ndarray) -> np.ndarray:
    """Return values as float32, for less traffic, if their sizes and differences survive.

    Examples
    --------
    >>> as_float32(np.array([1.0, 2.0])).dtype, as_float32(np.array([1e-50, 2e-46])).dtype
    (dtype('float32'), dtype('float64'))
    """
    shown = values[np.isfinite(values)]
    sizes = np.abs(shown[shown != 0])
    if values.dtype == np.float32 or not sizes.size:
        return values.astype(np.float32, copy=False)
    limits = np.finfo(np.float32)
    is_in_range = limits.tiny <= sizes.min() and sizes.max() <= limits.max
    is_kept = is_in_range and sizes.max() * 1e-4 <= np.ptp(shown)
    return values.astype(np.float32) if is_kept else values

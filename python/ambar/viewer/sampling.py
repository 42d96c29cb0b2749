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

"""Values as the browser draws them: floats, and at most a few for each pixel."""

from __future__ import annotations

import numpy as np


def envelope(values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return places and values of the smallest and the largest value of each bin, in order.

    Examples
    --------
    >>> places, found = envelope(np.array([9.0, 0.0, 1.0, 5.0, 4.0]), 3)
    >>> places.tolist(), found.tolist()
    ([0, 1, 3, 4], [9.0, 0.0, 5.0, 4.0])
    """
    count = -(-len(values) // width)
    bins = np.full(count * width, values[-1], values.dtype)
    bins[: len(values)] = values
    bins = bins.reshape(count, width)
    lowest = np.argmin(np.where(np.isnan(bins), np.inf, bins), axis=1)
    highest = np.argmax(np.where(np.isnan(bins), -np.inf, bins), axis=1)
    places = np.sort(np.stack([lowest, highest], axis=1), axis=1)
    places = (places + width * np.arange(count)[:, np.newaxis]).reshape(-1)
    places = np.minimum(places, len(values) - 1)
    return places, values[places]


def as_floats(values: np.ndarray) -> np.ndarray:
    """Return values as floats that the browser draws; times as milliseconds since 1970."""
    if values.dtype.kind == "c":
        return np.asarray(np.abs(values))
    if values.dtype.kind in "mM":
        numbers = values.astype(f"{values.dtype.kind}8[ns]").astype("f8") / 1e6
        return np.where(np.isnat(values), np.nan, numbers)
    is_exact = np.can_cast(values.dtype, np.float32)
    return values.astype(np.float32 if is_exact else np.float64)

"""Keys along the Morton curve, x in the lowest bit."""

from __future__ import annotations

import numpy as np

# Shifts and masks that move the bits of a number apart, by dimensions.
_SPREAD: dict[int, tuple[tuple[int, int], ...]] = {
    2: (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ),
    3: (
        (32, 0x001F00000000FFFF),
        (16, 0x001F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ),
}


def morton_keys(indices: np.ndarray) -> np.ndarray:
    """Return the keys of cells.

    Parameters
    ----------
    indices
        Indices of the cells, of shape (dimensions, cells), not negative: below 2^21 in three
        dimensions, 2^31 in two.

    Returns
    -------
    numpy.ndarray
        int64 of shape (cells,).
    """
    keys = np.zeros(indices.shape[1:], dtype=np.int64)
    for axis, index in enumerate(indices):
        spread = index.astype(np.int64)
        for shift, mask in _SPREAD.get(len(indices), ()):
            spread = (spread | spread << shift) & mask
        keys |= spread << axis
    return keys

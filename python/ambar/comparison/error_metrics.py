"""Error metrics of two fields: PSNR, structural similarity, power spectra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scale:
    """The magnitude of a field, which scales values so that squares do not over- or underflow."""

    unit: float
    """A power of two near the largest finite magnitude; 1 if all finite values are 0."""
    range: float
    """The range of the finite values, divided by `unit`."""


def scale_of(values: np.ndarray) -> Scale:
    """Return the scale of the finite values of a field."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(1.0, 0.0)
    low, high = float(finite.min()), float(finite.max())
    largest = max(abs(low), abs(high))
    # Values divided by a subnormal unit would overflow.
    unit = math.ldexp(1.0, max(math.frexp(largest)[1] - 1, -1022)) if largest else 1.0
    return Scale(unit, high / unit - low / unit)


WINDOW = 8
"""Cells along a side of the windows of structural similarity."""


def psnr(value_range: float, mean_square: float) -> float:
    """Return 20 log10(value range) - 10 log10(mean squared error), in dB.

    Infinite for an error of 0; otherwise NaN if the value range is 0.
    """
    if mean_square == 0:
        return math.inf
    if value_range == 0 or not math.isfinite(mean_square):
        return math.nan
    return 20 * math.log10(value_range) - 10 * math.log10(mean_square)


def errors(values: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return ``found - values`` as float64; infinite where NaN or an infinity differs.

    Different numbers that are equal as float64, such as integers above 2**53, have an error of 1.
    """
    a, b = values.astype(np.float64), found.astype(np.float64)
    # Differences of infinities are NaN, and large differences overflow.
    with np.errstate(invalid="ignore", over="ignore"):
        difference: np.ndarray = b - a
    is_special = ~(np.isfinite(a) & np.isfinite(b))
    if is_special.any():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference[is_special] = np.where(same[is_special], 0.0, np.inf)
    kinds = {values.dtype.kind, found.dtype.kind}
    if kinds & {*"iu"}:
        # float64 has 53 bits: such values are compared as integers, or as exact Python objects.
        may_differ = (difference == 0) & (np.abs(a) >= 2.0**53)
        pair = (side[may_differ] for side in (values, found))
        left, right = pair if kinds <= {*"iu"} else (side.astype(object) for side in pair)
        difference[may_differ] = left != right
    return difference


def as_numbers(values: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays of any dtypes as real numbers, whose differences `errors` returns.

    Times become integers, and complex numbers two numbers each. Other values have no difference:
    `values` become NaN, and each of `found` NaN if it is equal, infinite if not.
    """
    kinds = {values.dtype.kind, found.dtype.kind}
    if kinds <= {*"iuf"}:
        return values, found
    if kinds in ({"M"}, {"m"}, {"c"}):
        dtype = np.promote_types(values.dtype, found.dtype)
        real: Any = np.int64 if dtype.kind != "c" else dtype.type().real.dtype
        return values.astype(dtype).view(real), found.astype(dtype).view(real)
    nothing = np.full(values.shape, np.nan)
    if kinds & {*"mM"}:
        return nothing, np.full(found.shape, np.inf)
    a, b = values.astype(object), found.astype(object)
    equal = (a == b) | ((a != a) & (b != b))  # noqa: PLR0124 - missing strings are NaN
    return nothing, np.where(equal.astype(bool), np.nan, np.inf)


def windows(places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the number of the window of each cell; windows are cubes of `WINDOW` cells a side.

    Parameters
    ----------
    places : sequence of ndarray
        The indices of the cells at their level: an array for each dimension.
    """
    key = np.zeros(len(places[0]), np.int64)
    for place in places:
        window = place.astype(np.int64) // WINDOW
        low = window.min(initial=0)
        key = key * (int(window.max(initial=0)) - low + 1) + (window - low)
    return np.unique(key, return_inverse=True)[1].reshape(-1)


@np.errstate(over="ignore", invalid="ignore")  # `found` may be far larger than `values`
def ssim(
    values: np.ndarray, found: np.ndarray, window: np.ndarray, scale: Scale, ndim: int
) -> tuple[float, int]:
    """Return the mean structural similarity over windows that are at least half full of cells.

    Source: Z. Wang et al., "Image quality assessment: from error visibility to structural
    similarity" (2004), with equal weights, K1 = 0.01 and K2 = 0.03. The windows do not overlap.

    Returns
    -------
    float
        The mean; NaN without such a window, or if the value range is 0.
    int
        The number of windows.
    """
    finite = np.isfinite(values) & np.isfinite(found)
    window = window[finite]
    if scale.range == 0 or not window.size:
        return math.nan, 0
    a = values[finite] / np.float64(scale.unit)
    b = found[finite] / np.float64(scale.unit)
    # Centred values lose fewer digits in sums of squares.
    middle = float(a.mean())
    a -= middle
    b -= middle
    count = np.bincount(window)
    full = 2 * count >= WINDOW**ndim
    count = np.maximum(count, 1)

    def mean(of: np.ndarray) -> np.ndarray:
        means: np.ndarray = (np.bincount(window, of) / count)[full]
        return means

    mean_a, mean_b = mean(a), mean(b)
    variance_a = np.maximum(mean(a * a) - mean_a**2, 0.0)
    variance_b = np.maximum(mean(b * b) - mean_b**2, 0.0)
    covariance = mean(a * b) - mean_a * mean_b
    one, two = (0.01 * scale.range) ** 2, (0.03 * scale.range) ** 2
    # Luminance refers to the means of the values before centring.
    mean_a, mean_b = mean_a + middle, mean_b + middle
    similar = (2 * mean_a * mean_b + one) * (2 * covariance + two)
    similar /= (mean_a**2 + mean_b**2 + one) * (variance_a + variance_b + two)
    return (float(similar.mean()), similar.size) if similar.size else (math.nan, 0)


def power_spectrum(
    grid: np.ndarray, cell_size: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the power spectrum of a field's contrast, grid / mean - 1, on a periodic grid.

    Parameters
    ----------
    grid : ndarray
        The field on a regular grid of 1 to 3 dimensions.
    cell_size : sequence of float
        The sides of a cell.

    Returns
    -------
    k : ndarray
        Wave numbers, 2 pi / length: the mean of each shell. The width of a shell is the
        fundamental mode.
    power : ndarray
        The mean power of each shell, in units of volume.
    modes : ndarray
        The number of modes in each shell.
    """
    grid = grid / scale_of(grid).unit
    contrast = grid / grid.mean() - 1
    lengths = np.array(grid.shape) * np.asarray(cell_size, np.float64)
    power = np.abs(np.fft.fftn(contrast)) ** 2 * lengths.prod() / grid.size**2
    axes = [
        2 * np.pi * np.fft.fftfreq(n, size) for n, size in zip(grid.shape, cell_size, strict=True)
    ]
    squares = [
        axis.reshape([-1 if i == d else 1 for i in range(grid.ndim)]) ** 2
        for d, axis in enumerate(axes)
    ]
    k = np.sqrt(sum(squares[1:], squares[0]))
    fundamental = 2 * np.pi / lengths.min()
    highest = min(np.pi / size for size in cell_size)
    kept = (k > 0) & (k <= highest * (1 + 1e-9))
    shell = np.rint(k[kept] / fundamental).astype(np.int64)
    modes = np.bincount(shell)
    occupied = modes > 0
    mean_k, mean_power = (
        np.bincount(shell, of[kept])[occupied] / modes[occupied] for of in (k, power)
    )
    return mean_k, mean_power, modes[occupied]

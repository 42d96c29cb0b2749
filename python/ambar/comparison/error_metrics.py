"""How far apart two fields are: PSNR, structural similarity, histograms, power spectra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scale:
    """How large a field's values are, so that their squares neither overflow nor vanish."""

    unit: float
    """A power of two near the largest finite value; 1 where there is none but 0."""
    range: float
    """The range of the finite values, in units."""


def scale_of(values: np.ndarray) -> Scale:
    """Return how large the finite values of a field are."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Scale(1.0, 0.0)
    low, high = float(finite.min()), float(finite.max())
    largest = max(abs(low), abs(high))
    # The smallest unit is one that values can be divided by.
    unit = math.ldexp(1.0, max(math.frexp(largest)[1] - 1, -1022)) if largest else 1.0
    return Scale(unit, high / unit - low / unit)


WINDOW = 8
"""Cells along a side of the windows of structural similarity."""


def psnr(value_range: float, mean_square: float) -> float:
    """Return 20 log10(value range) - 10 log10(mean squared error), in dB.

    Infinite where there is no error, NaN where there is one but no range.
    """
    if mean_square == 0:
        return math.inf
    if value_range == 0 or not math.isfinite(mean_square):
        return math.nan
    return 20 * math.log10(value_range) - 10 * math.log10(mean_square)


def errors(values: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return `found` less `values`, float64; infinite where NaN and so on did not come back."""
    values, found = values.astype(np.float64), found.astype(np.float64)
    # Infinities less infinities; errors that are larger than the largest number.
    with np.errstate(invalid="ignore", over="ignore"):
        difference: np.ndarray = found - values
    odd = ~(np.isfinite(values) & np.isfinite(found))
    if odd.any():
        same = (found == values) | (np.isnan(found) & np.isnan(values))
        difference[odd] = np.where(same[odd], 0.0, np.inf)
    return difference


def windows(places: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each cell the number of its window: cubes of `WINDOW` cells a side.

    `places` are the cells' indices at their level, an array a dimension.
    """
    key = np.zeros(len(places[0]), np.int64)
    for place in places:
        window = place.astype(np.int64) // WINDOW
        low = window.min(initial=0)
        key = key * (int(window.max(initial=0)) - low + 1) + (window - low)
    return np.unique(key, return_inverse=True)[1].reshape(-1)


def ssim(
    values: np.ndarray, found: np.ndarray, window: np.ndarray, scale: Scale, ndim: int
) -> tuple[float, int]:
    """Return the mean structural similarity over windows that are at least half full of cells.

    Source: Z. Wang et al., "Image quality assessment: from error visibility to structural
    similarity" (2004), with equal weights, K1 = 0.01 and K2 = 0.03. The windows do not overlap.

    Returns
    -------
    float
        NaN where there is no such window, or the field has no range.
    int
        The number of windows.
    """
    finite = np.isfinite(values) & np.isfinite(found)
    window = window[finite]
    if scale.range == 0 or not window.size:
        return math.nan, 0
    a = values[finite] / np.float64(scale.unit)
    b = found[finite] / np.float64(scale.unit)
    # Sums of squares lose less where values lie around 0.
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
    # Luminance counts from the field's own zero.
    mean_a, mean_b = mean_a + middle, mean_b + middle
    similar = (2 * mean_a * mean_b + one) * (2 * covariance + two)
    similar /= (mean_a**2 + mean_b**2 + one) * (variance_a + variance_b + two)
    return (float(similar.mean()), similar.size) if similar.size else (math.nan, 0)


def histogram(errors: np.ndarray, scale: float, bins: int = 40) -> list[int]:
    """Return how many errors lie in each of `bins` parts of -scale to scale, others left out."""
    finite = errors[np.isfinite(errors)]
    counts, _ = np.histogram(finite / (scale or 1.0), bins=bins, range=(-1.0, 1.0))
    return [int(count) for count in counts]


def power_spectrum(
    grid: np.ndarray, cell_size: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the power spectrum of a field's contrast, grid / mean - 1, on a periodic grid.

    Parameters
    ----------
    grid
        The field on a regular grid of 1 to 3 dimensions.
    cell_size
        The sides of a cell.

    Returns
    -------
    k
        Wave numbers, 2 pi by length: the mean of each shell, shells one fundamental mode apart.
    power
        The mean power of the shell, in units of volume.
    modes
        The number of modes in it.
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
    there = modes > 0
    sums = (np.bincount(shell, of[kept])[there] / modes[there] for of in (k, power))
    mean_k, mean_power = sums
    return mean_k, mean_power, modes[there]

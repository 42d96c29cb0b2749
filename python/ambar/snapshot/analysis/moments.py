"""Counts, weights, means and variances of bins that are merged block by block.

Sums of a block are pairwise (in bins, plain), sums of blocks are compensated (Knuth), and
variances are merged as by Chan, Golub and LeVeque.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class CompensatedSum:
    """A sum of arrays of one shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._sum = np.zeros(shape)
        self._error = np.zeros(shape)

    def add(self, values: np.ndarray) -> None:
        """Add an array."""
        with np.errstate(invalid="ignore"):  # of infinite values
            total = self._sum + values
            added = total - self._sum
            self._error += (self._sum - (total - added)) + (values - added)
        self._sum = total

    @property
    def value(self) -> np.ndarray:
        """The sum; infinite and NaN sums have no error term."""
        return np.where(np.isfinite(self._sum), self._sum + self._error, self._sum)


def binned_sum(values: np.ndarray, index: np.ndarray | None, bins: int) -> np.ndarray:
    """Return the sum of the values of each bin; without an index there is one bin.

    An index of `bins` is outside of all bins.
    """
    if index is None:
        return np.array([values.sum()])
    return np.asarray(np.bincount(index, values, bins + 1)[:bins])


class BlockMoments:
    """Sums of one block.

    Parameters
    ----------
    columns
        A column for each field.
    weight
        A weight for each row; None for 1.
    index
        The bin of each row; None for a single bin.
    bins
        Number of bins.
    with_squares
        Whether to compute sums of squared deviations.
    """

    def __init__(
        self,
        columns: Sequence[np.ndarray],
        weight: np.ndarray | None,
        index: np.ndarray | None = None,
        bins: int = 1,
        *,
        with_squares: bool = False,
    ) -> None:
        self.count = _counts([*columns, weight, index], index, bins)
        self.weight = self.count.astype(float)
        if weight is not None:
            self.weight = binned_sum(weight, index, bins)
        weighted = columns if weight is None else [column * weight for column in columns]
        sums = [binned_sum(column, index, bins) for column in weighted]
        self.totals = np.array(sums).reshape(len(columns), bins)
        self.means = _quotient(self.totals, self.weight)
        self.squares: np.ndarray | None = None
        """Sums of squared deviations from the means, if requested."""
        if with_squares:
            self.squares = np.zeros_like(self.totals)
            for number, column in enumerate(columns):
                deviation = column - _of_rows(self.means[number], index)
                square = deviation * deviation
                if weight is not None:
                    square *= weight
                self.squares[number] = binned_sum(square, index, bins)


class Moments:
    """Sums of all blocks."""

    def __init__(self, fields: int, bins: int = 1) -> None:
        self.count = np.zeros(bins, np.int64)
        """Rows of each bin."""
        self._weight = CompensatedSum((bins,))
        self._totals = CompensatedSum((fields, bins))
        self._squares = CompensatedSum((fields, bins))

    def add(self, block: BlockMoments) -> None:
        """Add the sums of a block."""
        if block.squares is not None:
            before, means = self.weight, self.means
            share = _quotient(before * block.weight, before + block.weight)
            deviation = np.where(share != 0, block.means - means, 0.0)
            self._squares.add(block.squares + share * deviation**2)
        self.count += block.count
        self._weight.add(block.weight)
        self._totals.add(block.totals)

    @property
    def weight(self) -> np.ndarray:
        """Sum of the weights of each bin."""
        return self._weight.value

    @property
    def totals(self) -> np.ndarray:
        """Weighted sum of each field and bin."""
        return self._totals.value

    @property
    def means(self) -> np.ndarray:
        """Weighted mean of each field and bin; NaN for bins without weight."""
        return _quotient(self.totals, self.weight, np.nan)

    @property
    def deviations(self) -> np.ndarray:
        """Weighted standard deviation of each field and bin; the blocks need squares."""
        return np.asarray(np.sqrt(_quotient(self._squares.value, self.weight, np.nan)))


def _counts(
    columns: Sequence[np.ndarray | None], index: np.ndarray | None, bins: int
) -> np.ndarray:
    if index is None:
        return np.array([next(len(column) for column in columns if column is not None)])
    return np.asarray(np.bincount(index, minlength=bins + 1)[:bins])


def _quotient(values: np.ndarray, divisor: np.ndarray, otherwise: float = 0.0) -> np.ndarray:
    divisor = np.broadcast_to(divisor, values.shape)
    result: np.ndarray = np.full(values.shape, otherwise)
    np.divide(values, divisor, out=result, where=divisor != 0)
    return result


def _of_rows(means: np.ndarray, index: np.ndarray | None) -> np.ndarray:
    """Return the mean of the bin of each row; 0 outside of all bins."""
    return np.asarray(means[0] if index is None else np.append(means, 0.0)[index])

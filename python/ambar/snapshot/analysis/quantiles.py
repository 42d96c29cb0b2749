"""Exact quantiles in bounded memory: a radix selection over the bits of float64.

Values are ordered as unsigned integers of 64 bits. A pass counts the 16 highest bits, and each
further one the next 16 bits of the values that are still candidates. Once few candidates are left,
the last pass collects and sorts them: one pass for up to a million rows, two for almost all data,
five at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ambar._core import InvalidError
from ambar.snapshot.analysis.batches import Arrays, Selection, each_block, weights_of
from ambar.snapshot.analysis.columns import weight_name
from ambar.snapshot.analysis.moments import CompensatedSum

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows

_STEP_BITS = 16
_BUCKETS = 1 << _STEP_BITS
_COLLECTED_ROWS = 1 << 20
"""Maximum number of candidates of a quantile that the last pass collects: 16 MiB."""
_SIGN = np.uint64(1 << 63)
_INFINITY = 0xFFF0
"""The bucket of infinity in the first pass; only NaN is above."""


@dataclass
class _Search:
    """The candidates of one quantile: keys whose first bits are `prefix`."""

    level: float
    """The quantile, 0 to 1."""
    rows: int
    """Number of candidates, or an upper bound."""
    prefix: int = 0
    bits: int = 0
    below: float = 0.0
    """Weight of the keys below the candidates."""
    target: float = 0.0
    """Weight that the quantile reaches."""
    value: float | None = None

    def candidates(self, keys: np.ndarray) -> np.ndarray:
        """Return which keys are candidates."""
        return np.asarray(keys >> np.uint64(64 - self.bits) == self.prefix)

    @property
    def prefix_bits(self) -> tuple[int, int]:
        """The prefix and its length, by which searches share their candidates."""
        return self.prefix, self.bits

    @property
    def is_collected(self) -> bool:
        """Whether the next pass collects the candidates instead of counting them."""
        return self.rows <= _COLLECTED_ROWS


def quantiles(
    rows: FieldRows, field: str, levels: Sequence[float], weight: str | None, selection: Selection
) -> list[float]:
    """Return the smallest values at which the sum of the weights reaches fractions of the total.

    That is NumPy's method "inverted_cdf". NaN without rows, or if a value or a weight is NaN.
    """
    for level in levels:
        if not 0 <= level <= 1:
            raise InvalidError(f"invalid quantile: {level}; expected a number from 0 to 1")
    weight = weight_name(rows, weight)
    names = [field, *([weight] if weight else [])]
    searches = [_Search(level, sum(rows._core.chunk_lengths)) for level in levels]
    while open_searches := [search for search in searches if search.value is None]:
        groups = list({search.prefix_bits: search for search in open_searches}.values())

        def reduce(values: Arrays, groups: list[_Search] = groups) -> list[np.ndarray]:
            return [_reduce(s, values[field], weights_of(values, weight)) for s in groups]

        buckets = [CompensatedSum((2, 0 if s.is_collected else _BUCKETS)) for s in groups]
        collected: list[list[np.ndarray]] = [[] for _ in groups]
        for _, found in each_block(rows, names, selection, reduce, 8 * _BUCKETS):
            for search, counts, parts, part in zip(groups, buckets, collected, found, strict=True):
                if search.is_collected:
                    parts.append(part)
                else:
                    counts.add(part)
        for search, counts, parts in zip(groups, buckets, collected, strict=True):
            same = [s for s in open_searches if s.prefix_bits == search.prefix_bits]
            if search.is_collected:
                _finish(same, np.concatenate([np.empty((2, 0)), *parts], axis=1))
            else:
                _narrow(same, counts.value)
    return [float(search.value or 0.0) for search in searches]


def _reduce(search: _Search, values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Return the values and weights of candidates, or the counts and weights of buckets."""
    keys = _keys(values)
    if search.bits:
        chosen = search.candidates(keys)
        keys, values = keys[chosen], values[chosen]
        weights = None if weights is None else weights[chosen]
    if search.is_collected:
        return np.stack([values, np.ones_like(values) if weights is None else weights])
    bucket = (keys >> np.uint64(64 - _STEP_BITS - search.bits)) & np.uint64(_BUCKETS - 1)
    bucket = bucket.astype(np.int64)
    count = np.bincount(bucket, minlength=_BUCKETS).astype(float)
    if weights is None:
        return np.stack([count, count])
    return np.stack([count, np.bincount(bucket, weights, _BUCKETS)])


def _narrow(searches: list[_Search], buckets: np.ndarray) -> None:
    """Choose the bucket of each quantile, from the counts and weights of all buckets."""
    counts, weights = buckets
    filled = np.flatnonzero(counts)
    ends = np.cumsum(weights[filled])
    is_nan = searches[0].bits == 0 and filled.size and filled[-1] > _INFINITY
    if not filled.size or is_nan or np.isnan(ends[-1]):
        for search in searches:
            search.value = np.nan
        return
    for search in searches:
        if search.bits == 0:
            search.target = search.level * float(ends[-1])
        place = _place(ends, search.target - search.below)
        bucket = int(filled[place])
        search.below += float(ends[place - 1]) if place else 0.0
        search.prefix = search.prefix << _STEP_BITS | bucket
        search.bits += _STEP_BITS
        search.rows = int(counts[bucket])
        if search.bits == 64:
            search.value = _value(search.prefix)


def _finish(searches: list[_Search], candidates: np.ndarray) -> None:
    """Sort the values and weights of the candidates and choose a value for each quantile."""
    values, weights = candidates
    if not values.size:
        for search in searches:
            search.value = np.nan
        return
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    for search in searches:
        if search.bits == 0:
            search.target = search.level * float(ends[-1])
            if np.isnan(values[order[-1]]) or np.isnan(ends[-1]):
                search.value = np.nan
                continue
        search.value = float(values[order[_place(ends, search.target - search.below)]])


def _place(ends: np.ndarray, target: float) -> int:
    """Return the first place whose cumulative weight reaches the target."""
    return min(int(np.searchsorted(ends, target)), len(ends) - 1)


def _keys(values: np.ndarray) -> np.ndarray:
    """Return unsigned integers of the same order as float64 values; NaN is the largest."""
    bits = np.where(np.isnan(values), np.nan, values).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _value(key: int) -> float:
    bits = np.array([key], np.uint64)
    return float(np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float64)[0])

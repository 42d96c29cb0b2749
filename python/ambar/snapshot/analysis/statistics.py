"""Statistics of selected cells or particles, each in one pass over the data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ambar._core import InvalidError, UnsupportedError
from ambar._util import html, text
from ambar.snapshot.analysis.batches import (
    Arrays,
    BlockLocation,
    Selection,
    each_block,
    read_batch,
    weights_of,
)
from ambar.snapshot.analysis.columns import components, unit_factor, units_of, weight_name
from ambar.snapshot.analysis.moments import BlockMoments, CompensatedSum, Moments
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows


class Extremum(NamedTuple):
    """The smallest or largest value of a field, and where it is.

    Examples
    --------
    >>> peak = ambar.open_snapshot("run.ambar").amr.argmax("rho")
    >>> peak.value > 1, len(peak.position)
    (True, 3)
    """

    value: float
    """The value."""
    position: tuple[float, ...]
    """The centre of the cell, or the position of the particle."""


@dataclass(frozen=True)
class FieldStatistics:
    """Statistics of one field.

    Examples
    --------
    >>> density = ambar.open_snapshot("run.ambar").amr.statistics("rho")["rho"]
    >>> density.count, density.min < density.mean < density.max
    (49680, True)
    """

    count: int
    """Number of rows."""
    mean: float
    """Weighted mean; NaN without rows."""
    std: float
    """Weighted standard deviation of the population."""
    min: float
    """Smallest value; NaN without rows."""
    max: float
    """Largest value; NaN without rows."""
    sum: float
    """Sum of the values, without weight."""


class Statistics(Mapping[str, FieldStatistics]):
    """Statistics of fields by their names: ``statistics["density"].mean``.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> found = amr.statistics(["rho", "p"], region=ambar.Sphere("bc", 0.25))
    >>> list(found), found.weight
    (['rho', 'p'], 'volume')
    >>> found["p"].max > found["p"].mean
    True
    """

    def __init__(
        self, fields: Mapping[str, FieldStatistics], weight: str | None, weight_sum: float
    ) -> None:
        self._fields = dict(fields)
        self._weight = weight
        self._weight_sum = weight_sum

    @property
    def weight(self) -> str | None:
        """The field that weights means and standard deviations; None for equal weights."""
        return self._weight

    @property
    def weight_sum(self) -> float:
        """Sum of the weights, code units; without a weight the number of rows."""
        return self._weight_sum

    def __getitem__(self, field: str) -> FieldStatistics:
        return self._fields[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self._fields)

    def __repr__(self) -> str:
        """Return a line per field."""
        header, *rows = self._rows()
        return text.representation(
            "<ambar.Statistics>", {"Weight": self.weight or "none"}, text.columns([header, *rows])
        )

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        header, *rows = self._rows()
        return html.representation(
            "ambar.Statistics", {"Weight": self.weight or "none"}, html.table(rows, header)
        )

    def _rows(self) -> list[list[str]]:
        names = [field.name for field in dataclasses.fields(FieldStatistics)]
        rows = [
            [name, *(f"{getattr(found, each):.6g}" for each in names)]
            for name, found in self._fields.items()
        ]
        return [["field", *names], *rows]


def moments(
    rows: FieldRows,
    names: Sequence[str],
    weight: str | None,
    selection: Selection,
) -> Moments:
    """Return weighted sums and means of columns."""

    def reduce(values: Arrays) -> BlockMoments:
        return BlockMoments([values[name] for name in names], weights_of(values, weight))

    found = Moments(len(names))
    for _, batch in each_block(rows, [*names, *_given(weight)], selection, reduce):
        found.add(batch)
    return found


def statistics(
    rows: FieldRows,
    fields: Sequence[str],
    weight: str | None,
    units: Mapping[str, str] | str | None,
    selection: Selection,
) -> Statistics:
    """Return statistics of fields, computed in one pass."""
    if not fields:
        raise InvalidError("expected at least one field, found none")
    weight = weight_name(rows, weight)
    units = units_of(rows, fields, units, fields)
    factors = [unit_factor(rows, name, units[name]) for name in fields]

    def reduce(values: Arrays) -> tuple[BlockMoments, np.ndarray]:
        chosen = [values[name] for name in fields]
        batch = BlockMoments(chosen, weights_of(values, weight), with_squares=True)
        counted = weights_of(values, None)
        plain = [v if counted is None else v * counted for v in chosen]
        parts = zip(chosen, plain, strict=True)
        return batch, np.array([[part.sum(), v.min(), v.max()] for v, part in parts])

    found = Moments(len(fields))
    sums = CompensatedSum((len(fields),))
    low, high = np.full(len(fields), np.inf), np.full(len(fields), -np.inf)
    for _, (batch, plain) in each_block(rows, [*fields, *_given(weight)], selection, reduce):
        found.add(batch)
        sums.add(plain[:, 0])
        low, high = np.minimum(low, plain[:, 1]), np.maximum(high, plain[:, 2])
    count = int(found.count[0])
    if not count:
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    parts = (found.means[:, 0], found.deviations[:, 0], low, high, sums.value)
    scaled = np.array(parts) * np.array(factors)
    results = {
        name: FieldStatistics(count, *scaled[:, number].tolist())
        for number, name in enumerate(fields)
    }
    return Statistics(results, weight, float(found.weight[0]))


def total(rows: FieldRows, field: str, selection: Selection) -> float:
    """Return the sum of a field."""
    return float(moments(rows, [field], None, selection).totals[0, 0])


def mean(rows: FieldRows, field: str, weight: str | None, selection: Selection) -> float:
    """Return the weighted mean of a field."""
    return float(moments(rows, [field], weight_name(rows, weight), selection).means[0, 0])


def value_range(rows: FieldRows, field: str, selection: Selection) -> tuple[float, float]:
    """Return the smallest and the largest value of a field; NaN without rows."""

    def reduce(arrays: Arrays) -> tuple[float, float]:
        return float(arrays[field].min()), float(arrays[field].max())

    found = [ends for _, ends in each_block(rows, [field], selection, reduce)]
    if not found:
        return math.nan, math.nan
    low, high = np.array(found).T
    return float(low.min()), float(high.max())


def extremum(rows: FieldRows, field: str, selection: Selection, *, is_max: bool) -> Extremum:
    """Return the smallest or largest value of a field and its position; of equals the first."""
    sign = -1.0 if is_max else 1.0

    def reduce(arrays: Arrays) -> tuple[float, int]:
        values = arrays[field]
        row = int(np.argmax(values) if is_max else np.argmin(values))
        return float(values[row]), row

    best: tuple[float, int] | None = None
    location = BlockLocation((0, 0), 0)
    for block, found in each_block(rows, [field], selection, reduce):
        # A NaN is the result, as in NumPy.
        if best is None or sign * found[0] < sign * best[0] or math.isnan(found[0]):
            best, location = found, block
            if math.isnan(found[0]):
                break
    if best is None:
        raise InvalidError(
            f"{rows._title}: expected rows with an extremum of {field!r}, found no rows in the "
            "selection; choose another region, levels or condition"
        )
    names = list(AXES[: rows.info.ndim])
    arrays = read_batch(rows, names, selection, location.chunks)
    row = location.start + best[1]
    return Extremum(best[0], tuple(float(arrays[name][row]) for name in names))


def center_of_mass(
    rows: FieldRows, weight: str | None, center: np.ndarray, selection: Selection
) -> np.ndarray:
    """Return the weighted mean of positions, of the nearest periodic images to a center."""
    info, weight = rows.info, weight_name(rows, weight)
    names = list(AXES[: info.ndim])
    periodic = info.periodic or (False,) * info.ndim
    lower, sides = np.array(info.lower), np.array(info.box_size)

    def reduce(values: Arrays) -> BlockMoments:
        offsets = []
        for axis, name in enumerate(names):
            offset = values[name] - center[axis]
            if periodic[axis]:
                offset -= sides[axis] * np.rint(offset / sides[axis])
            offsets.append(offset)
        return BlockMoments(offsets, weights_of(values, weight))

    found = Moments(len(names))
    for _, block in each_block(rows, [*names, *_given(weight)], selection, reduce):
        found.add(block)
    position: np.ndarray = center + found.means[:, 0]
    return np.where(periodic, lower + np.mod(position - lower, sides), position)


def bulk_velocity(rows: FieldRows, weight: str | None, selection: Selection) -> np.ndarray:
    """Return the weighted mean of the velocity."""
    names = components("velocity", rows.info.ndim)
    return moments(rows, names, weight_name(rows, weight), selection).means[:, 0].copy()


def angular_momentum(rows: FieldRows, selection: Selection, *, is_specific: bool) -> np.ndarray:
    """Return the total angular momentum in the frame of the rows, or that of unit mass."""
    if rows.info.ndim != 3:
        raise UnsupportedError(
            f"expected data of 3 dimensions for the angular momentum, found {rows.info.ndim}"
        )
    weight = weight_name(rows, "mass")
    found = moments(rows, components("specific_angular_momentum", 3), weight, selection)
    return np.asarray((found.means if is_specific else found.totals)[:, 0])


def velocity_dispersion(rows: FieldRows, weight: str | None, selection: Selection) -> np.ndarray:
    """Return the weighted covariance of the components of the velocity."""
    names, weight = components("velocity", rows.info.ndim), weight_name(rows, weight)
    pairs = np.triu_indices(len(names))

    def reduce(values: Arrays) -> tuple[BlockMoments, np.ndarray]:
        velocity = [values[name] for name in names]
        weights = weights_of(values, weight)
        batch = BlockMoments(velocity, weights)
        parts = [v - m for v, m in zip(velocity, batch.means[:, 0], strict=True)]
        scaled = parts if weights is None else [part * weights for part in parts]
        products = [(scaled[i] * parts[j]).sum() for i, j in zip(*pairs, strict=True)]
        return batch, np.array(products)

    found, products = Moments(len(names)), CompensatedSum((len(pairs[0]),))
    for _, (batch, inner) in each_block(rows, [*names, *_given(weight)], selection, reduce):
        before, after = float(found.weight[0]), float(batch.weight[0])
        if before and after:
            shift = (batch.means - found.means)[:, 0]
            between = before * after / (before + after) * shift[pairs[0]] * shift[pairs[1]]
            products.add(between)
        products.add(inner)
        found.add(batch)
    tensor = np.full((len(names), len(names)), np.nan)
    if found.weight[0]:
        tensor[pairs] = tensor[pairs[::-1]] = products.value / found.weight[0]
    return tensor


def _given(weight: str | None) -> list[str]:
    return [] if weight is None else [weight]

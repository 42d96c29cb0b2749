"""Profiles, phase diagrams and histograms as xarray objects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar._core import InvalidError, LimitError, memory_limit
from ambar._util.optional import require
from ambar.snapshot.analysis.batches import (
    BLOCK_ROWS,
    Arrays,
    Selection,
    each_block,
    is_cells,
    weights_of,
)
from ambar.snapshot.analysis.columns import (
    AUTO,
    is_length,
    unit_factor,
    unit_label,
    units_of,
    weight_name,
)
from ambar.snapshot.analysis.moments import BlockMoments, Moments

if TYPE_CHECKING:
    import xarray as xr

    from ambar.snapshot.field_rows import FieldRows

BinEdges: TypeAlias = int | list[float] | npt.NDArray[np.floating]
Range: TypeAlias = tuple[float, float]
Statistic: TypeAlias = Literal["mean", "sum", "std"]

_STATISTICS = ("mean", "sum", "std")
_BIN_BYTES = 256
"""Memory of a bin: sums of a field, their errors, those of blocks, and rows of a block."""
_EMPTY_RANGE = (0.5, 1.0)
"""The range of bins without values."""
_LOG_SPAN = 100.0
"""Bins are logarithmic by default if positive values span more than this factor."""


@dataclass(frozen=True)
class Bins:
    """The bins of a column."""

    name: str
    edges: np.ndarray
    """In the unit of the result."""
    factor: float
    """From code units to this unit."""
    unit: str
    is_log: bool
    is_uniform: bool
    """Whether edges are equidistant, in the logarithm if `is_log`."""

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def centers(self) -> np.ndarray:
        """The middle of each bin; the geometric mean of its edges if it is logarithmic."""
        low, high = self.edges[:-1], self.edges[1:]
        return np.asarray(np.sqrt(low) * np.sqrt(high) if self.is_log else (low + high) / 2)

    def index(self, values: np.ndarray) -> np.ndarray:
        """Return the bin of each value in code units; `count` for values outside.

        Bins are half-open except the last one, as in `numpy.histogram`.
        """
        edges = self.edges / self.factor
        is_inside = (values >= edges[0]) & (values <= edges[-1])
        if not self.is_uniform:
            found = np.searchsorted(edges, values, side="right") - 1
            found[values == edges[-1]] = self.count - 1
            return np.where(is_inside, found, self.count)
        inside = np.where(is_inside, values, edges[0])
        start, end = edges[0], edges[-1]
        if self.is_log:
            scale = self.count / np.log(end / start)
            place = np.log(inside / start)
        else:
            scale = self.count / (end - start)
            place = inside - start
        place *= scale
        found = np.minimum(place.astype(np.int64), self.count - 1)
        # The quotient may be off by one bin where a value is near an edge.
        found -= inside < edges[found]
        found += (inside >= edges[found + 1]) & (found < self.count - 1)
        found[~is_inside] = self.count
        return np.asarray(found)

    @property
    def coordinates(self) -> dict[str, Any]:
        """The centres and edges of the bins as coordinates of xarray."""
        attrs = {"units": self.unit, "scale": "log" if self.is_log else "linear"}
        values = {"": self.centers, "_lower": self.edges[:-1], "_upper": self.edges[1:]}
        return {f"{self.name}{end}": (self.name, each, attrs) for end, each in values.items()}


def make_bins(
    rows: FieldRows,
    names: Sequence[str],
    bins: Sequence[BinEdges],
    ranges: Sequence[Range | None],
    logs: Sequence[bool | None],
    units: Mapping[str, str],
    selection: Selection,
) -> list[Bins]:
    """Return the bins of columns; missing ranges are those of the values, found in one pass."""
    _check_memory(bins)
    unknown = {
        name: log
        for name, each, span, log in zip(names, bins, ranges, logs, strict=True)
        if isinstance(each, (int, np.integer)) and span is None
    }
    found = _ranges(rows, unknown, selection) if unknown else {}
    result = []
    for name, each, span, log in zip(names, bins, ranges, logs, strict=True):
        unit = units[name]
        factor = unit_factor(rows, name, unit)
        is_uniform = isinstance(each, (int, np.integer))
        if is_uniform:
            low, high = span if span is not None else (end * factor for end in found[name])
            is_log = _is_log(rows, name, low, high) if log is None else log
            edges = _edges(int(each), low, high, is_log=is_log)  # type: ignore[arg-type]
        else:
            edges, is_log = _checked_edges(each), bool(log)
        label = unit_label(rows, name, unit)
        result.append(Bins(name, edges, factor, label, is_log, is_uniform))
    return result


def _check_memory(bins: Sequence[BinEdges]) -> None:
    """Raise LimitError if the sums of a field in all bins exceed the memory limit."""
    size = math.prod(
        max(int(each), 0) if isinstance(each, (int, np.integer)) else np.size(each) for each in bins
    )
    needed, limit = size * _BIN_BYTES, memory_limit()
    if needed > limit:
        raise LimitError(
            f"{size} bins need {needed} bytes, more than the limit of {limit}; choose fewer bins"
        )


def _ranges(
    rows: FieldRows,
    logs: Mapping[str, bool | None],
    selection: Selection,
) -> dict[str, Range]:
    """Return the ranges of finite values; of positive ones for logarithmic bins."""

    def reduce(arrays: Arrays) -> np.ndarray:
        ends = []
        for name in logs:
            values = arrays[name]
            chosen = values[np.isfinite(values) & (values > 0 if logs[name] else True)]
            ends.append((chosen.min(), chosen.max()) if chosen.size else (np.inf, -np.inf))
        return np.array(ends)

    found = [ends for _, ends in each_block(rows, list(logs), selection, reduce)]
    if not found:
        return dict.fromkeys(logs, _EMPTY_RANGE)
    low = np.min([ends[:, 0] for ends in found], axis=0)
    high = np.max([ends[:, 1] for ends in found], axis=0)
    return {
        name: (float(a), float(b)) if a <= b else _EMPTY_RANGE
        for name, a, b in zip(logs, low, high, strict=True)
    }


def _is_log(rows: FieldRows, name: str, low: float, high: float) -> bool:
    """Return whether bins are logarithmic by default: of positive values that span decades."""
    return low > 0 and high / low > _LOG_SPAN and not is_length(rows, name)


def _edges(count: int, low: float, high: float, *, is_log: bool) -> np.ndarray:
    if count < 1:
        raise InvalidError(f"invalid number of bins: {count}; expected an integer >= 1")
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise InvalidError(f"invalid range: ({low}, {high}); expected finite low <= high")
    if is_log and low <= 0:
        raise InvalidError(
            f"invalid range of logarithmic bins: ({low}, {high}); expected low > 0, or log=False"
        )
    if low == high:
        low, high = (low / 2, high * 2) if is_log else (low - 0.5, high + 0.5)
    return np.geomspace(low, high, count + 1) if is_log else np.linspace(low, high, count + 1)


def _checked_edges(edges: BinEdges) -> np.ndarray:
    found = np.asarray(edges, np.float64)
    if found.ndim != 1 or len(found) < 2 or not (np.diff(found) > 0).all():
        raise InvalidError(
            f"invalid edges of bins: {edges!r:.80}; expected a number of bins, or increasing edges"
        )
    return found


def binned(
    rows: FieldRows,
    bins: Sequence[Bins],
    fields: Sequence[str],
    weight: str | None,
    selection: Selection,
    *,
    with_squares: bool = False,
) -> Moments:
    """Return moments of fields in the cells of one or two dimensions of bins, flattened."""
    size = int(np.prod([each.count for each in bins]))
    wanted = [each.name for each in bins] + [*fields, *([weight] if weight else [])]

    def reduce(values: Arrays) -> BlockMoments:
        index = bins[0].index(values[bins[0].name])
        for each in bins[1:]:
            inner = each.index(values[each.name])
            is_outside = (index == bins[0].count) | (inner == each.count)
            index = np.where(is_outside, size, index * each.count + inner)
        chosen = [values[name] for name in fields]
        weights = weights_of(values, weight)
        return BlockMoments(chosen, weights, index, size, with_squares=with_squares)

    found = Moments(len(fields), size)
    block_rows = max(BLOCK_ROWS, 8 * size)
    for _, block in each_block(rows, list(dict.fromkeys(wanted)), selection, reduce, block_rows):
        found.add(block)
    return found


def profile(
    rows: FieldRows,
    x: str,
    fields: str | Iterable[str],
    *,
    weight: str | None,
    bins: BinEdges,
    range: Range | None,  # noqa: A002
    log: bool | None,
    statistic: Statistic,
    units: Mapping[str, str] | str | None,
    selection: Selection,
) -> xr.Dataset:
    """Return a statistic of fields in bins of a column."""
    _require_xarray("profile")
    import xarray as xr

    if statistic not in _STATISTICS:
        raise InvalidError(
            f"invalid statistic {statistic!r}; expected one of {', '.join(_STATISTICS)}"
        )
    names = [fields] if isinstance(fields, str) else list(fields)
    if x in names:
        raise InvalidError(f"expected fields other than {x!r}, the column of the bins")
    if weight == AUTO and not is_cells(rows):
        weight = "mass"
    weight = weight_name(rows, weight) if statistic != "sum" else None
    units = units_of(rows, [x, *names], units, names)
    factors = [unit_factor(rows, name, units[name]) for name in names]
    edges = make_bins(rows, [x], [bins], [range], [log], units, selection)
    is_std = statistic == "std"
    found = binned(rows, edges, names, weight, selection, with_squares=is_std)
    values = {"mean": found.means, "sum": found.totals, "std": found.deviations}[statistic]
    attrs = {"statistic": statistic, "weight": weight or "none"}
    variables: dict[str, Any] = {
        name: (x, row * factor, {"units": unit_label(rows, name, units[name]), **attrs})
        for name, row, factor in zip(names, values, factors, strict=True)
    }
    variables["count"] = (x, found.count, {"long_name": "number of rows"})
    if weight:
        variables["weight_sum"] = (
            x,
            found.weight,
            {"units": unit_label(rows, weight, "code"), "long_name": weight},
        )
    return xr.Dataset(variables, coords=edges[0].coordinates, attrs=attrs)


def phase(
    rows: FieldRows,
    x: str,
    y: str,
    *,
    field: str,
    weight: str | None,
    bins: BinEdges | tuple[BinEdges, BinEdges],
    range: tuple[Range | None, Range | None] | None,  # noqa: A002
    log: bool | tuple[bool | None, bool | None] | None,
    units: Mapping[str, str] | str | None,
    selection: Selection,
) -> xr.DataArray:
    """Return the sum, or the weighted mean, of a field in bins of two columns."""
    _require_xarray("phase")
    import xarray as xr

    if x == y:
        raise InvalidError(f"expected two different columns, found {x!r} twice")
    weight = None if weight is None else weight_name(rows, weight)
    units = units_of(rows, [x, y, field], units, [field])
    factor = unit_factor(rows, field, units[field])
    pair: Any = bins if isinstance(bins, tuple) else (bins, bins)
    logs = log if isinstance(log, tuple) else (log, log)
    both = make_bins(rows, [x, y], pair, range or (None, None), logs, units, selection)
    found = binned(rows, both, [field], weight, selection)
    values = found.totals if weight is None else found.means
    return xr.DataArray(
        (values[0] * factor).reshape(both[0].count, both[1].count).T,
        dims=(y, x),
        coords=both[0].coordinates | both[1].coordinates,
        name=field,
        attrs={
            "units": unit_label(rows, field, units[field]),
            "statistic": "sum" if weight is None else "mean",
            "weight": weight or "none",
        },
    )


def histogram(
    rows: FieldRows,
    field: str,
    *,
    weight: str | None,
    bins: BinEdges,
    range: Range | None,  # noqa: A002
    log: bool | None,
    density: bool,
    units: Mapping[str, str] | str | None,
    selection: Selection,
) -> xr.DataArray:
    """Return the sum of a weight in bins of a column, or the number of rows without a weight."""
    _require_xarray("histogram")
    import xarray as xr

    weight = weight_name(rows, weight)
    units = units_of(rows, [field, *([weight] if weight else [])], units, [field])
    edges = make_bins(rows, [field], [bins], [range], [log], units, selection)
    found = binned(rows, edges, [], weight, selection)
    unit = "count" if weight is None else units[weight]
    values = found.weight
    if density:
        values = values / (values.sum() * np.diff(edges[0].edges))
        unit = f"1/({edges[0].unit})"
    elif weight is not None:
        values = values * unit_factor(rows, weight, unit)
        unit = unit_label(rows, weight, unit)
    attrs = {
        "units": unit,
        "weight": weight or "none",
        "statistic": "density" if density else "sum",
    }
    return xr.DataArray(
        values,
        dims=(field,),
        coords=edges[0].coordinates,
        name=weight or "count",
        attrs=attrs,
    )


def _require_xarray(method: str) -> None:
    require("xarray", purpose=method, install="ambar[xarray]")

"""Profiles, phase diagrams and histograms as xarray objects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar._core import Binning, InvalidError, LimitError, memory_limit
from ambar._util.arguments import names_of, two_numbers
from ambar._util.optional import require
from ambar.snapshot.analysis.batches import (
    BLOCK_ROWS,
    Arrays,
    Selection,
    batch_ranges,
    each_block,
    is_cells,
    read_batch,
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
_SEARCH_BYTES = 2 << 20
"""Maximum bytes of the columns of a batch that is read for the ranges of values."""
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

    @property
    def count(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def centers(self) -> np.ndarray:
        """The middle of each bin; the geometric mean of its edges if it is logarithmic."""
        low, high = self.edges[:-1], self.edges[1:]
        return np.asarray(np.sqrt(low) * np.sqrt(high) if self.is_log else (low + high) / 2)

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
        if isinstance(each, (int, np.integer)):
            if span is None:
                low, high = (end * factor for end in found[name])
            else:
                low, high = two_numbers("range", span)
            is_log = _is_log(rows, name, low, high) if log is None else log
            edges = _edges(int(each), low, high, is_log=is_log)
        else:
            edges, is_log = _checked_edges(each), bool(log)
        label = unit_label(rows, name, unit)
        result.append(Bins(name, edges, factor, label, is_log))
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
    """Return the ranges of finite values; of positive ones for logarithmic bins.

    Batches are read in the order of their bounds, until no other one can extend a range.
    """
    names = list(logs)
    batches = batch_ranges(rows, len(names), _SEARCH_BYTES)
    bounds = {name: _bounds_of_batches(rows, name, selection, batches) for name in names}
    found = dict.fromkeys(names, (math.inf, -math.inf))
    unread = set(batches)
    for name, end in itertools.product(names, (0, 1)):
        sign = (1, -1)[end]
        for number in np.argsort(sign * bounds[name][:, end], kind="stable"):
            bound = bounds[name][number, end]
            if logs[name]:
                bound = max(bound, 0.0)
            if sign * bound >= sign * found[name][end]:
                break
            if batches[number] in unread:
                unread.remove(batches[number])
                arrays = read_batch(rows, names, selection, batches[number])
                for key, values in arrays.items():
                    found[key] = _wider(found[key], values, is_log=bool(logs[key]))
    return {name: span if span[0] <= span[1] else _EMPTY_RANGE for name, span in found.items()}


def _bounds_of_batches(
    rows: FieldRows, name: str, selection: Selection, batches: Sequence[tuple[int, int]]
) -> np.ndarray:
    """Return bounds of a column in each batch of chunks: float64 (batches, 2)."""
    request = rows._request([name], selection.where)
    bounds = rows._core.bounds(request.columns[name], request.computed)
    if bounds is None:
        return np.full((len(batches), 2), (-np.inf, np.inf))
    ends = [(bounds[a:b, 0].min(), bounds[a:b, 1].max()) for a, b in batches]
    return np.array(ends, np.float64).reshape(-1, 2)


def _wider(span: Range, values: np.ndarray, *, is_log: bool) -> Range:
    """Return a range with finite values, or positive ones."""
    floats = np.asarray(values, np.float64)
    chosen = floats[np.isfinite(floats) & (floats > 0 if is_log else True)]
    if not chosen.size:
        return span
    return min(span[0], float(chosen.min())), max(span[1], float(chosen.max()))


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
    try:
        found = np.asarray(edges, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
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
    binning = Binning([(each.edges / each.factor, each.is_log) for each in bins])
    wanted = [each.name for each in bins] + [*fields, *([weight] if weight else [])]

    def reduce(values: Arrays) -> BlockMoments:
        index = binning.index([values[each.name] for each in bins])
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
    names = names_of("fields", fields)
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
    values = found.deviations if is_std else found.totals if statistic == "sum" else found.means
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
    if weight is None:
        field = weight_name(rows, field) or field
    else:
        weight = weight_name(rows, weight)
    units = units_of(rows, [x, y, field], units, [field])
    factor = unit_factor(rows, field, units[field])
    pair: Any = bins if isinstance(bins, tuple) else (bins, bins)
    logs = log if isinstance(log, tuple) else (log, log)
    ranges = (None, None) if range is None else range
    for name, each in (("bins", pair), ("log", logs), ("range", ranges)):
        if not isinstance(each, Sequence | np.ndarray) or len(each) != 2:
            raise InvalidError(
                f"invalid {name}: {each!r:.80}; expected a tuple of two, one for each of the "
                f"columns {x!r} and {y!r}"
            )
    both = make_bins(rows, [x, y], pair, ranges, logs, units, selection)
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

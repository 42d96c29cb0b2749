"""Comparison of two versions of the same data: errors by field and level, and error bounds."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar._util import text
from ambar._util.arguments import names_of
from ambar._util.user_warnings import warn
from ambar.comparison.bounds import CheckedBound, check_bounds
from ambar.comparison.error_metrics import (
    Scale,
    as_numbers,
    errors,
    power_spectrum,
    psnr,
    scale_of,
    ssim,
)
from ambar.comparison.operands import Operand, operand_of
from ambar.comparison.rows import RowComparison
from ambar.store.error_bounds import (
    ErrorBound,
    PartBound,
    as_text,
    loose_bound,
    median_magnitude,
    range_of,
    select_bounds,
)

LISTED = 5
"""Names that a verdict lists."""
SPECTRUM_SIDE = 256
"""Largest side of the grid of a power spectrum, in cells."""


@dataclass
class ErrorMetrics:
    """Error metrics of the values of a level, or of all levels."""

    level: int | None
    """The level; None for all levels."""
    cells: int
    """The number of values."""
    lowest: float
    """The smallest finite value of the original."""
    highest: float
    """The largest finite value of the original."""
    max_error: float
    """The largest absolute error; infinite if NaN, an infinity, a string or a bool differs."""
    unequal: int
    """The number of values that differ. Complex numbers count as two values."""
    psnr: float
    """Peak signal-to-noise ratio in dB, relative to the range of the field over all levels.

    Infinite if all values are equal.
    """
    ssim: float
    """Mean structural similarity; NaN if no window of 8 cells a side is at least half full."""


@dataclass
class FieldComparison(CheckedBound):
    """The errors of a field."""

    field: str
    """The name of the field."""
    ratio: float
    """The bytes of the field in the original, divided by those in the other version.

    The inverse if only the original is a store: how many times smaller the field is in the store.
    """
    all: ErrorMetrics
    """The metrics over all levels."""
    levels: list[ErrorMetrics]
    """The metrics on each level; an empty list for values without levels."""
    time_dtype: str | None = None
    """The dtype of times, in whose unit their values and errors are numbers; else None."""


@dataclass
class Spectrum:
    """Power spectra of the contrast of a field on a covering grid."""

    field: str
    """The name of the field."""
    level: int
    """The level of the grid."""
    k: list[float]
    """Wave numbers: 2 pi / length, in code units."""
    original: list[float]
    """The power in the original."""
    other: list[float]
    """The power in the other version."""

    @property
    def ratio(self) -> list[float]:
        """The power in the other version, divided by that in the original."""
        pairs = zip(self.other, self.original, strict=True)
        return [b / a if a else (1.0 if b == a else math.inf) for b, a in pairs]


@dataclass(repr=False)
class Comparison:
    """The differences between two versions of the same data; `ambar.compare` returns it.

    ``print`` shows a table.

    Examples
    --------
    >>> ambar.convert("plt00200", "plt.ambar", error_bound={"Temp": 0.01})
    Conversion(...)
    >>> found = ambar.compare("plt00200", "plt.ambar")
    >>> found
    <ambar.Comparison> plt00200 and plt.ambar
      Values:  2,116 of each field
      Fields (ratio: bytes in the original / in the other):
        field    max abs error  error bound  given bound  held  PSNR dB  SSIM     ratio
        density  0              0            -            yes   inf      1.00000  ...
        Temp     0.0...         0.01         1e-2         yes   4...     0.99...  ...
      all bounds hold
    """

    original: str
    """The path of the original."""
    other: str
    """The path of the other version."""
    cells: int
    """The largest number of values of a field."""
    fields: list[FieldComparison]
    """The fields that both have."""
    only_in_original: list[str] = field(default_factory=list)
    """Fields and components that the other version lacks."""
    only_in_other: list[str] = field(default_factory=list)
    """Fields and components that the original lacks."""
    datasets_only_in_original: list[str] = field(default_factory=list)
    """Datasets of collections that the other version lacks."""
    datasets_only_in_other: list[str] = field(default_factory=list)
    """Datasets of collections that the original lacks."""
    not_compared: list[str] = field(default_factory=list)
    """Arrays that cannot be compared, such as the cells of a mesh that was reordered."""
    spectrum: Spectrum | None = None
    """The power spectra of a field; None if no spectrum was requested."""
    tables: list[RowComparison] = field(default_factory=list)
    """Particles, sinks and clumps that both have."""
    is_selection: bool = False
    """Whether fields were chosen: the verdict then ignores what only one version has."""

    def _counted(self) -> str:
        """Return the number of values of a field, or the range of these numbers."""
        least = min(one.all.cells for one in self.fields)
        if least == self.cells:
            return f"{self.cells:,} of each field"
        return f"{least:,} to {self.cells:,} of a field"

    @property
    def held(self) -> bool:
        """Whether all error bounds held, and both versions have the same rows and datasets.

        Bounds that are unknown count as held. Fields that only one version has are not compared.
        False if nothing was compared, or if `not_compared` lists an array.
        """
        return not self._failures

    @property
    def verdict(self) -> str:
        """The result in one line: everything that makes `held` False, and what was not checked.

        Without failures, it begins with "all values are equal", "all bounds hold", "all known
        bounds hold" or "values differ, and no error bound is known". Fields and columns without a
        known bound, and what only one version has, are not checked.

        Examples
        --------
        >>> ambar.compare("output_00002", "run.ambar").verdict
        'all values are equal'
        """
        if self._failures:
            return "; ".join([*self._failures, *self._unchecked])
        if self._is_equal:
            return "; ".join(["all values are equal", *self._only_in_one])
        known = [one.held for one in self.fields]
        known += [column.held for table in self.tables for column in table.columns]
        if not any(known):
            return "; ".join(["values differ, and no error bound is known", *self._only_in_one])
        return "; ".join(
            ["all known bounds hold" if self._unchecked else "all bounds hold", *self._unchecked]
        )

    @property
    def _is_equal(self) -> bool:
        """Whether all compared values are equal."""
        errors = [one.all.max_error for one in self.fields]
        errors += [column.max_error for table in self.tables for column in table.columns]
        return not any(errors)

    @property
    def _unchecked(self) -> list[str]:
        """What was not checked, without making `held` False."""
        names = [one.field for one in self.fields if one.held is None]
        names += [
            f"{table.component}/{column.column}"
            for table in self.tables
            for column in table.columns
            if column.held is None
        ]
        unknown = [f"not checked, without a known bound: {_first(names)}"] if names else []
        return unknown + self._only_in_one

    @property
    def _only_in_one(self) -> list[str]:
        """What was not compared because only one version has it, unless fields were chosen."""
        if self.is_selection:
            return []
        return [
            f"not compared, only in the {where}: {_first(names)}"
            for where, names in (
                ("original", [*self.only_in_original, *self._columns_only("only_in_original")]),
                ("other", [*self.only_in_other, *self._columns_only("only_in_other")]),
            )
            if names
        ]

    def _columns_only(self, where: str) -> list[str]:
        return [
            f"{table.component}/{column}"
            for table in self.tables
            for column in getattr(table, where)
        ]

    @property
    def _failures(self) -> list[str]:
        """Everything that makes `held` False."""
        if not (self.fields or self.tables):
            return ["nothing was compared"]
        checked: dict[str, list[tuple[str, CheckedBound]]] = {
            "field": [(one.field, one) for one in self.fields],
            "column": [
                (f"{table.component}/{column.column}", column)
                for table in self.tables
                for column in table.columns
            ],
        }
        datasets = len(self.datasets_only_in_original) + len(self.datasets_only_in_other)
        return [
            *(part for noun, ones in checked.items() for part in _exceeding(noun, ones)),
            *(
                f"{table.component}: {table.missing + table.extra:,} rows only in one version"
                for table in self.tables
                if table.missing or table.extra
            ),
            *[f"{text.plural(datasets, 'dataset')} only in one version"] * (datasets > 0),
            *(f"{name} cannot be compared" for name in self.not_compared),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can represent it.

        Returns
        -------
        dict
            The attributes. NaN is None, infinities are "inf".

        Examples
        --------
        >>> ambar.compare("output_00002", "run.ambar").to_dict()["fields"][0]["held"]
        True
        """
        values = asdict(self)
        values["held"] = self.held
        for table, entry in zip(self.tables, values["tables"], strict=True):
            entry["held"] = table.held
        if self.spectrum is not None:
            values["spectrum"]["ratio"] = self.spectrum.ratio
        plain: dict[str, Any] = _plain(values)
        return plain

    def __repr__(self) -> str:
        return f"{self._text()}\n  {self.verdict}"

    def _text(self) -> str:
        """Return the representation without the verdict."""
        properties = {
            "Values": self._counted() if self.fields else None,
            "Not compared": ", ".join(self.not_compared) or None,
            "Only in the original": ", ".join(self.only_in_original) or None,
            "Only in the other": ", ".join(self.only_in_other) or None,
            "Datasets only in the original": _first(self.datasets_only_in_original) or None,
            "Datasets only in the other": _first(self.datasets_only_in_other) or None,
        }
        sections: list[list[str]] = []
        if self.fields:
            sections += [
                ["  Fields (ratio: bytes in the original / in the other):"],
                text.columns(_field_rows(self), 4),
            ]
        if self.tables:
            sections += [["  Rows:"], text.columns(_column_rows(self), 4)]
            sections.append([f"    {table.summary}" for table in self.tables])
        title = f"<ambar.Comparison> {self.original} and {self.other}"
        return text.representation(title, properties, *sections)


def _field_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return the table of the fields, the header first."""
    errors = [error_text(one.all.max_error, one.time_dtype) for one in found.fields]
    quality = [
        (psnr_text(one.all.psnr), ssim_text(one.all.ssim), f"{one.ratio:.2f}")
        for one in found.fields
    ]
    return [
        (*first, *last)
        for first, last in zip(
            _bound_rows("field", [(one.field, one) for one in found.fields], errors),
            [("PSNR dB", "SSIM", "ratio"), *quality],
            strict=True,
        )
    ]


def _column_rows(found: Comparison) -> list[tuple[str, ...]]:
    """Return the table of the columns of rows, the header first."""
    columns = [(table, column) for table in found.tables for column in table.columns]
    rows = _bound_rows(
        "column",
        [(f"{table.component}/{column.column}", column) for table, column in columns],
        [f"{column.max_error:.4g}" for _, column in columns],
    )
    counts = ["rows", *(f"{table.rows:,}" for table, _ in columns)]
    return [(*row, count) for row, count in zip(rows, counts, strict=True)]


def _bound_rows(
    kind: str, checked: list[tuple[str, CheckedBound]], errors: list[str]
) -> list[tuple[str, ...]]:
    """Return names, largest errors, bounds and whether they held, the header first.

    The error that a bound limits is a column of its own where it is not the largest absolute one.
    """
    has_measured = any(isinstance(one.bound, str) for _, one in checked)
    measured = ["measured"] * has_measured
    rows = [(kind, "max abs error", *measured, "error bound", "given bound", "held")]
    for (name, one), error in zip(checked, errors, strict=True):
        found = "-" if one.measured is None else f"{one.measured:.4g}"
        rows.append((name, error, *[found] * has_measured, *_bound_cells(one)))
    return rows


def value_text(value: float, time_dtype: str | None = None) -> str:
    """Return a value of a field as text: numbers with four digits, times as dates, "-" for NaN.

    Examples
    --------
    >>> value_text(1.25), value_text(1.5e18, "datetime64[ns]")
    ('1.25', '2017-07-14T02:40:00')
    """
    if math.isnan(value):
        return "-"
    if time_dtype is None or time_dtype.startswith("timedelta"):
        return error_text(value, time_dtype)
    # float64 has 16 of the 19 digits of nanoseconds.
    count = round(int(value), -4 if "[ns]" in time_dtype else 0)
    count = min(max(count, -(2**63)), 2**63 - 1)
    time = str(np.array(count, "i8").view(time_dtype))
    return time.rstrip("0").rstrip(".") if "." in time else time


def error_text(error: float, time_dtype: str | None = None) -> str:
    """Return an error as text; those of times are in seconds.

    Examples
    --------
    >>> error_text(1.25), error_text(2.5e8, "datetime64[ns]")
    ('1.25', '0.25 s')
    """
    unit, count = np.datetime_data(time_dtype or "m8")
    if unit == "generic" or error == 0 or math.isinf(error):
        return f"{error:.4g}"
    if unit in "YM":
        return f"{error * count:.4g} {unit}"
    seconds = float(np.array(1, f"m8[{count}{unit}]") / np.timedelta64(1, "s"))
    return f"{error * seconds:.4g} s"


def psnr_text(value: float) -> str:
    """Return a peak signal-to-noise ratio in dB as text; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:.1f}"


def ssim_text(value: float) -> str:
    """Return a structural similarity as text; "-" for NaN."""
    return "-" if math.isnan(value) else f"{value:.5f}"


def _bound_cells(one: CheckedBound) -> tuple[str, str, str]:
    """Return the checked bound, the given bound and whether it held."""
    bound = "-" if one.bound is None else _core.format_bound(one.bound)
    given = next(iter(one.bounds.values()), "-")
    if one.bound is None and one.bounds:
        # Without a check, the versions have bounds that cannot be added.
        bound, given = ("-", "-") if one.held is None else ("by part", given)
    if len(one.bounds) > 1 and one.held is not None:
        given = f"{len(one.bounds)} parts"
    held = "-" if one.held is None else "yes" if one.held else "NO"
    return bound, given, held


def _exceeding(noun: str, checked: list[tuple[str, CheckedBound]]) -> list[str]:
    """Return the parts of a verdict that list fields or columns whose bounds do not hold."""
    failed = [(name, one.bound == 0) for name, one in checked if one.held is False]
    return [
        f"{text.plural(len(names), noun)} {verb[len(names) > 1]}: {_first(names)}"
        for is_exact, verb in (
            (True, ("differs", "differ")),
            (False, ("exceeds its bound", "exceed their bounds")),
        )
        if (names := [name for name, exact in failed if exact is is_exact])
    ]


def _first(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - LISTED:,} more" * (len(names) > LISTED)
    return ", ".join(names[:LISTED]) + more


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value


def compare(
    original: str | os.PathLike[str],
    other: str | os.PathLike[str],
    fields: Sequence[str] | None = None,
    *,
    bound: ErrorBound | None = None,
    output: int | None = None,
    spectrum: str | None = None,
    threads: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Comparison:
    """Compare two versions of the same data.

    Cells are matched by level and position; only leaf cells count. Particles, sinks and clumps are
    matched by their identities, otherwise by order or position. Meshes are compared by points,
    cells and arrays of the same names, collections by datasets and variables, and other stores by
    arrays. Strings and bools must be equal. Errors are computed in float64; integers whose
    difference float64 rounds to 0 have an error of 1.

    Parameters
    ----------
    original, other : str or path-like
        Stores or their URLs, AMReX plotfiles or RAMSES outputs.
    fields : str or sequence of str, optional
        Fields, and components of rows ("particles", "particles/DM", "sinks"), to compare; by
        default all that both have. The name of an array of a mesh selects those of all blocks.
    bound : float, str or mapping, optional
        The error bound to check for fields of cells: a number, or ``"1e-3 of range"`` of the finite
        values of the original; or a mapping as for `ambar.convert`, with levels, boxes and columns
        of particles such as "DM/mass". By default the bounds that the stores were written with;
        without such a bound, values must be equal.
    output : int, optional
        The number of the output, or of the time step, of a series.
    spectrum : str, optional
        A field whose power spectra are compared, on the finest covering grid of at most 256 cells
        a side.
    threads : int, optional
        The number of threads that read; all cores by default.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Comparison
        The largest errors are absolute, in the unit of the field. A bound "relative" is relative to
        each value of the original, the PSNR to the range of its field over all levels.

    Raises
    ------
    ValueError
        If the cells, meshes or shapes of the two differ, or a bound is invalid.
    KeyError
        If a field does not exist in both.

    Examples
    --------
    >>> found = ambar.compare("output_00002", "run.ambar", ["density", "particles"])
    >>> found.held, found.cells, found.fields[0].all.max_error
    (True, 49680, 0.0)
    """
    a, b = (operand_of(path, output, threads, storage_options) for path in (original, other))
    common = [name for name in a.fields if name in b.fields]
    tables = [name for name in a.tables if name in b.tables]
    everything = [*common, *tables]
    requested = everything if fields is None else names_of("fields", fields)
    full_names = {
        name: [full for full in (*a.named(name), name) if full in everything] for name in requested
    }
    missing = [name for name, full in full_names.items() if not full]
    if spectrum and spectrum not in common:
        missing.append(spectrum)
    if missing:
        raise _core.NotFoundError(
            f"no field {missing[0]!r} in both {a.location} and {b.location}; "
            f"{text.suggestion(missing[0], everything)}"
        )
    chosen = dict.fromkeys(full for names in full_names.values() for full in names)
    rules, bounds = _bounds(bound, a, common, tables)
    found = Comparison(a.location, b.location, 0, [], is_selection=fields is not None)
    found.only_in_original, found.only_in_other = a.names_without(b), b.names_without(a)
    order = a.match(b)
    found.datasets_only_in_original = [name for name in a.datasets if name not in b.datasets]
    found.datasets_only_in_other = [name for name in b.datasets if name not in a.datasets]
    if fields is None:
        found.not_compared = list(dict.fromkeys([*a.not_comparable, *b.not_comparable]))
    for name in chosen:
        if name in tables:
            found.tables.append(a.compare_rows(b, name, rules))
            continue
        one = _compare_field(a, b, name, order, bounds.get(name, ()))
        found.fields.append(one)
        found.cells = max(found.cells, one.all.cells)
    if spectrum:
        found.spectrum = _spectrum(a, b, spectrum)
    return found


def _bounds(
    bound: ErrorBound | None, side: Operand, fields: list[str], tables: list[str]
) -> tuple[list[tuple[str, str]], dict[str, list[PartBound]]]:
    """Return the given bounds by target, and the bounds of each field that has some."""
    if bound is None:
        return [], {}
    if not isinstance(bound, Mapping):
        text = as_text(bound)
        return [], {name: [PartBound(None, None, name, text)] for name in fields}
    owners = {*tables, *(name.removeprefix("particles/") for name in tables)}
    rules: list[tuple[str, str]] = []
    found: dict[str, list[PartBound]] = {}
    for target, one in bound.items():
        text, name = as_text(one), target.partition("@")[0].strip()
        # Names of arrays and of meshes may have any characters.
        literal = [full for full in side.named(target) if full in fields]
        found |= {full: [PartBound(None, None, full, text)] for full in literal}
        named = [full for full in side.named(name) if full in fields and "@" not in full]
        rules += [(f"{full}{target[len(name) :]}", text) for full in named]
        if named or literal:
            continue
        rules.append((target, text))
        is_known = name == "*" or name.rpartition("/")[0] in owners
        if not is_known and all(select_bounds(rules[-1:], [full]) is None for full in fields):
            columns = [f"{table}/..." for table in tables]
            _core.refuse_bound_of("a field of this name in both", target, [*fields, *columns])
    for full in fields:
        if parts := select_bounds(rules, [full]):
            found[full] = parts
    return rules, found


def _compare_field(
    a: Operand, b: Operand, name: str, order: np.ndarray | None, given: Sequence[PartBound]
) -> FieldComparison:
    parts, pairs = [], a.pairs(b, name)
    dtypes = {side.dtype for pair in pairs for side in pair}
    is_time = {one.kind for one in dtypes} in ({"M"}, {"m"})
    time_dtype = np.result_type(*dtypes) if is_time else None
    for pair in pairs:
        values, unordered = (
            pair if time_dtype is None else (side.astype(time_dtype) for side in pair)
        )
        found = unordered if order is None else unordered[order]
        if values.shape != found.shape:
            raise _core.InvalidError(
                f"{name} has {values.size:,} values in {a.location} and {found.size:,} in "
                f"{b.location}; expected two versions of the same data"
            )
        numbers = as_numbers(values, found)
        parts.append((*numbers, errors(*numbers)))
    values, found, difference = map(_joined, zip(*parts, strict=True))
    present = values if time_dtype is None else values[~np.isnat(values.view(time_dtype))]
    scale = scale_of(present)
    checked = check_bounds(
        (values, found),
        difference,
        scale,
        given=given,
        recorded=[part for side in (a, b) for part in side.recorded_bounds(name)],
        stored=[side.bound(name) for side in (a, b)],
        levels=a.cell_levels(),
        positions=a.centres,
    )
    _warn_of_loose_bounds(name, checked, values)
    levels: list[ErrorMetrics] = []
    total, windows = 0.0, 0
    for level, rows, window in a.levels():
        similarity, count = ssim(values[rows], found[rows], window, scale, a.ndim)
        if count:
            total, windows = total + similarity * count, windows + count
        part = values[rows]
        levels.append(_metrics(level, part, part, difference[rows], scale, similarity))
    similarity = total / windows if windows else math.nan
    return FieldComparison(
        **vars(checked),
        field=name,
        ratio=_ratio(a, b, name),
        all=_metrics(None, values, present, difference, scale, similarity),
        levels=levels,
        time_dtype=None if time_dtype is None else str(time_dtype),
    )


def _ratio(a: Operand, b: Operand, name: str) -> float:
    """Return `FieldComparison.ratio`."""
    if a.is_stored and not b.is_stored:
        a, b = b, a
    return a.bytes(name) / max(b.bytes(name), 1)


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _warn_of_loose_bounds(name: str, checked: CheckedBound, values: np.ndarray) -> None:
    if not isinstance(checked.bound, float) or not checked.bounds:
        return
    median = median_magnitude(values)
    for given in checked.bounds.values():
        if message := loose_bound(name, given, checked.bound, median):
            warn(message)


def _metrics(
    level: int | None,
    values: np.ndarray,
    present: np.ndarray,
    difference: np.ndarray,
    scale: Scale,
    similarity: float,
) -> ErrorMetrics:
    low, high = range_of(present)
    with np.errstate(over="ignore"):
        squares = np.square(difference / scale.unit)
        mean_square = float(squares.mean()) if difference.size else 0.0
    return ErrorMetrics(
        level,
        int(values.size),
        low if low <= high else math.nan,
        high if low <= high else math.nan,
        float(np.abs(difference).max(initial=0.0)),
        int(np.count_nonzero(difference)),
        psnr(scale.range, mean_square),
        similarity,
    )


def _spectrum(a: Operand, b: Operand, name: str) -> Spectrum:
    grids = a.grid(name, SPECTRUM_SIDE), b.grid(name, SPECTRUM_SIDE)
    for side, grid in zip((a, b), grids, strict=True):
        scaled = grid.values / scale_of(grid.values).unit
        if not np.isfinite(scaled).all() or scaled.mean() == 0:
            raise _core.InvalidError(
                f"{side.location}: {name} has no power spectrum, which needs cells that fill the "
                "box, finite values and a mean other than 0"
            )
    (k, original, _), (_, other, _) = (power_spectrum(g.values, grids[0].cell_size) for g in grids)
    return Spectrum(name, grids[0].level, k.tolist(), original.tolist(), other.tolist())

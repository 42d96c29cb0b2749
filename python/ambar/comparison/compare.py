"""Comparison of two versions of the same data: errors by field and level, and error bounds."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar.comparison.error_metrics import (
    Scale,
    as_numbers,
    errors,
    histogram,
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
    are_kept,
    as_text,
    asked_of,
    is_kept,
    joined_bounds,
    loose_bound,
    median_magnitude,
    resolved,
    select_bounds,
)

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
class FieldComparison:
    """The errors of a field."""

    field: str
    """The name of the field."""
    bound: float | str | None
    """The error bound that is checked: a number if it is absolute, 0 if values must be equal.

    None if no bound is known, or if parts of the field have different bounds (see `bounds`).
    """
    held: bool | None
    """Whether the error bounds held; None if no bound is known."""
    bounds: dict[str, str]
    """The error bounds that were given, to `compare` or when the stores were written, by target."""
    ratio: float
    """The bytes of the field in the original, divided by those in the other version."""
    all: ErrorMetrics
    """The metrics over all levels."""
    levels: list[ErrorMetrics]
    """The metrics on each level; an empty list for values without levels."""
    histogram: list[int]
    """The number of errors in 40 bins from ``-scale`` to ``scale``."""
    scale: float
    """The absolute bound, or without one the largest finite error."""


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
      Held:    yes
      Fields:
        field    max error  bound  held  PSNR dB  SSIM     ratio
        density  0          0      yes   inf      1.00000  ...
        Temp     0.0...     0.01   yes   4...     0.99...  ...
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

    @property
    def held(self) -> bool:
        """Whether all error bounds held, and both versions have the same rows and datasets.

        Bounds that are unknown count as held. Fields that only one version has are not compared.
        False if nothing was compared, or if `not_compared` lists an array.
        """
        if self.not_compared or not (self.fields or self.tables):
            return False
        same_datasets = not self.datasets_only_in_original and not self.datasets_only_in_other
        bounds_held = all(one.held is not False for one in self.fields)
        return same_datasets and bounds_held and all(table.held for table in self.tables)

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
        sections: list[list[str]] = []
        if self.fields:
            sections += [["  Fields:"], text.columns([_FIELD_HEADER, *self._field_rows()], 4)]
        if self.tables:
            sections += [["  Rows:"], text.columns([_ROW_HEADER, *self._column_rows()], 4)]
        return text.representation(f"<{self._title}", self._properties(), *sections)

    def _repr_html_(self) -> str:
        sections = [
            html.details(f"{len(rows)} {what}", html.table(rows, header), is_open=True)
            for what, header, rows in (
                ("fields", _FIELD_HEADER, self._field_rows()),
                ("columns of rows", _ROW_HEADER, self._column_rows()),
            )
            if rows
        ]
        title = self._title.replace(">", "", 1)
        return html.representation(title, self._properties(), *sections)

    @property
    def _title(self) -> str:
        return f"ambar.Comparison> {self.original} and {self.other}"

    def _properties(self) -> dict[str, object]:
        return {
            "Values": f"{self.cells:,} of each field" if self.fields else None,
            "Held": _answer(self.held),
            "Not compared": ", ".join(self.not_compared) or None,
            "Only in the original": ", ".join(self.only_in_original) or None,
            "Only in the other": ", ".join(self.only_in_other) or None,
            "Datasets only in the original": ", ".join(self.datasets_only_in_original) or None,
            "Datasets only in the other": ", ".join(self.datasets_only_in_other) or None,
        }

    def _field_rows(self) -> list[tuple[str, ...]]:
        return [
            (
                one.field,
                f"{one.all.max_error:.4g}",
                bound_text(one.bound),
                _answer(one.held),
                f"{one.all.psnr:.1f}",
                "-" if math.isnan(one.all.ssim) else f"{one.all.ssim:.5f}",
                f"{one.ratio:.2f}",
            )
            for one in self.fields
        ]

    def _column_rows(self) -> list[tuple[str, ...]]:
        return [
            (
                f"{table.component}/{column.column}",
                f"{column.max_error:.4g}",
                bound_text(column.bound),
                _answer(column.held),
                f"{table.rows:,}",
                f"{table.missing:,}",
                f"{table.extra:,}",
                table.matched_by,
            )
            for table in self.tables
            for column in table.columns
        ]


_FIELD_HEADER = ("field", "max error", "bound", "held", "PSNR dB", "SSIM", "ratio")
_ROW_HEADER = (
    *("column", "max error", "bound", "held"),
    *("rows", "only in original", "only in other", "matched by"),
)


def bound_text(bound: float | str | None) -> str:
    """Return an error bound as text; "-" for None."""
    if bound is None:
        return "-"
    return bound if isinstance(bound, str) else f"{bound:.4g}"


def _answer(held: bool | None) -> str:
    return "-" if held is None else "yes" if held else "NO"


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
) -> Comparison:
    """Compare two versions of the same data.

    Cells are matched by level and position; only leaf cells count. Particles, sinks and clumps are
    matched by their identities, otherwise by order or position. Meshes are compared by points,
    cells and arrays of the same names, collections by datasets and variables, and other stores by
    arrays. Strings and bools must be equal.

    Parameters
    ----------
    original, other : str or path-like
        Stores, AMReX plotfiles or RAMSES outputs.
    fields : str or sequence of str, optional
        Fields, and components of rows ("particles", "particles/DM", "sinks"), to compare; by
        default all that both have. The name of an array of a mesh stands for those of all blocks.
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

    Returns
    -------
    Comparison

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
    a, b = (operand_of(path, output, threads) for path in (original, other))
    common = [name for name in a.fields if name in b.fields]
    tables = [name for name in a.tables if name in b.tables]
    everything = [*common, *tables]
    asked = everything if fields is None else [fields] if isinstance(fields, str) else list(fields)
    meant = {
        name: [full for full in (*a.named(name), name) if full in everything] for name in asked
    }
    missing = [name for name in asked if not meant[name]]
    if spectrum and spectrum not in common:
        missing.append(spectrum)
    if missing:
        raise _core.NotFoundError(
            f"no field {missing[0]!r} in both {a.location} and {b.location}; both have: "
            f"{', '.join(everything) or 'no fields'}"
        )
    chosen = list(dict.fromkeys(one for each in meant.values() for one in each))
    rules, bounds = _bounds(bound, a, common, tables)
    found = Comparison(a.location, b.location, 0, [])
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
        one = _compare_field(a, b, name, order, bounds.get(name))
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
        meant = [full for full in side.named(name) if full in fields and "@" not in full]
        rules += [(f"{full}{target[len(name) :]}", text) for full in meant]
        if meant or literal:
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


def _resolved(given: str, scaled: Scale) -> float | str:
    """Return a bound that applies to each value; the error's root mean square stands for a PSNR."""
    # A range can be larger than the largest number.
    return resolved(given, (0.0, min(scaled.range * scaled.unit, sys.float_info.max)))


def _compare_field(
    a: Operand, b: Operand, name: str, order: np.ndarray | None, given: list[PartBound] | None
) -> FieldComparison:
    parts = []
    for values, unordered in a.pairs(b, name):
        found = unordered if order is None else unordered[order]
        if values.shape != found.shape:
            raise _core.InvalidError(
                f"{name} has {values.size:,} values in {a.location} and {found.size:,} in "
                f"{b.location}; expected two versions of the same data"
            )
        numbers = as_numbers(values, found)
        parts.append((*numbers, errors(*numbers)))
    values, found, difference = map(_joined, zip(*parts, strict=True))
    scaled = scale_of(values)
    checked = _check_bounds((a, b), name, given, (values, found), difference)
    levels: list[ErrorMetrics] = []
    similar, weight = 0.0, 0
    for level, rows in a.levels():
        window = a.windows(level)
        likeness, count = math.nan, 0
        if window is not None:
            likeness, count = ssim(values[rows], found[rows], window, scaled, a.ndim)
        if count:
            similar, weight = similar + likeness * count, weight + count
        if level is not None:
            levels.append(_measures(level, values[rows], difference[rows], scaled, likeness))
    likeness = similar / weight if weight else math.nan
    everything = _measures(None, values, difference, scaled, likeness)
    held = checked.held
    scale = 0.0
    if isinstance(checked.bound, float):
        held, scale = everything.max_error <= checked.bound, checked.bound
    largest = np.abs(difference[np.isfinite(difference)]).max(initial=0.0)
    scale = scale or float(largest)
    return FieldComparison(
        field=name,
        bound=checked.bound,
        held=held,
        bounds=checked.bounds,
        ratio=a.bytes(name) / max(b.bytes(name), 1),
        all=everything,
        levels=levels,
        histogram=histogram(difference, scale),
        scale=scale,
    )


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class _Checked(NamedTuple):
    """An error bound, and whether it held."""

    bound: float | str | None
    """The bound of all values; None if it is unknown, or if parts have different bounds."""
    held: bool | None
    """Whether it held; None for an absolute or unknown bound."""
    bounds: dict[str, str]
    """The bounds that were given, by target."""


def _check_bounds(
    sides: tuple[Operand, Operand],
    name: str,
    given: list[PartBound] | None,
    values: tuple[np.ndarray, np.ndarray],
    difference: np.ndarray,
) -> _Checked:
    """Check the given bounds of a field, or the bounds that it was written with."""
    written = [side.bound(name) for side in sides]
    parts = given or [part for side in sides for part in side.asked(name)]
    is_lossy = [bound not in (None, 0.0) for bound in written]
    if len(parts) > 1 and (given is not None or sum(is_lossy) == 1):
        # Bounds "of range" refer to the range of the original values.
        original = values[1] if given is None and is_lossy[0] else values[0]
        kept = are_kept(parts, original, difference, sides[0].cell_levels(), sides[0].centres)
        return _Checked(None, kept, asked_of(parts))
    stated = (
        joined_bounds(written) if given is None else _resolved(given[-1].bound, scale_of(values[0]))
    )
    asked = asked_of(parts) if parts else {}
    if isinstance(stated, str):
        return _Checked(stated, is_kept(stated, values[0], difference), asked)
    if parts and stated is not None:
        median = median_magnitude(values[0])
        if message := loose_bound(name, parts[-1].bound, stated, median):
            warnings.warn(message, stacklevel=4)
    return _Checked(stated, None, asked)


def _measures(
    level: int | None,
    values: np.ndarray,
    difference: np.ndarray,
    scaled: Scale,
    likeness: float,
) -> ErrorMetrics:
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        squares = np.square(difference / scaled.unit)
    mean_square = float(squares.mean()) if difference.size else 0.0
    return ErrorMetrics(
        level,
        int(values.size),
        float(finite.min()) if finite.size else math.nan,
        float(finite.max()) if finite.size else math.nan,
        float(np.abs(difference).max(initial=0.0)),
        int(np.count_nonzero(difference)),
        psnr(scaled.range, mean_square),
        likeness,
    )


def _spectrum(a: Operand, b: Operand, name: str) -> Spectrum:
    level, grid, cell = a.grid(name, SPECTRUM_SIDE)
    _, other, _ = b.grid(name, SPECTRUM_SIDE)
    for side, values in ((a, grid), (b, other)):
        if not np.isfinite(values).all() or values.mean() == 0:
            raise _core.InvalidError(
                f"{side.location}: {name} has no power spectrum, which needs cells that fill the "
                "box, finite values and a mean other than 0"
            )
    k, original, _ = power_spectrum(grid, cell)
    _, changed, _ = power_spectrum(other, cell)
    return Spectrum(name, level, k.tolist(), original.tolist(), changed.tolist())

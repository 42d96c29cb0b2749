"""Two versions of the same data, compared: errors by field and level, and whether bounds held."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ambar import _core
from ambar.comparison.error_metrics import (
    Scale,
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
class Measures:
    """How far apart the cells of a level, or of all levels, are."""

    level: int | None
    """None for all levels."""
    cells: int
    lowest: float
    highest: float
    """Of the finite values of the original."""
    max_error: float
    """Infinite where NaN or an infinity did not come back."""
    psnr: float
    """dB, relative to the field's range over all levels; infinite where nothing differs."""
    ssim: float
    """Mean structural similarity; NaN where no window of 8 cells a side is half full."""


@dataclass
class FieldComparison:
    """A field: over all levels, and on each."""

    field: str
    bound: float | None
    """The absolute bound that is to hold, 0 where nothing may differ, None where none is known."""
    ratio: float
    """Bytes of the field in the original by those in the other."""
    all: Measures
    levels: list[Measures]
    histogram: list[int]
    """How many errors lie in each of 40 parts of -scale to scale."""
    scale: float
    """The bound, or without a bound the largest finite error."""
    stated: float | str | None = None
    """The bound of any kind as it was stated; a number where it is absolute."""
    kept: bool | None = None
    """Whether a bound that is not absolute held; None without such a bound."""
    asked: dict[str, str] = dataclasses.field(default_factory=dict)
    """The bounds that were given, by target."""

    @property
    def held(self) -> bool | None:
        """Whether the bound held; None where none is known."""
        if self.kept is not None:
            return self.kept
        return None if self.bound is None else self.all.max_error <= self.bound


@dataclass
class Spectrum:
    """The power spectra of a field's contrast on a covering grid."""

    field: str
    level: int
    k: list[float]
    """Wave numbers, 2 pi by code length."""
    original: list[float]
    other: list[float]

    @property
    def ratio(self) -> list[float]:
        """The other's power by the original's."""
        pairs = zip(self.other, self.original, strict=True)
        return [b / a if a else (1.0 if b == a else math.inf) for b, a in pairs]


@dataclass
class Comparison:
    """What `compare` found."""

    original: str
    other: str
    cells: int
    fields: list[FieldComparison]
    only_in_original: list[str] = field(default_factory=list)
    only_in_other: list[str] = field(default_factory=list)
    spectrum: Spectrum | None = None
    tables: list[RowComparison] = field(default_factory=list)
    """Particles, sinks and clumps that both have."""

    @property
    def held(self) -> bool:
        """Whether all bounds that are known held, and no rows of tables are missing or extra."""
        held = all(one.held is not False for one in self.fields)
        return held and all(one.held for one in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it: what is not finite is null, or "inf"."""
        values = asdict(self)
        values["held"] = self.held
        for one, entry in zip(self.fields, values["fields"], strict=True):
            entry["held"] = one.held
        for table, entry in zip(self.tables, values["tables"], strict=True):
            entry["held"] = table.held
            for column, part in zip(table.columns, entry["columns"], strict=True):
                part["held"] = column.held
        if self.spectrum is not None:
            values["spectrum"]["ratio"] = self.spectrum.ratio
        plain: dict[str, Any] = _plain(values)
        return plain


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
    """Compare a store, plotfile or RAMSES output with another version of it, cell by cell.

    Parameters
    ----------
    original, other
        Stores, plotfiles of AMReX or RAMSES outputs. Leaf cells are compared, whatever their order,
        and particles, sinks and clumps, matched by their identities, else by order or position; of
        meshes points, cells and the arrays by their names; of other stores the arrays.
    fields
        Fields and components of rows ("particles", "particles/DM", "sinks") to compare; by default
        all that both have. The name of a mesh's array means those of all blocks.
    bound
        The bound that is to hold, of fields of cells: a number, "1e-3 of range" (of the original's
        finite values), ...; or a mapping as `ambar.convert` takes it, with levels and boxes, and
        columns of particles named as "DM/mass". By default what stores say: the bounds they were
        written with, and where they have none, that nothing may differ.
    output
        Which output, or time step, of a series: its number.
    spectrum
        A field whose power spectra are compared, on the finest covering grid of at most 256 cells
        a side.
    threads
        Threads to read with; all cores by default.

    Raises
    ------
    ValueError
        If the two have other cells, or a bound makes no sense.
    KeyError
        If the field does not exist.
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
            f"{', '.join(everything) or 'none'}"
        )
    chosen = list(dict.fromkeys(one for each in meant.values() for one in each))
    rules, bounds = _bounds(bound, a, common, tables)
    found = Comparison(a.location, b.location, 0, [])
    everywhere = [[*side.fields, *side.tables] for side in (a, b)]
    found.only_in_original = [name for name in everywhere[0] if name not in everywhere[1]]
    found.only_in_other = [name for name in everywhere[1] if name not in everywhere[0]]
    order = a.match(b)
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
    values, found = a.values(name), b.values(name)
    if order is not None:
        found = found[order]
    if values.shape != found.shape:
        raise _core.InvalidError(
            f"{name} has {values.size} values in {a.location} and {found.size} in {b.location}: "
            "these are not the same data"
        )
    difference = errors(values, found)
    scaled = scale_of(values)
    checked = _check_bounds((a, b), name, given, (values, found), difference)
    bound, stated = checked.bound, checked.stated
    levels = []
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
    largest = np.abs(difference[np.isfinite(difference)]).max(initial=0.0)
    scale = bound or float(largest)
    return FieldComparison(
        name,
        bound,
        a.bytes(name) / max(b.bytes(name), 1),
        everything,
        levels,
        histogram(difference, scale),
        scale,
        stated,
        checked.kept,
        checked.asked,
    )


class _Checked(NamedTuple):
    """A bound, and whether it holds."""

    stated: float | str | None
    """The bound of all values; None if it is unknown, or if parts have different bounds."""
    kept: bool | None
    """Whether it holds, unless it is absolute."""
    asked: dict[str, str]

    @property
    def bound(self) -> float | None:
        return self.stated if isinstance(self.stated, float) else None


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
) -> Measures:
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        squares = np.square(difference / scaled.unit)
    mean_square = float(squares.mean()) if difference.size else 0.0
    return Measures(
        level,
        int(values.size),
        float(finite.min()) if finite.size else math.nan,
        float(finite.max()) if finite.size else math.nan,
        float(np.abs(difference).max(initial=0.0)),
        psnr(scaled.range, mean_square),
        likeness,
    )


def _spectrum(a: Operand, b: Operand, name: str) -> Spectrum:
    level, grid, cell = a.grid(name, SPECTRUM_SIDE)
    _, other, _ = b.grid(name, SPECTRUM_SIDE)
    for side, values in ((a, grid), (b, other)):
        if not np.isfinite(values).all() or values.mean() == 0:
            raise _core.InvalidError(
                f"{side.location}: {name} has no power spectrum: cells do not fill the box, hold "
                "NaN, or have no mean"
            )
    k, original, _ = power_spectrum(grid, cell)
    _, changed, _ = power_spectrum(other, cell)
    return Spectrum(name, level, k.tolist(), original.tolist(), changed.tolist())

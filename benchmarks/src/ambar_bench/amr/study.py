"""The study of AMReX plotfiles: sizes, errors and speeds of every method at every bound."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar.comparison.error_metrics import errors, psnr
from ambar_bench.amr import methods, peers, stores
from ambar_bench.amr.hierarchy import Hierarchy, load_levels
from ambar_bench.amr.methods import Method, Variant
from ambar_bench.machine import machine

METHODS: tuple[type[Method], ...] = (
    methods.AmrexRow,
    peers.Sz3Hdf5,
    methods.AmricLorenzo,
    methods.AmricLinear,
    methods.AmricClustered,
    peers.Zfp,
    peers.Sz3,
    peers.Sz3Best,
    peers.Sz3Merged,
    peers.Sz3MergedBest,
    methods.Ambar8,
    methods.Ambar,
    methods.AmbarFast,
    methods.AmbarSmall,
    methods.AmbarShort,
    methods.AmbarFastShort,
    stores.StoreAuto,
    stores.StoreDrop,
)
PACKAGES = ("pysz", "zfpy", "h5py", "hdf5plugin")
BOUNDS = (1e-2, 1e-3, 1e-4, 1e-5)


@dataclass
class Part:
    """A part of a field that has one absolute bound: all of it, or what one rank wrote."""

    hierarchy: Hierarchy
    bound: float


@dataclass
class FieldResult:
    """What a method made of a field."""

    name: str
    raw_bytes: int
    packed_bytes: int
    psnr: float
    """dB, of uncovered cells; infinite where nothing changed, NaN where the field is constant."""
    worst: float
    """The largest error of an uncovered cell, in bounds; infinite where NaN or so was lost."""
    variant: str
    compress_seconds: list[float] = field(default_factory=list)
    """CPU time of each round, the choice of settings included."""
    choose_seconds: list[float] = field(default_factory=list)
    """CPU time of the choice of settings alone, where a method makes it once for all pieces."""
    decompress_seconds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """All raw bytes, those of covered cells too, by the compressed ones."""
        return self.raw_bytes / self.packed_bytes if self.packed_bytes else math.inf


@dataclass
class Row:
    """A method at a relative bound."""

    method: str
    key: str
    ours: bool
    bound: float
    fields: list[FieldResult]

    @property
    def raw_bytes(self) -> int:
        """Bytes of all fields in the plotfile."""
        return sum(result.raw_bytes for result in self.fields)

    @property
    def ratio(self) -> float:
        """Of all fields together."""
        packed = sum(result.packed_bytes for result in self.fields)
        return self.raw_bytes / packed if packed else math.inf

    @property
    def psnr(self) -> float:
        """The mean over the fields that changed and are not constant, dB."""
        finite = [result.psnr for result in self.fields if math.isfinite(result.psnr)]
        return statistics.fmean(finite) if finite else math.inf

    @property
    def worst(self) -> float:
        """The largest error, in bounds."""
        return max(result.worst for result in self.fields)

    @property
    def compress_speed(self) -> float:
        """Raw bytes by CPU second: medians of the rounds, summed over fields."""
        return self._speed("compress_seconds")

    @property
    def compress_speed_alone(self) -> float:
        """As `compress_speed`, without the choice of settings."""
        chosen = self._seconds("choose_seconds")
        return self.raw_bytes / max(self._seconds("compress_seconds") - chosen, 1e-9)

    @property
    def decompress_speed(self) -> float:
        """As `compress_speed`."""
        return self._speed("decompress_seconds")

    def _seconds(self, name: str) -> float:
        return math.fsum(statistics.median(getattr(result, name)) for result in self.fields)

    def _speed(self, name: str) -> float:
        return self.raw_bytes / max(self._seconds(name), 1e-9)


@dataclass
class Study:
    """All rows, and what they were measured on."""

    path: str
    fields: list[str]
    levels: list[dict[str, int]]
    """Of each level: boxes, cells, uncovered cells."""
    raw_bytes: int
    local_range: bool
    """Whether bounds are relative to each rank's own range, not to the field's."""
    rounds: int
    machine: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Methods that were not measured, and why."""

    def at(self, bound: float) -> list[Row]:
        """Return the rows of a relative bound."""
        return [row for row in self.rows if row.bound == bound]

    @property
    def bounds(self) -> list[float]:
        """The relative bounds, the loosest first."""
        return sorted({row.bound for row in self.rows}, reverse=True)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        values = asdict(self)
        for row, entry in zip(self.rows, values["rows"], strict=True):
            for name in _FIGURES:
                entry[name] = _finite(getattr(row, name))
            for result, sub in zip(row.fields, entry["fields"], strict=True):
                sub |= {"ratio": _finite(result.ratio), "psnr": _finite(result.psnr)}
                sub["worst"] = _finite(result.worst)
        return values


_FIGURES = (
    "ratio",
    "psnr",
    "worst",
    "compress_speed",
    "compress_speed_alone",
    "decompress_speed",
)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def run_study(
    path: Path,
    *,
    bounds: Sequence[float] = BOUNDS,
    fields: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    local_range: bool = False,
    rounds: int = 3,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure the methods `keys` (all by default) on `fields` of the plotfile at `path`.

    Raises
    ------
    KeyError
        If a field or method does not exist.
    ValueError
        If it is not a plotfile.
    """
    report(f"reading {path}")
    hierarchy = load_levels(path)
    names = _chosen(fields, hierarchy.fields, "field")
    chosen = _chosen(keys, [method.key for method in METHODS], "method")
    study = Study(
        path=str(path),
        fields=names,
        levels=[_counts(hierarchy, number) for number in range(len(hierarchy.levels))],
        raw_bytes=sum(hierarchy.raw_bytes(name) for name in names),
        local_range=local_range,
        rounds=rounds,
        machine=machine(PACKAGES),
    )
    parts = hierarchy.by_owner() if local_range else [hierarchy]
    for kind in METHODS:
        method = kind()
        if kind.key not in chosen:
            continue
        if lacking := kind.lacking():
            study.left_out[kind.name] = f"{', '.join(lacking)} not installed"
        elif not method.takes(hierarchy):
            study.left_out[kind.name] = f"not for {hierarchy.ndim} dimensions"
        elif kind.whole and local_range:
            study.left_out[kind.name] = "it has one bound a field"
        else:
            for bound in bounds:
                report(f"{kind.name}, {bound:g}")
                results = [
                    _measure(method, hierarchy, parts, name, bound, rounds) for name in names
                ]
                study.rows.append(Row(kind.name, kind.key, kind.ours, bound, results))
    return study


def _chosen(wanted: Sequence[str] | None, there: list[str], what: str) -> list[str]:
    for name in wanted or ():
        if name not in there:
            raise ambar.NotFoundError(f"no {what} {name!r}; available: {', '.join(there)}")
    return there if wanted is None else list(wanted)


def _counts(hierarchy: Hierarchy, number: int) -> dict[str, int]:
    level = Hierarchy(hierarchy.path, hierarchy.ndim, [], [hierarchy.levels[number]])
    cells, uncovered = level.cells()
    return {"boxes": len(level.levels[0].boxes), "cells": cells, "uncovered": uncovered}


def _measure(
    method: Method,
    hierarchy: Hierarchy,
    parts: list[Hierarchy],
    name: str,
    relative: float,
    rounds: int,
) -> FieldResult:
    """Return the results of a method for a field; each part has the bound of its range."""
    value_range = hierarchy.value_range(name)
    result = FieldResult(name, hierarchy.raw_bytes(name), 0, 0.0, 0.0, "")
    result.compress_seconds = [0.0] * rounds
    result.choose_seconds = [0.0] * rounds
    result.decompress_seconds = [0.0] * rounds
    squares, count, labels = 0.0, 0, []
    for part in parts:
        own_range = value_range if len(parts) == 1 else part.value_range(name)
        # A field of one value has no range: its own bound is as good as any.
        bound = relative * (own_range or 1.0)
        variant, packed = _smallest(method, part, name, bound)
        labels.append(variant.label)
        result.packed_bytes += sum(method.size(one) for one in packed)
        _time(method, variant, packed, bound, result)
        for one, piece in zip(packed, variant.pieces, strict=True):
            found = method.decompress(one, piece).reshape(piece.values.shape)
            off = errors(piece.values[piece.counted], found[piece.counted])
            squares += float(np.square(off).sum())
            count += off.size
            result.worst = max(result.worst, float(np.abs(off).max(initial=0.0)) / bound)
    result.variant = ", ".join(label for label in dict.fromkeys(labels) if label)
    result.psnr = psnr(value_range, squares / max(count, 1))
    return result


def _smallest(
    method: Method, part: Hierarchy, name: str, bound: float
) -> tuple[Variant, list[Any]]:
    best: tuple[Variant, list[Any]] | None = None
    least = math.inf
    for variant in method.variants(part, name):
        method.prepare(variant, bound)
        packed = [method.compress(piece, bound, variant.option) for piece in variant.pieces]
        size = sum(method.size(one) for one in packed)
        if size < least:
            best, least = (variant, packed), size
    if best is None:
        raise ambar.InvalidError(f"{method.name} does not compress {name}")
    return best


def _time(
    method: Method, variant: Variant, packed: list[Any], bound: float, result: FieldResult
) -> None:
    """Add the CPU time of each round; settings are chosen within it, as a writer would."""
    for number in range(len(result.compress_seconds)):
        started = time.process_time()
        method.prepare(variant, bound)
        chosen = time.process_time()
        for piece in variant.pieces:
            method.compress(piece, bound, variant.option)
        middle = time.process_time()
        for one, piece in zip(packed, variant.pieces, strict=True):
            method.decompress(one, piece)
        result.choose_seconds[number] += chosen - started
        result.compress_seconds[number] += middle - started
        result.decompress_seconds[number] += time.process_time() - middle

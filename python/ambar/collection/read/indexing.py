"""Selections of a bulk read: rows of families, and the parts of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.collection.storage.family import Family

Isel: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Piece:
    """Rows of one family, and the selected part of each."""

    family: Family
    rows: np.ndarray
    """Rows of the family: int64."""
    at: np.ndarray
    """Their positions in the result: int64."""
    isel: Isel

    def is_all(self, count: int) -> bool:
        """Whether the rows are the whole result, in order."""
        return len(self.at) == count and bool((self.at == np.arange(count)).all())

    @cached_property
    def row_key(self) -> slice | np.ndarray:
        """The rows as an index: a slice if their distances are equal."""
        return as_slice(self.rows)


def as_slice(indices: np.ndarray) -> slice | np.ndarray:
    """Return indices as a slice if their distances are equal and positive, else unchanged."""
    if len(indices) == 0:
        return slice(0, 0)
    step = int(indices[1] - indices[0]) if len(indices) > 1 else 1
    if step > 0 and (np.diff(indices) == step).all():
        return slice(int(indices[0]), int(indices[-1]) + 1, step)
    return indices


def by_family(families: list[Family], places: np.ndarray, isel: Isel) -> list[Piece]:
    """Return a selection for each family; `places` are families and rows, (datasets, 2)."""
    numbers = places[:, 0]
    if not len(places):
        # An empty selection of each family still has shapes and dtypes.
        return [Piece(family, np.empty(0, int), np.empty(0, int), isel) for family in families]
    pieces = []
    for number in np.unique(numbers):
        at = np.flatnonzero(numbers == number)
        pieces.append(Piece(families[number], places[at, 1].astype(np.int64), at, isel))
    return pieces


def row_ranges(
    starts: np.ndarray, stops: np.ndarray, wanted: Any, dim: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices that `wanted` selects in each of the ranges, and their numbers."""
    lengths = stops - starts
    if isinstance(wanted, slice):
        step = 1 if wanted.step is None else int(wanted.step)
        if step < 1:
            raise _core.InvalidError(
                f"{dim} is ragged: expected a positive step, found {step}; reverse the result"
            )
        first = _bound(wanted.start, lengths, 0)
        last = _bound(wanted.stop, lengths, lengths)
        counts = np.maximum(-(-(last - first) // step), 0)
        ends = np.cumsum(counts)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
        return np.repeat(starts + first, counts) + within * step, counts
    listed = np.atleast_1d(np.asarray(wanted))
    if listed.dtype.kind not in "iu" or listed.ndim != 1:
        raise _core.InvalidError(
            f"{dim} is ragged: expected integers, lists of integers or slices, found {wanted!r}"
        )
    signed = listed.astype(np.int64)[np.newaxis, :]
    indices = np.where(signed < 0, signed + lengths[:, np.newaxis], signed)
    outside = (indices < 0) | (indices >= lengths[:, np.newaxis])
    if outside.any():
        raise IndexError(
            f"index {listed[outside.any(axis=0)][0]} is out of range of dimension {dim!r} of "
            f"{np.count_nonzero(outside.any(axis=1))} datasets"
        )
    counts = np.full(len(lengths), len(listed))
    return (indices + starts[:, np.newaxis]).ravel(), counts


def _bound(value: Any, lengths: np.ndarray, default: Any) -> np.ndarray:
    if value is None:
        return np.broadcast_to(default, lengths.shape)
    at = lengths + value if value < 0 else np.full_like(lengths, value)
    clipped: np.ndarray = np.clip(at, 0, lengths)
    return clipped


def with_leading(values: np.ndarray, keys: tuple[Any, ...]) -> np.ndarray:
    """Return values with a dimension of length 1 before them for each key, indexed by it."""
    for key in reversed(keys):
        values = values[np.newaxis][key]
    return values


def split_by_labels(
    piece: Piece,
    sel: Mapping[str, Any],
    variables: Sequence[str],
    coordinate: Callable[[Family, str, np.ndarray], np.ndarray],
    names: Callable[[], list[str]],
) -> list[Piece]:
    """Convert labels to indices; rows of different coordinates become separate selections.

    Labels along dimensions that none of the `variables` has in the family do not apply. `names`
    returns the names of the selected datasets, for errors.
    """
    columns = piece.family.columns
    used = {dim for name in variables if name in columns for dim in columns[name].dims}
    pieces = [piece]
    for dim, label in sel.items():
        if dim not in used:
            continue
        new = []
        for part in pieces:
            family = part.family
            if dim not in family.columns or family.columns[dim].dims != (dim,):
                raise _core.InvalidError(
                    f"sel=: {dim!r} has no coordinate of labels{_dataset_names(part, names)}; "
                    "use isel="
                )
            if dim in family.ragged:
                raise _core.InvalidError(
                    f"sel=: expected a dimension of one length, found the ragged {dim!r}"
                    f"{_dataset_names(part, names)}; use isel=, or "
                    f"collection[name].sel({dim}=...) for one dataset"
                )
            values = coordinate(family, dim, part.rows)
            if values.ndim == 1:
                new.append(_with(part, dim, find_labels(values, label, dim), slice(None)))
                continue
            different, which = np.unique(values, axis=0, return_inverse=True)
            for number, labels in enumerate(different):
                found = find_labels(labels, label, dim)
                new.append(_with(part, dim, found, which.ravel() == number))
        pieces = new
    return pieces


def _dataset_names(piece: Piece, names: Callable[[], list[str]]) -> str:
    """Return " in the dataset 'a' and 3 more", for errors; "" if there are no datasets."""
    if not len(piece.at):
        return ""
    more = f" and {len(piece.at) - 1} more" if len(piece.at) > 1 else ""
    return f" in the dataset {names()[piece.at[0]]!r}{more}"


def _with(piece: Piece, dim: str, index: Any, rows: Any) -> Piece:
    return Piece(piece.family, piece.rows[rows], piece.at[rows], {**piece.isel, dim: index})


def find_labels(values: np.ndarray, label: Any, dim: str) -> Any:
    """Return the index of a label, of a list of labels, or of a slice of labels.

    Slices include both ends, as in pandas and xarray. Raises KeyError if a label does not exist,
    ValueError for a slice of unsorted labels.
    """
    if isinstance(label, slice):
        steps = values[1:] >= values[:-1]
        if steps.all():
            first = 0 if label.start is None else np.searchsorted(values, _as(values, label.start))
            last = len(values) if label.stop is None else _position_after(values, label.stop)
            return slice(int(first), int(max(last, first)), label.step)
        if not steps.any():
            backwards = find_labels(values[::-1], slice(label.stop, label.start), dim)
            size = len(values)
            return slice(size - backwards.stop, size - backwards.start, label.step)
        raise _core.InvalidError(f"sel=: the labels of {dim!r} are not sorted; use isel=")
    if isinstance(label, (list, tuple, np.ndarray)):
        return [find_labels(values, one, dim) for one in label]
    found = np.flatnonzero(values == _as(values, label))
    if not found.size:
        raise _core.NotFoundError(f"sel=: {dim!r} has no label {label!r}")
    return int(found[0])


def _position_after(values: np.ndarray, label: Any) -> int:
    """Return the position after the last value up to a label, in sorted values.

    As in pandas, a date ends with its last day, hour or other unit: "2024-01" with January.
    """
    if values.dtype.kind == "M" and isinstance(label, str):
        return int(np.searchsorted(values, _as(values, np.datetime64(label) + 1)))
    return int(np.searchsorted(values, _as(values, label), "right"))


def _have_other_years(first: Any, second: Any) -> bool:
    """Return whether the years of two times differ, as after an overflow."""
    years = first.astype("M8[Y]") - second.astype("M8[Y]")
    return bool(abs(years) > np.timedelta64(0, "Y"))


def _as(values: np.ndarray, label: Any) -> Any:
    """Return a label as a value of the coordinate; strings become times.

    Raises ValueError for a date that the coordinate's type cannot represent, and for a string if
    the coordinate has numbers.
    """
    if values.dtype.kind in "biufc" and isinstance(label, (str, bytes)):
        raise _core.InvalidError(f"sel=: expected a number as a label, found {label!r}")
    if values.dtype.kind not in "mM":
        return label
    if isinstance(label, str) and values.dtype.kind == "M":
        label = np.datetime64(label)
    found = np.array(label, values.dtype)
    if isinstance(label, np.datetime64) and _have_other_years(found, label):
        raise _core.InvalidError(
            f"sel=: {label} is out of the range of {values.dtype}; use a nearer date, or None for "
            "the end of a slice"
        )
    return found

"""Labels of coordinates as indices: ``sel`` of a bulk read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Literal

import numpy as np

from ambar import _core
from ambar.collection.read.indexing import Piece
from ambar.collection.storage.family import Family


def select_labels(
    pieces: list[Piece],
    sel: Mapping[str, Any],
    variables: Sequence[str],
    coordinate: Callable[[Family, str, np.ndarray], np.ndarray],
    names: Sequence[str],
) -> list[Piece]:
    """Convert labels to indices; rows of different coordinates become separate pieces.

    Parameters
    ----------
    pieces
        The selected rows.
    sel
        Labels by dimension. They do not apply to families without the dimension in `variables`.
    variables
        The variables to read.
    coordinate
        Returns the labels of rows, as `Reader.coordinate` does.
    names
        The names of the selected datasets, for errors.
    """
    for dim, label in sel.items():
        found = []
        for piece in pieces:
            columns = piece.family.columns
            if any(dim in columns[name].dims for name in variables if name in columns):
                found += _split(piece, dim, label, coordinate, names)
            else:
                found.append(piece)
        pieces = found
    return pieces


def _split(
    piece: Piece,
    dim: str,
    label: Any,
    coordinate: Callable[[Family, str, np.ndarray], np.ndarray],
    names: Sequence[str],
) -> list[Piece]:
    """Return the parts of a piece along a dimension, one for each different coordinate."""
    family = piece.family
    if dim not in family.columns or family.columns[dim].dims != (dim,):
        raise _core.InvalidError(
            f"sel=: {dim!r} has no coordinate of labels{_dataset_names(piece, names)}; use isel="
        )
    if dim in family.ragged:
        raise _core.InvalidError(
            f"sel=: expected a dimension of one length, found the ragged {dim!r}"
            f"{_dataset_names(piece, names)}; use isel=, or collection[name].sel({dim}=...) for "
            "one dataset"
        )
    values = coordinate(family, dim, piece.rows)
    if values.ndim == 1:
        return [_with(piece, dim, _find_labels(values, label, dim), slice(None))]
    different, which = np.unique(values, axis=0, return_inverse=True)
    return [
        _with(piece, dim, _find_labels(labels, label, dim), which.ravel() == number)
        for number, labels in enumerate(different)
    ]


def _dataset_names(piece: Piece, names: Sequence[str]) -> str:
    """Return " in the dataset 'a' and 3 more", for errors; "" if there are no datasets."""
    if not len(piece.at):
        return ""
    more = f" and {len(piece.at) - 1} more" if len(piece.at) > 1 else ""
    return f" in the dataset {names[piece.at[0]]!r}{more}"


def _with(piece: Piece, dim: str, index: Any, rows: Any) -> Piece:
    """Return rows of a piece, with an index along a dimension."""
    return Piece(piece.family, piece.rows[rows], piece.at[rows], {**piece.isel, dim: index})


def _find_labels(values: np.ndarray, label: Any, dim: str) -> Any:
    """Return the index of a label, of a list of labels, or of a slice of labels.

    Slices include both ends, as in pandas and xarray. Raises KeyError if a label does not exist,
    ValueError for a repeated label, and for a slice of unsorted labels.
    """
    if isinstance(label, slice):
        steps = values[1:] >= values[:-1]
        if steps.all():
            start, stop = label.start, label.stop
            first = 0 if start is None else _position_of(values, start)
            last = len(values) if stop is None else _position_after(values, stop)
            return slice(first, max(last, first), label.step)
        if not steps.any():
            backwards = _find_labels(values[::-1], slice(label.stop, label.start), dim)
            size = len(values)
            return slice(size - backwards.stop, size - backwards.start, label.step)
        raise _core.InvalidError(f"sel=: the labels of {dim!r} are not sorted; use isel=")
    if isinstance(label, (list, tuple, np.ndarray)):
        return [_find_labels(values, one, dim) for one in label]
    converted = _convert(values, label)
    found = np.flatnonzero(values == converted.value)
    if not (found.size and converted.is_exact):
        raise _core.NotFoundError(f"sel=: {dim!r} has no label {label!r}")
    if found.size > 1:
        raise _core.InvalidError(f"sel=: {dim!r} has the label {label!r} repeatedly; use isel=")
    return int(found[0])


def _position_of(values: np.ndarray, label: Any) -> int:
    """Return the position of the first value that is not less than a label, in sorted values."""
    converted = _convert(values, label)
    # The value below a label that was rounded down is less than the label.
    side: Literal["left", "right"] = "left" if converted.is_exact else "right"
    return int(np.searchsorted(values, converted.value, side))


def _position_after(values: np.ndarray, label: Any) -> int:
    """Return the position after the last value up to a label, in sorted values.

    As in pandas, a string includes its last day, hour or other unit: "2024-01" all of January.
    """
    if values.dtype.kind == "M" and isinstance(label, str):
        return _position_of(values, _as_time(label) + 1)
    return int(np.searchsorted(values, _convert(values, label).value, "right"))


@dataclass(frozen=True)
class _ConvertedLabel:
    """A label in the type of a coordinate."""

    value: Any
    """The label; a time that is finer than the unit of the coordinate is rounded down.

    NumPy compares times of different units in the finer one, and overflows without an error."""
    is_exact: bool = True
    """Whether the label was not rounded."""


def _convert(values: np.ndarray, label: Any) -> _ConvertedLabel:
    """Return a label in the type of the coordinate.

    Raises ValueError for times that this type cannot represent, and for strings if the coordinate
    has numbers.
    """
    if values.dtype.kind in "biufc" and isinstance(label, (str, bytes)):
        raise _core.InvalidError(f"sel=: expected a number as a label, found {label!r}")
    if values.dtype.kind not in "mM":
        return _ConvertedLabel(label)
    if values.dtype.kind == "M" and isinstance(label, (str, date)):
        label = _as_time(label)
    if values.dtype.kind == "m" and isinstance(label, timedelta):
        label = _as_duration(label)
    try:
        found = np.array(label, values.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise _core.InvalidError(
            f"sel=: expected a label of {values.dtype}, found {label!r}"
        ) from error
    if isinstance(label, np.datetime64) and _has_overflowed(label, found):
        raise _core.InvalidError(
            f"sel=: {label} is out of the range of {values.dtype}; use a nearer date, or None for "
            "the end of a slice"
        )
    if not isinstance(label, (np.datetime64, np.timedelta64)):
        return _ConvertedLabel(found)
    return _ConvertedLabel(found, bool(found.astype(label.dtype) == label))


def _as_time(label: str | date) -> np.datetime64:
    try:
        # NumPy drops the nanoseconds of a `pandas.Timestamp`.
        found: np.datetime64 = getattr(label, "to_datetime64", lambda: np.datetime64(label))()
    except ValueError as error:
        raise _core.InvalidError(
            f"sel=: expected a date such as '2024-01-31' or '2024-01-31T12:30', found {label!r}"
        ) from error
    return found


def _as_duration(label: timedelta) -> np.timedelta64:
    if hasattr(label, "to_timedelta64"):  # NumPy drops the nanoseconds of a `pandas.Timedelta`
        found: np.timedelta64 = label.to_timedelta64()
        return found
    found = np.timedelta64(label)
    if found.item() != label:  # NumPy overflows without an error
        raise _core.InvalidError(
            f"sel=: expected a duration of less than 292,000 years, found {label!r}; use None for "
            "the end of a slice"
        )
    return found


def _has_overflowed(time: np.datetime64, converted: np.ndarray) -> bool:
    """Whether the conversion of a time to another unit has changed its year."""
    years = converted.astype("M8[Y]") - time.astype("M8[Y]")
    return bool(abs(years) > np.timedelta64(0, "Y"))

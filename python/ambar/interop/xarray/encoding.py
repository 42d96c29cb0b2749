"""Chunks, shards, codecs and error bounds of variables, from xarray's `encoding`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import xarray as xr

from ambar import _core
from ambar.store.error_bounds import is_lossy
from ambar.store.writer import Profile

KEYS = ("chunks", "shards", "fill_value", "profile", "error_bound", "value_range")


@dataclass(frozen=True)
class ArrayEncoding:
    """How an array is stored; None for what `ambar.create` chooses."""

    chunks: tuple[int, ...] | None
    """The shape of a chunk."""
    shards: tuple[int, ...] | None
    """The shape of a shard, a multiple of that of a chunk."""
    fill_value: Any
    """The value of elements that were never written."""
    profile: Profile | None
    error_bound: float | str | None
    value_range: Sequence[float] | None
    """The range of the values, for bounds that depend on it."""

    @classmethod
    def of(cls, variable: xr.Variable, name: str, *, explicit: bool) -> Self:
        """Return the encoding of `variable`.

        An `explicit` encoding is given for this write: unknown keys raise ValueError. Otherwise the
        encoding is that of the file that the variable was read from. Then unknown keys are ignored,
        and so are shards that are not a multiple of the chunks, which the caller has changed.
        """
        encoding = dict(variable.encoding)
        unknown = [key for key in encoding if key not in KEYS and key != "_FillValue"]
        if explicit and (unknown := [key for key in unknown if key != "preferred_chunks"]):
            raise ValueError(
                f"unexpected encoding parameters for ambar: {unknown} of variable {name!r}; "
                f"available: {', '.join(KEYS)}, and those of the CF conventions. The profile "
                "chooses the codecs"
            )
        fill = encoding.get("fill_value")
        if fill is None and variable.dtype.kind == "f":
            fill = np.nan  # as xarray's own Zarr backend
        chunks = _lengths(encoding.get("chunks"), "chunks", variable, name)
        shards = _lengths(encoding.get("shards"), "shards", variable, name)
        if not explicit and "preferred_chunks" in encoding and not _divides(chunks, shards):
            shards = None  # those of the file do not fit the chunks, which were changed
        if not explicit and chunks:
            chunks, shards = _cut_to(variable.shape, chunks, shards)
        if chunks and shards and not _divides(chunks, shards):
            raise ValueError(
                f"encoding['shards']={shards} of variable {name!r}: expected a multiple of "
                f"encoding['chunks']={chunks}"
            )
        return cls(
            chunks,
            shards,
            fill,
            profile=encoding.get("profile"),
            error_bound=encoding.get("error_bound"),
            value_range=encoding.get("value_range"),
        )

    def check_masks(self, name: str, masks: Iterable[Any]) -> None:
        """Raise ValueError for an error bound if numbers mark missing values.

        The bound would change them: they would no longer be equal to `_FillValue`.
        """
        if not is_lossy(self.error_bound):
            return
        for mask in masks:
            values = np.atleast_1d(np.asarray(mask)) if mask is not None else np.empty(0)
            if values.dtype.kind in "iuf" and not np.isnan(values.astype(float)).all():
                raise _core.InvalidError(
                    f"variable {name!r} has an error bound, and {mask} marks missing values, which "
                    "the bound would change; set '_FillValue' to NaN, which no bound changes, and "
                    "remove 'missing_value'"
                )


def check_conversions(variable: xr.Variable, name: str) -> None:
    """Raise ValueError for an error bound if the encoding changes values before they are stored.

    The bound would hold for the stored values, and not for the decoded ones.
    """
    encoding = variable.encoding
    if not is_lossy(encoding.get("error_bound")):
        return
    given = {key: encoding.get(key) for key in ("scale_factor", "add_offset", "dtype")}
    dtype = given["dtype"]
    if dtype is not None and np.dtype(dtype) == variable.dtype:
        del given["dtype"]
    if found := [f"{key}={value!r}" for key, value in given.items() if value is not None]:
        raise _core.InvalidError(
            f"variable {name!r} has an error bound, and the encoding {', '.join(found)}, which "
            "changes values before the bound applies to them; remove one of both, or convert the "
            "values first"
        )


def _lengths(given: Any, key: str, variable: xr.Variable, name: str) -> tuple[int, ...] | None:
    """Return the length along each dimension; None if `given` does not fit the dimensions."""
    if given is None or (isinstance(given, str) and given == "auto"):
        return None
    if isinstance(given, int | np.integer):
        return (int(given),) * variable.ndim
    lengths = tuple(given)
    if not all(isinstance(length, int | np.integer) for length in lengths):
        raise TypeError(
            f"encoding[{key!r}]={lengths} of variable {name!r} must be an int or a tuple of ints"
        )
    if len(lengths) != variable.ndim:
        return None  # those of the file, before the caller added or removed dimensions
    return tuple(int(length) for length in lengths)


def _divides(chunks: tuple[int, ...] | None, shards: tuple[int, ...] | None) -> bool:
    """Whether a shard consists of whole chunks."""
    if not chunks or not shards:
        return False
    return all(s % c == 0 for s, c in zip(shards, chunks, strict=True))


def _cut_to(
    shape: tuple[int, ...], chunks: tuple[int, ...], shards: tuple[int, ...] | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the chunks of a file, cut to the shape of an array that may be smaller now."""
    cut = tuple(min(c, max(size, 1)) for c, size in zip(chunks, shape, strict=True))
    return cut, shards if cut == chunks else None

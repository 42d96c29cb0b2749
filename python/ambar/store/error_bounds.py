"""Error bounds as users give them: one for all fields, or one by field.

A bound is a number (absolute) or a string: "0.5", "1e-3 of range", "1e-3 relative",
"1e-3 relative above 1e-10", "12 bits", "80 dB", "0.01 rms" or "lossless". The grammar is parsed
by the compiled core alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ambar import _core

ErrorBound: TypeAlias = float | str | Mapping[str, float | str]


def listed_bounds(error_bound: ErrorBound | None) -> list[tuple[str, str]]:
    """Return bounds by field as text; "*" is the field of one that is given for all.

    Raises InvalidError for what is neither a number nor a text.
    """
    if error_bound is None:
        return []
    if isinstance(error_bound, Mapping):
        return [(str(field), as_text(bound)) for field, bound in error_bound.items()]
    return [("*", as_text(error_bound))]


def as_text(bound: float | str) -> str:
    """Return a single bound as text."""
    if isinstance(bound, str):
        return bound
    if isinstance(bound, bool) or not isinstance(bound, (int, float)):
        raise _core.InvalidError(
            f"invalid error bound: {bound!r}; expected a number, or a string such as "
            '"1e-3 relative"'
        )
    return repr(float(bound))


def resolved(bound: float | str, value_range: Sequence[float] | None = None) -> float | str:
    """Return a bound as a number if it is absolute (0: lossless), else as a string.

    With `value_range`, (lowest, highest) of the finite values, bounds that depend on it are
    resolved. Raises InvalidError if the bound is invalid, or needs a range that is not given.
    """
    text = as_text(bound)
    if value_range is None:
        if _core.bound_needs_range(text):
            raise _core.InvalidError(
                f"error bound {text!r} depends on the value range of the whole array, which is "
                "unknown here: give value_range=(lowest, highest), or an absolute or relative bound"
            )
        return _core.error_bound(text)
    low, high = (float(end) for end in value_range)
    return _core.error_bound(text, (low, high))


def is_kept(bound: float | str, values: np.ndarray, errors: np.ndarray) -> bool:
    """Return whether errors of values are within a bound; errors of missing values are infinite."""
    kind, numbers = _core.bound_parts(bound)
    sizes, sizes_of_errors = np.abs(values.astype(np.float64)), np.abs(errors)
    if kind == "rms":
        finite = np.isfinite(sizes)
        mean = float(np.mean(np.square(errors[finite] / numbers[0]))) if finite.any() else 0.0
        return mean <= 1.0 and not sizes_of_errors[~finite].any()
    if kind == "relative":
        limits = numbers[0] * np.maximum(sizes, numbers[1])
    elif kind == "bits":
        smallest = np.finfo(values.dtype).tiny if values.dtype.kind == "f" else 0.0
        _, exponents = np.frexp(np.maximum(sizes, smallest))
        limits = np.ldexp(1.0, exponents - 2 - int(numbers[0]))
    else:
        limits = np.full(sizes.shape, numbers[0] if numbers else 0.0)
    # Values that are not finite must be equal.
    limits = np.where(np.isfinite(sizes), limits, 0.0)
    return bool(np.all(sizes_of_errors <= limits * (1 + 1e-15)))


def joined_bounds(bounds: Sequence[float | str | None]) -> float | str | None:
    """Return the bound between two versions that differ from the same original by these bounds.

    None where none is known, or where bounds of different kinds do not add up.
    """
    known = [float(bound) if isinstance(bound, int) else bound for bound in bounds]
    lossy = [bound for bound in known if bound is not None and bound != 0.0]
    if all(isinstance(bound, float) for bound in lossy):
        numbers = [bound for bound in known if isinstance(bound, float)]
        return sum(numbers) if numbers else None
    return lossy[0] if len(lossy) == 1 else None


def parse_bounds(text: str | None) -> ErrorBound | None:
    """Return what the command line's text says: one bound, or field=bound,field=bound.

    Raises InvalidError if a field has two.
    """
    if text is None or "=" not in text:
        return text
    bounds: dict[str, str] = {}
    for part in text.split(","):
        field, _, bound = (one.strip() for one in part.partition("="))
        if field in bounds:
            raise _core.InvalidError(
                f"{text!r}: the error bound of {field!r} is given twice; give one for each field"
            )
        bounds[field] = bound
    return bounds

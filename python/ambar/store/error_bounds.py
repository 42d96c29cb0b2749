"""Error bounds: parsing, checking, adding and printing them.

The argument `error_bound` is one bound for all fields, or a mapping from targets to bounds. A bound
is a number (absolute) or a string: "0.5", "1e-3 of range", "1e-3 relative", "1e-3 relative above
1e-10", "12 bits", "80 dB", "0.01 rms" or "lossless". A target is a name or a pattern, optionally
with levels or a box: "density", "velocity_*", "density@8:" or "density@[0.2:0.4, 0.2:0.4,
0.2:0.4]". The compiled core parses bounds and targets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import check_unicode
from ambar._util.user_warnings import warn

ErrorBound: TypeAlias = float | str | Mapping[str, float | str]

_CHUNK_VALUES = 1 << 16
"""Values of a chunk of a field, at most, unless the caller chose chunks."""


def listed_bounds(error_bound: ErrorBound | None) -> list[tuple[str, str]]:
    """Return pairs of target and bound as strings; a single bound has the target "*".

    Raises ValueError if a bound is neither a number nor a string.
    """
    if error_bound is None:
        return []
    if isinstance(error_bound, Mapping):
        return [(str(field), as_text(bound)) for field, bound in error_bound.items()]
    return [("*", as_text(error_bound))]


def as_text(bound: float | str) -> str:
    """Return a single bound as a string."""
    if isinstance(bound, str):
        check_unicode("error bound", bound)
        if "=" in bound:
            raise _core.InvalidError(
                f"invalid error bound: {bound!r}; give bounds by name as a mapping: "
                f"{parse_bounds(bound)}"
            )
        return bound
    if isinstance(bound, bool) or not isinstance(bound, Real):
        raise _core.InvalidError(
            f"invalid error bound: {bound!r}; expected a number, or a string such as "
            '"1e-3 relative"'
        )
    try:
        return repr(float(bound))
    except OverflowError:
        raise _core.InvalidError(
            "invalid error bound: larger than all numbers of float64; give a smaller one"
        ) from None


def resolved(bound: float | str, value_range: Sequence[float] | None = None) -> float | str:
    """Return a bound as a number if it is absolute (0: lossless), else as a string.

    With `value_range`, (lowest, highest) of the finite values, bounds that depend on it are
    resolved. Raises ValueError if the bound is invalid, or needs a range that is not given.
    """
    text = as_text(bound)
    if value_range is None:
        if _core.bound_needs_range(text):
            raise _core.InvalidError(
                f"error bound {text!r} depends on the value range of the whole array, which is "
                "unknown here: give value_range=(lowest, highest), or an absolute or relative bound"
            )
        return _core.error_bound(text)
    return _core.error_bound(text, _ends(value_range))


def bound_of_limits(
    path: str, bound: float | str, limits: Sequence[float], *, can_grow: bool
) -> float | str:
    """Return a bound that depends on the limits of the finite values of the array `path`.

    If it is 0, as for values that are all equal, warns that appended values have no bound.
    """
    text = as_text(bound)
    has_values = limits[0] <= limits[1]
    found = resolved(text, limits) if has_values else 0.0
    if can_grow and found == 0.0:
        why = "all finite values are equal" if has_values else "no value is finite"
        warn(
            f"{path}: {why}, so the error bound {text!r} is 0: the array is stored without loss, "
            "and so is what is appended to it. For an array that grows, give its value_range, or "
            "an absolute bound"
        )
    return found


def limits_of(
    bound: float | str | None, value_range: Sequence[float] | None
) -> tuple[float, float] | None:
    """Return the value range if the bound depends on it; None if any value is allowed."""
    if bound is None or value_range is None or not _core.bound_needs_range(as_text(bound)):
        return None
    return _ends(value_range)


def _ends(value_range: Sequence[float]) -> tuple[float, float]:
    try:
        ends = [float(end) for end in value_range]
    except (TypeError, ValueError):
        ends = []
    if len(ends) != 2 or not np.isfinite(ends).all() or ends[0] > ends[1]:
        raise _core.InvalidError(
            f"invalid value_range: {value_range!r}; expected (lowest, highest), two finite numbers"
        )
    return ends[0], ends[1]


def is_lossy(bound: float | str | None) -> bool:
    """Return whether an error bound allows values to change."""
    return bound is not None and _core.bound_parts(as_text(bound))[0] != "lossless"


def check_bounded_dtype(path: str, dtype: str, bound: float | str) -> None:
    """Raise ValueError if an error bound that is not lossless is given for other than floats.

    The extension module raises the same error, except for bounds that depend on a value range.
    """
    if dtype not in ("float32", "float64") and is_lossy(bound):
        raise _core.InvalidError(
            f"{path}: error bounds apply to float32 and float64 values, not to {dtype}; write "
            "these without a bound"
        )


def check_range(path: str, values: npt.NDArray[Any], limits: tuple[float, float] | None) -> None:
    """Check values of the array `path` against the value range of its error bound.

    Raises ValueError if a finite value is outside the range.
    """
    if limits is None or not values.size or values.dtype.kind != "f":
        return
    low, high = range_of(values)
    # float32 values may exceed a limit that was computed in float64 by their rounding.
    least, most = (values.dtype.type(limit) for limit in limits)
    if low < least or high > most:
        raise _core.InvalidError(
            f"{path}: expected values from {limits[0]!r} to {limits[1]!r}, the value_range from "
            f"which the error bound was computed, found values from {low:g} to {high:g}; give the "
            "range of the whole array"
        )


def is_kept(
    bound: float | str,
    values: npt.NDArray[Any],
    errors: npt.NDArray[Any],
    *,
    is_part: bool = False,
) -> bool:
    """Return whether errors of values are within a bound; errors of missing values are infinite.

    "rms" bounds hold for the mean of each chunk, which other parts of a field may share with the
    part that the values are, with `is_part`. Then the mean may be up to twice as large in parts of
    up to 65,536 values, and less in larger ones.
    """
    kind, numbers = _core.bound_parts(bound)
    magnitudes, absolute_errors = np.abs(values.astype(np.float64)), np.abs(errors)
    if kind == "rms":
        finite = np.isfinite(magnitudes)
        squares = float(np.sum(np.square(errors[finite] / numbers[0])))
        count = int(np.count_nonzero(finite))
        allowed = count + is_part * min(count, _CHUNK_VALUES)
        return bool(squares <= allowed and not absolute_errors[~finite].any())
    if kind == "relative":
        limits = numbers[0] * np.maximum(magnitudes, numbers[1])
    elif kind == "bits":
        smallest = np.finfo(values.dtype).tiny if values.dtype.kind == "f" else 0.0
        _, exponents = np.frexp(np.maximum(magnitudes, smallest))
        limits = np.ldexp(1.0, exponents - 2 - int(numbers[0]))
    else:
        limits = np.full(magnitudes.shape, numbers[0] if numbers else 0.0)
    # Values that are not finite must be equal.
    limits = np.where(np.isfinite(magnitudes), limits, 0.0)
    return bool(np.all(absolute_errors <= limits * (1 + 1e-15)))


def measured_error(
    bound: float | str, values: npt.NDArray[Any], errors: npt.NDArray[Any]
) -> float | None:
    """Return the error that a relative or rms bound limits; None for other bounds.

    Values that are not finite do not count.
    """
    kind, numbers = _core.bound_parts(bound)
    finite = np.isfinite(values)
    magnitudes = np.abs(values[finite].astype(np.float64))
    found = np.abs(errors[finite])
    if kind == "rms":
        mean = np.mean(np.square(found / numbers[0])) if found.size else 0.0
        return float(np.sqrt(mean)) * numbers[0]
    if kind == "relative":
        scales = np.maximum(magnitudes, numbers[1])
        ratios = np.divide(found, scales, out=np.where(found > 0, np.inf, 0.0), where=scales > 0)
        return float(ratios.max(initial=0.0))
    return None


class PartBound(NamedTuple):
    """The bound of a part of a field."""

    levels: tuple[int, int] | None
    """The first and last level; None for all."""
    region: Sequence[tuple[float, float]] | None
    """The sides of a box in code coordinates; None if the part is not limited to a box."""
    target: str
    """The field and the part, in the grammar of targets."""
    bound: str
    """The bound that the user gave."""

    def contains(
        self,
        count: int,
        levels: npt.NDArray[Any] | None,
        positions: Callable[[], Sequence[npt.NDArray[Any]]],
    ) -> npt.NDArray[Any]:
        """Return a mask of the values in the part, of `count` values with levels and positions."""
        inside = np.ones(count, dtype=bool)
        if self.levels is not None:
            if levels is None:
                return np.zeros(count, dtype=bool)
            inside &= (levels >= self.levels[0]) & (levels <= self.levels[1])
        if self.region is not None:
            for (lower, upper), position in zip(self.region, positions(), strict=True):
                inside &= (position >= lower) & (position <= upper)
        return inside


def select_bounds(
    rules: Iterable[tuple[str, float | str]], names: Sequence[str]
) -> list[PartBound] | None:
    """Return the bounds that apply to a field with these names; that of the whole field is last.

    Returns None if no target matches the field.
    """
    found = _core.select_bounds(list(rules), names)
    if found is None:
        return None
    return [PartBound(part.levels, part.region, part.target, part.bound) for part in found]


def targets_of(name: str, targets: Iterable[str]) -> list[str]:
    """Return the targets that match a name, the most specific first; "*" matches any characters.

    Unlike `select_bounds`, targets have neither levels nor boxes: names may have any characters.

    Examples
    --------
    >>> targets_of("velocity_x", ["*", "velocity_*", "pressure"])
    ['velocity_*', '*']
    """
    matching = [
        target
        for target in targets
        if target == name
        or re.fullmatch(".*".join(map(re.escape, target.split("*"))), name, re.DOTALL)
    ]
    return sorted(matching, key=lambda target: (target != name, -len(target)))


def bounds_by_target(parts: Sequence[PartBound]) -> dict[str, str]:
    """Return the given bounds by target."""
    bounds = {part.target: part.bound for part in parts}
    if len(bounds) > 1 and bounds[parts[-1].target] == "lossless":
        del bounds[parts[-1].target]
    return bounds


def range_of(values: npt.NDArray[Any]) -> tuple[float, float]:
    """Return the range of the finite values; (inf, -inf) if there are none."""
    if values.size and np.isfinite(ends := (values.min(), values.max())).all():
        return float(ends[0]), float(ends[1])
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (np.inf, -np.inf)


def are_kept(
    parts: Sequence[PartBound],
    values: npt.NDArray[Any],
    errors: npt.NDArray[Any],
    levels: npt.NDArray[Any] | None,
    positions: Callable[[], Sequence[npt.NDArray[Any]]],
) -> bool:
    """Return whether errors are within the bounds of the parts that values are in."""
    limits = range_of(values)
    if limits[0] > limits[1]:  # no value is finite: all must be equal
        return is_kept(0.0, values, errors)
    bounds = [resolved(part.bound, limits) for part in parts]
    is_general = np.ones(values.size, dtype=bool)
    for part, bound in zip(parts, bounds, strict=True):
        whole = part.levels is None and part.region is None
        inside = is_general if whole else part.contains(values.size, levels, positions)
        if not is_kept(bound, values[inside], errors[inside], is_part=True):
            return False
        if not whole:
            is_general &= ~inside
    return True


def loose_bound(field: str, given: str, bound: float | str, median: float) -> str | None:
    """Return a warning if a bound "of range", as a number, exceeds the median magnitude of values.

    None if it does not.
    """
    kind, numbers = _core.bound_parts(given)
    if kind != "of range" or not isinstance(bound, float) or bound <= median:
        return None
    # Relative bounds are below 1.
    advice = f"consider '{numbers[0]:g} relative'" if numbers[0] < 1 else "give a smaller one"
    return (
        f"the error bound of {field!r}, {given!r}, is {bound:.4g} and exceeds the median magnitude "
        f"of its values, {median:.4g}: most values may become zero; {advice}"
    )


def median_magnitude(values: npt.NDArray[Any]) -> float:
    """Return the median magnitude of the finite values of a sample; infinite if there are none."""
    sample = values.reshape(-1)[:: max(1, values.size // 4096)]
    magnitudes = np.abs(sample[np.isfinite(sample)].astype(np.float64))
    # `numpy.median` may overflow: it adds the two values in the middle.
    return float(np.percentile(magnitudes, 50, method="lower")) if magnitudes.size else np.inf


def joined_bounds(bounds: Sequence[float | str | None]) -> float | str | None:
    """Return the bound between two versions that differ from the same original by these bounds.

    Returns None if no bound is known, or if bounds of different kinds cannot be added.
    """
    known = [float(bound) if isinstance(bound, int) else bound for bound in bounds]
    lossy = [bound for bound in known if bound is not None and bound != 0.0]
    if all(isinstance(bound, float) for bound in lossy):
        numbers = [bound for bound in known if isinstance(bound, float)]
        return sum(numbers) if numbers else None
    return lossy[0] if len(lossy) == 1 else None


def added_bounds(first: float | str, second: float | str) -> float | str | None:
    """Return the bound of values that were changed within one bound, and then within another one.

    Returns None if the bounds are neither both absolute nor both relative.

    Examples
    --------
    >>> added_bounds(0.25, 0.5), added_bounds("0.25 relative", "0.5 relative above 2")
    (0.75, '0.875 relative above 2.0')
    """
    (kind, a), (other, b) = map(_core.bound_parts, map(as_text, (first, second)))
    if "lossless" in (kind, other):
        return second if kind == "lossless" else first
    if kind != other or kind not in ("absolute", "relative"):
        return None
    if kind == "absolute":
        return a[0] + b[0]
    # The second error is relative to changed values, which may be larger.
    bound, floor = a[0] + b[0] + a[0] * b[0], max(a[1], b[1])
    return f"{bound!r} relative" + (f" above {floor!r}" if floor else "")


def parse_bounds(text: str | None) -> ErrorBound | None:
    """Parse an option of the command line: one bound, or target=bound,target=bound.

    Raises ValueError if a target has two bounds or none.
    """
    if text is None or "=" not in text:
        return text
    bounds: dict[str, str] = {}
    # Commas in brackets separate the sides of a box.
    for part in re.split(r",(?![^\[]*\])", text):
        # Names of fields may contain "=", bounds do not.
        field, separator, bound = (one.strip() for one in part.rpartition("="))
        if not separator:
            raise _core.InvalidError(
                f"invalid error bounds: {text!r}; expected FIELD=BOUND between commas, found "
                f"{bound!r}"
            )
        if field in bounds:
            raise _core.InvalidError(
                f"{text!r}: the error bound of {field!r} is given twice; give one for each field"
            )
        bounds[field] = bound
    return bounds

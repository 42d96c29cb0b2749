"""Error bounds as users give them: a number, a part of the value range, or these by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

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
        raise _core.InvalidError(f"an error bound is a number or a text, not {bound!r}")
    return repr(float(bound))


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

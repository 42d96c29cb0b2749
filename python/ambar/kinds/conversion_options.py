"""Options that all outputs of a series are converted with: stored, and checked when it grows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ambar import _core
from ambar.kinds.request import ConvertRequest

KEY = "conversion"
"""The key of the attribute ``ambar`` of a series that has the options."""


def stored_options(
    request: ConvertRequest, bounds: list[tuple[str, str]], **options: Any
) -> dict[str, Any]:
    """Return the options of a request as a series stores them: those that are given.

    Parameters
    ----------
    request
        The request.
    bounds
        The error bounds, with the names of fields that they have in the store.
    options
        Other options; lists are names, whose order does not matter.
    """
    found: dict[str, Any] = {"profile": request.profile}
    if bounds:
        found["error_bound"] = [list(bound) for bound in bounds]
    for name, value in options.items():
        if isinstance(value, tuple):
            found[name] = list(value)
        elif value is not None:
            found[name] = sorted(value) if isinstance(value, list) else value
    return found


def check_options(request: ConvertRequest, options: Mapping[str, Any]) -> None:
    """Raise ValueError if the series to which a request adds was converted with other options.

    Series that were not made by a conversion have no options, and get outputs with any.
    """
    existing = request.existing
    if existing is None:
        return
    stored = existing._ambar_attributes().get(KEY)
    if not isinstance(stored, dict):
        return
    for name in sorted({*stored, *options}):
        known, given = stored.get(name), options.get(name)
        if known != given:
            raise _core.InvalidError(
                f"{os.fspath(request.target)}: expected {_text(name, known)}, as for the outputs "
                f"in the series, found {_text(name, given)}; give the same options, or convert to "
                "another store"
            )


def _text(name: str, value: Any) -> str:
    is_bound = name == "error_bound" and value is not None
    return f"{name}={dict(value) if is_bound else value!r}"

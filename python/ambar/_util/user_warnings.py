"""Warnings that name the line of the caller's program."""

from __future__ import annotations

import sys
import warnings


def warn(message: str) -> None:
    """Emit a UserWarning at the line that called ambar."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == "ambar"

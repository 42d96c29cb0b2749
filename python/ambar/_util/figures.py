"""Writing figures of matplotlib to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ambar import _core


def save_figure(figure: Any, target: Path) -> Path:
    """Write a figure of matplotlib, and return the path of the file.

    Raises ValueError if matplotlib does not support the suffix.
    """
    try:
        figure.savefig(target)
    except ValueError as error:
        raise _core.InvalidError(f"{target}: no such picture: {error}") from error
    return target

"""Files of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ambar import _core


def save_figure(figure: Any, target: Path) -> Path:
    """Write a figure of matplotlib, and return its file.

    Raises ValueError if matplotlib writes no such file.
    """
    try:
        figure.savefig(target)
    except ValueError as error:
        raise _core.InvalidError(f"{target}: no such picture: {error}") from error
    return target

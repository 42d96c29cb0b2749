"""Writing figures of matplotlib to files."""

from __future__ import annotations

import difflib
import math
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.output_files import write_error


def check_colors(colors: str) -> None:
    """Raise ValueError, with close matches, if matplotlib has no colour map of that name."""
    from matplotlib import colormaps

    if colors not in colormaps:
        close = difflib.get_close_matches(colors, colormaps)
        raise _core.InvalidError(
            f"{colors!r} is not a colour map of matplotlib; close matches: "
            f"{', '.join(close) or 'none'}"
        )


def check_limits(limits: tuple[float, float]) -> None:
    """Raise ValueError if the lowest and highest value of a colour bar are not in order."""
    low, high = limits
    if not -math.inf < low < high < math.inf:
        raise _core.InvalidError(
            f"invalid limits: {low}:{high}; expected two numbers, the lower one first"
        )


def save_figure(figure: Any, target: Path, dpi: int = 150) -> Path:
    """Write a figure of matplotlib, and return the path of the file.

    Raises ValueError if matplotlib does not support the suffix, OSError if writing fails.
    """
    try:
        figure.savefig(target, bbox_inches="tight", dpi=dpi)
    except ValueError as error:
        raise _core.InvalidError(f"{target}: invalid format of a picture: {error}") from error
    except OSError as error:
        raise write_error(error, target) from error
    return target

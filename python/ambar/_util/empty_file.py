"""Files of zero bytes, which a failed copy leaves."""

from __future__ import annotations

import os
from pathlib import Path

EMPTY = "the file is empty; restore it from a copy"
"""The end of the error message for such a file."""


def is_empty_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a file of zero bytes."""
    place = Path(path)
    return place.is_file() and place.stat().st_size == 0

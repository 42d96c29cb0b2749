"""URLs of stores, and the options of the services behind them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is a URL rather than a path."""
    return isinstance(place, str) and _URL.match(place) is not None


def core_options(options: Mapping[str, object] | None) -> dict[str, str] | None:
    """Return storage options as the extension module takes them: texts, ``true`` and ``false``."""
    if options is None:
        return None
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }

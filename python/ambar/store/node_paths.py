"""Paths and attributes of nodes, as the extension module takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ambar import _core


def absolute(path: str) -> str:
    """Return a path from the root."""
    return "/" + path.strip("/")


def to_json(attributes: Mapping[str, Any] | None) -> str:
    """Return attributes as JSON text; raises ValueError if JSON cannot hold them."""
    try:
        return json.dumps(dict(attributes or {}), default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _core.InvalidError(f"attributes must be what JSON can hold: {error}") from error


def _plain(value: object) -> Any:
    """Turn NumPy's scalars and arrays into what JSON can hold."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not of JSON")

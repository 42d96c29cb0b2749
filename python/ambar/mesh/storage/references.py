"""What in the description of a mesh refers to arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def references_in(description: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a description that refers to an array."""
    if isinstance(description, dict):
        if "at" in description:
            yield description
        for value in description.values():
            if isinstance(value, (dict, list)):
                yield from references_in(value)
    elif isinstance(description, list):
        for value in description:
            if isinstance(value, (dict, list)):
                yield from references_in(value)


def components_of(reference: Any) -> list[Any] | None:
    """Return the references to each component, None of an array that is stored as one."""
    parts = reference.get("components_at") if isinstance(reference, dict) else None
    return parts if isinstance(parts, list) and parts else None

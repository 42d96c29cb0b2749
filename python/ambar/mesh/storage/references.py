"""References to arrays in the description of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def references_in(description: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a description that refers to an array, at any depth."""
    if isinstance(description, dict) and "at" in description:
        yield description
    items: Any = ()
    if isinstance(description, dict):
        items = description.values()
    elif isinstance(description, list):
        items = description
    for value in items:
        if isinstance(value, (dict, list)):
            yield from references_in(value)


def components_of(reference: Any) -> list[Any] | None:
    """Return the references to each component; None if the array is stored as one."""
    components = reference.get("components_at") if isinstance(reference, dict) else None
    return components if isinstance(components, list) and components else None

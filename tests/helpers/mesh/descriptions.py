"""Takes the description of a stored mesh apart, and puts it together again after a change."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import ambar
from ambar.mesh.storage.packs import join_streams, split_streams


def plain(store: ambar.Store, group: str = "") -> tuple[dict[str, Any], list[bytes]]:
    """Return all that a group says of its mesh, and the bytes of its packs."""
    about = store._ambar_attributes(group)
    if "data" in about:
        data = base64.b85decode(about.pop("data"))
    elif "description" in about:
        data = store[f"{group}/{about.pop('description')}"].read().tobytes()
    else:
        return about, []
    described = split_streams(data)
    packs = [pack for pack in described.get("packed", ()) if "stream" in pack]
    return about | described, [pack.pop("stream") for pack in packs]


def together(about: dict[str, Any], streams: list[bytes]) -> dict[str, Any]:
    """Return the attribute of a group with a description, all of it deflated."""
    outside: dict[str, Any] = {key: about[key] for key in ("kind", "version") if key in about}
    inside = {key: value for key, value in about.items() if key not in outside}
    data = join_streams(json.dumps(inside), streams)
    return {**outside, "data": base64.b85encode(data).decode()}


def changed_at(*steps: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets the value of a description at the steps before the last."""

    def change(described: Any) -> None:
        *way, last, value = steps
        for step in way:
            described = described[step]
        described[last] = value

    return change


def leaves(described: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = described.items() if isinstance(described, dict) else enumerate(described)
    for key, value in items:
        yield (*way, key)
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*way, key))


HOSTILE = [None, -1, 3, 2**40, 2**70, 1e308, "x", "/", [], {}, [1], {"at": "x"}, True]

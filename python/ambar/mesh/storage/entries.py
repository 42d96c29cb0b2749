"""The lists in a description that describe arrays on points, cells, rows or the whole."""

from __future__ import annotations

from typing import Any

from ambar.mesh.storage.source import Source


def checked_entries(entries: Any, source: Source, what: str) -> list[dict[str, Any]]:
    """Return the descriptions of arrays, once they are known to be a list of such."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise source.damaged(f"{what} are no list")
    for entry in entries:
        if not (
            isinstance(entry, dict)
            and ("at" in entry or "components_at" in entry)
            and "name" in entry
            and isinstance(entry["name"], (str, type(None)))
        ):
            raise source.damaged(f"{what} has an entry that describes no array: {entry!r:.80}")
        info = entry.get("info", [])
        if not (
            isinstance(info, list)
            and all(isinstance(item, list) and len(item) == 3 for item in info)
        ):
            raise source.damaged(f"{what} {entry['name']!r} has information of another form")
        active = entry.get("active", [])
        if not isinstance(active, list) or not all(isinstance(role, str) for role in active):
            raise source.damaged(f"{what} {entry['name']!r} is active as {active!r:.80}")
    return entries

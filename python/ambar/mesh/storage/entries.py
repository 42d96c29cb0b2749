"""Lists of arrays in a description: those on points, cells or rows, or in field data."""

from __future__ import annotations

from typing import Any

from ambar.mesh.storage.array_reader import ArrayReader


def check_entries(entries: Any, reader: ArrayReader, what: str) -> list[dict[str, Any]]:
    """Return the descriptions of arrays; raises CorruptError if the list is damaged."""
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise reader.damaged(f"{what}: expected a list of arrays, found {entries!r:.80}")
    for entry in entries:
        if not (
            isinstance(entry, dict)
            and ("at" in entry or "components_at" in entry)
            and isinstance(entry.get("name", 0), (str, type(None)))
        ):
            raise reader.damaged(f"{what}: {entry!r:.80} does not describe an array")
        where = f"{what} {entry['name']!r}"
        info = entry.get("info", [])
        if not isinstance(info, list) or any(
            not isinstance(item, list) or len(item) != 3 for item in info
        ):
            raise reader.damaged(f"{where}: its information is damaged")
        active = entry.get("active", [])
        if not isinstance(active, list) or not all(isinstance(role, str) for role in active):
            raise reader.damaged(f"{where}: its active attributes are {active!r:.80}")
    return entries

"""Names and times of several stores that become one store."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ambar import _core

OnConflict: TypeAlias = Literal["error", "skip", "replace"]


@dataclass
class Owners:
    """The store that each name of a merge comes from."""

    numbers: dict[str, int]
    """The number of the store by name; -1 for what the target has already."""
    replaced: list[str] = field(default_factory=list)
    """Names that the target has, and that another store replaces."""
    skipped: list[str] = field(default_factory=list)
    """Names that a later store has again, of which the first one is kept."""
    superseded: list[str] = field(default_factory=list)
    """Names that an earlier store or the target has, of which the last one is kept."""
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    """Names that a store has again, with the location of that store."""

    def of(self, number: int) -> list[str]:
        """Return the names that come from a store, in their order."""
        return [name for name, owner in self.numbers.items() if owner == number]


def assign_owners(
    stores: Sequence[tuple[str, Iterable[str]]], existing: Iterable[str], on_conflict: OnConflict
) -> Owners:
    """Return the store that each name comes from.

    Parameters
    ----------
    stores
        The location and the names of each store.
    existing
        The names in the target.
    on_conflict
        Whether the first ("skip") or the last ("replace") store keeps a name. "error" collects the
        conflicts.
    """
    owners = Owners(dict.fromkeys(existing, -1))
    skipped: dict[str, None] = {}
    superseded: dict[str, None] = {}
    for number, (where, names) in enumerate(stores):
        for name in names:
            if name in owners.numbers and on_conflict == "error":
                owners.conflicts.append((name, where))
            elif name in owners.numbers and on_conflict == "skip":
                skipped[name] = None
            else:
                if name in owners.numbers:
                    superseded[name] = None
                if owners.numbers.get(name) == -1:
                    owners.replaced.append(name)
                owners.numbers[name] = number
    owners.skipped, owners.superseded = list(skipped), list(superseded)
    return owners


def check_conflicts(
    found: Iterable[tuple[str, str]],
    what: str,
    advice: str = 'give on_conflict="skip" or "replace"',
) -> None:
    """Raise ValueError for names that several stores of a merge have.

    `found` are pairs of a name and the store that has it again.
    """
    names: dict[str, list[str]] = {}
    for name, store in found:
        names.setdefault(name, []).append(store)
    if names:
        listed = [f"{name} (again in {', '.join(dict.fromkeys(at))})" for name, at in names.items()]
        more = f", and {len(listed) - 20} more" if len(listed) > 20 else ""
        raise _core.InvalidError(
            f"expected different {what} in all stores, found {len(listed)} in several of them: "
            f"{', '.join(listed[:20])}{more}; {advice}"
        )


def merged_attributes(
    parts: Sequence[tuple[str, Mapping[str, Any]]],
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the attributes of groups together, and those of which a later group has another value.

    `parts` are pairs of a store and the attributes of its group; the first value is kept.
    """
    merged: dict[str, Any] = {}
    different = []
    for where, attributes in parts:
        for name, value in attributes.items():
            if merged.setdefault(name, value) != value and not _both_nan(merged[name], value):
                different.append((name, where))
    return merged, different


def _both_nan(a: object, b: object) -> bool:
    return isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)


def joined_times(series: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
    """Return the times of several series one after the other.

    `series` are pairs of a store and its times. Raises ValueError if times do not increase.
    """
    joined: list[Any] = []
    last: Any = None
    for where, times in series:
        for time in times:
            if time is not None and last is not None and time <= last:
                raise _core.InvalidError(
                    f"{where}: expected steps after time {last!r}, the last one before them, found "
                    f"time {time!r}; give the stores in the order of their times"
                )
            last = last if time is None else time
            joined.append(time)
    return joined

"""Copies and merges of stores of arrays, and of series of steps of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ambar import _core
from ambar._util.progress import Progress
from ambar.store.copies.copier import Copier, encode
from ambar.store.copies.merging import (
    OnConflict,
    Owners,
    assign_owners,
    check_conflicts,
    joined_times,
    merged_attributes,
)
from ambar.store.copies.selection import (
    STEP,
    Positions,
    select_names,
    select_steps,
    step_name,
)
from ambar.store.error_bounds import (
    ErrorBound,
    check_bounded_dtype,
    listed_bounds,
    targets_of,
)
from ambar.store.store import Store
from ambar.store.writer import Profile, Writer


def is_series(store: Store) -> bool:
    """Whether a store has steps of arrays, as a running program writes them."""
    about = store._ambar_attributes()
    return about.get("kind") == "series" and about.get("of") == "arrays"


def copy_arrays(
    source: Store,
    writer: Writer,
    *,
    fields: Sequence[str] | None,
    steps: Positions,
    profile: Profile | None,
    error_bound: ErrorBound | None,
    report: Progress | None,
) -> None:
    """Copy the arrays of a store, or some of them.

    Parameters
    ----------
    source, writer
        The store, and the writer of the target.
    fields
        Paths of arrays, or patterns such as ``"run/*"``; in a series, paths below a step. A group
        without any of the arrays is left out.
    steps
        Steps of a series.
    profile
        The profile of lossless arrays; by default arrays are copied verbatim.
    error_bound
        Bounds by path or pattern.
    report
        A function called with the work done and all work.

    Raises
    ------
    KeyError
        If no array matches a field or the target of a bound.
    ValueError
        If an array has an error bound already; for steps of a store without steps.
    """
    copier = Copier(source, writer, profile, report)
    groups = _step_groups(source, steps)
    names = {path: _in_step(source, path) for path in source}
    bounds = _bounds(source, names, error_bound)
    if fields is None and steps is None and not bounds:
        copier.add("/")
        copier.finish()
        return
    known = list(dict.fromkeys(names.values()))
    wanted = set(select_names(known, fields, source.location, "array"))
    kept = {} if fields is not None else {group: _renamed(group, groups) for group in source.groups}
    for path in source:
        to = _renamed(path, groups)
        if names[path] not in wanted or to is None:
            continue
        kept.update(zip(_parents(path), _parents(to), strict=True))
        if path in bounds:
            encode(source._array(path), writer, to, profile=profile, error_bound=bounds[path])
        else:
            copier.add(path, to)
    kept |= {"": "", **(groups or {})}
    for group, place in kept.items():
        if place is not None:
            copier.set_attributes(place, source._attributes(group))
    if groups is not None:
        about = source._ambar_attributes()
        numbers = [int(step.removeprefix(STEP)) for step in groups]
        times = [about["times"][number] for number in numbers]
        attributes = {**source._attributes(""), "ambar": {**about, "times": times}}
        copier.set_attributes("", attributes)
    copier.finish()


def _in_step(source: Store, path: str) -> str:
    """Return the path of an array below its step; its whole path if it is in none."""
    step, slash, below = path.partition("/")
    return below if slash and is_series(source) and step.startswith(STEP) else path


def _renamed(path: str, groups: Mapping[str, str] | None) -> str | None:
    """Return the path of a node in the copy; None for a node of a step that is not copied."""
    step, slash, below = path.partition("/")
    if groups is None or not step.startswith(STEP):
        return path
    return f"{groups[step]}{slash}{below}" if step in groups else None


def _parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _step_groups(source: Store, steps: Positions) -> dict[str, str] | None:
    """Return the groups of the selected steps, with their new names; None without steps."""
    if not is_series(source):
        if steps is not None:
            raise _core.InvalidError(
                f"{source.location}: expected a series for steps={steps!r}, found a store without "
                "steps; leave steps out"
            )
        return None
    count = len(source._ambar_attributes().get("times", ()))
    chosen = select_steps(range(count), steps, source.location)
    return {step_name(number): step_name(at) for at, number in enumerate(chosen)}


def _bounds(source: Store, names: dict[str, str], error_bound: ErrorBound | None) -> dict[str, str]:
    """Return the bounds of arrays by path."""
    rules = dict(listed_bounds(error_bound))
    used, found = {"*"}, {}
    for path, name in names.items():
        targets = targets_of(name, rules)
        used.update(targets)
        array = source._array(path)
        is_float = array.type_name in ("float32", "float64")
        if not targets or not (is_float or targets[0] == name):
            continue
        bound = rules[targets[0]]
        if _core.bound_parts(bound)[0] == "lossless":
            continue
        check_bounded_dtype(path, array.type_name, bound)
        if array.error_bound is not None:
            raise bounded_already(source, path, array.error_bound)
        found[path] = bound
    if unused := [target for target in rules if target not in used]:
        select_names(list(dict.fromkeys(names.values())), unused[:1], source.location, "array")
    return found


def bounded_already(source: Store, name: str, bound: float | str) -> _core.InvalidError:
    """Return the error for a second error bound that the store could not state."""
    return _core.InvalidError(
        f"{source.location}: {name} has the error bound {bound!r}, and a second one would add to "
        "it; give bounds for other arrays by name, or convert the original"
    )


def merge_arrays(
    stores: Sequence[Store],
    writer: Writer,
    existing: Store | None,
    *,
    on_conflict: OnConflict,
    report: Progress | None,
) -> Owners | None:
    """Copy all arrays and groups of several stores into one.

    Returns the store that each array comes from; None for series, of which all steps are copied.

    Parameters
    ----------
    stores, writer
        The stores, and the writer of the target.
    existing
        The target, if it exists.
    on_conflict
        Which array, or attribute of a group, is kept if several stores have it: "skip" keeps the
        first one, "replace" the last one.
    report
        A function called with the work done and all work.

    Raises
    ------
    ValueError
        If several stores have an array or different attributes of a group, with "error".
    """
    if any(map(is_series, stores)):
        _merge_steps(stores, writer, existing, report)
        return None
    owners = assign_owners(
        [(store.location, store) for store in stores], existing or (), on_conflict
    )
    every = [*([existing] if existing is not None else []), *stores]
    check_conflicts(_mixed_nodes(every, owners.numbers), "nodes", "rename one of them")
    attributes = _merged_groups(every, on_conflict, owners.conflicts)
    check_conflicts(owners.conflicts, "arrays and attributes")
    for path in owners.replaced:
        writer.remove(path)
    for number, store in enumerate(stores):
        copier = Copier(store, writer, None, report)
        for path in owners.of(number):
            copier.add(path)
        copier.finish()
    for group, values in attributes.items():
        writer._create_group(group, values)
    return owners


def _merged_groups(
    stores: Sequence[Store], on_conflict: OnConflict, conflicts: list[tuple[str, str]]
) -> dict[str, dict[str, Any]]:
    """Return the attributes of all groups; adds to `conflicts`."""
    attributes = {}
    ordered = list(reversed(stores)) if on_conflict == "replace" else list(stores)
    for group in dict.fromkeys(group for store in stores for group in store.groups):
        parts = [
            (store.location, store._attributes(group)) for store in ordered if group in store.groups
        ]
        attributes[group], different = merged_attributes(parts)
        if on_conflict == "error":
            conflicts.extend((f"the attribute {name!r} of /{group}", at) for name, at in different)
    return attributes


def _mixed_nodes(
    stores: Sequence[Store], arrays: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield paths that are an array in one store, and a group in another."""
    for store in stores:
        for group in store.groups:
            if group in arrays:
                yield group, store.location


def _merge_steps(
    stores: Sequence[Store], writer: Writer, existing: Store | None, report: Progress | None
) -> None:
    """Append the steps of series to one series."""
    every = [*([existing] if existing is not None else []), *stores]
    for store in every:
        if not is_series(store):
            raise _core.InvalidError(
                f"{store.location}: expected a series of steps of arrays like the other stores, "
                "found a store without steps; merge stores of one kind"
            )
    times = joined_times([(store.location, _times(store)) for store in every])
    first = len(_times(existing)) if existing is not None else 0
    for store in stores:
        copier = Copier(store, writer, None, report)
        for number in range(len(_times(store))):
            copier.add(step_name(number), step_name(first))
            first += 1
        copier.finish()
    about: dict[str, Any] = {**every[0]._ambar_attributes(), "times": times}
    attributes, _ = merged_attributes([(store.location, store._attributes("")) for store in every])
    writer._create_group("", {**attributes, "ambar": about})


def _times(store: Store) -> list[Any]:
    times = store._ambar_attributes().get("times")
    if not isinstance(times, list):
        raise _core.CorruptError(
            f"{store.location}: expected a list of times among the attributes of the series, found "
            f"{times!r:.80}; restore the store from a copy"
        )
    return times

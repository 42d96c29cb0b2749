"""Copies and merges of series of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ambar import _core
from ambar._util.progress import Progress
from ambar.kinds.conversion_options import KEY as OPTIONS
from ambar.snapshot.copies.snapshot_copy import SnapshotSelection, copy_snapshot
from ambar.snapshot.run_info import RunInfo, run_difference
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot, StoredSource
from ambar.store.copies.copier import Copier
from ambar.store.copies.merging import (
    OnConflict,
    assign_owners,
    check_conflicts,
    merged_attributes,
)
from ambar.store.group_description import Description
from ambar.store.store import Store
from ambar.store.writer import Writer


def steps_in(store: Store) -> list[str]:
    """Return the names of the groups of the outputs of a series."""
    return [name for _, name in Series(store)._steps]


def steps_of_target(store: Store) -> list[str]:
    """Return the outputs of a series to add to; raises ValueError for another kind of store."""
    about = store._ambar_attributes()
    if about.get("kind") != "series" or "of" in about:
        raise _core.InvalidError(
            f"{store.location}: expected a series of outputs to add to, found a store of the kind "
            f"{about.get('kind', 'arrays')!r}; choose another name"
        )
    return steps_in(store)


def copy_series(
    source: Store,
    writer: Writer,
    steps: Sequence[str],
    selection: SnapshotSelection,
    scratch: Path,
    report: Progress | None,
) -> None:
    """Copy outputs of a series, or a part of each; raises the errors of `copy_snapshot`."""
    if selection != SnapshotSelection():
        for number, name in enumerate(steps):
            of_step = None if report is None else partial(_report_step, report, number, len(steps))
            copy_snapshot(source, name, writer, name, selection, scratch, of_step)
        return
    copier = Copier(source, writer, None, report)
    for name in steps:
        copier.add(name)
    copier.finish()


def copy_beside_steps(source: Store, writer: Writer) -> None:
    """Copy the nodes at the root of a series that are not outputs."""
    outputs = set(steps_in(source))
    copier = Copier(source, writer, None, None)
    for path, _ in source._core.children("/"):
        if path.strip("/") not in outputs:
            copier.add(path)
    copier.finish()


def _report_step(report: Progress, number: int, count: int, done: int, total: int) -> None:
    """Report the progress of one of several steps."""
    report(number * total + done, count * total)


def check_same_run(outputs: Sequence[tuple[Store, str | None]]) -> None:
    """Raise ValueError if outputs of one series are of several codes or runs.

    `outputs` are stores with the path of an output, None for a store without any.
    """
    expected: tuple[object, object] | None = None
    first: RunInfo | None = None
    for store, path in outputs:
        if path is None:
            continue
        about = Description(store._ambar_attributes(path), store.location)
        source, info = about.object("source"), about.object("info")
        found = (source.optional_string("format"), info.integer("ndim"))
        expected = expected or found
        if found != expected:
            raise _core.InvalidError(
                f"{store.location}: expected outputs of {expected[0]} in {expected[1]} dimensions "
                f"like those of {outputs[0][0].location}, found {found[0]} in {found[1]}; a series "
                "has the outputs of one run"
            )
        own = Snapshot(StoredSource(store, path)).info
        first = first or own
        if other := run_difference(first, own):
            raise _core.InvalidError(
                f"{store.location}: expected {other[0]} like those of {outputs[0][0].location}, "
                f"found {other[1]}; a series has the outputs of one run"
            )


class SeriesMerge:
    """Outputs of series, and single outputs of RAMSES, that become one series.

    Raises
    ------
    ValueError
        If the target is not a series; if several stores have an output, with "error".
    UnsupportedError
        If a store has a single output of another code.
    """

    def __init__(
        self, stores: Sequence[Store], existing: Store | None, on_conflict: OnConflict
    ) -> None:
        self._stores = stores
        self._existing = existing
        self._outputs = [_outputs_of(store) for store in stores]
        named = [
            (store.location, outputs) for store, outputs in zip(stores, self._outputs, strict=True)
        ]
        known = [] if existing is None else steps_of_target(existing)
        paths = [next(iter(outputs.values()), None) for outputs in self._outputs]
        first = [] if existing is None else [(existing, next(iter(known), None))]
        check_same_run([*first, *zip(stores, paths, strict=True)])
        self.owners = assign_owners(named, known, on_conflict)
        check_conflicts(self.owners.conflicts, "outputs")

    def write(self, writer: Writer, report: Progress | None) -> None:
        """Copy the outputs."""
        for name in self.owners.replaced:
            writer.remove(name)
        for number, store in enumerate(self._stores):
            copier = Copier(store, writer, None, report)
            for name in self.owners.of(number):
                copier.add(self._outputs[number][name], name)
            copier.finish()
        if self._existing is None:
            roots = [(store.location, store._attributes("")) for store in self._stores]
            attributes, _ = merged_attributes(roots)
            own = {"version": 1, "kind": "series"}
            options = [store._ambar_attributes().get(OPTIONS) for store in self._stores]
            if options[0] is not None and all(one == options[0] for one in options):
                own[OPTIONS] = options[0]
            writer._create_group("", {**attributes, "ambar": own})


def _outputs_of(store: Store) -> dict[str, str]:
    """Return the paths of the outputs in a store, by their names in a series."""
    about = store._ambar_attributes()
    if about.get("kind") == "series":
        return {name: name for name in steps_in(store)}
    source = Description(about, store.location).object("source")
    if source.optional_string("format") != "ramses":
        raise _core.UnsupportedError(
            f"{store.location}: expected outputs of RAMSES, which form a series, found a snapshot "
            "of another code; keep it in a store of its own"
        )
    return {f"output_{source.integer('output'):05d}": ""}

"""Datasets that the workers of a dask cluster read and encode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar.collection.copies import copy_datasets
from ambar.collection.storage.settings import settings_of
from ambar.collection.write.pending_changes import exists_already
from ambar.parallel.cluster import Scheduler, batches, connected, new_name, run, scratch_in
from ambar.store.store import Store
from ambar.store.urls import folder_of
from ambar.store.writer import Profile, create

if TYPE_CHECKING:
    from ambar.collection.collection import Collection

JOIN_LIMIT_BYTES = 64 << 20
"""Raw bytes of a lossless family of a task that the client encodes again, as a part of the family
of all tasks."""


def add_on_cluster(
    collection: Collection, datasets: Sequence[tuple[str, Any]], scheduler: Scheduler
) -> None:
    """Add datasets to a collection, which tasks write to collections beside it."""
    kind, profile = type(collection), collection._changing._writer._profile
    names = Counter(name for name, _ in datasets)
    for name, count in names.items():
        if count > 1 or name in collection:
            raise exists_already(name)
    with (
        connected(scheduler) as client,
        scratch_in(folder_of(collection.location)) as scratch,
        collection._lock,
    ):
        tasks = [
            (kind, batch, scratch, collection.settings, profile)
            for batch in batches(datasets, client)
        ]
        for path in run(client, _write_batch, tasks):
            _copy_batch(path, collection)


def _copy_batch(path: Path, target: Collection) -> None:
    """Copy the datasets of a task, whose store is closed when the function returns."""
    store = Store._open(path)
    source = type(target)(path, store, None, settings_of(store))
    copy_datasets(source, target, source.names, join_limit=JOIN_LIMIT_BYTES)


def _write_batch(
    kind: type[Collection],
    datasets: list[tuple[str, Any]],
    scratch: Path,
    settings: Mapping[str, Any],
    profile: Profile,
) -> Path:
    """Write datasets to a new collection, in a task, and return its path."""
    path = new_name(scratch)
    writer = create(path, profile=profile, threads=1, fsync=False)
    with kind(path, None, writer, settings) as collection:
        collection.add_many(datasets)
    return path

"""Opening whatever there is at a path or in memory: a store, or a code's own output."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ambar import _core
from ambar.formats.amrex.source import AmrexSource, is_amrex
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import RamsesSource, Snapshot, StoredSource
from ambar.store.cache import place_of
from ambar.store.locations import Held, Place, open_store, taken
from ambar.store.store import Store
from ambar.store.urls import is_url

if TYPE_CHECKING:
    from ambar.collection.collection import Collection
    from ambar.mesh.mesh import Mesh
    from ambar.mesh.series import MeshSeries


def open(  # noqa: A001
    path: Place, *, storage_options: Mapping[str, object] | None = None
) -> Store | Snapshot | Series | Collection | Mesh | MeshSeries:
    """Open a store, a RAMSES output folder, or a plotfile of AMReX; no data are read yet.

    Parameters
    ----------
    path
        A store (a file, a folder, or a URL: ``s3://bucket/key``, ``https://...``, of a folder with
        a ``/`` at the end), an ``output_NNNNN`` folder of RAMSES, or a plotfile of AMReX (a folder,
        or a file of HDF5). Or the bytes of a store's file: `bytes`, a `memoryview`, or a binary
        file object, all of which is read into memory.
    storage_options
        For URLs: ``endpoint``, ``region``, ``access_key_id``, ``secret_access_key``,
        ``session_token``, ``anonymous``, ``timeout`` and others (docs/howto/object-stores.md). For
        S3 those not given are taken from the environment (``AWS_ACCESS_KEY_ID`` and so on).

    Returns
    -------
    Snapshot
        For a store of one output, for a RAMSES output, and for a plotfile.
    Series
        For a store of a run.
    Collection
        For a store of named datasets; `ambar.open_collection` opens it to change it, too.
    Mesh
        For a store of a VTK object.
    Store
        For any other store.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    NotFoundError
        If there is nothing at the URL.
    CorruptError
        If it is no store, or a damaged one.
    InvalidError
        If it is a folder of RAMSES outputs; if there is no such storage option.
    UnsupportedError
        If the server does not serve parts of files.
    AmbarError
        If the server cannot be reached, or refuses.
    """
    place = taken(path)
    if isinstance(place, Held) or is_url(place) or storage_options:
        return _opened(open_store(place, storage_options), place, storage_options)
    return _opened_path(place)


def _opened_path(
    path: str | os.PathLike[str],
) -> Store | Snapshot | Series | Collection | Mesh | MeshSeries:
    """Return what there is at a path."""
    if is_ramses(path):
        return Snapshot(RamsesSource(_core.Ramses(os.fspath(path)), os.fspath(path)))
    if Path(path).is_dir() and (found := outputs(path)):
        raise _core.InvalidError(
            f"{path} is a folder of {len(found)} RAMSES outputs: open one of them, or convert all "
            f"to a series: ambar.convert({str(path)!r}, 'run.ambar')"
        )
    if is_amrex(path):
        return Snapshot(AmrexSource(path))
    return _opened(open_store(path), path)


def _opened(
    store: Store,
    place: str | os.PathLike[str] | Held,
    storage_options: Mapping[str, object] | None = None,
) -> Store | Snapshot | Series | Collection | Mesh | MeshSeries:
    """Return what `store` holds, by its kind."""
    attributes = store.ambar_attributes()
    kind = attributes.get("kind")
    if kind == "snapshot":
        return Snapshot(StoredSource(store, "/", attributes))
    if kind == "collection":
        from ambar.collection.collection import Collection
        from ambar.collection.openers import settings_of

        kept = place_of(place, storage_options)
        return Collection(kept, store, None, settings_of(store))
    if kind == "mesh":
        from ambar.mesh.mesh import Mesh

        return Mesh(store)
    if kind == "series" and attributes.get("of") == "mesh":
        from ambar.mesh.series import MeshSeries

        return MeshSeries(store)
    return Series(store) if kind == "series" and "of" not in attributes else store


def is_ramses(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a RAMSES output: its folder, or the info file in it."""
    place = Path(path)
    if place.is_file():
        return place.suffix == ".txt" and place.name.startswith("info_")
    folders = ("", "group_[0-9]*/")
    return any(any(place.glob(f"{folder}info_[0-9]*.txt")) for folder in folders)


def outputs(path: str | os.PathLike[str]) -> list[Path]:
    """Return `path` if it is a RAMSES output, else the outputs in it, by their numbers."""
    place = Path(path)
    if is_ramses(place):
        return [place]
    return sorted(folder for folder in place.glob("output_[0-9]*") if is_ramses(folder))

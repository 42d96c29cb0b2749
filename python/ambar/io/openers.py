"""Opening whatever is at a path or in memory: a store, or the output of a simulation code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ambar.kinds.registry import open_path
from ambar.store.locations import Place

if TYPE_CHECKING:
    from ambar.collection.collection import Collection
    from ambar.mesh.mesh import Mesh
    from ambar.mesh.series import MeshSeries
    from ambar.snapshot.series import Series
    from ambar.snapshot.snapshot import Snapshot
    from ambar.store.store import Store


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
        If the path or the URL does not exist.
    CorruptError
        If it is no store, or a damaged one.
    ValueError
        If it is a folder of RAMSES outputs; if there is no such storage option.
    UnsupportedError
        If the server does not serve parts of files.
    AmbarError
        If the server cannot be reached, or refuses.
    """
    found: Store | Snapshot | Series | Collection | Mesh | MeshSeries
    found = open_path(path, storage_options)
    return found

"""Opening a store at a path, a URL or in memory, or the output of a simulation code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from ambar import _core
from ambar._util.arguments import OpenMode, check_mode, explained_arguments
from ambar.kinds.registry import open_path
from ambar.store.commit import CommitName, refuse_commit
from ambar.store.group_description import kind_name
from ambar.store.locations import Place, normalize_location
from ambar.store.locations import open_store as _open_store
from ambar.store.store import Store as _Store

if TYPE_CHECKING:
    from ambar.collection.collection import Collection
    from ambar.mesh.mesh import Mesh
    from ambar.mesh.series import MeshSeries
    from ambar.snapshot.series import Series
    from ambar.snapshot.snapshot import Snapshot
    from ambar.store.error_bounds import ErrorBound
    from ambar.store.store import Store
    from ambar.store.writer import Profile


_NAMES = {
    "snapshot": "Snapshot",
    "series": "Series",
    "collection": "Collection",
    "mesh": "Mesh",
    "mesh series": "MeshSeries",
}
"""The types of what is returned, by kinds."""

Kind: TypeAlias = Literal["store", "snapshot", "series", "collection", "mesh", "mesh series"]


def open(  # noqa: A001
    path: Place,
    *,
    kind: Kind | None = None,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Store | Snapshot | Series | Collection | Mesh | MeshSeries:
    """Open a store, a RAMSES output folder, or a plotfile of AMReX; no data are read yet.

    Files of other programs are converted first (`ambar.convert`). docs/howto/sources.md has a table
    of the sources and what they become.

    Parameters
    ----------
    path : str, path-like, bytes, memoryview or binary file
        A store (a file, a folder, or a URL: ``s3://bucket/key``, ``gs://``, ``az://`` or
        ``https://``, of a folder with a ``/`` at the end), an ``output_NNNNN`` folder of RAMSES,
        or a plotfile of AMReX (a folder, or a file of HDF5). Or the bytes of a store's file; a
        binary file object is read into memory.
    kind : str, optional
        What the path must contain: "snapshot", "series", "collection", "mesh" or "mesh series". By
        default, any kind is accepted. "store" returns the `Store` of arrays and groups in any case.
    commit : int, str or datetime, optional
        An earlier commit of a store in a single file: its number or its tag (`ambar.tag`), or the
        last commit strictly before a time: a datetime, or text such as "before 2026-11-01".
        `ambar.log` lists the commits.
    storage_options : mapping, optional
        For URLs: ``endpoint``, ``region``, ``access_key_id``, ``secret_access_key``, ``profile``,
        ``anonymous``, ``timeout`` and others (docs/howto/object-stores.md). Options that are not
        given are taken from the environment, such as ``AWS_ACCESS_KEY_ID``, and from profiles.

    Returns
    -------
    Snapshot
        For a store of one output, for a RAMSES output, and for a plotfile.
    Series
        For a store of a run.
    MeshSeries
        For a store of the time steps of meshes.
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
    KeyError
        If the commit does not exist.
    CorruptError
        If it is not a store, or is damaged.
    ValueError
        If the path contains another kind, or is a folder of RAMSES outputs; if a storage option
        is unknown.
    UnsupportedError
        If the server does not serve parts of files.
    AmbarError
        If the server cannot be reached, or refuses.

    Examples
    --------
    >>> type(ambar.open("run.ambar")).__name__
    'Snapshot'
    >>> type(ambar.open("run.ambar", kind="store")).__name__
    'Store'
    >>> ambar.open("wing.ambar", kind="snapshot")
    Traceback (most recent call last):
    ...
    ambar.InvalidError: wing.ambar: expected a snapshot, found a Mesh; ...
    """
    if kind == "store":
        return _open_store(path, storage_options, commit)
    if kind is not None and kind not in _NAMES:
        raise _core.InvalidError(
            f"{kind!r} is not a kind; must be one of store, {', '.join(_NAMES)}"
        )
    found: Store | Snapshot | Series | Collection | Mesh | MeshSeries
    _, found = open_path(path, storage_options, commit)
    if kind is not None and (name := type(found).__name__) != _NAMES[kind]:
        opener = next((one for one, known in _NAMES.items() if known == name), "store")
        if isinstance(found, _Store):
            name = f"Store of the kind {kind_name(found._ambar_attributes())!r}"
        raise _core.InvalidError(
            f"{normalize_location(path)}: expected a {kind}, found a {name}; "
            f"use ambar.open_{opener.replace(' ', '_')}"
        )
    return found


def open_store(
    path: Place,
    *,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Store:
    """Open the arrays and groups of a store, whatever they represent.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        As for `ambar.open`.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Store
        A mapping of paths to arrays.

    Raises
    ------
    FileNotFoundError, CorruptError, AmbarError
        As for `ambar.open`.

    Examples
    --------
    >>> store = ambar.open_store("run.ambar")
    >>> store["amr/density"].shape
    (49680,)
    """
    return cast("Store", open(path, kind="store", commit=commit, storage_options=storage_options))


@explained_arguments({"output": "open_series(path).output(number) opens one output of a series"})
def open_snapshot(
    path: Place,
    *,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Snapshot:
    """Open one output: a store of it, a RAMSES output folder, or a plotfile of AMReX.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        As for `ambar.open`.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Snapshot
        The output; no values are read yet.

    Raises
    ------
    ValueError
        If `path` contains another kind.
    FileNotFoundError, CorruptError, AmbarError
        As for `ambar.open`.

    Examples
    --------
    >>> snapshot = ambar.open_snapshot("run.ambar")
    >>> snapshot.amr.fields[:3]
    ['density', 'velocity_x', 'velocity_y']
    """
    return cast(
        "Snapshot", open(path, kind="snapshot", commit=commit, storage_options=storage_options)
    )


def open_series(
    path: Place,
    *,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Series:
    """Open a store of a run: a sequence of snapshots.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        As for `ambar.open`.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Series
        The outputs, in the order of their numbers; no values are read yet.

    Raises
    ------
    ValueError
        If `path` contains another kind.
    FileNotFoundError, CorruptError, AmbarError
        As for `ambar.open`.

    Examples
    --------
    >>> conversion = ambar.convert("sedov", "sedov.ambar")
    >>> run = ambar.open_series("sedov.ambar")
    >>> len(run), run.outputs
    (2, [1, 2])
    """
    return cast("Series", open(path, kind="series", commit=commit, storage_options=storage_options))


def open_mesh(
    path: Place,
    *,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Mesh:
    """Open a store of a VTK object. `ambar.read_mesh` opens and reads it in one call.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        As for `ambar.open`.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    Mesh
        The mesh; no values are read yet.

    Raises
    ------
    ValueError
        If `path` contains another kind.
    FileNotFoundError, CorruptError, AmbarError
        As for `ambar.open`.

    Examples
    --------
    >>> mesh = ambar.open_mesh("wing.ambar")
    >>> mesh.arrays[0].name
    'pressure'
    """
    return cast("Mesh", open(path, kind="mesh", commit=commit, storage_options=storage_options))


def open_mesh_series(
    path: Place,
    mode: OpenMode = "r",
    *,
    profile: Profile = "balanced",
    error_bound: ErrorBound | None = None,
    reorder: bool = False,
    threads: int | None = None,
    fsync: bool = True,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> MeshSeries:
    """Open the time steps of meshes, to read them or to add steps.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        The store. A path or URL, if the mode is not "r"; a URL of an object appears at the end.
    mode : {"r", "w-", "w", "a"}, default "r"
        "r": read. "w-": create a series; FileExistsError if `path` exists. "w": create a series, or
        replace an existing file when the first step is added. "a": add steps to a series, or create
        it.
    profile : {"balanced", "fast", "small", "raw"}, default "balanced"
        As for `ambar.write_mesh`, like the following arguments; ignored in mode "r".
    error_bound : float, str or mapping, optional
        How far values may differ. In mode "a" give the same bounds as before: otherwise arrays that
        did not change are stored again.
    reorder : bool, default False
        Whether to sort the cells; in mode "a" as before.
    threads : int, optional
        The number of threads that encode; all cores by default.
    fsync : bool, default True
        Whether commits survive a power failure. False is faster, for temporary files.
    commit : int, str or datetime, optional
        An earlier commit, as for `ambar.open`; with mode "r".
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    MeshSeries
        A sequence of meshes. In other modes than "r" use it in a ``with`` block.

    Raises
    ------
    FileNotFoundError
        If `path` does not exist, in mode "r".
    KeyError
        If the commit does not exist.
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the store open.
    ValueError
        If an argument is invalid, or `path` is of another kind.
    CorruptError
        If `path` is not a store, or is damaged.

    Examples
    --------
    >>> import pyvista
    >>> with ambar.open_mesh_series("motion.ambar", "w-") as series:
    ...     series.add(pyvista.Sphere(), 0.0)
    >>> with ambar.open_mesh_series("motion.ambar", "a") as series:
    ...     series.add(pyvista.Sphere(radius=2), 0.5)
    >>> series = ambar.open_mesh_series("motion.ambar")
    >>> len(series), series.times
    (2, [0.0, 0.5])
    """
    check_mode(mode, OpenMode)
    refuse_commit(mode, commit)
    if mode == "r":
        found = open(path, kind="mesh series", commit=commit, storage_options=storage_options)
        return cast("MeshSeries", found)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected a path for mode {mode!r}, found a {type(path).__name__}")
    from ambar.mesh.series import open_series_for_writing

    return open_series_for_writing(
        path,
        mode,
        profile=profile,
        error_bound=error_bound,
        reorder=reorder,
        threads=threads,
        fsync=fsync,
        storage_options=storage_options,
    )

"""Writing VTK's objects, PyVista's among them, as stores of the kind `mesh`."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal

import numpy as np

from ambar import _core
from ambar._util.modes import check_mode
from ambar.mesh.storage.deduplication import Shared
from ambar.mesh.storage.packs import joined
from ambar.mesh.storage.references import references_in
from ambar.store.error_bounds import ErrorBound, as_text
from ambar.store.writer import Profile, Writer, create

_LONG = 4096
"""Characters of a description from which it is stored compressed."""
_INLINE = 3072
"""Bytes of a compressed description up to which it is an attribute, a quarter longer there: an
array takes 0.8 KB more."""
LEVELS = range(-22, 23)
"""What `level` may be, as zstd has it."""


def write_mesh(
    mesh: Any,
    path: str | os.PathLike[str] | BinaryIO,
    mode: Literal["w-", "w"] = "w-",
    *,
    profile: Profile = "balanced",
    level: int | None = None,
    error_bound: ErrorBound | None = None,
    reorder: bool = False,
    user_dict: Mapping[str, Any] | None = None,
    threads: int | None = None,
    fsync: bool = True,
) -> None:
    """Write a VTK object to a new store.

    `ambar.read_mesh`, `ambar.open_mesh` and ``pyvista.read`` read it.

    Parameters
    ----------
    mesh : vtkDataObject
        An object of VTK or PyVista: a data set, a table, a hyper-tree grid, or multi-block,
        partitioned or AMR data.
    path : str, path-like or binary file
        The path of the store. The bytes of the store are written to a file object, such as
        `io.BytesIO`; a temporary file holds them first.
    mode : {"w-", "w"}, default "w-"
        "w-": raise FileExistsError if `path` exists. "w": replace an existing file.
        `ambar.open_mesh_series` adds time steps.
    profile : {"balanced", "fast", "small"}, default "balanced"
        How codecs are chosen. "fast" is for fast reading.
    level : int, optional
        The profile as a compression level of zstd, from -22 to 22: below 1 is "fast", 1 to 9 is
        "balanced", 10 and above is "small".
    error_bound : float, str or mapping, optional
        How far values of float32 or float64 may differ, in arrays on points, cells and rows and in
        field data: a number, or a string such as ``"1e-3 of range"``; or a mapping of names of
        arrays to bounds. The range of a vector is that of each component. Lossless by default.
        Coordinates and arrays of less than 8 KiB are always lossless.
    reorder : bool, default False
        Whether to sort the cells of surfaces and unstructured grids along a Morton curve, and
        points by first use. Readers with ``region=`` then read only chunks near the region. The
        mesh is read in the new order; ``original_ids=True`` returns the old numbers.
    user_dict : mapping, optional
        Other data to store with the mesh; JSON must be able to represent it.
    threads : int, optional
        The number of threads that encode; all cores by default.
    fsync : bool, default True
        Whether the store survives a power failure. False is faster, for temporary files.

    Raises
    ------
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the store open.
    ValueError
        If an argument is invalid or arguments contradict each other. If the mesh is inconsistent: a
        cell refers to a point that does not exist, or the length of an array is not the number of
        points or cells.
    UnsupportedError
        If the type of the object, or values of an array, cannot be stored.
    OSError
        If the file system reports an error.

    Examples
    --------
    >>> import pyvista
    >>> sphere = pyvista.Sphere()
    >>> sphere["height"] = sphere.points[:, 2]
    >>> ambar.write_mesh(sphere, "sphere.ambar", error_bound={"height": 1e-3})
    >>> ambar.open_mesh("sphere.ambar").n_points
    842
    """
    check_mode(mode, Literal["w-", "w"])
    if level is not None:
        profile = _profile_of(level, profile)
    if not isinstance(path, (str, os.PathLike)):
        with TemporaryDirectory(prefix="ambar.") as folder:
            file = Path(folder) / "mesh.ambar"
            write_mesh(
                mesh,
                file,
                profile=profile,
                error_bound=error_bound,
                reorder=reorder,
                user_dict=user_dict,
                threads=threads,
                fsync=False,
            )
            with file.open("rb") as written:
                shutil.copyfileobj(written, path, 1 << 20)
        return
    with create(path, mode, profile=profile, threads=threads, fsync=fsync) as writer:
        put_mesh(writer, "", mesh, error_bound=error_bound, user_dict=user_dict, reorder=reorder)


def put_mesh(
    writer: Writer,
    path: str,
    mesh: Any,
    *,
    error_bound: ErrorBound | None = None,
    user_dict: Mapping[str, Any] | None = None,
    shared: Shared | None = None,
    reorder: bool = False,
) -> None:
    """Write a VTK object into the group `path` of a store; arguments are as for `write_mesh`.

    With `shared`, arrays that the store has already are not written again.
    """
    from ambar.mesh.storage.extents import bounds_of
    from ambar.mesh.storage.sink import Sink
    from ambar.mesh.vtk.type_dispatch import describe

    sink = Sink(writer, path, _bounds(error_bound), shared, reorder=reorder)
    described = describe(mesh, sink)
    if described is None:
        raise _core.InvalidError("a mesh is a VTK object, not None")
    described["packed"], streams = sink.finish()
    about = _without_empty(described)
    like = _like(about, path, shared) if shared is not None and not streams else None
    bounds = bounds_of(mesh)
    known = None
    if like is not None and shared is not None:
        known = shared.bounds.get(like["like"])
        about = {"type": about["type"], **like}
    if shared is not None:
        shared.bounds[path] = bounds
    if bounds != known:
        about["bounds"] = bounds
    if user_dict is not None:
        about["user_dict"] = _of_user(user_dict)
    text = _as_json(about)
    if streams or len(text) > _LONG:
        data = joined(text, streams)
        about = {"type": about["type"], **_kept(writer, path, data)}
    if shared is not None and (digests := shared.new()):
        about["digests"] = digests
    writer.create_group(path, {"ambar": {"kind": "mesh", "version": 1, **about}})


def _of_user(user_dict: Any) -> dict[str, Any]:
    """Return a user's dict; raises ValueError if it is not a dict, or if JSON changes its keys."""
    if not isinstance(user_dict, Mapping):
        raise _core.InvalidError(f"user_dict is a mapping, not a {type(user_dict).__name__}")
    _as_json(dict(user_dict))  # nothing in it holds itself then
    left: list[Any] = [dict(user_dict)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            wrong = [key for key in value if not isinstance(key, str)]
            if wrong:
                raise _core.InvalidError(
                    f"user_dict must be what JSON can hold: a key is {wrong[0]!r:.80}, and no text"
                )
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value
    return dict(user_dict)


def _like(about: dict[str, Any], path: str, shared: Shared) -> dict[str, Any] | None:
    """Return how a description differs from an earlier step's, None if by more than rows."""
    references = [each for each in references_in(about) if "row" in each]
    rows = [each["row"] for each in references]
    for each in references:
        each["row"] = None
    template = _as_json(about)
    for each, row in zip(references, rows, strict=True):
        each["row"] = row
    known = shared.alike(template, path) if rows else None
    return None if known is None else {"like": known, "rows": rows}


def _kept(writer: Writer, path: str, data: bytes) -> dict[str, str]:
    """Keep a description's bytes, and return the key that says where they are."""
    if len(data) <= _INLINE:
        return {"data": base64.b85encode(data).decode()}
    writer.create_array(f"{path}/description", np.frombuffer(data, np.uint8), profile="fast")
    return {"description": "description"}


def _as_json(about: dict[str, Any]) -> str:
    try:
        return json.dumps(about, separators=(",", ":"), allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise _core.InvalidError(f"user_dict must be what JSON can hold: {error}") from error


def _bounds(error_bound: ErrorBound | None) -> dict[str, float | str]:
    if error_bound is None:
        return {}
    if isinstance(error_bound, Mapping):
        return {str(name): _checked(bound) for name, bound in error_bound.items()}
    return {"*": _checked(error_bound)}


def _checked(bound: float | str) -> float | str:
    as_text(bound)
    return bound


def _profile_of(level: int, profile: Profile) -> Profile:
    if profile != "balanced":
        raise _core.InvalidError("give either profile or level")
    if isinstance(level, bool) or level not in LEVELS:
        raise _core.InvalidError(f"level is a whole number from -22 to 22, not {level!r}")
    return "fast" if level < 1 else "balanced" if level < 10 else "small"


def _without_empty(described: Any) -> Any:
    """Leave out lists of arrays, and packs, where there are none."""
    if isinstance(described, dict):
        return {
            key: _without_empty(value) if key in ("block", "blocks", "levels") else value
            for key, value in described.items()
            if not (value == [] and (key.endswith("_data") or key == "packed"))
        }
    if isinstance(described, list):
        return [_without_empty(value) for value in described]
    return described

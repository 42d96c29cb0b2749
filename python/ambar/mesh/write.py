"""Writing VTK and PyVista objects as stores of the kind `mesh`."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Literal

import numpy as np

from ambar import _core
from ambar._util.arguments import check_mode
from ambar._util.optional import require
from ambar._util.output_files import name_target_on_full_disk
from ambar.mesh.storage.packs import join_streams
from ambar.mesh.storage.references import references_in
from ambar.mesh.storage.temporal_deltas import Deduplicator
from ambar.store.error_bounds import ErrorBound, as_text
from ambar.store.writer import Profile, Writer, create

_COMPRESSED_ABOVE = 4096
"""Characters of the longest description that is stored as JSON text."""
_ATTRIBUTE_UP_TO = 3072
"""Bytes of the largest compressed description that is an attribute. An attribute is a quarter
longer, but an array takes 0.8 KB more."""


def write_mesh(
    mesh: Any,
    path: str | os.PathLike[str] | BinaryIO,
    mode: Literal["w-", "w"] = "w-",
    *,
    profile: Profile = "balanced",
    error_bound: ErrorBound | None = None,
    reorder: bool = False,
    user_dict: Mapping[str, Any] | None = None,
    threads: int | None = None,
    fsync: bool = True,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Write a VTK object to a new store.

    `ambar.read_mesh`, `ambar.open_mesh` and ``pyvista.read`` read it.

    Parameters
    ----------
    mesh : vtkDataObject or meshio.Mesh
        An object of VTK or PyVista: a data set, a table, multi-block or partitioned data. A
        `meshio.Mesh` becomes an unstructured grid; its sets of points and cells become arrays of 0
        and 1. It needs PyVista.
    path : str, path-like or binary file
        The path or URL of the store. The bytes of the store are written to a file object, such as
        `io.BytesIO`; a temporary file holds them first.
    mode : {"w-", "w"}, default "w-"
        "w-": raise FileExistsError if `path` exists. "w": replace an existing file.
        `ambar.open_mesh_series` adds time steps.
    profile : {"balanced", "fast", "small", "raw"}, default "balanced"
        How codecs are chosen. "fast" is for fast reading; "raw" does not compress.
    error_bound : float, str or mapping, optional
        How far values of float32 or float64 may differ, in arrays on points, cells and rows and in
        field data: a number, or a string such as ``"1e-3 of range"``; or a mapping of names of
        arrays, or patterns such as ``"velocity_*"``, to bounds. The range of a vector is that of
        each component. Lossless by default. Coordinates and arrays of less than 8 KiB are always
        lossless.
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
    storage_options : mapping, optional
        Options of the URL, as for `ambar.open`.

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
    KeyError
        If the mesh has no array with the name of an error bound.
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
    _bounds_by_name(error_bound)  # invalid bounds are refused before a file is created
    fsync = fsync and isinstance(path, (str, os.PathLike))  # not for a temporary file
    with (
        name_target_on_full_disk(path),
        _path_of(path) as file,
        create(
            file,
            mode,
            profile=profile,
            threads=threads,
            fsync=fsync,
            storage_options=storage_options,
        ) as writer,
    ):
        write_group(writer, "", mesh, error_bound=error_bound, user_dict=user_dict, reorder=reorder)


@contextmanager
def _path_of(target: str | os.PathLike[str] | BinaryIO) -> Iterator[str | os.PathLike[str]]:
    """Yield a path; of a file object the path of a temporary file, which is copied to it."""
    if isinstance(target, (str, os.PathLike)):
        yield target
        return
    with TemporaryDirectory(prefix="ambar.") as folder:
        file = Path(folder) / "mesh.ambar"
        yield file
        with file.open("rb") as written:
            shutil.copyfileobj(written, target, 1 << 20)


def write_group(
    writer: Writer,
    path: str,
    mesh: Any,
    *,
    error_bound: ErrorBound | None = None,
    user_dict: Mapping[str, Any] | None = None,
    deduplicator: Deduplicator | None = None,
    reorder: bool = False,
) -> None:
    """Write a VTK object into the group `path` of a store.

    Arguments are those of `write_mesh`. With a `deduplicator`, arrays that the store has already
    are not written again.
    """
    require("vtkmodules", purpose="writing meshes", install="ambar[mesh]")
    from ambar.mesh.storage.array_writer import ArrayWriter
    from ambar.mesh.storage.extents import bounds_of
    from ambar.mesh.vtk.meshio_objects import to_vtk
    from ambar.mesh.vtk.objects import describe

    mesh = to_vtk(mesh)
    arrays = ArrayWriter(writer, path, _bounds_by_name(error_bound), deduplicator, reorder=reorder)
    described = describe(mesh, arrays)
    if described is None:
        raise _core.InvalidError("expected a VTK object, found None")
    packs, streams = arrays.finish()
    about = described | ({"packed": packs} if packs else {})
    bounds, known_bounds = bounds_of(mesh), None
    if deduplicator is not None:
        like = None if streams else _same_except_rows(about, path, deduplicator)
        if like is not None:
            known_bounds = deduplicator.bounds.get(like["like"])
            about = {"type": about["type"], **like}
        deduplicator.bounds[path] = bounds
    if bounds != known_bounds:
        about["bounds"] = bounds
    if user_dict is not None:
        about["user_dict"] = _checked_user_dict(user_dict)
    text = to_json(about)
    if streams or len(text) > _COMPRESSED_ABOVE:
        data = join_streams(text, streams)
        about = {"type": about["type"], **store_description(writer, path, data)}
    if deduplicator is not None and (digests := deduplicator.new_digests):
        about["digests"] = digests
    writer._create_group(path, {"ambar": {"kind": "mesh", "version": 1, **about}})


def _checked_user_dict(user_dict: Any) -> dict[str, Any]:
    """Return a dict; raises ValueError if it is not a mapping, or JSON changes its keys."""
    if not isinstance(user_dict, Mapping):
        raise _core.InvalidError(f"user_dict is a mapping, not a {type(user_dict).__name__}")
    to_json(dict(user_dict))  # refuses a dict that contains itself
    for key in _keys_in(dict(user_dict)):
        if not isinstance(key, str):
            raise _core.InvalidError(
                f"user_dict must be representable in JSON: key {key!r:.80} is not a string"
            )
    return dict(user_dict)


def _keys_in(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for item in value if isinstance(value, (list, tuple)) else ():
        yield from _keys_in(item)


def _same_except_rows(
    about: dict[str, Any], path: str, deduplicator: Deduplicator
) -> dict[str, Any] | None:
    """Return an earlier step with the same description, and the rows of this one; None if new."""
    references = [each for each in references_in(about) if "row" in each]
    rows = [each["row"] for each in references]
    for each in references:
        each["row"] = None
    template = to_json(about)
    for each, row in zip(references, rows, strict=True):
        each["row"] = row
    known = deduplicator.find_step(template, path) if rows else None
    return None if known is None else {"like": known, "rows": rows}


def store_description(writer: Writer, path: str, data: bytes) -> dict[str, str]:
    """Store a compressed description, and return the key that refers to it."""
    if len(data) <= _ATTRIBUTE_UP_TO:
        return {"data": base64.b85encode(data).decode()}
    writer.create_array(f"{path}/description", np.frombuffer(data, np.uint8), profile="fast")
    return {"description": "description"}


def to_json(about: dict[str, Any]) -> str:
    """Return the JSON of a description; raises ValueError if JSON cannot represent it."""
    try:
        return json.dumps(about, separators=(",", ":"), allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise _core.InvalidError(f"user_dict must be representable in JSON: {error}") from error


def _bounds_by_name(error_bound: ErrorBound | None) -> dict[str, float | str]:
    """Return error bounds by the name of an array, "*" for all; raises ValueError."""
    if error_bound is None:
        return {}
    bounds = error_bound if isinstance(error_bound, Mapping) else {"*": error_bound}
    for bound in bounds.values():
        _core.bound_parts(as_text(bound))
    return {str(name): bound for name, bound in bounds.items()}

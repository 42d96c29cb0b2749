"""Writing VTK's objects, PyVista's among them, as stores of the kind `mesh`."""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np

from ambar import _core
from ambar.mesh.storage.deduplication import Shared
from ambar.mesh.storage.packs import joined
from ambar.mesh.storage.references import references_in
from ambar.store.error_bounds import ErrorBound, as_text
from ambar.store.writer import Durability, Profile, Writer, create

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
    *,
    profile: Profile = "balanced",
    level: int | None = None,
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    durability: Durability = "full",
    overwrite: bool = False,
    user_dict: Mapping[str, Any] | None = None,
    reorder: bool = False,
) -> None:
    """Write a VTK object to a new store; `ambar.read_mesh` and `pyvista.read` give it back.

    Parameters
    ----------
    mesh
        A data set, table, hyper-tree grid, or multi-block, partitioned or AMR data, of VTK or
        PyVista.
    path
        Where to write it; or a binary file object, such as `io.BytesIO`, that the bytes of the
        file are written to, by way of a temporary file.
    profile
        How to choose codecs: "fast" to read, "balanced", or "small".
    level
        The same as a number from -22 to 22, as zstd has it: below 1 "fast", to 9 "balanced", else
        "small".
    error_bound
        How far values of float32 or float64 on points, cells or rows, or in field data, may be off:
        a number, or a part of the value range such as ``"1e-3 of range"``, of vectors of each
        component's range; or these by the arrays' names. Coordinates are kept to the bit, and so
        are arrays of less than 8 KiB.
    threads
        Threads to encode with; all cores by default.
    durability
        "full": the store survives a power cut. "none" leaves out the fsyncs, for scratch files.
    overwrite
        Replace what is there; by default that is an error.
    user_dict
        What else to keep with it: anything JSON can hold.
    reorder
        Whether to sort the cells of surfaces and unstructured grids along a Morton curve, and their
        points by first use, so that ``region=`` reads little. The mesh that is read then is in that
        order; ``original_ids=True`` tells the one before.

    Raises
    ------
    FileExistsError
        If there is something at `path`, without `overwrite`.
    BusyError
        If another writer has it open.
    ValueError
        If arguments do not fit together, or the mesh is inconsistent: cells refer to points that
        there are not, or an array has not one tuple for each point or cell.
    UnsupportedError
        If the object is of a type, or has values, that cannot be stored.
    OSError
        If the file system refuses.
    """
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
                threads=threads,
                durability="none",
                user_dict=user_dict,
                reorder=reorder,
            )
            with file.open("rb") as written:
                shutil.copyfileobj(written, path, 1 << 20)
        return
    check_target(path, overwrite=overwrite)
    with create(
        path, overwrite=overwrite, durability=durability, profile=profile, threads=threads
    ) as writer:
        put_mesh(writer, "", mesh, error_bound=error_bound, user_dict=user_dict, reorder=reorder)


def check_target(path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise FileExistsError if there is something at `path` that must not be replaced."""
    if not overwrite and Path(path).exists():
        what = "there is something of that name; remove it, choose another, or give overwrite=True"
        raise FileExistsError(errno.EEXIST, what, os.fspath(path))


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
    writer.group(path, {"ambar": {"kind": "mesh", "version": 1, **about}})


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
    writer.array(f"{path}/description", np.frombuffer(data, np.uint8), profile="fast")
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

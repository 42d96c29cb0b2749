"""What a store or output holds, told from metadata alone: kinds, sizes, codecs, levels, units."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ambar import _core
from ambar.formats.amrex.source import AmrexSource, is_amrex
from ambar.io.openers import is_ramses
from ambar.mesh.series import MeshSeries, is_mesh_series
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.run_info import Info, RunInfo
from ambar.snapshot.snapshot import RamsesSource, Snapshot
from ambar.store.group_description import Description
from ambar.store.store import Store
from ambar.store.urls import is_url

_RAMSES_FILE = re.compile(r"([a-z]+)_\d+\.(?:out|txt)\d+|(sink)_\d+\.(?:csv|out)")


def overview(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what is at `path`, as JSON can hold it; no array is read.

    Keys are `path`, `kind`, `bytes`; for RAMSES outputs and plotfiles of AMReX `info`,
    `components`, `missing` and `files` (bytes and number by kind); for stores `usage`,
    `attributes`, `groups` (path, kind and what ambar says of them), `arrays` (path, shape, dtype,
    chunks, codecs, raw and stored bytes, unwritten values); for collections those of
    `ambar.collection.summary.overview_of`, for meshes and series of them those of
    `ambar.mesh.summary`.
    """
    if not is_url(path):
        if is_ramses(path):
            return _of_ramses(Path(path))
        if is_amrex(path):
            return _of_amrex(Path(path))
    store = Store(_core.Store(os.fspath(path)))
    if store.ambar_attributes().get("kind") == "collection":
        from ambar.collection.collection import Collection
        from ambar.collection.openers import settings_of
        from ambar.collection.summary import overview_of

        return overview_of(Collection(store.location, store, None, settings_of(store)))
    if store.ambar_attributes().get("kind") == "mesh":
        from ambar.mesh.mesh import Mesh
        from ambar.mesh.summary import overview_of as overview_of_mesh

        return overview_of_mesh(Mesh(store))
    if is_mesh_series(store):
        from ambar.mesh.summary import overview_of_series

        return overview_of_series(MeshSeries(store))
    return _of_store(store)


def _of_ramses(path: Path) -> dict[str, Any]:
    snapshot = Snapshot(RamsesSource(_core.Ramses(str(path)), str(path)))
    files = ramses_files(path if path.is_dir() else path.parent)
    return {
        "path": str(path),
        "kind": "ramses",
        "bytes": sum(entry["bytes"] for entry in files.values()),
        "info": _info(snapshot.info),
        "components": snapshot.components,
        "missing": snapshot.missing,
        "files": files,
    }


def _of_amrex(path: Path) -> dict[str, Any]:
    source = AmrexSource(path)
    files = amrex_files(path)
    return {
        "path": str(path),
        "kind": "amrex",
        "bytes": sum(entry["bytes"] for entry in files.values()),
        "info": _info(source.info),
        "components": dict(source.components),
        "missing": dict(source.missing),
        "files": files,
    }


def amrex_files(path: Path) -> dict[str, dict[str, int]]:
    """Return number and bytes of a plotfile's files by folder; those beside them are texts."""
    found: dict[str, dict[str, int]] = {}
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file():
            inside = file.relative_to(path).parts if path.is_dir() else ()
            kind = "HDF5" if path.is_file() else inside[0] if len(inside) > 1 else "texts"
            entry = found.setdefault(kind, {"files": 0, "bytes": 0})
            entry["files"] += 1
            entry["bytes"] += file.stat().st_size
    return found


def ramses_files(folder: Path) -> dict[str, dict[str, int]]:
    """Return number and bytes of an output's files by kind (amr, hydro, ..., other)."""
    found: dict[str, dict[str, int]] = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            match = _RAMSES_FILE.fullmatch(file.name)
            kind = (match[1] or match[2]) if match else "other"
            entry = found.setdefault(kind, {"files": 0, "bytes": 0})
            entry["files"] += 1
            entry["bytes"] += file.stat().st_size
    return found


def _of_store(store: Store) -> dict[str, Any]:
    attributes = store.attributes()
    usage = store.usage()
    own = store.ambar_attributes()
    return {
        "path": store.location,
        "kind": Description(own, store.location).optional_text("kind") or "arrays",
        "bytes": usage["total"],
        "usage": usage,
        "attributes": attributes,
        "groups": list(_groups(store)),
        "arrays": [_array(store, path) for path in store],
    }


def _groups(store: Store) -> Iterator[dict[str, Any]]:
    for path in store.groups:
        own = store.ambar_attributes(path)
        if "kind" in own:
            yield {"path": path, **own}


def _array(store: Store, path: str) -> dict[str, Any]:
    array = store[path]
    return {
        "path": path,
        "shape": list(array.shape),
        "dtype": array.type_name,
        "chunks": list(array.chunks),
        "codecs": array.codecs,
        "raw_bytes": array.nbytes,
        "stored_bytes": array.stored_bytes,
        "unwritten_values": array.unwritten_values,
    }


def _info(info: RunInfo) -> dict[str, Any]:
    if not isinstance(info, (Info, AmrexInfo)):
        raise TypeError(f"run information of no code: {info!r}")
    values = dataclasses.asdict(info)
    values.pop("namelist", None)
    return values

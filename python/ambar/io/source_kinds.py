"""The kinds of sources that `ambar.convert` takes: how each is known, and how it is converted."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core
from ambar.collection.files.sources import SUFFIXES, is_source
from ambar.formats.amrex.source import is_amrex, source_of
from ambar.io.openers import outputs
from ambar.kinds import request as converted
from ambar.kinds.request import Conversion, Request, listed, refuse, shown
from ambar.mesh.files.pyvista_readers import is_mesh_file
from ambar.mesh.files.time_steps import is_timed
from ambar.snapshot.field_names import resolve, resolve_all
from ambar.store.error_bounds import listed_bounds
from ambar.store.locations import refuse_store
from ambar.store.urls import is_url

Paths = Sequence[converted.Path]


@dataclass(frozen=True)
class SourceKind:
    """A kind of sources."""

    name: str
    """What it is called."""
    recognises: Callable[[Paths], bool]
    """Whether paths lead to such a source."""
    convert: Callable[[Request], Conversion]
    """What makes a store of it."""
    refused: Mapping[str, str]
    """The options that mean nothing for it, and what is said of them; it takes all others."""

    def check(self, request: Request) -> None:
        """Raise InvalidError if an option was given that means nothing for this kind."""
        refuse(request, self.refused, request.name)


def kind_of(paths: Paths) -> SourceKind:
    """Return the kind of the source at `paths`, the first of `KINDS` that recognises it.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    NotFoundError
        If it is no source of any kind.
    InvalidError
        If a path is a store already, or a URL; if several paths were given that are no one source.
    """
    for path in paths:
        refuse_store(path)
        if is_url(path):
            raise _core.InvalidError(f"{path}: only local files are converted; download it first")
    for kind in KINDS:
        if kind.recognises(paths):
            return kind
    if len(paths) != 1:
        raise _core.InvalidError("outputs, plotfiles and meshes are converted one by one")
    raise _nothing(paths[0])


def _nothing(path: converted.Path) -> OSError | _core.NotFoundError:
    """Return the error for a path that holds no output."""
    if not Path(path).exists():
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    return _core.NotFoundError(
        f"{path}: no RAMSES output (info_NNNNN.txt), no folder of them (output_NNNNN), no "
        "plotfile of AMReX (Header), no NetCDF files or Zarr stores, and no mesh: give the folder "
        "of an output, or a file"
    )


def check_recognised(paths: Paths) -> None:
    """Raise UnsupportedError, which names the formats, if nothing reads the only file of `paths`.

    Files of NetCDF may have any name; xarray's engines recognise them by what they begin with.
    """
    from ambar.mesh.files.pyvista_readers import readable_suffixes

    place = Path(paths[0])
    if len(paths) != 1 or not place.is_file() or place.suffix.lower() in SUFFIXES:
        return
    if find_spec("xarray") is None:
        return  # the error then says how to install it
    from xarray.backends.plugins import guess_engine

    try:
        guess_engine(place)
    except ValueError:
        with place.open("rb") as file:
            start = file.read(8)
        raise _core.UnsupportedError(
            f"{place}: no reader for the suffix {place.suffix!r} and a file that begins with "
            f"{start!r}; ambar converts outputs of RAMSES, plotfiles of AMReX, NetCDF and HDF5 "
            "files, Zarr stores, and what PyVista and meshio read: "
            f"{' '.join(sorted(readable_suffixes()))}"
        ) from None


def _one(recognises: Callable[[converted.Path], object]) -> Callable[[Paths], bool]:
    """Return what recognises a source of a single path."""
    return lambda paths: len(paths) == 1 and bool(recognises(paths[0]))


def _mesh(request: Request) -> Conversion:
    from ambar.mesh.files.convert import convert_mesh

    return convert_mesh(request)


def _mesh_steps(request: Request) -> Conversion:
    from ambar.mesh.files.convert import convert_steps

    return convert_steps(request)


def _plotfile(request: Request) -> Conversion:
    bounds = listed_bounds(request.error_bound)
    (path,) = request.paths
    with shown(request.progress, f"converting {Path(path).name}") as report:
        text = _core.convert_amrex(
            source_of(path),
            os.fspath(request.target),
            listed(request.components),
            listed(request.fields),
            request.covered,
            (request.profile, bounds),
            request.durability,
            request.overwrite,
            request.threads,
            report,
        )
    return _conversion(request, json.loads(text))


def _output(request: Request) -> Conversion:
    bounds = listed_bounds(request.error_bound)
    (path,) = request.paths
    names, known = listed(request.fields), _known(path)
    compression = (request.profile, [(resolve(name, known), bound) for name, bound in bounds])
    with shown(request.progress, f"converting {Path(path).name}") as report:
        text = _core.convert_ramses(
            os.fspath(path),
            os.fspath(request.target),
            listed(request.components),
            None if names is None else resolve_all(names, known),
            request.levels,
            request.max_level,
            compression,
            request.durability,
            request.overwrite,
            request.on_error,
            request.threads,
            report,
        )
    return _conversion(request, json.loads(text))


def _known(path: converted.Path) -> list[str]:
    """Return the names of the fields of a RAMSES output, or of a run's first one that opens."""
    for output in outputs(path):
        try:
            found = json.loads(_core.Ramses(str(output)).components)
        except (_core.AmbarError, OSError):
            continue  # the conversion reports it
        if names := [name for component in found for name in component["fields"]]:
            return names
    return []


def _conversion(request: Request, report: dict[str, Any]) -> Conversion:
    return Conversion(target=os.fspath(request.target), **report)


def _files(request: Request) -> Conversion:
    from ambar.collection.files.ingest import ingest

    check_recognised(request.paths)
    return ingest(
        request.paths,
        request.target,
        variables=listed(request.fields),
        progress=request.progress,
        overwrite=request.overwrite,
        resume=request.resume,
        on_error=request.on_error,
        **request.writing,
    )


def _no_cells(what: str) -> dict[str, str]:
    """Return what is said of the options that are for cells."""
    why = f"{{path}}: {what} no components, levels or covered cells"
    return dict.fromkeys(("components", "levels", "max_level", "covered"), why)


_NO_MESH = {"reorder": "{path}: reorder is for files of meshes"}
_ONE_SOURCE = {"on_error": "{path}: on_error is for several outputs, or files of NetCDF"}


_NO_PARTS = (
    _no_cells("a mesh has") | {"fields": "{path}: a mesh is converted as a whole"} | _ONE_SOURCE
)
MESH_STEPS = SourceKind("time steps of meshes", is_timed, _mesh_steps, _NO_PARTS)
MESH = SourceKind("mesh", _one(is_mesh_file), _mesh, _NO_PARTS)
PLOTFILE = SourceKind(
    "plotfile of AMReX",
    _one(is_amrex),
    _plotfile,
    {
        "levels": "a plotfile is converted with all its levels",
        "max_level": "a plotfile is converted with all its levels",
        "resume": "resume is for collections; a plotfile is converted at once",
    }
    | _ONE_SOURCE
    | _NO_MESH,
)
OUTPUT = SourceKind(
    "RAMSES outputs",
    _one(outputs),
    _output,
    {
        "resume": "resume is for collections; a series is gone on with anyway",
        "covered": "cells of RAMSES are leaves: none of them covers another",
    }
    | _NO_MESH,
)
COLLECTION = SourceKind(
    "files of NetCDF",
    lambda paths: any(is_source(path) for path in paths),
    _files,
    _no_cells("NetCDF files have") | _NO_MESH,
)
# Nearly any file may be one of NetCDF: those come last.
KINDS = (MESH_STEPS, MESH, PLOTFILE, OUTPUT, COLLECTION)
"""All kinds, in the order in which they are asked."""

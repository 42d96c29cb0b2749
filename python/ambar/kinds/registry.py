"""The registry of kinds: formats and layouts that ambar opens, converts, exports and compares.

A kind is a format of files, a layout of a store, or both. `ambar.open`, `ambar.convert`,
`ambar.export`, `ambar.compare` and `ambar info` look up the kind of a path here and call its
functions. The built-in kinds are listed below and imported when they are needed. Other packages
register kinds through the entry point group ``ambar.kinds`` (docs/howto/add-a-kind.md).
"""

from __future__ import annotations

import functools
import os
import pathlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, cast

from ambar import _core
from ambar._util.foreign_files import EMPTY, is_empty_file, refuse_special
from ambar._util.optional import load_object
from ambar._util.user_warnings import warn
from ambar.kinds.request import (
    Conversion,
    ConvertRequest,
    CopyRequest,
    Export,
    ExportRequest,
    MergeRequest,
    Path,
    PlotRequest,
    ViewRequest,
)
from ambar.store.commit import CommitName
from ambar.store.group_description import kind_name
from ambar.store.locations import (
    InMemoryStore,
    Place,
    is_store_or_damaged,
    normalize_location,
    open_store,
)
from ambar.store.store import Store
from ambar.store.urls import is_url

GROUP = "ambar.kinds"
"""The entry point group of kinds of other packages."""

_STORED = {
    "snapshot": "ambar.snapshot.kind:SNAPSHOT",
    "series": "ambar.snapshot.kind:SERIES",
    "mesh": "ambar.mesh.kind:MESH",
    "mesh series": "ambar.mesh.kind:MESH_SERIES",
    "collection": "ambar.collection.kind:COLLECTION",
    "checkpoint": "ambar.formats.amrex.checkpoint:CHECKPOINT",
}
"""Kinds of stores, by the name of the kind in the root's attribute ``ambar``."""
_ARRAYS = "ambar.store.kind:ARRAYS"
_OPENED = ("ambar.formats.ramses.kind:RAMSES", "ambar.formats.amrex.kind:AMREX")
"""Kinds of files that are opened without a conversion."""
_VIEWER = "ambar.viewer.viewer:Viewer"
_MESHES = (_STORED["mesh series"], _STORED["mesh"])
_OPENPMD = "ambar.formats.openpmd.kind:OPENPMD"
_GADGET = "ambar.formats.gadget.kind:GADGET"
_YT = "ambar.formats.yt.kind:YT"
_SUMMARIZED = (_OPENPMD, _GADGET, _YT)
"""Kinds of files that are summarized without a conversion, but not opened."""
_CONVERTED = (
    _OPENPMD,
    *_MESHES,
    _STORED["checkpoint"],
    *reversed(_OPENED),
    _GADGET,
)
_CONVERTED_LAST = (_YT, _STORED["collection"])
"""The last candidates: files of these kinds may have any name."""


@dataclass(frozen=True)
class Resource:
    """An open store, or files of another program."""

    path: str | os.PathLike[str] | InMemoryStore
    """The path, the URL, or the bytes of a store's file."""
    opened: Store | None = None
    """The store; None for files of another program."""
    storage_options: Mapping[str, object] | None = None
    """The options of the service of a URL."""

    @property
    def location(self) -> str:
        """The path, for messages."""
        return str(self.path) if isinstance(self.path, InMemoryStore) else os.fspath(self.path)

    @property
    def store(self) -> Store:
        """The store; raises ValueError for files of another program."""
        if self.opened is None:
            raise _core.InvalidError(
                f"{self.location} is not a store; convert it first: ambar convert "
                f"{shlex.quote(self.location)} out.ambar"
            )
        return self.opened


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind: the functions that recognize it, and its operations; None if unsupported.

    The functions import their dependencies when they are called: defining a kind is cheap.
    """

    name: str
    """Its name. For a kind of stores, the value of `kind` in the root's attribute ``ambar``."""
    match_source: Callable[[Sequence[Path]], bool] = lambda _: False
    """Whether files or folders of another program are of this kind."""
    match_object: Callable[[object], bool] = lambda _: False
    """Whether an object of another library is of this kind, as the source of a conversion."""
    open: Callable[[Resource], Any] | None = None
    """Return the object that `ambar.open` returns, of a store or of files."""
    open_run: Callable[[Resource], Any] | None = None
    """Return the outputs in a folder of them as a sequence, to draw and view; None for one."""
    summarize: Callable[[Resource], dict[str, Any]] | None = None
    """Return what ``ambar info`` prints, from metadata alone; JSON can represent it."""
    convert: Callable[[Any], Conversion | None] | None = None
    """Convert the sources of a request to a store; None for a report without names."""
    convert_request: type[ConvertRequest] = ConvertRequest
    """The class of the request, whose fields are the options of `ambar.convert`."""
    outputs: Callable[[Sequence[Path]], list[pathlib.Path]] | None = None
    """Return the outputs of a run, which tasks convert by themselves; none of a single output."""
    copy: Callable[[Any], Conversion | None] | None = None
    """Write an open store of this kind, or a part of it, as a store; None for all of it."""
    copy_request: type[CopyRequest] = CopyRequest
    """The class of the request, whose fields are the options of `ambar.convert` of a store."""
    merge: Callable[[MergeRequest], Conversion | None] | None = None
    """Write several open stores of this kind as one store."""
    export: Callable[[Any], Export | None] | None = None
    """Write the content of a store to files; None for a report without names."""
    export_request: type[ExportRequest] = ExportRequest
    """The class of the request, whose fields are the options of `ambar.export`."""
    plot: Callable[[Any, Any], pathlib.Path] | None = None
    """Draw a picture of the opened object for a request, and return the path of its file."""
    plot_request: type[PlotRequest] = PlotRequest
    """The class of the request, whose fields are the options of ``ambar plot``."""
    view: Callable[[Any, Any], Any] | None = None
    """Return the page of the opened object in the browser, which Panel can show."""
    view_request: type[ViewRequest] = ViewRequest
    """The class of the request, whose fields are the options of `ambar.view`."""
    steps: Callable[[Any], Any] | None = None
    """Return the `ambar.mesh.steps.Steps` of the opened object, for PyVista and ParaView."""
    compare: Callable[[Any, int | None, int | None], Any] | None = None
    """Return the `ambar.comparison.operands.Operand` of the opened object or of a step of it.

    The arguments are the object, the number of the step, and the number of threads that read.
    """


def locate(
    path: Place | InMemoryStore,
    storage_options: Mapping[str, object] | None = None,
    commit: CommitName | None = None,
) -> tuple[Kind, Resource]:
    """Return the kind of a path, a URL or a store in memory, and the resource; opens a store.

    Raises the errors of `ambar.open`.
    """
    place = normalize_location(path)
    if isinstance(place, InMemoryStore) or is_url(place) or storage_options or commit is not None:
        store = open_store(place, storage_options, commit)
        return kind_of_store(store), Resource(place, store, storage_options)
    refuse_special(place)
    for kind in map(_load, _OPENED):
        if kind.match_source([place]):
            return kind, Resource(place)
    try:
        store = open_store(place)
        return kind_of_store(store), Resource(place, store)
    except (_core.AmbarError, OSError) as error:
        for kind in external_kinds():
            if kind.match_source([place]):
                return kind, Resource(place)
        if is_empty_file(place):
            raise _core.CorruptError(f"{place}: {EMPTY}") from None
        for kind in (
            ()
            if isinstance(error, _core.InvalidError)
            else map(_load, (*_MESHES, _OPENPMD, _GADGET, _STORED["checkpoint"]))
        ):
            if kind.match_source([place]):
                what = "folder" if pathlib.Path(place).is_dir() else "file"
                raise _core.InvalidError(
                    f"{os.fspath(place)}: expected a store, found a {what} of the kind "
                    f"{kind.name!r}; convert it first: ambar convert "
                    f"{shlex.quote(os.fspath(place))} out.ambar"
                ) from None
        raise


def locate_summary(
    path: Place | InMemoryStore, commit: CommitName | None = None
) -> tuple[Kind, Resource]:
    """Return the kind of a path that is summarized, and the resource.

    Unlike `locate`, it also finds files that have to be converted before they are opened.
    """
    try:
        return locate(path, commit=commit)
    except (_core.AmbarError, OSError):
        if commit is None and isinstance(path, (str, os.PathLike)) and not is_url(path):
            for kind in () if is_store_or_damaged(path) else map(_load, _SUMMARIZED):
                if kind.match_source([path]):
                    return kind, Resource(path)
        raise


def open_path(
    path: Place | InMemoryStore,
    storage_options: Mapping[str, object] | None = None,
    commit: CommitName | None = None,
) -> tuple[Kind, Any]:
    """Return the kind of a path, a URL or a store in memory, and what `ambar.open` returns."""
    kind, resource = locate(path, storage_options, commit)
    if kind.open is None:
        raise _core.UnsupportedError(
            f"{resource.location}: the kind {kind.name!r} cannot be opened"
        )
    return kind, kind.open(resource)


def open_outputs(
    path: Place | InMemoryStore,
    storage_options: Mapping[str, object] | None = None,
    commit: CommitName | None = None,
) -> tuple[Kind, Any]:
    """Return the kind of a path, and what is drawn: of the folder of a run its outputs.

    Of other paths it is what `ambar.open` returns.
    """
    kind, resource = locate(path, storage_options, commit)
    run = None if kind.open_run is None else kind.open_run(resource)
    return open_path(path, storage_options, commit) if run is None else (kind, run)


def viewer_of(kind: Kind | str, opened: Any, request: ViewRequest) -> Any:
    """Return the `ambar.Viewer` of an opened object.

    Parameters
    ----------
    kind
        The kind, or the name of a kind of stores.
    opened
        What `Kind.open` returned.
    request
        Where the data are, and what they are compared with.

    Raises
    ------
    UnsupportedError
        If the kind has no page.
    ModuleNotFoundError
        If Panel is not installed.
    """
    if isinstance(kind, str):
        kind = _load(_STORED.get(kind, _ARRAYS))
    page = kind.view
    if page is None:
        raise _core.UnsupportedError(
            f"{request.location}: the kind {kind.name!r} has no page for the viewer"
        )
    return load_object(_VIEWER)(lambda: page(opened, request), request.title)


def kind_of_store(store: Store) -> Kind:
    """Return the kind of a store; "arrays" if the root names no known kind."""
    name = kind_name(store._ambar_attributes())
    if name in _STORED:
        return _load(_STORED[name])
    return next((kind for kind in external_kinds() if kind.name == name), _load(_ARRAYS))


def kind_to_copy(store: Store) -> Kind:
    """Return the kind that copies a store: its own one, or that of arrays if it cannot."""
    kind = kind_of_store(store)
    return _load(_ARRAYS) if kind.copy is None else kind


def kind_of_sources(paths: Sequence[Path]) -> Kind | None:
    """Return the first kind that recognizes files or folders to convert, or None.

    Raises InvalidError for a pipe, a socket or a device.
    """
    for path in paths:
        refuse_special(path)
    kinds = (kind for kind in _source_kinds() if kind.convert is not None)
    return next((kind for kind in kinds if kind.match_source(paths)), None)


def kind_of_object(source: object) -> Kind | None:
    """Return the first kind that converts an object of another library, or None."""
    kinds = (kind for kind in _source_kinds() if kind.convert is not None)
    return next((kind for kind in kinds if kind.match_object(source)), None)


@functools.cache
def external_kinds() -> tuple[Kind, ...]:
    """Return the kinds of other packages, in the order of their names.

    A kind that cannot be imported is left out, with a warning.
    """
    found = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            kind = point.load()
        except Exception as error:
            warn(f"{GROUP}: {point.value} cannot be loaded: {error!r}")
            continue
        if isinstance(kind, Kind):
            found.append(kind)
        else:
            warn(f"{GROUP}: {point.value} is {kind!r}; expected a Kind")
    return tuple(found)


def _source_kinds() -> Iterator[Kind]:
    yield from map(_load, _CONVERTED)
    yield from external_kinds()
    yield from map(_load, _CONVERTED_LAST)


def _load(reference: str) -> Kind:
    return cast(Kind, load_object(reference))


def overview(path: str | os.PathLike[str], commit: CommitName | None = None) -> dict[str, Any]:
    """Return a summary of the content of `path`; JSON can represent it. Reads no array.

    Of a folder of outputs, the keys are `path`, `kind` and `outputs`, of which each has `path`,
    `info` (time and scale factor) and `components`. Otherwise they are `path`, `kind`, `bytes`; for
    snapshots of particles, openPMD and outputs that yt reads what their headers state; for RAMSES
    outputs and plotfiles of AMReX `info`, `components`, `missing` and `files` (bytes and number by
    kind); for stores `usage`, `attributes`, `groups` (path, kind and the attribute ``ambar``),
    `arrays` (path, shape, dtype, chunks, codecs, error bound, raw and stored bytes, unwritten
    values); for collections those of `ambar.collection.representation.overview_of`, for meshes and
    series of them those of `ambar.mesh.kind`.
    """
    kind, resource = locate_summary(path, commit)
    run = None if kind.open_run is None else kind.open_run(resource)
    if run is not None:
        return {
            "path": resource.location,
            "kind": f"folder of the kind {kind.name!r}",
            "outputs": [
                {
                    "path": os.path.basename(output.location),  # noqa: PTH119
                    "info": {"time": output.info.time, "aexp": getattr(output.info, "aexp", None)},
                    "components": list(output.components),
                }
                for output in run
            ],
        }
    if kind.summarize is None:
        raise _core.UnsupportedError(
            f"{os.fspath(path)}: the kind {kind.name!r} has no summary; open it with ambar.open"
        )
    return {"path": resource.location, "kind": kind.name, **kind.summarize(resource)}

"""Showing data at a path or a URL in the browser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.kinds.registry import open_outputs, viewer_of
from ambar.kinds.request import ViewRequest, build
from ambar.store.commit import CommitName
from ambar.store.locations import Place, normalize_location
from ambar.store.store import Group

if TYPE_CHECKING:
    from ambar.viewer.viewer import Viewer


def view(
    path: Place | Group,
    *,
    against: Place | None = None,
    commit: CommitName | None = None,
    storage_options: Mapping[str, object] | None = None,
    **options: Any,
) -> Viewer:
    """Show data in the browser, or as a widget in a notebook; only metadata are read before that.

    Parameters
    ----------
    path : str, path-like, Store or Group
        What `ambar.open` opens: a store, its URL, a RAMSES output or a plotfile. A folder of
        outputs, as a series. The arrays of an open store or group, of any kind.
    against : str or path-like, optional
        Other data of the same kind, to compare with: for example a store with an error bound, or
        the outputs from which the store was converted.
    commit : int, str or datetime, optional
        An earlier commit of the store at `path`, as for `ambar.open`.
    storage_options : mapping, optional
        For URLs, as for `ambar.open`.
    **options
        Options of the kind, below. Kinds of other packages may have other options.

    Returns
    -------
    Viewer
        Its method `serve` opens the page; a notebook shows it by itself.

    Other Parameters
    ----------------
    code_units : {"cgs", "Nyx", "SI", "WarpX"}, optional
        Of outputs and series: the code units of a plotfile, which does not state them, as for
        `Snapshot.with_units`.

    Raises
    ------
    ValueError
        If the two are of different kinds; if `against`, `commit`, `storage_options` or another
        option is given with an open store or group; if an option does not apply to the kind.
    UnsupportedError
        If the kind has no page.
    ModuleNotFoundError
        If Panel is not installed.
    AmbarError, OSError
        As for `ambar.open`.

    Examples
    --------
    >>> viewer = ambar.view("run.ambar")
    >>> viewer
    <ambar.Viewer> run.ambar: not served yet
    """
    viewer: Viewer
    if isinstance(path, Group):
        location = f"{path._commit.core.location}/{path.path}".rstrip("/")
        options |= {"against": against, "commit": commit, "storage_options": storage_options}
        if given := [name for name, value in options.items() if value is not None]:
            raise _core.InvalidError(
                f"{location}: {' and '.join(given)} cannot be given for an open store or group; "
                "give its path or URL instead"
            )
        viewer = viewer_of("arrays", path, ViewRequest(location=location))
        return viewer
    kind, opened = open_outputs(path, storage_options, commit)
    location, other, other_location = str(normalize_location(path)), None, ""
    if against is not None:
        other_location = str(normalize_location(against))
        other_kind, other = open_outputs(against, storage_options)
        if other_kind.view is not kind.view:
            raise _core.InvalidError(
                f"{other_location}: expected a {type(opened).__name__} to compare with {location}, "
                f"found a {type(other).__name__}"
            )
    request = build(
        kind.view_request,
        kind.name,
        location,
        options,
        location=location,
        against=other,
        against_location=other_location,
    )
    viewer = viewer_of(kind, opened, request)
    return viewer

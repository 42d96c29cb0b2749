"""The xarray engine "ambar": opens stores lazily, as datasets or as a tree of them.

Registered through the entry point group ``xarray.backends``. Follows the interface of
``xarray.backends.BackendEntrypoint`` as of xarray 2025.1.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import xarray as xr
from xarray.backends import BackendEntrypoint, StoreBackendEntrypoint

import ambar.interop.xarray.accessors  # noqa: F401 - registers the accessor
from ambar import _core
from ambar.interop.xarray.group_reader import GroupStore
from ambar.store.cache import OpenedStore, open_last, place_of
from ambar.store.commit import CommitName
from ambar.store.group_description import kind_name
from ambar.store.store import Store, first_group_with_arrays
from ambar.store.urls import is_url

__all__ = ["AmbarBackendEntrypoint"]


class AmbarBackendEntrypoint(BackendEntrypoint):
    """The backend of ``xarray.open_dataset(path, engine="ambar")`` and ``xarray.open_datatree``.

    Examples
    --------
    >>> import xarray as xr
    >>> run = xr.open_dataset("fields.ambar", group="run")
    >>> sorted(run), run.sizes["step"]
    (['names', 'time'], 10)
    """

    description = "Open ambar stores"
    open_dataset_parameters = (
        "filename_or_obj",
        "drop_variables",
        "group",
        "commit",
        "storage_options",
        "mask_and_scale",
        "decode_times",
        "concat_characters",
        "decode_coords",
        "use_cftime",
        "decode_timedelta",
    )
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether a path or URL has the suffix ``.ambar``."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fspath(filename_or_obj)
        if is_url(name):
            name = name.split("?", 1)[0].rstrip("/")
        return Path(name).suffix == ".ambar"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        commit: CommitName | None = None,
        storage_options: Mapping[str, object] | None = None,
        **decoding: Any,
    ) -> xr.Dataset:
        """Open the arrays of a group as a Dataset. Values are read when they are used.

        Parameters
        ----------
        filename_or_obj : str, path-like, bytes or binary file
            The store, as for `ambar.open`.
        drop_variables : str or iterable of str, optional
            The names of arrays to leave out.
        group : str, optional
            The path of the group; the root by default.
        commit : int, str or datetime, optional
            An earlier commit, as for `ambar.open`: its number, its tag, or ``"before 2026-11-01"``.
        storage_options : mapping, optional
            Options for URLs, as for `ambar.open`.
        **decoding
            Options of `xarray.open_dataset`, such as `mask_and_scale` and `decode_times`.

        Raises
        ------
        FileNotFoundError
            If the store does not exist.
        KeyError
            If the group or the commit does not exist.
        ValueError
            If xarray cannot represent the group as a Dataset, or `group` is not given for a
            collection, an output, a mesh or a series: their root has no variables.
        CorruptError
            If the store is damaged.
        """
        opened = _opened(filename_or_obj, storage_options, commit)
        if group is None:
            _check_root(opened.store)
        elif opened.store._ambar_attributes().get("kind") == "collection" and (
            group.strip("/") not in opened.store.groups
        ):
            raise _core.NotFoundError(
                f"{opened.store.location} is a collection, whose datasets are not groups: use "
                f"ambar.open_collection(path)[{group!r}]"
            )
        return _dataset(opened, group or "", drop_variables, decoding)

    def open_groups_as_dict(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: str | Iterable[str] | None = None,
        group: str | None = None,
        commit: CommitName | None = None,
        storage_options: Mapping[str, object] | None = None,
        **decoding: Any,
    ) -> dict[str, xr.Dataset]:
        """Open every group at or below `group` as a Dataset, by its path relative to `group`.

        Arguments and errors are those of `open_dataset`.
        """
        opened = _opened(filename_or_obj, storage_options, commit)
        base = (group or "").strip("/")
        GroupStore(opened, base).get_attrs()  # raises KeyError if the group does not exist
        return {
            relative: _dataset(opened, full, drop_variables, decoding)
            for relative, full in _groups(opened.store, base)
        }

    def open_datatree(
        self,
        filename_or_obj: Any,
        **options: Any,
    ) -> xr.DataTree:
        """Open the groups as a DataTree; arguments and errors are those of `open_dataset`.

        Raises ValueError also if a group does not have the dimensions of its parents.
        """
        groups = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            return xr.DataTree.from_dict(groups)
        except ValueError as error:
            raise _core.InvalidError(
                f"{filename_or_obj}: expected groups with the dimensions of their parents: "
                f"{error}; use xarray.open_groups"
            ) from error


def _opened(
    place: Any, storage_options: Mapping[str, object] | None, commit: CommitName | None
) -> OpenedStore:
    """Open a commit of a store, by default the last one."""
    location = place_of(place, storage_options)
    return OpenedStore.of(location, open_last(location)._at(commit))


_ADVICE = {
    "collection": "ambar.open_collection(path)['name'] for one dataset, or .to_xarray() for all",
    "mesh": "ambar.read_mesh(path)",
    "mesh series": "ambar.open_mesh_series(path)",
}
"""How to open kinds of stores whose groups are not datasets."""


def _check_root(store: Store) -> None:
    """Raise ValueError if the root belongs to a kind whose data are not variables of the root."""
    about = store._ambar_attributes()
    name, example = kind_name(about), first_group_with_arrays(store)
    if "kind" not in about or (example == "" and name != "mesh"):
        return
    advice = _ADVICE.get(name)
    if advice is None:
        if example is None:
            return
        advice = f"xarray.open_datatree(path), or one group: group={example!r}"
    raise _core.InvalidError(
        f"{store.location} is a {name}: expected a store with variables in its root; use {advice}"
    )


def _dataset(
    opened: OpenedStore,
    group: str,
    drop_variables: str | Iterable[str] | None,
    decoding: Mapping[str, Any],
) -> xr.Dataset:
    open_dataset = StoreBackendEntrypoint().open_dataset
    # Raises TypeError for options that xarray does not know.
    inspect.signature(open_dataset).bind(None, **decoding)
    try:
        dataset: xr.Dataset = open_dataset(
            GroupStore(opened, group), drop_variables=drop_variables, **decoding
        )
    except (_core.AmbarError, OSError):
        raise
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise _core.InvalidError(
            f"{opened.store.location}: xarray cannot make a Dataset of the group "
            f"/{group.strip('/')}: {error}; read its arrays with ambar.open, or leave out "
            "variables with drop_variables="
        ) from error
    return dataset


def _groups(store: Store, base: str) -> Iterator[tuple[str, str]]:
    """Yield the groups at or below `base`: the path relative to it, and the path in the store."""
    for full in store.groups:
        if not base or full == base or full.startswith(f"{base}/"):
            yield "/" + full.removeprefix(base).strip("/"), full

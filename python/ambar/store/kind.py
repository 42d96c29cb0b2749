"""The kind "arrays": stores without a kind or of an unknown kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import CopyRequest, Merge, MergeRequest, ViewRequest, as_list
from ambar.kinds.targets import copying, merged, merging
from ambar.pictures.options import ArraysPlot
from ambar.store.copies.arrays import copy_arrays, merge_arrays
from ambar.store.copies.selection import Positions
from ambar.store.group_description import Description, kind_name
from ambar.store.store import Group, Store

if TYPE_CHECKING:
    from ambar.comparison.operands import Operand


def summarize_store(resource: Resource) -> dict[str, Any]:
    """Return the groups and arrays of a store, from metadata alone."""
    store = resource.store
    usage = store.usage()
    own = store._ambar_attributes()
    about = Description(own, store.location)
    return {
        "path": store.location,
        "kind": kind_name(own) if about.optional_string("kind") else "arrays",
        "bytes": usage["total"],
        "usage": usage,
        "attributes": dict(store.attrs),
        "groups": list(_groups(store)),
        "arrays": [_array(store, path) for path in store],
    }


def _groups(store: Store) -> Iterator[dict[str, Any]]:
    for path in store.groups:
        own = store._ambar_attributes(path)
        if "kind" in own:
            yield {"path": path, **own}


def _array(store: Store, path: str) -> dict[str, Any]:
    array = store._array(path)
    return {
        "path": path,
        "shape": list(array.shape),
        "dtype": array.type_name,
        "chunks": list(array.chunks),
        "codecs": array.codecs,
        "error_bound": array.error_bound,
        "raw_bytes": array.nbytes,
        "stored_bytes": array.stored_bytes,
        "unwritten_values": array.unwritten_values,
    }


@dataclass(frozen=True, kw_only=True)
class ArraysCopy(CopyRequest):
    """The options of `ambar.convert` for a store of arrays."""

    fields: Iterable[str] | None = None
    steps: Positions = None


def _copy(request: ArraysCopy) -> None:
    request.refuse_append()
    with copying(request) as (writer, report):
        copy_arrays(
            request.opened,
            writer,
            fields=as_list(request.fields),
            steps=request.steps,
            profile=request.new_profile,
            error_bound=request.error_bound,
            report=report,
        )


def _merge(request: MergeRequest) -> Merge | None:
    existing = request.existing
    about = {} if existing is None else existing._ambar_attributes()
    if about.get("kind") not in (None, "series") or (
        about.get("kind") == "series" and about.get("of") != "arrays"
    ):
        raise _core.InvalidError(
            f"{request.target}: expected a store of arrays to add to, found a store of the kind "
            f"{about['kind']!r}; choose another name"
        )
    with merging(request) as (writer, report):
        owners = merge_arrays(
            request.stores,
            writer,
            existing,
            on_conflict=request.on_conflict,
            report=report,
        )
    return None if owners is None else merged(owners)


def _compare(store: Store, _: int | None, threads: int | None) -> Operand:
    from ambar.comparison.operands import Arrays

    return Arrays(store, threads)


def _view(group: Group, request: ViewRequest) -> Any:
    from ambar.viewer.pages.arrays import page

    return page(group, request)


def _plot(store: Store, request: ArraysPlot) -> Path:
    from ambar.pictures.arrays import write_picture

    return write_picture(store, request)


ARRAYS = Kind(
    name="arrays",
    open=lambda resource: resource.store,
    summarize=summarize_store,
    copy=_copy,
    copy_request=ArraysCopy,
    merge=_merge,
    compare=_compare,
    plot=_plot,
    plot_request=ArraysPlot,
    view=_view,
)

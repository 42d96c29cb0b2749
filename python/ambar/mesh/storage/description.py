"""The description of a mesh in a store: read, and reduced to a block or to some arrays."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ambar import _core
from ambar.mesh.storage.packs import split_streams
from ambar.mesh.storage.references import Description, damaged, references_in
from ambar.store.store import Store

Block: TypeAlias = int | str | Sequence[int | str]
Names: TypeAlias = Sequence[str] | None
Association: TypeAlias = Literal["point", "cell", "row", "field"]
ASSOCIATIONS: dict[str, Association] = {
    "point_data": "point",
    "cell_data": "cell",
    "row_data": "row",
    "field_data": "field",
}
"""What arrays have values for, by the keys of their lists in a description."""
ORIGINAL_IDS = {"point": "vtkOriginalPointIds", "cell": "vtkOriginalCellIds"}
"""The names of the arrays of original ids, as in VTK's filters."""
_OF_THE_GROUP = ("kind", "version", "packed", "user_dict", "digests", "like", "rows", "bounds")
"""Keys of a group that do not describe its VTK object."""


def description_of(store: Store, path: str) -> Description:
    """Return the description of the mesh in the group `path`.

    Raises ValueError if the group is of another kind, UnsupportedError for a newer version.
    """
    path = path.strip("/")
    key, where = f"mesh description of /{path}", f"{store.location}: /{path}"
    if key not in store._cache:
        stored = stored_description(store, path)
        try:
            store._cache[key] = _with_shared_blocks(stored, "", {})
        except (LookupError, RecursionError, TypeError) as error:
            what = f"a block refers to another block that is not described before it: {error!r}"
            raise damaged(where, what) from error
    description: dict[str, Any] = store._cache[key]
    return description


def _with_shared_blocks(described: Any, path: str, known: dict[str, Any]) -> Any:
    """Return a description in which shared blocks are the same object.

    `known` are the blocks before this one that do not contain blocks, by their paths. Raises
    KeyError or TypeError if a block refers to another one.
    """
    blocks = described.get("blocks") if isinstance(described, dict) else None
    if not isinstance(blocks, list):
        return described
    found = []
    for index, entry in enumerate(blocks):
        block, info = split_block(entry)
        at = f"{path}/blocks/{index}".lstrip("/")
        if isinstance(block, dict) and "same" in block:
            block = known[block["same"]]
        else:
            block = _with_shared_blocks(block, at, known)
            if isinstance(block, dict) and "blocks" not in block:
                known[at] = block
        found.append(block if info is None else {"block": block, "info": info})
    return {**described, "blocks": found}


def stored_description(store: Store, path: str) -> Description:
    """Return the description of a group, in which blocks may refer to others."""
    key = f"stored mesh description of /{path}"
    if key not in store._cache:
        store._cache[key] = _read_description(store, path)
    description: dict[str, Any] = store._cache[key]
    return description


def _read_description(store: Store, path: str) -> Description:
    about = store._ambar_attributes(path)
    where = f"{store.location}: /{path}"
    if about.get("kind") != "mesh":
        kind = about.get("kind", "arrays")
        is_series = kind == "series" and about.get("of") == "mesh"
        opener = "use ambar.open_mesh_series" if is_series else "ambar.open opens every kind"
        raise _core.InvalidError(f"{where}: expected a mesh, found the kind {kind!r}; {opener}")
    if about.get("version") != 1:
        raise _core.UnsupportedError(
            f"{where} is a mesh of version {about.get('version')!r}; this version of ambar reads 1"
        )
    if "like" in about:
        return _read_step(store, about, where)
    try:
        if "data" in about:
            return about | split_streams(base64.b85decode(about["data"]))
        if "description" in about:
            values = store._array(f"{path}/{about['description']}").read()
            if values.dtype != np.uint8:
                raise ValueError(  # noqa: TRY301 - explained below
                    f"expected an array of uint8, found {values.dtype}"
                )
            return about | split_streams(values.tobytes())
    except (_core.NotFoundError, RecursionError, TypeError, ValueError) as error:
        raise damaged(where, f"the description of the mesh is damaged: {error}") from error
    return about


def _read_step(store: Store, about: dict[str, Any], where: str) -> Description:
    """Return the description of a step that differs from that of an earlier one only in rows."""
    like, rows = about["like"], about.get("rows")
    exists = isinstance(like, str) and like in store.groups
    earlier = store._ambar_attributes(like) if exists else {}
    if earlier.get("kind") != "mesh" or "like" in earlier or not isinstance(rows, list):
        what = f"the description of the mesh refers to that of {like!r:.80}"
        raise damaged(where, f"{what}, which does not have one")
    described = copy.deepcopy(stored_description(store, like))
    for key in ("user_dict", "digests"):
        described.pop(key, None)
    references = [each for each in references_in(described) if "row" in each]
    if len(references) != len(rows):
        raise damaged(where, f"{len(rows)} rows for {len(references)} arrays")
    for each, row in zip(references, rows, strict=True):
        each["row"] = row
    return described | about


def select_block(described: Any, block: Block | None, where: str) -> Any:
    """Return the description of one block, or that of the whole object if `block` is None.

    Raises KeyError if the block does not exist.
    """
    if block is None:
        return {key: value for key, value in described.items() if key not in _OF_THE_GROUP}
    current: Any = described
    for step in [block] if isinstance(block, (int, str)) else block:
        entries = blocks_of(current)
        names = [name for name, _ in entries]
        at = names.index(step) if isinstance(step, str) and step in names else step
        if isinstance(at, str) or not -len(entries) <= at < len(entries):
            named = f", named {', '.join(map(repr, names[:20]))}" if any(names) else ""
            raise _core.NotFoundError(
                f"{where}: no block {step!r}; available: {len(entries)} blocks{named}"
            )
        current = entries[at][1]
    return current


def split_block(entry: Any) -> tuple[Any, Any]:
    """Return the description of a block, and the information that VTK keeps beside it, or None."""
    if isinstance(entry, dict) and "block" in entry:
        return entry["block"], entry.get("info")
    return entry, None


def blocks_of(described: Any) -> list[tuple[str | None, Any]]:
    """Return name and description of each block of an object."""
    if not isinstance(described, dict):
        return []
    blocks = described.get("blocks")
    found = []
    for entry in blocks if isinstance(blocks, list) else ():
        block, info = split_block(entry)
        name = None
        for item in info if isinstance(info, list) else ():
            if isinstance(item, list) and item[1:2] == ["NAME"]:
                name = str(item[-1])
        found.append((name, block))
    return found


def field_entries(
    described: Any, block: tuple[int, ...] = ()
) -> Iterator[tuple[str, dict[str, Any], tuple[int, ...]]]:
    """Yield each array on points, cells, rows or in field data: its list, its entry, its block."""
    if not isinstance(described, dict):
        return
    for key in ASSOCIATIONS:
        entries = described.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield key, entry, block
    for index, (_, inner) in enumerate(blocks_of(described)):
        yield from field_entries(inner, (*block, index))


def check_names(where: str, key: str, wanted: Names, known: Iterable[str]) -> None:
    """Raise KeyError if one of the wanted arrays is not among the known ones of a list."""
    known = list(known)
    if missing := [name for name in wanted or () if name not in known]:
        raise _core.NotFoundError(
            f"{where}: no array {', '.join(map(repr, missing))} in {key.replace('_', ' ')}; "
            f"available: {', '.join(map(repr, known)) or 'none'}"
        )


def select_arrays(
    described: Any, names: Mapping[str, Names], selected: dict[int, Any] | None = None
) -> Any:
    """Return a description with only some of the arrays.

    Parameters
    ----------
    described
        The description of an object.
    names
        The names of the arrays to keep, by the keys of `ASSOCIATIONS`; None for all.
    selected
        The results by the identity of the description, so that shared blocks stay shared.
    """
    selected = {} if selected is None else selected
    if isinstance(described, list):
        return [select_arrays(item, names, selected) for item in described]
    if not isinstance(described, dict):
        return described
    if id(described) not in selected:
        kept: dict[str, Any] = dict(described)
        selected[id(described)] = kept
        for key in kept.keys() & {"block", "blocks"}:
            kept[key] = select_arrays(described[key], names, selected)
        for key, wanted in names.items():
            if wanted is not None and key in kept:
                kept[key] = [entry for entry in kept[key] or () if entry.get("name") in wanted]
    return selected[id(described)]

"""The description of a mesh in a store: read, and narrowed to a block or to some arrays."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ambar import _core
from ambar.mesh.storage.packs import parted
from ambar.mesh.storage.references import references_in
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


def description_of(store: Store, path: str) -> dict[str, Any]:
    """Return what the group `path` says of its mesh.

    Raises ValueError if it is of another kind, UnsupportedError if it is of a newer version.
    """
    key = f"mesh description of /{path.strip('/')}"
    if key not in store.kept:
        stored = _stored_description(store, path)
        try:
            store.kept[key] = _with_shared_blocks(stored, "", {})
        except (LookupError, RecursionError, TypeError) as error:
            raise _core.CorruptError(
                f"{store.location}: /{path.strip('/')}: a block of the mesh is to be the same as "
                f"another, which is not described before it: {error!r}; restore the store from a "
                "copy"
            ) from error
    description: dict[str, Any] = store.kept[key]
    return description


def _with_shared_blocks(described: Any, path: str, known: dict[str, Any]) -> Any:
    """Return a description in which blocks that are the same have one description, one object.

    `known` are the blocks before this one that have no blocks themselves, by their paths. Raises
    KeyError or TypeError if a block is not the same as one of these.
    """
    blocks = described.get("blocks") if isinstance(described, dict) else None
    if not isinstance(blocks, list):
        return described
    found = []
    for index, entry in enumerate(blocks):
        is_wrapped = isinstance(entry, dict) and "block" in entry
        block = entry["block"] if is_wrapped else entry
        at = f"{path}/blocks/{index}".lstrip("/")
        if isinstance(block, dict) and "same" in block:
            block = known[block["same"]]
        else:
            block = _with_shared_blocks(block, at, known)
            if isinstance(block, dict) and not {"blocks", "levels"} & block.keys():
                known[at] = block
        found.append({**entry, "block": block} if is_wrapped else block)
    return {**described, "blocks": found}


def _stored_description(store: Store, path: str) -> dict[str, Any]:
    """Return what the group `path` says of its mesh, in which blocks may refer to others."""
    key = f"stored mesh description of /{path.strip('/')}"
    if key not in store.kept:
        store.kept[key] = _description(store, path)
    description: dict[str, Any] = store.kept[key]
    return description


def _description(store: Store, path: str) -> dict[str, Any]:
    about = store.ambar_attributes(path)
    where = f"{store.location}: /{path.strip('/')}"
    if about.get("kind") != "mesh":
        raise _core.InvalidError(
            f"{where} is of the kind {about.get('kind', 'arrays')!r}, not 'mesh': ambar.open opens "
            "stores of every kind"
        )
    if about.get("version") != 1:
        raise _core.UnsupportedError(
            f"{where} is a mesh of version {about.get('version')!r}; this version of ambar reads 1"
        )
    if "like" in about:
        return _as_another(store, about, where)
    if "description" not in about and "data" not in about:
        return about
    try:
        described = parted(_description_bytes(store, path, about))
    except (_core.NotFoundError, RecursionError, TypeError, ValueError) as error:
        raise _core.CorruptError(
            f"{where}: the description of the mesh is damaged, or not in its array: {error}; "
            "restore the store from a copy"
        ) from error
    return about | described


def _description_bytes(store: Store, path: str, about: dict[str, Any]) -> bytes:
    """Return a compressed description; raises ValueError if its array has another dtype."""
    if "data" in about:
        return base64.b85decode(about["data"])
    values = store[f"{path}/{about['description']}"].read()
    if values.dtype != np.uint8:
        raise ValueError(f"expected an array of uint8, found {values.dtype}")
    return values.tobytes()


def _as_another(store: Store, about: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the description of a step that is like an earlier one's but for its rows."""
    like, rows = about["like"], about.get("rows")
    own = store.ambar_attributes(like) if isinstance(like, str) and like in store.groups else {}
    if own.get("kind") != "mesh" or "like" in own or not isinstance(rows, list):
        raise _core.CorruptError(
            f"{where}: the description of the mesh is to be like that of {like!r:.80}, which has "
            "none; restore the store from a copy"
        )
    described = copy.deepcopy(_stored_description(store, like))
    for key in ("user_dict", "digests"):
        described.pop(key, None)
    references = [each for each in references_in(described) if "row" in each]
    if len(references) != len(rows):
        raise _core.CorruptError(
            f"{where}: {len(rows)} rows for {len(references)} arrays; restore the store from a copy"
        )
    for each, row in zip(references, rows, strict=True):
        each["row"] = row
    return described | about


def chosen_block(described: dict[str, Any], block: Block | None, where: str) -> Any:
    """Return the description of one block; of the whole if `block` is None.

    Raises KeyError if the block does not exist.
    """
    if block is None:
        kept = dict(described)
        for key in ("kind", "version", "packed", "user_dict", "digests", "like", "rows", "bounds"):
            kept.pop(key, None)
        return kept
    steps = [block] if isinstance(block, (int, str)) else list(block)
    current: Any = described
    while steps:
        entries = blocks_of(current)
        step = steps.pop(0)
        names = [name for name, _ in entries]
        at = names.index(step) if isinstance(step, str) and step in names else step
        if isinstance(at, str) or not -len(entries) <= at < len(entries):
            raise _core.NotFoundError(
                f"{where}: there is no block {step!r}; there are {len(entries)}"
                + (f", named {', '.join(map(repr, names[:20]))}" if any(names) else "")
            )
        current = entries[at][1]
    if isinstance(current, dict) and "type" not in current and "blocks" in current:
        raise _core.NotFoundError(f"{where}: {block!r} is a level; give level and block")
    return current


def blocks_of(described: Any) -> list[tuple[str | None, Any]]:
    """Return name and description of each block of an object, none for what has no blocks."""
    if not isinstance(described, dict):
        return []
    if isinstance(described.get("levels"), list):
        return [(None, level) for level in described["levels"]]
    blocks = described.get("blocks")
    found = []
    for entry in blocks if isinstance(blocks, list) else ():
        name, block = None, entry
        if isinstance(entry, dict) and "block" in entry:
            block = entry["block"]
            info = entry.get("info")
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


def select(
    described: Any,
    wanted: Mapping[str, Names],
    found: dict[str, set[str]],
    selected: dict[int, Any] | None = None,
) -> Any:
    """Return a description without the arrays that are not wanted; `found` gets all names.

    `selected` are the results of descriptions by their identity: blocks that are shared stay so.
    """
    selected = {} if selected is None else selected
    if isinstance(described, list):
        return [select(item, wanted, found, selected) for item in described]
    if not isinstance(described, dict):
        return described
    if id(described) in selected:
        return selected[id(described)]
    kept: dict[str, Any] = {}
    selected[id(described)] = kept
    for key, value in described.items():
        if key in ASSOCIATIONS and isinstance(value, list):
            entries = [entry for entry in value if isinstance(entry, dict)]
            found[key].update(str(entry.get("name")) for entry in entries)
            names = wanted.get(key)
            kept[key] = value if names is None else [e for e in entries if e.get("name") in names]
        elif key in ("block", "blocks", "levels"):
            kept[key] = select(value, wanted, found, selected)
        else:
            kept[key] = value
    return kept

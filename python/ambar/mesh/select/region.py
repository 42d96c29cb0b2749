"""The part of a mesh that touches a box: a description of it, in place of that of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.select.region_cells import Cut, cut_points, cut_poly, cut_unstructured
from ambar.mesh.select.region_grids import cut_image, cut_rectilinear, cut_structured
from ambar.mesh.select.touching import Touching
from ambar.mesh.storage.array_references import Key, given, part_of, rows_on_grid
from ambar.mesh.storage.source import Source
from ambar.mesh.vtk.composites import block_of

ORIGINAL_IDS = {"point": "vtkOriginalPointIds", "cell": "vtkOriginalCellIds"}
"""The arrays that tell which points and cells of the mesh that was written these are."""
_CUTS: dict[str, Callable[[dict[str, Any], Source, Touching, str], Cut]] = {
    "ImageData": cut_image,
    "UniformGrid": cut_image,
    "StructuredPoints": cut_image,
    "RectilinearGrid": cut_rectilinear,
    "StructuredGrid": cut_structured,
    "PolyData": cut_poly,
    "UnstructuredGrid": cut_unstructured,
    "PointSet": cut_points,
}
_BLOCKS = (
    "MultiBlockDataSet",
    "MultiPieceDataSet",
    "PartitionedDataSet",
    "PartitionedDataSetCollection",
)


def chosen_part(
    described: Any,
    source: Source,
    touching: Touching | None,
    original_ids: bool,
    what: str = "",
    parts: dict[int, Any] | None = None,
) -> Any:
    """Return the description of the cells that touch a box, with their points; of all for None.

    Blocks stay where they are, without cells where none touches. The descriptions of index and
    order are left out. With `original_ids` there are arrays of the numbers that points and cells
    had, where these are not 0, 1, 2, ... `parts` are the results of blocks by the identity of their
    descriptions: blocks that are shared stay so.

    Raises
    ------
    CorruptError
        If the description, or an array, is not what it must be.
    UnsupportedError
        If there is a box, and the object is of a type that has no parts.
    """
    if not isinstance(described, dict):
        return described
    parts = {} if parts is None else parts
    if described.get("type") in _BLOCKS and isinstance(described.get("blocks"), list):
        blocks = []
        for number, entry in enumerate(described["blocks"]):
            block, info = block_of(entry)
            where = f"{what}block {number} "
            if touching is None or not isinstance(block, dict) or block.get("type") != "Table":
                if id(block) not in parts:
                    part = chosen_part(block, source, touching, original_ids, where, parts)
                    parts[id(block)] = part
                block = parts[id(block)]
            blocks.append(block if info is None else {"block": block, "info": info})
        return {**described, "blocks": blocks}
    kept = {key: value for key, value in described.items() if key not in ("index", "order")}
    order = described.get("order") if original_ids else None
    if touching is None:
        return kept if order is None else _with_ids(kept, source, order, None)
    cut = _CUTS.get(str(described.get("type")))
    if cut is None:
        raise _core.UnsupportedError(
            f"{source.where}: {what}is a {described.get('type')}, of which no part that touches a "
            "box is read; read it without region=, or a block of it with block="
        )
    found = cut(described, source, touching, what)
    kept |= found.geometry
    for of, shape, key in (("point", *found.points), ("cell", *found.cells)):
        entries = kept.get(f"{of}_data")
        if isinstance(entries, list):
            kept[f"{of}_data"] = [part_of(entry, shape, key, source) for entry in entries]
    return _with_ids(kept, source, order, found) if original_ids else kept


def _with_ids(
    described: dict[str, Any], source: Source, order: Any, cut: Cut | None
) -> dict[str, Any]:
    """Return a description with arrays of the numbers that points and cells had at first."""
    if order is not None and not isinstance(order, dict):
        raise source.damaged("order is not described")
    for of, name in ORIGINAL_IDS.items():
        shape: tuple[int, ...] = (0,)
        key: Key = (slice(0, 0),)
        reference = None if order is None else order.get(f"{of}s")
        if cut is not None:
            shape, key = cut.points if of == "point" else cut.cells
            if reference is not None:
                reference = part_of(reference, shape, key, source)
        if reference is not None:
            numbers = source.get(reference, name, ndim=(1,), kinds="i")
        elif isinstance(key[0], np.ndarray):
            numbers = key[0]
        else:
            numbers = rows_on_grid(shape, key)
        entry = {"name": name, "type": "id type", **given(numbers.astype(np.int64))}
        others = described.get(f"{of}_data") or []
        described[f"{of}_data"] = [*(e for e in others if e.get("name") != name), entry]
    return described

"""The part of a mesh that overlaps a box: its description in place of that of the whole mesh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.select.region_cells import (
    Extract,
    extract_points,
    extract_poly,
    extract_unstructured,
)
from ambar.mesh.select.region_grids import extract_image, extract_rectilinear, extract_structured
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.array_references import Key, in_memory, rows_on_grid, select_rows
from ambar.mesh.storage.description import split_block

ORIGINAL_IDS = {"point": "vtkOriginalPointIds", "cell": "vtkOriginalCellIds"}
"""The names of the arrays of original ids, as in VTK's filters."""
_EXTRACTORS: dict[str, Callable[[dict[str, Any], ArrayReader, BoxOverlap, str], Extract]] = {
    "ImageData": extract_image,
    "UniformGrid": extract_image,
    "StructuredPoints": extract_image,
    "RectilinearGrid": extract_rectilinear,
    "StructuredGrid": extract_structured,
    "PolyData": extract_poly,
    "UnstructuredGrid": extract_unstructured,
    "PointSet": extract_points,
}
_WITH_BLOCKS = (
    "MultiBlockDataSet",
    "MultiPieceDataSet",
    "PartitionedDataSet",
    "PartitionedDataSetCollection",
)


def extract_region(
    described: Any,
    reader: ArrayReader,
    overlap: BoxOverlap | None,
    original_ids: bool,
    what: str = "",
    extracted: dict[int, Any] | None = None,
) -> Any:
    """Return the description of the cells that overlap a box, and of their points.

    Blocks without such cells become empty. The descriptions of index and order are left out.

    Parameters
    ----------
    described
        The description of the whole mesh, or of a block.
    reader
        Reads the arrays.
    overlap
        The box; None for all cells.
    original_ids
        Whether to add arrays of the original ids of points and cells, if these differ from 0, 1, 2
        and so on.
    what
        The start of messages, such as "block 3 ".
    extracted
        The results of blocks by the identity of the description: shared blocks stay shared.

    Raises
    ------
    CorruptError
        If the description or an array is damaged.
    UnsupportedError
        If there is a box, and the type of the object does not support regions.
    """
    if not isinstance(described, dict):
        return described
    extracted = {} if extracted is None else extracted
    if described.get("type") in _WITH_BLOCKS:
        blocks = []
        for number, entry in enumerate(described["blocks"]):
            block, info = split_block(entry)
            where = f"{what}block {number} "
            if overlap is None or not isinstance(block, dict) or block.get("type") != "Table":
                if id(block) not in extracted:
                    part = extract_region(block, reader, overlap, original_ids, where, extracted)
                    extracted[id(block)] = part
                block = extracted[id(block)]
            blocks.append(block if info is None else {"block": block, "info": info})
        return {**described, "blocks": blocks}
    part = {key: value for key, value in described.items() if key not in ("index", "order")}
    order = described.get("order") if original_ids else None
    if overlap is None:
        return part if order is None else _add_original_ids(part, reader, order, None)
    extract = _EXTRACTORS.get(str(described.get("type")))
    if extract is None:
        raise _core.UnsupportedError(
            f"{reader.where}: {what}is a {described.get('type')}, which does not support region=; "
            "read it without region=, or a block of it with block="
        )
    found = extract(described, reader, overlap, what)
    part |= found.geometry
    for key, selection in (("point_data", found.points), ("cell_data", found.cells)):
        part[key] = [select_rows(entry, *selection, reader) for entry in part.get(key) or ()]
    return _add_original_ids(part, reader, order, found) if original_ids else part


def _add_original_ids(
    described: dict[str, Any], reader: ArrayReader, order: Any, found: Extract | None
) -> dict[str, Any]:
    """Add arrays of the original ids of points and cells to a description, and return it."""
    for association, name in ORIGINAL_IDS.items():
        shape: tuple[int, ...] = (0,)
        key: Key = (slice(0, 0),)
        reference = None if order is None else order.get(f"{association}s")
        if found is not None:
            shape, key = found.points if association == "point" else found.cells
            if reference is not None:
                reference = select_rows(reference, shape, key, reader)
        if reference is not None:
            ids = reader.get(reference, name, ndim=(1,), kinds="i")
        elif isinstance(key[0], np.ndarray):
            ids = key[0]
        else:
            ids = rows_on_grid(shape, key)
        entry = {"name": name, "type": "id type", **in_memory(ids.astype(np.int64))}
        others = described.get(f"{association}_data") or []
        others = [other for other in others if other.get("name") != name]
        described[f"{association}_data"] = [*others, entry]
    return described

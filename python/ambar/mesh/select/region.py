"""The part of a mesh in a box, or where a condition holds: its description.

The description replaces that of the whole mesh, and refers to rows of its arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.select.box_overlap import BoxOverlap
from ambar.mesh.select.conditions import evaluate_condition
from ambar.mesh.select.region_cells import Criteria, Extract, extract_cells, extract_points
from ambar.mesh.select.region_grids import (
    extract_image,
    extract_rectilinear,
    extract_structured,
    to_unstructured,
)
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import ORIGINAL_IDS, split_block
from ambar.mesh.storage.references import Description, in_memory, rows_on_grid, select_rows

_GRIDS: dict[str, Callable[[Description, ArrayReader, BoxOverlap], Extract]] = {
    "ImageData": extract_image,
    "UniformGrid": extract_image,
    "StructuredPoints": extract_image,
    "RectilinearGrid": extract_rectilinear,
    "StructuredGrid": extract_structured,
}
_OF_CELLS: dict[str, Callable[[Description, ArrayReader, Criteria], Extract]] = {
    "PolyData": extract_cells,
    "UnstructuredGrid": extract_cells,
    "PointSet": extract_points,
}
_WITH_BLOCKS = (
    "MultiBlockDataSet",
    "MultiPieceDataSet",
    "PartitionedDataSet",
    "PartitionedDataSetCollection",
)


@dataclass(frozen=True)
class PartReader:
    """Describes the part of a mesh in a box for which a condition holds.

    Parameters
    ----------
    reader
        Reads the arrays.
    overlap
        The box; None for all cells.
    condition
        The condition on arrays; None for all cells.
    original_ids
        Whether to add arrays of the original ids of points and cells, if these differ from 0, 1, 2
        and so on.
    """

    reader: ArrayReader
    overlap: BoxOverlap | None
    condition: _core.Condition | None
    original_ids: bool
    _parts: dict[int, Any] = field(default_factory=dict)
    """The results of blocks by the identity of the description: shared blocks stay shared."""

    def extract(self, described: Any) -> Any:
        """Return the description of a part.

        Blocks without such cells become empty. The descriptions of index and order are left out.

        Raises
        ------
        CorruptError
            If the description or an array is damaged.
        UnsupportedError
            If there is a box or a condition, and the type of the object does not support them.
        KeyError
            If the condition names an array that does not exist.
        ValueError
            If the condition does not apply to the arrays.
        """
        if not isinstance(described, dict):
            return described
        if described.get("type") not in _WITH_BLOCKS:
            return self._extract_dataset(described)
        blocks = []
        for number, entry in enumerate(described["blocks"]):
            block, info = split_block(entry)
            is_table = isinstance(block, dict) and block.get("type") == "Table"
            if not (is_table and self._has_criteria):
                if id(block) not in self._parts:
                    with self.reader.within(f"block {number}"):
                        self._parts[id(block)] = self.extract(block)
                block = self._parts[id(block)]
            blocks.append(block if info is None else {"block": block, "info": info})
        return {**described, "blocks": blocks}

    @property
    def _has_criteria(self) -> bool:
        return self.overlap is not None or self.condition is not None

    def _extract_dataset(self, described: Description) -> dict[str, Any]:
        part = {key: value for key, value in described.items() if key not in ("index", "order")}
        order = described.get("order") if self.original_ids else None
        if not self._has_criteria:
            return part if order is None else _add_original_ids(part, self.reader, order, None)
        type_name = str(described.get("type"))
        if type_name not in (*_GRIDS, *_OF_CELLS):
            raise _core.UnsupportedError(
                f"{self.reader.where}: a {type_name} does not support region= and where=; read it "
                "without these, or a block of it with block="
            )
        if self.overlap is not None and self.condition is None and type_name in _GRIDS:
            found = _GRIDS[type_name](described, self.reader, self.overlap)
        else:
            if type_name in _GRIDS:
                described = part = to_unstructured(part, self.reader)
            masks = {}
            if self.condition is not None:
                masks = evaluate_condition(self.condition, described, self.reader)
            criteria = Criteria(self.overlap, **masks)
            found = _OF_CELLS[described["type"]](described, self.reader, criteria)
        part |= found.geometry
        for key, selection in (("point_data", found.points), ("cell_data", found.cells)):
            entries = part.get(key) or ()
            part[key] = [select_rows(entry, *selection, self.reader) for entry in entries]
        return _add_original_ids(part, self.reader, order, found) if self.original_ids else part


def _add_original_ids(
    described: Description, reader: ArrayReader, order: Any, found: Extract | None
) -> Description:
    """Add arrays of the original ids of points and cells to a description, and return it."""
    for association, name in ORIGINAL_IDS.items():
        reference = None if order is None else order.get(f"{association}s")
        if found is not None:
            shape, key = found.points if association == "point" else found.cells
            if reference is not None:
                reference = select_rows(reference, shape, key, reader)
            elif isinstance(key[0], np.ndarray):
                reference = in_memory(key[0])
            else:
                reference = in_memory(rows_on_grid(shape, key))
        ids = reader.get(reference, name, ndim=(1,), kinds="i")
        entry = {"name": name, "type": "id type", **in_memory(ids.astype(np.int64))}
        others = described.get(f"{association}_data") or []
        others = [other for other in others if other.get("name") != name]
        described[f"{association}_data"] = [*others, entry]
    return described

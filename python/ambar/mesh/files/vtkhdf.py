"""VTKHDF files of overlapping AMR data, of one output or over time, written step by step.

The format is VTK's "VTKHDF File Format" 2.4 (docs.vtk.org), for a single AMR object 1.0, which
ParaView 5.11 reads. VTK's own writer stores times as float32; here times are float64.

VTK's reader reads all grids as three-dimensional, whatever ``GridDescription`` is, and marks coarse
cells as refined only where finer boxes have two layers of cells in each dimension. Data of two
dimensions are therefore two equal layers, with the indices -1 and 0 on all levels: of a coarser
level these cover the same layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from vtkmodules.vtkCommonDataModel import vtkDataSetAttributes

from ambar import _core
from ambar.interop.vtk_arrays import values_of
from ambar.snapshot.interop.vtk_amr import blocks_of

_CHUNK = 1 << 20
"""Bytes of a chunk of an HDF5 dataset."""
_XY_PLANE = 5
"""VTK's number of the description of grids of two dimensions."""
_GHOSTS = vtkDataSetAttributes.GhostArrayName()
"""VTK's reader computes the array from the boxes."""


class AmrHdfFile:
    """A VTKHDF file of overlapping AMR data that is being written.

    Parameters
    ----------
    group
        The group ``VTKHDF`` of an open file of h5py.
    times
        The times of the steps that will be added; None for a single object.
    """

    def __init__(self, group: Any, times: Sequence[float] | None) -> None:
        self._group = group
        self._times = times
        self._steps: dict[str, dict[int, Any]] = {}
        self._fields: set[str] = set()
        self._count = 0
        group.attrs["Version"] = np.array([1, 0] if times is None else [2, 4])
        group.attrs["Type"] = np.bytes_("OverlappingAMR")

    def add(self, mesh: Any) -> None:
        """Add the next step, a vtkOverlappingAMR with arrays on cells.

        Raises UnsupportedError if a name cannot be stored, or fields, origin or cells differ from
        those of earlier steps.
        """
        origin = np.zeros(3)
        is_new = hasattr(mesh, "GetOverlappingAMRMetaData")  # from VTK 9.6 on
        (mesh.GetOverlappingAMRMetaData() if is_new else mesh.GetAMRInfo()).GetOrigin(origin)
        self._attribute(self._group, "Origin", origin)
        self._attribute(self._group, "GridDescription", np.bytes_("XYZ_GRID"))
        fields: set[str] = set()
        for level in range(mesh.GetNumberOfLevels()):
            fields |= self._add_level(mesh, level)
        if self._count and fields != self._fields:
            names = ", ".join(sorted(fields ^ self._fields))
            raise self._changed(f"not every step has the fields {names}")
        self._fields = fields
        self._count += 1

    def _add_level(self, mesh: Any, level: int) -> set[str]:
        """Add the boxes and values of a level; return the names of the fields."""
        name, spacing, blocks = f"Level{level}", np.zeros(3), blocks_of(mesh, level)
        mesh.GetSpacing(level, spacing)
        is_plane = int(mesh.GetGridDescription()) == _XY_PLANE
        if is_plane:
            spacing[2] = 0.5  # both layers together are 1 thick: volumes are areas
        self._attribute(self._group.require_group(name), "Spacing", spacing)
        boxes = np.zeros((len(blocks), 6), np.int32)
        for index in range(len(blocks)):
            corners = [0] * 6
            mesh.GetAMRBox(level, index).GetDimensions(corners)
            boxes[index] = corners
        if is_plane:
            boxes[:, 4:] = -1, 0
        self._append(f"{name}/AMRBox", boxes, f"{name}/AMRBoxOffsets")
        self._set(f"{name}/NumberOfAMRBoxes", len(blocks))
        data = [block.GetCellData() for block in blocks]
        arrays = range(data[0].GetNumberOfArrays()) if data else ()
        fields = {data[0].GetArrayName(number) for number in arrays} - {_GHOSTS}
        for field in sorted(fields):
            if "/" in field or "." in field:
                raise _core.UnsupportedError(
                    f"{field!r}: VTKHDF supports names of fields without / and .: leave it out"
                )
            parts = [values_of(each.GetAbstractArray(field), field) for each in data]
            values = np.concatenate([part for part in parts for _ in range(2 if is_plane else 1)])
            self._append(f"{name}/CellData/{field}", values, f"{name}/CellDataOffsets/{field}")
        return fields

    def finish(self) -> None:
        """Write the times and offsets of all steps."""
        if self._times is None:
            return
        steps = self._group.create_group("Steps")
        steps.attrs["NSteps"] = self._count
        steps["Values"] = np.array(self._times, np.float64)
        for path, values in self._steps.items():
            # Zero boxes in levels that a step does not have.
            all_steps = [values.get(number, 0) for number in range(self._count)]
            steps[path] = np.array(all_steps, np.int64)

    def _changed(self, what: str) -> _core.UnsupportedError:
        return _core.UnsupportedError(
            f"step {self._count}: {what}; steps in VTKHDF have the same fields and attributes: "
            "export the outputs one by one"
        )

    def _set(self, path: str, value: int) -> None:
        """Set a number of the current step."""
        self._steps.setdefault(path, {})[self._count] = value

    def _attribute(self, group: Any, name: str, value: np.ndarray | np.bytes_) -> None:
        """Set an attribute; raises UnsupportedError if an earlier step has another value."""
        if name in group.attrs and not np.array_equal(group.attrs[name], value):
            raise self._changed(f"{name} is {value!r}, in earlier steps {group.attrs[name]!r}")
        group.attrs[name] = value

    def _append(self, path: str, values: np.ndarray, offsets: str) -> None:
        """Append values to a dataset, and set where they begin."""
        if path not in self._group:
            row = values.nbytes // max(1, len(values)) or values.dtype.itemsize
            self._group.create_dataset(
                path,
                shape=(0, *values.shape[1:]),
                dtype=values.dtype,
                maxshape=(None, *values.shape[1:]),
                chunks=(max(1, min(_CHUNK // row, max(1, len(values)))), *values.shape[1:]),
                shuffle=True,
                compression="gzip",
                compression_opts=1,
            )
        dataset = self._group[path]
        if dataset.dtype != values.dtype:
            raise self._changed(f"{path} is {values.dtype}, in earlier steps {dataset.dtype}")
        start = len(dataset)
        dataset.resize(start + len(values), axis=0)
        dataset[start:] = values
        self._set(offsets, start)

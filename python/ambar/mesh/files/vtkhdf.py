"""VTKHDF files of meshes over time, and of overlapping AMR data, written step by step.

The format is VTK's "VTKHDF File Format" 2.4 (docs.vtk.org), for a single AMR object 1.0, which
ParaView 5.11 reads. VTK 9.7 reads all these files; 9.5 does not read steps without points, nor
images of one point in x or y. VTK's own writer does not support images and AMR data, stores times
as float32, and writes constant arrays for each step; here times are float64, and an array that
equals one of an earlier step is not written again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from vtkmodules.vtkCommonDataModel import vtkDataSetAttributes

from ambar import _core
from ambar.interop.vtk_arrays import values_of
from ambar.mesh.files.export_checks import arrays_of
from ambar.mesh.files.pyvista_readers import HDF_TIME
from ambar.mesh.vtk.cells import polyhedron_faces, types_of
from ambar.mesh.vtk.objects import type_of
from ambar.snapshot.interop.vtk_amr import REFINED, blocks_of

_CHUNK = 1 << 20
"""Bytes of a chunk of an HDF5 dataset."""
_TOPOLOGIES = {"Vertices": "Verts", "Lines": "Lines", "Polygons": "Polys", "Strips": "Strips"}
_GRIDS = {5: "XY_PLANE", 6: "YZ_PLANE", 7: "XZ_PLANE"}
"""VTK's numbers of descriptions of grids, except that of three dimensions."""
_GHOSTS = vtkDataSetAttributes.GhostArrayName()


class VtkHdfFile:
    """A VTKHDF file that is being written.

    Parameters
    ----------
    group
        The group ``VTKHDF`` of an open file of h5py.
    times
        The times of the steps that will be added; None for a single AMR object.
    """

    def __init__(self, group: Any, times: Sequence[float] | None) -> None:
        self._group = group
        self.times = times
        self._type = ""
        self.datasets: dict[str, Any] = {}
        self._known: dict[tuple[str, bytes], int] = {}
        self.parts: dict[bytes, dict[str, Any]] = {}
        self._arrays: set[str] | None = None
        self._steps: dict[str, dict[int, Any]] = {}
        self.count = 0

    def add(self, mesh: Any) -> None:
        """Add the next step.

        Raises
        ------
        UnsupportedError
            If the type of the mesh, or a part of it, is not supported.
        """
        name = type_of(mesh)
        name = "ImageData" if name in ("UniformGrid", "StructuredPoints") else name
        if name not in _ADD:
            raise _core.UnsupportedError(
                f"a {name} cannot be written to VTKHDF; supported: {', '.join(_ADD)}"
            )
        if self.count == 0:
            self._type = name
            self._group.attrs["Version"] = np.array([2, 4] if self.times else [1, 0])
            self._group.attrs["Type"] = np.bytes_(name)
        elif name != self._type:
            raise self._changed(f"expected a {self._type}, found a {name}")
        found = _ADD[name](self, mesh)
        if self._arrays is not None and found != self._arrays:
            different = ", ".join(sorted(found ^ self._arrays))
            raise self._changed(f"not every step has the arrays {different}")
        self._arrays = found
        self.count += 1

    def finish(self) -> None:
        """Write the times and offsets of all steps."""
        if self.times is None:
            return
        steps = self._group.create_group("Steps")
        steps.attrs["NSteps"] = self.count
        steps["Values"] = np.array(self.times, np.float64)
        for path, values in self._steps.items():
            # Zero boxes in levels that a step does not have.
            zero = np.zeros_like(next(iter(values.values())))
            all_steps = [values.get(number, zero) for number in range(self.count)]
            steps[path] = np.array(all_steps, np.int64)

    def _changed(self, what: str) -> _core.UnsupportedError:
        return _core.UnsupportedError(
            f"step {self.count}: {what}; steps in VTKHDF have the same arrays and attributes: "
            "export to .pvd, which has a file for each step"
        )

    def step(self, path: str, value: Any) -> None:
        """Set a number, or several, of the current step."""
        self._steps.setdefault(path, {})[self.count] = value

    def attribute(self, group: str, name: str, value: np.ndarray | np.bytes_) -> None:
        """Set an attribute; raises UnsupportedError if an earlier step has another value."""
        attrs = self._group.require_group(group).attrs if group else self._group.attrs
        if name in attrs and not np.array_equal(attrs[name], value):
            raise self._changed(f"{name} is {value!r}, in earlier steps {attrs[name]!r}")
        attrs[name] = value

    def put(self, path: str, values: np.ndarray) -> int:
        """Write values, unless the file has them; return where they begin along the first axis."""
        content = values
        if values.dtype.kind == "O":
            values = _as_bytes(values, path)
            content = np.frombuffer(b"\0".join(values), np.uint8)
        key = path, _digest(content) + str(values.shape).encode()
        if self.times is None or key not in self._known:
            self._known[key] = self.append(path, values)
        return self._known[key]

    def append(self, path: str, values: np.ndarray) -> int:
        """Append values to a dataset, and return where they begin."""
        dataset = self.datasets.get(path)
        if dataset is not None and len(dataset) == 0 and len(values):
            # The dtype of an empty array is arbitrary.
            del self._group[path]
            dataset = None
        if dataset is None:
            row = values.nbytes // max(1, len(values)) or values.dtype.itemsize
            # VTK writes UTF-8 into HDF5's ASCII strings, and reads only these.
            dtype = import_module("h5py").string_dtype("ascii")
            dataset = self._group.create_dataset(
                path,
                data=values,
                dtype=dtype if values.dtype.kind == "O" else values.dtype,
                maxshape=(None, *values.shape[1:]),
                chunks=(max(1, min(_CHUNK // row, max(1, len(values)))), *values.shape[1:]),
                shuffle=True,
                compression="gzip",
                compression_opts=1,
            )
            self.datasets[path] = dataset
            return 0
        if len(values) == 0:
            return 0
        if dataset.dtype != values.dtype or dataset.shape[1:] != values.shape[1:]:
            raise self._changed(
                f"{path} is {values.dtype} of {values.shape[1:]}, in earlier steps "
                f"{dataset.dtype} of {dataset.shape[1:]}"
            )
        start = len(dataset)
        dataset.resize(start + len(values), axis=0)
        dataset[start:] = values
        return start

    def part(self, key: bytes, make: Callable[[int], dict[str, Any]]) -> None:
        """Set the part of the file with the cells of the step; `make` writes a new one."""
        if self.times is None or key not in self.parts:
            made = make(len(self.parts))
            self.parts[key] = made | {"PartOffsets": len(self.parts), "NumberOfParts": 1}
        for path, value in self.parts[key].items():
            self.step(path, value)


def _as_bytes(strings: np.ndarray, path: str) -> np.ndarray:
    """Return strings as bytes; raises UnsupportedError for strings that HDF5 does not support."""
    values = [value.encode() if isinstance(value, str) else value for value in strings.flat]
    if strings.ndim != 1 or any(b"\0" in value for value in values):
        raise _core.UnsupportedError(
            f"{path}: strings of several components, or with a NUL, cannot be written to VTKHDF: "
            "leave the array out"
        )
    return np.array(values, object)


def _fields(
    file: VtkHdfFile, mesh: Any, grid: dict[str, tuple[int, ...]] | None = None
) -> set[str]:
    """Add the arrays of a data set, in the shape `grid`; return their paths."""
    names = set()
    for group, data in (("PointData", mesh.GetPointData()), ("CellData", mesh.GetCellData())):
        for name, (found, role) in arrays_of(data, group).items():
            shape = found.shape if grid is None else (1, *grid[group], *found.shape[1:])
            offset = file.put(f"{group}/{name}", found.reshape(shape))
            file.step(f"{group}Offsets/{name}", offset)
            if role is not None:
                file.attribute(group, role, np.bytes_(name.encode()))
            names.add(f"{group}/{name}")
    return names | _field_data(file, mesh)


def _field_data(file: VtkHdfFile, mesh: Any) -> set[str]:
    """Add the arrays in field data, whose lengths may change; return their paths."""
    names = set()
    for name, (values, _) in arrays_of(mesh.GetFieldData(), "field data", has_strings=True).items():
        if name == HDF_TIME and file.times is not None:
            if values.tolist() == [file.times[file.count]]:
                continue  # VTK's reader adds the array
            raise _core.UnsupportedError(
                f"field data: VTK's reader adds an array named {HDF_TIME!r}: rename the array"
            )
        columns = values.shape[1] if values.ndim == 2 else 1
        file.step(f"FieldDataOffsets/{name}", file.put(f"FieldData/{name}", values))
        file.step(f"FieldDataSizes/{name}", (columns, len(values)))
        names.add(f"FieldData/{name}")
    return names


def _image(file: VtkHdfFile, mesh: Any) -> set[str]:
    extent = np.array(mesh.GetExtent(), np.int64)
    matrix = mesh.GetDirectionMatrix()
    file.attribute("", "WholeExtent", extent)
    file.attribute("", "Origin", np.array(mesh.GetOrigin(), np.float64))
    file.attribute("", "Spacing", np.array(mesh.GetSpacing(), np.float64))
    direction = [matrix.GetElement(i, j) for i in range(3) for j in range(3)]
    file.attribute("", "Direction", np.array(direction, np.float64))
    counts = (extent[1::2] - extent[::2])[::-1].tolist()
    # Dimensions of one point are left out, as VTK's own writer does.
    points = tuple(count + 1 for count in counts if count > 0)
    cells = tuple(count for count in counts if count > 0)
    return _fields(file, mesh, {"PointData": points, "CellData": cells})


def _cells_of(cells: Any, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and corners of cells as int64."""
    if cells is None or cells.GetNumberOfCells() == 0:
        return np.zeros(1, np.int64), np.empty(0, np.int64)
    parts = cells.GetOffsetsArray(), cells.GetConnectivityArray()
    offsets, corners = (values_of(part, where).astype(np.int64) for part in parts)
    return offsets, corners


def _digest(*parts: np.ndarray) -> bytes:
    content = hashlib.blake2b(digest_size=16)
    for part in parts:
        content.update(f"{part.shape}".encode())
        content.update(np.ascontiguousarray(part).data)
    return content.digest()


def _points(file: VtkHdfFile, mesh: Any) -> int:
    """Add the points, and return their number."""
    points = mesh.GetPoints()
    if points is None or points.GetNumberOfPoints() == 0:
        values = np.empty((0, 3), np.float32)
    else:
        values = values_of(points.GetData(), "points")
    file.step("PointOffsets", file.put("Points", values))
    return len(values)


def _unstructured(file: VtkHdfFile, mesh: Any) -> set[str]:
    if polyhedron_faces(mesh, "cells"):
        raise _core.UnsupportedError(
            "polyhedra over time cannot be written to VTKHDF: export to .pvd, or a single step"
        )
    count = _points(file, mesh)
    offsets, corners = _cells_of(mesh.GetCells(), "cells")
    types = types_of(mesh, "types")

    def make(_: int) -> dict[str, Any]:
        file.append("NumberOfPoints", np.array([count]))
        file.append("NumberOfCells", np.array([len(types)]))
        file.append("NumberOfConnectivityIds", np.array([len(corners)]))
        file.append("Offsets", offsets)
        return {
            "CellOffsets": file.append("Types", types),
            "ConnectivityIdOffsets": file.append("Connectivity", corners),
        }

    # If only the points move, the cells are not written again.
    file.part(_digest(np.array(count), offsets, corners, types), make)
    return _fields(file, mesh)


def _poly(file: VtkHdfFile, mesh: Any) -> set[str]:
    count = _points(file, mesh)
    cells = {
        name: _cells_of(getattr(mesh, f"Get{vtk_name}")(), name)
        for name, vtk_name in _TOPOLOGIES.items()
    }
    known = [len(file.datasets[f"{name}/Offsets"]) for name in cells if file.parts]

    def make(part: int) -> dict[str, Any]:
        file.append("NumberOfPoints", np.array([count]))
        cell_starts, starts = [], []
        for number, (name, (offsets, corners)) in enumerate(cells.items()):
            before = file.datasets[f"{name}/NumberOfCells"][:part] if part else np.empty(0, int)
            cells_start, padding = _cell_offset(
                before, known[number] if part else 0, len(offsets) - 1
            )
            if len(offsets) > 1 or not part:
                file.append(f"{name}/Offsets", np.zeros(padding, np.int64))
                file.append(f"{name}/Offsets", offsets)
            cell_starts.append(cells_start)
            starts.append(file.append(f"{name}/Connectivity", corners))
            file.append(f"{name}/NumberOfCells", np.array([len(offsets) - 1]))
            file.append(f"{name}/NumberOfConnectivityIds", np.array([len(corners)]))
        return {"CellOffsets": cell_starts, "ConnectivityIdOffsets": starts}

    file.part(_digest(np.array(count), *(part for pair in cells.values() for part in pair)), make)
    return _fields(file, mesh)


def _cell_offset(before: np.ndarray, length: int, count: int) -> tuple[int, int]:
    """Return the cell offset at which VTK's reader finds a part's offsets, and zeros before them.

    `before` has the numbers of cells of the earlier parts, `length` is the length of their offsets.
    The reader adds one to the cell offset for each part, until these parts have as many cells. So
    parts without cells move the place where it begins.
    """
    if not len(before) or count == 0:  # without cells the reader uses a single zero of any place
        return 0, 0
    sums = np.concatenate([[0], np.cumsum(before)])
    offset = max(0, length - len(before))
    while True:
        begins = offset + min(int(np.searchsorted(sums, offset)), len(before))
        if begins >= length:
            return offset, begins - length
        offset += 1


def _amr(file: VtkHdfFile, mesh: Any) -> set[str]:
    origin = np.zeros(3)
    is_new = hasattr(mesh, "GetOverlappingAMRMetaData")  # from VTK 9.6 on
    (mesh.GetOverlappingAMRMetaData() if is_new else mesh.GetAMRInfo()).GetOrigin(origin)
    file.attribute("", "Origin", origin)
    grid = _GRIDS.get(int(mesh.GetGridDescription()), "XYZ_GRID")
    file.attribute("", "GridDescription", np.bytes_(grid))
    names: set[str] = set()
    for level in range(mesh.GetNumberOfLevels()):
        group, spacing = f"Level{level}", np.zeros(3)
        mesh.GetSpacing(level, spacing)
        file.attribute(group, "Spacing", spacing)
        blocks = blocks_of(mesh, level)
        boxes = np.zeros((len(blocks), 6), np.int32)
        for index, block in enumerate(blocks):
            corners = [0] * 6
            mesh.GetAMRBox(level, index).GetDimensions(corners)
            boxes[index] = corners
            if block is None:
                raise _core.UnsupportedError(
                    f"level {level}: block {index} does not exist; VTKHDF has values for every box"
                )
        file.step(f"{group}/AMRBoxOffsets", file.put(f"{group}/AMRBox", boxes))
        file.step(f"{group}/NumberOfAMRBoxes", len(blocks))
        names |= _blocks(file, group, blocks)
    if file.times is None:
        _field_data(file, mesh)
    elif mesh.GetFieldData().GetNumberOfArrays():
        raise _core.UnsupportedError(
            "field data of AMR data over time cannot be written to VTKHDF, because VTK's reader "
            "joins those of all steps: leave them out"
        )
    return names


def _blocks(file: VtkHdfFile, group: str, blocks: list[Any]) -> set[str]:
    """Add the arrays of the blocks of a level, end to end; return their paths."""
    names: set[str] = set()
    for of, get in (("PointData", "GetPointData"), ("CellData", "GetCellData")):
        found = [arrays_of(getattr(block, get)(), f"{group} {of}") for block in blocks]
        for ghosts, _ in (arrays.pop(_GHOSTS) for arrays in found if _GHOSTS in arrays):
            if (ghosts & ~np.uint8(REFINED)).any():
                raise _core.UnsupportedError(
                    f"{group}: {_GHOSTS} has other flags than REFINEDCELL, which VTKHDF does not "
                    "support in AMR data: leave the array out"
                )
        if any(arrays.keys() != found[0].keys() for arrays in found):
            raise _core.UnsupportedError(f"{group}: not every block has the same arrays on {of}")
        for name in found[0] if found else ():
            values = np.concatenate([arrays[name][0] for arrays in found])
            offset = file.put(f"{group}/{of}/{name}", values)
            file.step(f"{group}/{of}Offsets/{name}", offset)
            names.add(f"{of}/{name}")
    return names


_ADD: dict[str, Callable[[VtkHdfFile, Any], set[str]]] = {
    "ImageData": _image,
    "UnstructuredGrid": _unstructured,
    "PolyData": _poly,
    "OverlappingAMR": _amr,
}

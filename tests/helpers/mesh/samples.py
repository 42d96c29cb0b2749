"""VTK objects of every type, with every kind of array, to write and to read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyvista as pv
from vtkmodules import vtkCommonCore, vtkCommonDataModel
from vtkmodules.util.numpy_support import numpy_to_vtk

DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
VTK_ARRAYS = [
    "vtkCharArray",
    "vtkSignedCharArray",
    "vtkUnsignedCharArray",
    "vtkShortArray",
    "vtkUnsignedShortArray",
    "vtkIntArray",
    "vtkUnsignedIntArray",
    "vtkLongArray",
    "vtkUnsignedLongArray",
    "vtkLongLongArray",
    "vtkUnsignedLongLongArray",
    "vtkIdTypeArray",
    "vtkFloatArray",
    "vtkDoubleArray",
]


def with_every_array(mesh: Any, seed: int = 0) -> Any:
    """Add arrays of all kinds to the points, the cells and the whole of a mesh; return it."""
    rng = np.random.default_rng(seed)
    for data, count in (
        (mesh.GetPointData(), mesh.GetNumberOfPoints()),
        (mesh.GetCellData(), mesh.GetNumberOfCells()),
        (mesh.GetFieldData(), 7),
    ):
        for array in every_array(count, rng):
            data.AddArray(array)
    for data in (mesh.GetPointData(), mesh.GetCellData()):
        data.SetActiveScalars("vtkDoubleArray")
        data.SetActiveVectors("vectors")
        data.SetActiveNormals("normals")
        data.SetActiveTCoords("uv")
        data.SetActiveTensors("tensors")
        data.SetActiveGlobalIds("vtkIdTypeArray")
        data.SetActivePedigreeIds("names")
    mesh.GetInformation().Set(vtkCommonDataModel.vtkDataObject.DATA_TIME_STEP(), 0.1)
    return mesh


def every_array(count: int, rng: np.random.Generator) -> list[Any]:
    """Return VTK arrays of every type, of `count` tuples."""
    arrays = []
    for name in VTK_ARRAYS:
        array = getattr(vtkCommonCore, name)()
        array.SetName(name)
        array.SetNumberOfTuples(count)
        if count:
            memory = np.frombuffer(array, np.uint8)
            memory[:] = rng.integers(0, 256, memory.size, np.uint8)  # payloads of NaN, too
        arrays.append(array)
    for name, components in (("vectors", 3), ("normals", 3), ("uv", 2), ("tensors", 9)):
        array = numpy_to_vtk(rng.random((count, components)), deep=1)
        array.SetName(name)
        arrays.append(array)
    arrays[-4].SetComponentName(0, "x")
    arrays[-4].SetComponentName(2, "β/z")
    arrays[-4].GetInformation().Set(vtkCommonCore.vtkDataArray.UNITS_LABEL(), "m/s")
    bits = vtkCommonCore.vtkBitArray()
    bits.SetName("bits of two components")
    bits.SetNumberOfComponents(2)
    bits.SetNumberOfTuples(count)
    for index in range(2 * count):
        bits.SetValue(index, int(rng.integers(2)))
    names = vtkCommonCore.vtkStringArray()
    names.SetName("names")
    names.SetNumberOfTuples(count)
    for index in range(count):
        names.SetValue(index, f"žluť {index}" if index % 3 else "")
    ghosts = vtkCommonCore.vtkUnsignedCharArray()
    ghosts.SetName("vtkGhostType")
    ghosts.SetNumberOfTuples(count)
    for index in range(count):
        ghosts.SetValue(index, 32 if index % 5 == 0 else 0)
    nameless = vtkCommonCore.vtkFloatArray()
    nameless.SetNumberOfTuples(count)
    nameless.Fill(1.5)
    return [*arrays, bits, names, ghosts, nameless]


def image() -> Any:
    mesh = vtkCommonDataModel.vtkImageData()
    mesh.SetExtent(-1, 3, 2, 5, 0, 2)
    mesh.SetOrigin(0.1, -2.5, 1e300)
    mesh.SetSpacing(1 / 3, 2, 1e-9)
    mesh.SetDirectionMatrix([0, -1, 0, 1, 0, 0, 0, 0, 1])
    return mesh


def flat_image() -> Any:
    mesh = vtkCommonDataModel.vtkImageData()
    mesh.SetDimensions(4, 1, 3)
    return mesh


def rectilinear() -> Any:
    mesh = pv.RectilinearGrid(np.array([0, 1, 4.0]), np.arange(4.0) ** 3, np.array([2.5, 3]))
    mesh.SetExtent(2, 4, 1, 4, -1, 0)
    return mesh


def structured() -> Any:
    z, y, x = np.mgrid[0:3, 0:4, 0:5].astype(np.float32)
    mesh = vtkCommonDataModel.vtkStructuredGrid()
    mesh.SetExtent(0, 4, 1, 4, 2, 4)
    points = vtkCommonCore.vtkPoints()
    xyz = np.stack([x + z / 7, y * y, z], axis=-1).reshape(-1, 3)
    points.SetData(numpy_to_vtk(xyz, deep=1))
    mesh.SetPoints(points)
    return mesh


def explicit() -> Any:
    ni, nj, nk = 4, 5, 3
    grid = pv.ImageData(dimensions=(ni, nj, nk)).cast_to_structured_grid()
    return grid.cast_to_explicit_structured_grid().hide_cells([1, 5])


def poly() -> Any:
    """Verts, lines, strips and polygons of several sizes."""
    mesh = vtkCommonDataModel.vtkPolyData()
    points = vtkCommonCore.vtkPoints()
    points.SetDataTypeToDouble()
    for index in range(12):
        points.InsertNextPoint(index / 7, index**2, -index)
    mesh.SetPoints(points)
    for put, cells in (
        (mesh.SetVerts, [[0], [3], [5, 6]]),
        (mesh.SetLines, [[0, 1, 2, 3], [4, 5]]),
        (mesh.SetPolys, [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9], [1, 2, 3, 4, 5, 6]]),
        (mesh.SetStrips, [[0, 1, 2, 3, 4], [5, 6, 7, 8]]),
    ):
        array = vtkCommonDataModel.vtkCellArray()
        for cell in cells:
            array.InsertNextCell(len(cell), cell)
        put(array)
    return mesh


def many_sizes() -> Any:
    """Polygons of more sizes than have arrays of their own."""
    mesh = vtkCommonDataModel.vtkPolyData()
    points = vtkCommonCore.vtkPoints()
    for index in range(40):
        points.InsertNextPoint(np.cos(index), np.sin(index), 0)
    mesh.SetPoints(points)
    polygons = vtkCommonDataModel.vtkCellArray()
    for size in [*range(3, 40), 5, 7]:
        polygons.InsertNextCell(size, list(range(size)))
    mesh.SetPolys(polygons)
    return mesh


def sphere() -> Any:
    return pv.Sphere(theta_resolution=60, phi_resolution=60)


def tetrahedra() -> Any:
    return pv.ImageData(dimensions=(14, 13, 12)).to_tetrahedra()


def tetrahedra_of_32_bits() -> Any:
    mesh = tetrahedra().copy()
    cells = vtkCommonDataModel.vtkCellArray()
    cells.DeepCopy(mesh.GetCells())
    cells.ConvertTo32BitStorage()
    mesh.SetCells(10, cells)
    return mesh


def mixed() -> Any:
    """Tetrahedra, hexahedra, polygons and vertices in no order."""
    rng = np.random.default_rng(1)
    mesh = vtkCommonDataModel.vtkUnstructuredGrid()
    points = vtkCommonCore.vtkPoints()
    for _ in range(50):
        points.InsertNextPoint(*rng.random(3))
    mesh.SetPoints(points)
    for _ in range(400):
        kind, size = [(10, 4), (12, 8), (7, int(rng.integers(3, 9))), (1, 1), (0, 0)][
            rng.integers(5)
        ]
        mesh.InsertNextCell(kind, size, rng.integers(0, 50, size).tolist())
    return mesh


def quadratic() -> Any:
    """Cells of several types, each of one size."""
    rng = np.random.default_rng(2)
    mesh = vtkCommonDataModel.vtkUnstructuredGrid()
    points = vtkCommonCore.vtkPoints()
    for _ in range(30):
        points.InsertNextPoint(*rng.random(3))
    mesh.SetPoints(points)
    for _ in range(300):
        kind, size = [(24, 10), (25, 20), (13, 6)][rng.integers(3)]
        mesh.InsertNextCell(kind, size, rng.integers(0, 30, size).tolist())
    return mesh


def polyhedra() -> Any:
    """Two polyhedra and a tetrahedron between them."""
    mesh = vtkCommonDataModel.vtkUnstructuredGrid()
    points = vtkCommonCore.vtkPoints()
    for xyz in np.ndindex(2, 2, 3):
        points.InsertNextPoint(*xyz)
    mesh.SetPoints(points)
    faces = [4, 3, 0, 1, 2, 3, 0, 1, 6, 3, 1, 2, 6, 3, 0, 2, 6]
    stream = vtkCommonCore.vtkIdList()
    for value in faces:
        stream.InsertNextId(value)
    mesh.InsertNextCell(42, stream)
    mesh.InsertNextCell(10, 4, [0, 3, 4, 5])
    second = vtkCommonCore.vtkIdList()
    for value in [4, 4, 6, 7, 10, 9, 3, 6, 7, 11, 3, 7, 10, 11, 4, 9, 10, 11, 6]:
        second.InsertNextId(value)
    mesh.InsertNextCell(42, second)
    return mesh


def point_set() -> Any:
    return pv.PointSet(np.random.default_rng(3).random((20, 3)))


def table() -> Any:
    mesh = vtkCommonDataModel.vtkTable()
    for array in every_array(9, np.random.default_rng(4)):
        if array.GetName():
            mesh.AddColumn(array)
    return mesh


def blocks() -> Any:
    """Nested blocks with names, None, and arrays on the whole."""
    inner = pv.MultiBlock({"an image": with_every_array(image()), "nothing": None})
    outer = pv.MultiBlock([sphere(), None, inner, pv.MultiBlock()])
    outer.set_block_name(0, "žluť / sphere")
    outer.field_data["sizes"] = np.arange(5)
    inner.field_data["text"] = ["a", "bc"]
    return outer


def raw_blocks() -> Any:
    """VTK's own multi-block, with information that PyVista knows nothing of."""
    mesh = vtkCommonDataModel.vtkMultiBlockDataSet()
    mesh.SetNumberOfBlocks(3)
    pieces = vtkCommonDataModel.vtkMultiPieceDataSet()
    pieces.SetNumberOfPieces(2)
    pieces.SetPiece(1, poly())
    mesh.SetBlock(0, pieces)
    mesh.SetBlock(2, table())
    mesh.GetMetaData(2).Set(vtkCommonDataModel.vtkCompositeDataSet.NAME(), "a table")
    mesh.GetMetaData(1).Set(vtkCommonDataModel.vtkCompositeDataSet.NAME(), "nothing")
    return mesh


def partitioned() -> Any:
    mesh = vtkCommonDataModel.vtkPartitionedDataSet()
    mesh.SetNumberOfPartitions(3)
    mesh.SetPartition(0, tetrahedra())
    mesh.SetPartition(2, with_every_array(poly()))
    return mesh


def collection() -> Any:
    mesh = vtkCommonDataModel.vtkPartitionedDataSetCollection()
    mesh.SetNumberOfPartitionedDataSets(2)
    mesh.SetPartitionedDataSet(0, partitioned())
    mesh.GetMetaData(0).Set(vtkCommonDataModel.vtkCompositeDataSet.NAME(), "parts")
    assembly = vtkCommonDataModel.vtkDataAssembly()
    assembly.SetRootNodeName("root")
    node = assembly.AddNode("fluid")
    assembly.AddDataSetIndex(node, 0)
    assembly.SetAttribute(node, "name", "žluť")
    mesh.SetDataAssembly(assembly)
    return mesh


DATASETS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (
        image,
        flat_image,
        rectilinear,
        structured,
        explicit,
        poly,
        many_sizes,
        sphere,
        tetrahedra,
        tetrahedra_of_32_bits,
        mixed,
        quadratic,
        polyhedra,
        point_set,
    )
}
OTHERS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (
        table,
        blocks,
        raw_blocks,
        partitioned,
        collection,
    )
}
TYPES = [
    "ImageData",
    "UniformGrid",
    "StructuredPoints",
    "RectilinearGrid",
    "StructuredGrid",
    "ExplicitStructuredGrid",
    "PolyData",
    "UnstructuredGrid",
    "PointSet",
    "Table",
    "MultiBlockDataSet",
    "MultiPieceDataSet",
    "PartitionedDataSet",
    "PartitionedDataSetCollection",
]

CELLS = [
    "poly",
    "many_sizes",
    "sphere",
    "tetrahedra",
    "tetrahedra_of_32_bits",
    "mixed",
    "quadratic",
    "polyhedra",
]
"""The samples whose cells may have any order."""

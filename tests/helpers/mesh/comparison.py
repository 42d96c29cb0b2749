"""Compares VTK's objects by VTK's own means: values bit by bit, cells one by one, and all flags."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkIdList, vtkInformationIterator
from vtkmodules.vtkCommonDataModel import vtkDataObjectTypes, vtkDataSetAttributes

COMPOSITES = {
    "vtkMultiBlockDataSet": ("GetNumberOfBlocks", "GetBlock"),
    "vtkMultiPieceDataSet": ("GetNumberOfPieces", "GetPieceAsDataObject"),
    "vtkPartitionedDataSet": ("GetNumberOfPartitions", "GetPartitionAsDataObject"),
    "vtkPartitionedDataSetCollection": (
        "GetNumberOfPartitionedDataSets",
        "GetPartitionedDataSet",
    ),
}

_PIPELINE = (
    "DATA_EXTENT_TYPE",
    "DATA_PIECE_NUMBER",
    "DATA_NUMBER_OF_PIECES",
    "DATA_NUMBER_OF_GHOST_LEVELS",
)


def type_of(mesh: Any) -> str:
    return str(vtkDataObjectTypes.GetClassNameFromTypeId(mesh.GetDataObjectType()))


def assert_same(one: Any, two: Any, where: str = "mesh") -> None:
    """Raise AssertionError, saying where, if two VTK objects differ in anything."""
    assert (one is None) == (two is None), where
    if one is None:
        return
    kind = type_of(one)
    assert kind == type_of(two), where
    if kind in COMPOSITES:
        _same_blocks(one, two, COMPOSITES[kind], where)
    elif kind == "vtkTable":
        _same_fields(one.GetRowData(), two.GetRowData(), f"{where} row data")
    else:
        _same_geometry(one, two, where)
        _same_cells(one, two, where)
        _same_storage(one, two, where)
        _same_fields(one.GetPointData(), two.GetPointData(), f"{where} point data")
        _same_fields(one.GetCellData(), two.GetCellData(), f"{where} cell data")
    _same_fields(one.GetFieldData(), two.GetFieldData(), f"{where} field data")
    assert _information(one.GetInformation()) == _information(two.GetInformation()), where


def _same_blocks(one: Any, two: Any, names: tuple[str, str], where: str) -> None:
    counts = [getattr(mesh, names[0])() for mesh in (one, two)]
    assert counts[0] == counts[1], where
    for index in range(counts[0]):
        at = f"{where}/{index}"
        assert one.HasMetaData(index) == two.HasMetaData(index), at
        if one.HasMetaData(index):
            assert _information(one.GetMetaData(index)) == _information(two.GetMetaData(index)), at
        assert_same(getattr(one, names[1])(index), getattr(two, names[1])(index), at)
    if hasattr(one, "GetDataAssembly") and one.GetDataAssembly():
        trees = [mesh.GetDataAssembly().SerializeToXML(_indent()) for mesh in (one, two)]
        assert trees[0] == trees[1], where


def _indent() -> Any:
    from vtkmodules.vtkCommonCore import vtkIndent

    return vtkIndent()


def _same_geometry(one: Any, two: Any, where: str) -> None:
    assert one.GetNumberOfPoints() == two.GetNumberOfPoints(), where
    for index in range(one.GetNumberOfPoints()):
        points = np.array([one.GetPoint(index), two.GetPoint(index)])
        assert points[0].tobytes() == points[1].tobytes(), f"{where} point {index}"
    for name in ("Origin", "Spacing", "Extent"):
        getter = getattr(one, f"Get{name}", None)
        sized = type_of(one) != "vtkExplicitStructuredGrid" or one.GetNumberOfPoints()
        if getter is not None and sized and type_of(one) != "vtkPolyData":
            assert tuple(getter()) == tuple(getattr(two, f"Get{name}")()), f"{where} {name}"
    if hasattr(one, "GetDirectionMatrix"):
        matrices = [
            [mesh.GetDirectionMatrix().GetElement(i, j) for i in range(3) for j in range(3)]
            for mesh in (one, two)
        ]
        assert matrices[0] == matrices[1], where
    for axis in "XYZ":
        if hasattr(one, f"Get{axis}Coordinates"):
            first, second = (getattr(mesh, f"Get{axis}Coordinates")() for mesh in (one, two))
            assert_same_array(first, second, f"{where} {axis}")
    if hasattr(one, "GetPoints") and hasattr(one, "SetPoints"):
        assert (one.GetPoints() is None) == (two.GetPoints() is None), where
        if one.GetPoints() is not None:
            assert_same_array(one.GetPoints().GetData(), two.GetPoints().GetData(), where)


def _same_cells(one: Any, two: Any, where: str) -> None:
    if type_of(one) == "vtkExplicitStructuredGrid" and one.GetNumberOfPoints() == 0:
        return
    assert one.GetNumberOfCells() == two.GetNumberOfCells(), where
    ids = vtkIdList(), vtkIdList()
    for index in range(one.GetNumberOfCells()):
        at = f"{where} cell {index}"
        assert one.GetCellType(index) == two.GetCellType(index), at
        one.GetCellPoints(index, ids[0])
        two.GetCellPoints(index, ids[1])
        corners = [[each.GetId(i) for i in range(each.GetNumberOfIds())] for each in ids]
        assert corners[0] == corners[1], at
        if one.GetCellType(index) == 42:  # a polyhedron
            faces = [_faces(mesh.GetCell(index)) for mesh in (one, two)]
            assert faces[0] == faces[1], at


def _faces(cell: Any) -> list[list[int]]:
    found = []
    for number in range(cell.GetNumberOfFaces()):
        face = cell.GetFace(number)
        found.append([face.GetPointId(i) for i in range(face.GetNumberOfPoints())])
    return found


def _same_storage(one: Any, two: Any, where: str) -> None:
    """The arrays of cells are of the same bytes in both."""
    for name in ("Cells", "Verts", "Lines", "Polys", "Strips", "PolyhedronFaces"):
        cells: list[Any] = [getattr(mesh, f"Get{name}", lambda: None)() for mesh in (one, two)]
        if any(each is None or not hasattr(each, "GetConnectivityArray") for each in cells):
            continue
        if not cells[0].GetNumberOfCells():
            continue
        # Before VTK 9.6, the type of the storage is that of its arrays, which are compared below.
        storage = [getattr(each, "GetStorageType", each.IsStorage64Bit)() for each in cells]
        assert storage[0] == storage[1], f"{where} {name}"
        for part in ("GetConnectivityArray", "GetOffsetsArray"):
            values = [np.asarray(getattr(each, part)()) for each in cells]
            assert values[0].dtype == values[1].dtype, f"{where} {name}"
            assert values[0].tobytes() == values[1].tobytes(), f"{where} {name}"


def _same_fields(one: Any, two: Any, where: str) -> None:
    assert one.GetNumberOfArrays() == two.GetNumberOfArrays(), where
    for index in range(one.GetNumberOfArrays()):
        arrays = one.GetAbstractArray(index), two.GetAbstractArray(index)
        assert_same_array(*arrays, f"{where} {arrays[0].GetName()!r}")
    if isinstance(one, vtkDataSetAttributes):
        for role in range(vtkDataSetAttributes.NUM_ATTRIBUTES):
            active = [each.GetAbstractAttribute(role) for each in (one, two)]
            assert (active[0] is None) == (active[1] is None), f"{where} role {role}"
            if active[0] is not None:
                assert active[0].GetName() == active[1].GetName(), f"{where} role {role}"


def assert_same_array(one: Any, two: Any, where: str) -> None:
    """Raise AssertionError if two VTK arrays differ in a bit, in type, names or information."""
    assert (one is None) == (two is None), where
    if one is None:
        return
    assert one.GetName() == two.GetName(), where
    assert one.GetDataType() == two.GetDataType(), where
    shapes = [(each.GetNumberOfTuples(), each.GetNumberOfComponents()) for each in (one, two)]
    assert shapes[0] == shapes[1], where
    names = [
        [each.GetComponentName(i) for i in range(each.GetNumberOfComponents())]
        for each in (one, two)
    ]
    assert names[0] == names[1], where
    assert _information(one.GetInformation()) == _information(two.GetInformation()), where
    count = one.GetNumberOfValues()
    if one.GetDataType() in (1, 13):  # bits, strings
        values = [[each.GetValue(i) for i in range(count)] for each in (one, two)]
        assert values[0] == values[1], where
    elif count:
        # VTK before 9.6 has no other arrays than those.
        plain = [getattr(each, "ToAOSDataArray", lambda each=each: each)() for each in (one, two)]
        plain = [np.frombuffer(each, np.uint8).tobytes() for each in plain]
        assert plain[0] == plain[1], where


def _information(information: Any) -> dict[str, Any]:
    """Return the numbers and strings of an information, except those of caches and pipelines."""
    found: dict[str, Any] = {}
    walk = vtkInformationIterator()
    walk.SetInformation(information)
    walk.InitTraversal()
    while not walk.IsDoneWithTraversal():
        key = walk.GetCurrentKey()
        name, kind = key.GetName(), type(key).__name__
        if not name.endswith("_RANGE") and name not in _PIPELINE:
            if kind.endswith(("StringVectorKey", "DoubleVectorKey", "IntegerVectorKey")):
                size = information.Length(key)
                found[name] = [information.Get(key, i) for i in range(size)]
            elif kind.endswith(("StringKey", "DoubleKey", "IntegerKey", "IdTypeKey")):
                found[name] = information.Get(key)
        walk.GoToNextItem()
    return found

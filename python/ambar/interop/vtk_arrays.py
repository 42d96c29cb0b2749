"""VTK's arrays as NumPy arrays and back, without copies where memory allows."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkAbstractArray, vtkBitArray, vtkDataArray, vtkStringArray

from ambar import _core

# VTK's types by their numbers: their names in stores, and the dtype each has on this machine.
_BIT, _STRING = 1, 13
_NAMES = {
    _BIT: "bit",
    2: "char",
    15: "signed char",
    3: "unsigned char",
    4: "short",
    5: "unsigned short",
    6: "int",
    7: "unsigned int",
    8: "long",
    9: "unsigned long",
    10: "float",
    11: "double",
    12: "id type",
    _STRING: "string",
    16: "long long",
    17: "unsigned long long",
}
_CODES = {name: code for code, name in _NAMES.items()}
_LONG = 8 * np.dtype("long").itemsize
_DTYPE_NAMES = {
    2: "int8",  # where char is unsigned VTK has signed values all the same, as NumPy sees them
    3: "uint8",
    4: "int16",
    5: "uint16",
    6: "int32",
    7: "uint32",
    8: f"int{_LONG}",
    9: f"uint{_LONG}",
    10: "float32",
    11: "float64",
    12: "int64",
    15: "int8",
    16: "int64",
    17: "uint64",
}
_DTYPES = {code: np.dtype(name) for code, name in _DTYPE_NAMES.items()}
# The type of an array that has no name of it in a store.
_USUAL = {
    np.dtype("int8"): 15,
    np.dtype("uint8"): 3,
    np.dtype("int16"): 4,
    np.dtype("uint16"): 5,
    np.dtype("int32"): 6,
    np.dtype("uint32"): 7,
    np.dtype("int64"): 8 if _LONG == 64 else 16,
    np.dtype("uint64"): 9 if _LONG == 64 else 17,
    np.dtype("float32"): 10,
    np.dtype("float64"): 11,
}
_COPIED = 1 << 16
"""Bytes up to which values are copied."""
_OWNED_BY_BUFFERS = hasattr(vtkDataArray.CreateDataArray(_CODES["double"]), "GetBuffer")
"""Whether Python can attach the owner of memory to VTK's buffer of it, as from VTK 9.6 on.

Before, an owner can only be attached to the array. VTK shares buffers among arrays in C++, in
`ShallowCopy` and in `vtkCellArray.SetData`, so that a buffer outlives the array and its owner.
"""


def values_of(array: Any, where: str) -> np.ndarray:
    """Return the values of a VTK array: (tuples,) or, of several components, (tuples, components).

    Numbers share VTK's memory where it holds them one behind the other; bits are bools, strings
    objects (bytes where one of them is not UTF-8).

    Raises
    ------
    UnsupportedError
        If it is an array of variants or of other objects.
    """
    code = array.GetDataType()
    tuples, components = array.GetNumberOfTuples(), array.GetNumberOfComponents()
    shape = (tuples,) if components == 1 else (tuples, components)
    if code == _BIT:
        packed = np.frombuffer(array, np.uint8) if tuples * components else np.empty(0, np.uint8)
        return np.unpackbits(packed, count=tuples * components).astype(bool).reshape(shape)
    if code == _STRING:
        return _strings(array, tuples * components).reshape(shape)
    if code not in _DTYPES:
        raise _core.UnsupportedError(
            f"{where}: values of {array.GetClassName()} cannot be stored; numbers, bits and "
            "strings can: convert the array, or remove it"
        )
    if tuples * components == 0:
        return np.empty(shape, _DTYPES[code])
    dtype = _DTYPES[code]
    try:
        flat = np.frombuffer(array, dtype)
    except (TypeError, ValueError):  # computed on the fly, or a component at a time
        plain: Any = vtkDataArray.CreateDataArray(code)
        plain.DeepCopy(array)
        flat = np.frombuffer(plain, dtype)
    return flat.reshape(shape)


def _strings(array: Any, count: int) -> np.ndarray:
    values = [array.GetValue(i) for i in range(count)]
    if any(isinstance(value, bytes) for value in values):
        values = [value.encode() if isinstance(value, str) else value for value in values]
    out = np.empty(count, dtype=object)
    out[:] = values
    return out


def type_name(array: Any, values: np.ndarray) -> str | None:
    """Return VTK's name of the array's type, None if it follows from the dtype of its values."""
    code = array.GetDataType()
    if code in (_BIT, _STRING):
        return None
    return None if code == _USUAL[values.dtype] else _NAMES[code]


def array_of(values: np.ndarray, type_name: str | None = None) -> Any:
    """Return a VTK array of `values` (tuples,) or (tuples, components).

    It takes the memory of numbers over, without a copy, if they lie in C order.
    """
    if values.dtype == bool:
        return _bits(values)
    if values.dtype.kind == "O":
        return _string_array(values)
    code = _CODES.get(type_name or "", 0)
    if code not in _DTYPES or _DTYPES[code] != values.dtype:
        code = _USUAL[values.dtype]
    return adopted(values, code)


def adopted(values: np.ndarray, code: int) -> Any:
    """Return a VTK array of type number `code` with the values of `values`.

    Where VTK allows it, large arrays share memory with `values` and keep it alive. All others are
    copied. This is VTK's `numpy_to_vtk` without its checks, which dominate for the small arrays of
    many blocks.
    """
    array: Any = vtkDataArray.CreateDataArray(code)
    array.SetNumberOfComponents(_components(values))
    if values.nbytes < _COPIED or not _OWNED_BY_BUFFERS:
        array.SetNumberOfTuples(len(values))
        if values.size:
            np.frombuffer(array, values.dtype)[:] = values.reshape(-1)
        return array
    flat = np.ascontiguousarray(values).reshape(-1)
    array.SetVoidArray(flat, flat.size, 1)
    array.GetBuffer()._numpy_reference = flat  # the attribute that numpy_to_vtk uses
    return array


def _bits(values: np.ndarray) -> Any:
    array: Any = vtkBitArray()
    array.SetNumberOfComponents(_components(values))
    array.SetNumberOfTuples(len(values))
    if values.size:
        np.frombuffer(array, np.uint8)[: (values.size + 7) // 8] = np.packbits(values)
    return array


def _string_array(values: np.ndarray) -> Any:
    array = vtkStringArray()
    array.SetNumberOfComponents(_components(values))
    array.SetNumberOfTuples(len(values))
    for index, value in enumerate(values.ravel().tolist()):
        array.SetValue(index, value)
    return array


def _components(values: np.ndarray) -> int:
    return values.shape[1] if values.ndim == 2 else 1


def component_names(array: Any) -> list[str | None] | None:
    """Return the names of the components, None if there are none."""
    if not array.HasAComponentName():
        return None
    return [array.GetComponentName(i) for i in range(array.GetNumberOfComponents())]


def name_components(array: vtkAbstractArray, names: list[str | None]) -> None:
    """Give the components of a VTK array their names."""
    for index, name in enumerate(names):
        if name is not None:
            array.SetComponentName(index, name)

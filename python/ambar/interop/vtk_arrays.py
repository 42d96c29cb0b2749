"""VTK arrays as NumPy arrays and back, without copies if VTK can share the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from vtkmodules.vtkCommonCore import vtkAbstractArray, vtkBitArray, vtkDataArray, vtkStringArray

from ambar import _core

_BIT, _STRING = 1, 13
"""VTK's numbers of types whose values are not numbers."""
_LONG = f"{8 * np.dtype('long').itemsize}"
# VTK's number of a type, its name in stores, and the dtype of its values on this machine.
_TYPES = (
    (15, "signed char", "int8"),
    (3, "unsigned char", "uint8"),
    (4, "short", "int16"),
    (5, "unsigned short", "uint16"),
    (6, "int", "int32"),
    (7, "unsigned int", "uint32"),
    (8, "long", f"int{_LONG}"),
    (9, "unsigned long", f"uint{_LONG}"),
    (16, "long long", "int64"),
    (17, "unsigned long long", "uint64"),
    (10, "float", "float32"),
    (11, "double", "float64"),
    (2, "char", "int8"),  # signed in Python, also on machines where char is unsigned
    (12, "id type", "int64"),
)
_NAMES = {code: name for code, name, _ in _TYPES}
_CODES = {name: code for code, name in _NAMES.items()}
_DTYPES = {code: np.dtype(dtype) for code, _, dtype in _TYPES}
# The default type of each dtype, whose name stores omit: the first one in the table.
_DEFAULTS = {dtype: code for code, dtype in reversed(_DTYPES.items())}
_COPIED = 1 << 16
"""Bytes up to which values are copied."""
_OWNED_BY_BUFFERS = hasattr(vtkDataArray.CreateDataArray(_CODES["double"]), "GetBuffer")
"""Whether Python can attach the owner of memory to VTK's buffer: from VTK 9.6 on.

Earlier versions can attach an owner only to the array. VTK shares buffers among arrays in C++, in
`ShallowCopy` and in `vtkCellArray.SetData`, so a buffer may outlive its array and its owner.
"""


def values_of(array: Any, where: str) -> np.ndarray:
    """Return the values of a VTK array: (tuples,), or (tuples, components) if there are several.

    Numbers share VTK's memory if it is contiguous. Bits become bools. Strings become objects: str,
    or bytes if one of them is not UTF-8.

    Raises
    ------
    UnsupportedError
        If the values are variants or other objects.
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
            f"{where}: expected an array of numbers, bits or strings, found a "
            f"{array.GetClassName()}; convert the array, or remove it"
        )
    if tuples * components == 0:
        return np.empty(shape, _DTYPES[code])
    dtype = _DTYPES[code]
    try:
        flat = np.frombuffer(array, dtype)
    except (TypeError, ValueError):  # an implicit array, or one array for each component
        copy: Any = vtkDataArray.CreateDataArray(code)
        copy.DeepCopy(array)
        flat = np.frombuffer(copy, dtype)
    return flat.reshape(shape)


def _strings(array: Any, count: int) -> np.ndarray:
    values = [array.GetValue(i) for i in range(count)]
    if any(isinstance(value, bytes) for value in values):
        values = [value.encode() if isinstance(value, str) else value for value in values]
    out = np.empty(count, dtype=object)
    out[:] = values
    return out


def type_name(array: Any, values: np.ndarray) -> str | None:
    """Return VTK's name of the type of an array; None if the dtype of its values determines it."""
    code = array.GetDataType()
    if code in (_BIT, _STRING) or code == _DEFAULTS[values.dtype]:
        return None
    return _NAMES[code]


def array_of(values: np.ndarray, type_name: str | None = None) -> Any:
    """Return a VTK array of `values`: (tuples,) or (tuples, components).

    Numbers in C order share their memory, as `adopted` describes.
    """
    if values.dtype == bool:
        return _bits(values)
    if values.dtype.kind == "O":
        return _string_array(values)
    code = _CODES.get(type_name or "", 0)
    if code not in _DTYPES or _DTYPES[code] != values.dtype:
        code = _DEFAULTS[values.dtype]
    return adopted(values, code)


def adopted(values: np.ndarray, code: int) -> Any:
    """Return a VTK array of type number `code` with the values of `values`.

    Large arrays share memory with `values` and keep it alive, if VTK supports it. Other arrays are
    copied. This is VTK's `numpy_to_vtk` without its checks, which take most of the time for many
    small arrays.
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
    """Return the names of the components; None if no component has a name."""
    if not array.HasAComponentName():
        return None
    return [array.GetComponentName(i) for i in range(array.GetNumberOfComponents())]


def name_components(array: vtkAbstractArray, names: list[str | None]) -> None:
    """Set the names of the components of a VTK array."""
    for index, name in enumerate(names):
        if name is not None:
            array.SetComponentName(index, name)

"""Information that VTK keeps beside data in a vtkInformation: units, names, the time."""

from __future__ import annotations

import math
from typing import Any

from vtkmodules.vtkCommonCore import vtkInformationIterator, vtkInformationKeyLookup

# Keys of values that VTK computes from the data, and of the pipeline.
_CACHES = {
    "L2_NORM_RANGE",
    "L2_NORM_FINITE_RANGE",
    "COMPONENT_RANGE",
    "PER_COMPONENT",
    "PER_FINITE_COMPONENT",
    "DISCRETE_VALUES",
    "DISCRETE_VALUE_SAMPLE_PARAMETERS",
    "DATA_EXTENT_TYPE",
    "DATA_PIECE_NUMBER",
    "DATA_NUMBER_OF_PIECES",
    "DATA_NUMBER_OF_GHOST_LEVELS",
}
_SINGLE = {
    "vtkInformationStringKey": str,
    "vtkInformationDoubleKey": float,
    "vtkInformationIntegerKey": int,
    "vtkInformationIdTypeKey": int,
    "vtkInformationUnsignedLongKey": int,
}
_SEVERAL = {
    "vtkInformationStringVectorKey": str,
    "vtkInformationDoubleVectorKey": float,
    "vtkInformationIntegerVectorKey": int,
}


def information_of(information: Any) -> list[list[Any]] | None:
    """Return the entries of a vtkInformation as lists [location, name, value]; None if it is empty.

    Only numbers, strings and lists of these are returned, and no computed values.
    """
    if information is None or information.GetNumberOfKeys() == 0:
        return None
    found = []
    walk = vtkInformationIterator()
    walk.SetInformation(information)
    walk.InitTraversal()
    while not walk.IsDoneWithTraversal():
        key = walk.GetCurrentKey()
        kind = type(key).__name__
        if key.GetName() not in _CACHES and (kind in _SINGLE or kind in _SEVERAL):
            if kind in _SINGLE:
                value = _plain(information.Get(key))
            else:
                value = [_plain(information.Get(key, i)) for i in range(information.Length(key))]
            found.append([key.GetLocation(), key.GetName(), value])
        walk.GoToNextItem()
    return sorted(found, key=lambda entry: entry[:2]) or None


def restore_information(information: Any, entries: list[list[Any]]) -> None:
    """Set the entries that `information_of` returned; keys that VTK does not know are ignored."""
    for location, name, value in entries:
        key = vtkInformationKeyLookup.Find(str(name), str(location))
        kind = type(key).__name__
        if kind in _SINGLE:
            information.Set(key, _SINGLE[kind](value))
        elif kind in _SEVERAL and isinstance(value, list):
            for item in value:
                information.Append(key, _SEVERAL[kind](item))


def _plain(value: Any) -> Any:
    """Return NaN and infinities as strings, which JSON lacks and `float` reads."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def numbers(values: Any) -> list[float | str]:
    """Return floats for JSON; those that are not finite are strings."""
    return [_plain(float(value)) for value in values]

"""Descriptions of openPMD iterations as JSON: attributes with types, records and components."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ambar.formats.openpmd.files import openpmd_api

SCALAR = "(scalar)"
"""The name of the only component of a scalar record in descriptions."""
VECTORS = ("axisLabels", "gridSpacing", "gridGlobalOffset", "position", "unitDimension")
"""Attributes of openPMD that are lists, also of one value."""
_CONSTANT = ("shape", "value")
_FLOATS_BY_NAME = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_BASE = ("m", "kg", "s", "A", "K", "mol", "cd")
_NAMED = {
    (1, 1, -3, -1): "V/m",
    (0, 1, -2, -1): "Tesla",
    (-2, 0, 0, 1): "A/m**2",
    (-3, 0, 1, 1): "C/m**3",
    (0, 0, 1, 1): "C",
    (2, 1, -2, 0): "J",
    (2, 1, -3, -1): "V",
}
"""Names of units of length, mass, time and current to these powers."""


def attributes_of(node: Any, skip: Iterable[str] = ()) -> dict[str, list[Any]]:
    """Return the attributes of an object of openpmd_api: name to [dtype, value]."""
    dtypes = node.attribute_dtypes
    skipped = set(skip)
    return {
        name: _encoded(name, np.dtype(dtypes[name]), node.get_attribute(name))
        for name in node.attributes
        if name not in skipped
    }


def set_attributes(
    node: Any, attributes: Mapping[str, Sequence[Any]], skip: Iterable[str] = ()
) -> None:
    """Set the attributes of a description on an object of openpmd_api, with their types."""
    skipped = set(skip)
    for name, (dtype, value) in attributes.items():
        if name not in skipped:
            kind = np.dtype("int8" if dtype == "string" else dtype)
            node.set_attribute(name, decoded(value, kind), kind)


def value_of(attributes: Mapping[str, Sequence[Any]], name: str, default: Any = None) -> Any:
    """Return the value of an attribute of a description."""
    if name not in attributes:
        return default
    dtype, value = attributes[name]
    return value if dtype == "string" else decoded(value, np.dtype(dtype))


def encoded(value: Any) -> Any:
    """Return a number, a string or a list of them as JSON can represent it."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [encoded(one) for one in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (complex, np.complexfloating)):
        return [encoded(float(value.real)), encoded(float(value.imag))]
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else repr(number)
    return value


def decoded(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the value that `encoded` encoded, of this dtype or a list of it."""
    if dtype.kind == "c":
        is_one = isinstance(value, list) and not any(isinstance(one, list) for one in value)
        if not is_one:
            return [decoded(one, dtype) for one in value]
        return complex(*(decoded(one, np.dtype("f8")) for one in value))
    if isinstance(value, list):
        return [decoded(one, dtype) for one in value]
    return _FLOATS_BY_NAME.get(value, value) if dtype.kind == "f" else value


def _encoded(name: str, dtype: np.dtype[Any], value: Any) -> list[Any]:
    if name in VECTORS and not isinstance(value, (list, tuple, np.ndarray)):
        value = [value]
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, str):
        return ["string", value]
    return ["longdouble" if dtype == np.longdouble else dtype.name, encoded(value)]


def components_of(record: Any) -> dict[str, Any]:
    """Return the components of a mesh or a record of particles: names and objects."""
    own = openpmd_api().Record_Component.SCALAR
    return {SCALAR if name == own else name: record[name] for name in record}


def component_of(record: Any, name: str) -> Any:
    """Return a component of a mesh or a record, by its name in descriptions."""
    return record[openpmd_api().Record_Component.SCALAR if name == SCALAR else name]


def describe_records(records: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of meshes, or of the records of a species."""
    return {name: _describe_record(record) for name, record in records.items()}


def _describe_record(record: Any) -> dict[str, Any]:
    parts = components_of(record)
    is_scalar = SCALAR in parts
    return {
        "attributes": attributes_of(record, _CONSTANT if is_scalar else ()),
        "components": {
            name: _describe_component(part, is_scalar=is_scalar) for name, part in parts.items()
        },
    }


def _describe_component(part: Any, *, is_scalar: bool) -> dict[str, Any]:
    described = {
        "dtype": np.dtype(part.dtype).name,
        "shape": [int(side) for side in part.shape],
        "attributes": {} if is_scalar else attributes_of(part, _CONSTANT if part.constant else ()),
    }
    if part.constant:
        described["constant"] = encoded(part.get_attribute("value"))
    return described


def attributes_of_component(record: Mapping[str, Any], component: str) -> dict[str, Any]:
    """Return the attributes of a component; those of a scalar record are those of its component."""
    return {**record["attributes"], **record["components"][component]["attributes"]}


def unit_of(attributes: Mapping[str, Sequence[Any]]) -> str:
    """Return the unit of the values as text: "1e-06*m", "V/m", "dimensionless"."""
    factor = float(value_of(attributes, "unitSI", 1.0))
    powers = [float(power) for power in value_of(attributes, "unitDimension", [0.0] * 7)]
    name = _NAMED.get(tuple(powers[:4])) if not any(powers[4:]) else None  # type: ignore[arg-type]
    if name is None:
        parts = [
            base if power == 1 else f"{base}**{power:g}"
            for base, power in zip(_BASE, powers, strict=False)
            if power
        ]
        name = "*".join(parts) or "dimensionless"
    return name if factor == 1.0 else f"{factor!r}*{name}"


def size_of_component(part: Mapping[str, Any]) -> int:
    """Return the bytes of the values of a component; 0 of a constant one."""
    if "constant" in part:
        return 0
    itemsize: int = np.dtype(part["dtype"]).itemsize
    return math.prod(map(int, part["shape"])) * itemsize


def bytes_of(description: Mapping[str, Any]) -> int:
    """Return the bytes of the values of an iteration, except constant ones."""
    records = [*description["meshes"]["records"].values()]
    for species in description["particles"]["species"].values():
        records += species["records"].values()
    return sum(
        size_of_component(part) for record in records for part in record["components"].values()
    )

"""Times as the CF conventions store them: integers, with their units in an attribute.

CF conventions 1.11, section 4.4. xarray decodes them from any Zarr reader.
"""

from __future__ import annotations

import numpy as np

from ambar import _core

NOT_A_TIME = np.iinfo(np.int64).min
"""The stored value of NaT, as in NumPy; the attribute ``_FillValue`` has it."""

_UNITS = {
    "D": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
_EPOCH = " since 1970-01-01"


def encode_times(values: np.ndarray) -> tuple[np.ndarray, str]:
    """Return datetimes or durations as int64 and their CF units.

    Raises
    ------
    UnsupportedError
        If CF has no such unit: weeks, months, years, or multiples of a unit.
    """
    unit, count = np.datetime_data(values.dtype)
    if unit not in _UNITS or count != 1:
        raise _core.UnsupportedError(
            f"values of dtype {values.dtype} cannot be stored; convert them to datetime64[ns] or "
            "timedelta64[ns]"
        )
    units = _UNITS[unit]
    if values.dtype.kind == "M":
        units += _EPOCH
    return values.view(np.int64), units


def decoded_dtype(units: str) -> np.dtype[np.generic]:
    """Return the NumPy dtype that values of these CF units had before `encode_times`."""
    name, since, _ = units.partition(_EPOCH)
    unit = next((unit for unit, cf in _UNITS.items() if cf == name), None)
    if unit is None:
        raise _core.CorruptError(f"invalid units of time {units!r}; restore the store from a copy")
    return np.dtype(f"{'datetime64' if since else 'timedelta64'}[{unit}]")


def dtype_name(type_name: str, units: str | None) -> str:
    """Return the dtype of decoded values as text.

    Parameters
    ----------
    type_name : str
        NumPy's name of the stored dtype; "string" or "bytes".
    units : str, optional
        The CF units of times.
    """
    if units:
        return str(decoded_dtype(units))
    return type_name if type_name in ("string", "bytes") else str(np.dtype(type_name))


def attributes_of(units: str) -> dict[str, object]:
    """Return the attributes with which CF readers decode the integers as times."""
    attributes: dict[str, object] = {"units": units, "_FillValue": NOT_A_TIME}
    if units.endswith(_EPOCH):
        attributes["calendar"] = "proleptic_gregorian"
    else:
        attributes["dtype"] = str(decoded_dtype(units))
    return attributes

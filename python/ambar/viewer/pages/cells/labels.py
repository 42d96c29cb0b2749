"""Units as people read them."""

from __future__ import annotations

import re

from ambar.snapshot.interop.raster import units_of
from ambar.viewer.pages.cells.plane import Plane

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def readable_unit(unit: str) -> str:
    """Return a unit with raised powers.

    Examples
    --------
    >>> readable_unit("Msol/pc2"), readable_unit("cm-3"), readable_unit("code")
    ('Msol/pc²', 'cm⁻³', 'code units')
    """
    if unit == "code":
        return "code units"
    return re.sub(r"(?<=[A-Za-z])\**(-?\d+)", lambda power: power[1].translate(_SUPERSCRIPTS), unit)


def unit_label(plane: Plane) -> str:
    """Return the unit of the values of a plane as people read it; "" for plain numbers.

    Values in code units may have a unit, too: fields whose unit the output states, and derived
    temperatures.
    """
    request = plane.amr._request([plane.field])
    is_integral = plane.method == "project" and plane.weight is None
    unit, _ = units_of(plane.amr, request, plane.field, plane.unit, is_integral=is_integral)
    return "" if unit == "dimensionless" else readable_unit(unit)

"""Units as people read them."""

from __future__ import annotations

import re

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

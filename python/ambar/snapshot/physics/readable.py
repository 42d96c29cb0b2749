"""Units in which lengths and times are readable, chosen by their magnitude."""

from __future__ import annotations

from collections.abc import Mapping

from ambar.snapshot.physics.constants import LENGTHS, TIMES

_LENGTHS = {"nm": 1e-7, "um": 1e-4} | {
    name: LENGTHS[name] for name in ("mm", "cm", "m", "km", "Au", "pc", "kpc", "Mpc")
}
_LENGTHS["Gpc"] = 1e3 * LENGTHS["Mpc"]
_TIMES = {"fs": 1e-15, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3} | {
    name: TIMES[name] for name in ("s", "day", "yr", "kyr", "Myr", "Gyr")
}


def length_unit(cm: float) -> str:
    """Return the unit in which a length in cm is readable: the largest one that it exceeds.

    Examples
    --------
    >>> length_unit(3.1e21), length_unit(2e-3)
    ('kpc', 'um')
    """
    return _unit_of(cm, _LENGTHS)


def readable_length(cm: float) -> str:
    """Return a length as text in the largest unit that it exceeds: "3.2 kpc"."""
    unit = length_unit(cm)
    return f"{cm / _LENGTHS[unit]:.4g} {unit}"


def readable_time(seconds: float) -> str:
    """Return a time as text in the largest unit that it exceeds: "14.2 Myr"."""
    if seconds == 0:
        return "0 s"
    unit = _unit_of(seconds, _TIMES)
    return f"{seconds / _TIMES[unit]:.4g} {unit}"


def _unit_of(value: float, units: Mapping[str, float]) -> str:
    # A length that differs from a unit by rounding is one of it.
    fitting = [name for name, size in units.items() if abs(value) >= size * (1 - 1e-6)]
    return fitting[-1] if fitting else next(iter(units))

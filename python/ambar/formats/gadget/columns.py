"""The columns that datasets become: names, and units from attributes or from Gadget's manual."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ambar.formats.gadget.files import Dataset
from ambar.formats.gadget.header import Header
from ambar.snapshot.physics.constants import SOLAR_MASS, YEAR
from ambar.snapshot.physics.unit_expressions import Dimension, Unit
from ambar.snapshot.regions import AXES

_VECTORS = {"Coordinates": "position", "Velocities": "velocity", "Velocity": "velocity"}
"""Names of columns of datasets that all analysis uses; others keep their names."""
_SWIFT_CGS = "Conversion factor to physical CGS (including cosmological corrections)"


class _Scaling(NamedTuple):
    """The exponents of a unit."""

    aexp: float
    hubble: float
    length: float
    mass: float
    velocity: float

    @property
    def dimension(self) -> Dimension:
        return _dimension(self.length, self.mass, self.velocity)


# As in the manual of Gadget-4.
_KNOWN = {
    "Coordinates": _Scaling(1, -1, 1, 0, 0),
    "Velocities": _Scaling(0.5, 0, 0, 0, 1),
    "Velocity": _Scaling(0.5, 0, 0, 0, 1),
    "Masses": _Scaling(0, -1, 0, 1, 0),
    "Mass": _Scaling(0, -1, 0, 1, 0),
    "InternalEnergy": _Scaling(0, 0, 0, 0, 2),
    "Density": _Scaling(-3, 2, -3, 1, 0),
    "SmoothingLength": _Scaling(1, -1, 1, 0, 0),
    "Volume": _Scaling(3, -3, 3, 0, 0),
    "CenterOfMass": _Scaling(1, -1, 1, 0, 0),
}
_DIMENSIONLESS = (
    "Metallicity",
    "GFM_Metallicity",
    "GFM_Metals",
    "ElectronAbundance",
    "NeutralHydrogenAbundance",
)
_SOLAR_RATE = Unit(SOLAR_MASS / YEAR, (0.0, 1.0, -1.0, 0.0))


def names_of_columns(
    datasets: Iterable[Dataset], header: Header, taken: Iterable[str]
) -> dict[str, list[str]]:
    """Return the names of the columns of datasets by the name of the dataset, all unique.

    A column whose name is that of another one, or is in `taken`, has the suffix "_field".
    """
    used, found = set(taken), {}
    for dataset in datasets:
        names = []
        for name in _column_names(dataset, header):
            unique = name
            while unique in used:
                unique += "_field"
            used.add(unique)
            names.append(unique)
        found[dataset.name] = names
    return found


def _column_names(dataset: Dataset, header: Header) -> list[str]:
    """Return the names of the columns of a dataset: one for each value of a row."""
    name = dataset.short.replace("/", "_")
    if len(dataset.shape) == 1:
        return [name]
    count = math.prod(dataset.shape[1:])
    labels: Sequence[str] = header.names.get(name, ())
    if len(labels) != count:
        labels = AXES if count == len(AXES) else [str(number) for number in range(count)]
    return [f"{_VECTORS.get(name, name)}_{label}" for label in labels]


def unit_of(dataset: Dataset, header: Header) -> Unit | str | None:
    """Return the unit of a dataset in CGS, without h and expansion factor; None if unknown.

    A text states the factor to CGS of a dataset whose dimension the file does not state.
    """
    own, name = dataset.attributes, dataset.short
    aexp = header.aexp or 1.0
    if "U_L exponent" in own:
        exponents = [float(own[f"U_{base} exponent"]) for base in "LMtT"]
        length, mass, time, kelvin = exponents
        factor = float(own.get(_SWIFT_CGS, 0.0))
        if not factor > 0 or float(own.get("U_I exponent", 0.0)):
            return None
        return Unit(factor, (length, mass, time, kelvin))
    if "length_scaling" in own and "to_cgs" in own:
        length, mass, velocity = (
            float(own[f"{one}_scaling"]) for one in ("length", "mass", "velocity")
        )
        factor = float(own["to_cgs"])
        factor *= aexp ** float(own["a_scaling"]) * header.hubble ** float(own["h_scaling"])
        dimension = _dimension(length, mass, velocity)
        return Unit(factor, dimension) if factor > 0 else _default_unit(name, header)
    if "CGSConversionFactor" in own:
        factor = float(own["CGSConversionFactor"])
        factor *= aexp ** float(own.get("aexp-scale-exponent", 0.0))
        factor *= header.hubble ** float(own.get("h-scale-exponent", 0.0))
        if name in _KNOWN:
            return Unit(factor, _KNOWN[name].dimension)
        known = _default_unit(name, header)
        return known if known or factor == 1.0 else f"{factor!r}*cgs"
    return _default_unit(name, header)


def _default_unit(name: str, header: Header) -> Unit | None:
    """Return the unit that a dataset has by its name; None if unknown."""
    if name in _DIMENSIONLESS:
        return Unit(1.0)
    if name == "StarFormationRate":
        return _SOLAR_RATE
    if name not in _KNOWN or header.code == "swift":
        return None
    known = _KNOWN[name]
    factor = header.length**known.length * header.mass**known.mass
    factor *= header.velocity**known.velocity
    factor *= (header.aexp or 1.0) ** known.aexp * header.hubble**known.hubble
    return Unit(factor, known.dimension)


def _dimension(length: float, mass: float, velocity: float) -> Dimension:
    return (length + velocity, mass, -velocity, 0.0)

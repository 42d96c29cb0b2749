"""Columns that statistics need besides the stored ones: masses, volumes, and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ambar._core import InvalidError, NotFoundError, UnsupportedError
from ambar.snapshot.analysis.batches import Arrays, is_cells
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    from ambar.snapshot.field_rows import FieldRows

AUTO = "auto"
"""The default weight: the volume of cells, none for particles."""
DISTANCES = ("radius", "cylindrical_radius", "cylindrical_z")
"""Columns relative to a center, and the last two to an axis."""
_OFFSET, _MOMENTUM = "offset ", "angular momentum "

_QUANTITIES = {
    **dict.fromkeys(DISTANCES, "length"),
    "cell_mass": "mass",
    "cell_volume": "volume",
}
_DENSITIES = ("density", "Density", "gasDensity")
_MASSES = ("mass", "msink", "mass_cl", "particle_mass")
_POSITIONS = ("{}", "position_{}", "peak_{}")
_VELOCITIES = ("velocity_{}", "v{}", "{}_velocity", "{}vel", "vel{}")


@dataclass(frozen=True)
class Frame:
    """A center in code length, with an axis, a velocity, and the sides of a periodic box."""

    center: np.ndarray
    sides: np.ndarray
    """The side of the box in each dimension; infinite where it is not periodic."""
    axis: np.ndarray | None = None
    """Unit vector."""
    velocity: np.ndarray | None = None
    """Subtracted from velocities, code units."""

    def offset(self, positions: np.ndarray, axis: int) -> np.ndarray:
        """Return coordinates relative to the nearest image of the center."""
        offset: np.ndarray = positions - self.center[axis]
        side = self.sides[axis]
        if np.isfinite(side):
            offset -= side * np.rint(offset / side)
        return offset


class Columns:
    """Requested columns of a batch as float64: stored ones, or computed from these.

    Parameters
    ----------
    rows
        Cells or particles.
    names
        Fields, "cell_mass", "cell_volume", the names in `DISTANCES`, and those that `offsets` and
        `angular_momenta` return.
    frame
        The center of distances.
    """

    def __init__(self, rows: FieldRows, names: Iterable[str], frame: Frame | None = None) -> None:
        self._rows = rows
        self._frame = frame
        self._formulas = {
            name: self._formula(column_name(rows, name)) for name in dict.fromkeys(names)
        }
        inputs = [name for needed, _ in self._formulas.values() for name in needed]
        self.stored = list(dict.fromkeys(inputs))
        """The columns to read."""

    def compute(self, arrays: Arrays) -> Arrays:
        """Return the requested columns of a batch from the columns that were read."""
        return {
            name: function(*(np.asarray(arrays[each], np.float64) for each in needed))
            for name, (needed, function) in self._formulas.items()
        }

    def _formula(self, name: str) -> tuple[list[str], Callable[..., np.ndarray]]:
        """Return the stored columns of a name, and the function that computes it."""
        if name in ("cell_mass", "cell_volume") and not _exists(self._rows, name):
            return _cell_size(self._rows, with_mass=name == "cell_mass")
        if name in DISTANCES:
            return position_names(self._rows), lambda *place: self._distance(name, place)
        if name.startswith(_OFFSET):
            axis = AXES.index(name[-1])
            return [position_names(self._rows)[axis]], lambda x: self._expect().offset(x, axis)
        if name.startswith(_MOMENTUM):
            needed = [*position_names(self._rows), *velocity_names(self._rows)]
            return needed, lambda *place: self._momentum(AXES.index(name[-1]), place)
        self._rows.dtype(name)  # raises KeyError if it does not exist
        return [name], lambda values: values

    def _expect(self) -> Frame:
        if self._frame is None:
            raise InvalidError("expected a center for distances, found none; give center=")
        return self._frame

    def _distance(self, name: str, place: Sequence[np.ndarray]) -> np.ndarray:
        frame = self._expect()
        offsets = [frame.offset(x, axis) for axis, x in enumerate(place)]
        if name == "radius":
            return _length(offsets)
        if frame.axis is None or len(offsets) != 3:
            raise InvalidError(f"expected an axis in three dimensions for {name!r}, found none")
        height = sum(offset * part for offset, part in zip(offsets, frame.axis, strict=True))
        if name == "cylindrical_z":
            return np.asarray(height)
        return _length([x - height * part for x, part in zip(offsets, frame.axis, strict=True)])

    def _momentum(self, axis: int, place: Sequence[np.ndarray]) -> np.ndarray:
        """Return a component of the specific angular momentum."""
        frame = self._expect()
        one, two = (axis + 1) % 3, (axis + 2) % 3
        velocity = np.zeros(3) if frame.velocity is None else frame.velocity
        return np.asarray(
            frame.offset(place[one], one) * (place[3 + two] - velocity[two])
            - frame.offset(place[two], two) * (place[3 + one] - velocity[one])
        )


def offsets(ndim: int) -> list[str]:
    """Return the names of coordinates relative to the center of the frame."""
    return [_OFFSET + axis for axis in AXES[:ndim]]


def angular_momenta() -> list[str]:
    """Return the names of the components of the specific angular momentum about the frame."""
    return [_MOMENTUM + axis for axis in AXES]


def column_name(rows: FieldRows, name: str) -> str:
    """Return the column that a name means: "mass" and "volume" are those of cells."""
    if name in ("mass", "volume") and not _exists(rows, name):
        return f"cell_{name}" if is_cells(rows) else _first(rows, (name, *_MASSES), "mass")
    return name


def weight_name(rows: FieldRows, weight: str | None) -> str | None:
    """Return the column of a weight, None for no weight."""
    if weight == AUTO:
        weight = "volume" if is_cells(rows) else None
    return None if weight is None else column_name(rows, weight)


def mass_name(rows: FieldRows) -> str:
    """Return the column of the mass."""
    return column_name(rows, "mass")


def position_names(rows: FieldRows) -> list[str]:
    """Return the columns of positions."""
    return [_first(rows, _POSITIONS, "position", axis) for axis in AXES[: rows.info.ndim]]


def velocity_names(rows: FieldRows) -> list[str]:
    """Return the columns of velocities."""
    return [_first(rows, _VELOCITIES, "velocity", axis) for axis in AXES[: rows.info.ndim]]


def unit_factor(rows: FieldRows, name: str, unit: str) -> float:
    """Return the factor from code units of a column, or of a quantity, to a unit."""
    name = column_name(rows, name).rpartition("/")[2]
    return rows.info.units.factor(_QUANTITIES.get(name, name), unit)


def quantity_of_column(rows: FieldRows, name: str) -> str | None:
    """Return the quantity of a column that this module computes."""
    return _QUANTITIES.get(column_name(rows, name))


def _exists(rows: FieldRows, name: str) -> bool:
    try:
        rows.dtype(name)
    except NotFoundError:
        return False
    return True


def _first(rows: FieldRows, patterns: Iterable[str], quantity: str, axis: str = "") -> str:
    names = [pattern.format(axis) for pattern in patterns]
    for name in names:
        if _exists(rows, name):
            return name
    raise NotFoundError(
        f"{rows._title}: no column of the {quantity}; expected one of {', '.join(names)}"
    )


def _cell_size(rows: FieldRows, *, with_mass: bool) -> tuple[list[str], Callable[..., np.ndarray]]:
    """Return the columns of the volume or mass of cells, and the function that computes it."""
    if (system := getattr(rows.info, "coordinates", "cartesian")) != "cartesian":
        raise UnsupportedError(
            f"expected Cartesian cells for their volume, found {system} coordinates; use "
            "weight=None or a field"
        )
    sizes = [f"d{axis}" for axis in AXES[: rows.info.ndim]]
    sides = [name if _exists(rows, name) else "dx" for name in sizes]
    density = [_first(rows, _DENSITIES, "density")] if with_mass else []

    def product(*factors: np.ndarray) -> np.ndarray:
        values = dict(zip([*dict.fromkeys(sides), *density], factors, strict=True))
        result = values[sides[0]].copy()
        for name in (*sides[1:], *density):
            result *= values[name]
        return np.asarray(result)

    return [*dict.fromkeys(sides), *density], product


def _length(components: Sequence[np.ndarray]) -> np.ndarray:
    total = components[0] ** 2
    for component in components[1:]:
        total += component**2
    return np.asarray(np.sqrt(total, out=total))

"""The difference of two planes of equal boxes, and the error bound that it has to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ambar import _core
from ambar.comparison.bounds import stored_bound
from ambar.snapshot.outputs import Outputs
from ambar.viewer.pages.cells.plane import Plane
from ambar.viewer.pages.cells.tiles import Image

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot


def difference(original: Image, other: Image) -> Image:
    """Return the other image minus the original one, of the same pixels."""
    with np.errstate(invalid="ignore"):  # infinite values
        values = other.values.astype(np.float64) - original.values
    return replace(other, values=values, is_complete=original.is_complete and other.is_complete)


def matching_outputs(
    opened: Snapshot | Outputs, other: Snapshot | Outputs
) -> tuple[Snapshot | Outputs, Snapshot | Outputs]:
    """Return two snapshots or two series: of a snapshot and a series, the output of its number.

    Raises ValueError if no output of one has the number of an output of the other one.
    """
    if not isinstance(opened, Outputs) and not isinstance(other, Outputs):
        return opened, other
    numbers = [
        one.outputs if isinstance(one, Outputs) else [getattr(one.info, "output", None)]
        for one in (opened, other)
    ]
    common = [int(one) for one in numbers[0] if one is not None and one in numbers[1]]
    if not common:
        found = (", ".join(map(str, one)) or "none" for one in numbers)
        raise _core.InvalidError(
            f"{other.location}: expected outputs with the numbers of those of {opened.location} "
            f"({next(found)}), found {next(found)}; compare versions of the same outputs"
        )
    if isinstance(opened, Outputs) and isinstance(other, Outputs):
        return opened, other
    first, second = (
        one.output(common[0]) if isinstance(one, Outputs) else one for one in (opened, other)
    )
    return first, second


def check_boxes(original: Snapshot, other: Snapshot) -> None:
    """Raise ValueError if the cells of two snapshots are not at the same positions."""
    ends = []
    for snapshot in (original, other):
        amr = snapshot.amr
        ends.append(np.array([amr.lower, amr._core.upper, amr.cell_size(0)]))
    first, second = ends
    if first.shape != second.shape or not np.allclose(first, second, rtol=1e-6, atol=0):
        raise _core.InvalidError(
            f"{other.location}: expected the box of {original.location}, from {_text(first[0])} to "
            f"{_text(first[1])} with cells of {_text(first[2])} on level 0; found one from "
            f"{_text(second[0])} to {_text(second[1])} with cells of {_text(second[2])}; compare "
            "versions of the same output"
        )


def _text(sides: np.ndarray) -> str:
    return f"({', '.join(f'{side:g}' for side in sides)})"


def error_bound(snapshot: Snapshot, plane: Plane) -> float | None:
    """Return the absolute error bound of the values of a slice; None if it has none.

    Means by volume keep the bound of the cells. The weights of other means have errors, too. Bounds
    of integrals, relative bounds and those of derived fields are not known.
    """
    stored = snapshot._stored_at
    if stored is None or (plane.method == "project" and plane.weight != "volume"):
        return None
    store, path = stored
    bound = stored_bound(store._ambar_attributes(f"{path.rstrip('/')}/amr"), plane.field)
    if not isinstance(bound, float | int) or not bound:
        return None
    return float(bound) * plane.amr._units.factor(plane.field, plane.unit)

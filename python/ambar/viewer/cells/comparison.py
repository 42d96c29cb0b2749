"""The difference of two planes, and the error bound that it has to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ambar.comparison.bounds import stored_bound
from ambar.viewer.cells.plane import Plane
from ambar.viewer.cells.tiles import Image

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot


def difference(original: Image, other: Image) -> Image:
    """Return the other image minus the original one, of the same pixels."""
    values = other.values.astype(np.float64) - original.values
    return replace(other, values=values, is_complete=original.is_complete and other.is_complete)


def error_bound(snapshot: Snapshot, plane: Plane) -> float | None:
    """Return the absolute error bound of the values of a slice; None if it has none.

    Means of cells keep the bound of the cells. Bounds of integrals, relative bounds and those of
    derived fields are not known.
    """
    stored = snapshot._stored_at
    if stored is None or (plane.method == "project" and plane.weight is None):
        return None
    store, path = stored
    bound = stored_bound(store._ambar_attributes(f"{path.rstrip('/')}/amr"), plane.field)
    if not isinstance(bound, float | int) or not bound:
        return None
    return float(bound) * plane.amr._units.factor(plane.field, plane.unit)

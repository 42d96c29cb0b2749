"""The surface of a mesh that the browser draws: warped, cut, with the values to colour."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyvista as pv

from ambar import _core

VALUE = "value"
"""The name of the array with the values that are coloured."""
MAX_FACES = 1_000_000
"""Faces that the browser gets; a larger surface is coarsened."""
_DIVISIONS = 400
"""Divisions of each axis in which the points of a large surface are merged."""

Cut = Literal["none", "clip", "slice", "threshold"]


@dataclass(frozen=True)
class Recipe:
    """What is drawn of a mesh."""

    association: str = "point"
    array: str | None = None
    """The array whose values are coloured; None for a mesh without colours."""
    component: int | None = None
    """The component of a vector; None for its magnitude."""
    cut: Cut = "none"
    normal: str = "x"
    """The axis that is normal to the plane."""
    place: float = 0.5
    """Where the plane is between the bounds: 0 to 1."""
    is_inverted: bool = False
    limits: tuple[float, float] = (-math.inf, math.inf)
    """The values that a threshold keeps."""
    warp: str | None = None
    """The array on points by which the points are moved: a vector, or a scalar along normals."""
    factor: float = 1.0
    hidden: frozenset[int] = frozenset()
    """The numbers of the blocks that are not drawn."""


@dataclass(frozen=True)
class Surface:
    """What the browser draws."""

    mesh: pv.PolyData
    """Faces, lines and points, with the array `VALUE` unless the recipe has no array."""
    on_points: bool
    """Whether values are on points."""
    bounds: tuple[float, ...]
    """The bounds of the whole mesh."""
    cells: int
    """The number of cells that remain after the cut."""
    faces: int
    """The number of faces before they were coarsened."""
    range: tuple[float, float] | None
    """The smallest and the largest value of the whole mesh; None without finite values."""


def surface_of(mesh: Any, recipe: Recipe) -> Surface:
    """Return the surface of a PyVista object.

    Raises UnsupportedError if PyVista cannot draw the object.
    """
    if not isinstance(mesh, (pv.DataSet, pv.MultiBlock)):
        raise _core.UnsupportedError(
            f"expected points or cells to draw, found a {type(mesh).__name__}"
        )
    leaves = [part for number, part in _leaves(mesh) if number not in recipe.hidden]
    on_points = recipe.association == "point"
    bounds = tuple(mesh.bounds)
    parts = [_with_value(part, recipe) for part in leaves if part.n_points]
    cut = [_cut(part, recipe, bounds) for part in parts]
    cells = sum(part.n_cells for part in cut)
    surfaces = [_faces(part) for part in cut if part.n_points]
    drawn = pv.merge(surfaces, merge_points=False) if len(surfaces) > 1 else None
    found = drawn or (surfaces[0] if surfaces else pv.PolyData())
    faces = found.n_cells
    if faces > MAX_FACES:
        found = _coarsen(found)
    return Surface(found, on_points, bounds, cells, faces, _range(parts))


def _range(parts: list[Any]) -> tuple[float, float] | None:
    values = [part[VALUE][np.isfinite(part[VALUE])] for part in parts if VALUE in part.array_names]
    ends = [(float(found.min()), float(found.max())) for found in values if found.size]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def _leaves(mesh: Any, number: int | None = None) -> Iterator[tuple[int, Any]]:
    """Yield the datasets of a mesh with the number of the outermost block of each."""
    if isinstance(mesh, pv.MultiBlock):
        for position, block in enumerate(mesh):
            if isinstance(block, (pv.DataSet, pv.MultiBlock)):
                yield from _leaves(block, position if number is None else number)
    else:
        yield 0 if number is None else number, mesh


def _with_value(part: Any, recipe: Recipe) -> Any:
    """Return a dataset, warped, whose only array is `VALUE`: NaN if it lacks the array."""
    made = part.copy(deep=False)
    warp = part.point_data.get(recipe.warp) if recipe.warp else None
    made.clear_data()
    if recipe.array is not None:
        data = part.point_data if recipe.association == "point" else part.cell_data
        count = part.n_points if recipe.association == "point" else part.n_cells
        target = made.point_data if recipe.association == "point" else made.cell_data
        found = data.get(recipe.array)
        target[VALUE] = np.full(count, np.nan) if found is None else scalar(found, recipe.component)
    if warp is None:
        return made
    made.point_data["warp"] = np.asarray(warp, "f8")
    filter_ = made.warp_by_vector if np.ndim(warp) == 2 else made.warp_by_scalar
    return filter_("warp", factor=recipe.factor)


def scalar(values: Any, component: int | None) -> np.ndarray:
    """Return a component of vectors or their magnitude, as floats.

    Examples
    --------
    >>> scalar(np.array([[3.0, 4.0]]), None), scalar(np.array([[3.0, 4.0]]), 1)
    (array([5.]), array([4.]))
    """
    found = np.asarray(values)
    if found.dtype.kind == "c":
        found = np.abs(found)
    found = found.astype("f8", copy=False)
    if found.ndim == 1:
        return found
    return np.linalg.norm(found, axis=1) if component is None else found[:, component]


def _cut(part: Any, recipe: Recipe, bounds: tuple[float, ...]) -> Any:
    axis = "xyz".index(recipe.normal)
    origin = [(low + high) / 2 for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    low, high = bounds[2 * axis : 2 * axis + 2]
    origin[axis] = low + recipe.place * (high - low)
    if recipe.cut == "clip":
        return part.clip(recipe.normal, origin=origin, invert=not recipe.is_inverted)
    if recipe.cut == "slice":
        return part.slice(recipe.normal, origin=origin)
    if recipe.cut == "threshold" and recipe.array is not None:
        return part.threshold(
            recipe.limits, scalars=VALUE, invert=recipe.is_inverted, preference=recipe.association
        )
    return part


def _faces(part: Any) -> pv.PolyData:
    if isinstance(part, pv.PolyData):
        return part
    return part.extract_surface(pass_pointid=False, pass_cellid=False, algorithm="dataset_surface")


def _coarsen(mesh: pv.PolyData) -> pv.PolyData:
    """Return a surface whose points are merged in boxes of a grid, for the browser."""
    from vtkmodules.vtkFiltersCore import vtkBinnedDecimation

    decimation = vtkBinnedDecimation()
    decimation.SetInputData(mesh.triangulate())
    decimation.SetNumberOfDivisions(_DIVISIONS, _DIVISIONS, _DIVISIONS)
    decimation.AutoAdjustNumberOfDivisionsOff()
    decimation.SetPointGenerationModeToUseInputPoints()
    decimation.ProducePointDataOn()
    decimation.ProduceCellDataOn()
    decimation.Update()
    return pv.wrap(decimation.GetOutput())

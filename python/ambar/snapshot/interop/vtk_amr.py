"""The cells of a hierarchy as VTK overlapping AMR data."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from vtkmodules.vtkCommonDataModel import (
    vtkAMRBox,
    vtkDataObject,
    vtkDataSetAttributes,
    vtkOverlappingAMR,
    vtkUniformGrid,
)

from ambar import _core
from ambar._util.arguments import names_of
from ambar._util.text import span
from ambar.interop.vtk_arrays import array_of
from ambar.snapshot.field_names import resolve_all
from ambar.snapshot.interop.patch_levels import Level, levels_of

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.regions import Box

REFINED = vtkDataSetAttributes.REFINEDCELL
"""The bit of VTK's ghost array that marks cells covered by finer ones."""
_GHOSTS = vtkDataSetAttributes.GhostArrayName()
_XY_PLANE, _XYZ_GRID = 5, 8  # descriptions of grids; their names differ between versions of VTK


def overlapping_amr(
    amr: Amr,
    fields: Sequence[str] | str | None = None,
    levels: tuple[int, int] | None = None,
    region: Box | None = None,
    threads: int | None = None,
) -> Any:
    """Return the cells as a vtkOverlappingAMR; arguments and errors are those of `Amr.to_vtk`."""
    names = _names(amr, fields)
    if amr.ndim == 1:
        raise _core.UnsupportedError(
            "VTK has no AMR data of one dimension; read the cells as a table with amr.read()"
        )
    _core.check_threads(threads)
    found = levels_of(amr, levels, region, threads)
    if not any(len(level.boxes) for level in found):
        if not len(amr):
            raise _core.NotFoundError(
                f"{amr._title}: expected leaf cells, found none; leave the output out"
            )
        chosen = "" if levels is None else f" of the levels {span(*levels)}"
        within = "" if region is None else f" in {region}"
        raise _core.NotFoundError(
            f"{amr._title}: expected leaf cells{chosen}{within}, found none; use other levels or a "
            "larger region"
        )
    for level in found:
        _require_32_bits(level)
    mesh = empty_amr([len(level.boxes) for level in found], amr.ndim)
    mesh.SetOrigin(_three(amr.lower, 0.0))
    for place, level in enumerate(found):
        mesh.SetSpacing(place, _three(level.cell_size, 1.0))
        mesh.SetRefinementRatio(place, level.ratio)
        for index, grid in enumerate(_grids(amr, level, names, threads)):
            (lo, hi) = level.boxes[index].tolist()
            last = [end - 1 for end in hi]
            # The last cell of a missing dimension precedes the first one.
            box = vtkAMRBox(*_three(lo, 0), *_three(last, -1))
            mesh.SetAMRBox(place, index, box)
            mesh.SetDataSet(place, index, grid)
    mesh.GetInformation().Set(vtkDataObject.DATA_TIME_STEP(), amr.info.time)
    return mesh


def _require_32_bits(level: Level) -> None:
    """Raise an error if VTK, whose indices have 32 bits, cannot number the level's cells."""
    numbers = [level.ratio, *np.asarray(level.boxes).ravel().tolist()]
    lowest, highest = min(numbers), max(numbers)
    if lowest < -(2**31) or highest >= 2**31:
        raise _core.UnsupportedError(
            f"the cells of level {level.number} have indices from {lowest} to {highest}, those of "
            "VTK have 32 bits; select other levels, or read the cells as a table with amr.read()"
        )


def empty_amr(blocks: Sequence[int], ndim: int) -> Any:
    """Return AMR data without values; `blocks` has the number of blocks of each level."""
    mesh = vtkOverlappingAMR()
    if hasattr(mesh, "GetAMRMetaData"):
        mesh.Initialize(list(blocks))
    else:  # before VTK 9.6, as in older ParaViews
        mesh.Initialize(len(blocks), list(blocks))
    mesh.SetGridDescription(_XY_PLANE if ndim == 2 else _XYZ_GRID)
    return mesh


def blocks_of(mesh: Any, level: int) -> list[Any]:
    """Return the grids of a level of AMR data, for any version of VTK."""
    if hasattr(mesh, "GetDataSetAsCartesianGrid"):
        count, get = mesh.GetNumberOfBlocks(level), mesh.GetDataSetAsCartesianGrid
    else:  # before VTK 9.6
        count, get = mesh.GetNumberOfDataSets(level), mesh.GetDataSet
    return [get(level, index) for index in range(count)]


def _names(amr: Amr, fields: Sequence[str] | str | None) -> list[str]:
    if fields is None:
        names = [name for name in amr.fields if name != "domain"]
    else:
        known = amr.fields if amr.layout == "patches" else [*amr.fields, *amr._core.derived]
        names = resolve_all(names_of("fields", fields), set(known))
        for name in names:
            if name not in known:
                raise _core.NotFoundError(f"no field {name!r}; available: {', '.join(known)}")
    if _GHOSTS in names:
        raise _core.UnsupportedError(
            f"the field {_GHOSTS!r} has the name of VTK's array of refined cells; leave it out of "
            "the fields"
        )
    return names


def _grids(amr: Amr, level: Level, names: list[str], threads: int | None) -> list[Any]:
    """Return the boxes of a level as VTK grids with fields."""
    for name in names if amr.layout == "tree" and len(level.boxes) else ():
        level.read(name, 0)  # reads the field for all levels

    def made(index: int) -> Any:
        return _grid(amr, level, index, {name: level.read(name, index) for name in names})

    if amr.layout == "tree":
        return [made(index) for index in range(len(level.boxes))]
    with ThreadPoolExecutor(threads or _core.default_threads()) as pool:
        values = pool.map(
            lambda index: {name: level.read(name, index) for name in names}, range(len(level.boxes))
        )
        # VTK objects are created in one thread: their reference counts are not atomic.
        return [_grid(amr, level, index, fields) for index, fields in enumerate(values)]


def _grid(amr: Amr, level: Level, index: int, fields: dict[str, np.ndarray]) -> Any:
    lo, hi = level.boxes[index]
    size = np.array(level.cell_size)
    grid = vtkUniformGrid()
    grid.SetOrigin(_three((np.array(amr.lower) + lo * size).tolist(), 0.0))
    grid.SetSpacing(_three(level.cell_size, 1.0))
    grid.SetDimensions(_three((hi - lo + 1).tolist(), 1))
    data = grid.GetCellData()
    for name, values in fields.items():
        array = array_of(values)
        array.SetName(name)
        data.AddArray(array)
    ghosts = array_of(level.refined(index).astype(np.uint8) * np.uint8(REFINED))
    ghosts.SetName(_GHOSTS)
    data.AddArray(ghosts)
    return grid


def _three(values: Sequence[Any], rest: Any) -> list[Any]:
    return [*values, *[rest] * (3 - len(values))]

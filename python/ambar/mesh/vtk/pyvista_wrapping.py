"""PyVista objects for VTK objects, if PyVista is installed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ambar.mesh.storage.description import blocks_of

_KEYS = {"point_data": "POINT", "cell_data": "CELL", "field_data": "NONE"}


def pyvista_types(mesh: Any, key: str) -> dict[str, str]:
    """Return "bitarray" or "complex" for the names of arrays in a list of a description.

    PyVista stores bools as bytes and complex numbers as pairs, and keeps the names of these arrays.
    """
    names: dict[str, str] = {}
    for flag in ("bitarray", "complex"):
        kept = getattr(mesh, f"_association_{flag}_names", {})
        names.update(dict.fromkeys(kept.get(_KEYS.get(key), ()), flag))
    return names


def wrap_for_pyvista(mesh: Any, described: Any, user_dict: Mapping[str, Any] | None = None) -> Any:
    """Return the PyVista object of a VTK object; unchanged if PyVista does not have its type."""
    if mesh is None or find_spec("pyvista") is None:
        return mesh
    import pyvista

    if mesh.IsA("vtkMultiBlockDataSet"):
        _wrap_shared(mesh, {})
    try:
        # Array lengths were checked; PyVista 0.49 cannot check those of tables in blocks.
        found = pyvista.wrap(mesh, validate=False)
    except (NotImplementedError, TypeError):
        return mesh
    _mark(found, described)
    if user_dict and isinstance(found, pyvista.DataObject):
        found.user_dict = {**found.user_dict, **user_dict}
    return found


def blocks_of_amr(mesh: Any, lowest: int) -> Any:
    """Return AMR data of VTK, which PyVista does not have, as a `pyvista.MultiBlock`.

    It has a block for each level, named after its number from `lowest` on, which has a
    `pyvista.ImageData` for each box. Arrays are not copied. Covered cells stay marked by
    ``vtkGhostType``. A grid alone becomes an ImageData.
    """
    import pyvista

    from ambar.snapshot.interop.vtk_amr import blocks_of

    if not mesh.IsA("vtkOverlappingAMR"):
        return pyvista.ImageData(mesh)
    levels = {}
    for level in range(mesh.GetNumberOfLevels()):
        grids = (
            None if grid is None else pyvista.ImageData(grid) for grid in blocks_of(mesh, level)
        )
        levels[f"level_{lowest + level}"] = pyvista.MultiBlock(list(grids))
    return pyvista.MultiBlock(levels)


def _wrap_shared(mesh: Any, seen: dict[str, tuple[Any, int]]) -> None:
    """Replace each block that occurs several times by one PyVista object.

    PyVista would create an object for each occurrence. `seen` has the parent and the index of each
    block by its address.
    """
    import pyvista

    for index in range(mesh.GetNumberOfBlocks()):
        block = mesh.GetBlock(index)
        if block is None:
            continue
        if block.IsA("vtkMultiBlockDataSet"):
            _wrap_shared(block, seen)
        elif block.__this__ not in seen:
            seen[block.__this__] = mesh, index
        elif f"vtk{block.GetClassName().removeprefix('vtk')}" in pyvista._wrappers:
            parent, first = seen[block.__this__]
            if not isinstance(parent.GetBlock(first), pyvista.DataObject):
                parent.SetBlock(first, pyvista.wrap(block, validate=False))
            mesh.SetBlock(index, parent.GetBlock(first))


def _mark(mesh: Any, described: Any) -> None:
    """Mark the arrays that are bools or complex numbers in PyVista."""
    if not isinstance(described, dict):
        return
    for key, association in _KEYS.items():
        for entry in described.get(key) or ():
            kept = getattr(mesh, f"_association_{entry.get('pyvista')}_names", None)
            if kept is not None:
                kept[association].add(entry["name"])
    if described.get("type") == "MultiBlockDataSet":
        for index, (_, block) in enumerate(blocks_of(described)):
            if block is not None:
                _mark(mesh.GetBlock(index), block)

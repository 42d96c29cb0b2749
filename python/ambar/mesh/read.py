"""Reading the mesh in a store, or the cells of an output there as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ambar.mesh.get import get_mesh
from ambar.mesh.storage.description import Block, Names
from ambar.snapshot.regions import Bounds, Box
from ambar.store.locations import Place, open_store


def read_mesh(
    path: Place,
    *,
    point_data: Names = None,
    cell_data: Names = None,
    field_data: Names = None,
    block: Block | None = None,
    region: Box | Bounds | None = None,
    original_ids: bool = False,
    threads: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Any:
    """Return the VTK object in a store: PyVista's where PyVista is installed and has its type.

    The cells of an output, or a plotfile, are one of VTK's type vtkOverlappingAMR; `Amr.to_vtk` has
    more options for them.

    Parameters
    ----------
    path
        The store: a file, a folder, or a URL; or the bytes of its file, in memory or in a binary
        file object.
    point_data, cell_data, field_data
        Names of the arrays to read on points, on cells (or the rows of a table), and on the whole;
        all by default, none for an empty list. Only their bytes are read. Of several blocks, each
        has those that it has.
    block
        Which block of a multi-block or partitioned object to read: its number or name; a sequence
        of these for a block in a block. Of AMR data (level, block).
    region
        A `Box` in the mesh's coordinates, or bounds (x0, x1, y0, y1, z0, z1) as PyVista's
        ``mesh.bounds``: the cells whose bounds touch it are read, with their points, numbered anew.
        Of images, rectilinear and structured grids the smallest extent that
        has them all (of an image with a direction, one around them); of a point set the points
        inside. Of a mesh written with ``reorder=True`` only chunks that touch are read.
    original_ids
        Whether to add arrays ``vtkOriginalPointIds`` and ``vtkOriginalCellIds``, of what numbers
        points and cells had in the mesh that was written, where these are not 0, 1, 2, ...
    threads
        Threads to decode with; all cores by default.
    storage_options
        For URLs, as for `ambar.open`.

    Raises
    ------
    CorruptError
        If it is not a store, or is damaged.
    ValueError
        If it is a store of another kind, the box is invalid, or `threads` are fewer than 1.
    UnsupportedError
        If there is a region, and a part of the object's type cannot be read.
    KeyError
        If an array or a block does not exist.
    FileNotFoundError
        If the path or the URL does not exist.
    """
    store = open_store(path, storage_options)
    if store.ambar_attributes().get("kind") == "snapshot":
        from ambar.mesh.amr_mesh import AmrMesh
        from ambar.snapshot.snapshot import Snapshot, StoredSource

        cells = AmrMesh(Snapshot(StoredSource(store, "/", store.ambar_attributes())))
        return cells.read(
            point_data=point_data,
            cell_data=cell_data,
            field_data=field_data,
            block=block,
            region=region,
            original_ids=original_ids,
            threads=threads,
        )
    return get_mesh(
        store,
        "",
        point_data=point_data,
        cell_data=cell_data,
        field_data=field_data,
        block=block,
        region=region,
        original_ids=original_ids,
        threads=threads,
    )

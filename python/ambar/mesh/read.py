"""Reading the mesh in a store, or the cells of an output as a mesh, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ambar.mesh.mesh import Mesh
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
    where: str | None = None,
    original_ids: bool = False,
    threads: int | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Any:
    """Read a VTK object from a store.

    The cells of a RAMSES output or a plotfile are read as a vtkOverlappingAMR; `Amr.to_vtk` has
    more options for them.

    Parameters
    ----------
    path : str, path-like, bytes or binary file
        The store: a file, a folder, or a URL; or the bytes of a file, in memory or in a binary file
        object.
    point_data, cell_data, field_data : sequence of str, optional
        The names of the arrays to read on points, on cells (or rows of a table), and in field data;
        all by default. Only these arrays are read from the store. Blocks without one of the arrays
        are read without it.
    block : int, str or sequence, optional
        The block of a multi-block or partitioned object to read: its number or name, or a sequence
        of these for nested blocks. (level, block) for AMR data. The whole object by default.
    region : Box or (x0, x1, y0, y1, z0, z1), optional
        A box in the coordinates of the mesh. The cells whose bounds overlap it are read, with their
        points, which are renumbered. For images, rectilinear and structured grids, the smallest
        extent around these cells is read; for point sets, the points in the box. For a mesh that
        was written with ``reorder=True``, only chunks that overlap the box are read.
    where : str, optional
        A condition on arrays and on the coordinates x, y and z of points, such as ``"pressure > 2
        and x < 1"``. The cells for which it holds are read, with their points, which are
        renumbered; a condition on points must hold for all points of a cell. Images, rectilinear
        and structured grids become unstructured grids. A component of a vector is ``velocity.x``.
    original_ids : bool, default False
        Whether to add the arrays ``vtkOriginalPointIds`` and ``vtkOriginalCellIds``: the numbers of
        points and cells in the mesh that was written. They are not added if these are 0, 1, 2 and
        so on.
    threads : int, optional
        The number of threads that decode; all cores by default.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.

    Returns
    -------
    vtkDataObject
        A PyVista object, if PyVista is installed and has the type.

    Raises
    ------
    FileNotFoundError
        If the path or the URL does not exist.
    KeyError
        If an array or a block does not exist.
    ValueError
        If the store is of another kind, or the region, the condition or `threads` is invalid.
    UnsupportedError
        If the type of the object does not support regions and conditions.
    CorruptError
        If the path is not a store, or the store is damaged.

    Examples
    --------
    >>> mesh = ambar.read_mesh("wing.ambar", point_data=["pressure"], cell_data=[])
    >>> mesh.n_points, mesh.array_names
    (64, ['pressure'])
    """
    store = open_store(path, storage_options)
    mesh: Any
    if store._ambar_attributes().get("kind") == "snapshot":
        from ambar.mesh.amr_mesh import AmrMesh
        from ambar.snapshot.snapshot import Snapshot, StoredSource

        mesh = AmrMesh(Snapshot(StoredSource(store, "/")))
    else:
        mesh = Mesh(store)
    return mesh.read(
        point_data=point_data,
        cell_data=cell_data,
        field_data=field_data,
        block=block,
        region=region,
        where=where,
        original_ids=original_ids,
        threads=threads,
    )

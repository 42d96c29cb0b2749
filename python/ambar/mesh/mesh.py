"""Meshes in stores, and cells of snapshots with the same interface; reading VTK objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.arguments import names_of
from ambar._util.optional import require
from ambar._util.properties import cached_property
from ambar.kinds.figures import draw_object
from ambar.kinds.viewable import Viewable
from ambar.mesh.arrays import MeshArray, field_arrays, geometry_arrays
from ambar.mesh.select.array_rows import Rows, read_array_rows
from ambar.mesh.storage.array_reader import ArrayReader
from ambar.mesh.storage.description import (
    ORIGINAL_IDS,
    Association,
    Block,
    Names,
    blocks_of,
    check_names,
    description_of,
    field_entries,
    select_arrays,
    select_block,
)
from ambar.mesh.storage.extents import counts_of
from ambar.snapshot.regions import Bounds, Box, as_box
from ambar.store.locations import Place, open_store
from ambar.store.store import Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ambar.snapshot.amr import Amr
    from ambar.snapshot.snapshot import Snapshot

_MAX_ROWS = 40
"""The largest number of arrays in a representation."""
_OPEN_ROWS = 10


class Mesh(Viewable):
    """A VTK object in a store. Its properties come from metadata; `read` reads the values.

    `ambar.open_mesh` and the items of a `MeshSeries` return it.

    Parameters
    ----------
    store : Store
        The store.
    path : str, default ""
        The group of the mesh; the root by default.

    Examples
    --------
    >>> mesh = ambar.open_mesh("wing.ambar")
    >>> mesh
    <ambar.Mesh> wing.ambar
      Type:    UnstructuredGrid
      Points:  64
      Cells:   135
      Bounds:  x from 0 to 3, y from 0 to 3, z from 0 to 3
      Arrays:  2
        point  pressure            (64,)   float64  512 B as ...
        cell   vtkOriginalCellIds  (135,)  int32    540 B as ...
    >>> float(mesh.read()["pressure"].max())
    63.0
    """

    _kind = "mesh"

    def __init__(self, store: Store, path: str = "") -> None:
        self._store = store
        self._path = path.strip("/")
        self._about = description_of(store, path)

    @property
    def location(self) -> str:
        """File, folder or URL of the store."""
        return self.store.location

    @property
    def store(self) -> Store:
        """The store, with the arrays as they are stored."""
        return self._store

    @property
    def path(self) -> str:
        """The group of the mesh in the store; "" for the root."""
        return self._path

    @property
    def type(self) -> str:
        """The type of the VTK object without the prefix vtk, such as "UnstructuredGrid"."""
        return str(self._about.get("type"))

    @property
    def user_dict(self) -> dict[str, Any]:
        """The dict that was given to `ambar.write_mesh`; empty by default."""
        with self._reader().damage_as_errors():
            return dict(self._about.get("user_dict") or {})

    @property
    def blocks(self) -> list[str | None]:
        """The names of the blocks, None for unnamed ones."""
        return [name for name, _ in blocks_of(self._about)]

    @property
    def n_points(self) -> int:
        """The number of points, of all blocks together."""
        return self._counts[0]

    @property
    def n_cells(self) -> int:
        """The number of cells, of all blocks together."""
        return self._counts[1]

    @property
    def bounds(self) -> tuple[float, float, float, float, float, float] | None:
        """The bounds (x0, x1, y0, y1, z0, z1); None if they are not finite."""
        bounds = self._about.get("bounds")
        if bounds is None:
            return None
        with self._reader().damage_as_errors():
            x0, x1, y0, y1, z0, z1 = map(float, bounds)
        return x0, x1, y0, y1, z0, z1

    @cached_property
    def _counts(self) -> tuple[int, int]:
        reader = self._reader()
        with reader.damage_as_errors():
            return counts_of(self._about, reader)

    @cached_property
    def arrays(self) -> list[MeshArray]:
        """The arrays on points, cells and rows and in field data, also those of blocks."""
        reader = self._reader()
        with reader.damage_as_errors():
            return list(field_arrays(self._about, reader))

    @cached_property
    def geometry(self) -> list[MeshArray]:
        """The arrays of coordinates, cells and other parts of the mesh itself."""
        reader = self._reader()
        with reader.damage_as_errors():
            return list(geometry_arrays(self._about, reader))

    def plot(
        self, fields: str | Sequence[str] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Any:
        """Draw the mesh as ``ambar plot`` does, rendered off screen by PyVista.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Arrays on points or cells, each in a panel; by default the active one, or the first of
            numbers.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            Options of ``ambar plot``: `log`, `limits`, `colors`, `title`, `against` (another
            version of the mesh).

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If an array does not exist.
        ValueError
            If an option is invalid, or there are no points.
        UnsupportedError
            If PyVista cannot draw the type of the mesh.
        ModuleNotFoundError
            If matplotlib or PyVista is not installed.

        Examples
        --------
        >>> axes = ambar.open_mesh("wing.ambar").plot("pressure", colors="viridis")
        >>> axes.figure.savefig("wing.png")
        """
        from ambar.mesh.drawing import MeshPlot, draw

        where = self.location
        return draw_object(draw, self, ("mesh", MeshPlot), where, fields, ax, options)

    def _reader(self, threads: int | None = None) -> ArrayReader:
        return ArrayReader(self._store, self._path, self._about.get("packed"), threads)

    def read(
        self,
        *,
        point_data: Names = None,
        cell_data: Names = None,
        field_data: Names = None,
        block: Block | None = None,
        region: Box | Bounds | None = None,
        where: str | None = None,
        original_ids: bool = False,
        threads: int | None = None,
        wrap: bool = True,
    ) -> Any:
        """Return the VTK object, or the PyVista object if PyVista is installed.

        Parameters
        ----------
        point_data, cell_data, field_data : sequence of str, optional
            The names of the arrays to read; all by default.
        block : int, str or sequence, optional
            The block to read, as for `ambar.read_mesh`.
        region : Box or (x0, x1, y0, y1, z0, z1), optional
            A box whose cells are read, as for `ambar.read_mesh`.
        where : str, optional
            A condition on the cells that are read, as for `ambar.read_mesh`.
        original_ids : bool, default False
            Whether to add the original numbers of points and cells, as for `ambar.read_mesh`.
        threads : int, optional
            The number of threads that decode; all cores by default.
        wrap : bool, default True
            Whether to return PyVista objects. If False, VTK objects are returned.

        Returns
        -------
        vtkDataObject
            A PyVista object, if PyVista has the type.

        Raises
        ------
        KeyError
            If an array or a block does not exist.
        ValueError
            If the region, the condition or `threads` is invalid.
        UnsupportedError
            If the type of the object does not support regions and conditions.
        CorruptError
            If the store is damaged.

        Examples
        --------
        >>> mesh = ambar.open_mesh("wing.ambar")
        >>> part = mesh.read(point_data=["pressure"], region=(0, 0.5, 0, 0.5, 0, 0.5))
        >>> part.n_cells
        5
        >>> mesh.read(where="pressure > 40 and x < 2").n_cells
        5
        """
        require("vtkmodules", purpose="reading meshes", install="ambar[mesh]")
        from ambar.mesh.select.region import PartReader, parse_condition
        from ambar.mesh.select.region_cells import BoxOverlap
        from ambar.mesh.vtk.objects import build
        from ambar.mesh.vtk.pyvista_wrapping import wrap_for_pyvista

        reader = self._reader(threads)
        described = select_block(self._about, block, reader.where)
        overlap = None if region is None else BoxOverlap(region)
        condition = None if where is None else parse_condition(where)
        names = {"point_data": point_data, "cell_data": cell_data, "field_data": field_data}
        names = {
            key: None if wanted is None else names_of(key, wanted) for key, wanted in names.items()
        }
        with reader.damage_as_errors():
            parts = PartReader(reader, overlap, condition, original_ids)
            described = parts.extract(described)
            described = _select_named(described, names, reader, original_ids)
            reader.load(described)
            mesh = build(described, reader)
        user_dict = self.user_dict if block is None else None
        return wrap_for_pyvista(mesh, described, user_dict) if wrap else mesh

    def read_array(
        self,
        name: str,
        *,
        association: Association | None = None,
        rows: Rows | None = None,
        block: Block | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return an array, or some of its rows. Only the chunks of these rows are read.

        Parameters
        ----------
        name : str
            The name of the array.
        association : {"point", "cell", "row", "field"}, optional
            What the array has values for; required if several arrays have the name.
        rows : slice, sequence of int or ndarray of bool, optional
            The tuples to read; all by default. Points and cells of grids are numbered as in VTK, x
            fastest; those of a mesh that was written with ``reorder=True`` in the new order.
        block : int, str or sequence, optional
            The block with the array, as for `ambar.read_mesh`.
        threads : int, optional
            The number of threads that decode; all cores by default.

        Returns
        -------
        ndarray (rows,) or (rows, components)
            The values. Bools and complex numbers have the dtype that they have in PyVista, strings
            are objects.

        Raises
        ------
        KeyError
            If the array or the block does not exist.
        ValueError
            If several arrays have the name, or `rows` is invalid.
        IndexError
            If a number in `rows` is out of bounds.
        CorruptError
            If the store is damaged.

        Examples
        --------
        >>> mesh = ambar.open_mesh("wing.ambar")
        >>> mesh.read_array("pressure", rows=slice(2, 5))
        array([2., 3., 4.])
        """
        reader = self._reader(threads)
        described = select_block(self._about, block, reader.where)
        return read_array_rows(described, reader, name, association, rows)

    def _properties(self) -> dict[str, object]:
        return {
            "Group": self._path or None,
            "Type": self.type,
            "Blocks": len(self.blocks) or None,
            "Points": f"{self.n_points:,}",
            "Cells": f"{self.n_cells:,}",
            "Bounds": None if self.bounds is None else bounds_text(self.bounds),
        }

    def _rows(self) -> list[tuple[str, ...]]:
        return [array._summary() for array in self.arrays[:_MAX_ROWS]]

    def __repr__(self) -> str:
        """Return type, sizes and bounds, and a line for each array."""
        left_out = len(self.arrays) - _MAX_ROWS
        more = [f"  ... and {left_out} more"] if left_out > 0 else []
        properties = {**self._properties(), "Arrays": f"{len(self.arrays):,}"}
        return text.representation(
            f"<ambar.Mesh> {self.location}", properties, text.columns(self._rows(), 4), more
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        rows = self._rows()
        names = ("association", "name", "shape", "dtype", "size", "codecs", "block")
        more = f" (the first {len(rows)})" if len(rows) < len(self.arrays) else ""
        section = html.details(
            f"{len(self.arrays)} arrays{more}",
            html.table(rows, names),
            is_open=len(rows) <= _OPEN_ROWS,
        )
        return html.representation(
            f"ambar.Mesh {self.location}", self._properties(), section if rows else ""
        )


class AmrMesh:
    """The cells of a snapshot with the interface of `Mesh`. Nothing is opened before it is used."""

    type = "OverlappingAMR"
    """The type of the VTK object, without its prefix vtk."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def amr(self) -> Amr:
        """The cells; raises KeyError if the snapshot has none."""
        return self._snapshot.amr

    @property
    def fields(self) -> list[str]:
        """The names of the fields, which become cell arrays."""
        return [name for name in self.amr.fields if name != "domain"]

    def read(
        self,
        *,
        point_data: Names = None,
        cell_data: Names = None,
        field_data: Names = None,
        block: Block | None = None,
        region: Box | Bounds | None = None,
        where: str | None = None,
        original_ids: bool = False,
        threads: int | None = None,
        levels: tuple[int, int] | None = None,
        wrap: bool = True,  # noqa: ARG002 - as `Mesh.read` has it; PyVista has no such type
    ) -> Any:
        """Return a vtkOverlappingAMR, or the vtkUniformGrid of a block.

        Arguments are those of `ambar.read_mesh`; `levels` those of `Amr.to_vtk`.

        Raises
        ------
        KeyError
            If a field or block does not exist; there are only arrays on cells.
        CorruptError
            If a checksum differs.
        """
        require("vtkmodules", purpose="reading meshes", install="ambar[mesh]")
        from ambar.snapshot.interop.vtk_amr import overlapping_amr

        if original_ids or where is not None:
            option = "original_ids" if original_ids else "where"
            raise _core.InvalidError(
                f"{self._snapshot.location}: {option} does not apply to AMR data; leave it out"
            )
        wanted = {"point_data": point_data, "cell_data": cell_data, "field_data": field_data}
        for key, names in wanted.items():
            known = self.fields if key == "cell_data" else []
            check_names(self._snapshot.location, key, names, known)
        box = None if region is None else as_box(region)
        mesh = overlapping_amr(self.amr, cell_data, levels, box, threads)
        return mesh if block is None else self._block(mesh, block)

    def _block(self, mesh: Any, block: Block) -> Any:
        """Return the grid of (level, block); raises KeyError if it does not exist."""
        from ambar.snapshot.interop.vtk_amr import blocks_of

        steps = [block] if isinstance(block, (int, str)) else list(block)
        if len(steps) == 2 and steps[0] in range(mesh.GetNumberOfLevels()):
            blocks = blocks_of(mesh, int(steps[0]))
            if steps[1] in range(len(blocks)):
                return blocks[int(steps[1])]
        raise _core.NotFoundError(
            f"{self._snapshot.location}: no block {block!r}; give (level, block) of "
            f"{mesh.GetNumberOfLevels()} levels"
        )


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
        was written with ``reorder=True``, only chunks that overlap the box are read. Where a box or
        a condition selects no cells, the mesh is empty: ``n_cells`` is 0, and VTK has no bounds.
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


def _select_named(
    described: Any, names: dict[str, Names], reader: ArrayReader, original_ids: bool
) -> Any:
    """Return a description with only the named arrays, and those of the original ids.

    Those of `cell_data` include rows. Raises KeyError if an array does not exist.
    """
    found: dict[str, set[str]] = {key: set() for key in names}
    for key, entry, _ in field_entries(described):
        found["cell_data" if key == "row_data" else key].add(str(entry.get("name")))
    for key, wanted in names.items():
        check_names(reader.where, key, wanted, sorted(found[key]))
    added = ORIGINAL_IDS.values() if original_ids else ()
    kept = {key: None if wanted is None else [*wanted, *added] for key, wanted in names.items()}
    return select_arrays(described, {**kept, "row_data": kept["cell_data"]})


def bounds_text(bounds: Sequence[float]) -> str:
    """Return bounds as text: x from 0 to 1, y from ..."""
    pairs = zip("xyz", bounds[::2], bounds[1::2], strict=True)
    return ", ".join(f"{axis} from {low:.6g} to {high:.6g}" for axis, low, high in pairs)

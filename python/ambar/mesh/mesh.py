"""A mesh in a store: what it is and which arrays it has, told without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.mesh.arrays import MeshArray, field_arrays, geometry_arrays
from ambar.mesh.get import get_mesh
from ambar.mesh.select.array_rows import Rows, rows_of_array
from ambar.mesh.storage.description import (
    Association,
    Block,
    Names,
    blocks_of,
    chosen_block,
    description_of,
)
from ambar.mesh.storage.extents import counts_of
from ambar.mesh.storage.source import Source
from ambar.snapshot.regions import Bounds, Box
from ambar.store.store import Store


class Mesh:
    """A mesh in a store; `read` reads it.

    Parameters
    ----------
    store
        The store.
    path
        The mesh's group.
    """

    def __init__(self, store: Store, path: str = "") -> None:
        self._store = store
        self._path = path.strip("/")
        self._about = description_of(store, path)

    @property
    def store(self) -> Store:
        """The store, with all arrays as they lie there."""
        return self._store

    @property
    def path(self) -> str:
        """The mesh's group in the store, "" for the root."""
        return self._path

    @property
    def type(self) -> str:
        """The type of the VTK object, without its prefix vtk: "UnstructuredGrid"."""
        return str(self._about.get("type"))

    @property
    def user_dict(self) -> dict[str, Any]:
        """What was to be kept with it."""
        return dict(self._about.get("user_dict") or {})

    @property
    def blocks(self) -> list[str | None]:
        """The names of its blocks, None for those without; of AMR data one for each level."""
        return [name for name, _ in blocks_of(self._about)]

    @property
    def n_points(self) -> int:
        """The number of its points, those of all blocks together; 0 of hyper-tree grids."""
        return self._counts[0]

    @property
    def n_cells(self) -> int:
        """The number of its cells, those of all blocks together; 0 of hyper-tree grids."""
        return self._counts[1]

    @property
    def bounds(self) -> tuple[float, float, float, float, float, float] | None:
        """Its bounds (x0, x1, y0, y1, z0, z1), as VTK had them; None if it had no finite ones."""
        bounds = self._about.get("bounds")
        if bounds is None:
            return None
        try:
            x0, x1, y0, y1, z0, z1 = map(float, bounds)
        except (TypeError, ValueError) as error:
            raise _core.CorruptError(
                f"{self._store.location}: mesh /{self._path}: its bounds are {bounds!r:.80}, not "
                "six numbers; restore the store from a copy"
            ) from error
        return x0, x1, y0, y1, z0, z1

    @cached_property
    def _counts(self) -> tuple[int, int]:
        source = self._source()
        try:
            return counts_of(self._about, source)
        except (IndexError, TypeError, ValueError) as error:
            raise source.damaged(f"its geometry is not described ({error!r})") from error

    @cached_property
    def arrays(self) -> list[MeshArray]:
        """The arrays on points, cells and rows and in field data, also those of blocks."""
        return list(field_arrays(self._about, self._source()))

    @cached_property
    def geometry(self) -> list[MeshArray]:
        """The arrays of coordinates, cells and other parts of the mesh itself."""
        return list(geometry_arrays(self._about, self._source()))

    def _source(self, threads: int | None = None) -> Source:
        return Source(self._store, self._path, self._about.get("packed"), threads)

    def read(
        self,
        *,
        point_data: Names = None,
        cell_data: Names = None,
        field_data: Names = None,
        block: Block | None = None,
        region: Box | Bounds | None = None,
        original_ids: bool = False,
        threads: int | None = None,
        wrap: bool = True,
    ) -> Any:
        """Return the VTK object, or PyVista's; arguments and errors as of `ambar.read_mesh`.

        With ``wrap=False`` it is VTK's own, even where PyVista is installed.
        """
        return get_mesh(
            self._store,
            self._path,
            point_data=point_data,
            cell_data=cell_data,
            field_data=field_data,
            block=block,
            region=region,
            original_ids=original_ids,
            threads=threads,
            wrap=wrap,
        )

    def read_array(
        self,
        name: str,
        *,
        association: Association | None = None,
        rows: Rows | None = None,
        block: Block | None = None,
        threads: int | None = None,
    ) -> np.ndarray:
        """Return an array, or some rows of it; of these only the chunks are read and decoded.

        Parameters
        ----------
        name
            Its name.
        association
            What it is on: "point", "cell", "row" or "field"; needed where several have the name.
        rows
            Which tuples: a slice, a list of numbers, or a bool for each; all by default. Points and
            cells are counted as VTK counts them, on grids x quickest; of a mesh that was written
            with ``reorder=True``, in the order that it lies in then.
        block
            The block that has it, as for `ambar.read_mesh`.
        threads
            Threads to decode with; all cores by default.

        Returns
        -------
        ndarray
            The values (rows,), or (rows, components) of several components; bools and complex
            numbers where PyVista has them, objects for texts.

        Raises
        ------
        KeyError
            If the array or block does not exist.
        ValueError
            If several arrays have the name, or `rows` are none.
        IndexError
            If a row in a list is outside of the array.
        CorruptError
            If a checksum differs.
        """
        source = self._source(threads)
        described = chosen_block(self._about, block, source.where)
        return rows_of_array(described, source, name, association, rows)

    def __repr__(self) -> str:
        """Return a line for the mesh, one for its bounds, one for each array."""
        most = 40
        blocks = f", {len(self.blocks)} blocks" if self.blocks else ""
        counts = f", {self.n_points:,} points, {self.n_cells:,} cells"
        lines = [f"<ambar.Mesh: {self._store.location}, {self.type}{blocks}{counts}>"]
        if self.bounds is not None:
            lines.append(f"  bounds {bounds_text(self.bounds)}")
        for info in self.arrays[:most]:
            block = f"  block {'/'.join(map(str, info.block))}" if info.block else ""
            lines.append(
                f"  {info.association:<6} {info.name!s:<28} {info.dtype:<8} {info.shape}{block}"
            )
        if len(self.arrays) > most:
            lines.append(f"  ... and {len(self.arrays) - most} more")
        return "\n".join(lines)


def bounds_text(bounds: Sequence[float]) -> str:
    """Return bounds as people read them: x from 0 to 1, ..."""
    pairs = zip("xyz", bounds[::2], bounds[1::2], strict=True)
    return ", ".join(f"{axis} from {low:.6g} to {high:.6g}" for axis, low, high in pairs)

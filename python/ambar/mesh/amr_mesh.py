"""The cells of a snapshot as a mesh: VTK's overlapping AMR data."""

from __future__ import annotations

from typing import Any

from ambar import _core
from ambar.mesh.storage.description import Block, Names, check_names
from ambar.snapshot.amr import Amr
from ambar.snapshot.regions import Bounds, Box, as_box
from ambar.snapshot.snapshot import Snapshot


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

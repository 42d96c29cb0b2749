"""The writer of ``mesh.save("x.ambar")``, and the accessor ``mesh.ambar``, of PyVista's objects."""

from __future__ import annotations

import os
from typing import Any

import pyvista

from ambar.mesh.write import write_mesh


def write(mesh: Any, path: str, **options: Any) -> None:
    """Write a mesh for ``mesh.save("x.ambar", **options)``.

    Replaces an existing file by default, as PyVista's other writers do. Options and errors are
    those of `ambar.write_mesh`.
    """
    write_mesh(mesh, path, **{"mode": "w", **options})


@pyvista.register_dataset_accessor("ambar", pyvista.DataObject)
class AmbarAccessor:
    """``mesh.ambar.write("x.ambar")``."""

    def __init__(self, mesh: Any) -> None:
        self._mesh = mesh

    def write(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the mesh to a new store; options and errors are those of `ambar.write_mesh`."""
        write_mesh(self._mesh, path, **options)

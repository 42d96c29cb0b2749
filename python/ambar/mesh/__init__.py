"""The kind `mesh`: VTK objects in stores. VTK is loaded when it is needed."""

from __future__ import annotations

from ambar.mesh.arrays import MeshArray
from ambar.mesh.mesh import Mesh, read_mesh
from ambar.mesh.series import MeshSeries
from ambar.mesh.write import write_mesh

__all__ = ["Mesh", "MeshArray", "MeshSeries", "read_mesh", "write_mesh"]

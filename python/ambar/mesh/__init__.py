"""The kind `mesh`: VTK's objects, written, read and looked at; VTK is loaded when it is needed."""

from __future__ import annotations

from ambar.mesh.arrays import MeshArray
from ambar.mesh.get import get_mesh
from ambar.mesh.mesh import Mesh
from ambar.mesh.read import read_mesh
from ambar.mesh.series import MeshSeries
from ambar.mesh.write import put_mesh, write_mesh

__all__ = [
    "Mesh",
    "MeshArray",
    "MeshSeries",
    "get_mesh",
    "put_mesh",
    "read_mesh",
    "write_mesh",
]

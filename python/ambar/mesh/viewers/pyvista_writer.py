"""The writer of ``mesh.save("x.ambar")``, and the accessor ``mesh.ambar`` of PyVista objects."""

from __future__ import annotations

import os
from typing import Any

import pyvista

from ambar.mesh.write import write_mesh

__all__ = ["AmbarAccessor", "write"]


def write(mesh: Any, path: str, **options: Any) -> None:
    """Write a mesh for ``mesh.save("x.ambar", **options)``.

    Parameters
    ----------
    mesh : pyvista.DataObject
        The mesh.
    path : str
        The path of the store. An existing file is replaced, as by PyVista's other writers.
    **options
        As for `ambar.write_mesh`, which also lists the errors; `mode` is "w" by default.

    Examples
    --------
    >>> import pyvista
    >>> pyvista.Sphere().save("sphere.ambar", profile="small")
    >>> pyvista.read("sphere.ambar").n_points
    842
    """
    write_mesh(mesh, path, **{"mode": "w", **options})


@pyvista.register_dataset_accessor("ambar", pyvista.DataObject)
class AmbarAccessor:
    """The attribute ``ambar`` of PyVista objects."""

    def __init__(self, mesh: Any) -> None:
        self._mesh = mesh

    def write(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the mesh to a store.

        Parameters
        ----------
        path : str or path-like
            The path of the store.
        **options
            As for `ambar.write_mesh`, which also lists the errors. `mode` is "w-" by default: an
            existing file is not replaced.

        Examples
        --------
        >>> import pyvista
        >>> pyvista.Sphere().ambar.write("sphere.ambar", mode="w-")
        """
        write_mesh(self._mesh, path, **options)

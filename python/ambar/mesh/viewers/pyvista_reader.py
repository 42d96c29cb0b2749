"""The reader of `.ambar` files that ``pyvista.read`` uses."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pyvista
from pyvista.core.utilities.reader import (
    BaseReader,
    BaseVTKReader,
    PointCellDataSelection,
    TimeReader,
)

from ambar import _core
from ambar.mesh.mesh import AmrMesh
from ambar.mesh.steps import (
    ASSOCIATIONS,
    AnyMesh,
    Steps,
    array_names,
    enabled_arrays,
    step_at,
    steps_of,
)
from ambar.mesh.vtk.pyvista_wrapping import blocks_of_amr

__all__ = ["AmbarReader"]


class _MeshReader(BaseVTKReader):  # type: ignore[misc]
    """The VTK reader of PyVista's reader: names and status of arrays, and the mesh."""

    def __init__(self) -> None:
        super().__init__()
        self.mesh: AnyMesh | None = None
        self.steps = Steps([], [])
        self.step = 0
        self.status: dict[str, dict[str, bool]] = {of: {} for of in ASSOCIATIONS}
        self.options: dict[str, Any] = {}
        """Arguments of `Mesh.read`."""

    def SetFileName(self, filename: str) -> None:  # noqa: N802 - VTK's names, here and below
        self._filename = os.fspath(filename)

    def SetDirectoryName(self, name: str) -> None:  # noqa: N802
        self.SetFileName(name)

    def UpdateInformation(self) -> None:  # noqa: N802
        if not self.steps.meshes:
            try:
                self.steps = steps_of(self._filename)
            except _core.InvalidError as error:  # `pyvista.read` hides the reason of a ValueError
                raise _core.UnsupportedError(str(error)) from error
        self.mesh = self.steps.meshes[self.step]
        # Disabled arrays stay disabled in other steps.
        before, self.status = self.status, {association: {} for association in ASSOCIATIONS}
        for association, name in array_names(self.mesh):
            self.status[association][str(name)] = before[association].get(str(name), True)

    def Update(self) -> None:  # noqa: N802
        self._data_object = self.read()

    def read(self) -> Any:
        """Return the mesh with the arrays that are enabled."""
        if self.mesh is None:
            raise _core.InvalidError("the reader has no file: set its path")
        return self.mesh.read(**self.options, **enabled_arrays(self.status))

    def set_step(self, step: int) -> None:
        """Select a time step; disabled arrays stay disabled."""
        if step not in range(len(self.steps.times)):
            count = len(self.steps.times)
            raise _core.NotFoundError(f"{self._filename}: no time step {step}; it has {count}")
        self.step = step
        self.UpdateInformation()

    def set_status(self, association: str, name: str, status: int) -> None:
        """Enable or disable an array; raises KeyError if it does not exist."""
        known = self.status[association]
        if name not in known:
            raise _core.NotFoundError(
                f"{self._filename}: no {association} array {name!r}; available: "
                f"{', '.join(map(repr, known)) or 'none'}"
            )
        known[name] = bool(status)


def _add_vtk_methods(association: str) -> None:
    """Add the methods with VTK's names for arrays on points or on cells, which PyVista calls."""
    name = association.capitalize()
    methods: dict[str, Callable[..., Any]] = {
        f"GetNumberOf{name}Arrays": lambda self: len(self.status[association]),
        f"Get{name}ArrayName": lambda self, index: list(self.status[association])[index],
        f"Get{name}ArrayStatus": lambda self, array: self.status[association].get(array, False),
        f"Set{name}ArrayStatus": lambda self, *args: self.set_status(association, *args),
    }
    for method, function in methods.items():
        setattr(_MeshReader, method, function)


_add_vtk_methods("point")
_add_vtk_methods("cell")


def _option(name: str, default: Any, doc: str) -> property:
    """Return a property that is an option of the VTK reader."""

    def change(self: AmbarReader, value: Any) -> None:
        self.reader.options[name] = value

    return property(lambda self: self.reader.options.get(name, default), change, doc=doc)


def _selected_names(association: str, doc: str) -> property:
    """Return a property with the names of the enabled arrays."""

    def enable(self: AmbarReader, names: list[str]) -> None:
        for name in self.reader.status[association]:
            self.reader.set_status(association, name, False)
        for name in names:
            self.reader.set_status(association, name, True)

    return property(
        lambda self: [name for name, on in self.reader.status[association].items() if on],
        enable,
        doc=doc,
    )


class AmbarReader(BaseReader, PointCellDataSelection, TimeReader):  # type: ignore[misc]
    """The PyVista reader of meshes and series of meshes in stores.

    ``pyvista.get_reader("x.ambar")`` returns it. `point_data`, `cell_data`, `field_data`, `block`,
    `region`, `where`, `original_ids` and `threads` are those of `ambar.read_mesh`, and options of
    ``pyvista.read``. The cells of an output or a plotfile are read as blocks of levels, with fields
    as cell arrays.

    Examples
    --------
    >>> import pyvista
    >>> reader = pyvista.get_reader("steps.ambar")
    >>> reader.time_values
    [0.0, 0.5, 1.0]
    >>> reader.set_active_time_value(0.5)
    >>> reader.disable_all_cell_arrays()
    >>> mesh = reader.read()
    >>> mesh.array_names, float(mesh["pressure"][0])
    (['pressure'], 1.0)
    """

    _class_reader = _MeshReader

    def read(self, *, validate: bool | None = None) -> Any:
        """Return the mesh; a VTK object if PyVista does not have its type.

        Cells of an output are a `pyvista.MultiBlock`: a block for each level with the boxes.

        Parameters
        ----------
        validate : bool, optional
            As for `pyvista.wrap`.

        Returns
        -------
        pyvista.DataObject or vtkDataObject
            The mesh of the active time step. Errors are those of `ambar.read_mesh`.
        """
        mesh = self.reader.mesh
        if isinstance(mesh, AmrMesh):
            return blocks_of_amr(self.reader.read(), mesh.amr.levels[0])
        if not _wraps(mesh.type):
            return self.reader.read()
        return super().read(validate=validate)

    @property
    def number_time_points(self) -> int:
        """The number of time steps; 0 for a mesh alone."""
        return len(self.reader.steps.times)

    def time_point_value(self, time_point: int) -> float:
        """Return the time of a step."""
        return float(self.reader.steps.times[time_point])

    @property
    def active_time_value(self) -> float:
        """The time of the step that is read."""
        return self.time_point_value(self.reader.step)

    def set_active_time_value(self, time_value: float) -> None:
        """Select the step with the nearest time, within the tolerance of `ambar.MeshSeries.at`.

        Raises KeyError if no step has such a time.
        """
        self.set_active_time_point(step_at(self.reader.steps.times, time_value, self.path))

    def set_active_time_point(self, time_point: int) -> None:
        """Select a step by its number; raises KeyError if it does not exist."""
        self.reader.set_step(time_point)

    point_data = _selected_names("point", "Names of the arrays on points that are read.")
    cell_data = _selected_names("cell", "Names of the arrays on cells that are read.")
    field_data = _selected_names("field", "Names of the arrays in field data that are read.")
    block = _option("block", None, "The block that is read; None for all.")
    region = _option("region", None, "The box, or bounds, whose cells are read; None for all.")
    where = _option("where", None, "The condition on the cells that are read; None for all.")
    original_ids = _option(
        "original_ids", False, "Whether to add the original numbers of points and cells."
    )
    threads = _option("threads", None, "The number of threads that decode; None for all cores.")


def _wraps(type_name: str) -> bool:
    """Whether PyVista has a class for a type of VTK.

    Wrapping an empty object would not do: VTK leaves the extent of a new vtkExplicitStructuredGrid
    uninitialized, and copying it can crash the process.
    """
    return f"vtk{type_name}" in pyvista._wrappers

"""The reader of `.ambar` files that ``pyvista.read`` uses."""

from __future__ import annotations

import os
from typing import Any

import pyvista
from pyvista.core.utilities.reader import (
    BaseReader,
    BaseVTKReader,
    PointCellDataSelection,
    TimeReader,
)

from ambar import _core
from ambar.mesh.steps import AnyMesh, Steps, array_names, steps_of
from ambar.mesh.storage.description import Block
from ambar.mesh.times import step_at
from ambar.snapshot.regions import Bounds, Box

__all__ = ["AmbarReader"]

_ASSOCIATIONS = ("point", "cell", "field")


class _MeshReader(BaseVTKReader):  # type: ignore[misc]
    """The VTK reader of PyVista's reader: names and status of arrays, and the mesh."""

    def __init__(self) -> None:
        super().__init__()
        self.mesh: AnyMesh | None = None
        self.steps = Steps([], [])
        self.step = 0
        self.status: dict[str, dict[str, bool]] = {}
        self.block: Block | None = None
        self.region: Box | Bounds | None = None
        self.where: str | None = None
        self.original_ids = False
        self.threads: int | None = None

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
        self.status = {association: {} for association in _ASSOCIATIONS}
        for association, name in array_names(self.mesh):
            self.status[association][str(name)] = True

    def Update(self) -> None:  # noqa: N802
        self._data_object = self.read()

    def read(self) -> Any:
        """Return the mesh with the arrays that are enabled."""
        if self.mesh is None:
            raise _core.InvalidError("the reader has no file: set its path")
        wanted: dict[str, Any] = {f"{of}_data": self._wanted(of) for of in _ASSOCIATIONS}
        return self.mesh.read(
            block=self.block,
            region=self.region,
            where=self.where,
            original_ids=self.original_ids,
            threads=self.threads,
            **wanted,
        )

    def set_step(self, step: int) -> None:
        """Select a time step; disabled arrays stay disabled."""
        if step not in range(len(self.times)):
            count = len(self.times)
            raise _core.NotFoundError(f"{self._filename}: no time step {step}; it has {count}")
        before, self.step = self.status, step
        self.UpdateInformation()
        for association, status in self.status.items():
            status.update({name: on for name, on in before[association].items() if name in status})

    @property
    def times(self) -> list[float]:
        """The times of the steps, or their numbers; empty for a single mesh."""
        return list(self.steps.times)

    def _wanted(self, association: str) -> list[str] | None:
        status = self.status[association]
        return None if all(status.values()) else [name for name, on in status.items() if on]

    def set_status(self, association: str, name: str, on: bool) -> None:
        """Enable or disable an array; raises KeyError if it does not exist."""
        status = self.status[association]
        if name not in status:
            raise _core.NotFoundError(
                f"{self._filename}: no {association} array {name!r}; available: "
                f"{', '.join(map(repr, status)) or 'none'}"
            )
        status[name] = on

    def GetNumberOfPointArrays(self) -> int:  # noqa: N802
        return len(self.status["point"])

    def GetPointArrayName(self, index: int) -> str:  # noqa: N802
        return list(self.status["point"])[index]

    def GetPointArrayStatus(self, name: str) -> int:  # noqa: N802
        return int(self.status["point"].get(name, False))

    def SetPointArrayStatus(self, name: str, status: int) -> None:  # noqa: N802
        self.set_status("point", name, bool(status))

    def GetNumberOfCellArrays(self) -> int:  # noqa: N802
        return len(self.status["cell"])

    def GetCellArrayName(self, index: int) -> str:  # noqa: N802
        return list(self.status["cell"])[index]

    def GetCellArrayStatus(self, name: str) -> int:  # noqa: N802
        return int(self.status["cell"].get(name, False))

    def SetCellArrayStatus(self, name: str, status: int) -> None:  # noqa: N802
        self.set_status("cell", name, bool(status))


def _option(name: str, doc: str) -> property:
    """Return a property that is an attribute of the VTK reader."""
    return property(
        lambda self: getattr(self.reader, name),
        lambda self, value: setattr(self.reader, name, value),
        doc=doc,
    )


def _selected_names(association: str, doc: str) -> property:
    """Return a property with the names of the enabled arrays."""

    def enable(self: AmbarReader, names: list[str]) -> None:
        for name in self.reader.status[association]:
            self.reader.set_status(association, name, on=False)
        for name in names:
            self.reader.set_status(association, name, on=True)

    return property(
        lambda self: [name for name, on in self.reader.status[association].items() if on],
        enable,
        doc=doc,
    )


class AmbarReader(BaseReader, PointCellDataSelection, TimeReader):  # type: ignore[misc]
    """The PyVista reader of meshes and series of meshes in stores.

    ``pyvista.get_reader("x.ambar")`` returns it. `point_data`, `cell_data`, `field_data`, `block`,
    `region`, `where`, `original_ids` and `threads` are those of `ambar.read_mesh`, and options of
    ``pyvista.read``. The cells of an output or a plotfile are read as overlapping AMR data, with
    fields as cell arrays.

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

        Parameters
        ----------
        validate : bool, optional
            As for `pyvista.wrap`.

        Returns
        -------
        pyvista.DataObject or vtkDataObject
            The mesh of the active time step. Errors are those of `ambar.read_mesh`.
        """
        if not _wraps(self.reader.mesh.type):
            return self.reader.read()
        return super().read(validate=validate)

    @property
    def number_time_points(self) -> int:
        """The number of time steps; 0 for a mesh alone."""
        return len(self.reader.times)

    def time_point_value(self, time_point: int) -> float:
        """Return the time of a step."""
        return float(self.reader.times[time_point])

    @property
    def active_time_value(self) -> float:
        """The time of the step that is read."""
        return self.time_point_value(self.reader.step)

    def set_active_time_value(self, time_value: float) -> None:
        """Select the step with the nearest time, within the tolerance of `ambar.MeshSeries.at`.

        Raises KeyError if no step has such a time.
        """
        self.set_active_time_point(step_at(self.reader.times, time_value, self.path))

    def set_active_time_point(self, time_point: int) -> None:
        """Select a step by its number; raises KeyError if it does not exist."""
        self.reader.set_step(time_point)

    point_data = _selected_names("point", "Names of the arrays on points that are read.")
    cell_data = _selected_names("cell", "Names of the arrays on cells that are read.")
    field_data = _selected_names("field", "Names of the arrays in field data that are read.")
    block = _option("block", "The block that is read; None for all.")
    region = _option("region", "The box, or bounds, whose cells are read; None for all.")
    where = _option("where", "The condition on the cells that are read; None for all.")
    original_ids = _option(
        "original_ids", "Whether to add the original numbers of points and cells."
    )
    threads = _option("threads", "The number of threads that decode; None for all cores.")


def _wraps(type_name: str) -> bool:
    """Whether PyVista has a class for a type of VTK.

    Wrapping an empty object would not do: VTK leaves the extent of a new vtkExplicitStructuredGrid
    uninitialized, and copying it can crash the process.
    """
    return f"vtk{type_name}" in pyvista._wrappers

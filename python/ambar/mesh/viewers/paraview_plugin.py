"""ParaView's reader of meshes, and of AMR cells, in ambar stores: a plugin of one file.

ParaView loads it in Tools > Manage Plugins, pvpython by ``LoadPlugin(file, ns=globals())``. `ambar
paraview-plugin --install` makes a copy that finds ambar from another Python, too.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

# The folder with ambar, if it is not in ParaView's Python; set when the plugin is installed.
AMBAR_PATH = ""

if find_spec("ambar") is None:
    # After ParaView's own packages, which must not be loaded twice.
    sys.path.append(AMBAR_PATH)

from paraview.util.vtkAlgorithm import smdomain, smproperty, smproxy
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase
from vtkmodules.vtkCommonCore import vtkCommand, vtkDataArraySelection
from vtkmodules.vtkCommonDataModel import vtkDataObject
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline as Pipeline

from ambar.mesh.mesh import AmrMesh
from ambar.mesh.steps import (
    ASSOCIATIONS,
    AnyMesh,
    Steps,
    array_names,
    enabled_arrays,
    steps_of,
)
from ambar.mesh.vtk.datasets import new


@smproxy.reader(
    name="AmbarReader",
    label="AmbarReader",
    extensions="ambar",
    file_description="ambar stores of meshes",
)
class AmbarReader(VTKPythonAlgorithmBase):  # type: ignore[misc]
    """Reads the mesh in a store, all arrays or those that are enabled."""

    def __init__(self) -> None:
        super().__init__(nInputPorts=0, nOutputPorts=1, outputType="vtkDataObject")
        self._path = ""
        self._steps: Steps | None = None
        self._finest = -1
        self._selections = {}
        for association in ASSOCIATIONS:
            selection = vtkDataArraySelection()
            selection.AddObserver(vtkCommand.ModifiedEvent, lambda *_: self.Modified())
            self._selections[association] = selection

    @smproperty.stringvector(name="FileName")  # type: ignore[untyped-decorator]
    @smdomain.filelist()  # type: ignore[untyped-decorator]
    def SetFileName(self, path: str) -> None:  # noqa: N802 - ParaView's names, here and below
        """Set the path of the store."""
        if path != self._path:
            self._path, self._steps = path, None
            self.Modified()

    @smproperty.dataarrayselection(name="Point Arrays")  # type: ignore[untyped-decorator]
    def GetPointDataArraySelection(self) -> vtkDataArraySelection:  # noqa: N802
        """Return which arrays on points are read."""
        return self._selections["point"]

    @smproperty.dataarrayselection(name="Cell Arrays")  # type: ignore[untyped-decorator]
    def GetCellDataArraySelection(self) -> vtkDataArraySelection:  # noqa: N802
        """Return which arrays on cells are read."""
        return self._selections["cell"]

    @smproperty.dataarrayselection(name="Field Arrays")  # type: ignore[untyped-decorator]
    def GetFieldDataArraySelection(self) -> vtkDataArraySelection:  # noqa: N802
        """Return which arrays on the whole are read."""
        return self._selections["field"]

    @smproperty.intvector(name="FinestLevel", default_values=-1)  # type: ignore[untyped-decorator]
    def SetFinestLevel(self, level: int) -> None:  # noqa: N802
        """Set the finest level of AMR cells that is read; -1 for all."""
        if level != self._finest:
            self._finest = level
            self.Modified()

    def FillOutputPortInformation(self, port: int, info: Any) -> int:  # noqa: ARG002, N802
        """Declare that the type of the output depends on the store."""
        info.Set(vtkDataObject.DATA_TYPE_NAME(), "vtkDataObject")
        return 1

    def RequestDataObject(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Create an empty object of the type in the store."""
        made = new(self._opened().type)
        outputs.GetInformationObject(0).Set(vtkDataObject.DATA_OBJECT(), made)
        return 1

    def RequestInformation(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Offer the arrays' names, and the times of steps."""
        for association, name in array_names(self._opened()):
            if name is not None and not self._selections[association].ArrayExists(name):
                self._selections[association].AddArray(name)
        info, times = outputs.GetInformationObject(0), self.GetTimestepValues()
        if times:
            info.Set(Pipeline.TIME_STEPS(), times, len(times))
            info.Set(Pipeline.TIME_RANGE(), [times[0], times[-1]], 2)
        return 1

    def RequestData(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Read the mesh."""
        mesh, time, times = self._opened(), None, self.GetTimestepValues()
        info = outputs.GetInformationObject(0)
        if times and info.Has(Pipeline.UPDATE_TIME_STEP()):
            requested = info.Get(Pipeline.UPDATE_TIME_STEP())
            number = max((n for n, known in enumerate(times) if known <= requested), default=0)
            mesh, time = self._opened(number), times[number]
        options = self._enabled()
        if isinstance(mesh, AmrMesh) and self._finest >= 0:
            options["levels"] = (min(mesh.amr.levels[0], self._finest), self._finest)
        read = mesh.read(wrap=False, **options)
        if time is not None:
            read.GetInformation().Set(vtkDataObject.DATA_TIME_STEP(), time)
        vtkDataObject.GetData(outputs, 0).ShallowCopy(read)
        return 1

    @smproperty.doublevector(  # type: ignore[untyped-decorator]
        name="TimestepValues", information_only="1", si_class="vtkSITimeStepsProperty"
    )
    def GetTimestepValues(self) -> list[float]:  # noqa: N802
        """Return the times of the steps, or their numbers."""
        self._opened()
        return [] if self._steps is None else self._steps.times

    def _opened(self, number: int = 0) -> AnyMesh:
        """Return the mesh, or a step of a series; the store is opened once.

        Raises ValueError for a store of another kind.
        """
        if self._steps is None:
            self._steps = steps_of(self._path)
        return self._steps.meshes[number]

    def _enabled(self) -> dict[str, Any]:
        """Return the arguments of `Mesh.read` for the arrays that are enabled."""
        status = {}
        for association, selection in self._selections.items():
            names = [selection.GetArrayName(n) for n in range(selection.GetNumberOfArrays())]
            status[association] = {name: bool(selection.ArrayIsEnabled(name)) for name in names}
        return enabled_arrays(status)

"""ParaView's reader of meshes in ambar stores: a plugin of one file.

ParaView loads it in Tools > Manage Plugins, pvpython by ``LoadPlugin(file, ns=globals())``. `ambar
paraview-plugin --install` makes a copy that finds ambar from another Python, too.
"""

from __future__ import annotations

import sys
from typing import Any

# Where ambar is installed, if not in ParaView's own Python; filled in when the plugin is installed.
AMBAR_PATH = ""

try:
    import ambar
except ImportError:
    # Behind ParaView's own packages, of which there must not be two.
    sys.path.append(AMBAR_PATH)
    import ambar

from paraview.util.vtkAlgorithm import smdomain, smproperty, smproxy
from vtkmodules.util.vtkAlgorithm import VTKPythonAlgorithmBase
from vtkmodules.vtkCommonCore import vtkCommand, vtkDataArraySelection
from vtkmodules.vtkCommonDataModel import vtkDataObject
from vtkmodules.vtkCommonExecutionModel import vtkStreamingDemandDrivenPipeline as Pipeline

from ambar.mesh.building import new
from ambar.mesh.reading import get_mesh

_ASSOCIATIONS = ("point", "cell", "field")


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
        self._mesh: ambar.Mesh | None = None
        self._series: ambar.MeshSeries | None = None
        self._selections = {}
        for association in _ASSOCIATIONS:
            selection = vtkDataArraySelection()
            selection.AddObserver(vtkCommand.ModifiedEvent, lambda *_: self.Modified())
            self._selections[association] = selection

    @smproperty.stringvector(name="FileName")  # type: ignore[untyped-decorator]
    @smdomain.filelist()  # type: ignore[untyped-decorator]
    def SetFileName(self, path: str) -> None:  # noqa: N802 - ParaView's names, here and below
        """Choose the store."""
        if path != self._path:
            self._path, self._mesh = path, None
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

    def FillOutputPortInformation(self, port: int, info: Any) -> int:  # noqa: ARG002, N802
        """Say that the output is of a type that the store tells."""
        info.Set(vtkDataObject.DATA_TYPE_NAME(), "vtkDataObject")
        return 1

    def RequestDataObject(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Make an empty object of the store's type."""
        made = new(self._opened().type)
        outputs.GetInformationObject(0).Set(vtkDataObject.DATA_OBJECT(), made)
        return 1

    def RequestInformation(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Offer the arrays' names, and the times of steps."""
        for info in self._opened().arrays:
            of = "cell" if info.association == "row" else info.association
            if info.name is not None and not self._selections[of].ArrayExists(info.name):
                self._selections[of].AddArray(info.name)
        info, times = outputs.GetInformationObject(0), self.GetTimestepValues()
        if times:
            info.Set(Pipeline.TIME_STEPS(), times, len(times))
            info.Set(Pipeline.TIME_RANGE(), [times[0], times[-1]], 2)
        return 1

    def RequestData(self, request: Any, inputs: Any, outputs: Any) -> int:  # noqa: ARG002, N802
        """Read the mesh."""
        mesh, time, times = self._opened(), None, self.GetTimestepValues()
        info = outputs.GetInformationObject(0)
        if self._series is not None and times and info.Has(Pipeline.UPDATE_TIME_STEP()):
            asked = info.Get(Pipeline.UPDATE_TIME_STEP())
            number = max((n for n, known in enumerate(times) if known <= asked), default=0)
            mesh, time = self._series[number], times[number]
        read = get_mesh(
            mesh.store,
            mesh.path,
            point_data=self._wanted("point"),
            cell_data=self._wanted("cell"),
            field_data=self._wanted("field"),
            wrap=False,
        )
        if time is not None:
            read.GetInformation().Set(vtkDataObject.DATA_TIME_STEP(), time)
        vtkDataObject.GetData(outputs, 0).ShallowCopy(read)
        return 1

    @smproperty.doublevector(  # type: ignore[untyped-decorator]
        name="TimestepValues", information_only="1", si_class="vtkSITimeStepsProperty"
    )
    def GetTimestepValues(self) -> list[float]:  # noqa: N802
        """Return the times of the steps, their numbers where none was given."""
        self._opened()
        known = [] if self._series is None else self._series.times
        return [float(number) if time is None else time for number, time in enumerate(known)]

    def _opened(self) -> ambar.Mesh:
        """Return the mesh, or a series' first, opened once.

        Raises InvalidError for a store of another kind.
        """
        if self._mesh is None:
            opened = ambar.open(self._path)
            self._series = None
            if isinstance(opened, ambar.MeshSeries):
                self._series, opened = opened, opened[0]
            if not isinstance(opened, ambar.Mesh):
                raise ambar.InvalidError(f"{self._path} holds no mesh: it is {opened!r}")
            self._mesh = opened
        return self._mesh

    def _wanted(self, association: str) -> list[str] | None:
        selection = self._selections[association]
        names = [selection.GetArrayName(n) for n in range(selection.GetNumberOfArrays())]
        wanted = [name for name in names if selection.ArrayIsEnabled(name)]
        return None if wanted == names else wanted

"""Rows of VTK's own formats: XML with three compressors, VTKHDF, and XDMF through meshio."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import ambar
from ambar_bench.mesh.ways import NAMES, Way, written

EXTENSIONS = {
    "ExplicitStructuredGrid": ".vtu",
    "ImageData": ".vti",
    "MultiBlock": ".vtm",
    "PolyData": ".vtp",
    "RectilinearGrid": ".vtr",
    "StructuredGrid": ".vts",
    "UnstructuredGrid": ".vtu",
}


class XmlZlib(Way):
    """VTK's XML files as PyVista writes them, with its default compressor."""

    key = "vtk-zlib"
    name = "VTK XML, zlib"
    library = "vtk"
    compression: ClassVar[str] = "zlib"

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Save it."""
        if (extension := EXTENSIONS.get(type(mesh).__name__)) is None:
            raise ambar.UnsupportedError(f"{type(mesh).__name__} does not have an XML format")
        mesh.save(folder / f"mesh{extension}", compression=self.compression)

    def read(self, folder: Path, threads: int) -> Any:  # noqa: ARG002
        """Read the only file, or that of a MultiBlock."""
        import pyvista as pv

        return pv.read(next(folder.glob("mesh.*")))

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Read one array, and geometry and cells with it, as VTK's reader does."""
        import pyvista as pv

        reader = pv.get_reader(str(folder / "mesh.vtu"))
        reader.disable_all_point_arrays()
        reader.disable_all_cell_arrays()
        reader.enable_point_array(NAMES["point"])
        found = reader.read()
        return found.point_data[NAMES["point"]], found


class XmlLz4(XmlZlib):
    """The same with LZ4."""

    key = "vtk-lz4"
    name = "VTK XML, lz4"
    compression = "lz4"


class XmlLzma(XmlZlib):
    """The same with LZMA."""

    key = "vtk-lzma"
    name = "VTK XML, lzma"
    compression = "lzma"


class Vtkhdf(Way):
    """VTKHDF by VTK's writer, gzip 4, which is PyVista's default too."""

    key = "vtkhdf"
    name = "VTKHDF, gzip 4"
    library = "vtkhdf"
    level = 4

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Write it."""
        from vtkmodules.vtkIOHDF import vtkHDFWriter

        path = folder / "mesh.vtkhdf"
        writer = vtkHDFWriter()
        writer.SetCompressionLevel(4 if level is None else level)
        writer.SetInputData(mesh)
        writer.SetFileName(str(path))
        writer.Write()
        written(path)

    def read(self, folder: Path, threads: int) -> Any:  # noqa: ARG002
        """Read it."""
        import pyvista as pv

        return pv.read(folder / "mesh.vtkhdf")

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Read the dataset through h5py."""
        import h5py

        file = h5py.File(folder / "mesh.vtkhdf", "r")
        return file[f"VTKHDF/PointData/{NAMES['point']}"][:], file


class Xdmf(Way):
    """XDMF with its HDF5 file, through meshio with its own settings, gzip 4."""

    key = "xdmf"
    name = "XDMF, meshio"
    library = "meshio"
    modules = ("meshio", "h5py")

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Write it."""
        import pyvista as pv

        pv.save_meshio(folder / "mesh.xdmf", mesh)

    def read(self, folder: Path, threads: int) -> Any:  # noqa: ARG002
        """Read it."""
        import pyvista as pv

        return pv.read_meshio(folder / "mesh.xdmf")

"""The formats of meshes, as the registries of PyVista and meshio have them when they are asked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar._util.foreign_files import VTK, kind_of_file
from ambar._util.hdf5_files import open_hdf5
from ambar.mesh.vtk.meshio_objects import pyvista

STORES = (".ambar", ".zarr")
"""Suffixes of stores; PyVista reads these by ambar."""
_SHARED = (".h5", ".hdf")
"""Suffixes of PyVista's readers of VTKHDF and Fluent that many other HDF5 files have."""
_MESHES_IN_HDF5 = ("VTKHDF", "meshes")
"""The groups in such files that contain a mesh of VTK, or of Fluent."""


def suffix_of(path: Path) -> str:
    """Return the suffix by which PyVista chooses a format, such as ".vtu", ".nii.gz", ".e.4.0"."""
    pyvista()  # raises the error if it is not installed
    from pyvista.core.utilities.fileio import get_ext

    return ".dcm" if path.is_dir() else str(get_ext(path))  # PyVista reads no other folders


def is_mesh_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a file, or a folder of DICOM files, that PyVista or meshio reads."""
    place = Path(path)
    if place.suffix.lower() in STORES or not place.exists():
        return False
    if find_spec("pyvista") is None:  # `pyvista` raises the error
        return place.is_file() and kind_of_file(place) == VTK
    if place.is_dir():
        files = list(place.iterdir())
        return bool(files) and all(file.suffix == ".dcm" for file in files)  # PyVista's condition
    if not place.is_file():  # opening a FIFO waits for its writer
        return False
    if place.suffix.lower() in _SHARED:
        return _has_mesh_in_hdf5(place)
    return pyvista_reads(place) or bool(meshio_formats(place))


def _has_mesh_in_hdf5(path: Path) -> bool:
    if find_spec("h5py") is None:
        return False
    h5py = import_module("h5py")
    if not h5py.is_hdf5(path):
        return False
    with open_hdf5(path) as file:
        return any(name in file for name in _MESHES_IN_HDF5)


def pyvista_reads(path: Path) -> bool:
    """Whether PyVista, or a package that registers a reader, reads files of this name."""
    library, suffix = pyvista(), suffix_of(path)
    try:
        # The only question that includes patterns of names and packages that are not installed.
        library.get_reader(f"{os.devnull}/none{suffix}")
    except ValueError:  # unknown, or read by a registered function
        return suffix in {reader.extension for reader in library.registered_readers()}
    except Exception:  # the file does not exist, or the package that reads the format
        return True
    return True


def vtk_reader_class(suffix: str) -> type:
    """Return VTK's class that reads a format for PyVista; `object` without one."""
    from pyvista.core.utilities.reader import CLASS_READERS

    return getattr(CLASS_READERS.get(suffix), "_vtk_class", None) or object


def is_vtk_xml(suffix: str) -> bool:
    """Whether a suffix is that of a format of VTK's XML."""
    from vtkmodules.vtkIOXML import vtkXMLReader

    return issubclass(vtk_reader_class(suffix), vtkXMLReader)


def is_vtk_format(suffix: str) -> bool:
    """Whether a format is VTK's own: XML, legacy or HDF. They hold all arrays, and empty meshes."""
    from vtkmodules.vtkIOHDF import vtkHDFReader
    from vtkmodules.vtkIOLegacy import vtkDataReader

    return is_vtk_xml(suffix) or issubclass(vtk_reader_class(suffix), (vtkDataReader, vtkHDFReader))


def meshio_formats(path: Path, *, of_writers: bool = False) -> list[str]:
    """Return meshio's names of the formats that files of this name may have."""
    if find_spec("meshio") is None:
        return []
    by_suffix: Mapping[str, list[str]] = import_module("meshio").extension_to_filetypes
    helpers = import_module("meshio._helpers")
    known = helpers._writer_map if of_writers else helpers.reader_map
    name = path.name.lower()
    return [
        format_
        for suffix, formats in by_suffix.items()
        if name.endswith(suffix)
        for format_ in formats
        if format_ in known
    ]


def pyvista_writes(mesh: Any, suffix: str) -> bool:
    """Whether PyVista, or a package that registers a writer, writes such an object as a format."""
    return suffix in getattr(mesh, "_WRITERS", ()) or suffix in _registered_writers()


def _registered_writers() -> set[str]:
    return {writer.extension for writer in pyvista().registered_writers()} - {*STORES}


def suffixes_to_write(mesh: Any) -> list[str]:
    """Return the suffixes of the formats in which PyVista and meshio write such an object."""
    found = {*getattr(mesh, "_WRITERS", ()), *_registered_writers()}
    if hasattr(mesh, "cast_to_unstructured_grid") and find_spec("meshio") is not None:
        by_suffix = import_module("meshio").extension_to_filetypes
        found |= {each for each in by_suffix if meshio_formats(Path(each), of_writers=True)}
    return sorted(found)

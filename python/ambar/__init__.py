"""One store for simulation output: open, convert and read it.

Everything here is loaded when it is first used, so that ``import ambar`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ambar import fields as fields
    from ambar._core import AmbarError as AmbarError
    from ambar._core import BusyError as BusyError
    from ambar._core import CorruptError as CorruptError
    from ambar._core import InvalidError as InvalidError
    from ambar._core import LimitError as LimitError
    from ambar._core import NotFoundError as NotFoundError
    from ambar._core import UnsupportedError as UnsupportedError
    from ambar._util.resources import get_limits as get_limits
    from ambar._util.resources import limits as limits
    from ambar.collection import AttributeColumns as AttributeColumns
    from ambar.collection import Collection as Collection
    from ambar.collection import CollectionData as CollectionData
    from ambar.collection import DatasetFamily as DatasetFamily
    from ambar.collection import RaggedArray as RaggedArray
    from ambar.collection import Schema as Schema
    from ambar.collection import open_collection as open_collection
    from ambar.collection.files.ingest import Ingest as Ingest
    from ambar.collection.files.ingest import ingest as ingest
    from ambar.comparison.compare import Comparison as Comparison
    from ambar.comparison.compare import compare as compare
    from ambar.comparison.differences import Difference as Difference
    from ambar.comparison.differences import diff as diff
    from ambar.config import get_include as get_include
    from ambar.config import get_library as get_library
    from ambar.io.convert import convert as convert
    from ambar.io.convert import export as export
    from ambar.io.follow import follow as follow
    from ambar.io.merge import merge as merge
    from ambar.io.openers import open as open  # noqa: A004
    from ambar.io.openers import open_mesh as open_mesh
    from ambar.io.openers import open_mesh_series as open_mesh_series
    from ambar.io.openers import open_series as open_series
    from ambar.io.openers import open_snapshot as open_snapshot
    from ambar.io.openers import open_store as open_store
    from ambar.io.view import view as view
    from ambar.kinds.request import Conversion as Conversion
    from ambar.kinds.request import Export as Export
    from ambar.mesh import Mesh as Mesh
    from ambar.mesh import MeshArray as MeshArray
    from ambar.mesh import MeshSeries as MeshSeries
    from ambar.mesh import read_mesh as read_mesh
    from ambar.mesh import write_mesh as write_mesh
    from ambar.snapshot.amr import Amr as Amr
    from ambar.snapshot.amrex_info import AmrexInfo as AmrexInfo
    from ambar.snapshot.analysis.statistics import Extremum as Extremum
    from ambar.snapshot.analysis.statistics import FieldStatistics as FieldStatistics
    from ambar.snapshot.analysis.statistics import Statistics as Statistics
    from ambar.snapshot.code_info import CodeInfo as CodeInfo
    from ambar.snapshot.maps.fits import write_fits as write_fits
    from ambar.snapshot.particles import Particles as Particles
    from ambar.snapshot.regions import Box as Box
    from ambar.snapshot.regions import Cylinder as Cylinder
    from ambar.snapshot.regions import CylindricalShell as CylindricalShell
    from ambar.snapshot.regions import OrientedBox as OrientedBox
    from ambar.snapshot.regions import Region as Region
    from ambar.snapshot.regions import Sphere as Sphere
    from ambar.snapshot.regions import SphericalShell as SphericalShell
    from ambar.snapshot.run_info import RamsesInfo as RamsesInfo
    from ambar.snapshot.series import Series as Series
    from ambar.snapshot.snapshot import Snapshot as Snapshot
    from ambar.snapshot.table import Table as Table
    from ambar.snapshot.units import Units as Units
    from ambar.store.array import Array as Array
    from ambar.store.chunk_references import references as references
    from ambar.store.history import CommitInfo as CommitInfo
    from ambar.store.history import log as log
    from ambar.store.history import restore as restore
    from ambar.store.history import tag as tag
    from ambar.store.history import tags as tags
    from ambar.store.history import untag as untag
    from ambar.store.maintenance import compact as compact
    from ambar.store.maintenance import repair as repair
    from ambar.store.store import Group as Group
    from ambar.store.store import Store as Store
    from ambar.store.writer import Writer as Writer
    from ambar.store.writer import create as create
    from ambar.viewer.viewer import Viewer as Viewer

    __version__: str

_MODULES = {
    "ambar._core": "AmbarError BusyError CorruptError InvalidError LimitError NotFoundError "
    "UnsupportedError",
    "ambar._util.resources": "get_limits limits",
    "ambar.collection": "AttributeColumns Collection CollectionData DatasetFamily RaggedArray "
    "Schema open_collection",
    "ambar.collection.files.ingest": "Ingest ingest",
    "ambar.comparison.compare": "Comparison compare",
    "ambar.comparison.differences": "Difference diff",
    "ambar.config": "get_include get_library",
    "ambar.io.convert": "convert export",
    "ambar.io.follow": "follow",
    "ambar.io.merge": "merge",
    "ambar.io.openers": "open open_mesh open_mesh_series open_series open_snapshot open_store",
    "ambar.io.view": "view",
    "ambar.kinds.request": "Conversion Export",
    "ambar.mesh": "Mesh MeshArray MeshSeries read_mesh write_mesh",
    "ambar.snapshot.amr": "Amr",
    "ambar.snapshot.analysis.statistics": "Extremum FieldStatistics Statistics",
    "ambar.snapshot.amrex_info": "AmrexInfo",
    "ambar.snapshot.code_info": "CodeInfo",
    "ambar.snapshot.maps.fits": "write_fits",
    "ambar.snapshot.particles": "Particles",
    "ambar.snapshot.regions": (
        "Box Cylinder CylindricalShell OrientedBox Region Sphere SphericalShell"
    ),
    "ambar.snapshot.run_info": "RamsesInfo",
    "ambar.snapshot.series": "Series",
    "ambar.snapshot.snapshot": "Snapshot",
    "ambar.snapshot.table": "Table",
    "ambar.snapshot.units": "Units",
    "ambar.store.array": "Array",
    "ambar.store.chunk_references": "references",
    "ambar.store.history": "CommitInfo log restore tag tags untag",
    "ambar.store.maintenance": "compact repair",
    "ambar.store.store": "Group Store",
    "ambar.store.writer": "Writer create",
    "ambar.viewer.viewer": "Viewer",
}
"""The names that each module provides."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)
__all__ += ["__version__", "fields"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ambar' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("ambar")
    elif name == "fields":
        value = importlib.import_module("ambar.fields")
    else:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

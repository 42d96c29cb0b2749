"""One store for simulation output: open, convert and read it.

Everything here is loaded when it is first used, so that ``import ambar`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ambar.accessors import register

if TYPE_CHECKING:
    from ambar._core import (
        AmbarError,
        BusyError,
        CorruptError,
        InvalidError,
        LimitError,
        NotFoundError,
        UnsupportedError,
    )
    from ambar.amr import Amr
    from ambar.amrex_info import AmrexInfo
    from ambar.array import Array
    from ambar.chunk_references import references
    from ambar.collection import Bulk, Collection, Ragged, Schema, open_collection
    from ambar.collection.exporting import Export
    from ambar.collection.ingest import Ingest, ingest
    from ambar.comparison import Comparison, compare
    from ambar.conversion import convert, export, read_amrex, read_ramses
    from ambar.converted import Conversion
    from ambar.info import Info
    from ambar.maintenance import compact, repair
    from ambar.memory_limits import get_limits, limits
    from ambar.mesh import ArrayInfo, Frame, Mesh, MeshSeries, frames, read_mesh, write_mesh
    from ambar.opening import open  # noqa: A004
    from ambar.regions import Box, Shell, Sphere
    from ambar.rows import Particles
    from ambar.series import Series
    from ambar.snapshot import Snapshot
    from ambar.store import Store
    from ambar.table import Table
    from ambar.units import Units
    from ambar.writer import Writer, append, create

    __version__: str

register()

__all__ = [
    "AmbarError",
    "Amr",
    "AmrexInfo",
    "Array",
    "ArrayInfo",
    "Box",
    "Bulk",
    "BusyError",
    "Collection",
    "Comparison",
    "Conversion",
    "CorruptError",
    "Export",
    "Frame",
    "Info",
    "Ingest",
    "InvalidError",
    "LimitError",
    "Mesh",
    "MeshSeries",
    "NotFoundError",
    "Particles",
    "Ragged",
    "Schema",
    "Series",
    "Shell",
    "Snapshot",
    "Sphere",
    "Store",
    "Table",
    "Units",
    "UnsupportedError",
    "Writer",
    "__version__",
    "append",
    "compact",
    "compare",
    "convert",
    "create",
    "export",
    "frames",
    "get_limits",
    "ingest",
    "limits",
    "open",
    "open_collection",
    "read_amrex",
    "read_mesh",
    "read_ramses",
    "references",
    "repair",
    "write_mesh",
]

# Where a name comes from; all others come from the extension module.
_HOMES = {
    "Amr": "ambar.amr",
    "AmrexInfo": "ambar.amrex_info",
    "Array": "ambar.array",
    "ArrayInfo": "ambar.mesh",
    "Box": "ambar.regions",
    "Bulk": "ambar.collection",
    "Collection": "ambar.collection",
    "Comparison": "ambar.comparison",
    "Conversion": "ambar.converted",
    "Export": "ambar.collection.exporting",
    "Frame": "ambar.mesh",
    "Info": "ambar.info",
    "Ingest": "ambar.collection.ingest",
    "Mesh": "ambar.mesh",
    "MeshSeries": "ambar.mesh",
    "Particles": "ambar.rows",
    "Ragged": "ambar.collection",
    "Schema": "ambar.collection",
    "Series": "ambar.series",
    "Shell": "ambar.regions",
    "Snapshot": "ambar.snapshot",
    "Sphere": "ambar.regions",
    "Store": "ambar.store",
    "Table": "ambar.table",
    "Units": "ambar.units",
    "Writer": "ambar.writer",
    "append": "ambar.writer",
    "compact": "ambar.maintenance",
    "compare": "ambar.comparison",
    "convert": "ambar.conversion",
    "create": "ambar.writer",
    "frames": "ambar.mesh",
    "get_limits": "ambar.memory_limits",
    "ingest": "ambar.collection.ingest",
    "limits": "ambar.memory_limits",
    "open": "ambar.opening",
    "open_collection": "ambar.collection",
    "export": "ambar.conversion",
    "read_amrex": "ambar.conversion",
    "read_mesh": "ambar.mesh",
    "read_ramses": "ambar.conversion",
    "references": "ambar.chunk_references",
    "repair": "ambar.maintenance",
    "write_mesh": "ambar.mesh",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'ambar' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("ambar")
    else:
        value = getattr(importlib.import_module(_HOMES.get(name, "ambar._core")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""One store for simulation output: open, convert and read it.

Everything here is loaded when it is first used, so that ``import ambar`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
    from ambar.collection import (
        AttributeColumns,
        Collection,
        CollectionData,
        DatasetFamily,
        RaggedArray,
        Schema,
        open_collection,
    )
    from ambar.collection.files.ingest import Ingest, ingest
    from ambar.comparison.compare import Comparison, compare
    from ambar.io.convert import convert, export
    from ambar.io.openers import (
        open,  # noqa: A004
        open_mesh,
        open_mesh_series,
        open_series,
        open_snapshot,
        open_store,
    )
    from ambar.kinds.request import Conversion, Export
    from ambar.mesh import Mesh, MeshArray, MeshSeries, read_mesh, write_mesh
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.amrex_info import AmrexInfo
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.regions import Box, Shell, Sphere
    from ambar.snapshot.run_info import RamsesInfo
    from ambar.snapshot.series import Series
    from ambar.snapshot.snapshot import Snapshot
    from ambar.snapshot.table import Table
    from ambar.snapshot.units import Units
    from ambar.store.array import Array
    from ambar.store.chunk_references import references
    from ambar.store.maintenance import compact, repair
    from ambar.store.memory_limits import get_limits, limits
    from ambar.store.store import Group, Store
    from ambar.store.writer import Writer, create

    __version__: str

__all__ = [
    "AmbarError",
    "Amr",
    "AmrexInfo",
    "Array",
    "AttributeColumns",
    "Box",
    "BusyError",
    "Collection",
    "CollectionData",
    "Comparison",
    "Conversion",
    "CorruptError",
    "DatasetFamily",
    "Export",
    "Group",
    "Ingest",
    "InvalidError",
    "LimitError",
    "Mesh",
    "MeshArray",
    "MeshSeries",
    "NotFoundError",
    "Particles",
    "RaggedArray",
    "RamsesInfo",
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
    "compact",
    "compare",
    "convert",
    "create",
    "export",
    "get_limits",
    "ingest",
    "limits",
    "open",
    "open_collection",
    "open_mesh",
    "open_mesh_series",
    "open_series",
    "open_snapshot",
    "open_store",
    "read_mesh",
    "references",
    "repair",
    "write_mesh",
]

# Where a name comes from; all others come from the extension module.
_HOMES = {
    "Amr": "ambar.snapshot.amr",
    "AmrexInfo": "ambar.snapshot.amrex_info",
    "Array": "ambar.store.array",
    "AttributeColumns": "ambar.collection",
    "Box": "ambar.snapshot.regions",
    "Collection": "ambar.collection",
    "CollectionData": "ambar.collection",
    "Comparison": "ambar.comparison.compare",
    "Conversion": "ambar.kinds.request",
    "Export": "ambar.kinds.request",
    "Group": "ambar.store.store",
    "DatasetFamily": "ambar.collection",
    "Ingest": "ambar.collection.files.ingest",
    "Mesh": "ambar.mesh",
    "MeshArray": "ambar.mesh",
    "MeshSeries": "ambar.mesh",
    "Particles": "ambar.snapshot.particles",
    "RaggedArray": "ambar.collection",
    "RamsesInfo": "ambar.snapshot.run_info",
    "Schema": "ambar.collection",
    "Series": "ambar.snapshot.series",
    "Shell": "ambar.snapshot.regions",
    "Snapshot": "ambar.snapshot.snapshot",
    "Sphere": "ambar.snapshot.regions",
    "Store": "ambar.store.store",
    "Table": "ambar.snapshot.table",
    "Units": "ambar.snapshot.units",
    "Writer": "ambar.store.writer",
    "compact": "ambar.store.maintenance",
    "compare": "ambar.comparison.compare",
    "convert": "ambar.io.convert",
    "create": "ambar.store.writer",
    "get_limits": "ambar.store.memory_limits",
    "ingest": "ambar.collection.files.ingest",
    "limits": "ambar.store.memory_limits",
    "open": "ambar.io.openers",
    "open_mesh": "ambar.io.openers",
    "open_mesh_series": "ambar.io.openers",
    "open_series": "ambar.io.openers",
    "open_snapshot": "ambar.io.openers",
    "open_store": "ambar.io.openers",
    "open_collection": "ambar.collection",
    "export": "ambar.io.convert",
    "read_mesh": "ambar.mesh",
    "references": "ambar.store.chunk_references",
    "repair": "ambar.store.maintenance",
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

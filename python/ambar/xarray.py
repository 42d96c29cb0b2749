"""Registers the accessor ``.ambar`` of xarray's datasets, arrays and trees when it is imported.

The engine "ambar" imports this module, too. The classes are documented in
`ambar.interop.xarray.accessors`.
"""

from __future__ import annotations

from ambar.interop.xarray.accessors import DataArrayAccessor, DatasetAccessor, DataTreeAccessor

__all__ = ["DataArrayAccessor", "DataTreeAccessor", "DatasetAccessor"]

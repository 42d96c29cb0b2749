"""Registers the accessor ``.ambar`` of xarray's datasets, arrays and trees when it is imported.

The engine "ambar", with which xarray opens stores, is registered when ambar is installed, and
registers the accessor too.

Examples
--------
>>> import xarray as xr
>>> xr.open_dataset("fields.ambar", engine="ambar").sizes["x"]
32
>>> xr.open_datatree("fields.ambar").groups
('/', '/run')
"""

from __future__ import annotations

from ambar._util.optional import require

require("xarray", purpose="ambar.xarray", install="ambar[xarray]")

from ambar.interop.xarray.accessors import (  # noqa: E402 - after the error for a missing package
    DataArrayAccessor,
    DatasetAccessor,
    DataTreeAccessor,
)

__all__ = ["DataArrayAccessor", "DataTreeAccessor", "DatasetAccessor"]

"""All rows of the study, in the order of its tables."""

from __future__ import annotations

from ambar_bench.collection import (
    ambar_rows,
    atlas_rows,
    hdf5_rows,
    netcdf_rows,
    tensorstore_rows,
    zarr_rows,
)
from ambar_bench.collection.layouts import Layout, Reader

READERS: dict[str, type[Reader]] = {
    reader.key: reader
    for reader in (
        netcdf_rows.NetcdfDask,
        netcdf_rows.NetcdfLoop,
        netcdf_rows.NetcdfGroupsLoop,
        zarr_rows.ZarrDask,
        zarr_rows.ZarrLoop,
        zarr_rows.ZarrGroupsLoop,
        hdf5_rows.Hdf5Loop,
        tensorstore_rows.TensorstoreReads,
        atlas_rows.AtlasBulk,
        atlas_rows.AtlasDask,
        atlas_rows.AtlasLoop,
        ambar_rows.AmbarBulk,
        ambar_rows.AmbarLoop,
        ambar_rows.AmbarLazy,
        ambar_rows.AmbarXarray,
        ambar_rows.AmbarDask,
    )
}
LAYOUTS: dict[str, type[Layout]] = {reader.layout.key: reader.layout for reader in READERS.values()}

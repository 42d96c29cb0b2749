"""Collections from NetCDF files and Zarr stores, and back."""

"""Objects of other libraries: xarray, VTK."""

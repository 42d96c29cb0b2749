"""Objects of other libraries: datasets of xarray, arrays of VTK."""

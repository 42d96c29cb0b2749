"""Cells and particles as objects of yt, VTK and dask."""

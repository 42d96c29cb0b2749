"""Datasets and trees of xarray, read from stores and written to them."""

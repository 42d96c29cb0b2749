"""One array written by one process, and by the workers of a dask cluster on this machine."""

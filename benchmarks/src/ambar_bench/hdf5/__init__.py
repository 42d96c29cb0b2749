"""The study of the HDF5 filter: what it costs over the bare codec."""

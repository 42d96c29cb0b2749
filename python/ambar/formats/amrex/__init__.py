"""AMReX plotfiles, native and in HDF5."""

"""openPMD files of WarpX, PIConGPU and other codes, in HDF5 and ADIOS2 BP."""

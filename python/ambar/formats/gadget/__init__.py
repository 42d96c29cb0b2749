"""Snapshots of Gadget, AREPO, GIZMO and SWIFT in HDF5, and catalogues of halos."""

"""The study of error-bounded compression of AMReX plotfiles: `ambar-bench amr`."""

"""Work of many processes: MPI ranks, and workers on one machine."""

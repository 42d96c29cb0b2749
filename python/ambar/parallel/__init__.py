"""Many processes: MPI ranks, and worker processes on one machine."""

"""Many processes: MPI ranks, worker processes on one machine, and parts of arrays for each."""

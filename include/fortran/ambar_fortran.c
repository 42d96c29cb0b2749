/** @file
 * The C part of the Fortran module ambar_mpi: ambar_mpi.h with Fortran communicators. */
#include "../ambar_mpi.h"

int ambar_fortran_start(MPI_Fint comm, const char *path, const ambar_options *options, int append,
                        ambar_mpi_writer **ranks, ambar_writer **writer) {
    MPI_Comm all = MPI_Comm_f2c(comm);
    int status;
    *writer = NULL;
    *ranks = (ambar_mpi_writer *)calloc(1, sizeof **ranks);
    if ((status = ambar_mpi_agree(all, *ranks ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "cannot allocate memory for a writer"))) == 0)
        status = ambar_mpi_start(all, path, options, append, *ranks);
    if (status) {
        free(*ranks);
        *ranks = NULL;
        return status;
    }
    *writer = (*ranks)->writer;
    return AMBAR_OK;
}

int ambar_fortran_blocks(MPI_Fint comm, int32_t ndim, const uint64_t *shape, int32_t n, const uint64_t *starts,
                         const uint64_t *counts, ambar_blocks **blocks) {
    return ambar_mpi_blocks(MPI_Comm_f2c(comm), ndim, shape, n, starts, counts, blocks);
}

int ambar_fortran_begin_step(ambar_mpi_writer *ranks, const char *series, double time, char *path, size_t room) {
    return ambar_mpi_begin_step(ranks, series, time, path, room);
}

int ambar_fortran_commit(ambar_mpi_writer *ranks) {
    if (!ranks) return ambar_fail(AMBAR_INVALID, "expected an open writer, found none; create or append");
    return ambar_mpi_commit(ranks);
}

int ambar_fortran_commit_begin(ambar_mpi_writer *ranks) {
    if (!ranks) return ambar_fail(AMBAR_INVALID, "expected an open writer, found none; create or append");
    return ambar_mpi_commit_begin(ranks);
}

int ambar_fortran_commit_wait(ambar_mpi_writer *ranks) {
    if (!ranks) return ambar_fail(AMBAR_INVALID, "expected an open writer, found none; create or append");
    return ambar_mpi_commit_wait(ranks);
}

int ambar_fortran_close(ambar_mpi_writer *ranks) {
    int status = ranks ? ambar_mpi_close(ranks) : AMBAR_OK;
    free(ranks);
    return status;
}

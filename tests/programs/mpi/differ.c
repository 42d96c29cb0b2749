/* Ranks that do not define or write the same.
 *
 *     differ <store> bound|skip|forget
 *
 * bound: rank 1 gives an array an error bound. skip: rank 1 leaves an array out. forget: rank 1 does not write.
 * Prints what the commit is refused with, on each rank, as another source file sees it.
 */
#include <stdio.h>
#include <string.h>

#include "ambar_mpi.h"

enum { LENGTH = 1000 };

void report(int rank, const char *what, int status); /* of differ_report.c */

int main(int argc, char **argv) {
    const double fill = -1.0;
    double values[LENGTH];
    uint64_t shape, start, count = LENGTH;
    int rank, ranks, i, status;
    char group[64];
    ambar_mpi_writer w;
    ambar_blocks *blocks;
    ambar_spec spec;
    ambar_array a, b;
    MPI_Init(&argc, &argv);
    if (argc != 3) return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    shape = (uint64_t)ranks * LENGTH, start = (uint64_t)rank * LENGTH;
    for (i = 0; i < LENGTH; i++) values[i] = i;
    if (ambar_mpi_create(MPI_COMM_WORLD, argv[1], NULL, &w)) MPI_Abort(MPI_COMM_WORLD, 1);
    if (ambar_mpi_blocks(MPI_COMM_WORLD, 1, &shape, 1, &start, &count, &blocks)) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec, spec.type = AMBAR_FLOAT64, spec.ndim = 1, spec.shape = &shape, spec.fill_value = &fill;
    if (rank == 1 && strcmp(argv[2], "bound") == 0) spec.error_bound = "1e-3";
    if (ambar_define(w.writer, "group/a", &spec, blocks, &a)) MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank != 1 || strcmp(argv[2], "forget") != 0) ambar_write(w.writer, a, &start, &count, values);
    if (rank != 1 || strcmp(argv[2], "skip") != 0) {
        if (ambar_define(w.writer, "group/b", &spec, blocks, &b)) MPI_Abort(MPI_COMM_WORLD, 1);
        ambar_write(w.writer, b, &start, &count, values);
    }
    ambar_blocks_free(blocks);
    status = ambar_mpi_commit(&w);
    report(rank, "commit", status);
    if (status) {
        report(rank, "again", ambar_mpi_commit(&w));
        report(rank, "step", ambar_mpi_begin_step(&w, "", 0.0, group, sizeof group));
        report(rank, "define", ambar_define(w.writer, "group/c", &spec, NULL, &a));
    }
    ambar_mpi_close(&w);
    MPI_Finalize();
    return 0;
}

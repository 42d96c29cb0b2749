/* Writes step after step until it is killed; values say which step, and where they are.
 *
 *     steps <store> <steps> <placement> <fsync> <length>
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ambar_mpi.h"

static void check(int status) {
    if (status == 0) return;
    fprintf(stderr, "status %d: %s\n", status, ambar_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The number of steps in the store. */
static int count_steps(const char *path) {
    ambar_store *store;
    ambar_array_info info;
    char name[64];
    int steps = 0;
    if (ambar_open(path, &store)) return 0;
    info.size = sizeof info;
    for (;; steps++) {
        snprintf(name, sizeof name, "step_%06d/u", steps);
        if (ambar_info(store, name, &info)) break;
    }
    ambar_store_free(store);
    return steps;
}

int main(int argc, char **argv) {
    int rank, ranks, steps = 0, last;
    uint64_t n, at, start[1], count[1];
    double *values;
    ambar_mpi_writer w;
    ambar_options options;
    MPI_Init(&argc, &argv);
    if (argc != 6) return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("begun\n"), fflush(stdout);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    if (strcmp(argv[3], "queued") == 0) options.queue_bytes = 1 << 20;
    else options.placement = strcmp(argv[3], "reserved") == 0 ? AMBAR_RESERVED : AMBAR_COUNTER;
    options.no_fsync = strcmp(argv[4], "fsync") != 0;
    if (rank == 0) steps = count_steps(argv[1]);
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    n = strtoull(argv[5], NULL, 10);
    start[0] = n * (uint64_t)rank / (uint64_t)ranks;
    count[0] = n * (uint64_t)(rank + 1) / (uint64_t)ranks - start[0];
    values = malloc(count[0] * sizeof *values + 1);
    check(steps ? ambar_mpi_append(MPI_COMM_WORLD, argv[1], &options, &w)
                : ambar_mpi_create(MPI_COMM_WORLD, argv[1], &options, &w));
    for (last = steps + atoi(argv[2]); steps < last; steps++) {
        char group[64], name[80];
        ambar_array array;
        ambar_spec spec;
        memset(&spec, 0, sizeof spec);
        spec.size = sizeof spec;
        spec.type = AMBAR_FLOAT64;
        spec.ndim = 1;
        spec.shape = &n;
        check(ambar_mpi_begin_step(&w, "", steps, group, sizeof group));
        snprintf(name, sizeof name, "%s/u", group);
        check(ambar_mpi_define(&w, name, &spec, start, count, &array));
        for (at = 0; at < count[0]; at++) {
            uint64_t place = start[0] + at;
            values[at] = (double)(steps * 1000003) + (double)(place * 7919u % 104729u);
        }
        check(ambar_write_borrowed(w.writer, array, start, count, values));
        check(ambar_mpi_commit_begin(&w));
        check(ambar_mpi_commit_wait(&w));
        if (rank == 0) printf("committed %d\n", steps), fflush(stdout);
    }
    check(ambar_mpi_close(&w));
    free(values);
    MPI_Finalize();
    return 0;
}

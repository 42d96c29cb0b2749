/* A wave on a line, by any number of MPI ranks: while a step is computed, the last one is encoded and written.
 *
 *     mpirun -n 4 ./background wave.ambar 5 1000000    5 steps of 1,000,000 cells
 *
 * Two arrays take turns: a step lends its array to ambar until ambar_mpi_commit_wait has returned.
 */
#include <ambar_mpi.h>
#include <math.h>

static void check(int status) {
    if (status == AMBAR_OK) return;
    fprintf(stderr, "status %d: %s\n", status, ambar_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void compute(double *wave, uint64_t start, uint64_t count, int step) {
    for (uint64_t at = 0; at < count; at++) wave[at] = sin(1e-3 * (double)(start + at) + 0.1 * step);
}

int main(int argc, char **argv) {
    int rank, ranks, step, done;
    ambar_mpi_writer w;
    ambar_blocks *blocks;
    ambar_options options = {0};
    double *waves[2];
    MPI_Init(&argc, &argv);
    if (argc != 4) return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    uint64_t cells = strtoull(argv[3], NULL, 10);
    uint64_t start = cells * (uint64_t)rank / (uint64_t)ranks;
    uint64_t count = cells * (uint64_t)(rank + 1) / (uint64_t)ranks - start;
    for (int turn = 0; turn < 2; turn++) waves[turn] = malloc((size_t)count * sizeof **waves + 1);

    options.size = sizeof options;
    options.queue_bytes = 64 << 20; /* of copies by ambar_write; borrowed values are not copied */
    check(ambar_mpi_create(MPI_COMM_WORLD, argv[1], &options, &w));
    check(ambar_mpi_blocks(MPI_COMM_WORLD, 1, &cells, 1, &start, &count, &blocks));
    for (step = 0; step < atoi(argv[2]); step++) {
        char group[64], name[80];
        ambar_spec spec = {0};
        ambar_array array;
        compute(waves[step % 2], start, count, step);            /* meanwhile the last step is written */
        if (step > 0) {
            check(ambar_commit_test(w.writer, &done));           /* 1: the wait will be short */
            if (rank == 0) printf("step %d is %s\n", step - 1, done ? "on the disk" : "being written");
            check(ambar_mpi_commit_wait(&w));
        }
        check(ambar_mpi_begin_step(&w, "", 0.1 * step, group, sizeof group));
        snprintf(name, sizeof name, "%s/wave", group);
        spec.size = sizeof spec;
        spec.type = AMBAR_FLOAT64;
        spec.error_bound = "1e-6";
        spec.dimension_names = "x";
        spec.ndim = 1;
        spec.shape = &cells;
        check(ambar_define(w.writer, name, &spec, blocks, &array));
        check(ambar_write_borrowed(w.writer, array, &start, &count, waves[step % 2]));
        check(ambar_mpi_commit_begin(&w));
    }
    if (step > 0) check(ambar_mpi_commit_wait(&w));
    ambar_blocks_free(blocks);
    check(ambar_mpi_close(&w));
    free(waves[0]), free(waves[1]);
    MPI_Finalize();
    return 0;
}

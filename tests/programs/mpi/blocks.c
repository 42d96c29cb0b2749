/* Writes or reads arrays by many ranks, each its blocks of a decomposition; values say where they are.
 *
 *     blocks write|append|read <store> <cut> <placement> <values per write> <length> [<length> ...]
 *
 * cut: rows, uneven (rank 2 has nothing), grid, stripes (several blocks a rank). Exits with 1 where values are wrong,
 * with 10 + status where ambar refuses.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ambar_mpi.h"

enum { MAX = 4, MAX_BLOCKS = 8 };

typedef struct {
    uint64_t start[MAX], count[MAX];
} block;

static int rank, ranks, ndim;
static uint64_t shape[MAX];

static int refused(int status) {
    if (status == 0) return 0;
    fprintf(stderr, "rank %d: status %d: %s\n", rank, status, ambar_last_error());
    return 10 + status;
}

static uint64_t part(uint64_t length, int index, int parts) { return length * (uint64_t)index / (uint64_t)parts; }

static void rows(block *own, int dimension, uint64_t from, uint64_t to) {
    own->start[dimension] = from;
    own->count[dimension] = to - from;
}

static int cut_up(const char *cut, block *own) {
    static const uint64_t shares[] = {0, 1, 3, 3, 6};
    int n = 1, d, i;
    for (i = 0; i < MAX_BLOCKS; i++)
        for (d = 0; d < ndim; d++) rows(own + i, d, 0, shape[d]);
    if (strcmp(cut, "rows") == 0) {
        rows(own, 0, part(shape[0], rank, ranks), part(shape[0], rank + 1, ranks));
    } else if (strcmp(cut, "uneven") == 0 && ranks == 4) {
        rows(own, 0, shape[0] * shares[rank] / 6, shape[0] * shares[rank + 1] / 6);
    } else if (strcmp(cut, "grid") == 0 && ndim > 1 && ranks % 2 == 0) {
        rows(own, 0, part(shape[0], rank / 2, ranks / 2), part(shape[0], rank / 2 + 1, ranks / 2));
        rows(own, 1, rank % 2 ? shape[1] / 3 : 0, rank % 2 ? shape[1] : shape[1] / 3);
    } else if (strcmp(cut, "stripes") == 0) {
        for (n = 3, i = 0; i < n; i++)
            rows(own + i, 0, part(shape[0], rank + i * ranks, n * ranks), part(shape[0], rank + i * ranks + 1, n * ranks));
    } else {
        fprintf(stderr, "no cut %s of %d dimensions for %d ranks\n", cut, ndim, ranks);
        exit(2);
    }
    return n;
}

static uint64_t volume(const block *own) {
    uint64_t all = 1;
    int d;
    for (d = 0; d < ndim; d++) all *= own->count[d];
    return all;
}

/* The number of a block's value in the whole array. */
static uint64_t place_of(const block *own, uint64_t value) {
    uint64_t at[MAX], place = 0;
    int d;
    for (d = ndim - 1; d >= 0; d--) {
        at[d] = own->start[d] + value % own->count[d];
        value /= own->count[d];
    }
    for (d = 0; d < ndim; d++) place = place * shape[d] + at[d];
    return place;
}

static double real_at(uint64_t place) { return (double)(place * 2654435761u % 1000003u) / 7.0 + (double)place; }

static int32_t integer_at(uint64_t place) { return (int32_t)(place * 40503u % 65521u) - 32768; }

static void fill(const block *own, double *reals, int32_t *integers) {
    uint64_t value;
    for (value = 0; value < volume(own); value++) {
        uint64_t place = place_of(own, value);
        reals[value] = real_at(place);
        integers[value] = integer_at(place);
    }
}

/* From here on the disk is full for the rank that the environment names. */
static void fill_disk(void) {
    const char *full = getenv("DISK_IS_FULL_ON");
    struct rlimit limit = {4096, 4096};
    if (!full || atoi(full) != rank) return;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit)) exit(2);
}

static int write_all(ambar_mpi_writer *w, const char *cut, uint64_t most) {
    block own[MAX_BLOCKS];
    uint64_t starts[MAX_BLOCKS * MAX], counts[MAX_BLOCKS * MAX];
    int n = cut_up(cut, own), i, d, status;
    ambar_blocks *blocks;
    ambar_array reals, integers;
    ambar_spec spec;
    char group[256], name[300];
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec;
    spec.ndim = ndim;
    spec.shape = shape;
    for (i = 0; i < n; i++)
        for (d = 0; d < ndim; d++) starts[i * ndim + d] = own[i].start[d], counts[i * ndim + d] = own[i].count[d];
    if ((status = ambar_mpi_begin_step(w, "run", 0.5, group, sizeof group))) return refused(status);
    status = ambar_mpi_blocks(w->comm, ndim, shape, n, starts, counts, &blocks);
    if (status) return refused(status);
    spec.type = AMBAR_FLOAT64;
    snprintf(name, sizeof name, "%s/reals", group);
    if ((status = ambar_define(w->writer, name, &spec, blocks, &reals))) return refused(status);
    spec.type = AMBAR_INT32;
    snprintf(name, sizeof name, "%s/integers", group);
    if ((status = ambar_define(w->writer, name, &spec, blocks, &integers))) return refused(status);
    ambar_blocks_free(blocks);
    for (i = 0; i < n; i++) {
        uint64_t all = volume(own + i), row = own[i].count[0] ? all / own[i].count[0] : 0, at, rows_at_once;
        double *r = malloc(all * sizeof *r + 1);
        int32_t *k = malloc(all * sizeof *k + 1);
        fill(own + i, r, k);
        rows_at_once = most && row && most > row ? most / row : own[i].count[0];
        for (at = 0; at < own[i].count[0]; at += rows_at_once) {
            block piece = own[i];
            uint64_t left = own[i].count[0] - at;
            piece.start[0] += at;
            piece.count[0] = left < rows_at_once ? left : rows_at_once;
            /* A failure here is remembered, and keeps all from committing. */
            refused(ambar_write(w->writer, reals, piece.start, piece.count, r + at * row));
            refused(ambar_write(w->writer, integers, piece.start, piece.count, k + at * row));
        }
        free(r), free(k);
    }
    return refused(ambar_mpi_commit(w));
}

static int read_all(const char *path, const char *cut) {
    block own[MAX_BLOCKS];
    int n = cut_up(cut, own), i, status;
    ambar_store *store;
    if ((status = ambar_open(path, &store))) return refused(status);
    for (i = 0; i < n; i++) {
        size_t all = volume(own + i);
        double *r = malloc(2 * all * sizeof *r + 1), *expected_r = r + all;
        int32_t *k = malloc(2 * all * sizeof *k + 1), *expected_k = k + all;
        fill(own + i, expected_r, expected_k);
        status = ambar_read(store, "run/step_000000/reals", own[i].start, own[i].count, r, all * sizeof *r, 1);
        if (status) return refused(status);
        status = ambar_read(store, "run/step_000000/integers", own[i].start, own[i].count, k, all * sizeof *k, 1);
        if (status) return refused(status);
        if (memcmp(r, expected_r, all * sizeof *r) || memcmp(k, expected_k, all * sizeof *k)) {
            fprintf(stderr, "rank %d: wrong values\n", rank);
            return 1;
        }
        free(r), free(k);
    }
    ambar_store_free(store);
    return 0;
}

int main(int argc, char **argv) {
    ambar_mpi_writer w;
    ambar_options options;
    int status = 0, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (ndim = 0; ndim < argc - 6 && ndim < MAX; ndim++) shape[ndim] = strtoull(argv[6 + ndim], NULL, 10);
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    if (ndim == 0) return 2;
    if (strcmp(argv[1], "read") == 0) {
        status = read_all(argv[2], argv[3]);
    } else {
        if (strcmp(argv[4], "queued") == 0) options.queue_bytes = 100000;
        else options.placement = strcmp(argv[4], "reserved") == 0 ? AMBAR_RESERVED : AMBAR_COUNTER;
        status = strcmp(argv[1], "append") == 0 ? ambar_mpi_append(MPI_COMM_WORLD, argv[2], &options, &w)
                                                : ambar_mpi_create(MPI_COMM_WORLD, argv[2], &options, &w);
        status = refused(status);
        fill_disk();
        if (!status) status = write_all(&w, argv[3], strtoull(argv[5], NULL, 10));
        ambar_mpi_close(&w);
    }
    MPI_Allreduce(&status, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) printf("all failed\n"); /* no rank took its part for done */
    MPI_Finalize();
    return status;
}

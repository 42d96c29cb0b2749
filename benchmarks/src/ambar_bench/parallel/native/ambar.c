/* ambar: one store, in which every rank writes its own extents. */
#include <ambar_mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "study.h"

static void require(int code, const job *j) {
    if (code != AMBAR_OK) fail("%s: %s", j->path, ambar_last_error());
}

static void write_as(const job *j, ambar_spec spec, int placement) {
    ambar_options options = {0};
    ambar_mpi_writer writer;
    ambar_blocks *blocks;
    ambar_array array;
    uint64_t shape = j->doubles, start = j->start, count = j->count;
    options.size = sizeof options;
    options.placement = placement;
    spec.size = sizeof spec;
    spec.type = AMBAR_FLOAT64;
    spec.dimension_names = "x";
    spec.ndim = 1;
    spec.shape = &shape;
    require(ambar_mpi_create(j->comm, j->path, &options, &writer), j);
    require(ambar_mpi_blocks(j->comm, 1, &shape, 1, &start, &count, &blocks), j);
    require(ambar_define(writer.writer, "values", &spec, blocks, &array), j);
    require(ambar_write(writer.writer, array, &start, &count, j->values), j);
    require(ambar_mpi_commit(&writer), j);
    require(ambar_mpi_close(&writer), j);
    ambar_blocks_free(blocks);
}

static void write_by(const job *j, int profile, double bound, int placement) {
    ambar_spec spec = {0};
    spec.profile = profile;
    char text[32];
    snprintf(text, sizeof text, "%.17g", bound);
    if (bound > 0) spec.error_bound = text;
    write_as(j, spec, placement);
}

/* Lossless, by ambar's own codec. */
static void packed(const job *j) {
    ambar_spec spec = {0};
    spec.profile = AMBAR_FAST;
    spec.predict = 1;
    write_as(j, spec, AMBAR_COUNTER);
}

/* The available cores for each rank, assuming that all ranks are on this node. */
static int threads_of(const job *j) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores > j->ranks ? (int)(cores / j->ranks) : 1;
}

static void read_part(const job *j) {
    ambar_store *store;
    require(ambar_open(j->path, &store), j);
    uint64_t start = j->start, count = j->count;
    size_t room = j->count * sizeof *j->values;
    require(ambar_read(store, "values", &start, &count, j->values, room, threads_of(j)), j);
    ambar_store_free(store);
}

static void raw(const job *j) { write_by(j, AMBAR_RAW, 0.0, AMBAR_COUNTER); }
static void raw_reserved(const job *j) { write_by(j, AMBAR_RAW, 0.0, AMBAR_RESERVED); }
static void fast(const job *j) { write_by(j, AMBAR_FAST, 0.0, AMBAR_COUNTER); }
static void balanced(const job *j) { write_by(j, AMBAR_BALANCED, 0.0, AMBAR_COUNTER); }
static void balanced_reserved(const job *j) { write_by(j, AMBAR_BALANCED, 0.0, AMBAR_RESERVED); }
static void bounded(const job *j) { write_by(j, AMBAR_BALANCED, j->bound, AMBAR_COUNTER); }
static void bounded_fast(const job *j) { write_by(j, AMBAR_FAST, j->bound, AMBAR_COUNTER); }

const version versions[] = {
    {"ambar-raw", raw, read_part},
    {"ambar-raw-reserved", raw_reserved, read_part},
    {"ambar-fast", fast, read_part},
    {"ambar", balanced, read_part},
    {"ambar-reserved", balanced_reserved, read_part},
    {"ambar-packed", packed, read_part},
    {"ambar-bounded", bounded, read_part},
    {"ambar-bounded-fast", bounded_fast, read_part},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { snprintf(text, room, "%s", ambar_version()); }

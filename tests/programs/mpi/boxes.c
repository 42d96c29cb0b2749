/* Writes the boxes of a plotfile as a running AMR code would: each rank has the values of some boxes, with a ghost
 * cell around them, and some particles.
 *
 *     boxes <description> <store> <deal> <covered> <bound> <mode>
 *
 * The description, in binary, is what tests/formats/test_amrex_in_situ.py makes of a plotfile. `deal` says how boxes are given
 * to ranks: 0 in turn, 1 in runs, else at random. `mode`: 1 leaves the last box out, 2 writes particles, too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ambar_mpi.h"

static void check(int status, const char *what) {
    if (status == 0) return;
    fprintf(stderr, "%s: status %d: %s\n", what, status, ambar_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static FILE *file;

static void *take(size_t count, size_t size) {
    void *out = malloc(count * size + 1);
    if (!out || fread(out, size, count, file) != count) check(1, "the description");
    return out;
}

static ambar_field fields[64];

/* A copy of a box's values with a ghost cell on all sides, which must never be seen. */
static double *with_ghosts(const double *values, const int64_t *cells, int64_t *strides) {
    int64_t x, y, z, wide = cells[0] + 2, high = cells[1] + 2, deep = cells[2] + 2;
    double *out = (double *)malloc(sizeof *out * (size_t)(wide * high * deep));
    for (x = 0; x < wide * high * deep; x++) out[x] = -1e300;
    for (z = 0; z < cells[2]; z++)
        for (y = 0; y < cells[1]; y++)
            for (x = 0; x < cells[0]; x++)
                out[((z + 1) * high + y + 1) * wide + x + 1] = values[(z * cells[1] + y) * cells[0] + x];
    strides[0] = 8, strides[1] = 8 * wide, strides[2] = 8 * wide * high;
    return out;
}

/* Chooses the codecs of all fields by the first box, which all ranks see here. */
static void choose(const int64_t *corners, int count) {
    int64_t cells[3], strides[3] = {8, 0, 0};
    long start = ftell(file);
    int d, field;
    for (d = 0; d < 3; d++) cells[d] = corners[3 + d] - corners[d];
    strides[1] = 8 * cells[0], strides[2] = strides[1] * cells[1];
    for (field = 0; field < count; field++) {
        double *values = (double *)take((size_t)(cells[0] * cells[1] * cells[2]), 8);
        ambar_bytes json;
        char *text;
        check(ambar_amr_choose(3, cells, AMBAR_FLOAT64, AMBAR_BALANCED, values, strides, &json), "choosing");
        text = (char *)calloc(json.len + 1, 1);
        memcpy(text, json.data, json.len);
        fields[field].codecs = text;
        ambar_bytes_free(json);
        free(values);
    }
    fseek(file, start, SEEK_SET);
}

static void write_particles(ambar_writer *writer, int rank, int ranks, const ambar_hierarchy *h, ambar_particles **out) {
    static const char *const names[] = {"position_x", "position_y", "position_z", "id"};
    uint64_t counts[256];
    ambar_field columns[4];
    int64_t at, first = 0, count = 1000 * (rank % 3), i;
    double *values = (double *)malloc(sizeof *values * (size_t)(4 * count + 1));
    memset(columns, 0, sizeof columns);
    for (i = 0; i < ranks; i++) counts[i] = 1000 * ((uint64_t)i % 3);
    for (i = 0; i < rank; i++) first += (int64_t)counts[i];
    for (at = 0; at < count; at++) {
        int64_t id = first + at;
        for (i = 0; i < 3; i++)
            values[4 * at + i] = h->lower[i] + (h->upper[i] - h->lower[i]) * fmod(0.618 * (i + 1) * (id + 1), 1.0);
        values[4 * at + 3] = (double)id;
    }
    for (i = 0; i < 4; i++) columns[i].size = sizeof *columns, columns[i].name = names[i], columns[i].type = AMBAR_FLOAT64;
    check(ambar_particles_define(writer, "particles/dust", counts, 4, columns, AMBAR_FAST, 3, h->lower,
                                 h->upper[0] - h->lower[0], NULL, out), "particles");
    for (i = 0; i < 4; i++) check(ambar_particles_write(*out, writer, (int)i, values + i, 32), "a column");
    free(values);
}

int main(int argc, char **argv) {
    int rank, ranks, level, box, field, global = 0, status, deal, mode;
    int64_t *numbers, *steps, largest[3] = {1, 1, 1};
    double *reals, *values;
    ambar_hierarchy h;
    ambar_mpi_writer w;
    ambar_options options;
    ambar_amr *amr;
    ambar_particles *dust = NULL;
    const ambar_particles *species[1];
    ambar_run run;
    uint32_t *owners;
    int32_t *counts;
    int boxes = 0;
    MPI_Init(&argc, &argv);
    if (argc != 7 || !(file = fopen(argv[1], "rb"))) return 2;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    deal = atoi(argv[3]), mode = atoi(argv[6]);
    memset(&h, 0, sizeof h);
    memset(&options, 0, sizeof options);
    options.size = sizeof options, h.size = sizeof h;
    numbers = (int64_t *)take(2, 8);
    h.ndim = 3, h.levels = (int32_t)numbers[0];
    reals = (double *)take(6, 8);
    memcpy(h.lower, reals, 24), memcpy(h.upper, reals + 3, 24);
    h.domains = (int64_t *)take(6 * (size_t)h.levels, 8);
    h.cell_sizes = (double *)take(3 * (size_t)h.levels, 8);
    h.ratios = (int32_t *)take(3 * (size_t)h.levels, 4);
    h.boxes = counts = (int32_t *)take((size_t)h.levels, 4);
    for (level = 0; level < h.levels; level++) boxes += counts[level];
    h.corners = (int64_t *)take(6 * (size_t)boxes, 8);
    h.ranks = owners = (uint32_t *)malloc(sizeof *owners * (size_t)(boxes + 1));
    for (box = 0; box < boxes; box++) {
        uint32_t any = (uint32_t)box * 2654435761u >> 16;
        owners[box] = deal == 0 ? (uint32_t)(box % ranks) : deal == 1 ? (uint32_t)(box * ranks / boxes) : any % (uint32_t)ranks;
    }
    for (field = 0; field < (int)numbers[1]; field++) {
        char *name = (char *)take(64, 1);
        fields[field].size = sizeof *fields, fields[field].name = name, fields[field].type = AMBAR_FLOAT64, fields[field].error_bound = argv[5];
    }
    choose(h.corners, (int)numbers[1]);
    check(ambar_mpi_create(MPI_COMM_WORLD, argv[2], &options, &w), "create");
    check(ambar_amr_define(w.writer, "amr", &h, (int)numbers[1], fields, AMBAR_BALANCED, atoi(argv[4]), &amr), "define");
    if (mode == 2) write_particles(w.writer, rank, ranks, &h, &dust);
    for (level = 0; level < h.levels; level++) {
        for (box = 0; box < counts[level]; box++, global++) {
            const int64_t *corners = h.corners + 6 * global;
            for (field = 0; field < 3; field++) largest[field] = corners[3 + field] - corners[field];
            for (field = 0; field < (int)numbers[1]; field++) {
                int64_t strides[3];
                double *ghosts;
                values = (double *)take((size_t)(largest[0] * largest[1] * largest[2]), 8);
                ghosts = with_ghosts(values, largest, strides);
                if (owners[global] == (uint32_t)rank && !(mode == 1 && global == boxes - 1)) {
                    const double *first = ghosts + strides[2] / 8 + strides[1] / 8 + 1;
                    check(ambar_amr_write(amr, w.writer, level, box, field, first, strides), "a box");
                }
                free(values), free(ghosts);
            }
        }
    }
    steps = (int64_t *)calloc((size_t)h.levels, sizeof *steps);
    species[0] = dust;
    memset(&run, 0, sizeof run);
    run.size = sizeof run, run.name = "plt", run.format = "HyperCLaw-V1.1", run.time = 0.25, run.steps = steps;
    run.species_count = mode == 2, run.species = species;
    check(ambar_amr_snapshot(w.writer, "", amr, &run), "the snapshot");
    status = ambar_amr_end(amr, w.writer);
    if (mode != 1) check(status, "the end");
    check(ambar_particles_end(dust, w.writer), "the end");
    status = ambar_mpi_commit(&w);
    if (status && rank == 0) fprintf(stderr, "commit: %s\n", ambar_last_error());
    ambar_mpi_close(&w);
    MPI_Finalize();
    return status ? 10 + status : 0;
}

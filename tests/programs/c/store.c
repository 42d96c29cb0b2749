/* Writes a store with one process, adds to it, reads it back, and makes every mistake on the way. */
#include <ambar.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) expect(call, AMBAR_OK, #call)
#define NZ 20
#define NY 30
#define NX 40
#define GHOSTS 2

static void expect(int status, int expected, const char *call) {
    if (status != expected) {
        fprintf(stderr, "%s: %d instead of %d: %s\n", call, status, expected, ambar_last_error());
        exit(1);
    }
    if (status != AMBAR_OK && strlen(ambar_last_error()) < 10) {
        fprintf(stderr, "%s: no message\n", call);
        exit(1);
    }
}

static double value(size_t z, size_t y, size_t x) { return sin(0.1 * (double)z) + cos(0.2 * (double)y) * (double)x; }

static void write_step(ambar_writer *writer, double time, const char *error_bound) {
    char group[64], path[96];
    uint64_t shape[3] = {NZ, NY, NX}, start[3] = {0, 0, 0};
    CHECK(ambar_begin_step(writer, "run", time, group, sizeof group));
    snprintf(path, sizeof path, "%s/density", group);
    ambar_spec spec = {0};
    spec.size = sizeof spec;
    spec.type = AMBAR_FLOAT64;
    spec.error_bound = error_bound;
    spec.dimension_names = "z, y, x";
    spec.attributes = "{\"units\": \"g/cm^3\"}";
    spec.ndim = 3;
    spec.shape = shape;
    ambar_array density;
    CHECK(ambar_define(writer, path, &spec, NULL, &density));
    /* The field has ghost cells in memory. */
    static double field[NZ + 2 * GHOSTS][NY + 2 * GHOSTS][NX + 2 * GHOSTS];
    memset(field, 0xff, sizeof field);
    for (size_t z = 0; z < NZ; z++)
        for (size_t y = 0; y < NY; y++)
            for (size_t x = 0; x < NX; x++)
                field[z + GHOSTS][y + GHOSTS][x + GHOSTS] = value(z, y, x) + time;
    int64_t strides[3] = {sizeof field[0], sizeof field[0][0], sizeof(double)};
    const void *first = &field[GHOSTS][GHOSTS][GHOSTS];
    CHECK(ambar_write_strided(writer, density, start, shape, first, strides));
    CHECK(ambar_commit(writer));
}

static void write_rows(ambar_writer *writer) {
    uint64_t shape[1] = {100000}, start[1], count[1] = {1000};
    int32_t rows[1000];
    ambar_spec spec = {0};
    spec.size = sizeof spec;
    spec.type = AMBAR_INT32;
    spec.ndim = 1;
    spec.shape = shape;
    ambar_bytes codecs;
    for (int i = 0; i < 1000; i++) rows[i] = i * 3;
    CHECK(ambar_choose_codecs(&spec, rows, count, &codecs));
    char *text = calloc(1, codecs.len + 1);
    memcpy(text, codecs.data, codecs.len);
    ambar_bytes_free(codecs);
    spec.codecs = text;
    ambar_array numbers;
    CHECK(ambar_group(writer, "columns", "{\"about\": \"rows\"}"));
    CHECK(ambar_define(writer, "columns/numbers", &spec, NULL, &numbers));
    free(text);
    for (start[0] = 0; start[0] < shape[0]; start[0] += count[0]) {
        for (uint64_t i = 0; i < count[0]; i++) rows[i] = (int32_t)(start[0] + i) * 3;
        CHECK(ambar_write(writer, numbers, start, count, rows));
    }
    CHECK(ambar_commit(writer));
}

static void read_back(const char *path) {
    ambar_store *store;
    ambar_array_info info = {0};
    info.size = sizeof info;
    CHECK(ambar_open(path, &store));
    CHECK(ambar_info(store, "run/step_000001/density", &info));
    if (info.ndim != 3 || info.shape[2] != NX || info.type != AMBAR_FLOAT64 || strcmp(info.error_bound, "1e-3"))
        exit(2);
    uint64_t start[3] = {3, 4, 5}, count[3] = {7, 8, 9};
    double part[7][8][9];
    CHECK(ambar_read(store, "run/step_000001/density", start, count, part, sizeof part, 1));
    for (size_t z = 0; z < 7; z++)
        for (size_t y = 0; y < 8; y++)
            for (size_t x = 0; x < 9; x++)
                if (fabs(part[z][y][x] - value(z + 3, y + 4, x + 5) - 0.5) > 1e-3) exit(3);
    uint64_t row[1] = {99999}, one[1] = {1};
    int32_t last;
    CHECK(ambar_read(store, "columns/numbers", row, one, &last, sizeof last, 0));
    if (last != 99999 * 3) exit(4);
    ambar_bytes text;
    CHECK(ambar_attributes(store, "run", &text));
    if (!text.len) exit(5);
    ambar_bytes_free(text);
    CHECK(ambar_list(store, "", &text));
    printf("%.*s\n", (int)text.len, text.data);
    ambar_bytes_free(text);
    expect(ambar_read(store, "nothing", row, one, &last, sizeof last, 0), AMBAR_NOT_FOUND, "no array");
    expect(ambar_read(store, "columns/numbers", row, one, &last, 3, 0), AMBAR_INVALID, "little room");
    row[0] = 100000;
    expect(ambar_read(store, "columns/numbers", row, one, &last, sizeof last, 0), AMBAR_INVALID, "outside");
    ambar_store_free(store);
}

/* What was refused was to be written: a commit without it would be silently wrong. */
static void refuse(const char *path, const ambar_spec *spec, int status, const char *what) {
    ambar_writer *writer;
    ambar_array array;
    ambar_spec good = *spec;
    CHECK(ambar_append(path, NULL, &writer));
    expect(ambar_define(writer, "a", spec, NULL, &array), status, what);
    good.size = sizeof good, good.type = AMBAR_INT8, good.ndim = 1, good.error_bound = NULL;
    good.codecs = good.attributes = NULL;
    expect(ambar_define(writer, "a", &good, NULL, &array), status, "defining after a mistake");
    expect(ambar_write(writer, 0, good.shape, good.shape, good.shape), status, "writing after a mistake");
    expect(ambar_group(writer, "g", NULL), status, "a group after a mistake");
    expect(ambar_commit(writer), status, "committing after a mistake");
    expect(ambar_commit(writer), status, "committing again");
    CHECK(ambar_close(writer));
}

/* An error bound that is refused, with a message that contains `why`. */
static void refuse_bound(const char *path, ambar_spec *spec, const char *bound, const char *why) {
    spec->error_bound = bound;
    refuse(path, spec, AMBAR_INVALID, bound);
    if (strstr(ambar_last_error(), why)) return;
    fprintf(stderr, "%s: %s\n", bound, ambar_last_error());
    exit(6);
}

/* Every kind of bound is kept, and reported in the form that its values have it. */
static void write_bounds(const char *path) {
    static const char *const bounds[] = {"1e-3 relative", "1e-3 relative above 1e-10", "12 bits", "0.01 rms",
                                         "1e-3 of range", "80 dB",    "lossless",                 "0"};
    static const char *const found[] = {"1e-3 relative", "1e-3 relative above 1e-10", "12 bits", "1e-2 rms",
                                        "1e-3",          "1e-4 rms",                  "lossless", "lossless"};
    double values[1000], range[2] = {1, 2};
    uint64_t shape[1] = {1000}, start[1] = {0};
    ambar_writer *writer;
    ambar_store *store;
    ambar_array array[8];
    ambar_spec spec = {0};
    char name[16];
    spec.size = sizeof spec, spec.type = AMBAR_FLOAT64, spec.ndim = 1, spec.shape = shape, spec.value_range = range;
    for (int i = 0; i < 1000; i++) values[i] = 1 + i / 999.0;
    CHECK(ambar_append(path, NULL, &writer));
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "bounds/%d", i);
        spec.error_bound = bounds[i];
        CHECK(ambar_define(writer, name, &spec, NULL, array + i));
        CHECK(ambar_write(writer, array[i], start, shape, values));
    }
    CHECK(ambar_commit(writer));
    CHECK(ambar_close(writer));
    CHECK(ambar_open(path, &store));
    for (int i = 0; i < 8; i++) {
        ambar_array_info info = {0};
        info.size = sizeof info;
        snprintf(name, sizeof name, "bounds/%d", i);
        CHECK(ambar_info(store, name, &info));
        if (!strcmp(info.error_bound, found[i])) continue;
        fprintf(stderr, "%s: %s\n", bounds[i], info.error_bound);
        exit(7);
    }
    ambar_store_free(store);
}

static void make_mistakes(const char *path) {
    ambar_writer *writer;
    ambar_store *store;
    uint64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    ambar_options options = {0};
    options.size = sizeof options;
    expect(ambar_create(path, NULL, &writer), AMBAR_EXISTS, "creating a store that exists");
    expect(ambar_create(NULL, NULL, &writer), AMBAR_INVALID, "no path");
    expect(ambar_open("/nowhere/x.ambar", &store), AMBAR_NOT_FOUND, "opening nothing");
    options.placement = 9;
    expect(ambar_append(path, &options, &writer), AMBAR_INVALID, "no such placement");
    CHECK(ambar_append(path, NULL, &writer));
    expect(ambar_write(writer, 0, shape, shape, shape), AMBAR_INVALID, "nothing was defined");
    CHECK(ambar_close(writer));
    ambar_spec spec = {0};
    spec.ndim = 1;
    spec.shape = shape;
    refuse(path, &spec, AMBAR_INVALID, "no size");
    spec.size = sizeof spec;
    spec.type = 77;
    refuse(path, &spec, AMBAR_INVALID, "no such type");
    spec.type = AMBAR_INT8;
    spec.error_bound = "0.1";
    refuse(path, &spec, AMBAR_INVALID, "bound of integers");
    spec.type = AMBAR_FLOAT64;
    refuse_bound(path, &spec, "1e-3 of rnage", "invalid error bound: \"1e-3 of rnage\"");
    refuse_bound(path, &spec, "-1", "invalid error bound: \"-1\"");
    refuse_bound(path, &spec, "80 dB", "set value_range");
    spec.type = AMBAR_INT8;
    spec.error_bound = NULL;
    spec.ndim = 9;
    refuse(path, &spec, AMBAR_INVALID, "nine dimensions");
    spec.ndim = 1;
    spec.codecs = "[{\"name\": \"unheard of\"}]";
    refuse(path, &spec, AMBAR_UNSUPPORTED, "no such codec");
    spec.codecs = NULL;
    spec.attributes = "[]";
    refuse(path, &spec, AMBAR_INVALID, "attributes are a list");
}

int main(int argc, char **argv) {
    ambar_writer *writer;
    if (argc != 2) return 9;
    CHECK(ambar_create(argv[1], NULL, &writer));
    write_step(writer, 0.0, NULL);
    write_step(writer, 0.5, "1e-3");
    CHECK(ambar_close(writer));
    CHECK(ambar_append(argv[1], NULL, &writer));
    write_rows(writer);
    CHECK(ambar_close(writer));
    read_back(argv[1]);
    write_bounds(argv[1]);
    make_mistakes(argv[1]);
    puts(ambar_version());
    return 0;
}

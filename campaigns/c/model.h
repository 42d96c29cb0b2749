/* The model of the program sequences.c: what a store must hold, and how calls of the C API may end.
 *
 * Included by one source file; everything is static. Random numbers decide on all values, so that a seed repeats them.
 */
#ifndef SEQUENCES_MODEL_H
#define SEQUENCES_MODEL_H

#include <ambar.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 256, MOST_RANKS = 3, MOST_BLOCKS = 12, MOST_BOXES = 8, MOST_FIELDS = 3, GUARD = 64 };

/* ---- Random numbers (splitmix64), memory, and calls ---- */

static uint64_t state;

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t next_random(void) { return mix(state += UINT64_C(0x9e3779b97f4a7c15)); }
static uint64_t below(uint64_t n) { return next_random() % n; }
static int chance(unsigned percent) { return below(100) < percent; }

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "%s: %s\n", what, detail);
    _Exit(1);
}

static void *memory(size_t bytes) {
    void *out = malloc(bytes ? bytes : 1);
    if (!out) fail("memory", "malloc returned NULL");
    return out;
}

static unsigned long calls, refusals;

/* Checks how a call ended. `allowed`: 1 success, 2 an error, 3 either. */
static int ended(int status, int allowed, const char *call) {
    char text[512];
    calls++;
    refusals += status != AMBAR_OK;
    if (status == AMBAR_PANIC) fail(call, "AMBAR_PANIC");
    if (status < 0 || status > AMBAR_EXISTS) fail(call, "not a status");
    if (status != AMBAR_OK && strlen(ambar_last_error()) < 10) fail(call, "no message");
    if (!(allowed & (status == AMBAR_OK ? 1 : 2))) {
        snprintf(text, sizeof text, "status %d: %s", status, status ? ambar_last_error() : "not refused");
        fail(call, text);
    }
    return status;
}

#define CHECK(call) ended(call, 1, #call)
#define REFUSED(call) ended(call, 2, #call)
#define EITHER(call) ended(call, 3, #call)

/* ---- The model ---- */

typedef struct {
    char path[96];
    ambar_type type;
    size_t size, values, unwritten;
    int32_t ndim;
    uint64_t shape[8];
    double bound; /* absolute; 0: lossless */
    unsigned char *data;
} array_model;

typedef struct {
    char path[32];
    unsigned number;
} group_model;

typedef struct {
    int64_t lo[3], hi[3];
    unsigned char *values[MOST_FIELDS];
} box_model;

typedef struct {
    char path[32];
    int32_t ndim, levels, fields, covered;
    int32_t boxes[2];
    box_model box[MOST_BOXES]; /* level by level */
    ambar_type types[MOST_FIELDS];
    double bounds[MOST_FIELDS];
} amr_model;

typedef struct {
    char path[32];
    int32_t ndim;
    uint64_t count, seed;
} particles_model;

/* The store contains the first `committed` of each kind; later ones were defined since the last commit. */
static array_model arrays[MOST_ARRAYS];
static group_model groups[MOST_ARRAYS];
static amr_model hierarchies[MOST_ARRAYS];
static particles_model species[MOST_ARRAYS];
static struct {
    int arrays, groups, hierarchies, species;
} committed, defined;
static unsigned names;
static int steps;

static void forget_from(int first_array, int first_hierarchy) {
    int i, b, f;
    for (i = first_array; i < defined.arrays; i++) free(arrays[i].data);
    for (i = first_hierarchy; i < defined.hierarchies; i++)
        for (b = 0; b < MOST_BOXES; b++)
            for (f = 0; f < MOST_FIELDS; f++) free(hierarchies[i].box[b].values[f]);
}

static size_t size_of_type(ambar_type type) {
    static const size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};
    return sizes[type];
}

/* Fills values: constant, a ramp, smooth with noise, or random bits. */
static void fill(unsigned char *data, size_t count, ambar_type type, int finite) {
    size_t size = size_of_type(type), i;
    uint64_t base = next_random();
    int kind = (int)below(finite ? 3 : 4);
    for (i = 0; i < count; i++) {
        unsigned char *to = data + i * size;
        uint64_t n = kind == 0 ? base : kind == 1 ? base + i : kind == 2 ? (i / 3) + below(4) : next_random();
        if (type == AMBAR_BOOL) {
            *to = n & 1;
        } else if (kind < 3 && (type == AMBAR_FLOAT32 || type == AMBAR_FLOAT64)) {
            double real = kind == 2 ? sin((double)i * 0.05) + (double)below(1000) * 1e-6 : (double)(n % 100000) * 0.25;
            float single = (float)real;
            if (kind == 2 && below(200) == 0) single = (float)(real = NAN);
            memcpy(to, type == AMBAR_FLOAT32 ? (void *)&single : (void *)&real, size);
        } else {
            memcpy(to, &n, size < 8 ? size : 8);
            if (size == 16) memcpy(to + 8, &base, 8);
        }
    }
}

static int is_equal(const unsigned char *found, const unsigned char *expected, ambar_type type, double bound) {
    double a, b;
    if (memcmp(found, expected, size_of_type(type)) == 0) return 1;
    if (bound == 0) return 0;
    if (type == AMBAR_FLOAT32) {
        float x, y;
        memcpy(&x, found, 4), memcpy(&y, expected, 4);
        a = x, b = y;
    } else {
        memcpy(&a, found, 8), memcpy(&b, expected, 8);
    }
    return (isnan(a) && isnan(b)) || fabs(a - b) <= bound;
}

/* ---- Regions of arrays in memory ---- */

/* Moves to the next index in C order; returns 0 after the last. */
static int advance(uint64_t *index, const uint64_t *count, int ndim) {
    int d;
    for (d = ndim - 1; d >= 0; d--) {
        if (++index[d] < count[d]) return 1;
        index[d] = 0;
    }
    return 0;
}

static size_t values_in(const uint64_t *count, int ndim) {
    size_t all = 1;
    int d;
    for (d = 0; d < ndim; d++) all *= (size_t)count[d];
    return all;
}

/* The place of an index within an array of `shape`. */
static size_t place_of(const uint64_t *start, const uint64_t *index, const uint64_t *shape, int ndim) {
    size_t place = 0;
    int d;
    for (d = 0; d < ndim; d++) place = place * (size_t)shape[d] + (size_t)(start[d] + index[d]);
    return place;
}

#endif

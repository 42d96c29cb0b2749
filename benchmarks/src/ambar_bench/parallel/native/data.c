/* The doubles that are written: random or smooth, each a function of its place in the array. */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "study.h"

#define BLOCK 1024
#define WAVES 8

/* Waves of 16 to 6,270 values, each 2.347 times longer than the one before, with amplitudes that
 * grow with the cube root of the length, as in turbulence; their sum is between -1 and 1. */
static double length_of(int wave) { return 16.0 * pow(2.347, wave); }

static double cosines[WAVES][BLOCK], sines[WAVES][BLOCK];

static void fill_tables(void) {
    double total = 0.0;
    for (int w = 0; w < WAVES; w++) total += cbrt(length_of(w));
    for (int w = 0; w < WAVES; w++) {
        double amplitude = cbrt(length_of(w)) / total, turn = 2.0 * M_PI / length_of(w);
        for (int i = 0; i < BLOCK; i++) {
            cosines[w][i] = amplitude * cos(turn * i);
            sines[w][i] = amplitude * sin(turn * i);
        }
    }
}

/* 53 random bits in [0, 1): splitmix64 of the place. */
static double random_at(uint64_t place) {
    uint64_t z = (place + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* One whole block; parts of it have the same numbers. */
static void make_block(int kind, uint64_t block, double *out) {
    if (kind == RANDOM) {
        for (uint64_t i = 0; i < BLOCK; i++) out[i] = random_at(block * BLOCK + i);
        return;
    }
    memset(out, 0, BLOCK * sizeof *out);
    for (int w = 0; w < WAVES; w++) {
        double angle = 2.0 * M_PI * fmod((double)block * BLOCK / length_of(w), 1.0) + w;
        double s = sin(angle), c = cos(angle);
        for (int i = 0; i < BLOCK; i++) out[i] += s * cosines[w][i] + c * sines[w][i];
    }
}

typedef void visit(void *context, uint64_t first, uint64_t count, const double *truth);

static void each_block(int kind, uint64_t start, uint64_t count, visit *use, void *context) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    double block[BLOCK];
    for (uint64_t done = 0; done < count;) {
        uint64_t within = (start + done) % BLOCK, room = BLOCK - within;
        uint64_t n = room < count - done ? room : count - done;
        make_block(kind, (start + done) / BLOCK, block);
        use(context, done, n, block + within);
        done += n;
    }
}

static void copy(void *context, uint64_t first, uint64_t count, const double *truth) {
    memcpy((double *)context + first, truth, count * sizeof *truth);
}

void generate(int kind, uint64_t start, uint64_t count, double *out) {
    each_block(kind, start, count, copy, out);
}

struct comparison {
    const double *values;
    uint64_t differing;
    double largest;
};

static void look(void *context, uint64_t first, uint64_t count, const double *truth) {
    struct comparison *c = context;
    if (!memcmp(c->values + first, truth, count * sizeof *truth)) return;
    for (uint64_t i = 0; i < count; i++) {
        const double *value = c->values + first + i;
        if (!memcmp(value, truth + i, sizeof *truth)) continue;
        double error = fabs(*value - truth[i]);
        c->differing++;
        if (!(error <= c->largest)) c->largest = isnan(error) ? INFINITY : error;
    }
}

uint64_t compare(int kind, uint64_t start, uint64_t count, const double *values, double *largest) {
    struct comparison c = {values, 0, 0.0};
    each_block(kind, start, count, look, &c);
    *largest = c.largest;
    return c.differing;
}

/* Doubles as text: through one rank into one file, or a file a rank. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "study.h"

/* A line has 24 bytes, whatever the sign: enough digits to give the same double again. */
#define LINE "% .16e\n"
#define WIDTH 24
#define BATCH ((uint64_t)1 << 16)

static FILE *open_text(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) fail("%s: %s", path, strerror(errno));
    return file;
}

static void print_all(FILE *file, const double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (fprintf(file, LINE, values[i]) != WIDTH) fail("a line was not printed");
    }
}

static void scan_all(FILE *file, double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (fscanf(file, "%lf", &values[i]) != 1) fail("a line is not a number");
    }
}

static void close_on_disk(FILE *file, const char *path) {
    if (fflush(file) || fsync(fileno(file)) || fclose(file)) fail("%s: %s", path, strerror(errno));
}

static double *batch(void) {
    double *values = malloc(BATCH * sizeof *values);
    if (!values) fail("no memory for a batch");
    return values;
}

static void serial_write(const job *j) {
    if (j->rank != 0) {
        for (uint64_t done = 0; done < j->count; done += BATCH) {
            uint64_t n = j->count - done < BATCH ? j->count - done : BATCH;
            MPI_Ssend(j->values + done, (int)n, MPI_DOUBLE, 0, 0, j->comm);
        }
        return;
    }
    FILE *file = open_text(j->path, "w");
    double *values = batch();
    print_all(file, j->values, j->count);
    for (int from = 1; from < j->ranks; from++) {
        uint64_t start, count;
        part_of(j->doubles, j->ranks, from, &start, &count);
        for (uint64_t done = 0; done < count; done += BATCH) {
            uint64_t n = count - done < BATCH ? count - done : BATCH;
            MPI_Recv(values, (int)n, MPI_DOUBLE, from, 0, j->comm, MPI_STATUS_IGNORE);
            print_all(file, values, n);
        }
    }
    free(values);
    close_on_disk(file, j->path);
}

static void serial_read(const job *j) {
    if (j->rank != 0) {
        for (uint64_t done = 0; done < j->count; done += BATCH) {
            uint64_t n = j->count - done < BATCH ? j->count - done : BATCH;
            MPI_Recv(j->values + done, (int)n, MPI_DOUBLE, 0, 0, j->comm, MPI_STATUS_IGNORE);
        }
        return;
    }
    FILE *file = open_text(j->path, "r");
    double *values = batch();
    scan_all(file, j->values, j->count);
    for (int to = 1; to < j->ranks; to++) {
        uint64_t start, count;
        part_of(j->doubles, j->ranks, to, &start, &count);
        for (uint64_t done = 0; done < count; done += BATCH) {
            uint64_t n = count - done < BATCH ? count - done : BATCH;
            scan_all(file, values, n);
            MPI_Send(values, (int)n, MPI_DOUBLE, to, 0, j->comm);
        }
    }
    free(values);
    fclose(file);
}

static void name_of(const job *j, int writer, char *name, size_t room) {
    snprintf(name, room, "%s.%d.txt", j->path, writer);
}

static void multifile_write(const job *j) {
    char name[4096];
    name_of(j, j->rank, name, sizeof name);
    FILE *file = open_text(name, "w");
    print_all(file, j->values, j->count);
    close_on_disk(file, name);
}

static void multifile_read(const job *j) {
    for (int writer = 0; writer < j->writers; writer++) {
        uint64_t start, count;
        char name[4096];
        part_of(j->doubles, j->writers, writer, &start, &count);
        uint64_t low = start > j->start ? start : j->start;
        uint64_t end = start + count < j->start + j->count ? start + count : j->start + j->count;
        if (low >= end) continue;
        name_of(j, writer, name, sizeof name);
        FILE *file = open_text(name, "r");
        if (fseek(file, (long)((low - start) * WIDTH), SEEK_SET)) fail("%s: cut off", name);
        scan_all(file, j->values + (low - j->start), end - low);
        fclose(file);
    }
}

const version versions[] = {
    {"serial-ascii", serial_write, serial_read},
    {"ascii-multifile", multifile_write, multifile_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { name_mpi(text, room); }

/* Unencoded doubles, one file per rank. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "study.h"

static void name_of(const job *j, int writer, char *name, size_t room) {
    snprintf(name, room, "%s.%d.bin", j->path, writer);
}

static void multifile_write(const job *j) {
    char name[4096];
    name_of(j, j->rank, name, sizeof name);
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) fail("%s: %s", name, strerror(errno));
    const char *bytes = (const char *)j->values;
    for (size_t left = j->count * sizeof *j->values; left;) {
        ssize_t n = write(file, bytes, left);
        if (n < 0) fail("%s: %s", name, strerror(errno));
        bytes += n;
        left -= (size_t)n;
    }
    if (fsync(file) || close(file)) fail("%s: %s", name, strerror(errno));
}

static void read_some(const char *name, uint64_t from, double *values, uint64_t count) {
    int file = open(name, O_RDONLY);
    if (file < 0) fail("%s: %s", name, strerror(errno));
    char *bytes = (char *)values;
    off_t place = (off_t)(from * sizeof *values);
    for (size_t left = count * sizeof *values; left;) {
        ssize_t n = pread(file, bytes, left, place);
        if (n <= 0) fail("%s: %s", name, n ? strerror(errno) : "cut off");
        bytes += n;
        place += n;
        left -= (size_t)n;
    }
    close(file);
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
        read_some(name, low - start, j->values + (low - j->start), end - low);
    }
}

const version versions[] = {
    {"binary-multifile", multifile_write, multifile_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { name_mpi(text, room); }

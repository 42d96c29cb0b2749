/* Runs a version on all ranks: writes, reads cold and warm, compares, and prints the seconds. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "study.h"

void fail(const char *format, ...) {
    va_list arguments;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    va_start(arguments, format);
    fprintf(stderr, "study: rank %d: ", rank);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void require_mpi(int code, const char *what) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS) return;
    MPI_Error_string(code, text, &length);
    fail("%s: %s", what, text);
}

void name_mpi(char *text, size_t room) {
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    MPI_Get_library_version(whole, &length);
    whole[strcspn(whole, ",\n")] = '\0';
    snprintf(text, room, "%s", whole);
}

void part_of(uint64_t doubles, int ranks, int rank, uint64_t *start, uint64_t *count) {
    uint64_t each = doubles / (uint64_t)ranks, more = doubles % (uint64_t)ranks;
    uint64_t r = (uint64_t)rank;
    *start = r * each + (r < more ? r : more);
    *count = each + (r < more ? 1 : 0);
}

uint64_t pieces_of(const job *j) {
    uint64_t start, most; /* the first rank has no fewer values than any other */
    part_of(j->doubles, j->ranks, 0, &start, &most);
    return (most + PIECE - 1) / PIECE;
}

void piece_of(const job *j, uint64_t piece, uint64_t *first, uint64_t *count) {
    uint64_t before = piece * PIECE < j->count ? piece * PIECE : j->count;
    *first = before;
    *count = j->count - before < PIECE ? j->count - before : PIECE;
}

void sync_file(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0 || fsync(file) || close(file)) fail("%s: %s", path, strerror(errno));
}

/* Do something with every file whose name begins with the path, and with those within folders. */
static void each_file(const char *path, void (*use)(const char *)) {
    char pattern[4096];
    for (int depth = 0; depth < 2; depth++) {
        glob_t found;
        snprintf(pattern, sizeof pattern, depth ? "%s*/*" : "%s*", path);
        if (glob(pattern, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++) use(found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

/* Have the system forget what it keeps of a file in memory; what is on the disk it can forget. */
static void forget(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) {
        fail("%s: not dropped from the page cache: %s", path, strerror(errno));
    }
    close(file);
}

static void delete_file(const char *path) { (void)remove(path); }

/* Write once, and delete what was written: memory that the system has to give for the first time, or to
 * get back from a host, costs whichever program comes after a pause. */
static void rehearse(const version *v, const job *j) {
    v->write(j);
    MPI_Barrier(j->comm);
    if (j->rank == 0) each_file(j->path, delete_file);
}

static double cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* The seconds of the slowest rank, and the CPU seconds of all until each was done. */
static void measure(const char *name, void (*act)(const job *), const job *j) {
    double own[2], slowest = 0.0, used = 0.0;
    MPI_Barrier(j->comm);
    double cpu = cpu_seconds(), begun = MPI_Wtime();
    act(j);
    own[0] = MPI_Wtime() - begun;
    own[1] = cpu_seconds() - cpu;
    MPI_Reduce(&own[0], &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, j->comm);
    MPI_Reduce(&own[1], &used, 1, MPI_DOUBLE, MPI_SUM, 0, j->comm);
    if (j->rank == 0) printf(", \"%s\": {\"seconds\": %.6f, \"cpu\": %.6f", name, slowest, used);
}

static void read_and_compare(const char *name, const version *v, const job *j, int kind) {
    uint64_t own, differing = 0;
    double error, largest = 0.0;
    memset(j->values, 0xff, j->count * sizeof *j->values); /* no value of ours: NaN */
    measure(name, v->read, j);
    own = compare(kind, j->start, j->count, j->values, &error);
    MPI_Reduce(&own, &differing, 1, MPI_UINT64_T, MPI_SUM, 0, j->comm);
    MPI_Reduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, j->comm);
    if (j->rank == 0) {
        printf(", \"differing\": %llu, \"error\": %.17g}", (unsigned long long)differing,
               isfinite(largest) ? largest : 1e308);
    }
}

static const version *find(const char *name) {
    const version *v = versions;
    while (v->name && strcmp(v->name, name)) v++;
    if (!v->name) fail("no version '%s'", name);
    return v;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "library")) { /* without MPI, which needs its mpirun */
        char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
        name_library(text, sizeof text);
        puts(text);
        return 0;
    }
    MPI_Init(&argc, &argv);
    if (argc != 8) {
        fail("usage: %s VERSION random|smooth DOUBLES BOUND PATH WRITERS write,cold,warm", argv[0]);
    }
    const version *v = find(argv[1]);
    int kind = strcmp(argv[2], "smooth") ? RANDOM : SMOOTH;
    job j = {.comm = MPI_COMM_WORLD, .path = argv[5]};
    MPI_Comm_rank(j.comm, &j.rank);
    MPI_Comm_size(j.comm, &j.ranks);
    j.doubles = strtoull(argv[3], NULL, 10);
    j.bound = strtod(argv[4], NULL);
    j.writers = atoi(argv[6]) > 0 ? atoi(argv[6]) : j.ranks;
    part_of(j.doubles, j.ranks, j.rank, &j.start, &j.count);
    j.values = malloc((j.count + 1) * sizeof *j.values);
    if (!j.values) fail("no memory for %llu doubles", (unsigned long long)j.count);
    if (j.rank == 0) printf("{\"ranks\": %d", j.ranks);
    if (strstr(argv[7], "write")) {
        generate(kind, j.start, j.count, j.values);
        rehearse(v, &j);
        measure("write", v->write, &j);
        if (j.rank == 0) printf("}");
    }
    if (strstr(argv[7], "cold")) {
        MPI_Barrier(j.comm);
        each_file(j.path, forget);
        read_and_compare("cold", v, &j, kind);
    }
    if (strstr(argv[7], "warm")) read_and_compare("warm", v, &j, kind);
    if (j.rank == 0) printf("}\n");
    free(j.values);
    MPI_Finalize();
    return 0;
}

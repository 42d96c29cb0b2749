/* What a version of the study is: a way to write an array from all ranks, and to read it again. */
#ifndef AMBAR_STUDY_H
#define AMBAR_STUDY_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* What one rank is to do. */
typedef struct {
    MPI_Comm comm;
    int rank, ranks;
    int writers;      /* ranks that wrote what is read */
    const char *path; /* the file, or what the files' names begin with */
    uint64_t doubles; /* of the whole array */
    uint64_t start;   /* of this rank's part */
    uint64_t count;
    double *values;   /* of this rank's part */
    double bound;     /* the largest error allowed, where the version has one */
} job;

typedef struct {
    const char *name;
    void (*write)(const job *); /* from memory to closed files that are on the disk */
    void (*read)(const job *);
} version;

/* Every program has one source file of versions; the last has no name. */
extern const version versions[];
/* The release of the library that these use, a line at most. */
void name_library(char *text, size_t room);
/* The release of MPI, for versions that use nothing else. */
void name_mpi(char *text, size_t room);

/* The part of a rank: as even as can be, the first ones get one more. */
void part_of(uint64_t doubles, int ranks, int rank, uint64_t *start, uint64_t *count);

/* How many values one call to a library gets, and how many calls it takes on every rank. Counts of
 * MPI are int, and several libraries lose what is beyond 2 GiB in a call. */
#define PIECE ((uint64_t)1 << 26)
uint64_t pieces_of(const job *j);
/* The values of a call, whose number may be beyond this rank's last: then there are none. */
void piece_of(const job *j, uint64_t piece, uint64_t *first, uint64_t *count);

/* Wait until a file is on the disk. */
void sync_file(const char *path);
/* End all ranks, saying what failed. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* End all ranks where MPI did not succeed. */
void require_mpi(int code, const char *what);

/* data.c: the values, which any rank can compute. */
enum { RANDOM = 0, SMOOTH = 1 };
void generate(int kind, uint64_t start, uint64_t count, double *out);
/* How many values have other bits than they should, and the largest error of all. */
uint64_t compare(int kind, uint64_t start, uint64_t count, const double *values, double *largest);

#endif

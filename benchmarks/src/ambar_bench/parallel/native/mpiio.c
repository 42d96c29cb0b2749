/* Unencoded doubles in one file, by MPI-IO. */
#include "study.h"

static MPI_File open_file(const job *j, int mode) {
    MPI_File file;
    require_mpi(MPI_File_open(j->comm, j->path, mode, MPI_INFO_NULL, &file), j->path);
    return file;
}

static void each_piece(const job *j, MPI_File file,
                       int (*act)(MPI_File, MPI_Offset, void *, int, MPI_Datatype, MPI_Status *)) {
    for (uint64_t piece = 0; piece < pieces_of(j); piece++) {
        uint64_t first, count;
        MPI_Status status;
        int moved;
        piece_of(j, piece, &first, &count);
        MPI_Offset place = (MPI_Offset)((j->start + first) * sizeof *j->values);
        require_mpi(act(file, place, j->values + first, (int)count, MPI_DOUBLE, &status), j->path);
        MPI_Get_count(&status, MPI_DOUBLE, &moved);
        if (moved != (int)count) fail("%s: %d doubles of %d", j->path, moved, (int)count);
    }
}

static int put(MPI_File f, MPI_Offset at, void *v, int n, MPI_Datatype t, MPI_Status *s) {
    return MPI_File_write_at(f, at, v, n, t, s);
}

static int put_all(MPI_File f, MPI_Offset at, void *v, int n, MPI_Datatype t, MPI_Status *s) {
    return MPI_File_write_at_all(f, at, v, n, t, s);
}

static void write_by(const job *j, int collective) {
    MPI_File file = open_file(j, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    each_piece(j, file, collective ? put_all : put);
    require_mpi(MPI_File_sync(file), j->path);
    require_mpi(MPI_File_close(&file), j->path);
}

static void read_by(const job *j, int collective) {
    MPI_File file = open_file(j, MPI_MODE_RDONLY);
    each_piece(j, file, collective ? MPI_File_read_at_all : MPI_File_read_at);
    require_mpi(MPI_File_close(&file), j->path);
}

static void independent_write(const job *j) { write_by(j, 0); }
static void independent_read(const job *j) { read_by(j, 0); }
static void collective_write(const job *j) { write_by(j, 1); }
static void collective_read(const job *j) { read_by(j, 1); }

const version versions[] = {
    {"mpiio-independent", independent_write, independent_read},
    {"mpiio-collective", collective_write, collective_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { name_mpi(text, room); }

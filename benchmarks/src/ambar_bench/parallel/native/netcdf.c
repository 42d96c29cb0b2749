/* netCDF-4: one file, by HDF5 on MPI-IO, uncompressed. */
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <string.h>

#include "study.h"

static void require(int code, const job *j) {
    if (code != NC_NOERR) fail("%s: %s", j->path, nc_strerror(code));
}

static void each_piece(const job *j, int file, int variable, int writes) {
    for (uint64_t piece = 0; piece < pieces_of(j); piece++) {
        uint64_t from, number;
        piece_of(j, piece, &from, &number);
        size_t start = j->start + from, count = number;
        double *values = j->values + from;
        require(writes ? nc_put_vara_double(file, variable, &start, &count, values)
                       : nc_get_vara_double(file, variable, &start, &count, values),
                j);
    }
}

static void write_by(const job *j, int access) {
    int file, dimension, variable;
    require(nc_create_par(j->path, NC_NETCDF4, j->comm, MPI_INFO_NULL, &file), j);
    require(nc_def_dim(file, "x", j->doubles, &dimension), j);
    require(nc_def_var(file, "values", NC_DOUBLE, 1, &dimension, &variable), j);
    /* some releases cut a long array into chunks, the last of which is mostly empty */
    require(nc_def_var_chunking(file, variable, NC_CONTIGUOUS, NULL), j);
    /* without this, every value would be written twice */
    require(nc_def_var_fill(file, variable, NC_NOFILL, NULL), j);
    require(nc_enddef(file), j);
    require(nc_var_par_access(file, variable, access), j);
    each_piece(j, file, variable, 1);
    require(nc_close(file), j);
    sync_file(j->path);
}

static void read_by(const job *j, int access) {
    int file, variable;
    require(nc_open_par(j->path, NC_NOWRITE, j->comm, MPI_INFO_NULL, &file), j);
    require(nc_inq_varid(file, "values", &variable), j);
    require(nc_var_par_access(file, variable, access), j);
    each_piece(j, file, variable, 0);
    require(nc_close(file), j);
}

static void independent_write(const job *j) { write_by(j, NC_INDEPENDENT); }
static void independent_read(const job *j) { read_by(j, NC_INDEPENDENT); }
static void collective_write(const job *j) { write_by(j, NC_COLLECTIVE); }
static void collective_read(const job *j) { read_by(j, NC_COLLECTIVE); }

const version versions[] = {
    {"netcdf-independent", independent_write, independent_read},
    {"netcdf-collective", collective_write, collective_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) {
    snprintf(text, room, "%s", nc_inq_libvers());
    text[strcspn(text, " ")] = '\0';
}

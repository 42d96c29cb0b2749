/* PnetCDF: one file in the classic format of 64-bit data, collective. */
#include <pnetcdf.h>
#include <stdio.h>

#include "study.h"

static void require(int code, const job *j) {
    if (code != NC_NOERR) fail("%s: %s", j->path, ncmpi_strerror(code));
}

static void each_piece(const job *j, int file, int variable, int writes) {
    for (uint64_t piece = 0; piece < pieces_of(j); piece++) {
        uint64_t from, number;
        piece_of(j, piece, &from, &number);
        MPI_Offset start = (MPI_Offset)(j->start + from), count = (MPI_Offset)number;
        double *values = j->values + from;
        require(writes ? ncmpi_put_vara_double_all(file, variable, &start, &count, values)
                       : ncmpi_get_vara_double_all(file, variable, &start, &count, values),
                j);
    }
}

static void collective_write(const job *j) {
    int file, dimension, variable;
    require(ncmpi_create(j->comm, j->path, NC_64BIT_DATA, MPI_INFO_NULL, &file), j);
    require(ncmpi_def_dim(file, "x", (MPI_Offset)j->doubles, &dimension), j);
    require(ncmpi_def_var(file, "values", NC_DOUBLE, 1, &dimension, &variable), j);
    require(ncmpi_enddef(file), j);
    each_piece(j, file, variable, 1);
    require(ncmpi_close(file), j);
    sync_file(j->path);
}

static void collective_read(const job *j) {
    int file, variable;
    require(ncmpi_open(j->comm, j->path, NC_NOWRITE, MPI_INFO_NULL, &file), j);
    require(ncmpi_inq_varid(file, "values", &variable), j);
    each_piece(j, file, variable, 0);
    require(ncmpi_close(file), j);
}

const version versions[] = {
    {"pnetcdf-collective", collective_write, collective_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { snprintf(text, room, "%s", PNETCDF_VERSION); }

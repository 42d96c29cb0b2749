/* HDF5: one file of chunks that are shuffled and compressed, collective. */
#include <hdf5.h>
#include <stdio.h>

#include "study.h"

#define ZSTD 32015   /* the filter's number at the HDF Group; a plugin has it */
#define CHUNK 131072 /* doubles, at most: 1 MiB */

static hid_t require(hid_t id, const job *j, const char *what) {
    if (id < 0) fail("%s: %s failed", j->path, what);
    return id;
}

/* The longest chunk of which every rank has whole ones, so that none is compressed by one rank for
 * another; without such a chunk of half the length, the longest. */
static hsize_t chunk_of(const job *j) {
    uint64_t part = j->doubles / (uint64_t)j->ranks;
    if (part < CHUNK) return part ? part : 1;
    for (uint64_t chunk = CHUNK; j->doubles % (uint64_t)j->ranks == 0 && chunk > CHUNK / 2; chunk--) {
        if (part % chunk == 0) return chunk;
    }
    return CHUNK;
}

static hid_t open_access(const job *j) {
    hid_t access = require(H5Pcreate(H5P_FILE_ACCESS), j, "H5Pcreate");
    require(H5Pset_fapl_mpio(access, j->comm, MPI_INFO_NULL), j, "H5Pset_fapl_mpio");
    /* newer indices of chunks: quicker than the oldest ones */
    require(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), j, "its versions");
    return access;
}

static void move(const job *j, hid_t set, int writes) {
    hid_t transfer = require(H5Pcreate(H5P_DATASET_XFER), j, "H5Pcreate");
    require(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), j, "H5Pset_dxpl_mpio");
    for (uint64_t piece = 0; piece < pieces_of(j); piece++) {
        uint64_t from, number;
        piece_of(j, piece, &from, &number);
        hsize_t start = j->start + from, count = number;
        hid_t file_space = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);
        if (count) {
            H5Sselect_hyperslab(file_space, H5S_SELECT_SET, &start, NULL, &count, NULL);
        } else {
            H5Sselect_none(file_space);
            H5Sselect_none(memory);
        }
        double *values = j->values + from;
        herr_t code = writes
                          ? H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, file_space, transfer, values)
                          : H5Dread(set, H5T_NATIVE_DOUBLE, memory, file_space, transfer, values);
        require(code, j, writes ? "H5Dwrite" : "H5Dread");
        H5Sclose(memory);
        H5Sclose(file_space);
    }
    H5Pclose(transfer);
}

static void write_by(const job *j, H5Z_filter_t filter, unsigned level) {
    if (H5Zfilter_avail(filter) <= 0) fail("HDF5 has no filter %d", (int)filter);
    hid_t access = open_access(j);
    hid_t file = require(H5Fcreate(j->path, H5F_ACC_TRUNC, H5P_DEFAULT, access), j, "H5Fcreate");
    hid_t create = require(H5Pcreate(H5P_DATASET_CREATE), j, "H5Pcreate");
    hsize_t doubles = j->doubles, chunk = chunk_of(j);
    require(H5Pset_chunk(create, 1, &chunk), j, "H5Pset_chunk");
    require(H5Pset_fill_time(create, H5D_FILL_TIME_NEVER), j, "H5Pset_fill_time");
    require(H5Pset_shuffle(create), j, "H5Pset_shuffle");
    require(H5Pset_filter(create, filter, H5Z_FLAG_MANDATORY, 1, &level), j, "H5Pset_filter");
    hid_t space = require(H5Screate_simple(1, &doubles, NULL), j, "H5Screate_simple");
    hid_t set = H5Dcreate2(file, "values", H5T_IEEE_F64LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
    require(set, j, "H5Dcreate2");
    move(j, set, 1);
    require(H5Dclose(set), j, "H5Dclose");
    H5Sclose(space);
    H5Pclose(create);
    H5Pclose(access);
    require(H5Fclose(file), j, "H5Fclose");
    sync_file(j->path);
}

static void collective_read(const job *j) {
    hid_t access = open_access(j);
    hid_t file = require(H5Fopen(j->path, H5F_ACC_RDONLY, access), j, "H5Fopen");
    hid_t set = require(H5Dopen2(file, "values", H5P_DEFAULT), j, "H5Dopen2");
    move(j, set, 0);
    H5Dclose(set);
    H5Pclose(access);
    require(H5Fclose(file), j, "H5Fclose");
}

static void zstd_1(const job *j) { write_by(j, ZSTD, 1); }
static void zstd_3(const job *j) { write_by(j, ZSTD, 3); }
static void deflate_1(const job *j) { write_by(j, H5Z_FILTER_DEFLATE, 1); }

const version versions[] = {
    {"hdf5-zstd-1", zstd_1, collective_read},
    {"hdf5-zstd-3", zstd_3, collective_read},
    {"hdf5-deflate-1", deflate_1, collective_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) {
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    snprintf(text, room, "%u.%u.%u", major, minor, release);
}

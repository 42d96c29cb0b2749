/* Writes datasets through ambar's filter from all ranks, collectively, and compares what is read:
 * waves of one chunk a rank, the last one cut short, and noise, which is passed through. */
#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ambar_hdf5.h"

/* Values of a rank, and by how many the last of several has fewer. */
#define PART 40000
#define FEWER(ranks) ((ranks) > 1 ? 15000 : 0)

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);            \
            MPI_Abort(MPI_COMM_WORLD, 1);                                      \
        }                                                                      \
    } while (0)

static void round_trip(hid_t file, const char *name, const double *values, int rank, int ranks,
                       double bound)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", bound);
    double *found = malloc(PART * sizeof *found);
    hsize_t total = (hsize_t)(PART * ranks - FEWER(ranks)), chunk = PART;
    hsize_t start = (hsize_t)(PART * rank), mine = (hsize_t)(rank == ranks - 1 ? PART - FEWER(ranks) : PART);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), transfer = H5Pcreate(H5P_DATASET_XFER);
    hid_t space = H5Screate_simple(1, &total, NULL), memory = H5Screate_simple(1, &mine, NULL);
    CHECK(H5Pset_chunk(list, 1, &chunk) >= 0);
    CHECK(ambar_h5z_set(list, text, NULL) >= 0);
    CHECK(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE) >= 0);
    CHECK(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &mine, NULL) >= 0);
    hid_t set = H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(set >= 0);
    CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, transfer, values) >= 0);
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, transfer, found) >= 0);
    for (hsize_t i = 0; i < mine; i++)
        CHECK(fabs(values[i] - found[i]) <= bound);
    if (rank == 0)
        printf("%s %.3f\n", name, total * sizeof *found / (double)H5Dget_storage_size(set));
    CHECK(H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0);
    CHECK(H5Pclose(list) >= 0 && H5Pclose(transfer) >= 0);
    free(found);
}

int main(int count, char **arguments)
{
    int rank, ranks;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(count == 2);
    double *wave = malloc(PART * sizeof *wave), *noise = malloc(PART * sizeof *noise);
    srand((unsigned)rank + 1);
    for (int i = 0; i < PART; i++) {
        wave[i] = sin(1e-3 * (i + (double)PART * rank));
        unsigned long long bits = 0x3ffull << 52;
        for (int part = 0; part < 4; part++)
            bits ^= (unsigned long long)(rand() & 0x1fff) << (13 * part);
        memcpy(&noise[i], &bits, sizeof bits);
        noise[i] *= rand() & 1 ? 1 : -1;
        noise[i] = ldexp(noise[i], rand() % 1800 - 900);
    }
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    CHECK(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, access);
    CHECK(file >= 0);
    round_trip(file, "wave", wave, rank, ranks, 1e-5);
    round_trip(file, "exact", wave, rank, ranks, 0.0);
    round_trip(file, "noise", noise, rank, ranks, 0.0);
    CHECK(H5Pclose(access) >= 0 && H5Fclose(file) >= 0);
    free(wave);
    free(noise);
    MPI_Finalize();
    return 0;
}

/* Writes a dataset through ambar's filter, reads it back, and compares: serial HDF5. */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ambar_hdf5.h"

#define N 50
#define CHUNK 32

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!(condition)) {                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);            \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

int main(int count, char **arguments)
{
    static double values[N][N][N], found[N][N][N];
    const double bound = 1e-4;
    hsize_t shape[3] = {N, N, N}, chunk[3] = {CHUNK, CHUNK, CHUNK};
    CHECK(count == 2);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                values[i][j][k] = sin(0.1 * i) * cos(0.07 * j) + 0.01 * k;
    values[3][4][5] = NAN;
    hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(3, shape, NULL);
    CHECK(H5Pset_chunk(list, 3, chunk) >= 0);
    CHECK(ambar_h5z_set(list, "1e-4", NULL) >= 0);
    hid_t set = H5Dcreate2(file, "wave", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(set >= 0);
    CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    CHECK(H5Dclose(set) >= 0 && H5Pclose(list) >= 0 && H5Fclose(file) >= 0);

    file = H5Fopen(arguments[1], H5F_ACC_RDONLY, H5P_DEFAULT);
    set = H5Dopen2(file, "wave", H5P_DEFAULT);
    CHECK(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
    for (int i = 0; i < N * N * N; i++) {
        double a = (&values[0][0][0])[i], b = (&found[0][0][0])[i];
        CHECK(isnan(a) ? isnan(b) : fabs(a - b) <= bound);
    }
    printf("%.1f times smaller\n", sizeof values / (double)H5Dget_storage_size(set));
    CHECK(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    return 0;
}

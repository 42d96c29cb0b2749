/* Sets ambar's filter with an error bound; prints why that fails.
 *
 *     set <bound> [<file> [<lowest> <highest>]]
 *
 * The bound "NULL" is a null pointer. With a file, writes a dataset with the filter. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#include "ambar_hdf5.h"

int main(int count, char **arguments)
{
    const hsize_t chunk[1] = {1000};
    double range[2] = {0, 0}, values[1000];
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    const char *bound = count > 1 && strcmp(arguments[1], "NULL") ? arguments[1] : NULL;
    if (count < 2 || H5Pset_chunk(list, 1, chunk) < 0) return 2;
    if (count == 5) range[0] = atof(arguments[3]), range[1] = atof(arguments[4]);
    if (ambar_h5z_set(list, bound, count == 5 ? range : NULL) < 0) {
        H5Eprint2(H5E_DEFAULT, stdout);
        return H5Pget_nfilters(list) == 0 ? 3 : 4;
    }
    if (H5Pget_nfilters(list) != 1) return 5;
    if (count > 2) {
        hid_t file = H5Fcreate(arguments[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(1, chunk, NULL);
        hid_t set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
        for (int i = 0; i < 1000; i++) values[i] = 1 + i / 999.0;
        if (H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) return 6;
        if (H5Dclose(set) < 0 || H5Sclose(space) < 0 || H5Fclose(file) < 0) return 7;
    }
    return 0;
}

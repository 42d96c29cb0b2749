/* Sets ambar's filter with an error bound; prints why that fails. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

#include "ambar_hdf5.h"

int main(int count, char **arguments)
{
    const hsize_t chunk[1] = {1000};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (count != 2 || H5Pset_chunk(list, 1, chunk) < 0) return 2;
    if (ambar_h5z_set(list, atof(arguments[1])) < 0) {
        H5Eprint2(H5E_DEFAULT, stdout);
        return H5Pget_nfilters(list) == 0 ? 3 : 4;
    }
    return H5Pget_nfilters(list) == 1 ? 0 : 5;
}

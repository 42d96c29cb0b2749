/* ambar's filter for HDF5 in C and C++: the filter's number, and its options. Header only.
 *
 * Include it behind <hdf5.h>. The program is linked with HDF5 alone; HDF5 loads the filter when the
 * first dataset with it is created or read, from the folders that HDF5_PLUGIN_PATH names.
 */
#ifndef AMBAR_HDF5_H
#define AMBAR_HDF5_H

#include <stdint.h>
#include <string.h>

/* Provisional: of the range that HDF5 leaves to filters that are not registered. */
#define AMBAR_H5Z_FILTER 43842

/* How many options a program gives, and their layout's version. */
#define AMBAR_H5Z_OPTIONS 4
#define AMBAR_H5Z_VERSION 1

/* Fills in the options: values may be off by `error_bound`, or with 0 not at all. */
static inline void ambar_h5z_options(double error_bound, unsigned int options[AMBAR_H5Z_OPTIONS])
{
    uint64_t bits;
    memcpy(&bits, &error_bound, sizeof bits);
    options[0] = AMBAR_H5Z_VERSION;
    options[1] = error_bound != 0.0;
    options[2] = (unsigned int)(bits & 0xffffffffu);
    options[3] = (unsigned int)(bits >> 32);
}

/* Puts the filter on a property list for creating datasets, which has chunks and no filter yet.
 * Returns a negative number where HDF5 finds no plugin, or refuses.
 *
 * The filter is mandatory: HDF5 leaves out an optional one that it does not find, and says nothing;
 * and HDF5 1.10 does not read in parallel what an optional filter has passed through. Chunks that do
 * not become smaller are stored as they are, with a few bytes more. */
static inline herr_t ambar_h5z_set(hid_t list, double error_bound)
{
    unsigned int options[AMBAR_H5Z_OPTIONS];
    ambar_h5z_options(error_bound, options);
    return H5Pset_filter(list, AMBAR_H5Z_FILTER, H5Z_FLAG_MANDATORY, AMBAR_H5Z_OPTIONS, options);
}

#endif

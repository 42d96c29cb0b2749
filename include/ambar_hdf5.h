/** @file
 * The HDF5 filter of ambar for C and C++: its number and options. Header only.
 *
 * Include it after <hdf5.h>. The program is linked with HDF5 only. HDF5 loads the filter from the folders in
 * HDF5_PLUGIN_PATH when the first dataset with it is created or read.
 */
#ifndef AMBAR_HDF5_H
#define AMBAR_HDF5_H

#include <float.h>
#include <stdint.h>
#include <string.h>

/** Provisional number, from the range that HDF5 reserves for unregistered filters. */
#define AMBAR_H5Z_FILTER 43842

/** Number of options that a program passes, and the version of their layout. */
#define AMBAR_H5Z_OPTIONS 4
#define AMBAR_H5Z_VERSION 1

/** Fills in the options: values change by at most `error_bound`; 0 is lossless. */
static inline void ambar_h5z_options(double error_bound, unsigned int options[AMBAR_H5Z_OPTIONS])
{
    uint64_t bits;
    memcpy(&bits, &error_bound, sizeof bits);
    options[0] = AMBAR_H5Z_VERSION;
    options[1] = error_bound != 0.0;
    options[2] = (unsigned int)(bits & 0xffffffffu);
    options[3] = (unsigned int)(bits >> 32);
}

/* The functions that the plugin looks up in the program or library with HDF5. A static HDF5 contains only functions that
 * are referenced, which this does. */
typedef void (*ambar_h5z_function)(void);

static inline int ambar_h5z_linked(void)
{
    static const ambar_h5z_function needed[] = {
        (ambar_h5z_function)H5Pget_filter_by_id2, (ambar_h5z_function)H5Pget_filter2,
        (ambar_h5z_function)H5Pmodify_filter,     (ambar_h5z_function)H5Pget_chunk,
        (ambar_h5z_function)H5Tget_size,          (ambar_h5z_function)H5Tget_class,
        (ambar_h5z_function)H5Tget_order,         (ambar_h5z_function)H5Tget_precision,
        (ambar_h5z_function)H5Tget_fields,        (ambar_h5z_function)H5Tget_ebias,
        (ambar_h5z_function)H5Epush2,
    };
    const volatile ambar_h5z_function *function = needed;
    size_t i;
    for (i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!function[i]) return 0;
    return 1;
}

/* Creates a dataset with the filter in a file in memory. Earlier, neither HDF5 1.10 notices that the plugin is missing, nor
 * the plugin that it cannot find HDF5's functions. */
static inline herr_t ambar_h5z_try(const unsigned int options[AMBAR_H5Z_OPTIONS])
{
    const hsize_t one[1] = {1};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, one, NULL), file = -1, set = -1;
    if (H5Pset_fapl_core(access, 4096, 0) >= 0 && H5Pset_chunk(list, 1, one) >= 0 &&
        H5Pset_filter(list, AMBAR_H5Z_FILTER, H5Z_FLAG_MANDATORY, AMBAR_H5Z_OPTIONS, options) >= 0)
        file = H5Fcreate("ambar_h5z_try", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0) set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (set >= 0) H5Dclose(set);
    if (file >= 0) H5Fclose(file);
    H5Sclose(space), H5Pclose(list), H5Pclose(access);
    return set >= 0 ? 0 : -1;
}

/** Adds the filter to a dataset creation property list, which must have chunks and no filter yet.
 *
 * The filter is mandatory: HDF5 silently skips an optional filter that it does not find, and HDF5 1.10 cannot read in
 * parallel chunks that an optional filter skipped. Incompressible chunks are stored verbatim, with a few bytes more.
 *
 * A program that is linked with a static HDF5 must be linked with -rdynamic (CMake: ENABLE_EXPORTS), so that the plugin
 * finds HDF5's functions in it.
 *
 * @return A negative number if the filter cannot be used; HDF5's error stack has the message: H5Eprint2(H5E_DEFAULT, stderr). */
static inline herr_t ambar_h5z_set(hid_t list, double error_bound)
{
    unsigned int options[AMBAR_H5Z_OPTIONS];
    const char *why = NULL;
    herr_t tried = -1;
    htri_t found = 0;
    if (!(error_bound >= 0.0 && error_bound <= DBL_MAX)) {
        why = "ambar: invalid error bound; expected a finite number >= 0";
    } else {
        ambar_h5z_options(error_bound, options);
        H5E_BEGIN_TRY
        {
            found = H5Zfilter_avail(AMBAR_H5Z_FILTER);
            if (found > 0 && ambar_h5z_linked()) tried = ambar_h5z_try(options);
        }
        H5E_END_TRY
        if (found <= 0)
            why = "ambar: HDF5 does not find the plugin libh5z_ambar.so; set HDF5_PLUGIN_PATH to its folder";
        else if (tried < 0)
            why = "ambar: the plugin does not find HDF5's functions in this program; link with -rdynamic "
                  "(CMake: ENABLE_EXPORTS), or with a shared HDF5";
    }
    if (why) {
        H5Epush2(H5E_DEFAULT, __FILE__, "ambar_h5z_set", __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_CANTINIT, "%s", why);
        return -1;
    }
    return H5Pset_filter(list, AMBAR_H5Z_FILTER, H5Z_FLAG_MANDATORY, AMBAR_H5Z_OPTIONS, options);
}

#endif

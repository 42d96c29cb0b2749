/** @file
 * The HDF5 filter of ambar for C and C++: its number and options. Header only.
 *
 * Include it after <hdf5.h>. The program is linked with HDF5 only. HDF5 loads the filter from the folders in
 * HDF5_PLUGIN_PATH when the first dataset with it is created or read.
 */
#ifndef AMBAR_HDF5_H
#define AMBAR_HDF5_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/** Provisional number, from the range that HDF5 reserves for unregistered filters. */
#define AMBAR_H5Z_FILTER 43842

/** Maximum number of options that a program passes, and the version of their layout. */
#define AMBAR_H5Z_OPTIONS 32
#define AMBAR_H5Z_VERSION 1

/* The kind of bound that is a string, the number of options before the string, and its maximum bytes. */
#define AMBAR_H5Z_TEXT 6
#define AMBAR_H5Z_BEFORE 6
#define AMBAR_H5Z_LENGTH (4 * (AMBAR_H5Z_OPTIONS - AMBAR_H5Z_BEFORE))

/** Fills in the filter's options for H5Pset_filter; ambar_h5z_set does so itself.
 *
 * `error_bound` states how much values of float32 and float64 may change: a number in their unit ("0.5"),
 * "1e-3 relative", "1e-3 relative above 1e-10", "12 bits" (of the mantissa) or "0.01 rms"; with `value_range` also
 * "1e-3 of range" and "80 dB". NULL: lossless. `value_range`: the lowest and the highest finite value of the dataset, in the
 * unit of the values, or NULL. The filter parses the string when a dataset is created.
 *
 * @return The number of options; 0 if the string has more than 104 bytes. */
static inline size_t ambar_h5z_options(const char *error_bound, const double *value_range,
                                       unsigned int options[AMBAR_H5Z_OPTIONS])
{
    const char *text = error_bound ? error_bound : "lossless";
    size_t length = strlen(text), i;
    memset(options, 0, AMBAR_H5Z_OPTIONS * sizeof *options);
    if (length > AMBAR_H5Z_LENGTH) return 0;
    options[0] = AMBAR_H5Z_VERSION;
    options[1] = AMBAR_H5Z_TEXT;
    for (i = 0; i < 2; i++) {
        uint64_t bits = UINT64_C(0x7ff8000000000000); /* not a number: unknown */
        if (value_range) memcpy(&bits, value_range + i, sizeof bits);
        options[2 + 2 * i] = (unsigned int)(bits & 0xffffffffu);
        options[3 + 2 * i] = (unsigned int)(bits >> 32);
    }
    for (i = 0; i < length; i++)
        options[AMBAR_H5Z_BEFORE + i / 4] |= (unsigned int)(unsigned char)text[i] << (8 * (i % 4));
    return AMBAR_H5Z_BEFORE + (length + 3) / 4;
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

/* Copies the filter's own message, the first that begins with "ambar: ", from HDF5's error stack. */
typedef struct {
    char text[512];
} ambar_h5z_message;

static inline herr_t ambar_h5z_find(unsigned number, const H5E_error2_t *error, void *message)
{
    char *text = ((ambar_h5z_message *)message)->text;
    (void)number;
    if (!*text && error->desc && !strncmp(error->desc, "ambar: ", 7))
        snprintf(text, sizeof(ambar_h5z_message), "%s", error->desc);
    return 0;
}

/* Creates a dataset with the filter in a file in memory. Earlier, neither HDF5 1.10 notices that the plugin is missing, nor
 * the plugin that it cannot find HDF5's functions, and it does not parse the error bound. */
static inline herr_t ambar_h5z_try(size_t count, const unsigned int *options, ambar_h5z_message *message)
{
    const hsize_t one[1] = {1};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(1, one, NULL), file = -1, set = -1;
    if (H5Pset_fapl_core(access, 4096, 0) >= 0 && H5Pset_chunk(list, 1, one) >= 0 &&
        H5Pset_filter(list, AMBAR_H5Z_FILTER, H5Z_FLAG_MANDATORY, count, options) >= 0)
        file = H5Fcreate("ambar_h5z_try", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    if (file >= 0) set = H5Dcreate2(file, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (file >= 0 && set < 0) H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, ambar_h5z_find, message);
    if (set >= 0) H5Dclose(set);
    if (file >= 0) H5Fclose(file);
    H5Sclose(space), H5Pclose(list), H5Pclose(access);
    return set >= 0 ? 0 : -1;
}

/** Adds the filter to a dataset creation property list, which must have chunks and no filter yet.
 *
 * `error_bound` and `value_range` are as for ambar_h5z_options: `ambar_h5z_set(list, "1e-3 relative", NULL)`, or
 * `double range[2] = {lowest, highest}; ambar_h5z_set(list, "1e-3 of range", range)`. Ranks of a parallel program must pass
 * equal ranges, those of the values of all ranks.
 *
 * The filter is mandatory: HDF5 silently skips an optional filter that it does not find, and HDF5 1.10 cannot read in
 * parallel chunks that an optional filter skipped. Incompressible chunks are stored verbatim, with a few bytes more.
 *
 * A program that is linked with a static HDF5 must be linked with -rdynamic (CMake: ENABLE_EXPORTS), so that the plugin
 * finds HDF5's functions in it.
 *
 * @return A negative number if the filter cannot be used; HDF5's error stack has the message: H5Eprint2(H5E_DEFAULT, stderr). */
static inline herr_t ambar_h5z_set(hid_t list, const char *error_bound, const double *value_range)
{
    unsigned int options[AMBAR_H5Z_OPTIONS];
    size_t count = ambar_h5z_options(error_bound, value_range, options);
    ambar_h5z_message message = {""};
    const char *why = NULL;
    herr_t tried = -1;
    htri_t found = 0;
    if (count == 0) {
        why = "ambar: invalid error bound; expected a string of at most 104 bytes";
    } else {
        H5E_BEGIN_TRY
        {
            found = H5Zfilter_avail(AMBAR_H5Z_FILTER);
            if (found > 0 && ambar_h5z_linked()) tried = ambar_h5z_try(count, options, &message);
        }
        H5E_END_TRY
        if (found <= 0)
            why = "ambar: HDF5 does not find the plugin libh5z_ambar.so; set HDF5_PLUGIN_PATH to its folder";
        else if (tried < 0 && *message.text)
            why = message.text;
        else if (tried < 0)
            why = "ambar: the plugin does not find HDF5's functions in this program; link with -rdynamic "
                  "(CMake: ENABLE_EXPORTS), or with a shared HDF5";
    }
    if (why) {
        H5Epush2(H5E_DEFAULT, __FILE__, "ambar_h5z_set", __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_CANTINIT, "%s", why);
        return -1;
    }
    return H5Pset_filter(list, AMBAR_H5Z_FILTER, H5Z_FLAG_MANDATORY, count, options);
}

#endif

/** @file
 * The C API of ambar, a store for simulation output.
 *
 * Generated from crates/ambar-capi; change it there.
 *
 * Every function returns AMBAR_OK or another status; ambar_last_error() returns the message. Shapes and regions are in
 * C order, slowest dimension first. See docs/howto/mpi.md for examples, and ambar_mpi.h for writing with many ranks.
 *
 * Contract of all functions: pointers are null, or point to what the documentation says, and what they point to does not
 * change until the function returns. Null is an error unless the documentation allows it.
 *
 * Structures that a program fills begin with their size: zero them, set size to sizeof of the structure, then set the
 * other fields. Later versions add fields at the end. The number in libambar.so.0 increases when the arguments of a function
 * or an existing field change. */


#ifndef AMBAR_H
#define AMBAR_H

#include <stddef.h>
#include <stdint.h>

/// The version of this header; ambar_version() returns that of the library.
#define AMBAR_VERSION "0.1.0"
#define AMBAR_VERSION_MAJOR 0
#define AMBAR_VERSION_MINOR 1
#define AMBAR_VERSION_PATCH 0
#define AMBAR_COVERED_DEFAULT 0 ///< Drops covered cells of fields with an error bound, and keeps those of other fields.
#define AMBAR_COVERED_KEEP 1 ///< Keeps covered cells.
#define AMBAR_COVERED_DROP 2 ///< Drops covered cells: they read as averages of the finer level.
#define AMBAR_BALANCED 0 ///< Small files, as far as reading stays fast.
#define AMBAR_FAST 1 ///< Reads at the speed of memory.
#define AMBAR_SMALL 2 ///< Smallest files.
#define AMBAR_RAW 3 ///< Uncompressed, with checksums.
#define AMBAR_COUNTER 2 ///< Takes extents from a counter that all ranks share.
#define AMBAR_RESERVED 1 ///< Reserves extents when an array is defined, without communication; the file has holes.
#define AMBAR_LOSSLESS 0 ///< `ambar_bound_kind`: no value changes.
#define AMBAR_BOUNDED 1 ///< `ambar_bound_kind`: the bound is known without the values.
#define AMBAR_NEEDS_RANGE 2 ///< `ambar_bound_kind`: the bound depends on the value range of the whole array.
#define AMBAR_OK 0 ///< Success.
#define AMBAR_CORRUPT 1 ///< The bytes are damaged, truncated or malicious: restore them from a copy.
#define AMBAR_UNSUPPORTED 2 ///< The file is valid, but needs a feature that this version lacks.
#define AMBAR_INVALID 3 ///< An argument or the order of calls is invalid: change the call.
#define AMBAR_NOT_FOUND 4 ///< The file, node or step does not exist.
#define AMBAR_BUSY 5 ///< Another writer has the file open, or it changed while it was read.
#define AMBAR_LIMIT 6 ///< A limit on memory or size was exceeded.
#define AMBAR_INTERRUPTED 7 ///< Cancelled by a callback.
#define AMBAR_IO 8 ///< The operating system returned an error.
#define AMBAR_PANIC 9 ///< A bug in ambar. A writer that was used can only be closed.
#define AMBAR_EXISTS 10 ///< The file exists, and the option `overwrite` is not set.

/// A hierarchy that is being written, as seen by one rank.
typedef struct ambar_amr ambar_amr;

/// The decomposition of arrays of one shape into the blocks of all ranks, equal on all ranks. It is immutable, so threads may
/// share it.
typedef struct ambar_blocks ambar_blocks;

/// Particles that are being written, as seen by one rank.
typedef struct ambar_particles ambar_particles;

/// A store open for reading, at its last commit. Any number of threads may use it.
typedef struct ambar_store ambar_store;

/// A store open for writing, as seen by one rank. One thread at a time may use it.
///
/// Between `ambar_commit_begin` and `ambar_commit_wait` only `ambar_commit_test` and `ambar_close` may be called.
///
/// After an error of any function that takes it, nothing is committed on any rank: every other function except `ambar_close`
/// repeats the error.
typedef struct ambar_writer ambar_writer;

/// The levels of a hierarchy of boxes, equal on all ranks. Cell indices are in x, y, z. In unused dimensions the first index
/// is 0 and the exclusive end is 1.
typedef struct {
  /// `sizeof(ambar_hierarchy)`.
  size_t size;
  /// Dimensions, 1 to 3.
  int32_t ndim;
  /// Number of levels.
  int32_t levels;
  /// Lower corner of the problem domain.
  double lower[3];
  /// Upper corner of the problem domain.
  double upper[3];
  /// For each level, 6 numbers: first cell and exclusive end of its domain.
  const int64_t *domains;
  /// For each level, 3 numbers: the sides of a cell.
  const double *cell_sizes;
  /// For each level, 3 numbers: the refinement ratio to the next level. Ignored for the last level.
  const int32_t *ratios;
  /// For each level, the number of its boxes.
  const int32_t *boxes;
  /// For each box, level by level, 6 numbers: first cell and exclusive end.
  const int64_t *corners;
  /// For each box, level by level, the rank that owns its values.
  const uint32_t *ranks;
} ambar_hierarchy;

/// Type of values: one of `AMBAR_BOOL` to `AMBAR_COMPLEX128`.
typedef int32_t ambar_type;

/// A field of a hierarchy, or a column of particles.
typedef struct {
  /// `sizeof(ambar_field)`, equal for all fields of a list.
  size_t size;
  /// Name of the field.
  const char *name;
  /// Type of the values.
  ambar_type type;
  /// The error bound, as in `ambar_spec`, such as `"1e-3 relative"`; null: lossless. Fields of a hierarchy take bounds
  /// of levels and boxes after it: `"1e-3 relative, @2:=1e-4 relative, @[0.2:0.4, :, :]=0"`. `@2` is a level, `@2:` and
  /// `@2:4` are levels, `@[0.2:0.4, :, :]` are the cells that touch a box in the units of `lower` and `upper`, and
  /// `@2:@[0.2:0.4, :, :]` are those on some levels. Where parts overlap, the strictest bound applies. A level that does
  /// not exist is an error, except in a range without an end. `ambar_select_bounds` makes this text from keys such as
  /// `density@2:`.
  const char *error_bound;
  /// Two numbers, in the unit of the values: the lowest and the highest finite value of the field, on all ranks. Only
  /// bounds such as `"1e-3 of range"` and `"80 dB"` need it; otherwise null.
  const double *value_range;
  /// Codecs from `ambar_amr_choose`, for fields without an error bound; null: the default of the type. Not for
  /// particles.
  const char *codecs;
} ambar_field;

/// Bytes that ambar allocated. Release them with `ambar_bytes_free`.
typedef struct {
  /// The first byte; null if there are none.
  uint8_t *data;
  /// Number of bytes.
  size_t len;
} ambar_bytes;

/// Options of a store. Zeros in all fields except `size` are the defaults.
typedef struct {
  /// `sizeof(ambar_options)`.
  size_t size;
  /// Nonzero to replace an existing file at the first commit.
  int32_t overwrite;
  /// Nonzero to commit without fsync, for scratch files.
  int32_t no_fsync;
  /// Alignment of the extents of different ranks: the file system's block or stripe size in bytes; 0 for 4096.
  uint64_t alignment;
  /// Minimum bytes of an extent from the shared counter; 0 for 16 KiB, doubled each time up to 1 MiB.
  uint64_t extent;
  /// Encoding threads of each rank; 0 for 1.
  int32_t threads;
  /// `AMBAR_COUNTER`, `AMBAR_RESERVED`, or 0 for the default: the counter, with `queue_bytes` and several ranks
  /// `AMBAR_RESERVED`.
  int32_t placement;
  /// Nonzero: a thread of each rank encodes and writes values while the program computes, see `ambar_commit_begin`.
  /// It is the maximum of the bytes that `ambar_write` copies for it; `ambar_write` waits while there are more. The
  /// thread calls MPI only with `AMBAR_COUNTER`, which then needs MPI_THREAD_MULTIPLE.
  uint64_t queue_bytes;
} ambar_options;

/// Adds `bytes` to the counter that all ranks share, which starts at 0, and writes its previous value to `offset`. Returns 0 on
/// success. Called on the thread that writes.
typedef int32_t (*ambar_reserve)(void *context, uint64_t bytes, uint64_t *offset);

/// Run information of a snapshot, equal on all ranks.
typedef struct {
  /// `sizeof(ambar_run)`.
  size_t size;
  /// Name of the snapshot, such as `plt00010`.
  const char *name;
  /// Name of the format, such as `HyperCLaw-V1.1`.
  const char *format;
  /// Time in units of the run.
  double time;
  /// 0 Cartesian, 1 cylindrical, 2 spherical.
  int32_t coordinates;
  /// For each level, the number of its steps.
  const int64_t *steps;
  /// Number of particle species.
  int32_t species_count;
  /// The species, which are defined in the snapshot's groups `particles/<name>`.
  const ambar_particles *const *species;
} ambar_run;

/// Specification of an array. Zeros in all fields except `size`, `type`, `ndim` and `shape` are the defaults. It must be equal
/// on all ranks: a commit fails if two differ.
typedef struct {
  /// `sizeof(ambar_spec)`.
  size_t size;
  /// Type of the values.
  ambar_type type;
  /// Compression profile: `AMBAR_BALANCED`, `AMBAR_FAST`, `AMBAR_SMALL` or `AMBAR_RAW`.
  int32_t profile;
  /// The error bound of float32 and float64 values; null: lossless. A number in the unit of the values (`"0.5"`), or
  /// one of the other forms: `"1e-3 relative"`, `"1e-3 relative above 1e-10"`, `"12 bits"`, `"0.01 rms"`, and with
  /// `value_range` also `"1e-3 of range"` and `"80 dB"`.
  const char *error_bound;
  /// Two numbers, in the unit of the values: the lowest and the highest finite value of the whole array, on all ranks
  /// (`ambar_mpi_value_range`). Lowest > highest: no value is finite. Only bounds that depend on it need it.
  const double *value_range;
  /// Names of the dimensions, separated by commas, or null.
  const char *dimension_names;
  /// Attributes as a JSON object, or null.
  const char *attributes;
  /// Codecs as a JSON list from `ambar_choose_codecs`; null: the default of profile and type.
  const char *codecs;
  /// Number of dimensions, at most 8.
  int32_t ndim;
  /// Length of each dimension, slowest first.
  const uint64_t *shape;
  /// Length of a chunk in each dimension; null: chosen to match the blocks of the ranks.
  const uint64_t *chunks;
  /// Nonzero to allow the codec `ambar` for floating-point values without an error bound; readers then need ambar. With
  /// `AMBAR_FAST` it is always used, near the speed of memory, otherwise if `ambar_choose_codecs` finds it worthwhile.
  int32_t predict;
  /// Fill value, as a value of the array's type, for values that no rank writes; null: 0.
  const void *fill_value;
} ambar_spec;

/// Description of an array. Set `size` before the call.
typedef struct {
  /// `sizeof(ambar_array_info)`.
  size_t size;
  /// Type of the values.
  ambar_type type;
  /// Number of dimensions.
  int32_t ndim;
  /// Length of each dimension.
  uint64_t shape[8];
  /// Length of a chunk (the unit of decoding) in each dimension.
  uint64_t chunks[8];
  /// The error bound of the values, as `ambar_spec` takes it, such as `1e-3 relative`; `lossless` without one. A string
  /// that ends with a zero.
  char error_bound[80];
  /// Bytes of the encoded values in the store.
  uint64_t stored_bytes;
  /// Number of values that no rank wrote before the commit; they read as the fill value.
  uint64_t unwritten_values;
} ambar_array_info;

/// An array defined since the last commit. A writer never reuses a number.
typedef int32_t ambar_array;

#define AMBAR_BOOL 0 ///< One byte, 0 or 1.
#define AMBAR_INT8 1 ///< 8-bit signed integer.
#define AMBAR_INT16 2 ///< 16-bit signed integer.
#define AMBAR_INT32 3 ///< 32-bit signed integer.
#define AMBAR_INT64 4 ///< 64-bit signed integer.
#define AMBAR_UINT8 5 ///< 8-bit unsigned integer.
#define AMBAR_UINT16 6 ///< 16-bit unsigned integer.
#define AMBAR_UINT32 7 ///< 32-bit unsigned integer.
#define AMBAR_UINT64 8 ///< 64-bit unsigned integer.
#define AMBAR_FLOAT32 9 ///< IEEE 754 single precision.
#define AMBAR_FLOAT64 10 ///< IEEE 754 double precision.
#define AMBAR_COMPLEX64 11 ///< Two single-precision numbers: real, imaginary.
#define AMBAR_COMPLEX128 12 ///< Two double-precision numbers: real, imaginary.

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Defines a group of kind `amr` and layout `patches` at `path`, with `count` fields on all boxes. `profile` is as in
/// `ambar_spec`. `covered` is one of `AMBAR_COVERED_...`: how cells that the next finer level covers are stored. All ranks
/// call it with equal arguments; it does not communicate. End the hierarchy with `ambar_amr_end`.
int32_t ambar_amr_define(ambar_writer *writer,
                         const char *path,
                         const ambar_hierarchy *hierarchy,
                         int32_t count,
                         const ambar_field *fields,
                         int32_t profile,
                         int32_t covered,
                         ambar_amr **amr);

/// Writes a field on all cells of the box with number `index` of `level`, which this rank owns. `first` points to the value
/// of the box's first cell, and `strides` are the bytes between adjacent cells in x, y and z, which skip ghost cells. A field
/// is encoded after its last box of a level is written, so write field by field.
int32_t ambar_amr_write(ambar_amr *amr,
                        ambar_writer *writer,
                        int32_t level,
                        int32_t index,
                        int32_t field,
                        const void *first,
                        const int64_t *strides);

/// Ends a hierarchy, and releases it. If values of this rank are missing, this fails, and so does the commit. Null is
/// ignored.
int32_t ambar_amr_end(ambar_amr *amr,
                      ambar_writer *writer);

/// Chooses codecs for a field without an error bound from its values on one box of `cells` in x, y and z. Returns JSON text
/// for `ambar_field.codecs`, which must be equal on all ranks.
int32_t ambar_amr_choose(int32_t ndim,
                         const int64_t *cells,
                         ambar_type type,
                         int32_t profile,
                         const void *first,
                         const int64_t *strides,
                         ambar_bytes *json);

/// Releases bytes from ambar.
void ambar_bytes_free(ambar_bytes bytes);

/// Encodes one rank's `count` blocks of arrays of `shape` as bytes, which the program gathers from all ranks. `starts` and
/// `lengths` have `ndim` numbers for each block. A rank may have no blocks.
int32_t ambar_blocks_make(int32_t ndim,
                          const uint64_t *shape,
                          int32_t count,
                          const uint64_t *starts,
                          const uint64_t *lengths,
                          ambar_bytes *own);

/// Combines the bytes of `ambar_blocks_make` of all ranks, in rank order, to a decomposition. Release it with
/// `ambar_blocks_free`.
int32_t ambar_blocks_gather(uint32_t ranks,
                            const uint8_t *const *parts,
                            const size_t *lens,
                            ambar_blocks **blocks);

/// Releases a decomposition. Null is ignored.
void ambar_blocks_free(ambar_blocks *blocks);

/// Defines a group of kind `particles` at `path`. Rank *i* has `counts[i]` particles with `count` `columns`, which include
/// `position_x`, `position_y`, ... The particles are in a cube with the lower corner `lower` (x, y, z) and the side `side`.
/// `more` is a JSON object of attributes, or null. All ranks call it with equal arguments; it does not communicate. End the
/// particles with `ambar_particles_end`.
int32_t ambar_particles_define(ambar_writer *writer,
                               const char *path,
                               const uint64_t *counts,
                               int32_t count,
                               const ambar_field *columns,
                               int32_t profile,
                               int32_t ndim,
                               const double *lower,
                               double side,
                               const char *more,
                               ambar_particles **particles);

/// Writes a column of this rank's particles. `first` points to the value of the first particle, and `stride` are the bytes
/// between values. The last column sorts all columns along the Morton curve, and encodes them.
int32_t ambar_particles_write(ambar_particles *particles,
                              ambar_writer *writer,
                              int32_t column,
                              const void *first,
                              int64_t stride);

/// Ends particles, and releases them. If columns are missing, this fails, and so does the commit. Null is ignored.
int32_t ambar_particles_end(ambar_particles *particles,
                            ambar_writer *writer);

/// Creates a store that `ranks` ranks write. Returns the writer of rank 0, and the bytes with which the other ranks call
/// `ambar_ranks_join`.
int32_t ambar_ranks_create(const char *path,
                           const ambar_options *options,
                           uint32_t ranks,
                           ambar_writer **writer,
                           ambar_bytes *invitation);

/// Opens an existing store to which `ranks` ranks append; see `ambar_ranks_create`.
int32_t ambar_ranks_append(const char *path,
                           const ambar_options *options,
                           uint32_t ranks,
                           ambar_writer **writer,
                           ambar_bytes *invitation);

/// Joins a store with the bytes of rank 0. Returns the writer of `rank`.
int32_t ambar_ranks_join(const uint8_t *invitation,
                         size_t len,
                         uint32_t rank,
                         ambar_writer **writer);

/// Sets the counter from which this writer takes extents of the file. All ranks share it.
int32_t ambar_ranks_counter(ambar_writer *writer, ambar_reserve reserve, void *context);

/// Returns the bytes to send to rank `to` after this rank has written all its values of the step; often empty.
int32_t ambar_ranks_message_to(ambar_writer *writer,
                               uint32_t to,
                               ambar_bytes *bytes);

/// Receives the message of rank `from`. After an error, the seal informs the other ranks.
int32_t ambar_ranks_receive(ambar_writer *writer, uint32_t from, const uint8_t *bytes, size_t len);

/// Ends this rank's part of the step: encodes remaining values, syncs them to disk, and returns the bytes for
/// `ambar_ranks_commit`. The bytes also report failures, so gather them in any case.
int32_t ambar_ranks_seal(ambar_writer *writer,
                         ambar_bytes *index);

/// Commits on rank 0 what all ranks have sealed, or nothing if one has failed. Returns the bytes for `ambar_ranks_conclude`.
int32_t ambar_ranks_commit(ambar_writer *writer,
                           const uint8_t *const *indices,
                           const size_t *lens,
                           ambar_bytes *outcome);

/// Ends the commit on every rank, including rank 0. It fails if any rank has failed: then nothing was committed, and the writer
/// can only be closed.
int32_t ambar_ranks_conclude(ambar_writer *writer,
                             const uint8_t *outcome,
                             size_t len);

/// Makes the group at `path` (empty: the root) an AMReX snapshot with the cells `amr`, which are in its group `amr`. All ranks
/// call it before the commit. `ambar.open` and other readers then read it like a converted plotfile.
int32_t ambar_amr_snapshot(ambar_writer *writer,
                           const char *path,
                           const ambar_amr *amr,
                           const ambar_run *run);

/// Checks the error bound of an `ambar_spec` or `ambar_field`, and writes `AMBAR_LOSSLESS`, `AMBAR_BOUNDED` or
/// `AMBAR_NEEDS_RANGE` to `kind`. For example, `"1e-3 of range"` needs a `value_range`. Bounds of levels and boxes count
/// too: the kind is `AMBAR_LOSSLESS` if no value of any part changes.
int32_t ambar_bound_kind(const char *error_bound,
                         int32_t *kind);

/// Selects the error bounds of `count` fields from `rules` pairs of keys and bounds. A key is the name of a field or a
/// pattern (`density`, `velocity_*`, `*`), and may have levels and a box: `density@2:`, `*@[0.2:0.4, :, :]`. The most
/// specific name applies, as docs/howto/error-bounds.md says. `bounds[i]` is one bound. Writes the bounds of `names[i]`
/// to `selected[i]`, as text for `ambar_field.error_bound` that ends with a zero: `lossless` if no key matches. Release
/// each with `ambar_bytes_free`. A key that matches no field is an error, except `*`.
///
/// ```c
/// const char *keys[] = {"*", "density@2:"}, *bounds[] = {"1e-3 relative", "1e-4 relative"};
/// const char *names[] = {"density", "pressure"};
/// ambar_bytes selected[2];
/// ambar_select_bounds(2, keys, bounds, 2, names, selected);
/// fields[0].error_bound = (const char *)selected[0].data; // "1e-3 relative, @2:=1e-4 relative"
/// ```
int32_t ambar_select_bounds(int32_t rules,
                            const char *const *keys,
                            const char *const *bounds,
                            int32_t count,
                            const char *const *names,
                            ambar_bytes *selected);

/// Chooses codecs for an array from a sample of its values with the shape `sample_shape`, which has as many dimensions as
/// `spec`. Returns JSON text for `ambar_spec.codecs`. All ranks must define the array with the same codecs.
int32_t ambar_choose_codecs(const ambar_spec *spec,
                            const void *sample,
                            const uint64_t *sample_shape,
                            ambar_bytes *json);

/// Returns the version of the library, such as `0.1.0`.
const char *ambar_version(void);

/// Returns the message of the last call of this thread that did not return `AMBAR_OK`: file, node, what was
/// expected, what was found, and what to do. Valid until the thread's next such call; empty before the first.
const char *ambar_last_error(void);

/// Sets `text` as the message of `ambar_last_error` unless `status` is `AMBAR_OK`, and returns `status`. For code that
/// extends this API, such as `ambar_mpi.h`.
int32_t ambar_fail(int32_t status,
                   const char *text);

/// Opens the last commit of the store at `path`, a file or a directory. Release it with `ambar_store_free`.
int32_t ambar_open(const char *path,
                   ambar_store **store);

/// Releases a store. Null is ignored.
void ambar_store_free(ambar_store *store);

/// Describes an array.
int32_t ambar_info(const ambar_store *store, const char *path, ambar_array_info *info);

/// Reads the region of `count` values from `start` on into `out`, whose size `out_bytes` must be that of the values. Only chunks
/// that overlap the region are read and decoded, on `threads` threads; 0: as many as the process has.
int32_t ambar_read(const ambar_store *store,
                   const char *path,
                   const uint64_t *start,
                   const uint64_t *count,
                   void *out,
                   size_t out_bytes,
                   int32_t threads);

/// Returns the attributes of a group (empty path: the root) or an array as JSON text, without a terminating zero.
int32_t ambar_attributes(const ambar_store *store,
                         const char *path,
                         ambar_bytes *json);

/// Reads an attribute of a group (empty path: the root) or an array as numbers of `type`, `AMBAR_FLOAT64` or `AMBAR_INT64`: a number,
/// a boolean (0 or 1), or a list of them. `name` is its key; slashes separate the keys of nested objects, as in `ambar/times`.
/// Writes at most `room` numbers to `values` (null for a room of 0), and their whole number to `count`.
int32_t ambar_attribute_numbers(const ambar_store *store,
                                const char *path,
                                const char *name,
                                ambar_type type,
                                void *values,
                                size_t room,
                                size_t *count);

/// Returns an attribute of a group (empty path: the root) or an array as a string with a terminating zero, which `len` counts. An
/// attribute that is not a string is returned as JSON. `name` is as for `ambar_attribute_numbers`.
int32_t ambar_attribute_text(const ambar_store *store,
                             const char *path,
                             const char *name,
                             ambar_bytes *value);

/// Returns the names of the dimensions of an array, slowest first, separated by commas, with a terminating zero, which `len`
/// counts. A dimension without a name has an empty one.
int32_t ambar_dimension_names(const ambar_store *store,
                              const char *path,
                              ambar_bytes *names);

/// Returns the codecs of an array as a short description, such as `pcodec 8, crc32c`, with a terminating zero, which `len` counts.
/// A store does not have the profile, with which the codecs were chosen.
int32_t ambar_codecs(const ambar_store *store,
                     const char *path,
                     ambar_bytes *codecs);

/// Writes the number of steps of the series at `series` (empty: the root) to `count`: steps of `ambar_begin_step`, outputs of
/// `ambar_begin_output` and of converted runs, or steps of meshes.
int32_t ambar_step_count(const ambar_store *store,
                         const char *series,
                         uint64_t *count);

/// Returns step `index`, from 0 on, of the series at `series` (empty: the root): its time, NaN if it is not known, to `time`, and the
/// path of its group with a terminating zero to `path`, a buffer of `room` bytes, at least the length of `series` and 20.
int32_t ambar_step(const ambar_store *store,
                   const char *series,
                   uint64_t index,
                   double *time,
                   char *path,
                   size_t room);

/// Returns the names of the children of a group (empty path: the root), one after the other, each with a terminating zero, and
/// their number. `kinds` is null, or receives one character for each child: `a` for an array, `g` for a group.
int32_t ambar_children(const ambar_store *store,
                       const char *path,
                       uint64_t *count,
                       ambar_bytes *names,
                       ambar_bytes *kinds);

/// Lists the children of a group (empty path: the root) as JSON text without a terminating zero:
/// `[{"name": "density", "kind": "array"}, ...]`.
int32_t ambar_list(const ambar_store *store, const char *path, ambar_bytes *json);

/// Creates a store that one process writes. It appears at `path` with the first commit. Release the writer with `ambar_close`.
int32_t ambar_create(const char *path,
                     const ambar_options *options,
                     ambar_writer **writer);

/// Opens an existing store to which one process appends. Bytes that a killed writer left after the last commit are removed.
/// Release the writer with `ambar_close`.
int32_t ambar_append(const char *path,
                     const ambar_options *options,
                     ambar_writer **writer);

/// Creates a group and its parent groups. `attributes_json` is a JSON object or null. Of many ranks, only the call on rank 0 has
/// an effect.
int32_t ambar_group(ambar_writer *writer,
                    const char *path,
                    const char *attributes_json);

/// Replaces the attributes of a group or an array. Of many ranks, only the call on rank 0 has an effect.
int32_t ambar_set_attributes(ambar_writer *writer,
                             const char *path,
                             const char *attributes_json);

/// Creates the group of the next step of the series at `series` (empty: the root), and writes its path, such as
/// `run/step_000000`, with a terminating zero to `path`, a buffer of `room` bytes. Of many ranks, rank 0 calls it and sends the
/// path to the others. The next commit ends the step.
int32_t ambar_begin_step(ambar_writer *writer,
                         const char *series,
                         double time,
                         char *path,
                         size_t room);

/// Begins the output `number` of the series of snapshots at the root, and writes the path of its group, such as `output_00010`,
/// with a terminating zero to `path`, a buffer of `room` bytes, at least 20. An output of this number that the store has is
/// replaced, if it has the name `name`, such as `plt00010`; null: any name. All ranks call it with equal arguments; it does not
/// communicate. The next commit ends the output.
int32_t ambar_begin_output(ambar_writer *writer,
                           uint32_t number,
                           const char *name,
                           char *path,
                           size_t room);

/// Defines an array, to be written before the next commit. All ranks define equal arrays in equal order; it does not
/// communicate. `blocks` is the decomposition; null: rank 0 writes the whole array. Values that no rank writes read as the fill
/// value, and the array's attribute `ambar.unwritten_values` has their number.
int32_t ambar_define(ambar_writer *writer,
                     const char *path,
                     const ambar_spec *spec,
                     const ambar_blocks *blocks,
                     ambar_array *array);

/// Writes the region of `count` values from `start` on, in C order, which must be inside one of the rank's blocks. Each value is
/// written at most once before a commit. The data may be reused when the function returns: with `queue_bytes` they are copied.
int32_t ambar_write(ambar_writer *writer,
                    ambar_array array,
                    const uint64_t *start,
                    const uint64_t *count,
                    const void *data);

/// As `ambar_write`, without a copy: the values must not change, or be freed, until `ambar_commit_wait` or `ambar_commit` has
/// succeeded, or `ambar_close` has returned. Without `queue_bytes` it is `ambar_write`. It corresponds to a deferred `Put` of
/// ADIOS2, and to `H5Dwrite_async`.
int32_t ambar_write_borrowed(ambar_writer *writer,
                             ambar_array array,
                             const uint64_t *start,
                             const uint64_t *count,
                             const void *data);

/// As `ambar_write`, for values that are `strides` bytes apart in each dimension, such as the inner cells of an array with ghost
/// cells. `first` points to the first value. Strides may be negative.
int32_t ambar_write_strided(ambar_writer *writer,
                            ambar_array array,
                            const uint64_t *start,
                            const uint64_t *count,
                            const void *first,
                            const int64_t *strides);

/// Makes everything written since the last commit visible, atomically and durably. For one process; many ranks use the functions
/// of `ambar_mpi.h`.
int32_t ambar_commit(ambar_writer *writer);

/// Begins a commit, and returns while a thread still encodes and writes the values: `ambar_commit_wait` ends it. Readers see the
/// values when that has returned. In between, the program computes the next step; it must not call other functions on the writer
/// except `ambar_commit_test` and `ambar_close`. Without `queue_bytes`, the values are written before it returns. It corresponds to
/// an asynchronous `EndStep` of ADIOS2. For one process; many ranks use `ambar_mpi_commit_begin`.
int32_t ambar_commit_begin(ambar_writer *writer);

/// Writes 1 to `done` if `ambar_commit_wait` would return without waiting for this rank's values to be written, and also after an
/// error, which `ambar_commit_wait` returns; otherwise 0. Many ranks call it independently of each other.
int32_t ambar_commit_test(ambar_writer *writer,
                          int32_t *done);

/// Ends the commit that `ambar_commit_begin` has begun: waits until all values are on the disk, and makes them visible to readers.
/// It corresponds to `H5ESwait`. For one process; many ranks use `ambar_mpi_commit_wait`.
int32_t ambar_commit_wait(ambar_writer *writer);

/// Sets one attribute of a group or an array, and keeps the others. `values` are `count` values of `type`, `AMBAR_FLOAT64`,
/// `AMBAR_INT64` or `AMBAR_BOOL` (bytes): one value for a count of 1, otherwise a list. Floating-point numbers must be finite.
/// Of many ranks, only the call on rank 0 has an effect.
int32_t ambar_set_attribute_numbers(ambar_writer *writer,
                                    const char *path,
                                    const char *name,
                                    ambar_type type,
                                    const void *values,
                                    size_t count);

/// Sets one attribute of a group or an array to a string, and keeps the others. Of many ranks, only the call on rank 0 has an
/// effect.
int32_t ambar_set_attribute_text(ambar_writer *writer,
                                 const char *path,
                                 const char *name,
                                 const char *value);

/// Deletes a group with everything in it, or an array, with the next commit. The bytes remain in the file until `ambar compact`.
/// Arrays that were defined since the last commit cannot be deleted. Of many ranks, only the call on rank 0 has an effect.
int32_t ambar_delete(ambar_writer *writer,
                     const char *path);

/// Releases a writer, also after errors, and borrowed values. Null is ignored. Uncommitted data are lost, also those of a commit that
/// was begun.
int32_t ambar_close(ambar_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AMBAR_H */

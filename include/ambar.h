/* ambar: one store for simulation output. The C API.
 *
 * Made from crates/ambar-capi; changes belong there.
 *
 * Every function returns AMBAR_OK or another status; ambar_last_error() says what was wrong. Shapes and
 * regions are in C order, the slowest dimension first. docs/howto/mpi.md shows how it is used, and
 * ambar_mpi.h does what takes many ranks.
 *
 * Structs that a program fills in begin with their size: zero them, set size to sizeof of the struct, and then the
 * other fields. Later versions add fields at the end. The number in libambar.so.0 rises when a function's arguments or an
 * existing field change. */


#ifndef AMBAR_H
#define AMBAR_H

#include <stddef.h>
#include <stdint.h>

// The version of this header; ambar_version() is that of the library.
#define AMBAR_VERSION "0.1.0"
#define AMBAR_VERSION_MAJOR 0
#define AMBAR_VERSION_MINOR 1
#define AMBAR_VERSION_PATCH 0
#define AMBAR_COVERED_DEFAULT 0 // Covered cells are left out of fields with an error bound, and kept of others.
#define AMBAR_COVERED_KEEP 1 // Covered cells are kept.
#define AMBAR_COVERED_DROP 2 // Covered cells are left out: they read as averages of the finer level.
#define AMBAR_BALANCED 0 // Small where that costs little time in reading.
#define AMBAR_FAST 1 // Reads at the speed of memory.
#define AMBAR_SMALL 2 // As small as it gets.
#define AMBAR_RAW 3 // As the values are, with checksums.
#define AMBAR_COUNTER 2 // Extents from a counter that all ranks share.
#define AMBAR_RESERVED 1 // Extents reserved when an array is defined, without communication; the file has holes.
#define AMBAR_OK 0 // It went well.
#define AMBAR_CORRUPT 1 // The bytes are damaged, cut short or hostile: restore them from a copy.
#define AMBAR_UNSUPPORTED 2 // The file is sound but needs something this version lacks.
#define AMBAR_INVALID 3 // The call makes no sense: change it.
#define AMBAR_NOT_FOUND 4 // There is no such file, node or step.
#define AMBAR_BUSY 5 // The file exists already, or another writer has it.
#define AMBAR_LIMIT 6 // A limit on memory or size was passed.
#define AMBAR_INTERRUPTED 7 // Somebody asked to stop.
#define AMBAR_IO 8 // The operating system refused.
#define AMBAR_PANIC 9 // A mistake in ambar itself; a writer that was used can only be closed.

// One rank's end of a hierarchy that many write.
typedef struct ambar_amr ambar_amr;

// Who holds which part of arrays of one shape; the same on all ranks. Nothing changes it: threads may
// share it.
typedef struct ambar_blocks ambar_blocks;

// One rank's end of particles that many write.
typedef struct ambar_particles ambar_particles;

// A store open for reading: its last commit. Any number of threads may use it.
typedef struct ambar_store ambar_store;

// A store open for writing: one rank's end of it. One thread at a time may use it.
//
// After an error of any function that takes it, or a panic, nothing is committed on any rank: `ambar_close` is all
// that is left, and every other function repeats the error.
typedef struct ambar_writer ambar_writer;

// The levels of a hierarchy of boxes, the same on all ranks. Indices of cells are in x, y, z; in dimensions
// that are not used 0, and 1 behind the last.
typedef struct {
  // Its size: `sizeof(ambar_hierarchy)`.
  size_t size;
  // Dimensions, 1 to 3.
  int32_t ndim;
  // Number of levels.
  int32_t levels;
  // Lower corner of the problem domain.
  double lower[3];
  // Upper corner of the problem domain.
  double upper[3];
  // Of each level 6 numbers: the first cell that it could have, and that behind the last.
  const int64_t *domains;
  // Of each level 3 numbers: the sides of a cell.
  const double *cell_sizes;
  // Of each level 3 numbers: how many times finer the next level is. Those of the last do not count.
  const int32_t *ratios;
  // Of each level the number of its boxes.
  const int32_t *boxes;
  // Of each box, level by level, 6 numbers: its first cell, and that behind the last.
  const int64_t *corners;
  // Of each box, level by level, the rank that has its values.
  const uint32_t *ranks;
} ambar_hierarchy;

// A type of values: one of `AMBAR_BOOL` to `AMBAR_COMPLEX128`.
typedef int32_t ambar_type;

// A field of a hierarchy, or a column of particles.
typedef struct {
  // Its size: `sizeof(ambar_field)`, the same for all of a list.
  size_t size;
  // Its name.
  const char *name;
  // The type of its values.
  ambar_type type;
  // The absolute error bound that every value keeps; 0: lossless.
  double error_bound;
  // The codecs, as `ambar_amr_choose` gives them, where there is no error bound; null: by the type. Not for
  // particles.
  const char *codecs;
} ambar_field;

// Bytes that ambar has allocated; to be given back with `ambar_bytes_free`.
typedef struct {
  // The first byte; null where there are none.
  uint8_t *data;
  // How many there are.
  size_t len;
} ambar_bytes;

// How a store is written. All zeros but `size` are the defaults.
typedef struct {
  // Its size: `sizeof(ambar_options)`.
  size_t size;
  // Whether a file of that name is replaced, at the first commit.
  int32_t overwrite;
  // Whether a commit does not wait for the disk: for scratch files.
  int32_t no_fsync;
  // Extents of different ranks begin at multiples of it: the file system's block or stripe in bytes; 0
  // for 4096.
  uint64_t alignment;
  // Bytes that a rank takes from the shared counter at least; 0 for 16 KiB, doubled each time up to 1 MiB.
  uint64_t extent;
  // Threads that each rank encodes with; 0 for 1.
  int32_t threads;
  // `AMBAR_COUNTER`, `AMBAR_RESERVED`, or 0 for the default, which is the counter.
  int32_t placement;
} ambar_options;

// Adds `bytes` to the counter that all ranks share, which was 0 when they came together, and puts what it
// was before into `offset`. Returns 0 where that went well. It is called on the thread that writes.
typedef int32_t (*ambar_reserve)(void *context, uint64_t bytes, uint64_t *offset);

// What a snapshot says of its run. The same on all ranks.
typedef struct {
  // Its size: `sizeof(ambar_run)`.
  size_t size;
  // The snapshot's name, such as `plt00010`.
  const char *name;
  // The format's name, such as `HyperCLaw-V1.1`.
  const char *format;
  // The time, in the run's own units.
  double time;
  // 0 Cartesian, 1 cylindrical, 2 spherical.
  int32_t coordinates;
  // Of each level the number of its steps.
  const int64_t *steps;
  // Number of species of particles.
  int32_t species_count;
  // The species, each defined in the snapshot's group `particles/<name>`.
  const ambar_particles *const *species;
} ambar_run;

// An array to be written. All zeros but `size`, `type`, `ndim` and `shape` are defaults. It must be the same on
// all ranks: a commit is refused where two differ.
typedef struct {
  // Its size: `sizeof(ambar_spec)`.
  size_t size;
  // The type of the values.
  ambar_type type;
  // How they are compressed: `AMBAR_BALANCED`, `AMBAR_FAST`, `AMBAR_SMALL` or `AMBAR_RAW`.
  int32_t profile;
  // The absolute error bound that every value keeps; 0: lossless.
  double error_bound;
  // Names of the dimensions, separated by commas; or null.
  const char *dimension_names;
  // The attributes, a JSON object; or null.
  const char *attributes;
  // The codecs, a JSON list as `ambar_choose_codecs` gives it; null: by profile and type.
  const char *codecs;
  // Number of dimensions, at most 8.
  int32_t ndim;
  // Length of each dimension, the slowest first.
  const uint64_t *shape;
  // Length of a chunk in each dimension; or null: chosen to suit the ranks' blocks.
  const uint64_t *chunks;
  // Other than 0: floating-point values that have no error bound may be encoded by ambar's own codec, which
  // readers need then. With `AMBAR_FAST` they are, near the speed of memory; else where `ambar_choose_codecs`
  // finds that it pays.
  int32_t predict;
  // What values read as that no rank writes: a value of the array's type; or null: 0.
  const void *fill_value;
} ambar_spec;

// What is known of an array without reading it. Set `size` before it is filled.
typedef struct {
  // Its size: `sizeof(ambar_array_info)`.
  size_t size;
  // The type of the values.
  ambar_type type;
  // Number of dimensions.
  int32_t ndim;
  // Length of each dimension.
  uint64_t shape[8];
  // Length of a chunk, the unit of decoding, in each dimension.
  uint64_t chunks[8];
  // The absolute error bound of the values; 0 where nothing was lost.
  double error_bound;
  // Bytes that the values take in the store.
  uint64_t stored_bytes;
  // Number of values that were not written by any rank before the commit, and read as the fill value.
  uint64_t unwritten_values;
} ambar_array_info;

// An array that was defined since the last commit. Its number is that of no other array of the writer, before or
// after.
typedef int32_t ambar_array;

#define AMBAR_BOOL 0 // One byte, 0 or 1.
#define AMBAR_INT8 1 // 8-bit signed integer.
#define AMBAR_INT16 2 // 16-bit signed integer.
#define AMBAR_INT32 3 // 32-bit signed integer.
#define AMBAR_INT64 4 // 64-bit signed integer.
#define AMBAR_UINT8 5 // 8-bit unsigned integer.
#define AMBAR_UINT16 6 // 16-bit unsigned integer.
#define AMBAR_UINT32 7 // 32-bit unsigned integer.
#define AMBAR_UINT64 8 // 64-bit unsigned integer.
#define AMBAR_FLOAT32 9 // IEEE 754 single precision.
#define AMBAR_FLOAT64 10 // IEEE 754 double precision.
#define AMBAR_COMPLEX64 11 // Two single-precision numbers: real, imaginary.
#define AMBAR_COMPLEX128 12 // Two double-precision numbers: real, imaginary.

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Defines the group of kind `amr`, layout `patches`, at `path`: `count` fields, each on all boxes. `profile` as in
// `ambar_spec`, `covered` one of `AMBAR_COVERED_...`: what becomes of cells that the next finer level covers.
// All ranks do it alike; nothing is communicated.
int32_t ambar_amr_define(ambar_writer *writer,
                         const char *path,
                         const ambar_hierarchy *hierarchy,
                         int32_t count,
                         const ambar_field *fields,
                         int32_t profile,
                         int32_t covered,
                         ambar_amr **amr);

// Writes a field on all cells of box number `index` of `level`, which is this rank's: `first` is the value of its
// first cell, and `strides` are the bytes from a cell to the next in x, y and z, so that ghost cells
// are stepped over. A field is encoded once its last box of a level was given: write field by field.
int32_t ambar_amr_write(ambar_amr *amr,
                        ambar_writer *writer,
                        int32_t level,
                        int32_t index,
                        int32_t field,
                        const void *first,
                        const int64_t *strides);

// Ends a hierarchy, and frees it: all of this rank's values were written, else this fails, and so does the
// commit. Null is nothing.
int32_t ambar_amr_end(ambar_amr *amr,
                      ambar_writer *writer);

// Chooses codecs for a field without an error bound by its values on one box of `cells` in x, y and z: gives
// them as text for `ambar_field.codecs`, which must be the same on all ranks.
int32_t ambar_amr_choose(int32_t ndim,
                         const int64_t *cells,
                         ambar_type type,
                         int32_t profile,
                         const void *first,
                         const int64_t *strides,
                         ambar_bytes *json);

// Gives bytes back.
void ambar_bytes_free(ambar_bytes bytes);

// One rank's blocks of arrays of `shape` as bytes, to be gathered from all ranks. There are `count` blocks,
// and of each `ndim` numbers at `starts` and at `lengths`; a rank may have none.
int32_t ambar_blocks_make(int32_t ndim,
                          const uint64_t *shape,
                          int32_t count,
                          const uint64_t *starts,
                          const uint64_t *lengths,
                          ambar_bytes *own);

// Puts together what all ranks have made, in the order of the ranks.
int32_t ambar_blocks_gather(uint32_t ranks,
                            const uint8_t *const *parts,
                            const size_t *lens,
                            ambar_blocks **blocks);

// Frees what `ambar_blocks_gather` has made; null is nothing.
void ambar_blocks_free(ambar_blocks *blocks);

// Defines the group of kind `particles` at `path`. Rank *i* has `counts[i]` particles, of which all say `count`
// `columns`: `position_x`, `position_y`, ... among them. They lie in a cube from `lower` (x, y, z) on, of the
// side `side`. `more` is a JSON object of attributes, or null. All ranks do it alike; nothing is
// communicated.
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

// Writes a column of this rank's particles: `first` is the value of the first, and `stride` are the bytes from one to
// the next. With the last column all are put along the Morton curve, and encoded.
int32_t ambar_particles_write(ambar_particles *particles,
                              ambar_writer *writer,
                              int32_t column,
                              const void *first,
                              int64_t stride);

// Ends particles, and frees them: all columns were written, else this fails, and so does the commit. Null is
// nothing.
int32_t ambar_particles_end(ambar_particles *particles,
                            ambar_writer *writer);

// Creates a store that `ranks` write: rank 0's end of it, and the bytes that the others join with.
int32_t ambar_ranks_create(const char *path,
                           const ambar_options *options,
                           uint32_t ranks,
                           ambar_writer **writer,
                           ambar_bytes *invitation);

// Opens a store that is there so that `ranks` add to it; as `ambar_ranks_create`.
int32_t ambar_ranks_append(const char *path,
                           const ambar_options *options,
                           uint32_t ranks,
                           ambar_writer **writer,
                           ambar_bytes *invitation);

// Another rank's end of a store, by rank 0's bytes.
int32_t ambar_ranks_join(const uint8_t *invitation,
                         size_t len,
                         uint32_t rank,
                         ambar_writer **writer);

// Has extents come from a counter that all ranks share.
int32_t ambar_ranks_counter(ambar_writer *writer, ambar_reserve reserve, void *context);

// What rank `to` must get once this rank has written all of the step; often nothing.
int32_t ambar_ranks_outbox(ambar_writer *writer, uint32_t to, ambar_bytes *bytes);

// Takes what rank `from` had in its outbox for this one. After an error, the seal tells the others.
int32_t ambar_ranks_inbox(ambar_writer *writer, uint32_t from, const uint8_t *bytes, size_t len);

// Ends this rank's part of the step: encodes what is left, brings all to the disk, and gives the bytes that
// rank 0 commits with. That something has failed is in the bytes, too: they are to be gathered anyway.
int32_t ambar_ranks_seal(ambar_writer *writer,
                         ambar_bytes *index);

// Commits on rank 0 what all ranks have sealed, or nothing where one has failed: gives the bytes that all
// ranks conclude with.
int32_t ambar_ranks_commit(ambar_writer *writer,
                           const uint8_t *const *indices,
                           const size_t *lens,
                           ambar_bytes *outcome);

// Learns what became of the commit; rank 0 does so, too. It fails where any rank has failed: nothing was
// committed then, and the writer can only be closed.
int32_t ambar_ranks_conclude(ambar_writer *writer,
                             const uint8_t *outcome,
                             size_t len);

// Makes the group at `path` (empty: the root) a snapshot of AMReX, whose cells are `amr`, in the group `amr` there.
// All ranks call it, before the commit; then `ambar.open` and the other readers know it as they do a plotfile.
int32_t ambar_amr_snapshot(ambar_writer *writer,
                           const char *path,
                           const ambar_amr *amr,
                           const ambar_run *run);

// Chooses codecs for an array by a sample of its values, of `sample_shape` (as many dimensions as
// `spec`): gives them as text for `ambar_spec.codecs`. All ranks must define an array with the same codecs.
int32_t ambar_choose_codecs(const ambar_spec *spec,
                            const void *sample,
                            const uint64_t *sample_shape,
                            ambar_bytes *json);

// The version of the library, such as `0.1.0`.
const char *ambar_version(void);

// What went wrong in the last call of this thread that did not return `AMBAR_OK`: file, node, what was
// expected and found, and what to do. Valid until the thread's next such call; empty before the first.
const char *ambar_last_error(void);

// Keeps `text` for `ambar_last_error`, where `status` is not `AMBAR_OK`, and returns the status. For code that
// adds to this API, such as `ambar_mpi.h`.
int32_t ambar_fail(int32_t status,
                   const char *text);

// Opens the last commit of the store at `path`: a file or a directory.
int32_t ambar_open(const char *path, ambar_store **store);

// Frees a store; null is nothing.
void ambar_store_free(ambar_store *store);

// Says what an array is.
int32_t ambar_info(const ambar_store *store, const char *path, ambar_array_info *info);

// Reads the region of `count` values from `start` on into `out`, which has just `out_bytes` of room. Only
// the chunks that have values of it are read and decoded, on `threads` threads; 0: all that the process has.
int32_t ambar_read(const ambar_store *store,
                   const char *path,
                   const uint64_t *start,
                   const uint64_t *count,
                   void *out,
                   size_t out_bytes,
                   int32_t threads);

// The attributes of a group (empty path: the root) or an array as JSON text, without a zero behind it.
int32_t ambar_attributes(const ambar_store *store,
                         const char *path,
                         ambar_bytes *json);

// What lies right below a group (empty path: the root), as JSON text without a zero behind it:
// `[{"name": "density", "kind": "array"}, ...]`.
int32_t ambar_list(const ambar_store *store, const char *path, ambar_bytes *json);

// Creates a store that one process writes; it appears at `path` with the first commit.
int32_t ambar_create(const char *path, const ambar_options *options, ambar_writer **writer);

// Opens a store that is there, to add to it with one process. What a killed writer left behind the last
// commit is cut off.
int32_t ambar_append(const char *path,
                     const ambar_options *options,
                     ambar_writer **writer);

// Makes a group, and those above it; `attributes_json` is a JSON object or null. Of many ranks, rank 0
// does it, for the others it is nothing.
int32_t ambar_group(ambar_writer *writer,
                    const char *path,
                    const char *attributes_json);

// Replaces the attributes of a group or an array. Of many ranks, rank 0 does it.
int32_t ambar_set_attributes(ambar_writer *writer, const char *path, const char *attributes_json);

// Makes the group of the next step of the series at `series` (empty: the root), and puts its path, such as
// `run/step_000000`, with a zero behind it into `path`, which has room for `room` bytes. Of many ranks,
// rank 0 does it, and tells the others the path. The next commit ends the step.
int32_t ambar_begin_step(ambar_writer *writer,
                         const char *series,
                         double time,
                         char *path,
                         size_t room);

// Defines an array, to be written before the next commit. Of many ranks, all define the same ones in the
// same order; nothing is communicated. `blocks` says who writes what; null: this rank where it is alone,
// else rank 0, writes all of it. What no rank writes is the fill value, and the array's attribute
// `ambar.unwritten_values` says how many values that are.
int32_t ambar_define(ambar_writer *writer,
                     const char *path,
                     const ambar_spec *spec,
                     const ambar_blocks *blocks,
                     ambar_array *array);

// Writes the region of `count` values from `start` on, in C order; it lies in one of the rank's blocks. Each
// value is written once before a commit. The data are the caller's again when the function returns.
int32_t ambar_write(ambar_writer *writer,
                    ambar_array array,
                    const uint64_t *start,
                    const uint64_t *count,
                    const void *data);

// As `ambar_write`, of values that lie `strides` bytes apart in each dimension, `first` being the first
// of them: such as the inner cells of an array with ghost cells. Strides may be negative.
int32_t ambar_write_strided(ambar_writer *writer,
                            ambar_array array,
                            const uint64_t *start,
                            const uint64_t *count,
                            const void *first,
                            const int64_t *strides);

// Makes all that was written since the last commit visible, at once and durably. One process alone calls
// it; many use the functions of `ambar_mpi.h`.
int32_t ambar_commit(ambar_writer *writer);

// Frees a writer, whatever has happened; null is nothing. What was not committed is lost.
int32_t ambar_close(ambar_writer *writer);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* AMBAR_H */

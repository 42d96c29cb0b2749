/** @file
 * Many MPI ranks write one store: the communication, which the library itself does not contain.
 *
 * Compiled in the user's program, so that one libambar works with every MPI. C99 or C++. The life of a store:
 *
 *     ambar_mpi_create or ambar_mpi_append                 all ranks; the options of rank 0 apply
 *     ambar_mpi_blocks, then ambar_define on w.writer      all ranks, equal arrays in equal order
 *     ambar_write on w.writer                              each rank independently, its own blocks
 *     ambar_mpi_commit                                     all ranks; readers see the arrays from here on,
 *     or ambar_mpi_commit_begin, compute, ambar_mpi_commit_wait
 *     ambar_mpi_close                                      all ranks
 *
 * Every function returns 0 (AMBAR_OK) or another status; ambar_last_error() returns the message. Collective functions
 * return on all ranks. If one rank fails, they fail on all ranks and leave the last commit unchanged. A rank on which
 * ambar_define or ambar_write failed must still call ambar_mpi_commit, which then fails on all ranks, or MPI_Abort.
 * A commit also fails on all ranks if two ranks have defined an array differently.
 *
 * One thread of a rank at a time may use a writer. MPI_THREAD_SINGLE is sufficient, also with `queue_bytes`: the thread that
 * encodes and writes in the background makes no MPI call, except with `queue_bytes` and AMBAR_COUNTER, which need
 * MPI_THREAD_MULTIPLE.
 */
#ifndef AMBAR_MPI_H
#define AMBAR_MPI_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "ambar.h"

/** A store that the ranks of a communicator write, as seen by one rank. Zero it, or fill it with create or append. */
typedef struct {
    ambar_writer *writer; /**< for ambar_group, ambar_define and ambar_write */
    MPI_Comm comm;        /**< a duplicate of the caller's communicator */
    MPI_Win *window;      /**< of the counter of file extents; NULL if it is not used */
    int rank, ranks;
    int failed;           /**< values were lost between ranks: nothing can be committed */
    int begun;            /**< ambar_mpi_commit_begin was called */
} ambar_mpi_writer;

/* Maximum bytes of a message: MPI counts with int. */
#ifndef AMBAR_MPI_PIECE
#define AMBAR_MPI_PIECE (1 << 30)
#endif

enum { AMBAR_MPI_TEXT = 1024, AMBAR_MPI_TAG = 1 };

/* The result of an attempt on a rank: status and message; from rank 0 also the number of bytes that follow. */
typedef struct {
    int32_t status, counts;
    uint64_t bytes;
    char text[AMBAR_MPI_TEXT];
} ambar_mpi_word;

static inline uint64_t ambar_mpi_pieces(uint64_t bytes) { return (bytes + AMBAR_MPI_PIECE - 1) / AMBAR_MPI_PIECE; }

static inline int ambar_mpi_length(uint64_t left) { return left < AMBAR_MPI_PIECE ? (int)left : AMBAR_MPI_PIECE; }

/* Copies a text, truncated to the available room. */
static inline void ambar_mpi_copy(char *to, size_t room, const char *from) {
    size_t length = strlen(from);
    if (length >= room) length = room - 1;
    memmove(to, from, length);
    to[length] = 0;
}

/* Converts an error of MPI, if the communicator's error handler returns it. */
static inline int ambar_mpi_checked(int code) {
    char text[MPI_MAX_ERROR_STRING + 8] = "MPI: ";
    int length = 0;
    if (code == MPI_SUCCESS) return AMBAR_OK;
    MPI_Error_string(code, text + 5, &length);
    return ambar_fail(AMBAR_IO, text);
}

static inline ambar_mpi_word ambar_mpi_say(int status) {
    ambar_mpi_word word;
    memset(&word, 0, sizeof word);
    word.status = status;
    if (status != AMBAR_OK) ambar_mpi_copy(word.text, sizeof word.text, ambar_last_error());
    return word;
}

/* Distributes whether any rank has failed, and the message of the first such rank. Collective. */
static inline int ambar_mpi_agree(MPI_Comm comm, int status) {
    char text[AMBAR_MPI_TEXT + 32];
    int rank, first, code;
    ambar_mpi_word word = ambar_mpi_say(status);
    MPI_Comm_rank(comm, &rank);
    first = status == AMBAR_OK ? INT_MAX : rank;
    if ((code = ambar_mpi_checked(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm)))) return code;
    if (first == INT_MAX) return AMBAR_OK;
    if ((code = ambar_mpi_checked(MPI_Bcast(&word, sizeof word, MPI_BYTE, first, comm)))) return code;
    snprintf(text, sizeof text, "rank %d: %s", first, word.text);
    return ambar_fail(word.status, text);
}

/* Broadcasts rank 0's bytes: `own` on rank 0, memory that the caller frees on the others. Collective. */
static inline int ambar_mpi_spread(MPI_Comm comm, int rank, const ambar_mpi_word *word, uint8_t *own, uint8_t **bytes) {
    uint64_t done;
    int code;
    *bytes = rank == 0 ? own : (uint8_t *)malloc(word->bytes ? (size_t)word->bytes : 1);
    code = *bytes || word->bytes == 0 ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the bytes of rank 0");
    if ((code = ambar_mpi_agree(comm, code))) goto failed;
    for (done = 0; done < word->bytes; done += AMBAR_MPI_PIECE) {
        if ((code = ambar_mpi_checked(MPI_Bcast(*bytes + done, ambar_mpi_length(word->bytes - done), MPI_BYTE, 0, comm)))) goto failed;
    }
    return AMBAR_OK;
failed:
    if (rank != 0) free(*bytes);
    *bytes = NULL;
    return code;
}

static inline long ambar_mpi_number(const char *name) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

/* Under the mpirun of another MPI, a program becomes many singletons, all of which would write the same file. */
static inline int ambar_mpi_launched(void) {
    static const char *const launchers[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};
    char text[AMBAR_MPI_TEXT];
    const char *who = NULL;
    int size = 0, known = 0;
    size_t i;
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (size != 1 || parent != MPI_COMM_NULL) return AMBAR_OK;
    for (i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        long number = ambar_mpi_number(launchers[i]);
        known |= number > 0;
        if (number > 1) who = launchers[i];
    }
    /* Set by srun. SLURM_NTASKS is that of the whole job, also in a step of one process. */
    if (!known && ambar_mpi_number("SLURM_STEP_NUM_TASKS") > 1) who = "SLURM_STEP_NUM_TASKS";
    if (!who) return AMBAR_OK;
    snprintf(text, sizeof text,
             "MPI_COMM_WORLD has 1 rank, but the launcher started %ld (%s): the program was built with another MPI "
             "than that of mpirun, and every process would write the file by itself; use one MPI for both",
             ambar_mpi_number(who), who);
    return ambar_fail(AMBAR_INVALID, text);
}

/* With queue_bytes, another thread takes extents from the counter. */
static inline int ambar_mpi_threaded(const ambar_options *options) {
    int level = MPI_THREAD_SINGLE;
    if (!options || !options->queue_bytes || options->placement != AMBAR_COUNTER) return AMBAR_OK;
    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) return AMBAR_OK;
    return ambar_fail(AMBAR_INVALID, "expected MPI_THREAD_MULTIPLE for AMBAR_COUNTER with queue_bytes, found a lower level; "
                                     "call MPI_Init_thread, or use AMBAR_RESERVED");
}

/* Adds to the counter that all ranks share, as ambar_ranks_counter requires. */
static inline int ambar_mpi_reserve(void *context, uint64_t bytes, uint64_t *offset) {
    MPI_Win window = *(MPI_Win *)context;
    if (MPI_Fetch_and_op(&bytes, offset, MPI_UINT64_T, 0, 0, MPI_SUM, window) != MPI_SUCCESS) return AMBAR_IO;
    return MPI_Win_flush(0, window) == MPI_SUCCESS ? AMBAR_OK : AMBAR_IO;
}

/* Creates the counter with the value 0 in rank 0's memory. Collective. */
static inline int ambar_mpi_count(ambar_mpi_writer *w) {
    uint64_t *counter = NULL;
    MPI_Aint bytes = w->rank == 0 ? (MPI_Aint)sizeof *counter : 0;
    int status = AMBAR_OK;
    MPI_Win *window = (MPI_Win *)malloc(sizeof *window);
    if (!window) status = ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the counter of the ranks");
    if ((status = ambar_mpi_agree(w->comm, status))) {
        free(window);
        return status;
    }
    status = ambar_mpi_checked(MPI_Win_allocate(bytes, sizeof *counter, MPI_INFO_NULL, w->comm, &counter, window));
    if (status) {
        free(window);
        return status;
    }
    w->window = window;
    MPI_Win_lock_all(0, *window);
    if (w->rank == 0) *counter = 0;
    MPI_Win_sync(*window);
    if ((status = ambar_mpi_checked(MPI_Barrier(w->comm)))) return status;
    status = ambar_ranks_counter(w->writer, ambar_mpi_reserve, window);
    return ambar_mpi_agree(w->comm, status);
}

/** Closes the store. Uncommitted data are lost. Collective; valid also if create or append failed. */
static inline int ambar_mpi_close(ambar_mpi_writer *w) {
    int status = AMBAR_OK;
    if (w->writer) status = ambar_close(w->writer);
    if (w->window) {
        MPI_Win_unlock_all(*w->window);
        MPI_Win_free(w->window);
        free(w->window);
    }
    if (w->ranks) MPI_Comm_free(&w->comm);
    memset(w, 0, sizeof *w);
    return status;
}

/* The common part of create and append. */
static inline int ambar_mpi_start(MPI_Comm comm, const char *path, const ambar_options *options, int append,
                                  ambar_mpi_writer *w) {
    ambar_bytes invitation = {NULL, 0};
    ambar_mpi_word word;
    uint8_t *bytes = NULL;
    int status;
    memset(w, 0, sizeof *w);
    if ((status = ambar_mpi_checked(MPI_Comm_dup(comm, &w->comm)))) return status;
    MPI_Comm_rank(w->comm, &w->rank);
    MPI_Comm_size(w->comm, &w->ranks);
    if ((status = ambar_mpi_agree(w->comm, ambar_mpi_launched()))) goto failed;
    if (w->rank == 0) status = w->ranks > 1 ? ambar_mpi_threaded(options) : AMBAR_OK;
    if (w->rank == 0 && !status) {
        uint32_t ranks = (uint32_t)w->ranks;
        status = append ? ambar_ranks_append(path, options, ranks, &w->writer, &invitation)
                        : ambar_ranks_create(path, options, ranks, &w->writer, &invitation);
    }
    word = ambar_mpi_say(status);
    word.bytes = invitation.len;
    word.counts = w->ranks > 1 && !(options && (options->placement == AMBAR_RESERVED ||
                                                (options->queue_bytes && options->placement != AMBAR_COUNTER)));
    if ((status = ambar_mpi_checked(MPI_Bcast(&word, sizeof word, MPI_BYTE, 0, w->comm)))) goto failed;
    if ((status = word.status)) {
        ambar_fail(status, word.text);
        goto failed;
    }
    if ((status = ambar_mpi_spread(w->comm, w->rank, &word, invitation.data, &bytes))) goto failed;
    if (w->rank != 0) {
        status = ambar_ranks_join(bytes, (size_t)word.bytes, (uint32_t)w->rank, &w->writer);
        free(bytes);
    }
    if ((status = ambar_mpi_agree(w->comm, status))) goto failed;
    if (word.counts && (status = ambar_mpi_count(w))) goto failed;
    if (w->rank == 0) ambar_bytes_free(invitation);
    return AMBAR_OK;
failed:
    if (invitation.data) ambar_bytes_free(invitation);
    ambar_mpi_close(w);
    return status;
}

/** Creates a store that all ranks of `comm` write. `path` and `options` (NULL for defaults) are those of rank 0. The store
 * appears under its name with the first commit. Collective.
 *
 * @return AMBAR_EXISTS if the file exists and options do not allow to overwrite it; AMBAR_INVALID for singletons under a
 * launcher of several processes. */
static inline int ambar_mpi_create(MPI_Comm comm, const char *path, const ambar_options *options, ambar_mpi_writer *w) {
    return ambar_mpi_start(comm, path, options, 0, w);
}

/** Opens the store at `path` for appending, on any number of ranks. Collective. */
static inline int ambar_mpi_append(MPI_Comm comm, const char *path, const ambar_options *options, ambar_mpi_writer *w) {
    return ambar_mpi_start(comm, path, options, 1, w);
}

/** Creates a decomposition of arrays of `shape` from the `n` blocks of each rank, with `ndim` numbers per block in `starts`
 * and `counts`. A rank may have no blocks (n = 0) or empty ones. Release it with ambar_blocks_free. Collective. */
static inline int ambar_mpi_blocks(MPI_Comm comm, int32_t ndim, const uint64_t *shape, int32_t n,
                                   const uint64_t *starts, const uint64_t *counts, ambar_blocks **blocks) {
    ambar_bytes own = {NULL, 0};
    uint64_t size, total = 0;
    uint64_t *sizes = NULL;
    int *lengths = NULL, *places = NULL;
    size_t *lens = NULL;
    uint8_t *all = NULL;
    const uint8_t **parts = NULL;
    int ranks, rank, status;
    *blocks = NULL;
    MPI_Comm_size(comm, &ranks);
    status = ambar_blocks_make(ndim, shape, n, starts, counts, &own);
    sizes = (uint64_t *)calloc((size_t)ranks, sizeof *sizes);
    lengths = (int *)calloc((size_t)ranks, 2 * sizeof *lengths);
    lens = (size_t *)calloc((size_t)ranks, sizeof *lens);
    parts = (const uint8_t **)calloc((size_t)ranks, sizeof *parts);
    if (!sizes || !lengths || !lens || !parts) status = ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the blocks of the ranks");
    if ((status = ambar_mpi_agree(comm, status))) goto end;
    places = lengths + ranks;
    size = own.len;
    status = ambar_mpi_checked(MPI_Allgather(&size, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, comm));
    if (status) goto end;
    for (rank = 0; rank < ranks; rank++) {
        places[rank] = (int)total;
        lengths[rank] = (int)sizes[rank];
        lens[rank] = (size_t)sizes[rank];
        total += sizes[rank];
        if (total > INT_MAX) break;
    }
    all = total > INT_MAX ? NULL : (uint8_t *)malloc((size_t)total + 1);
    if (!all) status = ambar_fail(AMBAR_LIMIT, "expected at most 2 GiB of encoded blocks, found more; use fewer blocks");
    if ((status = ambar_mpi_agree(comm, status))) goto end;
    status = ambar_mpi_checked(
        MPI_Allgatherv(own.data, (int)size, MPI_BYTE, all, lengths, places, MPI_BYTE, comm));
    if (status) goto end;
    for (rank = 0; rank < ranks; rank++) parts[rank] = all + places[rank];
    status = ambar_mpi_agree(comm, ambar_blocks_gather((uint32_t)ranks, parts, lens, blocks));
end:
    if (own.data) ambar_bytes_free(own);
    free(sizes), free(lengths), free(lens), free(parts), free(all);
    return status;
}

/** Replaces the lowest and the highest finite value on this rank by those of all ranks, for `ambar_spec.value_range`. A rank
 * without finite values passes {INFINITY, -INFINITY}. Example: `double range[2] = {lowest, highest};
 * ambar_mpi_value_range(comm, range); spec.error_bound = "1e-3 of range"; spec.value_range = range;` Collective. */
static inline int ambar_mpi_value_range(MPI_Comm comm, double range[2]) {
    int code;
    range[0] = -range[0];
    code = ambar_mpi_checked(MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_DOUBLE, MPI_MAX, comm));
    range[0] = -range[0];
    return code;
}

/** Defines an array of which each rank owns one block, with the lengths `count` from `start` on (zeros for none). For several
 * arrays with equal decompositions, or several blocks per rank, use ambar_mpi_blocks once and ambar_define for each array.
 * Collective. */
static inline int ambar_mpi_define(ambar_mpi_writer *w, const char *path, const ambar_spec *spec,
                                   const uint64_t *start, const uint64_t *count, ambar_array *array) {
    ambar_blocks *blocks;
    int status = ambar_mpi_blocks(w->comm, spec->ndim, spec->shape, 1, start, count, &blocks);
    if (status) return status;
    status = ambar_define(w->writer, path, spec, blocks, array);
    ambar_blocks_free(blocks);
    return ambar_mpi_agree(w->comm, status);
}

/** Begins the next step of the series at `series` ("": the root), which the next commit ends, and writes the path of its group,
 * such as step_000003, to `path`. Appending to a store continues the numbers of steps. Collective. */
static inline int ambar_mpi_begin_step(ambar_mpi_writer *w, const char *series, double time, char *path, size_t room) {
    ambar_mpi_word word;
    int status = AMBAR_OK;
    if (!w->writer) return ambar_fail(AMBAR_INVALID, "expected an open writer, found a closed one; create or append");
    if (w->rank == 0) status = ambar_begin_step(w->writer, series, time, path, room);
    word = ambar_mpi_say(status);
    if (w->rank == 0 && !status) {
        word.bytes = strlen(path);
        ambar_mpi_copy(word.text, sizeof word.text, path);
    }
    if ((status = ambar_mpi_checked(MPI_Bcast(&word, sizeof word, MPI_BYTE, 0, w->comm)))) return status;
    if (word.status) return ambar_fail(word.status, word.text);
    if (word.bytes >= sizeof word.text) status = ambar_fail(AMBAR_LIMIT, "expected a path of a step of at most 1023 bytes, found a longer one");
    if (word.bytes >= room) status = ambar_fail(AMBAR_INVALID, "expected a longer buffer for the path of the step; enlarge it");
    if (!status) ambar_mpi_copy(path, room, word.text);
    return ambar_mpi_agree(w->comm, status);
}

/* Starts to send or receive `bytes` bytes in pieces, and appends the requests to a list with sufficient room. */
static inline int ambar_mpi_move(MPI_Comm comm, int to_send, int peer, uint8_t *data, uint64_t bytes,
                                 MPI_Request *requests, int *count) {
    uint64_t done;
    for (done = 0; done < bytes; done += AMBAR_MPI_PIECE) {
        int length = ambar_mpi_length(bytes - done);
        MPI_Request *request = requests + (*count)++;
        int code = to_send ? MPI_Isend(data + done, length, MPI_BYTE, peer, AMBAR_MPI_TAG, comm, request)
                           : MPI_Irecv(data + done, length, MPI_BYTE, peer, AMBAR_MPI_TAG, comm, request);
        if (code != MPI_SUCCESS) {
            (*count)--;
            return ambar_mpi_checked(code);
        }
    }
    return AMBAR_OK;
}

/* Waits for all requests of a list. Some compilers warn about MPI_Waitall with MPI_STATUSES_IGNORE. */
static inline int ambar_mpi_wait(int count, MPI_Request *requests) {
    int at, status = AMBAR_OK;
    for (at = 0; at < count && !status; at++) status = ambar_mpi_checked(MPI_Wait(requests + at, MPI_STATUS_IGNORE));
    return status;
}

/* Exchanges values between all ranks: sends messages of `sizes[ranks..]` bytes, receives `sizes[..ranks]` bytes. */
static inline int ambar_mpi_deliver(ambar_mpi_writer *w, const ambar_bytes *messages, const uint64_t *sizes) {
    uint64_t incoming = 0, pieces = 0, place = 0;
    uint8_t *data;
    MPI_Request *requests;
    int count = 0, status = AMBAR_OK, peer;
    for (peer = 0; peer < w->ranks; peer++) {
        incoming += sizes[peer];
        pieces += ambar_mpi_pieces(sizes[peer]) + ambar_mpi_pieces(messages[peer].len);
    }
    data = (uint8_t *)malloc((size_t)incoming + 1);
    requests = (MPI_Request *)malloc(sizeof *requests * (size_t)(pieces + 1));
    if (!data || !requests) status = ambar_fail(AMBAR_LIMIT, "cannot allocate memory for values from other ranks");
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    for (peer = 0; peer < w->ranks && !status; peer++, place += sizes[peer - 1])
        status = ambar_mpi_move(w->comm, 0, peer, data + place, sizes[peer], requests, &count);
    for (peer = 0; peer < w->ranks && !status; peer++)
        status = ambar_mpi_move(w->comm, 1, peer, messages[peer].data, messages[peer].len, requests, &count);
    if (!status) status = ambar_mpi_wait(count, requests);
    /* The writer remembers the error of a message, and then fails to seal. */
    for (peer = 0, place = 0; peer < w->ranks && !status; place += sizes[peer], peer++)
        if (sizes[peer]) (void)ambar_ranks_receive(w->writer, (uint32_t)peer, data + place, (size_t)sizes[peer]);
end:
    free(data), free(requests);
    return status;
}

/* Sends values to the ranks that own their shards. Sends nothing if all messages are empty. Collective. */
static inline int ambar_mpi_exchange(ambar_mpi_writer *w) {
    size_t ranks = (size_t)w->ranks, peer;
    uint64_t total = 0;
    uint64_t *sizes = (uint64_t *)calloc(2 * ranks, sizeof *sizes);
    ambar_bytes *messages = (ambar_bytes *)calloc(ranks, sizeof *messages);
    int status = sizes && messages ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "cannot allocate memory for values of other ranks");
    for (peer = 0; peer < ranks && !status; peer++) {
        status = ambar_ranks_message_to(w->writer, (uint32_t)peer, messages + peer);
        total += sizes[ranks + peer] = messages[peer].len;
    }
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    status = ambar_mpi_checked(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_UINT64_T, MPI_MAX, w->comm));
    if (status || total == 0) goto end;
    status = ambar_mpi_checked(MPI_Alltoall(sizes + ranks, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, w->comm));
    if (!status) status = ambar_mpi_deliver(w, messages, sizes);
end:
    for (peer = 0; messages && peer < ranks; peer++)
        if (messages[peer].data) ambar_bytes_free(messages[peer]);
    free(sizes), free(messages);
    return status;
}

/* Gathers the bytes of all ranks on rank 0, consecutive in `all`, which the caller frees. Collective. */
static inline int ambar_mpi_gather(ambar_mpi_writer *w, ambar_bytes own, size_t *lens, uint8_t **all) {
    uint64_t size = own.len, total = 0, pieces = ambar_mpi_pieces(size), place = 0;
    uint64_t *sizes = w->rank == 0 ? (uint64_t *)calloc((size_t)w->ranks, sizeof *sizes) : NULL;
    MPI_Request *requests = NULL;
    int rank, count = 0;
    int status = sizes || w->rank ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the indices of the ranks");
    *all = NULL;
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    status = ambar_mpi_checked(MPI_Gather(&size, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, 0, w->comm));
    if (status) goto end;
    for (rank = 0; w->rank == 0 && rank < w->ranks; rank++) {
        lens[rank] = (size_t)sizes[rank];
        total += sizes[rank];
        pieces += ambar_mpi_pieces(sizes[rank]);
    }
    if (w->rank == 0) *all = (uint8_t *)malloc((size_t)total + 1);
    requests = (MPI_Request *)malloc(sizeof *requests * (size_t)(pieces + 1));
    if (!requests || (w->rank == 0 && !*all)) status = ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the indices of the ranks");
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    for (rank = 0; w->rank == 0 && rank < w->ranks && !status; place += sizes[rank], rank++)
        status = ambar_mpi_move(w->comm, 0, rank, *all + place, sizes[rank], requests, &count);
    if (!status) status = ambar_mpi_move(w->comm, 1, 0, own.data, size, requests, &count);
    if (!status) status = ambar_mpi_wait(count, requests);
end:
    free(sizes), free(requests);
    return status;
}

/* Commits on rank 0 what all ranks have sealed, or nothing, and distributes the outcome. */
static inline int ambar_mpi_conclude(ambar_mpi_writer *w, const uint8_t *const *indices, const size_t *lens,
                                     int status) {
    ambar_bytes outcome = {NULL, 0};
    ambar_mpi_word word;
    uint8_t *bytes = NULL;
    if (w->rank == 0 && !status) status = ambar_ranks_commit(w->writer, indices, lens, &outcome);
    word = ambar_mpi_say(status);
    word.bytes = outcome.len;
    if ((status = ambar_mpi_checked(MPI_Bcast(&word, sizeof word, MPI_BYTE, 0, w->comm)))) goto end;
    if ((status = word.status)) {
        ambar_fail(status, word.text);
        goto end;
    }
    if ((status = ambar_mpi_spread(w->comm, w->rank, &word, outcome.data, &bytes))) goto end;
    status = ambar_ranks_conclude(w->writer, bytes, (size_t)word.bytes);
    if (w->rank != 0) free(bytes);
end:
    if (outcome.data) ambar_bytes_free(outcome);
    return status;
}

/** Begins a commit of what all ranks have written: exchanges values between ranks, and returns while a thread of each rank
 * still encodes and writes (with `queue_bytes`; otherwise when they are written). Until ambar_mpi_commit_wait the program may
 * compute and communicate, but not call functions on the writer, except ambar_commit_test and ambar_mpi_close. A rank with an
 * error still calls ambar_mpi_commit_wait, which then fails on all ranks. Collective. */
static inline int ambar_mpi_commit_begin(ambar_mpi_writer *w) {
    int status;
    if (!w->writer) return ambar_fail(AMBAR_INVALID, "expected an open writer, found a closed one; create or append");
    if (w->failed) return ambar_fail(AMBAR_INVALID, "an earlier commit failed; close the writer and append");
    if (w->begun) return ambar_fail(AMBAR_INVALID, "a commit was begun already; call ambar_mpi_commit_wait");
    if ((status = ambar_mpi_exchange(w))) {
        w->failed = 1;
        return status;
    }
    w->begun = 1;
    /* The seal reports an error of this rank to all ranks. */
    (void)ambar_commit_begin(w->writer);
    return AMBAR_OK;
}

/** Ends the commit that ambar_mpi_commit_begin has begun: waits until the values of all ranks are on the disk, and makes them
 * visible. If one rank has failed, nothing is committed, and only ambar_mpi_close can follow. Arrays must be defined again for the
 * next commit. Values of ambar_write_borrowed may be reused when it has succeeded. Collective. */
static inline int ambar_mpi_commit_wait(ambar_mpi_writer *w) {
    ambar_bytes index = {NULL, 0};
    uint8_t *all = NULL;
    size_t *lens = NULL;
    const uint8_t **parts = NULL;
    size_t place = 0;
    int rank, status = AMBAR_OK;
    if (!w->begun) return ambar_fail(AMBAR_INVALID, "no commit was begun; call ambar_mpi_commit_begin before waiting");
    w->begun = 0;
    /* The bytes report a failure; without them rank 0 fails. */
    (void)ambar_ranks_seal(w->writer, &index);
    if (w->rank == 0) {
        lens = (size_t *)calloc((size_t)w->ranks, sizeof *lens);
        parts = (const uint8_t **)calloc((size_t)w->ranks, sizeof *parts);
        if (!lens || !parts) status = ambar_fail(AMBAR_LIMIT, "cannot allocate memory for the indices of the ranks");
    }
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    if ((status = ambar_mpi_gather(w, index, lens, &all))) goto end;
    for (rank = 0; w->rank == 0 && rank < w->ranks; place += lens[rank], rank++) parts[rank] = all + place;
    status = ambar_mpi_conclude(w, parts, lens, status);
end:
    if (index.data) ambar_bytes_free(index);
    free(lens), free(parts), free(all);
    w->failed = status != AMBAR_OK;
    return status;
}

/** Makes everything that all ranks have written since the last commit visible and durable: ambar_mpi_commit_begin and
 * ambar_mpi_commit_wait in one call. If one rank has failed, nothing is committed, and only ambar_mpi_close can follow. Arrays
 * must be defined again for the next commit. Collective. */
static inline int ambar_mpi_commit(ambar_mpi_writer *w) {
    int status = ambar_mpi_commit_begin(w);
    return status ? status : ambar_mpi_commit_wait(w);
}

#endif

/* Many MPI ranks write one store: the exchanges that the library, which knows no MPI, leaves to the caller.
 *
 * Compiled in the user's program, so that one libambar serves every MPI. C99 or C++. The life of a store:
 *
 *     ambar_mpi_create or ambar_mpi_append                 all ranks; options are those of rank 0
 *     ambar_mpi_blocks, then ambar_define on w.writer      all ranks, the same arrays in the same order
 *     ambar_write on w.writer                              each rank by itself, its own blocks
 *     ambar_mpi_commit                                     all ranks; readers see the arrays from here on
 *     ambar_mpi_close                                      all ranks
 *
 * Every function returns 0 (AMBAR_OK) or another ambar_status; ambar_last_error() says why. What all ranks call
 * returns on all of them, with a failure on all where it failed on one, and leaves the last commit as it was. A rank on
 * which ambar_define or ambar_write failed must go on to ambar_mpi_commit, which then fails on all, or call MPI_Abort.
 * A commit also fails on all where two ranks have defined an array differently.
 *
 * Calls for one writer come from one thread of a rank at a time; MPI_THREAD_SINGLE is enough.
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

/* One rank's end of a store that the ranks of a communicator write. Zero it, or have it filled by create or append. */
typedef struct {
    ambar_writer *writer; /* for ambar_group, ambar_define and ambar_write */
    MPI_Comm comm;        /* a duplicate of the caller's */
    MPI_Win *window;      /* of the counter that gives places; NULL where none is needed */
    int rank, ranks;
    int failed;           /* values were lost between ranks: nothing can be committed */
} ambar_mpi_writer;

/* Messages are sent in pieces of this many bytes at most: MPI counts with int. */
#ifndef AMBAR_MPI_PIECE
#define AMBAR_MPI_PIECE (1 << 30)
#endif

enum { AMBAR_MPI_TEXT = 1024, AMBAR_MPI_TAG = 1 };

/* What a rank says of an attempt: whether it failed and why; for rank 0, how many bytes follow. */
typedef struct {
    int32_t status, counts;
    uint64_t bytes;
    char text[AMBAR_MPI_TEXT];
} ambar_mpi_word;

static inline uint64_t ambar_mpi_pieces(uint64_t bytes) { return (bytes + AMBAR_MPI_PIECE - 1) / AMBAR_MPI_PIECE; }

static inline int ambar_mpi_length(uint64_t left) { return left < AMBAR_MPI_PIECE ? (int)left : AMBAR_MPI_PIECE; }

/* Copies as much of a text as there is room for. */
static inline void ambar_mpi_copy(char *to, size_t room, const char *from) {
    size_t length = strlen(from);
    if (length >= room) length = room - 1;
    memmove(to, from, length);
    to[length] = 0;
}

/* A call of MPI that failed, where the communicator's error handler lets it return. */
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

/* All ranks learn whether any has failed, and the first such rank's reason. Collective. */
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

/* Rank 0's bytes for all: `own` on rank 0, memory for the caller to free on the others. Collective. */
static inline int ambar_mpi_spread(MPI_Comm comm, int rank, const ambar_mpi_word *word, uint8_t *own, uint8_t **bytes) {
    uint64_t done;
    int code;
    *bytes = rank == 0 ? own : (uint8_t *)malloc(word->bytes ? (size_t)word->bytes : 1);
    code = *bytes || word->bytes == 0 ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "no memory for what rank 0 says");
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

/* A program of one MPI under another's mpirun becomes many singletons, all of which would write the same file. */
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
    /* Set by srun; SLURM_NTASKS would be that of the whole job, also for a step of one process. */
    if (!known && ambar_mpi_number("SLURM_STEP_NUM_TASKS") > 1) who = "SLURM_STEP_NUM_TASKS";
    if (!who) return AMBAR_OK;
    snprintf(text, sizeof text,
             "MPI_COMM_WORLD has 1 rank, but the launcher started %ld (%s): the program was built with another MPI "
             "than that of mpirun, and every process would write the file by itself; use one MPI for both",
             ambar_mpi_number(who), who);
    return ambar_fail(AMBAR_INVALID, text);
}

/* Adds to the counter that all ranks share; what ambar_ranks_counter asks for. */
static inline int ambar_mpi_reserve(void *context, uint64_t bytes, uint64_t *offset) {
    MPI_Win window = *(MPI_Win *)context;
    if (MPI_Fetch_and_op(&bytes, offset, MPI_UINT64_T, 0, 0, MPI_SUM, window) != MPI_SUCCESS) return AMBAR_IO;
    return MPI_Win_flush(0, window) == MPI_SUCCESS ? AMBAR_OK : AMBAR_IO;
}

/* Makes the counter, 0 at first, in rank 0's memory. Collective. */
static inline int ambar_mpi_count(ambar_mpi_writer *w) {
    uint64_t *counter = NULL;
    MPI_Aint bytes = w->rank == 0 ? (MPI_Aint)sizeof *counter : 0;
    int status = AMBAR_OK;
    MPI_Win *window = (MPI_Win *)malloc(sizeof *window);
    if (!window) status = ambar_fail(AMBAR_LIMIT, "no memory for the ranks' counter");
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

/* Ends this rank's part. What was not committed is lost. Collective; safe for a writer that failed to be made. */
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

/* What create and append have in common. */
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
    if (w->rank == 0) {
        uint32_t ranks = (uint32_t)w->ranks;
        status = append ? ambar_ranks_append(path, options, ranks, &w->writer, &invitation)
                        : ambar_ranks_create(path, options, ranks, &w->writer, &invitation);
    }
    word = ambar_mpi_say(status);
    word.bytes = invitation.len;
    word.counts = w->ranks > 1 && !(options && options->placement == AMBAR_RESERVED);
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

/* Creates a store that all ranks of `comm` write; `path` and `options` (NULL for defaults) count on rank 0. It appears
 * under its name with the first commit. Collective. AMBAR_BUSY where the file exists and is not to be overwritten;
 * AMBAR_INVALID for singletons under a launcher of many. */
static inline int ambar_mpi_create(MPI_Comm comm, const char *path, const ambar_options *options, ambar_mpi_writer *w) {
    return ambar_mpi_start(comm, path, options, 0, w);
}

/* Goes on with the store at `path`, on any number of ranks. Collective. */
static inline int ambar_mpi_append(MPI_Comm comm, const char *path, const ambar_options *options, ambar_mpi_writer *w) {
    return ambar_mpi_start(comm, path, options, 1, w);
}

/* Who holds what of arrays of `shape`: this rank's `n` blocks, `ndim` numbers each in `starts` and `counts`. No blocks
 * (n = 0) and empty ones are allowed. Give it back with ambar_blocks_free. Collective. */
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
    if (!sizes || !lengths || !lens || !parts) status = ambar_fail(AMBAR_LIMIT, "no memory for the ranks' blocks");
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
    if (!all) status = ambar_fail(AMBAR_LIMIT, "the ranks' blocks are too many: 2 GiB to describe them at most");
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

/* Declares an array of which each rank holds one block, from `start` on, `count` long (zeros for none). For several
 * arrays cut alike, and several blocks a rank: ambar_mpi_blocks once, then ambar_define for each. Collective. */
static inline int ambar_mpi_define(ambar_mpi_writer *w, const char *path, const ambar_spec *spec,
                                   const uint64_t *start, const uint64_t *count, ambar_array *array) {
    ambar_blocks *blocks;
    int status = ambar_mpi_blocks(w->comm, spec->ndim, spec->shape, 1, start, count, &blocks);
    if (status) return status;
    status = ambar_define(w->writer, path, spec, blocks, array);
    ambar_blocks_free(blocks);
    return ambar_mpi_agree(w->comm, status);
}

/* Begins the next step of the series at `series` ("": the root), which the next commit ends, and puts the path of its
 * group, such as step_000003, into `path`. Steps are counted on in a store that is appended to. Collective. */
static inline int ambar_mpi_begin_step(ambar_mpi_writer *w, const char *series, double time, char *path, size_t room) {
    ambar_mpi_word word;
    int status = AMBAR_OK;
    if (!w->writer) return ambar_fail(AMBAR_INVALID, "the writer is closed");
    if (w->rank == 0) status = ambar_begin_step(w->writer, series, time, path, room);
    word = ambar_mpi_say(status);
    if (w->rank == 0 && !status) {
        word.bytes = strlen(path);
        ambar_mpi_copy(word.text, sizeof word.text, path);
    }
    if ((status = ambar_mpi_checked(MPI_Bcast(&word, sizeof word, MPI_BYTE, 0, w->comm)))) return status;
    if (word.status) return ambar_fail(word.status, word.text);
    if (word.bytes >= sizeof word.text) status = ambar_fail(AMBAR_LIMIT, "the path of a step is 1023 bytes long at most");
    if (word.bytes >= room) status = ambar_fail(AMBAR_INVALID, "no room for the path of the step");
    if (!status) ambar_mpi_copy(path, room, word.text);
    return ambar_mpi_agree(w->comm, status);
}

/* Begins to send or to receive `bytes` bytes in pieces; requests go to the end of a list that has room for them. */
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

/* Waits for all of a list; some headers have compilers warn of MPI_Waitall with MPI_STATUSES_IGNORE. */
static inline int ambar_mpi_wait(int count, MPI_Request *requests) {
    int at, status = AMBAR_OK;
    for (at = 0; at < count && !status; at++) status = ambar_mpi_checked(MPI_Wait(requests + at, MPI_STATUS_IGNORE));
    return status;
}

/* Gives every rank what the others have for it: outboxes of `sizes[ranks..]` bytes go out, `sizes[..ranks]` come in. */
static inline int ambar_mpi_deliver(ambar_mpi_writer *w, const ambar_bytes *boxes, const uint64_t *sizes) {
    uint64_t incoming = 0, pieces = 0, place = 0;
    uint8_t *data;
    MPI_Request *requests;
    int count = 0, status = AMBAR_OK, peer;
    for (peer = 0; peer < w->ranks; peer++) {
        incoming += sizes[peer];
        pieces += ambar_mpi_pieces(sizes[peer]) + ambar_mpi_pieces(boxes[peer].len);
    }
    data = (uint8_t *)malloc((size_t)incoming + 1);
    requests = (MPI_Request *)malloc(sizeof *requests * (size_t)(pieces + 1));
    if (!data || !requests) status = ambar_fail(AMBAR_LIMIT, "no memory for values from other ranks");
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    for (peer = 0; peer < w->ranks && !status; peer++, place += sizes[peer - 1])
        status = ambar_mpi_move(w->comm, 0, peer, data + place, sizes[peer], requests, &count);
    for (peer = 0; peer < w->ranks && !status; peer++)
        status = ambar_mpi_move(w->comm, 1, peer, boxes[peer].data, boxes[peer].len, requests, &count);
    if (!status) status = ambar_mpi_wait(count, requests);
    /* What a box is refused for is remembered by the writer, which then refuses to seal. */
    for (peer = 0, place = 0; peer < w->ranks && !status; place += sizes[peer], peer++)
        if (sizes[peer]) (void)ambar_ranks_inbox(w->writer, (uint32_t)peer, data + place, (size_t)sizes[peer]);
end:
    free(data), free(requests);
    return status;
}

/* Values of shards that other ranks own go there. Nothing is sent where all boxes are empty. Collective. */
static inline int ambar_mpi_exchange(ambar_mpi_writer *w) {
    size_t ranks = (size_t)w->ranks, peer;
    uint64_t total = 0;
    uint64_t *sizes = (uint64_t *)calloc(2 * ranks, sizeof *sizes);
    ambar_bytes *boxes = (ambar_bytes *)calloc(ranks, sizeof *boxes);
    int status = sizes && boxes ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "no memory for values of other ranks");
    for (peer = 0; peer < ranks && !status; peer++) {
        status = ambar_ranks_outbox(w->writer, (uint32_t)peer, boxes + peer);
        total += sizes[ranks + peer] = boxes[peer].len;
    }
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    status = ambar_mpi_checked(MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_UINT64_T, MPI_MAX, w->comm));
    if (status || total == 0) goto end;
    status = ambar_mpi_checked(MPI_Alltoall(sizes + ranks, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, w->comm));
    if (!status) status = ambar_mpi_deliver(w, boxes, sizes);
end:
    for (peer = 0; boxes && peer < ranks; peer++)
        if (boxes[peer].data) ambar_bytes_free(boxes[peer]);
    free(sizes), free(boxes);
    return status;
}

/* Brings every rank's bytes to rank 0, which gets them one behind the other in `all`, to be freed. Collective. */
static inline int ambar_mpi_gather(ambar_mpi_writer *w, ambar_bytes own, size_t *lens, uint8_t **all) {
    uint64_t size = own.len, total = 0, pieces = ambar_mpi_pieces(size), place = 0;
    uint64_t *sizes = w->rank == 0 ? (uint64_t *)calloc((size_t)w->ranks, sizeof *sizes) : NULL;
    MPI_Request *requests = NULL;
    int rank, count = 0;
    int status = sizes || w->rank ? AMBAR_OK : ambar_fail(AMBAR_LIMIT, "no memory for the ranks' indices");
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
    if (!requests || (w->rank == 0 && !*all)) status = ambar_fail(AMBAR_LIMIT, "no memory for the ranks' indices");
    if ((status = ambar_mpi_agree(w->comm, status))) goto end;
    for (rank = 0; w->rank == 0 && rank < w->ranks && !status; place += sizes[rank], rank++)
        status = ambar_mpi_move(w->comm, 0, rank, *all + place, sizes[rank], requests, &count);
    if (!status) status = ambar_mpi_move(w->comm, 1, 0, own.data, size, requests, &count);
    if (!status) status = ambar_mpi_wait(count, requests);
end:
    free(sizes), free(requests);
    return status;
}

/* Rank 0 commits what all have sealed, or nothing, and all learn what became of it. */
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

/* Makes visible and durable what all ranks have written since the last commit: all of it or, where one rank has
 * failed, nothing; then only ambar_mpi_close is left. Arrays must be declared anew for the next. Collective. */
static inline int ambar_mpi_commit(ambar_mpi_writer *w) {
    ambar_bytes index = {NULL, 0};
    uint8_t *all = NULL;
    size_t *lens = NULL;
    const uint8_t **parts = NULL;
    size_t place = 0;
    int rank, status = AMBAR_OK;
    if (!w->writer) return ambar_fail(AMBAR_INVALID, "the writer is closed");
    if (w->failed) return ambar_fail(AMBAR_INVALID, "a commit has failed before; close the writer and append");
    if ((status = ambar_mpi_exchange(w))) goto end;
    /* A failure is in the bytes; without them rank 0 refuses. */
    (void)ambar_ranks_seal(w->writer, &index);
    if (w->rank == 0) {
        lens = (size_t *)calloc((size_t)w->ranks, sizeof *lens);
        parts = (const uint8_t **)calloc((size_t)w->ranks, sizeof *parts);
        if (!lens || !parts) status = ambar_fail(AMBAR_LIMIT, "no memory for the ranks' indices");
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

#endif

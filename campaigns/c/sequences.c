/* One random sequence of calls of the C API, compared with a model (model.h) of what the store must hold.
 *
 *     sequences <store> <seed>
 *
 * A sequence has several sessions. A session creates the store or appends to it, with one rank or with the ends of
 * several ranks in this process, and commits several times: arrays, groups, steps, a hierarchy of boxes, particles.
 * A quarter of the commits is spoiled by a wrong call and must fail. After each session the store is read and
 * compared with the model. Prints the number of calls and how many were refused; returns 1 after a wrong result.
 *
 * Every buffer has just the size that the header asks for, so that AddressSanitizer and valgrind see each access
 * beyond it. Wrong calls stay within what the header allows: pointers are NULL or valid.
 */
#include "model.h"

/* ---- Writing a region ---- */

/* Writes a region of `a`, with or without padding around its values in memory; returns the status. */
static int write_region(ambar_writer *w, ambar_array array, array_model *a, const uint64_t *start,
                        const uint64_t *count) {
    size_t values = values_in(count, a->ndim), size = a->size, at = 0;
    uint64_t index[8] = {0};
    int64_t strides[8] = {0};
    unsigned char *data, *first;
    int status, d, strided = chance(40);
    if (values == 0) return ambar_write(w, array, start, count, NULL);
    if (!strided) {
        data = memory(values * size);
        do {
            memcpy(data + at++ * size, a->data + place_of(start, index, a->shape, a->ndim) * size, size);
        } while (advance(index, count, a->ndim));
        status = ambar_write(w, array, start, count, data);
        free(data);
        return status;
    }
    /* Ghost cells in some dimensions; some dimensions backwards, or in another order. */
    size_t bytes = size, offset = 0;
    for (d = a->ndim - 1; d >= 0; d--) {
        uint64_t before = below(3), after = below(3);
        int backwards = chance(20);
        strides[d] = backwards ? -(int64_t)bytes : (int64_t)bytes;
        offset += bytes * (size_t)(before + (backwards ? count[d] - 1 : 0));
        bytes *= (size_t)(before + count[d] + after);
    }
    data = memory(bytes);
    memset(data, 0xa5, bytes);
    first = data + offset;
    do {
        unsigned char *to = first;
        for (d = 0; d < a->ndim; d++) to += (int64_t)index[d] * strides[d];
        memcpy(to, a->data + place_of(start, index, a->shape, a->ndim) * size, size);
    } while (advance(index, count, a->ndim));
    status = ambar_write_strided(w, array, start, count, first, strides);
    free(data);
    return status;
}

/* ---- Ranks, all in this process ---- */

static ambar_writer *writers[MOST_RANKS];
static int ranks;
static uint64_t counter;

static int32_t reserve(void *context, uint64_t bytes, uint64_t *offset) {
    *offset = *(uint64_t *)context;
    *(uint64_t *)context += bytes;
    return 0;
}

static void start_session(const char *path, int append) {
    ambar_bytes invitation;
    ambar_options options;
    int rank;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.overwrite = !append;
    options.no_fsync = chance(90);
    options.alignment = below(3) * 512;
    options.extent = chance(30) ? 1 + below(100000) : 0;
    options.threads = (int32_t)below(3);
    options.placement = (int32_t)below(3);
    ranks = chance(50) ? 1 : 2 + (int)below(MOST_RANKS - 1);
    counter = 0;
    if (ranks == 1 && chance(70)) {
        CHECK(append ? ambar_append(path, &options, &writers[0]) : ambar_create(path, &options, &writers[0]));
        return;
    }
    CHECK(append ? ambar_ranks_append(path, &options, (uint32_t)ranks, &writers[0], &invitation)
                 : ambar_ranks_create(path, &options, (uint32_t)ranks, &writers[0], &invitation));
    for (rank = 1; rank < ranks; rank++) {
        ambar_writer *none = NULL;
        REFUSED(ambar_ranks_join(invitation.data, invitation.len - 1 - below(invitation.len), (uint32_t)rank, &none));
        REFUSED(ambar_ranks_join(invitation.data, invitation.len, (uint32_t)(ranks + rank), &none));
        CHECK(ambar_ranks_join(invitation.data, invitation.len, (uint32_t)rank, &writers[rank]));
    }
    ambar_bytes_free(invitation);
    for (rank = 0; rank < ranks; rank++) CHECK(ambar_ranks_counter(writers[rank], reserve, &counter));
}

static void close_session(void) {
    int rank;
    for (rank = ranks - 1; rank >= 0; rank--) CHECK(ambar_close(writers[rank]));
}

/* Commits on all ranks. A spoiled commit fails on each of them. */
static void commit(int spoiled) {
    ambar_bytes bytes, indices[MOST_RANKS];
    const uint8_t *parts[MOST_RANKS];
    size_t lens[MOST_RANKS];
    int from, to, allowed = spoiled ? 3 : 1;
    if (ranks == 1 && chance(70)) {
        ended(ambar_commit(writers[0]), spoiled ? 2 : 1, "ambar_commit");
        return;
    }
    for (from = 0; from < ranks; from++)
        for (to = 0; to < ranks; to++) {
            if (to == from) continue;
            if (ended(ambar_ranks_message_to(writers[from], (uint32_t)to, &bytes), allowed, "ambar_ranks_message_to")) continue;
            ended(ambar_ranks_receive(writers[to], (uint32_t)from, bytes.data, bytes.len), allowed, "ambar_ranks_receive");
            ambar_bytes_free(bytes);
        }
    memset(indices, 0, sizeof indices);
    for (from = 0; from < ranks; from++) {
        ended(ambar_ranks_seal(writers[from], &indices[from]), allowed, "ambar_ranks_seal");
        parts[from] = indices[from].data, lens[from] = indices[from].len;
    }
    memset(&bytes, 0, sizeof bytes);
    ended(ambar_ranks_commit(writers[0], parts, lens, &bytes), allowed, "ambar_ranks_commit");
    for (from = 0; from < ranks; from++) {
        ended(ambar_ranks_conclude(writers[from], bytes.data, bytes.len), spoiled ? 2 : 1, "ambar_ranks_conclude");
        ambar_bytes_free(indices[from]);
    }
    ambar_bytes_free(bytes);
}

/* ---- Writing ---- */

typedef struct {
    int rank;
    uint64_t start[8], count[8];
} block;

/* Cuts an array along one dimension into blocks of ranks in turn or at random; returns how many. */
static int cut(const array_model *a, block *blocks) {
    int count = 0, d = (int)below((uint64_t)a->ndim);
    uint64_t at = 0;
    while (at < a->shape[d] && count < MOST_BLOCKS) {
        block *b = &blocks[count];
        uint64_t left = a->shape[d] - at, length = 1 + below(left);
        if (count == MOST_BLOCKS - 1) length = left;
        memset(b, 0, sizeof *b);
        memcpy(b->count, a->shape, sizeof b->count);
        b->start[d] = at, b->count[d] = length;
        b->rank = chance(50) ? count % ranks : (int)below((uint64_t)ranks);
        at += length, count++;
    }
    return count;
}

static ambar_blocks *gather(const array_model *a, const block *blocks, int count) {
    ambar_bytes bytes[MOST_RANKS];
    const uint8_t *parts[MOST_RANKS];
    size_t lens[MOST_RANKS];
    ambar_blocks *out = NULL;
    int rank, i;
    for (rank = 0; rank < ranks; rank++) {
        uint64_t *starts = memory(sizeof *starts * (size_t)(count * a->ndim));
        uint64_t *lengths = memory(sizeof *lengths * (size_t)(count * a->ndim));
        int own = 0;
        for (i = 0; i < count; i++) {
            if (blocks[i].rank != rank) continue;
            memcpy(starts + own * a->ndim, blocks[i].start, sizeof *starts * (size_t)a->ndim);
            memcpy(lengths + own * a->ndim, blocks[i].count, sizeof *starts * (size_t)a->ndim);
            own++;
        }
        CHECK(ambar_blocks_make(a->ndim, a->shape, own, starts, lengths, &bytes[rank]));
        if (own) {
            lengths[below((uint64_t)(own * a->ndim))] = UINT64_MAX - below(3);
            ambar_bytes none = {NULL, 0};
            EITHER(ambar_blocks_make(a->ndim, a->shape, own, starts, lengths, &none));
            ambar_bytes_free(none);
        }
        free(starts), free(lengths);
        parts[rank] = bytes[rank].data, lens[rank] = bytes[rank].len;
    }
    if (lens[0] > 0) {
        lens[0] -= 1 + below(lens[0]);
        EITHER(ambar_blocks_gather((uint32_t)ranks, parts, lens, &out));
        ambar_blocks_free(out);
        lens[0] = bytes[0].len;
    }
    CHECK(ambar_blocks_gather((uint32_t)ranks, parts, lens, &out));
    for (rank = 0; rank < ranks; rank++) ambar_bytes_free(bytes[rank]);
    return out;
}

static void describe(array_model *a, const char *within) {
    int d;
    memset(a, 0, sizeof *a);
    snprintf(a->path, sizeof a->path, "%s%sa%u", within, *within ? "/" : "", names++);
    a->type = (ambar_type)below(13);
    a->size = size_of_type(a->type);
    a->ndim = chance(5) ? 0 : chance(5) ? 8 : 1 + (int32_t)below(3);
    for (d = 0; d < a->ndim; d++)
        a->shape[d] = chance(3) ? 0 : 1 + below(a->ndim == 1 ? 20000 : a->ndim == 2 ? 150 : a->ndim == 3 ? 30 : 3);
    a->values = values_in(a->shape, a->ndim);
    if ((a->type == AMBAR_FLOAT32 || a->type == AMBAR_FLOAT64) && chance(40)) a->bound = chance(50) ? 1e-3 : 0.7;
    a->data = memory(a->values * a->size);
    fill(a->data, a->values, a->type, a->bound > 0);
}

/* Chooses codecs by a sample, which is the whole array; returns them as JSON. */
static char *chosen(const ambar_spec *spec, const array_model *a) {
    ambar_bytes json = {NULL, 0};
    char *text;
    CHECK(ambar_choose_codecs(spec, a->data, a->shape, &json));
    text = memory(json.len + 1);
    memcpy(text, json.data, json.len);
    text[json.len] = 0;
    ambar_bytes_free(json);
    return text;
}

/* Defines an array on all ranks and writes it, except for parts that are left out. */
static void write_array(const char *within, ambar_array *handles, block *last, int *last_rank) {
    array_model *a = &arrays[defined.arrays++];
    block blocks[MOST_BLOCKS];
    ambar_blocks *held = NULL;
    uint64_t chunks[8], index[8];
    unsigned char fill_value[16] = {0};
    char *codecs = NULL;
    ambar_spec spec;
    int count = 1, rank, i, d;
    describe(a, within);
    memset(&spec, 0, sizeof spec);
    spec.size = sizeof spec;
    spec.type = a->type, spec.ndim = a->ndim, spec.shape = a->shape, spec.error_bound = a->bound == 0 ? NULL : a->bound == 0.7 ? "0.7" : "1e-3";
    spec.profile = (int32_t)below(4), spec.predict = chance(30);
    if (chance(20)) spec.attributes = "{\"units\": \"cm\"}";
    if (chance(20) && a->ndim == 3) spec.dimension_names = "z, y, x";
    if (chance(30)) {
        for (d = 0; d < a->ndim; d++) chunks[d] = 1 + below(a->shape[d] + 2);
        /* Limits the number of chunks. */
        if (a->ndim > 0 && a->values > 0 && values_in(chunks, a->ndim) * 500 > a->values) spec.chunks = chunks;
    }
    if (chance(20) && a->values > 0 && a->bound == 0) spec.codecs = codecs = chosen(&spec, a);
    if (chance(30) && a->type <= AMBAR_FLOAT64) {
        fill(fill_value, 1, a->type, 1);
        spec.fill_value = fill_value;
    }
    memset(blocks, 0, sizeof blocks);
    memcpy(blocks[0].count, a->shape, sizeof a->shape);
    if (a->ndim > 0 && a->values > 0 && chance(ranks > 1 ? 80 : 20)) {
        count = cut(a, blocks);
        held = gather(a, blocks, count);
    }
    for (rank = 0; rank < ranks; rank++) CHECK(ambar_define(writers[rank], a->path, &spec, held, &handles[rank]));
    ambar_blocks_free(held);
    free(codecs);
    *last_rank = -1;
    for (i = 0; i < count; i++) {
        /* Writes in pieces along the first dimension. */
        block piece = blocks[i];
        uint64_t end = a->ndim ? blocks[i].start[0] + blocks[i].count[0] : 1, at = a->ndim ? blocks[i].start[0] : 0;
        while (at < end) {
            uint64_t length = chance(60) ? end - at : 1 + below(end - at);
            if (a->ndim) piece.start[0] = at, piece.count[0] = length;
            at += a->ndim ? length : 1;
            if (chance(92)) {
                CHECK(write_region(writers[piece.rank], handles[piece.rank], a, piece.start, piece.count));
                if (values_in(piece.count, a->ndim)) *last = piece, *last_rank = piece.rank;
                continue;
            }
            if (values_in(piece.count, a->ndim) == 0) continue;
            memset(index, 0, sizeof index);
            do {
                memcpy(a->data + place_of(piece.start, index, a->shape, a->ndim) * a->size, fill_value, a->size);
                a->unwritten++;
            } while (advance(index, piece.count, a->ndim));
        }
    }
}

static void write_group(void) {
    group_model *g = &groups[defined.groups++];
    char text[64];
    int rank;
    snprintf(g->path, sizeof g->path, "g%u", names++);
    g->number = (unsigned)below(1000000);
    snprintf(text, sizeof text, "{\"n\": %u}", chance(50) ? g->number : 7);
    for (rank = 0; rank < ranks; rank++) CHECK(ambar_group(writers[rank], g->path, text));
    snprintf(text, sizeof text, "{\"n\": %u}", g->number);
    for (rank = 0; rank < ranks; rank++) CHECK(ambar_set_attributes(writers[rank], g->path, text));
}

static size_t cells_of(const box_model *b) {
    return (size_t)((b->hi[0] - b->lo[0]) * (b->hi[1] - b->lo[1]) * (b->hi[2] - b->lo[2]));
}

/* Writes a field of a box, from memory with ghost cells around it. */
static int write_box(ambar_amr *amr, ambar_writer *w, const box_model *b, int ndim, ambar_type type, const int *where) {
    size_t size = size_of_type(type), bytes = size, offset = 0, cell = 0;
    int64_t strides[3], n[3], x, y, z;
    unsigned char *data;
    int d, status;
    for (d = 0; d < 3; d++) {
        int64_t ghosts = d < ndim ? (int64_t)below(3) : 0;
        int backwards = d < ndim && chance(15);
        n[d] = b->hi[d] - b->lo[d];
        strides[d] = backwards ? -(int64_t)bytes : (int64_t)bytes;
        offset += bytes * (size_t)(ghosts + (backwards ? n[d] - 1 : 0));
        bytes *= (size_t)(n[d] + 2 * ghosts);
    }
    data = memory(bytes);
    memset(data, 0xa5, bytes);
    for (z = 0; z < n[2]; z++)
        for (y = 0; y < n[1]; y++)
            for (x = 0; x < n[0]; x++)
                memcpy(data + offset + (x * strides[0] + y * strides[1] + z * strides[2]),
                       b->values[where[2]] + cell++ * size, size);
    status = ambar_amr_write(amr, w, where[0], where[1], where[2], data + offset, strides);
    free(data);
    return status;
}

/* A hierarchy of one or two levels whose boxes are cut along x; `broken` leaves a box out and returns 1. */
static int write_hierarchy(int broken) {
    static const char *const field_names[] = {"density", "pressure", "flag"};
    static const ambar_type types[] = {AMBAR_FLOAT64, AMBAR_FLOAT32, AMBAR_INT32};
    amr_model *m = &hierarchies[defined.hierarchies++];
    ambar_hierarchy h;
    ambar_field fields[MOST_FIELDS];
    ambar_amr *amr[MOST_RANKS];
    int64_t domains[12], corners[6 * MOST_BOXES];
    double sizes[6];
    int32_t ratios[6];
    uint32_t owners[MOST_BOXES];
    int level, d, f, all = 0, rank, i, index, missing;
    int32_t profile = (int32_t)below(4);
    memset(m, 0, sizeof *m);
    memset(&h, 0, sizeof h);
    memset(fields, 0, sizeof fields);
    snprintf(m->path, sizeof m->path, "h%u", names++);
    m->ndim = 1 + (int32_t)below(3), m->levels = 1 + (int32_t)below(2), m->fields = 1 + (int32_t)below(MOST_FIELDS);
    m->covered = (int32_t)below(3);
    for (level = 0; level < m->levels; level++) {
        int64_t at = 0, high = 0;
        for (d = 0; d < 3; d++) {
            int used = d < m->ndim;
            domains[6 * level + d] = 0;
            domains[6 * level + 3 + d] = !used ? 1 : level ? 2 * domains[3 + d] : 4 + (int64_t)below(20);
            sizes[3 * level + d] = used ? 1.0 / (double)domains[6 * level + 3 + d] : 1.0;
            ratios[3 * level + d] = used ? 2 : 1;
        }
        high = domains[6 * level + 3];
        if (level) at = 2 * (int64_t)below((uint64_t)high / 2 - 1), high = at + 2 * (1 + (int64_t)below((uint64_t)(high - at) / 2));
        while (at < high) {
            box_model *b = &m->box[all];
            int64_t left = (high - at) / 2, length = 2 * (1 + (int64_t)below((uint64_t)(left ? left : 1)));
            if (m->boxes[level] == MOST_BOXES / 2 - 1 || length > high - at) length = high - at;
            for (d = 0; d < 3; d++) b->lo[d] = domains[6 * level + d], b->hi[d] = domains[6 * level + 3 + d];
            b->lo[0] = at, b->hi[0] = at + length;
            memcpy(corners + 6 * all, b->lo, sizeof b->lo), memcpy(corners + 6 * all + 3, b->hi, sizeof b->hi);
            owners[all++] = (uint32_t)below((uint64_t)ranks);
            m->boxes[level]++, at += length;
        }
    }
    for (f = 0; f < m->fields; f++) {
        fields[f].size = sizeof fields[f];
        fields[f].name = field_names[f], fields[f].type = m->types[f] = types[f];
        if (types[f] != AMBAR_INT32 && chance(40)) fields[f].error_bound = "1e-2", m->bounds[f] = 1e-2;
        for (i = 0; i < all; i++) {
            m->box[i].values[f] = memory(cells_of(&m->box[i]) * size_of_type(types[f]));
            fill(m->box[i].values[f], cells_of(&m->box[i]), types[f], 1);
        }
    }
    h.size = sizeof h;
    h.ndim = m->ndim, h.levels = m->levels;
    for (d = 0; d < 3; d++) h.upper[d] = 1.0;
    h.domains = domains, h.cell_sizes = sizes, h.ratios = ratios, h.boxes = m->boxes, h.corners = corners, h.ranks = owners;
    for (rank = 0; rank < ranks; rank++)
        CHECK(ambar_amr_define(writers[rank], m->path, &h, m->fields, fields, profile, m->covered, &amr[rank]));
    missing = broken ? (int)below((uint64_t)all) : -1;
    for (f = 0; f < m->fields; f++)
        for (level = 0, i = 0; level < m->levels; level++)
            for (index = 0; index < m->boxes[level]; index++, i++) {
                int where[3] = {level, index, f};
                if (i == missing) continue;
                rank = (int)owners[i];
                CHECK(write_box(amr[rank], writers[rank], &m->box[i], m->ndim, m->types[f], where));
            }
    if (broken && chance(50)) {
        int64_t strides[3] = {0, 0, 0};
        double value = 1;
        rank = (int)owners[missing];
        REFUSED(ambar_amr_write(amr[rank], writers[rank], chance(50) ? m->levels : -1, 0, 0, &value, strides));
    }
    for (rank = 0; rank < ranks; rank++)
        ended(ambar_amr_end(amr[rank], writers[rank]), !broken ? 1 : (uint32_t)rank == owners[missing] ? 2 : 3,
              "ambar_amr_end");
    return broken;
}

/* A value of a particle, by its number. */
static double particle_value(const particles_model *p, uint64_t id, int column) {
    return (double)(mix(p->seed + 8 * id + (uint64_t)column) % 1000003) / 1000003.0;
}

static int write_particles(int broken) {
    static const char *const column_names[] = {"position_x", "position_y", "position_z", "mass", "id"};
    particles_model *p = &species[defined.species++];
    double lower[3] = {0, 0, 0};
    uint64_t counts[MOST_RANKS], first = 0, i;
    ambar_field columns[5];
    ambar_particles *made;
    int rank, c, count;
    int32_t profile = (int32_t)below(4);
    memset(p, 0, sizeof *p);
    memset(columns, 0, sizeof columns);
    snprintf(p->path, sizeof p->path, "p%u", names++);
    p->ndim = 1 + (int32_t)below(3), p->seed = next_random();
    count = p->ndim + 2;
    for (rank = 0; rank < ranks; rank++) p->count += counts[rank] = broken ? 9 : chance(15) ? 0 : below(3000);
    for (c = 0; c < count; c++) {
        columns[c].size = sizeof columns[c];
        columns[c].name = column_names[c < p->ndim ? c : c - p->ndim + 3];
        columns[c].type = c == count - 1 ? AMBAR_INT64 : AMBAR_FLOAT64;
    }
    for (rank = 0; rank < ranks; rank++) {
        uint64_t rows = counts[rank];
        size_t stride = 8 * (size_t)count;
        unsigned char *data = memory(rows * stride);
        CHECK(ambar_particles_define(writers[rank], p->path, counts, count, columns, profile, p->ndim, lower, 1.0, NULL, &made));
        for (i = 0; i < rows; i++) {
            int64_t id = (int64_t)(first + i);
            for (c = 0; c < count - 1; c++) {
                double value = particle_value(p, (uint64_t)id, c);
                memcpy(data + i * stride + 8 * (size_t)c, &value, 8);
            }
            memcpy(data + i * stride + 8 * (size_t)c, &id, 8);
        }
        for (c = broken; c < count; c++) {
            /* The values of a column begin within the row, so that the last one ends with the buffer. */
            CHECK(ambar_particles_write(made, writers[rank], c, rows ? data + 8 * (size_t)c : NULL, (int64_t)stride));
        }
        first += rows;
        ended(ambar_particles_end(made, writers[rank]), !broken ? 1 : rows ? 2 : 3, "ambar_particles_end");
        free(data);
    }
    return broken;
}

/* Spoils the commit of one rank with a wrong call. */
static void spoil(const ambar_array *handles, const block *last, int last_rank) {
    ambar_writer *w = writers[below((uint64_t)ranks)];
    uint64_t shape[9] = {3, 3, 3, 3, 3, 3, 3, 3, 3}, zero[8] = {0};
    unsigned char data[3 * 16] = {0};
    char text[64];
    double nothing[3] = {0, 0, 0};
    uint64_t counts[MOST_RANKS] = {1, 1, 1};
    ambar_particles *particles = NULL;
    ambar_amr *amr = NULL;
    ambar_array made;
    ambar_hierarchy h;
    ambar_spec spec;
    array_model *a = &arrays[defined.arrays - 1];
    memset(&spec, 0, sizeof spec);
    memset(&h, 0, sizeof h);
    h.size = sizeof h;
    spec.size = sizeof spec, spec.ndim = 1, spec.shape = shape, spec.type = AMBAR_INT8;
    switch (below(22)) {
    case 0: REFUSED(ambar_write(w, -1 - (int32_t)below(3), zero, shape, data)); break;
    case 1: REFUSED(ambar_write(w, INT32_MAX - (int32_t)below(3), zero, shape, data)); break;
    case 2: REFUSED(ambar_define(w, "wrong", NULL, NULL, &made)); break;
    case 3: REFUSED(ambar_define(w, NULL, &spec, NULL, &made)); break;
    case 4: REFUSED(ambar_define(w, "wrong", &spec, NULL, NULL)); break;
    case 5: spec.ndim = chance(50) ? 9 : -1; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 6: spec.type = chance(50) ? 13 : -1; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 7: spec.shape = NULL; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 8: spec.profile = 4; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 9: spec.type = AMBAR_FLOAT64, spec.error_bound = chance(50) ? "nan" : "1 of range"; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 10: spec.attributes = "[1]"; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 11: spec.codecs = chance(50) ? "[" : "[{\"name\": \"unknown\"}]"; REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 12: spec.size = below(8); REFUSED(ambar_define(w, "wrong", &spec, NULL, &made)); break;
    case 13: REFUSED(ambar_group(w, chance(50) ? NULL : "wrong", "{")); break;
    case 14: REFUSED(ambar_begin_step(w, "run", 1e9, text, below(20))); break;
    case 15: REFUSED(ambar_begin_step(w, "run", 1e9, NULL, sizeof text)); break;
    case 16: REFUSED(ambar_amr_define(w, "wrong", &h, 0, NULL, 0, 0, &amr)); break;
    case 17: REFUSED(ambar_amr_define(w, "wrong", NULL, 0, NULL, 0, 0, &amr)); break;
    case 18: REFUSED(ambar_particles_define(w, "wrong", counts, 0, NULL, 0, 3, nothing, 1.0, NULL, &particles)); break;
    case 19: REFUSED(ambar_ranks_receive(w, (uint32_t)ranks, data, 1 + below(sizeof data))); break;
    default: {
        /* A region off by one, or one that was written before; its values are within the caller's buffer. */
        block wrong;
        int d;
        if (last_rank < 0 || a->ndim == 0) {
            REFUSED(ambar_write(w, -1, zero, shape, data));
            break;
        }
        wrong = *last;
        d = (int)below((uint64_t)a->ndim);
        if (chance(50)) {
            unsigned char *values = memory(values_in(wrong.count, a->ndim) * a->size);
            memset(values, 0, values_in(wrong.count, a->ndim) * a->size);
            wrong.start[d] = chance(50) ? a->shape[d] - wrong.count[d] + 1 : UINT64_MAX - below(2);
            REFUSED(ambar_write(writers[last_rank], handles[last_rank], wrong.start, wrong.count, values));
            free(values);
        } else {
            /* Another rank may detect the error. */
            EITHER(write_region(writers[last_rank], handles[last_rank], a, wrong.start, wrong.count));
        }
    }
    }
}

static void spoiled_calls(void) {
    char text[64];
    ambar_array made;
    EITHER(ambar_group(writers[0], "more", NULL));
    EITHER(ambar_define(writers[0], "more", NULL, NULL, &made));
    EITHER(ambar_begin_step(writers[0], "more", 0, text, sizeof text));
}

/* One commit; returns 0 if it was spoiled, after which the writers can only be closed. */
static int write_commit(unsigned percent_spoiled) {
    ambar_array handles[MOST_RANKS] = {-1, -1, -1};
    block last;
    char step[64] = "";
    int i, count = 1 + (int)below(3), last_rank = -1, spoiled = chance(percent_spoiled), by_end = 0;
    if (chance(30)) {
        CHECK(ambar_begin_step(writers[0], "run", steps, step, sizeof step));
    }
    if (chance(40)) write_group();
    if (chance(25)) by_end |= write_hierarchy(spoiled && chance(30));
    if (!by_end && chance(25)) by_end |= write_particles(spoiled && chance(30));
    for (i = 0; i < count && !by_end; i++) write_array(step, handles, &last, &last_rank);
    if (spoiled && !by_end) spoil(handles, &last, last_rank);
    if (spoiled && chance(50)) spoiled_calls();
    if (spoiled && chance(20)) return 0;
    commit(spoiled);
    if (spoiled) return 0;
    steps += *step != 0;
    committed = defined;
    return 1;
}

/* ---- Reading ---- */

static void compare(const array_model *a, const unsigned char *found, const uint64_t *start, const uint64_t *count) {
    uint64_t index[8] = {0};
    size_t at = 0;
    if (values_in(count, a->ndim) == 0) return;
    do {
        size_t place = place_of(start, index, a->shape, a->ndim);
        if (!is_equal(found + at++ * a->size, a->data + place * a->size, a->type, a->bound)) fail(a->path, "another value");
    } while (advance(index, count, a->ndim));
}

/* Reads into a buffer between guards; returns the values, to be freed with `end_read`. */
static unsigned char *read_guarded(const ambar_store *s, const char *path, const uint64_t *start, const uint64_t *count,
                                   size_t bytes) {
    unsigned char *buffer = memory(bytes + 2 * GUARD);
    size_t i;
    memset(buffer, 0x5a, bytes + 2 * GUARD);
    CHECK(ambar_read(s, path, start, count, buffer + GUARD, bytes, (int32_t)below(3)));
    for (i = 0; i < GUARD; i++)
        if (buffer[i] != 0x5a || buffer[GUARD + bytes + i] != 0x5a) fail(path, "written outside of the caller's buffer");
    return buffer + GUARD;
}

static void end_read(unsigned char *values) { free(values - GUARD); }

static void read_array(const ambar_store *s, const array_model *a) {
    uint64_t start[8] = {0}, count[8] = {0};
    size_t bytes = a->values * a->size;
    ambar_array_info info;
    ambar_bytes json;
    unsigned char *found;
    int i, d;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    CHECK(ambar_info(s, a->path, &info));
    if (info.type != a->type || info.ndim != a->ndim || (a->bound == 0 ? strcmp(info.error_bound, "lossless") != 0 : atof(info.error_bound) != a->bound)) fail(a->path, "another description");
    for (d = 0; d < a->ndim; d++)
        if (info.shape[d] != a->shape[d]) fail(a->path, "another shape");
    if (info.unwritten_values != a->unwritten) fail(a->path, "another number of values that were not written");
    found = read_guarded(s, a->path, start, a->shape, bytes);
    compare(a, found, start, a->shape);
    end_read(found);
    for (i = 0; i < 3; i++) {
        for (d = 0; d < a->ndim; d++) start[d] = below(a->shape[d] + 1), count[d] = below(a->shape[d] - start[d] + 1);
        bytes = values_in(count, a->ndim) * a->size;
        found = read_guarded(s, a->path, start, count, bytes);
        compare(a, found, start, count);
        REFUSED(ambar_read(s, a->path, start, count, found, bytes + 1, 1));
        if (bytes) REFUSED(ambar_read(s, a->path, start, count, found, bytes - 1, 1));
        if (bytes) REFUSED(ambar_read(s, a->path, start, count, NULL, bytes, 1));
        if (bytes) {
            d = (int)below((uint64_t)(a->ndim ? a->ndim : 1));
            start[d] = chance(50) ? a->shape[d] - count[d] + 1 : UINT64_MAX - below(2);
            if (a->ndim) REFUSED(ambar_read(s, a->path, start, count, found, bytes, (int32_t)below(2)));
        }
        end_read(found);
    }
    CHECK(ambar_attributes(s, a->path, &json));
    ambar_bytes_free(json);
}

static void read_group(const ambar_store *s, const group_model *g) {
    char expected[32], *text;
    ambar_bytes json;
    snprintf(expected, sizeof expected, "\"n\":%u", g->number);
    CHECK(ambar_attributes(s, g->path, &json));
    text = memory(json.len + 1);
    memcpy(text, json.data, json.len), text[json.len] = 0;
    if (!strstr(text, expected)) fail(g->path, text);
    free(text);
    ambar_bytes_free(json);
}

/* Whether a cell of the coarse level is below a box of the next one. */
static int is_covered(const amr_model *m, int level, const int64_t *cell) {
    int i;
    if (level + 1 == m->levels) return 0;
    for (i = m->boxes[0]; i < m->boxes[0] + m->boxes[1]; i++) {
        const box_model *b = &m->box[i];
        int d, within = 1;
        for (d = 0; d < m->ndim; d++) within &= 2 * cell[d] >= b->lo[d] && 2 * cell[d] < b->hi[d];
        if (within) return 1;
    }
    return 0;
}

static void read_level(const ambar_store *s, const amr_model *m, int level, int first_box) {
    static const char *const field_names[] = {"density", "pressure", "flag"};
    char path[96];
    uint64_t zero[8] = {0}, n;
    ambar_array_info info;
    unsigned char *origins;
    int f, d;
    snprintf(path, sizeof path, "%s/level_%d/origin", m->path, level);
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    CHECK(ambar_info(s, path, &info));
    n = info.shape[0];
    origins = read_guarded(s, path, zero, info.shape, n * (size_t)m->ndim * 8);
    for (f = 0; f < m->fields; f++) {
        size_t size = size_of_type(m->types[f]), cells = 0, expected = 0, at = 0;
        uint64_t index[8] = {0};
        unsigned char *found;
        int i;
        snprintf(path, sizeof path, "%s/level_%d/%s", m->path, level, field_names[f]);
        CHECK(ambar_info(s, path, &info));
        if (info.ndim != m->ndim + 1 || info.shape[0] != n || info.type != m->types[f]) fail(path, "another description");
        found = read_guarded(s, path, zero, info.shape, values_in(info.shape, info.ndim) * size);
        if (n) do {
            int64_t cell[3] = {0, 0, 0};
            for (d = 0; d < m->ndim; d++) {
                memcpy(&cell[d], origins + (index[0] * (uint64_t)m->ndim + (uint64_t)d) * 8, 8);
                cell[d] += (int64_t)index[m->ndim - d];
            }
            for (i = first_box; i < first_box + m->boxes[level]; i++) {
                const box_model *b = &m->box[i];
                int within = 1;
                size_t place = 0;
                for (d = 2; d >= 0; d--) {
                    within &= cell[d] >= b->lo[d] && cell[d] < b->hi[d];
                    place = place * (size_t)(b->hi[d] - b->lo[d]) + (size_t)(cell[d] - b->lo[d]);
                }
                if (!within || (m->covered != AMBAR_COVERED_KEEP && is_covered(m, level, cell))) continue;
                cells++;
                if (!is_equal(found + at * size, b->values[f] + place * size, m->types[f], m->bounds[f])) fail(path, "another value");
            }
            at++;
        } while (advance(index, info.shape, info.ndim));
        for (i = first_box; i < first_box + m->boxes[level]; i++) {
            const box_model *b = &m->box[i];
            int64_t cell[3];
            for (cell[2] = b->lo[2]; cell[2] < b->hi[2]; cell[2]++)
                for (cell[1] = b->lo[1]; cell[1] < b->hi[1]; cell[1]++)
                    for (cell[0] = b->lo[0]; cell[0] < b->hi[0]; cell[0]++)
                        expected += m->covered == AMBAR_COVERED_KEEP || !is_covered(m, level, cell);
        }
        if (cells != expected) fail(path, "another number of cells");
        end_read(found);
    }
    end_read(origins);
}

static void read_particles(const ambar_store *s, const particles_model *p) {
    static const char *const column_names[] = {"position_x", "position_y", "position_z", "mass"};
    char path[96];
    uint64_t zero[1] = {0}, i;
    unsigned char *ids, *seen = memory(p->count);
    int c;
    memset(seen, 0, p->count);
    snprintf(path, sizeof path, "%s/id", p->path);
    ids = read_guarded(s, path, zero, &p->count, p->count * 8);
    for (c = 0; c < p->ndim + 1; c++) {
        unsigned char *found;
        snprintf(path, sizeof path, "%s/%s", p->path, column_names[c < p->ndim ? c : 3]);
        found = read_guarded(s, path, zero, &p->count, p->count * 8);
        for (i = 0; i < p->count; i++) {
            uint64_t id;
            double value, expected;
            memcpy(&id, ids + 8 * i, 8), memcpy(&value, found + 8 * i, 8);
            if (id >= p->count || seen[id] != c) fail(path, "a particle is missing or there twice");
            seen[id]++;
            expected = particle_value(p, id, c);
            if (memcmp(&value, &expected, 8) != 0) fail(path, "another value");
        }
        end_read(found);
    }
    end_read(ids);
    free(seen);
}

static void read_store(const char *path) {
    ambar_store *s = NULL;
    ambar_bytes json = {NULL, 0};
    uint64_t zero[8] = {0};
    unsigned char byte;
    int i;
    if (!steps && !committed.arrays && !committed.groups && !committed.hierarchies && !committed.species) {
        REFUSED(ambar_open(path, &s));
        return;
    }
    CHECK(ambar_open(path, &s));
    for (i = 0; i < committed.arrays; i++) read_array(s, &arrays[i]);
    for (i = 0; i < committed.groups; i++) read_group(s, &groups[i]);
    for (i = 0; i < committed.hierarchies; i++) {
        read_level(s, &hierarchies[i], 0, 0);
        if (hierarchies[i].levels > 1) read_level(s, &hierarchies[i], 1, hierarchies[i].boxes[0]);
    }
    for (i = 0; i < committed.species; i++) read_particles(s, &species[i]);
    CHECK(ambar_list(s, "", &json));
    ambar_bytes_free(json);
    REFUSED(ambar_read(s, "missing", zero, zero, &byte, 1, 1));
    REFUSED(ambar_read(s, NULL, zero, zero, &byte, 1, 1));
    REFUSED(ambar_attributes(s, "missing", &json));
    REFUSED(ambar_list(s, "missing", &json));
    REFUSED(ambar_list(s, "", NULL));
    REFUSED(ambar_info(s, "missing", NULL));
    ambar_store_free(s);
}

/* Calls without an object. */
static void wrong_calls(const char *path) {
    ambar_writer *w = NULL;
    ambar_bytes bytes = {NULL, 0};
    ambar_blocks *blocks = NULL;
    ambar_array array;
    char text[64];
    uint8_t noise[40];
    uint64_t shape[1] = {4};
    size_t i;
    for (i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)next_random();
    REFUSED(ambar_create(NULL, NULL, &w));
    REFUSED(ambar_create(path, NULL, NULL));
    REFUSED(ambar_append(path, NULL, NULL));
    REFUSED(ambar_open(path, NULL));
    REFUSED(ambar_ranks_create(path, NULL, 0, &w, &bytes));
    REFUSED(ambar_ranks_create(path, NULL, 2, &w, NULL));
    REFUSED(ambar_ranks_join(NULL, 9, 1, &w));
    REFUSED(ambar_ranks_join(noise, below(sizeof noise + 1), 1, &w));
    REFUSED(ambar_group(NULL, "g", NULL));
    REFUSED(ambar_define(NULL, "a", NULL, NULL, &array));
    REFUSED(ambar_write(NULL, 0, shape, shape, noise));
    REFUSED(ambar_begin_step(NULL, "", 0, text, sizeof text));
    REFUSED(ambar_commit(NULL));
    REFUSED(ambar_ranks_seal(NULL, &bytes));
    REFUSED(ambar_read(NULL, "a", shape, shape, noise, 4, 1));
    REFUSED(ambar_list(NULL, "", &bytes));
    REFUSED(ambar_choose_codecs(NULL, noise, shape, &bytes));
    REFUSED(ambar_amr_choose(3, NULL, AMBAR_FLOAT64, 0, noise, NULL, &bytes));
    REFUSED(ambar_blocks_make(1, shape, -1, shape, shape, &bytes));
    REFUSED(ambar_blocks_make(1, NULL, 0, NULL, NULL, &bytes));
    {
        const uint8_t *parts[1] = {noise};
        size_t lens[1] = {below(sizeof noise + 1)};
        EITHER(ambar_blocks_gather(1, parts, lens, &blocks));
        ambar_blocks_free(blocks);
        blocks = NULL;
    }
    REFUSED(ambar_blocks_gather(0, NULL, NULL, &blocks));
    CHECK(ambar_close(NULL));
    CHECK(ambar_amr_end(NULL, NULL));
    CHECK(ambar_particles_end(NULL, NULL));
    ambar_store_free(NULL);
    ambar_blocks_free(NULL);
    ambar_bytes_free(bytes);
}

int main(int argc, char **argv) {
    int session, sessions, exists = 0;
    if (argc != 3) return 9;
    state = mix(strtoull(argv[2], NULL, 10) + 1);
    sessions = 1 + (int)below(3);
    for (session = 0; session < sessions; session++) {
        int commits = 1 + (int)below(3), append = exists && chance(80);
        unsigned percent_spoiled = 25;
        start_session(argv[1], append);
        if (!append) {
            /* A store that replaces another one contains none of its data after the commit. */
            if (exists && chance(50)) {
                close_session();
                read_store(argv[1]);
                continue;
            }
            if (exists) {
                percent_spoiled = 0;
                forget_from(0, 0);
                memset(&committed, 0, sizeof committed), memset(&defined, 0, sizeof defined);
                steps = 0, commits = 1;
            }
        }
        while (commits-- > 0) {
            if (!write_commit(percent_spoiled)) {
                forget_from(committed.arrays, committed.hierarchies);
                defined = committed;
                break;
            }
            exists = 1;
        }
        close_session();
        if (exists) read_store(argv[1]);
        if (chance(50)) wrong_calls(argv[1]);
    }
    forget_from(0, 0);
    printf("%lu %lu\n", calls, refusals);
    return 0;
}

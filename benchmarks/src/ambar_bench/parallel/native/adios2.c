/* ADIOS2: BP5's folder of files, uncompressed. */
#include <adios2_c.h>
#include <stdio.h>
#include <sys/stat.h>

#include "study.h"

static void require(adios2_error code, const job *j) {
    if (code != adios2_error_none) fail("%s: ADIOS2's error %d", j->path, (int)code);
}

static adios2_adios *begin(const job *j, adios2_io **io) {
    adios2_adios *adios = adios2_init_mpi(j->comm);
    if (!adios) fail("ADIOS2 does not begin");
    *io = adios2_declare_io(adios, "study");
    if (!*io) fail("%s: no IO", j->path);
    require(adios2_set_engine(*io, "BP5"), j);
    return adios;
}

/* ADIOS2 does not call fsync: the files of its folder are few, and each rank waits for them all. */
static void sync_folder(const job *j) {
    static const char *const whole[] = {"md.idx", "md.0", "mmd.0"};
    char name[4096];
    struct stat found;
    MPI_Barrier(j->comm);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        snprintf(name, sizeof name, "%s/%s", j->path, whole[i]);
        if (stat(name, &found) == 0) sync_file(name);
    }
    for (int i = 0; i < j->ranks; i++) {
        snprintf(name, sizeof name, "%s/data.%d", j->path, i);
        if (stat(name, &found) == 0) sync_file(name);
    }
}

static void bp5_write(const job *j) {
    adios2_io *io;
    adios2_adios *adios = begin(j, &io);
    size_t shape = j->doubles, start = j->start, count = j->count;
    adios2_variable *variable =
        adios2_define_variable(io, "values", adios2_type_double, 1, &shape, &start, &count,
                               adios2_constant_dims_true);
    adios2_engine *engine = adios2_open(io, j->path, adios2_mode_write);
    if (!variable || !engine) fail("%s: not created", j->path);
    adios2_step_status status;
    require(adios2_begin_step(engine, adios2_step_mode_append, -1.0f, &status), j);
    require(adios2_put(engine, variable, j->values, adios2_mode_deferred), j);
    require(adios2_end_step(engine), j);
    require(adios2_close(engine), j);
    require(adios2_finalize(adios), j);
    sync_folder(j);
}

static void bp5_read(const job *j) {
    adios2_io *io;
    adios2_adios *adios = begin(j, &io);
    adios2_engine *engine = adios2_open(io, j->path, adios2_mode_readRandomAccess);
    if (!engine) fail("%s: not opened", j->path);
    adios2_variable *variable = adios2_inquire_variable(io, "values");
    if (!variable) fail("%s: has no values", j->path);
    size_t start = j->start, count = j->count;
    require(adios2_set_selection(variable, 1, &start, &count), j);
    require(adios2_get(engine, variable, j->values, adios2_mode_sync), j);
    require(adios2_close(engine), j);
    require(adios2_finalize(adios), j);
}

const version versions[] = {
    {"adios2", bp5_write, bp5_read},
    {NULL, NULL, NULL},
};

void name_library(char *text, size_t room) { snprintf(text, room, "%s", ADIOS2_VERSION_STR); }

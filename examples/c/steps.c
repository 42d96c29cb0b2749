/* Prints the steps of a series, and of each step its arrays with their dimensions, codecs and largest value.
 *
 *     cc steps.c $(pkg-config --cflags --libs ambar) && ./a.out run.ambar
 */
#include <ambar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status) {
    if (status == AMBAR_OK) return;
    fprintf(stderr, "status %d: %s\n", status, ambar_last_error());
    exit(1);
}

/* The largest value of an array of float64. */
static double largest(const ambar_store *store, const char *path, const ambar_array_info *info) {
    uint64_t start[8] = {0}, values = 1;
    for (int d = 0; d < info->ndim; d++) values *= info->shape[d];
    double *all = malloc(values * sizeof *all + 1), most = values ? -1e308 : 0;
    check(ambar_read(store, path, start, info->shape, all, values * sizeof *all, 0));
    for (uint64_t at = 0; at < values; at++) most = all[at] > most ? all[at] : most;
    free(all);
    return most;
}

static void print_array(const ambar_store *store, const char *path) {
    ambar_bytes names, codecs, units = {NULL, 0};
    ambar_array_info info = {0};
    info.size = sizeof info;
    check(ambar_info(store, path, &info));
    check(ambar_dimension_names(store, path, &names));
    check(ambar_codecs(store, path, &codecs));
    printf("  %s (%s), %s", path, (char *)names.data, (char *)codecs.data);
    if (ambar_attribute_text(store, path, "units", &units) == AMBAR_OK) printf(", in %s", (char *)units.data);
    if (info.type == AMBAR_FLOAT64) printf(", at most %g", largest(store, path, &info));
    puts("");
    ambar_bytes_free(names), ambar_bytes_free(codecs), ambar_bytes_free(units);
}

int main(int argc, char **argv) {
    ambar_store *store;
    uint64_t steps, children;
    if (argc != 2) return 2;
    check(ambar_open(argv[1], &store));
    check(ambar_step_count(store, "", &steps));
    for (uint64_t step = 0; step < steps; step++) {
        char group[64], path[512];
        double time;
        ambar_bytes names, kinds;
        check(ambar_step(store, "", step, &time, group, sizeof group));
        printf("%s at %g\n", group, time);
        check(ambar_children(store, group, &children, &names, &kinds));
        const char *name = (const char *)names.data;
        for (uint64_t child = 0; child < children; child++, name += strlen(name) + 1) {
            snprintf(path, sizeof path, "%s/%s", group, name);
            if (kinds.data[child] == 'a') print_array(store, path);
        }
        ambar_bytes_free(names), ambar_bytes_free(kinds);
    }
    ambar_store_free(store);
    return 0;
}

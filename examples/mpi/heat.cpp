// The heat equation on a square, by any number of MPI ranks, its steps in one store.
//
//     mpirun -n 4 ./heat heat.ambar 5 256    5 steps of 256 x 256 cells; where the store is there, 5 more
//
// It resumes after the last committed step, on any number of ranks.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ambar_mpi.h"

namespace {

const int ITERATIONS = 20;   // between two steps that are written
const double RATE = 0.2;     // of diffusion, in units of cells and iterations

void check(int status) {
    if (status == AMBAR_OK) return;
    std::fprintf(stderr, "ambar: %s\n", ambar_last_error());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// This rank's rows of the square, with a row and a column of ghost cells on each side.
struct Rows {
    uint64_t n, first, count;
    int above, below;
    std::vector<double> now, next;

    Rows(uint64_t cells, int rank, int ranks)
        : n(cells), first(begin_of(rank, ranks)), count(begin_of(rank + 1, ranks) - first),
          above(rank > 0 ? rank - 1 : MPI_PROC_NULL), below(rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL),
          now((count + 2) * (n + 2)), next(now.size()) {}

    // The first row of a rank.
    uint64_t begin_of(int rank, int ranks) const { return n * static_cast<uint64_t>(rank) / static_cast<uint64_t>(ranks); }

    double *cell(uint64_t row, uint64_t column) { return &now[(row + 1) * (n + 2) + column + 1]; }

    // A hot square in the middle.
    void begin() {
        for (uint64_t row = 0; row < count; row++)
            for (uint64_t column = n / 4; column < 3 * n / 4; column++)
                if (first + row >= n / 4 && first + row < 3 * n / 4) *cell(row, column) = 1;
    }

    void iterate() {
        const uint64_t width = n + 2;
        const int row_length = static_cast<int>(width);
        MPI_Sendrecv(&now[width], row_length, MPI_DOUBLE, above, 0, &now[(count + 1) * width], row_length, MPI_DOUBLE, below, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now[count * width], row_length, MPI_DOUBLE, below, 1, &now[0], row_length, MPI_DOUBLE, above, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (uint64_t row = 1; row <= count; row++)
            for (uint64_t at = row * width + 1; at <= row * width + n; at++)
                next[at] = now[at] + RATE * (now[at - 1] + now[at + 1] + now[at - width] + now[at + width] - 4 * now[at]);
        now.swap(next);
    }
};

// The number of steps in the store; the last one's values become the rank's.
int resume(const char *path, Rows &rows) {
    ambar_store *store = nullptr;
    int steps = 0;
    if (ambar_open(path, &store) != AMBAR_OK) return 0;
    ambar_array_info info = {};
    info.size = sizeof info;
    char name[64];
    for (;; steps++) {
        std::snprintf(name, sizeof name, "step_%06d/temperature", steps);
        if (ambar_info(store, name, &info) != AMBAR_OK) break;
    }
    if (steps > 0) {
        std::snprintf(name, sizeof name, "step_%06d/temperature", steps - 1);
        const uint64_t start[] = {rows.first, 0}, count[] = {rows.count, rows.n};
        std::vector<double> own(rows.count * rows.n);
        check(ambar_read(store, name, start, count, own.data(), own.size() * sizeof(double), 1));
        for (uint64_t row = 0; row < rows.count; row++)
            for (uint64_t column = 0; column < rows.n; column++) *rows.cell(row, column) = own[row * rows.n + column];
    }
    ambar_store_free(store);
    return steps;
}

void write_step(ambar_mpi_writer &writer, Rows &rows, double time) {
    char group[256];
    check(ambar_mpi_begin_step(&writer, "", time, group, sizeof group));
    const uint64_t shape[] = {rows.n, rows.n}, start[] = {rows.first, 0}, count[] = {rows.count, rows.n};
    ambar_spec spec = {};
    spec.size = sizeof spec;
    spec.type = AMBAR_FLOAT64;
    spec.dimension_names = "y,x";
    spec.attributes = "{\"units\": \"K\"}";
    spec.ndim = 2;
    spec.shape = shape;
    ambar_array temperature;
    const std::string name = std::string(group) + "/temperature";
    check(ambar_mpi_define(&writer, name.c_str(), &spec, start, count, &temperature));
    // Without the ghost cells: rows lie n + 2 values apart.
    const int64_t strides[] = {static_cast<int64_t>((rows.n + 2) * sizeof(double)), sizeof(double)};
    check(ambar_write_strided(writer.writer, temperature, start, count, rows.cell(0, 0), strides));
    check(ambar_mpi_commit(&writer));
}

}  // namespace

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        if (rank == 0) std::fprintf(stderr, "usage: heat <store> <steps> <cells a side>\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    Rows rows(std::strtoull(argv[3], nullptr, 10), rank, ranks);
    int step = resume(argv[1], rows);
    MPI_Barrier(MPI_COMM_WORLD);  // all have looked for the store before it is made
    if (step == 0) rows.begin();
    ambar_mpi_writer writer;
    check(step == 0 ? ambar_mpi_create(MPI_COMM_WORLD, argv[1], nullptr, &writer)
                    : ambar_mpi_append(MPI_COMM_WORLD, argv[1], nullptr, &writer));
    for (const int last = step + std::atoi(argv[2]); step < last; step++) {
        for (int iteration = 0; iteration < ITERATIONS; iteration++) rows.iterate();
        write_step(writer, rows, ITERATIONS * (step + 1.0));
    }
    check(ambar_mpi_close(&writer));
    MPI_Finalize();
}

// Writes one level of two boxes with ambar_amrex.H, on two ranks.
//
//     plotfile <store> <value> keep|replace|unknown|unknown_particles|wrong|differ|class|bounded
//
// keep and replace: what becomes of a store that exists. unknown: a bound of a variable that does not exist. differ: rank 1
// asks for a bound, rank 0 for none. class: as keep, with AmrexPlotfile. unknown_particles: a bound of particles that are not
// written. wrong: a bound that is not valid. bounded: a bound that depends on the range of all ranks' values.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <ambar_amrex.H>

int main (int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) return 2;
    const double value = std::atof(argv[2]);
    const std::string mode = argv[3];
    amrex::MultiFab fabs;
    for (int i = 0; i < 2; ++i) {
        const amrex::Box box = {{{16 * i, 0, 0}}, {{16 * i + 15, 15, 15}}};
        fabs.array.boxes.push_back(box);
        fabs.map.ranks.push_back(i);
        if (i == amrex::ParallelDescriptor::MyProc()) {
            amrex::FArrayBox& own = fabs.own[i];
            own.its = box;
            for (int at = 0; at < box.numPts(); ++at) own.values.push_back(value + 1e-3 * at);
        }
    }
    const amrex::Vector<amrex::Geometry> geometry = {{{{{0, 0, 0}}, {{31, 15, 15}}}}};
    ambar::AmrexOptions options;
    options.store.overwrite = mode == "replace";
    if (mode == "unknown") options.error_bounds["phi2"] = 1e-3;
    if (mode == "unknown_particles") options.error_bounds["tracers/mass"] = "12 bits";
    if (mode == "wrong") options.error_bounds["phi"] = "1e-3 of rnage";
    if (mode == "bounded") options.error_bounds["*"] = "1e-3 of range";
    if (mode == "differ" && amrex::ParallelDescriptor::MyProc() == 1) options.error_bounds["*"] = "1e-3 relative";
    if (mode == "keep" || mode == "replace") {
        ambar::WriteMultiLevelPlotfileAmbar(argv[1], 1, {&fabs}, {"phi"}, geometry, value, {0}, {}, options);
    } else {
        ambar::AmrexPlotfile file(argv[1], options);
        file.cells(1, {&fabs}, {"phi"}, geometry, value, {0}, {});
        if (file.commit()) {
            std::printf("rank %d: %s\n", amrex::ParallelDescriptor::MyProc(), file.error().c_str());
        }
    }
    MPI_Finalize();
    return 0;
}

// Writes two boxes on each level with ambar_amrex.H, on two ranks: one level, or two for bounds of levels and boxes.
//
//     plotfile <store> <value> keep|replace|unknown|unknown_particles|wrong|differ|class|bounded
//     plotfile <store> <value> series:<step>[:die][:other]
//     plotfile <store> <value> 'KEY=BOUND;KEY=BOUND...'
//
// keep and replace: what becomes of a store that exists. unknown: a bound of a variable that does not exist. differ: rank 1
// asks for a bound, rank 0 for none. class: as keep, with AmrexPlotfile. unknown_particles: a bound of particles that are not
// written. wrong: a bound that is not valid. bounded: a bound that depends on the range of all ranks' values.
// series: adds a step to a store; with `:die`, exits before the commit; with
// `:other`, the plotfiles have another prefix.
// KEY=BOUND; two levels of noise with these error bounds, separated by semicolons.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <ambar_amrex.H>

int main (int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 4) return 2;
    const double value = std::atof(argv[2]);
    const std::string mode = argv[3];
    const bool has_bounds = mode.find('=') != std::string::npos;
    const int levels = has_bounds ? 2 : 1;
    amrex::MultiFab fabs[2];
    for (int level = 0; level < levels; ++level) {
        for (int i = 0; i < 2; ++i) {
            const amrex::Box box = {{{16 * i, 0, 0}}, {{16 * i + 15, 15, 15}}};
            fabs[level].array.boxes.push_back(box);
            fabs[level].map.ranks.push_back(i);
            if (i != amrex::ParallelDescriptor::MyProc()) continue;
            amrex::FArrayBox& own = fabs[level].own[i];
            own.its = box;
            for (int at = 0; at < box.numPts(); ++at) {
                own.values.push_back(value + (has_bounds ? std::fmod(0.618 * at * at, 1.0) : 1e-3 * at));
            }
        }
    }
    amrex::Vector<const amrex::MultiFab*> mf;
    amrex::Vector<amrex::Geometry> geometry;
    for (int level = 0; level < levels; ++level) {
        mf.push_back(&fabs[level]);
        geometry.push_back({{{{0, 0, 0}}, {{(32 << level) - 1, (16 << level) - 1, (16 << level) - 1}}}});
    }
    const amrex::Vector<amrex::IntVect> ratios = {{{2, 2, 2}}};
    amrex::Vector<int> steps = {0, 0};
    ambar::AmrexOptions options;
    options.store.overwrite = mode == "replace";
    if (mode == "unknown") options.error_bounds["phi2"] = 1e-3;
    if (mode == "unknown_particles") options.error_bounds["tracers/mass"] = "12 bits";
    if (mode == "wrong") options.error_bounds["phi"] = "1e-3 of rnage";
    if (mode == "bounded") options.error_bounds["*"] = "1e-3 of range";
    if (mode.rfind("series:", 0) == 0) {
        options.series = mode.find(":other") == std::string::npos ? "plt" : "smallplt";
        steps[0] = std::atoi(mode.c_str() + 7);
    }
    if (mode == "differ" && amrex::ParallelDescriptor::MyProc() == 1) options.error_bounds["*"] = "1e-3 relative";
    if (has_bounds) options.covered = AMBAR_COVERED_KEEP;
    std::istringstream pairs(has_bounds ? mode : "");
    for (std::string pair; std::getline(pairs, pair, ';');) {
        options.error_bounds[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    if (mode == "keep" || mode == "replace") {
        ambar::WriteMultiLevelPlotfileAmbar(argv[1], levels, mf, {"phi"}, geometry, value, steps, ratios, options);
    } else {
        ambar::AmrexPlotfile file(argv[1], options);
        file.cells(levels, mf, {"phi"}, geometry, value, steps, ratios);
        if (mode.find(":die") != std::string::npos) std::_Exit(0);
        if (file.commit()) {
            std::printf("rank %d: %s\n", amrex::ParallelDescriptor::MyProc(), file.error().c_str());
        }
    }
    MPI_Finalize();
    return 0;
}

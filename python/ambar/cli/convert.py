"""`ambar convert`, `ambar merge` and `ambar export`: stores, and files of other programs."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from ambar.cli.options import (
    Debug,
    Json,
    Progress,
    State,
    Threads,
    flag,
    mode_of,
    option,
    parse_levels,
    parse_list,
    parse_region,
    parse_steps,
    without_none,
)
from ambar.cli.output import printed_warnings, show_report

_NETCDF = "Of NetCDF files and Zarr stores"
_STORES = "Of stores of ambar"
Processes = Annotated[
    int | None,
    option(
        "Processes that read or write files; by default one per core.",
        min=1,
        max=1024,
        rich_help_panel=_NETCDF,
    ),
]


class ConvertCommand(TyperCommand):
    """The command, whose error for a single path names the argument that is missing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; a single path is the source, so that the target is missing."""
        given = self.make_parser(ctx).parse_args(list(args))[0]
        source, paths = given.get("target"), given.get("paths")
        # A missing argument is None or, with click 8.3 and newer, an object that is true.
        has_paths = isinstance(paths, (list, tuple)) and len(paths) > 0
        if isinstance(source, str) and not has_paths and not given.get("help"):
            stem = Path(source).stem or "run"
            ctx.fail(f"Missing argument 'TARGET': the store to write, for example {stem}.ambar")
        return super().parse_args(ctx, args)


def convert(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="A RAMSES output or a plotfile, or a folder of them; a snapshot of particles; "
            "files of openPMD, a folder of them, or a pattern with %T; or files of NetCDF and Zarr "
            "stores, folders of them, and globs; or a mesh, or the files of its time steps; or an "
            "output of another code that yt reads; or a store.",
            metavar="PATH",
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(help="The store to write, for example run.ambar; or s3://bucket/run.ambar."),
    ],
    components: Annotated[
        str | None,
        option(
            "Some, a,b,c: hydro, gravity, rt, particles, sinks, clumps; of AMReX cells and "
            "species; of snapshots of particles gas, dark_matter, stars, ...; of other codes "
            "cells and yt's types of particles. By default all."
        ),
    ] = None,
    fields: Annotated[str | None, option("Fields to keep, a,b,c; by default all.")] = None,
    levels: Annotated[
        str | None,
        option(
            "Levels of leaf cells to keep, of RAMSES outputs and stores of cells. In stores of "
            "patches, covered cells of the highest level become leaves.",
            metavar="LOWEST:HIGHEST",
        ),
    ] = None,
    max_level: Annotated[
        int | None,
        option(
            "Of RAMSES outputs, the level at which the tree ends: refined cells of this level keep "
            "RAMSES' value.",
            min=1,
        ),
    ] = None,
    covered: Annotated[
        Literal["auto", "drop", "keep"] | None,
        option(
            "Whether cells that finer cells cover are stored, of AMReX and outputs that yt reads. "
            "auto (default) leaves them out where averages of the finer cells reproduce them."
        ),
    ] = None,
    steps: Annotated[
        str | None,
        option(
            "Steps of a series, by position from 0: 0:10, -1, or 1,3,5.",
            metavar="POSITIONS",
            rich_help_panel=_STORES,
        ),
    ] = None,
    region: Annotated[
        str | None,
        option(
            "The box of cells and particles to keep, in fractions of the side of the "
            "simulation's box in x; of cells in patches, the boxes around it.",
            metavar="X0:X1,Y0:Y1,Z0:Z1",
            rich_help_panel=_STORES,
        ),
    ] = None,
    where: Annotated[
        str | None,
        option(
            "Datasets of a collection: 'platform == \"argo\"'; by default all.",
            rich_help_panel=_STORES,
        ),
    ] = None,
    profile: Annotated[
        Literal["fast", "balanced", "small", "raw"] | None,
        option(
            "Fast to read, balanced (default), small, or not compressed. Of a store, chunks keep "
            "their encoding by default."
        ),
    ] = None,
    error_bound: Annotated[
        str | None,
        option(
            "How far values may differ: 0.5, '1e-3 relative', or by field "
            "'a=0.5, b=1e-4 of range'; by level and box 'a@8:=0.1, b@[0:1,0:1]=0.2', in code "
            "coordinates (--region has fractions). Of NetCDF files and Zarr stores by variable "
            "only, absolute or relative: temperature=0.01."
        ),
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace the store.")] = False,
    resume: Annotated[
        bool,
        flag(
            "--resume",
            "Add to the store: outputs of a run, time steps of meshes, or files of a "
            "collection that it does not have yet.",
        ),
    ] = False,
    on_error: Annotated[
        Literal["stop", "skip"] | None,
        option(
            "If one of several outputs or files fails: stop (default), or skip it and list it "
            "at the end (exit code 1)."
        ),
    ] = None,
    ragged: Annotated[
        str | None,
        option(
            "Dimensions, a,b, whose lengths are known to differ between files.",
            rich_help_panel=_NETCDF,
        ),
    ] = None,
    on_mismatch: Annotated[
        Literal["family", "cast", "raise"] | None,
        option(
            "Values of another type than the first file's: kept in a family of their own, "
            "cast, or refused.",
            rich_help_panel=_NETCDF,
        ),
    ] = None,
    engine: Annotated[
        str | None, option("The engine of xarray to read with.", rich_help_panel=_NETCDF)
    ] = None,
    processes: Processes = None,
    decode_times: Annotated[
        bool | None,
        flag(
            "--decode-times/--no-decode-times",
            "Whether numbers with units of times become times (default), or stay numbers.",
            rich_help_panel=_NETCDF,
        ),
    ] = None,
    halos: Annotated[
        list[str] | None,
        option(
            "Of snapshots of particles and RAMSES outputs: a catalogue of halos to add, of "
            "Subfind, FOF, Rockstar or HOP; give the option once for each.",
            metavar="PATH",
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        option(
            "A dask cluster whose workers convert the outputs of a run, or NetCDF files: the "
            "address of its scheduler, tcp://HOST:PORT.",
            metavar="ADDRESS",
        ),
    ] = None,
    reorder: Annotated[
        bool,
        flag(
            "--reorder",
            "Of a mesh: sort the cells along a curve, so that parts of space are read alone.",
        ),
    ] = False,
    fsync: Annotated[
        bool,
        flag(
            "--fsync/--no-fsync",
            "Whether the store survives a power failure; without, writing is faster.",
        ),
    ] = True,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Convert outputs of RAMSES, AMReX, openPMD and particle codes, NetCDF, Zarr, meshes, stores.

    Nothing is lost, unless an error bound is given.

    A folder of outputs, or plotfiles of one run, become a series; with --resume, it converts those
    that are new, and those whose files have changed. The newest output or plotfile is left out
    while the run is writing it; an older one that is not complete is an error.

    A checkpoint of AMReX becomes a store of its files; ambar export writes them again.

    A snapshot of particles is an HDF5 file of Gadget-2, 3 or 4, AREPO, GIZMO or SWIFT, one of its
    files, or their folder. Each type of particles becomes a table that regions read in parts. A
    folder of snapshots, with snapdir_NNN or snapshot_NNN.hdf5, becomes a series.

    Iterations of openPMD become a series, in HDF5 and ADIOS2; --resume adds those that are new.

    NetCDF files and Zarr stores become a collection, each a dataset. A file that cannot be read
    stops it; with --on-error skip the others are kept. --resume continues after an interruption.

    A mesh is a file of any format that PyVista or meshio reads: .vtu, .vtkhdf, .case, .msh, ...
    One of several time steps becomes a series; so do a .pvd, a .series of ParaView, and several
    files, in the order of their numbers.

    A store becomes a store of the same kind. Chunks are copied verbatim, unless a profile, an error
    bound, a region or levels change their encoding.

    [bold]Examples[/bold]
    ambar convert output_00300 run.ambar
    ambar convert output_00300 gas.ambar --components hydro --max-level 10 --profile small
    ambar convert /scratch/run42 run42.ambar --resume --on-error skip
    ambar convert plt00200 plt.ambar
    ambar convert "plt*" run.ambar --resume
    ambar convert /scratch/run42 run42.ambar --scheduler tcp://node1:8786
    ambar convert chk00100 chk.ambar
    ambar convert plt00200 plt.ambar --error-bound "1e-3 of range"
    ambar convert snapdir_010 snap.ambar --halos groups_010/fof_subhalo_tab_010.0.hdf5
    ambar convert /scratch/run run.ambar --resume
    ambar convert snap_010.hdf5 gas.ambar --components gas --fields mass,Density,InternalEnergy
    ambar convert run42 run.ambar --error-bound "*=1e-3 relative,density@12:=1e-4 relative"
    ambar convert diags/openpmd_%T.h5 run.ambar
    ambar convert profiles/ profiles.ambar --error-bound temperature=0.01
    ambar convert "2024/*.nc" "2025/*.zarr" profiles.ambar --resume
    ambar convert blast.out1.00010.athdf blast.ambar --fields density,velocity_x
    ambar convert wing.vtu wing.ambar --error-bound pressure=0.5 --reorder
    ambar convert wing.msh wing.ambar
    ambar convert flow.pvd flow.ambar
    ambar convert step_*.vtu flow.ambar --resume
    ambar convert run.ambar small.ambar --profile small
    ambar convert run42.ambar last.ambar --steps -1 --fields rho,p
    ambar convert output_00300 s3://bucket/run.ambar
    ambar convert /scratch/run42 s3://bucket/run42/ --resume
    ambar convert run.ambar part.ambar --region 0.4:0.6,0.4:0.6,0.4:0.6
    ambar convert plt.ambar coarse.ambar --levels 0:1
    ambar convert profiles.ambar argo.ambar --where 'platform == "argo"'
    """
    from ambar.io import convert as conversion
    from ambar.store.error_bounds import parse_bounds
    from ambar.store.urls import is_object, is_url

    options = without_none(
        components=parse_list(components),
        fields=parse_list(fields),
        levels=parse_levels(levels),
        max_level=max_level,
        covered=covered,
        on_error=on_error,
        ragged=parse_list(ragged),
        on_mismatch=on_mismatch,
        engine=engine,
        processes=processes,
        decode_times=decode_times,
        reorder=reorder or None,
        halos=halos or None,
        scheduler=scheduler,
        steps=parse_steps(steps),
        region=parse_region(region),
        datasets=where,
    )
    try:
        with printed_warnings():
            done = conversion.convert(
                paths,
                target,
                mode=mode_of(overwrite=overwrite, resume=resume),
                profile=profile,
                error_bound=parse_bounds(error_bound),
                threads=threads,
                progress=progress,
                fsync=fsync,
                **options,
            )
    except KeyboardInterrupt:
        State.interrupted = f"interrupted: {target} was not written"
        if Path(target).exists() or (is_url(target) and not is_object(target)):
            State.interrupted = (
                f"interrupted: {target} has all that was committed; --resume adds to a series or a "
                "collection"
            )
        raise
    show_report(done, as_json=json)


def merge(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Stores of one kind, or URLs of stores; the last one is the store to write.",
            metavar="PATH... TARGET",
        ),
    ],
    on_conflict: Annotated[
        Literal["error", "skip", "replace"],
        option(
            "If several stores have an output, a dataset or an array of the same name: list all "
            "and stop, keep the first, or keep the last."
        ),
    ] = "error",
    overwrite: Annotated[bool, flag("--overwrite", "Replace the target.")] = False,
    resume: Annotated[bool, flag("--resume", "Add to the target.")] = False,
    fsync: Annotated[
        bool,
        flag(
            "--fsync/--no-fsync",
            "Whether the store survives a power failure; without, writing is faster.",
        ),
    ] = True,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Write several stores of one kind as one store.

    Outputs of series, steps of series of meshes, datasets of collections, or arrays. Chunks are
    copied verbatim.

    [bold]Examples[/bold]
    ambar merge run1.ambar run2.ambar run.ambar
    ambar merge argo_*.ambar argo.ambar --on-conflict skip
    ambar merge run3.ambar run.ambar --resume
    ambar merge run1.ambar run2.ambar s3://bucket/run.ambar
    """
    from ambar import _core
    from ambar.io import merge as merging

    if len(paths) < 2:
        raise _core.InvalidError(
            f"expected stores and a target, found {paths[0]} alone; give the store to write as the "
            "last path"
        )
    *sources, target = paths
    is_kept = "is unchanged" if Path(target).exists() else "was not written"
    State.interrupted = f"interrupted: {target} {is_kept}"
    done = merging.merge(
        sources,
        target,
        mode=mode_of(overwrite=overwrite, resume=resume),
        on_conflict=on_conflict,
        threads=threads,
        progress=progress,
        fsync=fsync,
    )
    show_report(done, as_json=json)


def export(
    store: Annotated[
        str, typer.Argument(help="A store of a plotfile, openPMD, a collection, or a mesh.")
    ],
    target: Annotated[
        str,
        typer.Argument(help="The folder to write, for example plt00200; a mesh's file, x.vtkhdf."),
    ],
    format: Annotated[  # noqa: A002 - the option's name
        Literal["netcdf", "zarr", "openpmd"] | None,
        option(
            "What a collection's datasets become, netcdf (default) or zarr; openpmd for outputs, "
            "if they were converted from it."
        ),
    ] = None,
    output: Annotated[
        int | None,
        option("Of a series of plotfiles, the number of the only one to write.", min=0),
    ] = None,
    where: Annotated[
        str | None,
        option("Which datasets of a collection: 'platform == \"argo\"'; by default all."),
    ] = None,
    processes: Processes = None,
    overwrite: Annotated[
        bool,
        flag("--overwrite", "Replace TARGET, and files that the export writes beside or in it."),
    ] = False,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Write a store of a plotfile as a native plotfile again, a collection or a mesh as files.

    A native plotfile that was converted as a whole becomes the same files, byte by byte. Others
    (from HDF5, or with some fields only) become a native plotfile of the same boxes, names and
    values. A series of plotfiles becomes a folder of them, a checkpoint its folder.

    Outputs of openPMD become a folder of HDF5 files, or one file if TARGET ends in .h5 or .bp.

    Each dataset of a collection becomes a file of NetCDF-4, or a Zarr store. Values that were
    decoded with scale_factor and add_offset stay floating-point numbers.

    A mesh becomes a file of the format that TARGET's suffix names, of those that PyVista and meshio
    write: .vtkhdf, .vtu, .stl, .msh, ... The report names what the format does not hold. A series
    of meshes becomes a .pvd with a file for each step.

    Cells become AMR data for ParaView if TARGET ends in .vtkhdf.

    [bold]Examples[/bold]
    ambar export plt.ambar plt00200
    ambar export run.ambar files --format openpmd
    ambar export run.ambar plotfiles
    ambar export run.ambar plt00200 --output 200
    ambar export chk.ambar chk00100
    ambar export profiles.ambar files
    ambar export profiles.ambar argo --format zarr --where 'platform == "argo"'
    ambar export wing.ambar wing.vtkhdf
    ambar export wing.ambar wing.msh
    ambar export plt.ambar plt.vtkhdf
    """
    from ambar.io import convert as conversion

    is_kept = "is unchanged" if Path(target).exists() else "was not written"
    State.interrupted = f"interrupted: {target} {is_kept}"
    with warnings.catch_warnings():
        # The report has what a mesh file does not hold.
        warnings.filterwarnings("ignore", "(?s).*the format does not hold unchanged", UserWarning)
        done = conversion.export(
            store,
            target,
            mode=mode_of(overwrite=overwrite),
            threads=threads,
            progress=progress,
            **without_none(format=format, datasets=where, processes=processes, output=output),
        )
    show_report(done, as_json=json)

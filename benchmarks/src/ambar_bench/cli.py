"""`ambar-bench`: a command for each study."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ambar.cli import run
from ambar.cli.options import Debug, Json, Threads, parse_list
from ambar.cli.output import console, errors, print_json

if TYPE_CHECKING:
    from ambar.store.writer import Profile

app = typer.Typer(
    help="Measure ambar against its peers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

Rounds = Annotated[int, typer.Option(min=1, help="Rounds of which medians are taken.")]
Patience = Annotated[
    float, typer.Option(min=0, help="Seconds after which a row gets no more rounds.")
]
Scratch = Annotated[
    Path | None, typer.Option(help="Folder to write into; what is written is deleted.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder for Markdown, JSON and charts.")
]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    run(app, arguments)


@app.command()
def ramses(
    path: Annotated[Path, typer.Argument(help="A RAMSES output, output_NNNNN.")],
    components: Annotated[
        str, typer.Option(help="Some of hydro, gravity, rt, particles, all.")
    ] = "hydro,gravity,particles,all",
    profiles: Annotated[str, typer.Option(help="Stores to measure.")] = "fast,balanced,small",
    peers: Annotated[
        str, typer.Option(help="Peers to measure, where they are installed.")
    ] = "yt,osyris,pynbody",
    threads: Threads = None,
    rounds: Annotated[int, typer.Option(min=1, help="Warm loads of each row.")] = 9,
    cold: Annotated[
        bool, typer.Option("--cold", help="Empty the page cache before first loads.")
    ] = False,
    output: Output = None,
    stores: Annotated[
        Path | None, typer.Option(help="Folder to keep the stores in; else they are temporary.")
    ] = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure the loading of a RAMSES output: time, memory and size of every way.

    Each row runs in a separate process, in turn. Loaded values are checked: the same
    columns, with the same sums.

    [bold]Examples[/bold]

    ambar-bench ramses output_00300

    ambar-bench ramses output_00300 --components hydro,all --rounds 21 --cold -o results
    """
    from ambar_bench.ramses import report, study

    chosen = _profiles(profiles)
    with TemporaryDirectory() if stores is None else nullcontext(str(stores)) as scratch:
        Path(scratch).mkdir(parents=True, exist_ok=True)
        with errors.status("measuring") as status:
            found = study.run_study(
                path,
                Path(scratch),
                components=_names(components),
                profiles=chosen,
                peers=_names(peers),
                threads=threads,
                rounds=rounds,
                cold=cold,
                report=status.update,
            )
    _finish(found, report, output, json, "stores: " + report.stores(found))


@app.command()
def analysis(
    path: Annotated[Path, typer.Argument(help="A RAMSES output of 3 dimensions, output_NNNNN.")],
    tasks: Annotated[
        str, typer.Option(help="Some of sphere, profile, phase, derived, map, oblique.")
    ] = "sphere,profile,phase,derived,map,oblique",
    profiles: Annotated[str, typer.Option(help="Stores to measure.")] = "balanced",
    peers: Annotated[
        str, typer.Option(help="Peers to measure, where they are installed.")
    ] = "yt,pynbody",
    threads: Threads = None,
    rounds: Rounds = 5,
    patience: Patience = 60,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure statistics, profiles, phase diagrams and maps: time and memory of every tool.

    Each row runs in a separate process, in turn, and opens the output in each run. The
    results are compared.

    [bold]Examples[/bold]

    ambar-bench analysis output_00300

    ambar-bench analysis output_00300 --tasks sphere,profile --peers yt -o results
    """
    from ambar_bench.analysis import report, study

    chosen = _profiles(profiles)
    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = study.run_study(
            path,
            folder,
            tasks=_names(tasks),
            profiles=chosen,
            peers=_names(peers),
            threads=threads,
            rounds=rounds,
            patience=patience,
            report=status.update,
        )
    _finish(found, report, output, json)


@app.command("ramses-output")
def ramses_output(
    folder: Annotated[Path, typer.Argument(help="Folder in which output_00001 is written.")],
    megabytes: Annotated[int, typer.Option(min=1, help="Approximate size in MB.")] = 5000,
    domains: Annotated[int, typer.Option(min=1, help="Domains, of one file per component.")] = 640,
    levels: Annotated[
        str, typer.Option(help="The finest level that fills the box, and the finest of all.")
    ] = "7:12",
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Write a RAMSES output of smooth fields, for measurements where no run is at hand.

    [bold]Examples[/bold]

    ambar-bench ramses-output /scratch

    ambar-bench ramses-output /scratch --megabytes 1000 --domains 128 --levels 6:10
    """
    from ambar_bench.ramses.synthetic import SyntheticOutput, write_output

    level_min, level_max = map(int, levels.split(":"))
    spec = SyntheticOutput(megabytes, domains, level_min, level_max)
    with errors.status("writing"):
        written = write_output(folder, spec)
    console.print(str(written))


@app.command()
def amr(
    path: Annotated[Path, typer.Argument(help="An AMReX plotfile, plt00000.")],
    bounds: Annotated[str, typer.Option(help="Relative error bounds.")] = "1e-2,1e-3,1e-4,1e-5",
    fields: Annotated[str | None, typer.Option(help="Some of the fields; else all.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Some of the methods; a wrong name shows all there are.")
    ] = None,
    local_range: Annotated[
        bool,
        typer.Option("--local-range", help="Bounds of each rank's own range, as AMRIC's tables."),
    ] = False,
    rounds: Rounds = 3,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure error-bounded compression of a plotfile: ratio, PSNR, largest error, speed.

    Against AMReX's own compression, the schemes of AMRIC, SZ3 and ZFP. All of the plotfile is read
    into memory.

    [bold]Examples[/bold]

    ambar-bench amr plt00200

    ambar-bench amr plt00200 --bounds 1e-3 --fields density,Temp --local-range -o results
    """
    from ambar_bench.amr import report, study

    with errors.status("measuring") as status:
        found = study.run_study(
            path,
            bounds=_numbers(bounds),
            fields=parse_list(fields),
            keys=parse_list(methods),
            local_range=local_range,
            rounds=rounds,
            report=status.update,
        )
    _finish(found, report, output, json)


@app.command()
def collection(
    case: Annotated[str, typer.Option(help="profile, gridded or sensors.")] = "profile",
    datasets: Annotated[str, typer.Option(help="Numbers of datasets to measure.")] = "100,500,1000",
    n_vars: Annotated[
        int | None, typer.Option(min=1, help="Variables of a dataset; else the case's own.")
    ] = None,
    slice_fraction: Annotated[
        float, typer.Option(help="How much of each dimension is read of every dataset.")
    ] = 0.25,
    slice_offset: Annotated[
        int, typer.Option(min=0, help="Where the slice begins in each dimension.")
    ] = 0,
    rows: Annotated[
        str | None, typer.Option(help="Some of the rows; a wrong name shows all there are.")
    ] = None,
    scale: Annotated[
        int | None,
        typer.Option(min=1, help="Measure single datasets among N datasets, and nothing else."),
    ] = None,
    threads: Threads = None,
    rounds: Rounds = 5,
    patience: Patience = 60,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure many datasets in one store: writing, a slice of all of them, size.

    Against files of NetCDF and Zarr, HDF5, TensorStore and Atlas, with the cases of Atlas' own
    benchmark. What every row reads is compared with what was written.

    [bold]Examples[/bold]

    ambar-bench collection --n-vars 4 -o results

    ambar-bench collection --case gridded --datasets 100 --slice-offset 7

    ambar-bench collection --case sensors --scale 100000
    """
    from ambar_bench.collection import report, scale_report
    from ambar_bench.collection.scale import run_scale
    from ambar_bench.collection.study import run_study

    common: dict[str, Any] = {"n_vars": n_vars, "threads": threads, "rounds": rounds}
    with _folder(scratch) as folder, errors.status("measuring") as status:
        common |= {"patience": patience, "report": status.update}
        found: Any
        if scale is not None:
            shown: Any = scale_report
            found = run_scale(case, folder, datasets=scale, **common)
        else:
            shown = report
            found = run_study(
                case,
                folder,
                datasets=_counts(datasets),
                fraction=slice_fraction,
                offset=slice_offset,
                keys=parse_list(rows),
                **common,
            )
    _finish(found, shown, output, json)


@app.command()
def million(
    datasets: Annotated[int, typer.Option(min=1, help="Datasets of the collection.")] = 1_000_000,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure a collection of very many small datasets: create, open, read one, append one.

    Time, memory and bytes written of each step. What is read is compared with what was written.

    [bold]Examples[/bold]

    ambar-bench million -o results

    ambar-bench million --datasets 100000 --json
    """
    from ambar_bench.collection import million_report
    from ambar_bench.collection.million import run_million

    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = run_million(folder, datasets=datasets, report=status.update)
    _finish(found, million_report, output, json)


@app.command()
def mesh(
    n: Annotated[int, typer.Option(min=2, help="Points a side of the tetrahedral grids.")] = 127,
    points: Annotated[int, typer.Option(min=5, help="Points of the Delaunay mesh.")] = 1_000_000,
    data: Annotated[str, typer.Option(help="What grids hold: random, smooth.")] = "random,smooth",
    parts: Annotated[
        str, typer.Option(help="Some of formats, levels, threads, array, box, meshes, series.")
    ] = "formats,levels,threads,array,box,meshes,series",
    levels: Annotated[
        str, typer.Option(help="Levels of zstd, -22 to 22; A:B for all between.")
    ] = "-22,-10,-5,-1,1,3,5,7,9,12,15,19,22",
    rows: Annotated[
        str | None, typer.Option(help="Some of the rows; a wrong name shows all there are.")
    ] = None,
    meshes: Annotated[
        str | None, typer.Option(help="Some of the other meshes; a wrong name shows them.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Time steps of the series.")] = 100,
    threads: Threads = None,
    rounds: Rounds = 5,
    patience: Patience = 60,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure meshes written and read: time, size, by level and by threads.

    Against zvtk, pyvista-zstd, VTK's formats, XDMF and blosc2, with the grids of zvtk's own
    benchmark and meshes of other kinds. What every row reads is compared with what was written.

    [bold]Examples[/bold]

    ambar-bench mesh --n 127 -o results

    ambar-bench mesh --n 64 --parts formats,levels --levels=-22:22 --data random

    ambar-bench mesh --parts meshes --points 100000
    """
    from ambar_bench.mesh import report
    from ambar_bench.mesh.study import run_study

    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = run_study(
            folder,
            n=n,
            points=points,
            data=_names(data),
            parts=_names(parts),
            levels=_levels(levels),
            keys=parse_list(rows),
            only=parse_list(meshes),
            steps=steps,
            threads=threads,
            rounds=rounds,
            patience=patience,
            report=status.update,
        )
    _finish(found, report, output, json)


@app.command()
def hdf5(
    side: Annotated[int, typer.Option(min=16, help="Values a side of the field.")] = 128,
    chunks: Annotated[str, typer.Option(help="Values a side of the chunks.")] = "32,64,128",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of which the fastest counts.")] = 15,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure what the filter of HDF5 costs over the bare codec, writing and reading.

    [bold]Examples[/bold]

    ambar-bench hdf5 -o results

    ambar-bench hdf5 --side 64 --chunks 32,64
    """
    from ambar_bench.hdf5 import report
    from ambar_bench.hdf5.study import run_study

    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = run_study(
            folder, side=side, sides=_counts(chunks), rounds=rounds, report=status.update
        )
    _finish(found, report, output, json)


@app.command()
def view(
    paths: Annotated[list[Path] | None, typer.Argument(help="Stores with cells.")] = None,
    large: Annotated[
        bool, typer.Option("--large", help="Also a store of 10^9 cells, which is made: 5 GB.")
    ] = False,
    visits: Annotated[int, typer.Option(min=1, help="New servers of each store.")] = 5,
    steps: Annotated[int, typer.Option(min=3, help="Steps of zooming and of panning.")] = 18,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure the viewer in a headless browser: the first picture, zooms and pans.

    [bold]Examples[/bold]

    ambar-bench view run.ambar -o results

    ambar-bench view run.ambar --large
    """
    from ambar_bench.view import report, study
    from ambar_bench.view.large import large_store

    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    with _folder(scratch) as folder, errors.status("making a store") as status:
        stores = [*(paths or []), *([large_store(folder)] if large else [])]
        found = study.run_study(
            stores, folder, visits=visits, steps=steps, pictures=output, report=status.update
        )
    _finish(found, report, output, json)


@app.command()
def rate(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files of NumPy (.npy), AMReX plotfiles or RAMSES outputs."),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic/--no-synthetic", help="Measure synthetic fields too.")
    ] = True,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure bytes at equal PSNR on fields of one level, against SPERR, SZ3 and ZFP.

    [bold]Examples[/bold]

    ambar-bench rate plt00040 output_00002 -o results

    ambar-bench rate pressure.npy --no-synthetic
    """
    from ambar_bench.rate import report
    from ambar_bench.rate.study import run_study

    with errors.status("measuring") as status:
        found = run_study(paths or [], with_synthetic=synthetic, report=status.update)
    _finish(found, report, output, json)


@app.command()
def parallel(
    doubles: Annotated[
        int, typer.Option(min=1, help="Of the array; fewer where memory or disk have no room.")
    ] = 480_000_000,
    text_share: Annotated[float, typer.Option(help="How many of these are written as text.")] = 0.1,
    data: Annotated[str, typer.Option(help="What it holds: random, smooth.")] = "random,smooth",
    ranks: Annotated[str, typer.Option(help="Numbers of ranks; may exceed the cores.")] = "1,2,4",
    readers: Annotated[
        str, typer.Option(help="Numbers of ranks that read what 4 ranks wrote; '' for none.")
    ] = "1,2,3,8",
    versions: Annotated[
        str | None, typer.Option(help="Some of the versions; a wrong name shows all there are.")
    ] = None,
    bound: Annotated[float, typer.Option(help="Error bound of ambar's lossy versions.")] = 1e-4,
    bandwidth: Annotated[
        str, typer.Option(help="GB/s of the model's file systems; '' for no model.")
    ] = "10",
    launcher: Annotated[
        str | None, typer.Option(help="What starts ranks, before -n; mpirun by default.")
    ] = None,
    rounds: Rounds = 5,
    patience: Patience = 120,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure one array written and read by many ranks: time, CPU seconds, size.

    All versions of the POP Centre of Excellence's study of parallel file I/O, PnetCDF, HDF5 with
    filters and ADIOS2, against ambar from C and Python. They are compiled with mpicc; what every
    version reads is compared with what was written.

    [bold]Examples[/bold]

    ambar-bench parallel --doubles 48000000 -o results

    ambar-bench parallel --ranks 48,96 --launcher srun --scratch /gpfs/me --bandwidth 200
    """
    from ambar_bench.parallel import report
    from ambar_bench.parallel.study import run_study

    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = run_study(
            folder,
            doubles=doubles,
            text_share=text_share,
            data=_names(data),
            ranks=_counts(ranks),
            readers=_counts(readers) if readers else [],
            keys=parse_list(versions),
            bound=bound,
            bandwidths=_bandwidths(bandwidth) if bandwidth else [],
            command=launcher,
            rounds=rounds,
            patience=patience,
            report=status.update,
        )
    _finish(found, report, output, json)


@app.command()
def distributed(
    megabytes: Annotated[float, typer.Option(help="Megabytes of the array.")] = 4000,
    workers: Annotated[str, typer.Option(help="Numbers of workers.")] = "1,2,4",
    profile: Annotated[str, typer.Option(help="The profile of the stores.")] = "balanced",
    rounds: Rounds = 3,
    model: Annotated[
        bool, typer.Option("--model", help="Model a run on 64 nodes instead, from measured costs.")
    ] = False,
    scratch: Scratch = None,
    output: Output = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Measure one array written by the workers of a dask cluster: time, memory of the client.

    Against one process with one thread. Then, once, a worker is killed on the way, to a file and
    to objects of a server of S3 on this machine. Read values are compared with what was written.

    [bold]Examples[/bold]

    ambar-bench distributed --megabytes 1000 --workers 1,2 -o results
    ambar-bench distributed --model
    """
    from ambar_bench.distributed import model as modelling
    from ambar_bench.distributed import study

    if model:
        with _folder(scratch) as folder, errors.status("measuring") as status:
            costs = modelling.measure(folder, status.update)
        _finish(modelling.model(costs), modelling, output, json)
        return
    with _folder(scratch) as folder, errors.status("measuring") as status:
        found = study.run_study(
            folder,
            megabytes=megabytes,
            workers=_counts(workers),
            profile=profile,
            rounds=rounds,
            report=status.update,
        )
    _finish(found, study, output, json)


@contextmanager
def _folder(scratch: Path | None) -> Iterator[Path]:
    """Yield a temporary folder, below `scratch` where that is given."""
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as folder:
        yield Path(folder)


def _finish(found: Any, report: Any, output: Path | None, json: bool, *last: str) -> None:
    """Write a study's files where there is a folder for them; print its tables, or JSON."""
    written = [] if output is None else report.write(found, output)
    if json:
        print_json(found.to_dict())
        return
    console.print(report.headline(found), markup=False, soft_wrap=True)
    for table in report.tables(found):
        console.print(table)
    for line in (*report.notes(found), *last):
        console.print(line, markup=False, style="dim", soft_wrap=True)
    for file in written:
        console.print(f"written: {file}", markup=False, soft_wrap=True)


def _counts(text: str) -> list[int]:
    parts = _names(text)
    if not parts or not all(part.isdecimal() and int(part) for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of numbers, such as 100,1000")
    return [int(part) for part in parts]


def _levels(text: str) -> list[int]:
    try:
        found: list[int] = []
        for part in _names(text):
            low, _, high = part.partition(":")
            found += range(int(low), int(high or low) + 1)
    except ValueError:
        found = []
    if not found:
        raise typer.BadParameter(f"{text!r} is not a list of levels, such as -22,3,9 or -22:22")
    return found


def _bandwidths(text: str) -> list[float]:
    try:
        return [float(part) for part in _names(text)]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of GB/s, such as 10,100") from None


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in _names(text)]
    except ValueError:
        numbers = []
    if not numbers or not all(0 < number < 1 for number in numbers):
        raise typer.BadParameter(
            f"{text!r} is not a list of bounds between 0 and 1, such as 1e-2,1e-3"
        )
    return numbers


def _names(text: str) -> list[str]:
    """Return the names in "a,b,c"; "" has none."""
    return (parse_list(text) or []) if text else []


def _profiles(text: str) -> list[Profile]:
    from ambar_bench.ramses.study import PROFILES

    names = _names(text)
    unknown = [name for name in names if name not in PROFILES]
    if unknown:
        raise typer.BadParameter(f"no profile {unknown[0]!r}; available: {', '.join(PROFILES)}")
    return [profile for profile in PROFILES if profile in names]

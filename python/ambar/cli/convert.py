"""`ambar convert` and `ambar export`: outputs and plotfiles to stores, and back to plotfiles."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ambar.cli.common import (
    Debug,
    Json,
    Progress,
    Threads,
    console,
    parse_levels,
    parse_list,
    print_json,
    ratio,
    size,
)


class Profile(StrEnum):
    """How codecs are chosen."""

    fast = "fast"
    balanced = "balanced"
    small = "small"


class Covered(StrEnum):
    """What becomes of cells that a finer level covers."""

    auto = "auto"
    drop = "drop"
    keep = "keep"


class Durability(StrEnum):
    """What a commit survives."""

    full = "full"
    none = "none"


def convert(
    path: Annotated[Path, typer.Argument(help="A RAMSES output, a folder of them, or a plotfile.")],
    target: Annotated[Path, typer.Argument(help="The store to write, for example run.ambar.")],
    components: Annotated[
        str | None,
        typer.Option(
            help="Some of hydro,gravity,rt,particles,sinks,clumps; of AMReX cells and species."
        ),
    ] = None,
    fields: Annotated[
        str | None, typer.Option(help="Fields to keep, a,b,c; by default all.")
    ] = None,
    levels: Annotated[
        str | None, typer.Option(metavar="LOWEST:HIGHEST", help="Levels of cells to keep.")
    ] = None,
    covered: Annotated[
        Covered,
        typer.Option(
            help="Cells of AMReX that finer ones cover: auto leaves them out where averages give "
            "them back."
        ),
    ] = Covered.auto,
    profile: Annotated[
        Profile, typer.Option(help="Fast to read, small, or balanced.")
    ] = Profile.balanced,
    error_bound: Annotated[
        str | None,
        typer.Option(
            help="How far values may be off: 0.5, '1e-3 of range', or a=0.5,b='1e-4 of range'."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the store.")] = False,
    durability: Annotated[
        Durability, typer.Option(help="full: survives a power cut; none: leaves out the fsyncs.")
    ] = Durability.full,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Convert a RAMSES output, a folder of outputs, or a plotfile of AMReX.

    Nothing is lost, unless an error bound is given.

    A folder of outputs becomes a series; called again, it goes on with the outputs that are new.

    [bold]Examples[/bold]

    ambar convert output_00300 run.ambar

    ambar convert output_00300 gas.ambar --components hydro --levels 7:10 --profile small

    ambar convert /scratch/run42 run42.ambar

    ambar convert plt00200 plt.ambar

    ambar convert plt00200 plt.ambar --error-bound "1e-3 of range"
    """
    from ambar import conversion
    from ambar.bounds import parse_bounds

    done = conversion.convert(
        path,
        target,
        components=parse_list(components),
        fields=parse_list(fields),
        levels=parse_levels(levels),
        covered=covered.value,
        profile=profile.value,
        error_bound=parse_bounds(error_bound),
        threads=threads,
        progress=True if progress else None,
        overwrite=overwrite,
        durability=durability.value,
    )
    if json:
        print_json(dataclasses.asdict(done) | {"ratio": done.ratio})
        return
    skipped = f", {len(done.skipped)} outputs were there already" if done.skipped else ""
    console.print(
        f"{target}: {size(done.source_bytes)} -> {size(done.stored_bytes)} "
        f"({ratio(done.source_bytes, done.stored_bytes)} smaller) in {done.seconds:.2f} s{skipped}",
        markup=False,
        soft_wrap=True,
    )


def export(
    store: Annotated[Path, typer.Argument(help="A store of a plotfile.")],
    target: Annotated[Path, typer.Argument(help="The plotfile to write, for example plt00200.")],
    threads: Threads = None,
    progress: Progress = True,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Write a store of a plotfile as a native plotfile of AMReX again.

    One that was converted as a whole becomes the same files, byte by byte.

    [bold]Examples[/bold]

    ambar export plt.ambar plt00200
    """
    from ambar import conversion

    conversion.export(store, target, threads=threads, progress=True if progress else None)
    console.print(str(target), markup=False, soft_wrap=True)

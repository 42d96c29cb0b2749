"""`ambar convert`: a RAMSES output, or a run of them, to a store."""

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


class Durability(StrEnum):
    """What a commit survives."""

    full = "full"
    none = "none"


def convert(
    path: Annotated[Path, typer.Argument(help="An output_NNNNN folder, or a folder of them.")],
    target: Annotated[Path, typer.Argument(help="The store to write, for example run.ambar.")],
    components: Annotated[
        str | None,
        typer.Option(help="Some of hydro,gravity,rt,particles,sinks,clumps; by default all."),
    ] = None,
    fields: Annotated[
        str | None, typer.Option(help="Fields to keep, a,b,c; by default all.")
    ] = None,
    levels: Annotated[
        str | None, typer.Option(metavar="LOWEST:HIGHEST", help="Levels of cells to keep.")
    ] = None,
    profile: Annotated[
        Profile, typer.Option(help="Fast to read, small, or balanced.")
    ] = Profile.balanced,
    error_bound: Annotated[
        str | None, typer.Option(help="Refused: this version stores without loss.")
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
    """Convert a RAMSES output, or a folder of outputs, to a store; nothing is lost.

    A folder of outputs becomes a series; called again, it goes on with the outputs that are new.

    [bold]Examples[/bold]

    ambar convert output_00300 run.ambar

    ambar convert output_00300 gas.ambar --components hydro --levels 7:10 --profile small

    ambar convert /scratch/run42 run42.ambar
    """
    from ambar import conversion

    done = conversion.convert(
        path,
        target,
        components=parse_list(components),
        fields=parse_list(fields),
        levels=parse_levels(levels),
        profile=profile.value,
        error_bound=error_bound,
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

"""`ambar samples`: small outputs of public codes, to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ambar.cli.options import Debug, Json, option
from ambar.cli.output import console, print_json, show_result


def samples(
    name: Annotated[
        str | None, typer.Argument(help="The sample to copy; without it, list all.")
    ] = None,
    folder: Annotated[Path, option("The folder to copy it to.")] = Path(),
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List the sample outputs that are installed with ambar, or copy one of them.

    [bold]Examples[/bold]
    ambar samples
    ambar samples ramses
    ambar samples amrex --folder /tmp
    """
    from ambar.samples import SAMPLES, copy

    if name is not None:
        path = copy(name, folder)
        show_result(str(path), {"path": str(path)}, as_json=json)
    elif json:
        print_json(
            {
                key: {"target": one.target, "description": one.description}
                for key, one in SAMPLES.items()
            }
        )
    else:
        table = Table("name", "copied to", "what it is", box=None, header_style="bold")
        for key, one in SAMPLES.items():
            table.add_row(key, one.target, one.description)
        console.print(table)

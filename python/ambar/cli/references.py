"""`ambar references`: locations of the chunks of a store, for Zarr readers without ambar."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ambar.cli.options import Debug, option


def references(
    path: Annotated[Path, typer.Argument(help="A store.")],
    url: Annotated[str, option("URL of the store for readers; its absolute path by default.")] = "",
    group: Annotated[str, option("Limit the output to this group.")] = "",
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Print references to all chunks of a store, as kerchunk does: JSON for fsspec and others.

    [bold]Examples[/bold]
    ambar references run.ambar --url https://example.org/run.ambar > run.json
    """
    from ambar.store.chunk_references import references as find

    json.dump(find(path, url or None, group), sys.stdout)
    sys.stdout.write("\n")

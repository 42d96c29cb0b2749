"""`ambar verify`, `ambar compact`, `ambar repair` and `ambar references`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ambar._util.progress import progress_function
from ambar._util.text import plural, size
from ambar.cli.options import Commit, Debug, Json, Progress, Threads, option
from ambar.cli.output import show_result

Place = Annotated[Path, typer.Argument(help="A store.")]


def verify(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    commit: Commit = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Check all checksums of a store, and the catalog of a collection.

    The records of all commits are checked, and the chunks of one commit: the last one, or that of
    --commit. Damage is listed, and the exit code is then 1. What a killed writer has left after the
    last commit is reported, but no damage.

    [bold]Examples[/bold]
    ambar verify run.ambar
    ambar verify run.ambar --json --threads 1
    ambar verify run.ambar --commit paper-v1
    """
    from ambar.collection.openers import collection_at
    from ambar.io.openers import open_store
    from ambar.store.cache import place_of

    store = open_store(path, commit=commit)
    checked = store.verify(threads=threads, progress=progress)
    if store._ambar_attributes().get("kind") == "collection":
        collection_at(place_of(path), store)._catalogue.verify()
    text = (
        f"{path}: no damage: checked {size(checked['bytes'])} in {checked['entries']:,} entries "
        f"and {plural(checked['chunks'], 'chunk')}"
    )
    if checked["unfinished"]:
        text += (
            f"\nunfinished write: {size(checked['unfinished'])} after the last commit, of a killed "
            "writer; the next writer or `ambar repair` removes them"
        )
    show_result(text, checked, as_json=json)


def compact(
    path: Place,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Rewrite a store without the dead bytes of replaced and removed arrays.

    [bold]Examples[/bold]
    ambar compact run.ambar
    ambar compact run.ambar --json
    """
    from ambar import _core
    from ambar.store import maintenance
    from ambar.store.urls import refuse_url

    refuse_url(path)
    before = _core.Store(str(path)).usage()["total"]
    with progress_function(progress, f"compacting {path.name}"):
        maintenance.compact(path)
    after = _core.Store(str(path)).usage()["total"]
    found = {"path": str(path), "bytes_before": before, "bytes_after": after}
    show_result(f"{path}: {size(before)} -> {size(after)}", found, as_json=json)


def repair(
    path: Place,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Remove the remains of a killed writer, for other readers of ZIP files.

    ambar reads such a store without a repair; other readers of ZIP files do not.

    [bold]Examples[/bold]
    ambar repair run.ambar
    ambar repair run.ambar --json
    """
    from ambar.store import maintenance

    before = _size(path)
    with progress_function(progress, f"repairing {path.name}"):
        maintenance.repair(path)
    removed = before - _size(path)
    found = {"path": str(path), "bytes_removed": removed}
    show_result(f"{path}: removed {size(removed)}", found, as_json=json)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


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
